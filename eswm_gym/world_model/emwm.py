"""EMWM: a table of memories, looked up by recurrent keys (paper: figure on EMWM; Coda-Forno et al. 2022).

Transitions are embedded as in ESWM and fed to a GRU one after the other. Its hidden states are the keys of the table,
the embeddings of the end states the values. A query, its end state masked, is fed last; the prediction is read out of
the average of the values of the keys nearest to its hidden state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from eswm_gym.world_model.codecs import build_codec, check_codec
from eswm_gym.world_model.eswm import END, EncodedBank, ModelConfig, Prediction
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
    codec: Literal["integer", "binary"] = "integer"

    def __post_init__(self) -> None:
        if self.nearest < 1:
            raise ValueError(f"nearest must be at least 1, got {self.nearest}")
        check_codec(self.codec)


class EMWM(TokenModel):
    """EMWM. Only end states are completed."""

    config: EMWMConfig

    def __init__(self, config: EMWMConfig) -> None:
        super().__init__(config, build_codec(config.codec, config.n_states, config.dim, heads=False))
        self.blocks = nn.ModuleList(nn.GRU(config.dim, config.dim, batch_first=True) for _ in range(config.layers))
        self.end_head = nn.Linear(config.dim, self.codec.n_outputs)

    def encode(self, memories: Tensor) -> EncodedBank:
        self.check_length(memories)
        last = (lengths(memories).clamp(min=1) - 1)[:, None, None].expand(-1, 1, self.config.dim)
        keys, states = self.embed(memories), []
        for gru in self.blocks:
            keys, _ = gru(keys)
            states.append(keys.gather(1, last))
        return EncodedBank(memories, (keys, states))

    def predict(self, bank: EncodedBank, query: Tensor) -> Prediction:
        keys, _ = bank.cache
        *_, x = self._layers(bank, query)
        distance = torch.cdist(x.float(), keys.float()) ** 2 / math.sqrt(self.config.dim)
        distance = distance.masked_fill(bank.memories[:, None, :, END] < 0, 1e4)
        nearest, index = distance.topk(min(self.config.nearest, keys.shape[1]), largest=False)
        weight = torch.zeros_like(distance).scatter(2, index, (-nearest).softmax(-1))
        value = self.codec.look_up(self.codec.embed_end, bank.memories[..., END])
        return end_only(self.codec.to_logits(self.end_head(weight @ value)), self.config)

    def activations(self, bank: EncodedBank, query: Tensor) -> Tensor:
        return torch.stack(list(self._layers(bank, query)))

    def _layers(self, bank: EncodedBank, query: Tensor) -> Iterator[Tensor]:
        """The query tokens (B, Q, dim) after each layer, each fed after the bank."""
        x = self.embed(query).flatten(0, 1)[:, None]
        for gru, state in zip(self.blocks, bank.cache[1], strict=True):
            _, x = gru(x, state.repeat_interleave(query.shape[1], 0).transpose(0, 1).contiguous())
            x = x.transpose(0, 1)
            yield x.view(*query.shape[:2], -1)
