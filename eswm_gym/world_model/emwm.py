"""EMWM: a table of memories, looked up by recurrent keys (paper: figure on EMWM; Coda-Forno et al. 2022).

Transitions are embedded as in ESWM and fed to a GRU one after the other. Its hidden states are the keys of the table,
the embeddings of the end states the values. A query, its end state masked, is fed last; the prediction is read out of
the average of the values of the keys nearest to its hidden state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from eswm_gym.checks import require_choices
from eswm_gym.rooms.transitions import END
from eswm_gym.world_model.codecs import CODECS, CodecName
from eswm_gym.world_model.eswm import EncodedBank, ModelConfig
from eswm_gym.world_model.predictions import Prediction
from eswm_gym.world_model.tokens import TokenModel, end_only, lengths


@dataclass(frozen=True)
class EMWMConfig(ModelConfig):
    """Shape of the model.

    Attributes:
        layers: of the GRU; the paper's has one.
        nearest: K, how many memories are averaged.
        codec: states are "integer" symbols or "binary" numbers.
    """

    layers: int = 1
    nearest: int = 5
    codec: CodecName = "integer"

    def __post_init__(self) -> None:
        if self.nearest < 1:
            raise ValueError(f"nearest must be at least 1, got {self.nearest}")
        require_choices(codec=(self.codec, tuple(CODECS)))


class Cache(NamedTuple):
    """What the model keeps of B banks.

    Attributes:
        keys: (B, N, dim) the hidden states after each memory, in the last layer.
        states: (B, 1, dim) the hidden state after the last memory, for each layer.
    """

    keys: Tensor
    states: list[Tensor]


class EMWM(TokenModel):
    """EMWM. Only end states are completed."""

    config: EMWMConfig

    def __init__(self, config: EMWMConfig) -> None:
        super().__init__(config, CODECS[config.codec](config.n_states, config.dim, heads=False))
        self.blocks = nn.ModuleList(nn.GRU(config.dim, config.dim, batch_first=True) for _ in range(config.layers))
        self.end_head = nn.Linear(config.dim, self.codec.n_outputs)

    def encode(self, memories: Tensor) -> EncodedBank:
        self.check_length(memories)
        last = (lengths(memories).clamp(min=1) - 1)[:, None, None].expand(-1, 1, self.config.dim)
        keys, states = self.embed(memories), []
        for gru in self.blocks:
            keys, _ = gru(keys)
            states.append(keys.gather(1, last))
        return EncodedBank(memories, Cache(keys, states))

    def layers(self, bank: EncodedBank[Cache], query: Tensor) -> Iterator[Tensor]:
        """The query tokens (B, Q, dim) after each layer, each query fed after the bank."""
        x = self.embed(query).flatten(0, 1)[:, None]  # (B * Q, 1, dim)
        for gru, state in zip(self.blocks, bank.cache.states, strict=True):
            _, x = gru(x, state.repeat_interleave(query.shape[1], 0).transpose(0, 1).contiguous())
            x = x.transpose(0, 1)
            yield x.view(*query.shape[:2], -1)

    def read_out(self, x: Tensor, bank: EncodedBank[Cache]) -> Prediction:
        keys = bank.cache.keys
        distance = torch.cdist(x.float(), keys.float()) ** 2 / math.sqrt(self.config.dim)  # (B, Q, N)
        distance = distance.masked_fill(bank.memories[:, None, :, END] < 0, 1e4)
        nearest, index = distance.topk(min(self.config.nearest, keys.shape[1]), largest=False)
        weight = torch.zeros_like(distance).scatter(2, index, (-nearest).softmax(-1))
        value = self.codec.look_up(self.codec.embed_end, bank.memories[..., END])  # (B, N, dim)
        return end_only(self.codec.to_logits(self.end_head(weight @ value)), self.config)
