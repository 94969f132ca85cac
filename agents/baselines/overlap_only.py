"""Overlap without anything learned: memories placed by how their views overlap, and MiniGrid's rule of light."""

from __future__ import annotations

import torch
from torch import Tensor

from eswm_gym.agents.baselines.map_only import FLOOR, MapOnly
from eswm_gym.rooms.grid import SIZE, UNSEEN, WALL
from eswm_gym.world_model import EncodedBank
from eswm_gym.world_model.localization import STEEP, Localization
from eswm_gym.world_model.overlap import N_KINDS, OWN, classes_shown, split


class OverlapOnly(MapOnly):
    """What an `OverlapModel` has without training, with constants in place of what it learns.

    Where two views agree counts for as much as their kind of cell is rare, where they differ counts against it. What
    the memories show of a view is completed as `MapOnly` does, the given view being one more vote.

    Args:
        size: width of the rooms in cells, the walls around included.
    """

    def __init__(self, size: int = SIZE) -> None:
        super().__init__(size, given=0.6)
        self.localization = Localization(size)
        evidence = torch.full((OWN + 1, N_KINDS), -4.0)
        kind = torch.arange(1, OWN)
        evidence[kind, kind - 1] = 0.0
        evidence[UNSEEN] = evidence[OWN] = 0.0
        evidence[:, OWN - 1] = 0.0
        evidence[OWN, WALL - 1] = evidence[WALL, OWN - 1] = -4.0
        self.localization.evidence.data = evidence / STEEP
        self.localization.agreement.data.fill_(1 / STEEP)
        self.localization.nowhere.data.fill_(8 / STEEP)
        self.requires_grad_(False)

    def encode(self, memories: Tensor) -> EncodedBank:
        self.check_length(memories)
        return EncodedBank(memories, self.localization(*split(memories)))

    def look_up(self, bank: EncodedBank, given: Tensor, motion: Tensor) -> Tensor:
        find = self.localization
        row, p = find.locate(bank.cache, classes_shown(given))
        here = find.frame.moved.to(motion.device)[motion[..., None], row]
        votes = find.votes(bank.cache, here, p)[..., : OWN - 1]
        return votes / votes.sum(-1, keepdim=True).clamp(min=FLOOR)
