"""ESWM-T for egocentric views (paper: "MiniGrid" in "Training Details"): the paper's transformer, which embeds and
predicts views. It reads the bank by cross attention in the blocks of `Block`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from eswm_gym.rooms.grid import N_ACTIONS, N_CLASSES
from eswm_gym.rooms.transitions import MASKED
from eswm_gym.world_model.blocks import Block, KeysValues, Reads, padding_mask, read_bank, read_queries
from eswm_gym.world_model.codecs import EgocentricCodec
from eswm_gym.world_model.eswm import EncodedBank, ModelConfig
from eswm_gym.world_model.overlap import split
from eswm_gym.world_model.predictions import ViewPrediction
from eswm_gym.world_model.view_model import ViewModel


@dataclass(frozen=True)
class ViewTransformerConfig(ModelConfig):
    """Shape of the model.

    Attributes:
        n_states: classes of a cell.
        heads: attention heads of each block.
        cell_dim: width of the embedding of a cell.
    """

    n_states: int = N_CLASSES
    n_actions: int = N_ACTIONS
    max_memories: int = 80
    heads: int = 4
    cell_dim: int = 64

    def __post_init__(self) -> None:
        if (self.n_states, self.n_actions) != (N_CLASSES, N_ACTIONS):
            raise ValueError(f"views have {N_CLASSES} classes and {N_ACTIONS} actions, got {self}")
        if self.dim % self.heads:
            raise ValueError(f"dim {self.dim} is not a multiple of heads {self.heads}")


class Cache(NamedTuple):
    """What the model keeps of B banks.

    Attributes:
        keys_values: of the bank's tokens in each block.
        mask: (B, 1, 1, 1 + N) over padding.
    """

    keys_values: list[KeysValues]
    mask: Tensor


class ViewTransformer(ViewModel):
    """ESWM-T over views; see the module."""

    config: ViewTransformerConfig
    codec: EgocentricCodec

    def __init__(self, config: ViewTransformerConfig) -> None:
        super().__init__(config)
        self.codec = EgocentricCodec(config.dim, config.cell_dim)
        self.embed_action = nn.Embedding(config.n_actions + 1, config.dim)  # the last row stands for "masked"
        self.blocks = nn.ModuleList(Block(config.dim, config.heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim, bias=False)
        self.action_head = nn.Linear(config.dim, config.n_actions + 1)
        self.unknown = nn.Linear(config.dim, 2)

    def embed(self, rows: Tensor) -> Tensor:
        """(B, N, dim) tokens of (B, N, 51) transitions: the sum of the three components over sqrt(3)."""
        source, action, end = split(rows)
        action = torch.where(action < 0, self.config.n_actions, action)
        return (self.codec.embed(source, end) + self.embed_action(action)) / 3**0.5

    def encode(self, memories: Tensor) -> EncodedBank:
        self.check_length(memories)
        x = self.embed(memories)
        mask = padding_mask((memories == MASKED).all(2), x.dtype)
        keys_values, _ = read_bank(self.blocks, x, Reads(mask))
        return EncodedBank(memories, Cache(keys_values, mask))

    def layers(self, bank: EncodedBank[Cache], query: Tensor) -> Iterator[Tensor]:
        return read_queries(self.blocks, bank.cache.keys_values, self.embed(query), Reads(bank.cache.mask))

    def read_out(self, x: Tensor, bank: EncodedBank[Cache]) -> ViewPrediction:
        x = self.norm(x)
        source, end = self.codec.read_out(x)
        return ViewPrediction(source, self.action_head(x), end, self.unknown(x))
