"""What a camera would show at a pose: tokens that read those of remembered views, by how the two poses lie."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.world_model.indoor.vision import N_TOKENS

READ = 8  # views, those that overlap most as their poses lie
POSE_FEATURES = 12


class Overlap(nn.Module):
    """The log-odds that two views show some of the same walls, by their poses; of walls between it knows nothing."""

    def __init__(self, dim: int = 64) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(POSE_FEATURES, dim), nn.GELU(), nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, 1)
        )

    def forward(self, relative: Tensor) -> Tensor:
        """(...) log-odds, for actions (..., 3) that lead from one pose to the other."""
        return self.net(pose_features(relative))[..., 0]


class Layer(nn.Module):
    """Tokens of the masked view read those of remembered ones, each pair of tokens with a bias by the poses."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.mlp_norm = nn.LayerNorm(dim, bias=False), nn.LayerNorm(dim, bias=False)
        self.query, self.key, self.value, self.out = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(4 * dim, dim, bias=False)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.down.weight)

    def forward(self, x: Tensor, read: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """(N, 16, dim) tokens after they read (N, T, dim), and the attention (N, H, 16, T); bias (N, H, 16, T)."""
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query(self.norm(x)), self.key(read), self.value(read))
        )
        attention = (F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT * 4 + bias).softmax(-1)
        x = x + self.out((attention.to(value.dtype) @ value).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.mlp_norm(x)))), attention


class ViewReader(nn.Module):
    """See the module.

    Args:
        tokens: width of the tokens of a view.
        dim: width within.
    """

    def __init__(self, tokens: int, dim: int = 128, heads: int = 4, layers: int = 3) -> None:
        super().__init__()
        self.heads = heads
        self.overlap = Overlap()
        self.embed = nn.Linear(tokens, dim)
        self.place = nn.Parameter(torch.randn(N_TOKENS, dim) / 2)
        self.begin = nn.Parameter(torch.randn(N_TOKENS, dim) / 2)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(layers))
        self.bias = nn.Sequential(nn.Linear(POSE_FEATURES, dim), nn.GELU(), nn.Linear(dim, heads * N_TOKENS**2))
        self.where = nn.Linear(POSE_FEATURES, dim)
        self.norm = nn.LayerNorm(dim, bias=False)
        self.read = nn.Linear(dim, tokens)
        self.copied = nn.Linear(dim, heads)  # how much of what each head attends to is taken over as it is
        self.unknown = nn.Linear(dim, 1)
        nn.init.zeros_(self.read.weight)

    def forward(self, tokens: Tensor, relative: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Read what is seen at N poses.

        Args:
            tokens: (N, V, 16, tokens) of remembered views, at most `READ` of them.
            relative: (N, V, 3) how the poses of the remembered views lie as seen from the masked ones.
            there: (N, V) bool, False where there is no such view.

        Returns:
            (N, 16, tokens) and (N,) the log-odds that nothing shows what is seen there.
        """
        how = pose_features(relative)
        source = self.embed(tokens) + self.place + self.where(how)[:, :, None]  # (N, V, 16, dim)
        bias = self.bias(how).unflatten(-1, (self.heads, N_TOKENS, N_TOKENS))  # (N, V, H, 16, 16)
        bias = torch.where(
            there[..., None, None, None], bias + self.overlap(relative).detach()[..., None, None, None], -1e4
        )
        bias, source = bias.permute(0, 2, 3, 1, 4).flatten(3), source.flatten(1, 2)
        x = self.begin.expand(len(tokens), -1, -1)
        for layer in self.layers:
            x, attention = layer(x, source, bias)
        x = self.norm(x)
        taken = attention.to(tokens.dtype) @ tokens.flatten(1, 2)[:, None]  # (N, H, 16, tokens)
        seen = self.read(x) + (self.copied(x).mT[..., None] * taken).sum(1)
        return seen, self.unknown(x.mean(1))[:, 0]


def pose_features(relative: Tensor) -> Tensor:
    """(..., 12) what networks see of actions (..., 3)."""
    right, forward, turn = relative.unbind(-1)
    far = (right**2 + forward**2 + 0.01).sqrt()
    around = torch.atan2(right, forward + 1e-6)  # where it lies
    angles = torch.stack([turn, 2 * turn, around, around - turn], -1)
    return torch.cat([relative[..., :2] / 2, far[..., None] / 2, 0.5 / far[..., None], angles.sin(), angles.cos()], -1)
