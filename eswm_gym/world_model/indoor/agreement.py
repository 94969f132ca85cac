"""Where camera views were taken, in the frame of a memory bank: attention over views whose values are poses.

Each view of the bank says where another one may have been taken, as the pair of them looks (`RelativePoses`), seen from
its own pose. What many of them say alike is believed. How far to trust them is learned.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.world_model.indoor.pose_mixtures import SPREADS, TURNS, PoseMixture, wrap

CANDIDATES, KEPT = 24, 6
NOWHERE = -math.log(6 * 6 * 2 * math.pi)  # density of a pose of which nothing is known
ROUNDS = 2


class Agreement(nn.Module):
    """What several mixtures about one pose say together; all its weights are learned numbers that begin at what
    independent witnesses would be worth."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(1.0))  # of each witness, since they err together
        self.nowhere = nn.Parameter(torch.tensor(NOWHERE))
        self.spread = nn.Parameter(torch.tensor([0.0, 1.0]))  # of the outcome, by that of independent witnesses
        self.turn = nn.Parameter(torch.tensor([0.0, 1.0]))

    def forward(self, said: PoseMixture, trust: Tensor) -> tuple[PoseMixture, Tensor]:
        """Believe what witnesses agree on.

        Args:
            said: (..., V, K) components of V witnesses.
            trust: (..., V) log-odds that a witness knows anything.

        Returns:
            A mixture of 6 components (...), and (...) how well the witnesses agree on it, in nats.
        """
        knows, ignorant = F.logsigmoid(trust)[..., None], F.logsigmoid(-trust)[..., None] + self.nowhere
        parts = said._replace(log_weight=said.log_weight + knows)  # (..., V, K)
        flat = PoseMixture(*(x.flatten(-2 - wide, -1 - wide) for x, wide in zip(parts, (1, 0, 0, 0), strict=True)))
        height = flat.log_weight - 2 * flat.spread.log() - flat.turn.log()
        first = height.topk(min(CANDIDATES, height.shape[-1]), -1).indices  # (..., C)
        place = flat.mean.gather(-2, first[..., None].expand(*first.shape, 3))  # (..., C, 3)
        for _ in range(ROUNDS):
            density = _densities(parts, place)  # (..., C, V, K)
            total = torch.logaddexp(density.logsumexp(-1), ignorant[..., None, :, 0])  # (..., C, V)
            share = (density - total[..., None]).exp()  # how far each component speaks of the candidate
            place, spread, turn = _fused(parts, place, share)
        score = self.weight * torch.logaddexp(_densities(parts, place).logsumexp(-1), ignorant[..., None, :, 0]).sum(
            -1
        )  # (..., C)
        best = score.topk(min(KEPT, score.shape[-1]), -1)
        place, spread, turn = (
            place.gather(-2, best.indices[..., None].expand(*best.indices.shape, 3)),
            spread.gather(-1, best.indices),
            turn.gather(-1, best.indices),
        )
        spread, turn = (
            (a + b * x.log()).exp().clamp(*limits)
            for x, (a, b), limits in ((spread, self.spread, SPREADS), (turn, self.turn, TURNS))
        )
        agreed = best.values[..., 0] - self.weight * self.nowhere * trust.shape[-1]
        return PoseMixture(place, spread, turn, best.values.log_softmax(-1)), agreed


def _densities(parts: PoseMixture, place: Tensor) -> Tensor:
    """(..., C, V, K) weighted log-densities of components (..., V, K) at candidates (..., C, 3)."""
    wide = PoseMixture(*(x[..., None, :, :, :] if x.ndim > parts.spread.ndim else x[..., None, :, :] for x in parts))
    return wide.log_weight + wide.log_parts(place[..., None, :].expand(*place.shape[:-1], parts.spread.shape[-2], 3))


def _fused(parts: PoseMixture, place: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Means (..., C, 3) and spreads (..., C) of what components (..., V, K) say of candidates, by their shares."""
    plane = share / parts.spread[..., None, :, :] ** 2
    angle = share / parts.turn[..., None, :, :] ** 2
    away = parts.mean[..., None, :, :, :] - place[..., :, None, None, :]  # (..., C, V, K, 3)
    shift = (plane[..., None] * away[..., :2]).sum((-3, -2)) / plane.sum((-2, -1))[..., None].clamp(min=1e-6)
    turned = (angle * wrap(away[..., 2])).sum((-2, -1)) / angle.sum((-2, -1)).clamp(min=1e-6)
    place = torch.cat([place[..., :2] + shift, wrap(place[..., 2] + turned)[..., None]], -1)
    return place, plane.sum((-2, -1)).clamp(min=1e-2).rsqrt(), angle.sum((-2, -1)).clamp(min=0.1).rsqrt()
