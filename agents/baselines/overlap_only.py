"""Overlap without anything learned: memories placed by how their views overlap, and MiniGrid's rule of light."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from eswm_gym.agents.baselines.map_only import FLOOR, MapOnly
from eswm_gym.agents.baselines.registration import motion_of
from eswm_gym.rooms.grid import SIZE, UNSEEN, WALL
from eswm_gym.world_model import EncodedBank
from eswm_gym.world_model.localization import STEEP, Localization
from eswm_gym.world_model.overlap import N_KINDS, OWN, classes_shown, relative_poses, split
from eswm_gym.world_model.predictions import Imagined


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
        return self._shown(bank, find.frame.moved.to(motion.device)[motion[..., None], row], p)

    def _shown(self, bank: EncodedBank, row: Tensor, p: Tensor) -> Tensor:
        """(B, Q, 25, 8) what the memories show around poses (B, Q, G) with probabilities (B, Q, G)."""
        votes = self.localization.votes(bank.cache, row, p)[..., : OWN - 1]
        return votes / votes.sum(-1, keepdim=True).clamp(min=FLOOR)

    def for_rooms(self, size: int, max_memories: int) -> OverlapOnly:
        """The same for rooms of another width, and longer banks."""
        other = OverlapOnly(size).to(self.device)
        other.config = replace(other.config, max_memories=max_memories)
        return other

    def follow(self, walk: Tensor) -> EncodedBank:
        """See `OverlapModel.follow`."""
        self.check_length(walk)
        return EncodedBank(walk, self.localization.follow(*split(walk)))

    def imagine_from(self, bank: EncodedBank, pose: Tensor, view: Tensor, action: Tensor) -> tuple[Imagined, Tensor]:
        """See `OverlapModel.imagine_from`."""
        near = view[..., relative_poses(view.device, view.shape[2]).near]
        motion = motion_of(near, action)
        end = self.localization.frame.moved[motion, pose]
        seen, new = self.see(self._shown(bank, end[..., None], torch.ones_like(end[..., None]).float()), near, motion)
        return Imagined(seen.exp(), new.amax(2), new.sum(2)), end
