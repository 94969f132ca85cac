"""How views overlap: the fixed tables, and the evidence that two views give about how they lie to each other.

What equality is to symbols, overlap is to views. The relative pose of two views is known where one, moved and turned,
agrees with the other in the cells that both show.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from eswm_gym.rooms.grid import (
    AHEAD,
    FORWARD,
    LEFT,
    N_CLASSES,
    N_HEADINGS,
    RIGHT,
    UNSEEN,
    moved,
    own_cell,
    view_positions,
)
from eswm_gym.rooms.transitions import parts

OWN = N_CLASSES  # class of the agent's own cell: floor, but of a kind that the view does not show
N_KINDS = N_CLASSES  # what a view can show of a cell: every class but UNSEEN, and OWN
BACK, STAY = 4, 3  # motions besides the three actions: a step back, and none
N_MOTIONS = 5
INVERSE = torch.tensor([RIGHT, LEFT, BACK, STAY, FORWARD])  # of the motions
LEAST_SHARED = 4


class RelativePoses:
    """Tables of the relative poses (x, y, heading) at which two views share cells.

    Args:
        device: where the tables are.
        n_cells: C, of a view.

    Attributes:
        pose: (R, 3) int, first the K at which views are compared, then the others.
        n_compared: K.
        shift: (R + 1, C) int, the cell of the one view where each cell of the other, at this pose, lies; C outside.
        index: (S, S, 4) int, the row of a pose by (y + S // 2, x + S // 2, heading); R where no cell is shared.
        motion: (5,) int, the row of each motion.
        near: (25,) int, the cells of a view that a view of 5 x 5 cells shows.
        near_shift: (R + 1, 25) int, `shift` of these cells.
    """

    def __init__(self, device: torch.device, n_cells: int) -> None:
        view = math.isqrt(n_cells)
        reach = 2 * (view - 1)
        side = 2 * reach + 1
        span = np.arange(-reach, reach + 1)
        y, x, heading = (a.ravel() for a in np.meshgrid(span, span, np.arange(N_HEADINGS), indexing="ij"))
        pose = np.stack([x, y, heading], 1)
        origin = np.zeros((1, 3), int)
        first = {tuple(p): i for i, p in enumerate(view_positions(origin, view)[0].tolist())}
        shift = np.array([[first.get(tuple(p), n_cells) for p in at] for at in view_positions(pose, view).tolist()])
        shared = (shift < n_cells).sum(1)
        self.near = torch.tensor([first[tuple(p)] for p in view_positions(origin)[0].tolist()], device=device)
        order = np.argsort(-shared, kind="stable")[: int((shared > 0).sum())]
        self.pose, self.n_compared = torch.from_numpy(pose[order]).to(device), int((shared >= LEAST_SHARED).sum())
        self.shift = torch.from_numpy(np.concatenate([shift[order], np.full((1, n_cells), n_cells)])).to(device)
        self.near_shift = self.shift[:, self.near]
        index = np.full(side * side * N_HEADINGS, len(order))
        index[order] = np.arange(len(order))
        self.reach, self.index = reach, torch.from_numpy(index.reshape(side, side, N_HEADINGS)).to(device)
        at = [moved_by((0, 0, 0), motion) for motion in range(N_MOTIONS)]
        self.motion = torch.tensor([int(self.index[y + reach, x + reach, h]) for x, y, h in at], device=device)
        self.ahead = torch.from_numpy(AHEAD).to(device)

    def between(self, one: Tensor, other: Tensor) -> Tensor:
        """(...) the rows of the poses (..., 3) `other` as seen from the poses (..., 3) `one`."""
        delta = other[..., :2] - one[..., :2]
        ahead = self.ahead[one[..., 2]]
        right = self.ahead[(one[..., 2] + 1) % N_HEADINGS]
        x, y = (delta * ahead).sum(-1), (delta * right).sum(-1)
        inside = (x.abs() <= self.reach) & (y.abs() <= self.reach)
        x, y = (a.clamp(-self.reach, self.reach) + self.reach for a in (x, y))
        row = self.index[y, x, (other[..., 2] - one[..., 2]) % N_HEADINGS]
        return torch.where(inside, row, len(self.pose))


class Frame:
    """A frame of reference: the poses at which the views of a room can lie, no matter which view is its origin.

    Args:
        size: width of the room, its walls included.
        device: where the tables are.

    Attributes:
        pose: (P + 1, 3) int (x, y, heading); the last row is far away and stands for "nowhere".
        origin: the row of the pose (0, 0, 0).
        moved: (5, P + 1) the row to which each motion leads.
    """

    def __init__(self, size: int, device: torch.device) -> None:
        self.reach = size - 3
        self.side = 2 * self.reach + 1
        span = np.arange(-self.reach, self.reach + 1)
        y, x, heading = (a.ravel() for a in np.meshgrid(span, span, np.arange(N_HEADINGS), indexing="ij"))
        pose = np.stack([x, y, heading], 1)
        self.n_poses = len(pose)
        self.pose = torch.from_numpy(np.concatenate([pose, [[10 * size, 10 * size, 0]]])).to(device)
        self.ahead = torch.from_numpy(AHEAD).to(device)
        self.origin = int(self.row(torch.tensor([0, 0, 0], device=device)))
        at = np.array([[moved_by(p, motion) for p in pose.tolist()] for motion in range(N_MOTIONS)])
        self.moved = F.pad(self.row(torch.from_numpy(at).to(device)), (0, 1), value=self.n_poses)

    def row(self, pose: Tensor) -> Tensor:
        """(...) the rows of poses (..., 3)."""
        x, y, heading = pose.unbind(-1)
        x, y = x + self.reach, y + self.reach
        inside = (x >= 0) & (x < self.side) & (y >= 0) & (y < self.side)
        return torch.where(inside, (y * self.side + x) * N_HEADINGS + heading, self.n_poses)

    def compose(self, row: Tensor, relative: Tensor) -> Tensor:
        """(..., R) the rows of relative poses (R, 3) as seen from the poses with rows (...)."""
        at = self.pose[row]
        ahead = self.ahead[at[..., 2]][..., None, :]  # (..., 1, 2)
        right = self.ahead[(at[..., 2] + 1) % N_HEADINGS][..., None, :]
        place = at[..., None, :2] + relative[:, :1] * ahead + relative[:, 1:2] * right
        heading = (at[..., 2:] + relative[:, 2]) % N_HEADINGS
        return self.row(torch.cat([place, heading[..., None]], -1))


def moved_by(pose: tuple[int, int, int], motion: int) -> tuple[int, int, int]:
    """The pose (x, y, heading) to which a motion leads."""
    if motion == STAY:
        return pose
    action, steps = (FORWARD, -1) if motion == BACK else (motion, 1)
    x, y, heading = moved(np.array(pose), action, steps).tolist()
    return x, y, heading


@lru_cache
def relative_poses(device: torch.device, n_cells: int) -> RelativePoses:
    return RelativePoses(device, n_cells)


@lru_cache
def frame(size: int, device: torch.device) -> Frame:
    return Frame(size, device)


def classes_shown(view: Tensor) -> Tensor:
    """(..., C) the classes that views (..., C) show, OWN for the agent's own cell; UNSEEN of masked views."""
    shown, here = view.clamp(min=UNSEEN).clone(), own_cell(view.shape[-1])
    shown[..., here] = torch.where(view[..., here] < 0, UNSEEN, OWN)
    return shown


def kinds(shown: Tensor) -> Tensor:
    """(..., 9) float one-hot of the kinds of cells (...), of `classes_shown`; zeros where nothing is shown."""
    return F.one_hot(shown, N_CLASSES + 1)[..., 1:].float()


def shifted(shown: Tensor, row: Tensor) -> Tensor:
    """(..., R, C) the cells of views (..., C) where those of other views, at relative poses `row` (R,), lie; UNSEEN
    outside."""
    padded = F.pad(shown, (0, 1), value=UNSEEN)
    return padded[..., relative_poses(shown.device, shown.shape[-1]).shift[row]]


def split(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Source views (..., C), actions (...) and end views (..., C) of transitions (..., 2 C + 1)."""
    source, action, end = parts(rows)
    return source, action[..., 0], end
