"""Where views lie to each other: attention over memories and relative poses, by how well views overlap.

How well view i fits view j under each relative pose is the bias of attention, the pose of j moved by that relative pose
its value. So poses are composed over as many memories as it takes, in the frame of reference of one of them. No map is
built: what a place looks like is read from the memories that show it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.rooms.grid import FORWARD, N_CELLS, N_CLASSES, UNSEEN, WALL, own_cell
from eswm_gym.rooms.transitions import MASKED
from eswm_gym.world_model.overlap import (
    N_KINDS,
    OWN,
    STAY,
    Frame,
    RelativePoses,
    classes_shown,
    frame,
    kinds,
    relative_poses,
    shifted,
)

ROUNDS = 8
GUESSES = 3  # poses at which a query's view may lie
STEEP = 10.0  # evidence for a unit of a weight, so that it is learned as fast as others
NOWHERE = 0.5  # weight of the guess that a view is nowhere in the frame, before training
WALL_AHEAD = 4.0  # evidence of a wall in front that a step was blocked


class Located(NamedTuple):
    """B banks of N memories, whose W = 2 N views have poses in a frame of each bank: the sources first, then the ends.

    Attributes:
        shown: (B, W, C) int, classes; see `classes_shown`.
        fields: (B, W * K, C * 9) float, what each view shows where another one at each of K relative poses looks; empty
            for walks.
        rarity: (B, 9) float, minus the logarithm of how often the views show each kind of cell.
        pose: (B, W) int, the row of each view's pose in the frame.
        trust: (B, W) float, the probability that it is there.
    """

    shown: Tensor
    fields: Tensor
    rarity: Tensor
    pose: Tensor
    trust: Tensor


class Localization(nn.Module):
    """Finds the poses of memories and of views; see the module.

    Args:
        size: width of the rooms, their walls included.

    Attributes:
        evidence: (10, 9) what a cell of each class in one view tells of a cell of each kind in another one, at the same
            place.
        agreement: (9,) the same where both are of one kind, for each nat of its rarity.
        nowhere: evidence that a view is nowhere in the frame.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.evidence = nn.Parameter(torch.zeros(N_CLASSES + 1, N_KINDS))
        self.agreement = nn.Parameter(torch.zeros(N_KINDS))
        self.nowhere = nn.Parameter(torch.tensor(NOWHERE))

    @property
    def frame(self) -> Frame:
        return frame(self.size, self.evidence.device)

    def forward(self, source: Tensor, action: Tensor, end: Tensor) -> Located:
        """Find the poses of the memories of B banks: views (B, N, C), actions (B, N), -1 for padding, and views."""
        if not source.shape[1]:  # without memories one of padding
            source, end = (source.new_full((len(source), 1, source.shape[2]), MASKED) for _ in range(2))
            action = action.new_full((len(action), 1), MASKED)
        compared, n, device = self._compared(source), source.shape[1], source.device
        k = len(compared)
        shown = torch.cat([classes_shown(source), classes_shown(end)], 1)  # (B, W, C)
        rarity, motion = self._motion(shown, action)
        fields = kinds(shifted(shown, torch.arange(k, device=device))).flatten(3).flatten(1, 2)  # (B, W * K, 225)
        fit = (fields @ self._looks(shown, rarity).mT).unflatten(1, (-1, k))  # (B, W, K, V): view V at K as seen from W
        own = torch.eye(n, dtype=torch.bool, device=device).repeat(2, 2)  # a memory tells nothing of itself
        fit = fit.masked_fill(own[:, None], 0.0)
        return Located(shown, fields, rarity, *self._place(compared, fit, motion, action >= 0))

    def follow(self, source: Tensor, action: Tensor, end: Tensor) -> Located:
        """The poses along B walks: views (B, N, C), actions (B, N) and views. Each row begins where the last one ended.

        They are composed from the start on, in whose frame they are, so that places may look alike. Located are the
        views at the sources.
        """
        before, after = classes_shown(source), classes_shown(end)
        rarity, motion = self._motion(torch.cat([before, after], 1), action)
        pose = [torch.full_like(action[:, 0], self.frame.origin)]
        for step in motion[:, :-1].unbind(1):
            pose.append(self.frame.moved[step, pose[-1]])
        at = torch.stack(pose, 1)
        return Located(before, rarity.new_zeros(len(at), 0, 0), rarity, at, (at < self.frame.n_poses).float())

    def _motion(self, shown: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """(B, 9) rarity of each kind among views (B, W, C), and (B, N) how the agent moved: a step may be blocked."""
        count = kinds(shown).sum((1, 2)) + 1.0
        rarity = -(count / count.sum(-1, keepdim=True)).log()
        before, after = shown.chunk(2, 1)
        blocked = self._blocked(before, after, rarity)
        in_front = own_cell(shown.shape[2]) - 1
        blocked = blocked + WALL_AHEAD * torch.where(before[..., in_front] == WALL, 1.0, -1.0)
        return rarity, torch.where((action == FORWARD) & (blocked > 0), STAY, action.clamp(min=0))

    @staticmethod
    def _relative(view: Tensor) -> RelativePoses:
        """The tables for views of as many cells as these have."""
        return relative_poses(view.device, view.shape[-1])

    def _compared(self, view: Tensor) -> Tensor:
        """(K, 3) the relative poses at which views of as many cells as these have are compared."""
        relative = self._relative(view)
        return relative.pose[: relative.n_compared]

    def fit(self, before: Tensor, after: Tensor, rarity: Tensor, motion: int) -> Tensor:
        """(B, T) how well views (B, T, C) after a motion fit those before it, as `classes_shown` has them."""
        there = kinds(shifted(before, self._relative(before).motion[motion][None])[..., 0, :]).flatten(2)
        return (self._looks(after, rarity) * there).sum(-1)

    def locate(self, bank: Located, shown: Tensor) -> tuple[Tensor, Tensor]:
        """The likeliest poses of views (B, Q, 25): their rows (B, Q, G), and their probabilities (B, Q, G).

        A view that is asked about several times in a row, once for each action, is located once.
        """
        repeats = (shown[:, 1:] == shown[:, :-1]).all(2).all(0)  # (Q - 1,)
        which = F.pad(~repeats, (1, 0)).cumsum(0)  # (Q,), the number of each view among those that are no repeats
        shown = shown[:, F.pad(~repeats, (1, 0), value=True)]
        compared = self._compared(shown)
        fit = (bank.fields @ self._looks(shown, bank.rarity).mT).unflatten(1, (-1, len(compared)))  # (B, W, K, V)
        p, row = self._probabilities(self._gather(compared, fit, bank.pose, bank.trust)).topk(GUESSES, 1)
        p = torch.where(row < self.frame.n_poses, p, 0.0)
        return row.mT[:, which], p.mT[:, which]

    def votes(self, bank: Located, row: Tensor, p: Tensor) -> Tensor:
        """(B, Q, 25, 9) how often the memories show each kind in each cell of the views at poses (B, Q, G).

        Args:
            bank: B banks.
            row: (B, Q, G) int, rows of poses.
            p: (B, Q, G) float, their probabilities.
        """
        relative, every = self._relative(bank.shown), self.frame.pose
        batch, n_views = bank.pose.shape
        seen = relative.between(every[bank.pose][:, None, None], every[row][:, :, :, None])  # (B, Q, G, W)
        first = torch.arange(batch * n_views, device=row.device).view(batch, 1, 1, n_views, 1) * (
            bank.shown.shape[2] + 1
        )
        padded = F.pad(bank.shown, (0, 1), value=UNSEEN)
        kind = padded.flatten()[first + relative.near_shift[seen]].flatten(2, 3)  # (B, Q, G * W, 25)
        weight = (p[..., None] * bank.trust[:, None, None]).flatten(2)[..., None].expand_as(kind)
        slot = kind + torch.arange(N_CELLS, device=row.device) * (N_KINDS + 1)
        votes = weight.new_zeros(*kind.shape[:2], N_CELLS * (N_KINDS + 1))
        return votes.scatter_add(2, slot.flatten(2), weight.flatten(2)).unflatten(2, (N_CELLS, -1))[..., 1:]

    def contradicted(self, bank: Located, view: int) -> Tensor:
        """(B, W, C) bool, which cells of the views one view of each bank contradicts; none of those that are not
        placed."""
        shown = torch.where(bank.shown == OWN, UNSEEN, bank.shown)
        at, relative = self.frame.pose[bank.pose], self._relative(shown)
        shift = relative.shift[relative.between(at[:, view, None], at)]  # (B, W, C)
        now = F.pad(shown[:, view, None].expand_as(shown), (0, 1), value=UNSEEN).gather(2, shift)
        placed = (bank.trust > 0.5) & (bank.trust[:, view, None] > 0.5)
        return (now != shown) & (now != UNSEEN) & (shown != UNSEEN) & placed[..., None]

    def is_blocked(self, before: Tensor, after: Tensor) -> Tensor:
        """(...) bool, whether the view after a step ahead (..., 25) fits the same place better than the one ahead."""
        one, other = (classes_shown(view).reshape(1, -1, N_CELLS) for view in (before, after))
        usual = torch.full((1, N_KINDS), math.log(N_KINDS), device=before.device)
        return (self._blocked(one, other, usual) > 0).reshape(before.shape[:-1])

    def _blocked(self, before: Tensor, after: Tensor, rarity: Tensor) -> Tensor:
        """(B, T) evidence that a step ahead led nowhere, from the views (B, T, C) before and after it.

        Only cells count that both places show: else a view that looks the same from both would speak for the first one.
        """
        relative = self._relative(before)
        row = relative.motion[[STAY, FORWARD]]
        seen = kinds(shifted(before, row)) * (relative.shift[row[1]] < before.shape[-1])[:, None]  # (B, T, 2, C, 9)
        stayed, moved = seen.flatten(3).unbind(2)
        return (self._looks(after, rarity) * (stayed - moved)).sum(-1)

    def _looks(self, shown: Tensor, rarity: Tensor) -> Tensor:
        """(B, T, C * 9) what each cell of views (B, T, C) is evidence for."""
        table = F.pad(torch.diag_embed(self.agreement * rarity), (0, 0, 1, 0)) + self.evidence  # (B, 10, 9)
        return STEEP * table[torch.arange(len(shown), device=shown.device)[:, None, None], shown].flatten(2)

    def _place(self, compared: Tensor, fit: Tensor, motion: Tensor, held: Tensor) -> tuple[Tensor, Tensor]:
        """(B, W) the rows of the poses of all views, and (B, W) how sure they are.

        The memory that overlaps most with others is the origin. In each round, every memory finds its pose from the
        poses that all others had; gradients pass the last round alone.
        """
        shape = self.frame
        batch, n = motion.shape
        most = fit.detach().amax(2).clamp(min=0).sum(2)  # (B, W)
        first = (most[:, :n] + most[:, n:]).masked_fill(~held, -1).argmax(1)
        anchor = F.one_hot(first, n).bool() & held
        moved = shape.moved[motion]  # (B, N, P + 1)
        pose = torch.where(anchor, shape.origin, shape.n_poses)
        trust = anchor.float()
        with torch.no_grad():
            for _ in range(ROUNDS):
                trust, new = self._beliefs(compared, fit, pose, trust, moved).max(1)
                new = torch.where(anchor | ~held, pose, new)
                trust = torch.where(anchor, 1.0, trust) * (new < shape.n_poses)
                if (new == pose).all():
                    break
                pose = new
        trust = self._beliefs(compared, fit, pose, trust, moved).gather(1, pose[:, None])[:, 0]
        return self._views(pose, torch.where(anchor, 1.0, trust) * (pose < shape.n_poses), moved)

    def _beliefs(self, compared: Tensor, fit: Tensor, pose: Tensor, trust: Tensor, moved: Tensor) -> Tensor:
        """(B, P + 1, N) probabilities of the pose of each memory, from the poses (B, N) of all others."""
        evidence = self._gather(compared, fit, *self._views(pose, trust, moved))  # (B, P + 1, V)
        n = pose.shape[1]
        return self._probabilities(evidence[..., :n] + evidence[..., n:].gather(1, moved.mT))

    def _probabilities(self, evidence: Tensor) -> Tensor:
        """(B, P + 1, T) probabilities of poses; the last row, of evidence too, stands for "nowhere"."""
        nowhere = (STEEP * self.nowhere).expand(len(evidence), 1, evidence.shape[2])
        return torch.cat([evidence[:, :-1], nowhere], 1).softmax(1)

    @staticmethod
    def _views(pose: Tensor, trust: Tensor, moved: Tensor) -> tuple[Tensor, Tensor]:
        """(B, W) rows of the poses of the views of memories, and (B, W) how sure they are."""
        end = moved.gather(2, pose[..., None])[..., 0]
        return torch.cat([pose, end], 1), torch.cat([trust, trust], 1)

    def _gather(self, compared: Tensor, fit: Tensor, pose: Tensor, trust: Tensor) -> Tensor:
        """(B, P + 1, V) evidence that each view is at each pose, from fits (B, W, K, V) to views at poses (B, W)
        under relative poses (K, 3)."""
        n_rows = self.frame.n_poses + 1
        row = self.frame.compose(pose, compared)  # (B, W, K)
        row = row + n_rows * torch.arange(len(pose), device=pose.device)[:, None, None]
        found = fit.new_zeros(len(pose) * n_rows, fit.shape[-1])
        votes = (fit * trust[..., None, None]).flatten(0, 2)
        return found.index_add(0, row.flatten(), votes).unflatten(0, (-1, n_rows))
