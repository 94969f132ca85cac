"""ESWM over egocentric views by overlap (paper: "MiniGrid" in "Training Details", for what views are).

The poses of memories and of given views are found by `Localization`. A masked view is read from what all memories show
at its pose and from the given view by a network, which learns how far to trust each, what light reaches, what is an
error and what is not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.rooms.grid import (
    FORWARD,
    HERE,
    LEFT,
    LOOK,
    N_ACTIONS,
    N_CELLS,
    N_CLASSES,
    N_HEADINGS,
    RIGHT,
    SIZE,
    UNSEEN,
    VIEW,
    WALL,
)
from eswm_gym.rooms.transitions import MASKED
from eswm_gym.world_model.codecs import ViewCodec
from eswm_gym.world_model.eswm import EncodedBank, ModelConfig
from eswm_gym.world_model.localization import GUESSES, Localization, Located
from eswm_gym.world_model.overlap import INVERSE, N_KINDS, OWN, STAY, classes_shown, kinds, relative_poses, split
from eswm_gym.world_model.predictions import Imagined, ViewPrediction
from eswm_gym.world_model.view_model import ViewModel

COMPARED = (LEFT, RIGHT, FORWARD, STAY)  # motions that an action can be
MASKED_ACTION = LOOK + 1
N_FEATURES = 4 * N_CELLS * (N_KINDS + 1) + 2 * len(COMPARED) + GUESSES + MASKED_ACTION + 1
DOUBTS = 6  # the least certain cells, and those that nothing showed, tell whether a view is known
DOUBT_DIM = 64
FREQUENCIES = (1, 2, 3)  # half turns of the pose code from one end of the frame to the other


@dataclass(frozen=True)
class OverlapConfig(ModelConfig):
    """Shape of the model.

    Attributes:
        n_states: classes of a cell.
        size: width of the rooms in cells, the walls around included; no weight depends on it.
    """

    n_states: int = N_CLASSES
    n_actions: int = N_ACTIONS
    dim: int = 192
    layers: int = 3
    max_memories: int = 128
    size: int = SIZE

    def __post_init__(self) -> None:
        if (self.n_states, self.n_actions) != (N_CLASSES, N_ACTIONS):
            raise ValueError(f"views have {N_CLASSES} classes and {N_ACTIONS} actions, got {self}")


class Evidence(NamedTuple):
    """What memories and given views say of B x Q queries.

    Attributes:
        pose: rows and probabilities (B, Q, G) of the poses where the given view may be.
        features: (B, Q, F) for the query's token.
        moved: (B, Q, 25, 9) what the memories show where the agent was or will be if the action moves it.
        stayed: the same where it is.
        carried: (B, Q, 25, 9) what the given view shows of the masked one if the action moves the agent.
        given: the same if it does not: the given view.
        may_stay: (B, Q) bool, whether the action may leave the agent where it is.
    """

    pose: tuple[Tensor, Tensor]
    features: Tensor
    moved: Tensor
    stayed: Tensor
    carried: Tensor
    given: Tensor
    may_stay: Tensor


class MLP(nn.Module):
    """A pre-norm residual layer."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, bias=False)
        self.up = nn.Linear(dim, 4 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)
        nn.init.zeros_(self.down.weight)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Light(nn.Module):
    """Learns what light reaches, row by row from the agent on, with the same weights for each row."""

    def __init__(self, dim: int = 32) -> None:
        super().__init__()
        self.begin = nn.Parameter(torch.zeros(dim))
        self.step = nn.Sequential(nn.Linear(dim + 2 * VIEW, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))
        self.dark = nn.Linear(dim, VIEW)
        nn.init.zeros_(self.dark.weight)
        nn.init.zeros_(self.dark.bias)

    def forward(self, shown: Tensor) -> Tensor:
        """(B, Q, 25) what to add to the logits of UNSEEN, from how much is shown (B, Q, 25, 9) of each kind."""
        shown = shown.clamp(min=0)
        n = shown.sum(-1)
        cell = torch.stack([shown[..., WALL - 1] / (n + 0.5), n / (n + 2)], -1)  # (B, Q, 25, 2)
        rows = cell.unflatten(2, (VIEW, VIEW)).transpose(2, 3).flatten(3)  # (B, Q, 5, 10), the farthest row first
        light, dark = self.begin.expand(*shown.shape[:2], -1), list[Tensor]()
        for row in rows.flip(2).unbind(2):
            light = self.step(torch.cat([light, row], 2))
            dark.insert(0, self.dark(light))
        return torch.stack(dark, 3).flatten(2)


class OverlapModel(ViewModel):
    """ESWM over views by overlap; see the module."""

    config: OverlapConfig

    def __init__(self, config: OverlapConfig) -> None:
        super().__init__(config)
        self.codec = ViewCodec()
        self.localization = Localization(config.size)
        self.read = nn.Linear(N_FEATURES, config.dim)
        self.blocks = nn.ModuleList(MLP(config.dim) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim, bias=False)
        self.cells = nn.Linear(config.dim, N_CELLS * N_CLASSES)
        self.action_head = nn.Linear(config.dim, N_ACTIONS + 1)
        self.unknown = nn.Sequential(nn.Linear(config.dim + 2 * DOUBTS, DOUBT_DIM), nn.GELU(), nn.Linear(DOUBT_DIM, 1))
        self.light = Light()
        self.trust = nn.Linear(config.dim, 3)  # of memories, of the given view, and that the agent moved
        for head in (self.cells, self.trust):
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)

    def for_rooms(self, size: int, max_memories: int) -> OverlapModel:
        """A model with the same weights for rooms of another width, and longer banks."""
        other = OverlapModel(replace(self.config, size=size, max_memories=max_memories)).to(self.device).eval()
        other.load_state_dict(self.state_dict())
        return other

    def encode(self, memories: Tensor) -> EncodedBank[Located]:
        self.check_length(memories)
        held = (memories[..., 0] >= 0).any(0)  # rows of padding cost as much as others
        return EncodedBank(memories, self.localization(*split(memories[:, held])))

    def layers(self, bank: EncodedBank[Located], query: Tensor) -> Iterator[Tensor]:
        """The code (B, Q, dim) of the pose of the given view, filled up with zeros, and the tokens after each block."""
        evidence = self._consult(bank.cache, query)
        code = self._pose_code(*evidence.pose)
        yield F.pad(code, (0, self.config.dim - code.shape[-1]))
        yield from self._tokens(evidence)

    def predict(self, bank: EncodedBank[Located], query: Tensor) -> ViewPrediction:
        return self._read_out(self._consult(bank.cache, query))[0]

    @torch.inference_mode()
    def follow(self, walk: Tensor) -> EncodedBank[Located]:
        """Read B walks (B, N, 2 C + 1), each row of which begins where the one before it ended, as a bank.

        Views may have any odd side from 5 on, and a view that is not known is -1; no row is padding. Poses are composed
        along the walk, so that places may look alike: ask about them by pose, with `imagine_from`.
        """
        self.check_length(walk)
        return EncodedBank(walk, self.localization.follow(*split(walk)))

    @torch.inference_mode()
    def imagine_from(
        self, bank: EncodedBank[Located], pose: Tensor, view: Tensor, action: Tensor
    ) -> tuple[Imagined, Tensor]:
        """Imagine where moves from known poses end.

        Args:
            bank: B walks, from `follow`.
            pose: (B, Q) int, rows of poses in the frames of the walks.
            view: (B, Q, C) int, what one sees there, UNSEEN where that is not known.
            action: (B, Q) int.

        Returns:
            What one sees there of the nearest 5 x 5 cells, and (B, Q) int, the rows of the poses where the moves end.
        """
        query = torch.cat([view, action[..., None], torch.full_like(view, MASKED)], 2)
        here = pose[..., None], torch.ones_like(pose[..., None], dtype=torch.float)
        prediction, moved = self._read_out(self._consult(bank.cache, query, here))
        end = torch.where(moved > 0.5, self.localization.frame.moved[action, pose], pose)
        return prediction.imagined(), end

    def _read_out(self, evidence: Evidence) -> tuple[ViewPrediction, Tensor]:
        """The prediction, and (B, Q) the probability that the action moves the agent."""
        *_, x = self._tokens(evidence)
        x = self.norm(x)
        memories, view, moved = self.trust(x)[..., None, None].unbind(2)  # (B, Q, 1, 1) each
        moved = torch.where(evidence.may_stay[..., None, None], moved.sigmoid(), 1.0)
        shown = moved * (memories * evidence.moved + view * evidence.carried)
        shown = shown + (1 - moved) * (memories * evidence.stayed + view * evidence.given)
        # The first class is UNSEEN, which is no kind; the last kind is OWN, which is no class.
        cells = self.cells(x).unflatten(-1, (N_CELLS, N_CLASSES))
        cells = cells + torch.cat([self.light(shown)[..., None], shown[..., :-1]], -1)
        p = cells.detach().softmax(-1)
        votes = moved * (evidence.moved + evidence.carried) + (1 - moved) * (evidence.stayed + evidence.given)
        n, lit = votes.detach().sum(-1), 1 - p[..., UNSEEN]  # (B, Q, 25) each
        doubts = [doubt.topk(DOUBTS).values for doubt in (torch.special.entr(p).sum(-1), lit / (1 + 4 * n))]
        unknown = self.unknown(torch.cat([x, *doubts], 2))
        of_class = n - votes.detach()[..., OWN - 1]  # an agent does not see what it stands on
        unknown_yet = lit * (-4 * of_class).exp()
        new = unknown_yet.sum(-1) - unknown_yet[..., HERE]
        prediction = ViewPrediction(cells, self.action_head(x), cells, unknown.expand(-1, -1, 2), new)
        return prediction, moved[..., 0, 0]

    @torch.inference_mode()
    def is_blocked(self, before: Tensor, after: Tensor) -> Tensor:
        return self.localization.is_blocked(before, after)

    @torch.inference_mode()
    def contradicted(self, memories: Tensor, seen: Tensor) -> Tensor:
        located = self.localization(*split(torch.cat([memories, seen[:, None]], 1)))
        return torch.stack(self.localization.contradicted(located, -1).chunk(2, 1), 2)[:, :-1]

    def _tokens(self, evidence: Evidence) -> Iterator[Tensor]:
        x = self.read(evidence.features)
        for block in self.blocks:
            x = block(x)
            yield x

    def _consult(self, bank: Located, query: Tensor, here: tuple[Tensor, Tensor] | None = None) -> Evidence:
        """Ask the memories; `here` are the poses of the given views and their probabilities, where they are known."""
        find = self.localization
        relative = relative_poses(query.device, query.shape[2] // 2)
        source, action, end = split(query)
        no_source, no_end = source[..., 0] == MASKED, end[..., 0] == MASKED
        no_action = ~no_source & ~no_end
        given = classes_shown(torch.where(no_source[..., None], end, source))
        acted = action.clamp(min=0)
        motion = torch.where(no_source, INVERSE.to(query.device)[acted], acted)
        row, p = find.locate(bank, given) if here is None else here
        moved = find.votes(bank, find.frame.moved[motion[..., None], row], p)
        stayed = find.votes(bank, row, p)
        carried = F.pad(given, (0, 1), value=UNSEEN).gather(2, relative.near_shift[relative.motion[motion]])
        fits = p.new_zeros(*no_action.shape, 2 * len(COMPARED))
        if no_action.any():  # never where an agent imagines the ends of moves
            fits = self._compare(bank, given, classes_shown(end), (row, p)) * no_action[..., None]
        given = given[..., relative.near]
        asked = F.one_hot(torch.where(no_action, MASKED_ACTION, acted), MASKED_ACTION + 1)
        features = [_shares(moved), _shares(stayed), F.one_hot(carried, N_CLASSES + 1), F.one_hot(given, N_CLASSES + 1)]
        features = [part.flatten(2) for part in features]
        features += [fits, F.pad(p, (0, GUESSES - p.shape[2])), asked * torch.where(no_source, -1, 1)[..., None]]
        may_stay = (acted == FORWARD) & ~no_action
        return Evidence((row, p), torch.cat(features, 2), moved, stayed, kinds(carried), kinds(given), may_stay)

    def _compare(self, bank: Located, before: Tensor, after: Tensor, here: tuple[Tensor, Tensor]) -> Tensor:
        """(B, Q, 8) how well two views fit before and after each motion, by what they share and by their poses."""
        find, (row, p) = self.localization, here
        end_row, end_p = find.locate(bank, after)
        shared = [find.fit(before, after, bank.rarity, motion) / 20 for motion in COMPARED]
        both = p[..., :, None] * end_p[..., None, :]  # (B, Q, G, G)
        same = [find.frame.moved[motion][row][..., :, None] == end_row[..., None, :] for motion in COMPARED]
        return torch.stack(shared + [(both * where).sum((2, 3)) for where in same], 2)

    def _pose_code(self, row: Tensor, p: Tensor) -> Tensor:
        """(B, Q, 16) where in the frame of its bank a view is: sines and cosines of its position, and its heading."""
        at, side = self.localization.frame.pose[row], self.localization.frame.side
        angle = at[..., :2, None] * torch.tensor(FREQUENCIES, device=row.device) * (math.pi / side)
        code = torch.cat([angle.sin().flatten(-2), angle.cos().flatten(-2), F.one_hot(at[..., 2], N_HEADINGS)], -1)
        return (code * p[..., None]).sum(-2)


def _shares(votes: Tensor) -> Tensor:
    """(..., 10) shares of the kinds among votes (..., 9), and how many votes there are."""
    n = votes.sum(-1, keepdim=True)
    return torch.cat([votes / (n + 0.5), n / (n + 2)], -1)
