"""ESWM-T for egocentric views (paper: "MiniGrid" in "Training Details"): states are views of 25 cells.

The paper's model embeds and predicts views; ours, with `registration`, is also told what the bank, put together as a
map, shows at the place in question.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.rooms.grid import FORWARD, IN_FRONT, LEFT, N_ACTIONS, N_CELLS, N_CLASSES, RIGHT, WALL
from eswm_gym.world_model.codecs import EgocentricCodec
from eswm_gym.world_model.eswm import ACTION, ESWM, MASKED, SOURCE, EncodedBank, ModelConfig
from eswm_gym.world_model.registration import INVERSE, N_KINDS, STAY, Registration, kinds_of, motion_of
from eswm_gym.world_model.transformer import Block

COMPARED = (LEFT, RIGHT, FORWARD, STAY)  # motions that an action can be
N_FEATURES = 3 * N_CELLS * N_KINDS + 2 * len(COMPARED) + 2
FLOOR = 1e-3  # under a probability before its logarithm is taken


class ViewPrediction(NamedTuple):
    """What the heads say of B x Q queries.

    Attributes:
        source: (B, Q, 25, 9) float logits of the class of each cell.
        action: (B, Q, 4) float logits, the last one of "I don't know".
        end: (B, Q, 25, 9) float logits.
        unknown: (B, Q, 2) float logits of "I don't know" for source and end.
    """

    source: Tensor
    action: Tensor
    end: Tensor
    unknown: Tensor

    def masked_view(self, masked: Tensor) -> Tensor:
        """(B, Q, 25, 9) logits of the view that is masked (B, Q); those of the end where the action is."""
        return torch.where((masked == SOURCE)[..., None, None], self.source, self.end)

    def masked_unknown(self, masked: Tensor) -> Tensor:
        """(B, Q) logits of "I don't know" of the view that is masked (B, Q); those of the end where the action is."""
        return torch.where(masked == SOURCE, self.unknown[..., 0], self.unknown[..., 1])

    def loss(self, target: Tensor, masked: Tensor) -> Tensor:
        """Mean cross-entropy of the masked components, each query with equal weight.

        Args:
            target: (B, Q, 26) int: the cells of the masked view, or the action as the first; then 1 if the right
                answer is "I don't know", 0 if it is not, -1 if neither is right.
            masked: (B, Q) int, which component is masked.
        """
        is_action = masked == ACTION
        view = self.masked_view(masked).float().permute(0, 3, 1, 2)
        cells = F.cross_entropy(view, target[..., :-1].clamp(min=0), reduction="none").sum(2)
        action = F.cross_entropy(
            self.action.float().transpose(1, 2), target[..., 0].clamp(max=N_ACTIONS), reduction="none"
        )
        unknown = self.masked_unknown(masked).float()
        asked = (target[..., -1] >= 0) & ~is_action
        dont_know = F.binary_cross_entropy_with_logits(unknown, target[..., -1].clamp(min=0).float(), reduction="none")
        return torch.where(is_action, action, cells + dont_know * asked).mean()


@dataclass(frozen=True)
class ViewTransformerConfig(ModelConfig):
    """Shape of the model.

    Attributes:
        n_states: classes of a cell.
        heads: attention heads of each block.
        size: width of the rooms in cells, the walls around included.
        cell_dim: width of the embedding of a cell.
        registration: tell the model what the bank, put together as a map, shows where the masked view is.
    """

    n_states: int = N_CLASSES
    n_actions: int = N_ACTIONS
    max_memories: int = 80
    heads: int = 4
    size: int = 9
    cell_dim: int = 64
    registration: bool = True

    def __post_init__(self) -> None:
        if (self.n_states, self.n_actions) != (N_CLASSES, N_ACTIONS):
            raise ValueError(f"views have {N_CLASSES} classes and {N_ACTIONS} actions, got {self}")
        if self.dim % self.heads:
            raise ValueError(f"dim {self.dim} is not a multiple of heads {self.heads}")

    @property
    def relational(self) -> bool:
        """Attention of the blocks has no relation bias: registration takes its place."""
        return False


class ViewTransformer(ESWM):
    """ESWM-T over views. Memories are (B, N, 51) and queries (B, Q, 51) int: 25 cells, the action, 25 cells."""

    config: ViewTransformerConfig
    codec: EgocentricCodec  # type: ignore[assignment]  # where a state is a number for others, it is a view here

    def __init__(self, config: ViewTransformerConfig) -> None:
        super().__init__(config)
        self.codec = EgocentricCodec(config.dim, config.cell_dim)
        self.embed_action = nn.Embedding(N_ACTIONS + 1, config.dim)  # the last row stands for "masked"
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim, bias=False)
        self.action_head = nn.Linear(config.dim, N_ACTIONS + 1)
        self.unknown = nn.Linear(config.dim, 2)
        if config.registration:
            self.registration = Registration(config.size)
            self.read_map = nn.Linear(N_FEATURES, config.dim)
            self.trust = nn.Linear(config.dim, 4)  # in what moved and in what stayed, for source and end
            nn.init.zeros_(self.trust.weight)
            nn.init.constant_(self.trust.bias, 1.0)

    @property
    def depth(self) -> list[Block]:
        """The blocks in the order in which tokens pass them."""
        return [*self.blocks]  # type: ignore[list-item]

    def embed(self, rows: Tensor) -> Tensor:
        """(B, N, dim) tokens of (B, N, 51) transitions: the sum of the three components over sqrt(3)."""
        action = rows[..., N_CELLS]
        x = self.codec.embed(rows[..., :N_CELLS], rows[..., N_CELLS + 1 :])
        return (x + self.embed_action(torch.where(action < 0, N_ACTIONS, action))) / 3**0.5

    def encode(self, memories: Tensor) -> EncodedBank:
        self.check_length(memories)
        x = self.embed(memories)
        padding = (memories == MASKED).all(2)
        mask = F.pad(torch.where(padding, -1e4, 0.0), (1, 0))[:, None, None].to(x.dtype)
        keys_values = []
        for block in self.depth:
            keys_values.append(block.keys_values(x))
            x = block(x, keys_values[-1], mask, None)
        views = self.registration.build_map(memories) if self.config.registration else None
        return EncodedBank(memories, (keys_values, mask, views))

    def predict(self, bank: EncodedBank, query: Tensor) -> ViewPrediction:  # type: ignore[override]
        evidence = self._consult(bank, query) if self.config.registration else None
        *_, x = self._layers(bank, query, evidence)
        x = self.norm(x)
        source, end = self.codec.read_out(x)
        if evidence is not None:
            _, moved, stayed = evidence
            trust = self.trust(x).float()[..., None, None]
            source = source + trust[:, :, 0] * moved + trust[:, :, 1] * stayed
            end = end + trust[:, :, 2] * moved + trust[:, :, 3] * stayed
        return ViewPrediction(source, self.action_head(x), end, self.unknown(x))

    @torch.inference_mode()
    def imagine(  # type: ignore[override]
        self, bank: EncodedBank, source: Tensor, action: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Imagine where moves end.

        Args:
            bank: B encoded banks.
            source: (B, Q, 25) int views.
            action: (B, Q) int actions.

        Returns:
            (B, Q, 25, 9) float probabilities of the class of each cell of the end view, and (B, Q) of "I don't know".

        Raises:
            ValueError: if a cell or an action is outside the vocabulary.
        """
        self.codec.check(source)
        self.check_actions(action)
        query = torch.cat([source, action[..., None], torch.full_like(source, MASKED)], -1)
        prediction = self.predict(bank, query)
        return prediction.end.float().softmax(-1), prediction.unknown[..., 1].float().sigmoid()

    def is_blocked(self, before: Tensor, after: Tensor) -> Tensor:
        """(...) bool, whether a step ahead from a view (..., 25) to another one led nowhere, whatever it shows."""
        if not self.config.registration:
            return (before == after).all(-1)
        return self.registration.is_blocked(before, after)

    def contradicted(self, memories: Tensor, seen: Tensor) -> Tensor:
        """(B, N, 2, 25) bool, the cells of the source and end views of memories (B, N, 51) that a transition (B, 51)
        shows to be outdated; none without registration."""
        if not self.config.registration:
            return torch.zeros(*memories.shape[:2], 2, N_CELLS, dtype=torch.bool)
        return self.registration.contradicted(memories, seen)

    def activations(self, bank: EncodedBank, query: Tensor) -> Tensor:
        evidence = self._consult(bank, query) if self.config.registration else None
        return torch.stack(list(self._layers(bank, query, evidence)))

    def _layers(self, bank: EncodedBank, query: Tensor, evidence: tuple[Tensor, ...] | None) -> Iterator[Tensor]:
        """The query tokens (B, Q, dim) after each block."""
        keys_values, mask, _ = bank.cache
        x = self.embed(query)
        if evidence is not None:
            x = x + self.read_map(evidence[0].to(x.dtype))
        for block, kv in zip(self.depth, keys_values, strict=True):
            x = block(x, kv, mask, None)
            yield x

    def _consult(self, bank: EncodedBank, query: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What map and given views say of the masked component.

        Returns:
            (B, Q, F) features, and twice (B, Q, 25, 9) log-probabilities of the masked view: if the agent moved (the
            map at that place and what the given view shows of it), and if it stayed (the given view itself).
        """
        registration, views = self.registration, bank.cache[2]
        source, action, end = query[..., :N_CELLS], query[..., N_CELLS], query[..., N_CELLS + 1 :]
        no_source = source[..., 0] == MASKED
        given = torch.where(no_source[..., None], end, source)
        acted = action.clamp(min=0)
        motion = torch.where(no_source, INVERSE.to(query.device)[acted], motion_of(given, acted))
        p = registration.poses(registration.match(given, views))
        there = (registration.move(p, motion).to(views.dtype) @ views).float().unflatten(2, (N_CELLS, N_KINDS))
        carried = registration.carry_over(given, motion)
        shown = kinds_of(carried)
        known = shown + there * (shown.sum(-1, keepdim=True) == 0)
        moved = F.pad(known + FLOOR, (1, 0), value=FLOOR).log()
        stayed = (F.one_hot(given, N_CLASSES).float() + FLOOR).log()
        may_stay = (no_source & (action == FORWARD) & (given[..., IN_FRONT] == WALL)).float()[..., None, None]
        # Which action leads from view to view: what the views share, and how near the map has them.
        both = ~no_source & (end[..., 0] != MASKED)
        fits = p.new_zeros(*both.shape, 2 * len(COMPARED))
        if both.any():  # never where an agent imagines the ends of moves
            fits = self._compare(p, views, given, torch.where(both[..., None], end, given)) * both[..., None]
        features = torch.cat(
            [
                known.flatten(2), (known + FLOOR).log().flatten(2) / 7, kinds_of(given).flatten(2),
                fits, p.sum(2, keepdim=True), known.sum((2, 3))[..., None] / N_CELLS,
            ],
            2,
        )  # fmt: skip
        return features, moved, stayed * may_stay

    def _compare(self, p: Tensor, views: Tensor, given: Tensor, end: Tensor) -> Tensor:
        """(B, Q, 8) how well two views fit each motion, first by what they share, then by the map."""
        registration = self.registration
        p_end = registration.poses(registration.match(end, views))
        by_view = [registration.fit(given, end, motion) / 20 for motion in COMPARED]
        near = [(registration.move(p, torch.full_like(given[..., 0], m)) * p_end).sum(2) for m in COMPARED]
        return torch.stack(by_view + [(n + FLOOR).log() / 7 for n in near], 2)
