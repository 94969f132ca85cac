"""TEM-T: path-integrated positions as the transformer's positional encoding (paper: "TEM-T Implementation").

The model reads a trajectory. Its position starts anywhere and is updated by each action alone; what it observes and
where it believes to be form one token. A query asks what it would observe after one more action. The paper's
trajectories end where the query starts; here a query starts at the last visit to its source, so that a trajectory
serves any number of queries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.world_model.codecs import build_codec, check_codec
from eswm_gym.world_model.eswm import ACTION, END, ESWM, SOURCE, EncodedBank, ModelConfig, Prediction
from eswm_gym.world_model.tokens import end_only, to_autocast
from eswm_gym.world_model.transformer import Block


@dataclass(frozen=True)
class TEMTConfig(ModelConfig):
    """Shape of the model.

    Attributes:
        heads: attention heads of each block.
        codec: states are "integer" symbols or "binary" numbers.
    """

    heads: int = 4
    codec: Literal["integer", "binary"] = "integer"

    def __post_init__(self) -> None:
        if self.dim % 2 or self.dim % self.heads:
            raise ValueError(f"dim {self.dim} is not a multiple of 2 and of heads {self.heads}")
        check_codec(self.codec)

    @property
    def relational(self) -> bool:
        """Attention of the blocks has no relation bias."""
        return False


class TEMT(ESWM):
    """TEM-T. Memories are (B, N, 3) consecutive transitions in order; only end states are completed."""

    config: TEMTConfig

    def __init__(self, config: TEMTConfig) -> None:
        super().__init__(config)
        half = config.dim // 2
        self.codec = build_codec(config.codec, config.n_states, half, heads=False)
        self.start = nn.Parameter(torch.rand(half))
        self.nowhere = nn.Parameter(torch.rand(half))
        # A sigmoid has a slope of 1/4 around 1/2: at first each action turns the position and keeps its length.
        moves = torch.stack([4 * nn.init.orthogonal_(torch.empty(half, half)) for _ in range(config.n_actions)])
        self.moves = nn.Parameter(moves - moves.mean(1, keepdim=True))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim, bias=False)
        self.end_head = nn.Linear(config.dim, self.codec.n_outputs)

    def move(self, position: Tensor, action: Tensor) -> Tensor:
        """(B, Q, dim / 2) positions after actions (B, Q): sigmoid(position @ moves[action])."""
        with torch.autocast(position.device.type, enabled=False):
            everywhere = torch.einsum("bqd,ade->bqae", position, self.moves)
        index = action.clamp(min=0)[..., None, None].expand(-1, -1, 1, position.shape[-1])
        return everywhere.gather(2, index).squeeze(2).sigmoid()

    def positions(self, action: Tensor) -> Tensor:
        """(B, 1 + N, dim / 2) positions before and after each of the actions (B, N)."""
        path = [self.start.expand(len(action), 1, -1)]
        for a in action.split(1, 1):
            path.append(self.move(path[-1], a))
        return torch.cat(path, 1)

    def embed(self, observation: Tensor, position: Tensor) -> Tensor:
        """(B, T, dim) tokens of observed states (B, T), -1 for masked, at positions (B, T, dim / 2)."""
        return to_autocast(torch.cat([self.codec.embed(observation, observation) / math.sqrt(2), position], 2))

    def encode(self, memories: Tensor) -> EncodedBank:
        self.check_length(memories)
        position = self.positions(memories[..., ACTION])
        observation = torch.cat([memories[:, :1, SOURCE], memories[..., END]], 1)
        x = self.embed(observation, position)
        mask = F.pad(torch.where(observation < 0, -1e4, 0.0), (1, 0))[:, None, None].to(x.dtype)
        keys_values = []
        for block in self.blocks:
            keys_values.append(block.keys_values(x))  # type: ignore[operator]
            x = block(x, keys_values[-1], mask, None)
        return EncodedBank(memories, (keys_values, mask, observation, position))

    def predict(self, bank: EncodedBank, query: Tensor) -> Prediction:
        *_, x = self._layers(bank, query)
        return end_only(self.codec.to_logits(self.end_head(self.norm(x))), self.config)

    def activations(self, bank: EncodedBank, query: Tensor) -> Tensor:
        return torch.stack(list(self._layers(bank, query)))

    def _layers(self, bank: EncodedBank, query: Tensor) -> Iterator[Tensor]:
        """The query tokens (B, Q, dim) after each block."""
        keys_values, mask, observation, position = bank.cache
        visits = query[..., SOURCE, None] == observation[:, None]
        time = torch.arange(1, observation.shape[1] + 1, device=query.device)
        last = (visits * time).amax(2)  # 0: never visited
        known = torch.cat([self.nowhere.expand(len(query), 1, -1), position], 1)
        here = known.gather(1, last[..., None].expand(-1, -1, position.shape[-1]))
        x = self.embed(torch.full_like(last, -1), self.move(here, query[..., ACTION]))
        for block, kv in zip(self.blocks, keys_values, strict=True):
            x = block(x, kv, mask, None)
            yield x
