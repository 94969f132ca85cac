"""Registration of egocentric views: how they lie to each other, and the map that they form together.

Transitions between symbols touch where symbols are equal, transitions between views where views overlap. Two views show
neighbouring poses if one of them, turned and moved, agrees with the other where they overlap. The map begins with one
memory. The others are placed around it, a few in each iteration, by attention over all poses of the map; a view is then
looked up by the same attention. How much agreement and contradiction count is learned. MapNet (Henriques and Vedaldi,
CVPR 2018) also writes to and reads from a map by attention over poses. It knows the order of the views and the motion
between them; ours knows only a set of transitions.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.rooms.grid import (
    FORWARD,
    HERE,
    IN_FRONT,
    N_CELLS,
    N_CLASSES,
    OFFSETS,
    UNSEEN,
    WALL,
    view_positions,
)
from eswm_gym.world_model.overlap import INVERSE, OWN, STAY, classes_shown, frame, kinds, relative_poses, split

N_KINDS = N_CLASSES - 1  # what a map cell can be: all but UNSEEN
CPU = torch.device("cpu")
ITERATIONS = 6
NOWHERE = 8.0  # evidence that a view is nowhere on the map, at first: about the log of the number of poses
CERTAIN = 0.9  # a memory is placed where it is with more than this probability
OFF_THE_MAP = -1e4  # evidence


class Geometry:
    """Fixed tables of a map that is large enough for a room, no matter where in the room the map begins.

    Args:
        size: width of the room, its walls included.

    Attributes:
        n_cells, n_poses: of the map.
        origin: the pose of the memory that the map begins with.
        cells: (P, 25) the map cell of each cell of the view at each pose.
        moved: (5, P) the pose to which each motion leads; P off the map.
        overlap: (5, 25) the cell of a view where each cell of the view after a motion was; 25 outside.
    """

    def __init__(self, size: int) -> None:
        shape, relative = frame(size, CPU), relative_poses(CPU, N_CELLS)
        half = shape.reach + int(OFFSETS.max())
        side = 2 * half + 1
        self.n_cells, self.n_poses = side * side, shape.n_poses
        position = view_positions(shape.pose[:-1].numpy()) + half
        self.cells = torch.from_numpy(position[..., 1] * side + position[..., 0])
        self.origin, self.moved = shape.origin, shape.moved[:, :-1]
        self.overlap = relative.shift[relative.motion]


@lru_cache
def geometry(size: int) -> Geometry:
    return Geometry(size)


def kinds_of(view: Tensor) -> Tensor:
    """(..., 25, 8) float one-hot of the kinds of the cells (..., 25) of views; zeros where a view does not show it."""
    return kinds(classes_shown(view))[..., :N_KINDS]


def motion_of(view: Tensor, action: Tensor) -> Tensor:
    """(...) the motion that an action (...) leads to at a view (..., 25): none for a step into a wall."""
    blocked = (view[..., IN_FRONT] == WALL) & (action == FORWARD)
    return torch.where(blocked, STAY, action)


def _kinds_of_ends(memories: Tensor) -> Tensor:
    """(B, N, 2, 25, 8) what source and end views of (B, N, 51) memories show; see `kinds_of`."""
    source, _, end = split(memories)
    return torch.stack([kinds_of(source), kinds_of(end)], 2)


class Registration(nn.Module):
    """Places views on a map; see the module.

    Args:
        size: width of the room, its walls included.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        # How much a cell of each class in a view is evidence for a map cell of each kind.
        evidence = torch.full((N_CLASSES + 1, N_KINDS), -4.0)
        evidence[torch.arange(1, N_CLASSES), torch.arange(N_KINDS)] = 2.0
        evidence[WALL, WALL - 1] = 1.0
        evidence[UNSEEN] = 0.0
        evidence[OWN, WALL:] = 0.0
        self.evidence = nn.Parameter(evidence)
        self.nowhere = nn.Parameter(torch.tensor(NOWHERE))

    @property
    def geometry(self) -> Geometry:
        return geometry(self.size)

    @torch.no_grad()
    def build_map(self, memories: Tensor) -> Tensor:
        """Place the memories of B banks (B, N, 51) on a map each.

        Returns:
            (B, P, 200) float, what the view at each pose of the map shows: for each of 25 cells 8 numbers from 0 to 1.
        """
        return self._views(self._paint(memories, self.place(memories)))

    @torch.no_grad()
    def place(self, memories: Tensor) -> Tensor:
        """(B, N) the pose of each memory's source on the map of its bank, P where that is not known.

        The map begins with the memory that shows most floor; if several show as much, with the first of them, and only
        then the map depends on the order of the bank. Each iteration places the memories whose pose is nearly certain,
        and the next one those that overlap with what was placed.
        """
        shape = self.geometry
        source, action, end = split(memories)
        held = action >= 0  # (B, N), not padding
        if not memories.shape[1]:
            return action
        room = torch.arange(len(memories), device=memories.device)
        first = _kinds_of_ends(memories)[..., WALL:].sum((2, 3, 4)).argmax(1)  # (B,)
        pose = torch.full_like(action, shape.n_poses)
        pose[room, first] = shape.origin
        pose[~held] = shape.n_poses
        after = shape.moved.to(memories.device)[motion_of(source, action.clamp(min=0))]  # (B, N, P) pose of the end
        for _ in range(ITERATIONS):
            views = self._views(self._paint(memories, pose))
            at_end = F.pad(self.match(end, views), (0, 1), value=OFF_THE_MAP)  # (B, N, P + 1)
            certainty, best = self.poses(self.match(source, views) + at_end.gather(2, after)).max(2)
            before, pose = pose, torch.where((certainty > CERTAIN) & held, best, shape.n_poses)
            pose[room, first] = torch.where(held[room, first], shape.origin, shape.n_poses)
            if (pose == before).all():
                break
        return pose

    @torch.no_grad()
    def contradicted(self, memories: Tensor, seen: Tensor) -> Tensor:
        """(B, N, 2, 25) bool, which cells of memories the end of a transition (B, 51) contradicts.

        All False where the transition or the memory cannot be placed.
        """
        both = torch.cat([memories, seen[:, None]], 1)
        cells, kinds = self._cells(both, self.place(both)), _kinds_of_ends(both)  # (B, N + 1, 2, 25) and (..., 8)
        now = self._count(cells[:, -1, 1], kinds[:, -1, 1])  # (B, cells + 1, 8)
        cells, kinds = cells[:, :-1], kinds[:, :-1]
        shown = now.gather(1, cells.flatten(1)[..., None].expand(-1, -1, N_KINDS)).view(kinds.shape)
        return (shown.sum(-1) > 0) & (kinds.sum(-1) > 0) & ((shown * kinds).sum(-1) == 0)

    @torch.no_grad()
    def is_blocked(self, before: Tensor, after: Tensor) -> Tensor:
        """(...) bool, whether the view after a step ahead (..., 25) fits the same place better than the one ahead.

        So a step was blocked by something that the view before does not show.
        """
        return self.fit(before, after, STAY) > self.fit(before, after, FORWARD)

    def fit(self, before: Tensor, after: Tensor, motion: int) -> Tensor:
        """(...) how well the view after a motion (..., 25) fits the one before it where they overlap."""
        expected = kinds_of(self.carry_over(before, torch.full_like(before[..., 0], motion)))
        shape = (-1, 1, N_CELLS)
        return self.match(after.reshape(shape), expected.reshape(-1, 1, N_CELLS * N_KINDS)).view(before.shape[:-1])

    def _cells(self, memories: Tensor, pose: Tensor) -> Tensor:
        """(B, N, 2, 25) the map cells of source and end views, from the poses (B, N) of the source."""
        shape = self.geometry
        source, action, _ = split(memories)
        moved = F.pad(shape.moved, (0, 1), value=shape.n_poses).to(pose.device)
        end_pose = moved[motion_of(source, action.clamp(min=0)), pose]
        cells = F.pad(shape.cells, (0, 0, 0, 1), value=shape.n_cells).to(pose.device)  # also of the pose off the map
        return cells[torch.stack([pose, end_pose], 2)]

    def _count(self, cells: Tensor, kinds: Tensor) -> Tensor:
        """(B, cells + 1, 8) how often each map cell is shown as each kind; the last row stands for no cell and is 0."""
        votes = kinds.new_zeros(len(kinds), self.geometry.n_cells + 1, N_KINDS)
        where = cells.flatten(1)[..., None].expand(-1, -1, N_KINDS)
        votes.scatter_add_(1, where, kinds.flatten(1, -2))
        votes[:, -1] = 0
        return votes

    def _paint(self, memories: Tensor, pose: Tensor) -> Tensor:
        """(B, cells + 1, 8) of each map cell the share of each kind among what the placed memories show there."""
        votes = self._count(self._cells(memories, pose), _kinds_of_ends(memories))
        return votes / votes.sum(2, keepdim=True).clamp(min=1)

    def _views(self, painted: Tensor) -> Tensor:
        """(B, P, 200) the views at each pose of painted maps."""
        return painted[:, self.geometry.cells.to(painted.device)].flatten(2)

    def match(self, view: Tensor, views: Tensor) -> Tensor:
        """(B, T, P) evidence that each of the views (B, T, 25) is the one at each pose of the maps (B, P, 200)."""
        own = torch.zeros_like(view)
        own[..., HERE] = OWN
        evidence = F.embedding(torch.where(own > 0, own, view.clamp(min=UNSEEN)), self.evidence)  # (B, T, 25, 8)
        return (evidence.flatten(2).to(views.dtype) @ views.mT).float()

    def poses(self, logits: Tensor) -> Tensor:
        """(B, T, P) probabilities of poses from evidence; the rest to 1 is the probability that the view is nowhere."""
        nowhere = self.nowhere.expand(*logits.shape[:2], 1)
        return torch.cat([logits, nowhere], 2).softmax(2)[..., :-1]

    def move(self, p: Tensor, motion: Tensor) -> Tensor:
        """(B, Q, P) probabilities of poses after motions (B, Q)."""
        back = INVERSE.to(p.device)[motion]
        return F.pad(p, (0, 1)).gather(2, self.geometry.moved.to(p.device)[back])

    def carry_over(self, view: Tensor, motion: Tensor) -> Tensor:
        """(B, Q, 25) the view after a motion, as far as the view (B, Q, 25) before it shows it; UNSEEN elsewhere."""
        before = view.clone()
        before[..., HERE] = UNSEEN
        return F.pad(before, (0, 1)).gather(-1, self.geometry.overlap.to(view.device)[motion])
