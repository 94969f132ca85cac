"""What one writes by hand in place of the model of camera views: a pose graph that matches views by their features."""

from __future__ import annotations

import torch
from torch import Tensor

from eswm_gym.world_model.indoor.model import IndoorBank, Memories, along, cosine, views_of
from eswm_gym.world_model.indoor.pose_mixtures import PoseMixture, between, compose
from eswm_gym.world_model.indoor.relative_poses import Look
from eswm_gym.world_model.indoor.vision import Reduction

SPREAD = 0.02  # metres and radians, said of all that it finds


class PoseGraph:
    """Knows the actions of the bank and that moves compose; takes a view for the one of the bank that looks most like
    it.

    Args:
        reduction: of an encoder's features.
    """

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction

    def encode(self, memories: Memories) -> IndoorBank:
        """Views that are equal are one; a cluster that no move joins to the others begins where one looks most like it.

        Raises:
            ValueError: if the bank is empty.
        """
        tokens, rows = views_of(memories)
        pose, known = torch.zeros(len(tokens), 3), torch.zeros(len(tokens), dtype=torch.bool)
        known[0] = True
        along(pose, known, rows, memories.action)
        while not known.all():  # each further cluster where the view of it that looks most like a placed one would be
            new, old = (~known).nonzero()[:, 0], known.nonzero()[:, 0]
            fit = cosine(tokens[new][:, None], tokens[old][None])
            i, j = divmod(int(fit.argmax()), len(old))
            pose[new[i]], known[new[i]] = pose[old[j]], True
            along(pose, known, rows, memories.action)
        return IndoorBank(tokens, Look(tokens[:, :0], tokens[:, 0]), pose, rows)

    def locate(self, bank: IndoorBank, views: Tensor) -> tuple[PoseMixture, Tensor]:
        """The poses of the views of the bank that look most like them, in that order, and how much the first does."""
        fit, best = cosine(views[:, None], bank.tokens[None]).topk(min(6, len(bank.tokens)), 1)
        spread = torch.full(fit.shape, SPREAD)
        return PoseMixture(bank.pose[best], spread, spread, (20 * fit).log_softmax(1)), fit[:, 0]

    def action_between(self, bank: IndoorBank, start: Tensor, end: Tensor) -> tuple[PoseMixture, Tensor]:
        """See `IndoorModel.action_between`."""
        (at_start, fit), (at_end, other) = self.locate(bank, start), self.locate(bank, end)
        action = between(at_start.mean[:, :1], at_end.mean[:, :1])
        spread = torch.full(action.shape[:2], SPREAD)
        return PoseMixture(action, spread, spread, torch.zeros(action.shape[:2])), -torch.minimum(fit, other)

    def view_after(self, bank: IndoorBank, start: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """See `IndoorModel.view_after`: the view of the bank whose pose is nearest, a radian counting for a metre."""
        pose = compose(self.locate(bank, start)[0].mean[:, 0], action)
        far = between(pose[:, None], bank.pose[None]).norm(dim=-1)
        return bank.tokens[far.argmin(1)], far.amin(1)

    def is_blocked(self, views: Tensor, action: Tensor) -> Tensor:
        """It takes every way for free until it is not."""
        return torch.full(action.shape[:2], -1.0)
