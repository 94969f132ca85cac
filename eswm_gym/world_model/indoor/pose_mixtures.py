"""Beliefs about poses and actions: mixtures over (x, y, turn), and what classes of actions they give.

A component is a Gaussian of one spread in the plane, times one of the heading, which ends half a turn away: the widest
lacks 8 %. Poses and actions are those of `eswm_gym.rooms.indoor.poses`, as tensors.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from eswm_gym.rooms.indoor import CELLS, N_ROTATIONS, REACH

SPREADS = (0.02, 5.0)  # metres
TURNS = (0.01, 1.8)  # radians


class PoseMixture(NamedTuple):
    """K components; all dimensions before them are a batch.

    Attributes:
        mean: (..., K, 3).
        spread: (..., K) standard deviation in the plane along each axis, in metres.
        turn: (..., K) standard deviation of the heading, in radians.
        log_weight: (..., K), which add up to 1.
    """

    mean: Tensor
    spread: Tensor
    turn: Tensor
    log_weight: Tensor

    def log_prob(self, pose: Tensor) -> Tensor:
        """(...) the logarithm of the density at poses (..., 3)."""
        return torch.logsumexp(self.log_weight + self.log_parts(pose), -1)

    def log_parts(self, pose: Tensor) -> Tensor:
        """(..., K) the logarithms of the densities of the components at poses (..., 3)."""
        away = pose[..., None, :] - self.mean
        angle = wrap(away[..., 2])
        plane = -away[..., :2].square().sum(-1) / (2 * self.spread**2) - 2 * self.spread.log() - math.log(2 * math.pi)
        return plane - angle.square() / (2 * self.turn**2) - self.turn.log() - math.log(2 * math.pi) / 2

    def after(self, pose: Tensor) -> PoseMixture:
        """The same actions, as the poses that they lead to from poses (..., 3)."""
        return self._replace(mean=compose(pose[..., None, :], self.mean))

    def best(self) -> Tensor:
        """(..., 3) the mean of the component with the highest density there."""
        height = self.log_weight - 2 * self.spread.log() - self.turn.log()
        return self.mean.gather(-2, height.argmax(-1)[..., None, None].expand(*height.shape[:-1], 1, 3))[..., 0, :]

    def classes(self) -> tuple[Tensor, Tensor]:
        """Log-probabilities (..., 64) of displacements and (..., 36) of rotations, of a mixture over actions."""
        edges = torch.linspace(-REACH, REACH, CELLS + 1, device=self.mean.device)
        edges[0], edges[-1] = -1e3, 1e3  # what is beyond the box counts for the cell beside it
        below = torch.special.ndtr((edges - self.mean[..., :2, None]) / self.spread[..., None, None])  # (..., K, 2, 9)
        right, forward = below.diff(dim=-1).unbind(-2)
        weight = self.log_weight.exp()
        cells = torch.einsum("...k,...ki,...kj->...ij", weight, right, forward).flatten(-2)
        middle = (torch.arange(N_ROTATIONS, device=self.mean.device) + 0.5) * (2 * math.pi / N_ROTATIONS) - math.pi
        half = math.pi / N_ROTATIONS
        away = wrap(middle - self.mean[..., 2:])  # (..., K, 36)
        mass = [torch.special.ndtr((away + side) / self.turn[..., None]) for side in (half, -half)]
        turns = torch.einsum("...k,...kt->...t", weight, mass[0] - mass[1])
        return tuple((p + 1e-6).log() - (p + 1e-6).sum(-1, keepdim=True).log() for p in (cells, turns))  # type: ignore[return-value]


def compose(pose: Tensor, action: Tensor) -> Tensor:
    """(..., 3) where actions lead from poses; see `eswm_gym.rooms.indoor.moved`."""
    x, y, heading = pose.unbind(-1)
    right, forward, turn = action.unbind(-1)
    sin, cos = heading.sin(), heading.cos()
    return torch.stack([x + right * cos + forward * sin, y - right * sin + forward * cos, wrap(heading + turn)], -1)


def between(start: Tensor, end: Tensor) -> Tensor:
    """(..., 3) the actions that lead from one pose to another; see `eswm_gym.rooms.indoor.action_between`."""
    dx, dy, turn = (end - start).unbind(-1)
    sin, cos = start[..., 2].sin(), start[..., 2].cos()
    return torch.stack([dx * cos - dy * sin, dx * sin + dy * cos, wrap(turn)], -1)


def reverse(action: Tensor) -> Tensor:
    """(..., 3) the actions that undo others; see `eswm_gym.rooms.indoor.reverse`."""
    return between(action, torch.zeros_like(action))


def wrap(angle: Tensor) -> Tensor:
    """Angles as -pi <= angle < pi."""
    return torch.remainder(angle + math.pi, 2 * math.pi) - math.pi
