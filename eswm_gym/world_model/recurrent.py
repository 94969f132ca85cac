"""ESWM-LSTM and ESWM-Mamba: sequence models over memories in any order (paper: "Model Selection and Training").

The query token is added to each memory token, and the last token is read out. So each query reads the whole bank anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.checks import require_choices
from eswm_gym.world_model.codecs import CODECS, CodecName
from eswm_gym.world_model.eswm import EncodedBank, ModelConfig
from eswm_gym.world_model.predictions import Prediction
from eswm_gym.world_model.tokens import TokenModel, lengths

CONVOLUTION = 4  # how many tokens Mamba's convolution sees
EXPANSION = 2  # channels of Mamba for each of a token
HEADS = 8  # groups of channels of Mamba that decay alike
STATE = 64  # numbers that Mamba keeps of each channel
KEPT = 12  # tokens that cells of an LSTM remember at first, at most


@dataclass(frozen=True)
class RecurrentConfig(ModelConfig):
    """Shape of the model.

    Attributes:
        cell: what each layer is, "lstm" or "mamba".
        codec: states are "integer" symbols or "binary" numbers.
    """

    cell: Literal["lstm", "mamba"] = "lstm"
    codec: CodecName = "integer"

    def __post_init__(self) -> None:
        require_choices(cell=(self.cell, tuple(CELLS)), codec=(self.codec, tuple(CODECS)))
        if self.cell == "mamba" and EXPANSION * self.dim % HEADS:
            raise ValueError(f"dim of Mamba must be a multiple of {HEADS // EXPANSION}, got {self.dim}")


class Recurrent(TokenModel):
    """ESWM-LSTM or ESWM-Mamba. Answers depend on the order of the memories; in training it is random."""

    config: RecurrentConfig

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config, CODECS[config.codec](config.n_states, config.dim))
        self.blocks = nn.ModuleList(CELLS[config.cell](config.dim) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim, bias=False)
        self.action_head = nn.Linear(config.dim, config.n_actions + 1)

    def encode(self, memories: Tensor) -> EncodedBank:
        self.check_length(memories)
        return EncodedBank(memories, self.embed(memories))

    def layers(self, bank: EncodedBank[Tensor], query: Tensor) -> Iterator[Tensor]:
        """The last tokens (B, Q, dim) after each layer; an empty bank is read as one row of padding."""
        shape = query.shape[:2]
        x = (bank.cache[:, None] + self.embed(query)[:, :, None]).flatten(0, 1)  # (B * Q, N, dim)
        last = lengths(bank.memories).clamp(min=1).repeat_interleave(shape[1]) - 1  # (B * Q,)
        rows = torch.arange(len(x), device=x.device)
        for block in self.blocks:
            x = block(x)
            yield x[rows, last].view(*shape, -1)

    def read_out(self, x: Tensor, bank: EncodedBank) -> Prediction:
        return self.classify(self.norm(x))


class LSTMBlock(nn.LSTM):
    """One layer of an LSTM.

    Its cells forget after 1 to `KEPT` tokens at first, evenly (Tallec and Ollivier 2018, "chrono initialization"). As
    PyTorch begins, all forget half at each token, and nothing is learned.
    """

    bias_ih_l0: nn.Parameter
    bias_hh_l0: nn.Parameter

    def __init__(self, dim: int) -> None:
        super().__init__(dim, dim, batch_first=True)
        kept = torch.empty(dim).uniform_(1, KEPT).log()
        nn.init.zeros_(self.bias_hh_l0)
        self.bias_ih_l0.data = torch.cat([-kept / 2, kept, torch.zeros(2 * dim)])  # in, forget, cell, out

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """(S, N, dim) hidden states from tokens (S, N, dim)."""
        return super().forward(x)[0]


class MambaBlock(nn.Module):
    """Pre-norm selective state space with a residual connection, as in Mamba-2 (Dao and Gu 2024, sections 5 to 7).

    Each head keeps a state of 64 numbers for each of its channels. A token says by how much the state of a head decays,
    what each channel adds to it and what is read out of it. All tokens at once: what one reads of another is a product
    of what was written and what is read, times the decay between the two.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.width = EXPANSION * dim
        self.norm = nn.RMSNorm(dim, eps=1e-5)
        self.enter = nn.Linear(dim, 2 * self.width + 2 * STATE + HEADS, bias=False)
        channels = self.width + 2 * STATE
        self.convolution = nn.Parameter(torch.empty(CONVOLUTION, channels).uniform_(-0.5, 0.5))
        self.convolution_bias = nn.Parameter(torch.zeros(channels))
        self.decay_log = nn.Parameter(torch.empty(HEADS).uniform_(1, 16).log())
        self.skip = nn.Parameter(torch.ones(HEADS))
        # Steps are softplus(bias) at first: between 0.001 and 0.1, evenly in their logarithm.
        steps = torch.empty(HEADS).uniform_(math.log(1e-3), math.log(0.1)).exp()
        self.step_bias = nn.Parameter(steps.expm1().log())
        self.gate_norm = nn.RMSNorm(self.width, eps=1e-5)
        self.leave = nn.Linear(self.width, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(S, N, dim) tokens after the block from tokens (S, N, dim)."""
        gate, mixed, step = self.enter(self.norm(x)).split([self.width, self.width + 2 * STATE, HEADS], -1)
        before = F.pad(mixed, (0, 0, CONVOLUTION - 1, 0))  # written out, since gradients of conv1d take long on a CPU
        taps = (before[:, i : i + x.shape[1]] * weight for i, weight in enumerate(self.convolution))
        mixed = F.silu(sum(taps) + self.convolution_bias)
        channel, write, read = mixed.split([self.width, STATE, STATE], -1)
        channel = channel.unflatten(-1, (HEADS, -1)).transpose(1, 2)  # (S, H, N, width / H)
        step = F.softplus(step.float() + self.step_bias).mT  # (S, H, N)
        y = state_space(step, -self.decay_log.exp(), channel, write, read) + self.skip[:, None, None] * channel
        y = self.gate_norm(y.transpose(1, 2).flatten(2) * F.silu(gate))
        return x + self.leave(y)


def state_space(step: Tensor, rate: Tensor, channel: Tensor, write: Tensor, read: Tensor) -> Tensor:
    """(S, H, N, P) what N tokens read of the states that they and those before them wrote.

    A state h of a channel decays and is written to at each token, h = exp(step * rate) * h + step * channel * write,
    and h . read is read of it.

    Args:
        step: (S, H, N), positive.
        rate: (H,), negative.
        channel: (S, H, N, P).
        write, read: (S, N, K).
    """
    passed = (step * rate[:, None]).cumsum(2)  # (S, H, N)
    ahead = torch.ones(step.shape[-1], step.shape[-1], dtype=torch.bool, device=step.device).triu(1)
    decay = (passed[..., :, None] - passed[..., None, :]).masked_fill(ahead, -math.inf).exp()  # (S, H, N, N)
    weight = (read @ write.mT)[:, None] * decay * step[..., None, :]
    return weight.to(channel.dtype) @ channel


CELLS: dict[str, Callable[[int], nn.Module]] = {"lstm": LSTMBlock, "mamba": MambaBlock}
