"""Whether something is in the way of a move, as a camera view before it tells."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from eswm_gym.world_model.indoor.relative_poses import COLUMNS

FEATURES = 9


class Ways(nn.Module):
    """A perceptron over a view's columns and where the move leads; behind the camera it knows how rooms are at most.

    Args:
        dim: width of columns, and within.
    """

    def __init__(self, dim: int = 128) -> None:
        super().__init__()
        self.view, self.where = nn.Linear(COLUMNS * dim, dim), nn.Linear(FEATURES, dim)
        self.read = nn.Sequential(nn.GELU(), nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, 1))

    def forward(self, columns: Tensor, to: Tensor) -> Tensor:
        """(..., A) log-odds that one cannot go straight from where views (..., 8, dim) were taken to points.

        Args:
            columns: see `Look`.
            to: (..., A, 2) metres to the right and ahead.
        """
        right, forward = to.unbind(-1)
        far = (right**2 + forward**2 + 1e-4).sqrt()
        around = torch.atan2(right, forward + 1e-6)
        angles = torch.stack([around, 2 * around, 4 * around], -1)
        where = torch.cat([to, far[..., None], angles.sin(), angles.cos()], -1)
        return self.read(self.view(columns.flatten(-2))[..., None, :] + self.where(where))[..., 0]
