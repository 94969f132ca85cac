"""The block of the transformers, and how tokens pass a stack of them.

The bank's tokens read each other and leave keys and values in each block; the queries' tokens read those.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.rooms.transitions import ACTION

N_RELATIONS = 4
KeysValues = tuple[Tensor, Tensor]  # both (B, H, 1 + N, D), the null token first


def relations(reader: Tensor, read: Tensor, n: int = N_RELATIONS) -> Tensor:
    """Which states, and if wanted actions, each reading transition shares with each transition it reads.

    Args:
        reader: (B, T, 3) int transitions.
        read: (B, N, 3) int transitions.
        n: how many relations, 4 or 5.

    Returns:
        (B, T, n, 1 + N) bool: source is source, source is end, end is source, end is end, action is action; a masked
        component equals nothing. The first column stands for the null token and is False.
    """
    mine, theirs = reader[..., ::2, None, None], read.mT[:, None, None, ::2]  # (B, T, 2, 1, 1) and (B, 1, 1, 2, N)
    same = ((mine == theirs) & (mine >= 0)).flatten(2, 3)  # (B, T, 4, N)
    if n > N_RELATIONS:
        mine, theirs = reader[..., ACTION, None], read[:, None, :, ACTION]
        same = torch.cat([same, ((mine == theirs) & (mine >= 0))[:, :, None]], 2)
    return F.pad(same, (1, 0))


def padding_mask(padding: Tensor, dtype: torch.dtype) -> Tensor:
    """(B, 1, 1, 1 + N) what to add to the logits of attention: very little where a token (B, N) is padding, else 0.

    The first column stands for the null token, which all may read.
    """
    return F.pad(torch.where(padding, -1e4, 0.0), (1, 0))[:, None, None].to(dtype)


class Reads(NamedTuple):
    """How T tokens read the N of a bank and the null token.

    Attributes:
        mask: (B, 1, 1, 1 + N), from `padding_mask`.
        related: (B, T, n_relations, 1 + N) from `relations`, or None.
        sharper: (B, 1, 1, 1), a factor for the logits of attention, or None.
    """

    mask: Tensor
    related: Tensor | None = None
    sharper: Tensor | None = None


class Block(nn.Module):
    """Pre-norm attention and feed-forward layer; every token may read the learned null token.

    Queries and keys are normalised and their products sharpened by a learned factor.

    Args:
        dim: width of a token.
        heads: attention heads, H; a head has D = dim / H dimensions.
        n_relations: attention has a bias and a value for each of so many `relations` of two transitions.
    """

    def __init__(self, dim: int, heads: int, n_relations: int = 0) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(dim, bias=False)
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.sharpness = nn.Parameter(torch.full((heads, 1, 1), math.sqrt(dim // heads)))
        self.null_key = nn.Parameter(torch.zeros(heads, 1, dim // heads))
        self.null_value = nn.Parameter(torch.zeros(heads, 1, dim // heads))
        if n_relations:
            self.relation_bias = nn.Parameter(2 * torch.randn(n_relations, heads))
            self.relation_value = nn.Linear(heads * n_relations, dim, bias=False)
            nn.init.zeros_(self.relation_value.weight)
        self.mlp_norm = nn.LayerNorm(dim, bias=False)
        self.up = nn.Linear(dim, 4 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.down.weight)

    def _split(self, x: Tensor) -> Tensor:
        """(B, H, T, D) from (B, T, dim)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def keys_values(self, x: Tensor) -> KeysValues:
        """Keys and values of the tokens (B, N, dim)."""
        y = self.attention_norm(x)
        key, value = self._split(self.key(y)), self._split(self.value(y))  # (B, H, N, D)
        null = (len(x), -1, -1, -1)
        key = torch.cat([self.null_key.to(key.dtype).expand(null), key], 2)  # (B, H, 1 + N, D)
        value = torch.cat([self.null_value.to(value.dtype).expand(null), value], 2)
        return F.normalize(key, dim=-1), value

    def bias(self, reads: Reads) -> Tensor:
        """(B, H or 1, T or 1, 1 + N) what to add to the logits of attention."""
        if reads.related is None:
            return reads.mask
        bias = torch.einsum("rh,btrn->bhtn", self.relation_bias.to(reads.related.dtype), reads.related)
        return reads.mask + (bias if reads.sharper is None else reads.sharper * bias)

    def forward(self, x: Tensor, keys_values: KeysValues, bias: Tensor, reads: Reads) -> Tensor:
        """Let tokens read.

        Args:
            x: (B, T, dim) tokens.
            keys_values: what they read.
            bias: what `bias` gives.
            reads: how they read.
        """
        key, value = keys_values
        query = F.normalize(self._split(self.query(self.attention_norm(x))), dim=-1) * self.sharpness
        logits = query.to(key.dtype) @ key.mT  # (B, H, T, 1 + N)
        logits = (logits if reads.sharper is None else reads.sharper * logits) + bias
        # Two products and a softmax: at these lengths cheaper to train than fused attention.
        attention = logits.softmax(-1).to(value.dtype)
        y = self.out((attention @ value).transpose(1, 2).flatten(2))  # (B, T, dim)
        if reads.related is not None:  # sums, not products of tiny matrices, which cost more to train
            read = (attention[:, :, :, None] * reads.related[:, None]).sum(-1)  # (B, H, T, n_relations)
            y = y + self.relation_value(read.transpose(1, 2).flatten(2))
        x = x + y
        return x + self.down(F.gelu(self.up(self.mlp_norm(x))))


def read_bank(blocks: Iterable[Any], x: Tensor, reads: Reads, n: int | None = None) -> tuple[list[KeysValues], Tensor]:
    """Pass the bank's tokens, and those of queries behind them, through blocks.

    Args:
        blocks: each a `Block`; one that comes several times has its bias computed once.
        x: (B, T, dim) tokens.
        reads: how they read.
        n: how many of them are the bank's, which all read. None: all.

    Returns:
        The keys and values that the bank leaves in each block, and the tokens (B, T, dim) after the last one.
    """
    passed = list(bank_layers(blocks, x, reads, n))
    return [keys_values for keys_values, _ in passed], passed[-1][1]


def bank_layers(
    blocks: Iterable[Any], x: Tensor, reads: Reads, n: int | None = None
) -> Iterator[tuple[KeysValues, Tensor]]:
    """What the bank leaves in each block, and the tokens after it: see `read_bank`."""
    biases = {block: block.bias(reads) for block in set(blocks)}
    for block in blocks:
        keys_values = block.keys_values(x[:, :n])
        x = block(x, keys_values, biases[block], reads)
        yield keys_values, x


def read_queries(blocks: Iterable[Any], keys_values: Iterable[KeysValues], x: Tensor, reads: Reads) -> Iterator[Tensor]:
    """The queries' tokens (B, Q, dim) after each block, in which they read what the bank left there."""
    biases = {block: block.bias(reads) for block in set(blocks)}
    for block, read in zip(blocks, keys_values, strict=True):
        x = block(x, read, biases[block], reads)
        yield x
