"""ESWM-T for egocentric views (paper: "MiniGrid" in "Training Details"): states are views of 25 cells.

The paper's transformer embeds and predicts views. Ours reads the bank by cross attention in the blocks of `Block` and,
with `registration`, is also told what the bank, put together as a map, shows at the place of the masked view.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.rooms.grid import FORWARD, IN_FRONT, LEFT, N_ACTIONS, N_CELLS, N_CLASSES, RIGHT, SIZE, WALL
from eswm_gym.rooms.transitions import MASKED
from eswm_gym.world_model.blocks import Block, KeysValues, Reads, padding_mask, read_bank, read_queries
from eswm_gym.world_model.codecs import EgocentricCodec
from eswm_gym.world_model.eswm import ESWM, EncodedBank, ModelConfig
from eswm_gym.world_model.predictions import ViewPrediction
from eswm_gym.world_model.registration import INVERSE, N_KINDS, STAY, Registration, kinds_of, motion_of, split

COMPARED = (LEFT, RIGHT, FORWARD, STAY)  # motions that an action can be
N_FEATURES = 3 * N_CELLS * N_KINDS + 2 * len(COMPARED) + 2
FLOOR = 1e-3  # under a probability before its logarithm is taken


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
    size: int = SIZE
    cell_dim: int = 64
    registration: bool = True

    def __post_init__(self) -> None:
        if (self.n_states, self.n_actions) != (N_CLASSES, N_ACTIONS):
            raise ValueError(f"views have {N_CLASSES} classes and {N_ACTIONS} actions, got {self}")
        if self.dim % self.heads:
            raise ValueError(f"dim {self.dim} is not a multiple of heads {self.heads}")


class Cache(NamedTuple):
    """What the model keeps of B banks.

    Attributes:
        keys_values: of the bank's tokens in each block.
        mask: (B, 1, 1, 1 + N) over padding.
        views: (B, P, 200) the view at each pose of the bank's map (see `Registration.build_map`); None without
            registration.
    """

    keys_values: list[KeysValues]
    mask: Tensor
    views: Tensor | None


class Evidence(NamedTuple):
    """What the map and the given view say of the masked components of B x Q queries.

    Attributes:
        features: (B, Q, F) for the query's token.
        moved: (B, Q, 25, 9) log-probabilities of the masked view if the agent moved: what the map shows at that place,
            and what the given view shows of it.
        stayed: (B, Q, 25, 9) the same if the agent stayed, which is the given view itself.
    """

    features: Tensor
    moved: Tensor
    stayed: Tensor


class ViewTransformer(ESWM):
    """ESWM-T over views. Memories are (B, N, 51) and queries (B, Q, 51) int: 25 cells, the action, 25 cells."""

    config: ViewTransformerConfig
    codec: EgocentricCodec

    def __init__(self, config: ViewTransformerConfig) -> None:
        super().__init__(config)
        self.codec = EgocentricCodec(config.dim, config.cell_dim)
        self.embed_action = nn.Embedding(config.n_actions + 1, config.dim)  # the last row stands for "masked"
        self.blocks = nn.ModuleList(Block(config.dim, config.heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim, bias=False)
        self.action_head = nn.Linear(config.dim, config.n_actions + 1)
        self.unknown = nn.Linear(config.dim, 2)
        if config.registration:
            self.registration = Registration(config.size)
            self.read_map = nn.Linear(N_FEATURES, config.dim)
            self.trust = nn.Linear(config.dim, 4)  # of source and end, weights of the evidence moved and stayed
            nn.init.zeros_(self.trust.weight)
            nn.init.constant_(self.trust.bias, 1.0)

    def embed(self, rows: Tensor) -> Tensor:
        """(B, N, dim) tokens of (B, N, 51) transitions: the sum of the three components over sqrt(3)."""
        source, action, end = split(rows)
        action = torch.where(action < 0, self.config.n_actions, action)
        return (self.codec.embed(source, end) + self.embed_action(action)) / 3**0.5

    def encode(self, memories: Tensor) -> EncodedBank:
        self.check_length(memories)
        x = self.embed(memories)
        mask = padding_mask((memories == MASKED).all(2), x.dtype)
        keys_values, _ = read_bank(self.blocks, x, Reads(mask))
        views = self.registration.build_map(memories) if self.config.registration else None
        return EncodedBank(memories, Cache(keys_values, mask, views))

    def layers(self, bank: EncodedBank, query: Tensor) -> Iterator[Tensor]:
        return self._layers(bank, query, self._consult(bank, query))

    def predict(self, bank: EncodedBank, query: Tensor) -> ViewPrediction:
        evidence = self._consult(bank, query)
        *_, x = self._layers(bank, query, evidence)
        x = self.norm(x)
        source, end = self.codec.read_out(x)
        if evidence is not None:
            trust = self.trust(x).float()[..., None, None]  # (B, Q, 4, 1, 1)
            source = source + trust[:, :, 0] * evidence.moved + trust[:, :, 1] * evidence.stayed
            end = end + trust[:, :, 2] * evidence.moved + trust[:, :, 3] * evidence.stayed
        return ViewPrediction(source, self.action_head(x), end, self.unknown(x))

    def is_blocked(self, before: Tensor, after: Tensor) -> Tensor:
        """(...) bool, whether a step ahead led nowhere, by the views (..., 25) before and after it: something that the
        view before does not show may have been in the way."""
        if not self.config.registration:
            return (before == after).all(-1)
        return self.registration.is_blocked(before, after)

    def contradicted(self, memories: Tensor, seen: Tensor) -> Tensor:
        """(B, N, 2, 25) bool, which cells of the source and end views of memories (B, N, 51) a transition (B, 51)
        contradicts; none without registration."""
        if not self.config.registration:
            return memories.new_zeros(*memories.shape[:2], 2, N_CELLS, dtype=torch.bool)
        return self.registration.contradicted(memories, seen)

    def _layers(self, bank: EncodedBank[Cache], query: Tensor, evidence: Evidence | None) -> Iterator[Tensor]:
        """The query tokens (B, Q, dim) after each block."""
        x = self.embed(query)
        if evidence is not None:
            x = x + self.read_map(evidence.features.to(x.dtype))
        return read_queries(self.blocks, bank.cache.keys_values, x, Reads(bank.cache.mask))

    def _consult(self, bank: EncodedBank[Cache], query: Tensor) -> Evidence | None:
        """What the map and the given view say of the masked component; None without registration."""
        views = bank.cache.views
        if views is None:
            return None
        registration = self.registration
        source, action, end = split(query)
        no_source = source[..., 0] == MASKED
        given = torch.where(no_source[..., None], end, source)
        acted = action.clamp(min=0)
        motion = torch.where(no_source, INVERSE.to(query.device)[acted], motion_of(given, acted))
        p = registration.poses(registration.match(given, views))  # (B, Q, P)
        there = (registration.move(p, motion).to(views.dtype) @ views).float()  # (B, Q, 200)
        there = there.unflatten(2, (N_CELLS, N_KINDS))  # (B, Q, 25, 8)
        carried = registration.carry_over(given, motion)
        shown = kinds_of(carried)  # (B, Q, 25, 8)
        known = shown + there * (shown.sum(-1, keepdim=True) == 0)
        moved = F.pad(known + FLOOR, (1, 0), value=FLOOR).log()  # (B, Q, 25, 9)
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
        return Evidence(features, moved, stayed * may_stay)

    def _compare(self, p: Tensor, views: Tensor, given: Tensor, end: Tensor) -> Tensor:
        """(B, Q, 8) how well two views fit each motion, first by what they share, then by the map."""
        registration = self.registration
        p_end = registration.poses(registration.match(end, views))
        by_view = [registration.fit(given, end, motion) / 20 for motion in COMPARED]
        near = [(registration.move(p, torch.full_like(given[..., 0], m)) * p_end).sum(2) for m in COMPARED]
        return torch.stack(by_view + [(n + FLOOR).log() / 7 for n in near], 2)
