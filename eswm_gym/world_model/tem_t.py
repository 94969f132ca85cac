"""TEM-T: path-integrated positions as the transformer's positional encoding (paper: "TEM-T Implementation").

The model reads a trajectory. Its position starts anywhere and is updated by each action alone; what it observes and
where it believes it is form one token. A query asks what it would observe after one more action. The paper's
trajectories end where the query starts; here a query starts at the last visit to its source, so that a trajectory
serves any number of queries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from eswm_gym.checks import require_choices
from eswm_gym.rooms.transitions import ACTION, END, SOURCE
from eswm_gym.world_model.blocks import Block, KeysValues, Reads, padding_mask, read_bank, read_queries
from eswm_gym.world_model.codecs import CODECS, CodecName, IntegerCodec
from eswm_gym.world_model.eswm import ESWM, EncodedBank, ModelConfig
from eswm_gym.world_model.predictions import Prediction
from eswm_gym.world_model.tokens import end_only, to_autocast


@dataclass(frozen=True)
class TEMTConfig(ModelConfig):
    """Shape of the model.

    Attributes:
        heads: attention heads of each block.
        codec: states are "integer" symbols or "binary" numbers.
    """

    heads: int = 4
    codec: CodecName = "integer"

    def __post_init__(self) -> None:
        if self.dim % 2 or self.dim % self.heads:
            raise ValueError(f"dim {self.dim} is not a multiple of 2 and of heads {self.heads}")
        require_choices(codec=(self.codec, tuple(CODECS)))


class Cache(NamedTuple):
    """What the model keeps of B trajectories of N transitions.

    Attributes:
        keys_values: of the trajectory's tokens in each block.
        mask: (B, 1, 1, 2 + N) over padding.
        observation: (B, 1 + N) int, the states on the way.
        position: (B, 1 + N, dim / 2) where the model believes it is.
    """

    keys_values: list[KeysValues]
    mask: Tensor
    observation: Tensor
    position: Tensor


class TEMT(ESWM):
    """TEM-T. Memories are (B, N, 3) consecutive transitions in order; only end states are completed."""

    config: TEMTConfig
    codec: IntegerCodec

    def __init__(self, config: TEMTConfig) -> None:
        super().__init__(config)
        half = config.dim // 2
        self.codec = CODECS[config.codec](config.n_states, half, heads=False)
        self.start = nn.Parameter(torch.rand(half))
        self.nowhere = nn.Parameter(torch.rand(half))
        # A sigmoid has a slope of 1/4 around 1/2: at first each action turns the position and keeps its length.
        moves = torch.stack([4 * nn.init.orthogonal_(torch.empty(half, half)) for _ in range(config.n_actions)])
        self.moves = nn.Parameter(moves - moves.mean(1, keepdim=True))
        self.blocks = nn.ModuleList(Block(config.dim, config.heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim, bias=False)
        self.end_head = nn.Linear(config.dim, self.codec.n_outputs)

    def move(self, position: Tensor, action: Tensor) -> Tensor:
        """(B, Q, dim / 2) positions after actions (B, Q): sigmoid(position @ moves[action])."""
        with torch.autocast(position.device.type, enabled=False):
            everywhere = torch.einsum("bqd,ade->bqae", position, self.moves)  # after each of the actions
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
        mask = padding_mask(observation < 0, x.dtype)
        keys_values, _ = read_bank(self.blocks, x, Reads(mask))
        return EncodedBank(memories, Cache(keys_values, mask, observation, position))

    def layers(self, bank: EncodedBank[Cache], query: Tensor) -> Iterator[Tensor]:
        keys_values, mask, observation, position = bank.cache
        visits = query[..., SOURCE, None] == observation[:, None]  # (B, Q, 1 + N)
        time = torch.arange(1, observation.shape[1] + 1, device=query.device)
        last = (visits * time).amax(2)  # 0: never visited
        known = torch.cat([self.nowhere.expand(len(query), 1, -1), position], 1)  # (B, 2 + N, dim / 2)
        here = known.gather(1, last[..., None].expand(-1, -1, position.shape[-1]))  # (B, Q, dim / 2)
        x = self.embed(torch.full_like(last, -1), self.move(here, query[..., ACTION]))
        yield from read_queries(self.blocks, keys_values, x, Reads(mask))

    def read_out(self, x: Tensor, bank: EncodedBank) -> Prediction:
        return end_only(self.codec.to_logits(self.end_head(self.norm(x))), self.config)
