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
STATE = 16  # numbers that Mamba keeps of each channel
KEPT = 12  # tokens that cells of an LSTM remember at first, at most
CHUNK = 32  # sequences that Mamba scans at a time: as many as a processor's cache holds


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
    """Pre-norm selective state space with a residual connection (Gu and Dao 2024, section 3.4).

    Each of 2 dim channels is convolved over the last four tokens, then keeps a state of 16 numbers that decay and take
    up the channel as the token says.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        width, rank = EXPANSION * dim, math.ceil(dim / 16)
        self.norm = nn.RMSNorm(dim, eps=1e-5)
        self.enter = nn.Linear(dim, 2 * width, bias=False)
        self.convolution = nn.Conv1d(width, width, CONVOLUTION, groups=width, padding=CONVOLUTION - 1)
        self.select = nn.Linear(width, rank + 2 * STATE, bias=False)
        self.step = nn.Linear(rank, width)
        self.decay_log = nn.Parameter(torch.arange(1.0, STATE + 1).log().repeat(width, 1))
        self.skip = nn.Parameter(torch.ones(width))
        self.leave = nn.Linear(width, dim, bias=False)
        nn.init.uniform_(self.step.weight, -(rank**-0.5), rank**-0.5)
        # Steps are softplus(bias) at first: between 0.001 and 0.1, evenly in their logarithm.
        steps = torch.empty(width).uniform_(math.log(1e-3), math.log(0.1)).exp()
        self.step.bias.data.copy_(steps.expm1().log())
        self.advance, self.advance_gradient = advance, advance_gradient

    def forward(self, x: Tensor) -> Tensor:
        """(S, N, dim) tokens after the block from tokens (S, N, dim)."""
        channel, gate = self.enter(self.norm(x.to(self.skip.dtype))).chunk(2, -1)
        channel = F.silu(self.convolution(channel.mT)[..., : x.shape[1]].mT)
        step, write, read = self.select(channel).split([self.step.in_features, STATE, STATE], -1)
        step = F.softplus(self.step(step))
        y = self.scan(step, step * channel, write, read) + self.skip * channel
        return x + self.leave(y * F.silu(gate))

    def scan(self, step: Tensor, taken: Tensor, write: Tensor, read: Tensor) -> Tensor:
        """(S, N, W) the outputs of all channels' states after each token, some sequences at a time."""
        rate = -self.decay_log.exp()
        inputs = (v.to(rate.dtype).transpose(0, 1).split(CHUNK, 1) for v in (step, taken, write, read))
        with torch.autocast(rate.device.type, enabled=False):
            outputs = [
                Scan.apply(self.advance, self.advance_gradient, s, u, rate, w, r)
                for s, u, w, r in zip(*inputs, strict=True)
            ]
        return torch.cat(outputs, 1).transpose(0, 1)

    def compile(self, *args, **kwargs) -> None:
        """Compile the steps of the scan alone: unrolled, all of them would take minutes."""
        self.advance = torch.compile(advance, *args, **kwargs)
        self.advance_gradient = torch.compile(advance_gradient, *args, **kwargs)


CELLS: dict[str, Callable[[int], nn.Module]] = {"lstm": LSTMBlock, "mamba": MambaBlock}


def advance(h: Tensor, step: Tensor, taken: Tensor, rate: Tensor, write: Tensor, read: Tensor) -> tuple[Tensor, Tensor]:
    """The state (S, W, K) after a token and its output (S, W).

    Args:
        h: (S, W, K) the state before it.
        step, taken: (S, W).
        rate: (W, K), negative.
        write, read: (S, K).
    """
    h = (step[..., None] * rate).exp() * h + taken[..., None] * write[:, None]
    return h, (h * read[:, None]).sum(-1)


def advance_gradient(
    dh: Tensor, dy: Tensor, before: Tensor, h: Tensor,
    step: Tensor, taken: Tensor, rate: Tensor, write: Tensor, read: Tensor,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The gradient of `advance`: of the state before, step, taken, rate, write and read.

    Args:
        dh: (S, W, K), from what comes after the token.
        dy: (S, W).
        before, h: (S, W, K) the state before and after the token.
    """
    dh = dh + dy[..., None] * read[:, None]
    d_before = dh * (step[..., None] * rate).exp()
    d_exponent = d_before * before
    d_step, d_rate = (d_exponent * rate).sum(-1), (d_exponent * step[..., None]).sum(0)
    d_taken, d_write = (dh * write[:, None]).sum(-1), (dh * taken[..., None]).sum(1)
    return d_before, d_step, d_taken, d_rate, d_write, (h * dy[..., None]).sum(1)


class Scan(torch.autograd.Function):
    """`advance` from token to token: at these lengths a loop is cheaper than a parallel scan.

    Its gradient is written out, so that no state is kept between the passes and both steps can be compiled.

    Args of `Scan.apply`:
        advance, gradient: those above, compiled or not.
        step, taken: (N, S, W) float.
        rate: (W, K), negative.
        write, read: (N, S, K).

    Returns:
        (N, S, W).
    """

    @staticmethod
    def forward(ctx, advance, gradient, step, taken, rate, write, read):  # type: ignore[override]
        step, taken, write, read = (v.contiguous() for v in (step, taken, write, read))
        ctx.advance, ctx.gradient = advance, gradient
        ctx.save_for_backward(step, taken, rate, write, read)
        h, y = step.new_zeros(*step.shape[1:], rate.shape[1]), []
        for s, u, w, r in zip(step, taken, write, read, strict=True):
            h, output = advance(h, s, u, rate, w, r)
            y.append(output)
        return torch.stack(y)

    @staticmethod
    def backward(ctx, dy):  # type: ignore[override]
        step, taken, rate, write, read = ctx.saved_tensors
        states = [step.new_zeros(*step.shape[1:], rate.shape[1])]
        for s, u, w, r in zip(step, taken, write, read, strict=True):
            states.append(ctx.advance(states[-1], s, u, rate, w, r)[0])
        dh, gradients = torch.zeros_like(states[0]), []
        for t in reversed(range(len(step))):
            inputs = step[t], taken[t], rate, write[t], read[t]
            dh, *rest = ctx.gradient(dh, dy[t].contiguous(), states[t], states[t + 1], *inputs)
            gradients.append(rest)
        d_step, d_taken, d_rate, d_write, d_read = (torch.stack(g[::-1]) for g in zip(*gradients, strict=True))
        return None, None, d_step, d_taken, d_rate.sum(0), d_write, d_read
