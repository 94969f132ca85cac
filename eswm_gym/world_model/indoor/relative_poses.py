"""How two camera views lie to each other, learned from pairs of views of training houses.

Each view becomes eight columns by attention among its own tokens; two views are compared column by column, as the
shifts of a picture tell a turn, and a perceptron reads the comparison as a mixture over the action that leads from one
to the other.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.world_model.blocks import Block, Reads, read_bank
from eswm_gym.world_model.indoor.pose_mixtures import SPREADS, TURNS, PoseMixture
from eswm_gym.world_model.indoor.vision import N_TOKENS, SIDE

COLUMNS = 8
COMPONENTS = 4
FEATURES = 6  # of a component: where it is, the sine and cosine of its turn, its spreads


class Look(NamedTuple):
    """What views (...) are compared by.

    Attributes:
        columns: (..., 8, D), from left to right.
        whole: (..., D).
    """

    columns: Tensor
    whole: Tensor


class RelativePoses(nn.Module):
    """See the module.

    Args:
        tokens: width of the tokens of a view.
        dim: width within.
        layers: blocks of attention within a view.
        heads: ways in which columns are compared.
    """

    def __init__(self, tokens: int, dim: int = 128, layers: int = 2, heads: int = 16) -> None:
        super().__init__()
        self.heads = heads
        self.embed = nn.Linear(tokens, dim)
        self.place = nn.Parameter(torch.randn(N_TOKENS, dim) / 2)
        self.blocks = nn.ModuleList(Block(dim, dim // 32) for _ in range(layers))
        self.norm = nn.LayerNorm(dim, bias=False)
        self.columns = nn.Linear(SIDE * dim, COLUMNS // SIDE * dim)
        self.whole = nn.Linear(COLUMNS * dim, dim)
        self.before, self.after = (nn.Linear(dim, heads * 16) for _ in range(2))
        self.compare = nn.Sequential(
            nn.Linear(COLUMNS**2 * heads + 2 * dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, 2 * dim), nn.GELU()
        )
        self.read = nn.Linear(2 * dim, COMPONENTS * (FEATURES + 1) + 1)

    def look(self, tokens: Tensor) -> Look:
        """Prepare views (N, 16, tokens)."""
        x = self.embed(tokens) + self.place
        reads = Reads(x.new_zeros(1, 1, 1, 1 + N_TOKENS))
        _, x = read_bank(self.blocks, x, reads)
        x = self.norm(x).unflatten(1, (SIDE, SIDE)).transpose(1, 2).flatten(2)  # (N, 4, 4 dim), a row a column
        columns = self.columns(x).unflatten(2, (COLUMNS // SIDE, -1)).flatten(1, 2)
        return Look(columns, self.whole(F.gelu(columns.flatten(1))))

    def forward(self, look: Look, start: Tensor, end: Tensor) -> tuple[PoseMixture, Tensor]:
        """Compare views start (...) with views end (...), rows of `look`.

        Returns:
            The actions that may lead from one to the other, and (...) the logit of whether the views overlap.
        """
        before, after = (part(look.columns).unflatten(-1, (self.heads, -1)) for part in (self.before, self.after))
        shape, start, end = start.shape, start.flatten(), end.flatten()
        fit = torch.einsum("nahd,nbhd->nhab", before[start], after[end]) / 4
        x = self.compare(torch.cat([fit.flatten(1), look.whole[start], look.whole[end]], 1))
        return self.mixture(self.read(x).float().unflatten(0, shape))

    @staticmethod
    def mixture(found: Tensor) -> tuple[PoseMixture, Tensor]:
        """What (..., 29) numbers say."""
        parts, overlap = found[..., :-1].unflatten(-1, (COMPONENTS, -1)), found[..., -1]
        right, forward, sin, cos, spread, turn, weight = parts.unbind(-1)
        mean = torch.stack([right, forward, torch.atan2(sin, cos + 1e-6)], -1)
        spread, turn = (x.exp().clamp(*limits) for x, limits in ((spread, SPREADS), (turn, TURNS)))
        return PoseMixture(mean, spread, turn, weight.log_softmax(-1)), overlap
