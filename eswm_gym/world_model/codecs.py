"""Codecs: states to embeddings and tokens to logits over states; architectures need not know what a state is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.rooms.grid import N_CELLS, N_CLASSES


class Codec(nn.Module, ABC):
    """What a state is to a model.

    Attributes:
        cells: C, cells of a state.
        n_classes: K, classes of a cell.
        refusal: message about a cell of no class, with places for the cell and the last class.
    """

    cells: int
    n_classes: int
    refusal: str

    @abstractmethod
    def embed(self, source: Tensor, end: Tensor) -> Tensor:
        """(..., dim) sum of the embeddings of source and end states, -1 for masked: (...) symbols or (..., C) cells."""

    @abstractmethod
    def read_out(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of source and end from tokens (..., dim)."""

    def check(self, states: Tensor) -> None:
        """Refuse states that have a cell of no class; a masked one is refused as well.

        Raises:
            ValueError: naming the first such cell.
        """
        outside = (states < 0) | (states >= self.n_classes)
        if outside.any():
            raise ValueError(self.refusal.format(int(states[outside][0]), self.n_classes - 1))


class IntegerCodec(Codec):
    """States are integers 0 ... n_states - 1, each its own symbol (paper: "Random Wall").

    Args:
        n_states: size of the vocabulary; class n_states of a head is "I don't know".
        dim: width of a token.
        embeddings: whether states are embedded. Without, a state is only marked as given or masked.
        heads: whether the codec reads out a logit for each class.
    """

    cells = 1
    refusal = "state {} is outside the vocabulary 0 ... {}"

    def __init__(self, n_states: int, dim: int, embeddings: bool = True, heads: bool = True) -> None:
        super().__init__()
        self.n_classes = n_states
        self.embeddings = embeddings
        self.n_outputs = n_states + 1  # of a head
        rows = n_states + 1 if embeddings else 2
        self.embed_source = nn.Embedding(rows, dim)  # the last row stands for "masked"
        self.embed_end = nn.Embedding(rows, dim)
        if heads:
            self.source_head = nn.Linear(dim, self.n_outputs)
            self.end_head = nn.Linear(dim, self.n_outputs)

    def embed(self, source: Tensor, end: Tensor) -> Tensor:
        """(..., dim) sum of the embeddings of source and end states (...), -1 for masked."""
        return self.look_up(self.embed_source, source) + self.look_up(self.embed_end, end)

    def look_up(self, table: nn.Embedding, states: Tensor) -> Tensor:
        """(..., dim) the embeddings of states (...) in one of the two tables."""
        known = states if self.embeddings else torch.zeros_like(states)
        return table(torch.where(states < 0, table.num_embeddings - 1, known))

    def read_out(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(..., n_states + 1) logits of source and end from tokens (..., dim)."""
        return self.to_logits(self.source_head(x)), self.to_logits(self.end_head(x))

    def to_logits(self, outputs: Tensor) -> Tensor:
        """(..., n_states + 1) logits from what a head of the codec puts out."""
        return outputs


class NameCodec(IntegerCodec):
    """States are names: a model knows of two only whether they are equal, so that any world's states can be renamed to
    0 ... n_states - 1 while it looks at them."""

    def __init__(self, n_states: int, dim: int) -> None:
        super().__init__(n_states, dim, embeddings=False, heads=False)


class BinaryCodec(IntegerCodec):
    """States are numbers whose bits are what the model knows of them (paper: "Open Arena" in "Training Details").

    Each bit is embedded by itself and the embeddings stand side by side. The read-out is one binary classification for
    each bit, and one for "I don't know", so that a state which was never seen in training has a probability too.

    Args:
        n_states: size of the vocabulary, a power of two; class n_states of a head is "I don't know".
        dim: width of a token, a multiple of the number of bits.
        heads: whether the codec reads out a logit for each class.
    """

    bits: Tensor

    def __init__(self, n_states: int, dim: int, heads: bool = True) -> None:
        n_bits = (n_states - 1).bit_length()
        if n_states != 2**n_bits or dim % n_bits:
            raise ValueError(f"{n_states} states are not whole bits, or dim {dim} is not a multiple of their number")
        super().__init__(n_states, dim, embeddings=False, heads=False)
        self.embed_source, self.embed_end = (nn.Embedding(3 * n_bits, dim // n_bits) for _ in range(2))
        for table in (self.embed_source, self.embed_end):  # the values of a bit are opposite at first
            table.weight.data[1::3] = -table.weight.data[0::3]
        self.n_outputs = n_bits + 1
        if heads:
            self.source_head, self.end_head = (nn.Linear(dim, self.n_outputs) for _ in range(2))
        bits = torch.arange(n_states)[:, None] >> torch.arange(n_bits) & 1
        self.register_buffer("bits", bits.bool(), persistent=False)

    def look_up(self, table: nn.Embedding, states: Tensor) -> Tensor:
        """Rows 3 b, 3 b + 1 and 3 b + 2 of a table stand for bit b being 0, 1 and masked."""
        value = torch.where(states[..., None] < 0, 2, self.bits[states.clamp(min=0)].long())
        return table(value + 3 * torch.arange(value.shape[-1], device=value.device)).flatten(-2)

    def to_logits(self, outputs: Tensor) -> Tensor:
        """(..., n_states + 1) log-probabilities, for a state the sum of those of its bits."""
        bit, unknown = outputs[..., None, :-1].float(), outputs[..., -1:].float()
        state = torch.where(self.bits, F.logsigmoid(bit), F.logsigmoid(-bit)).sum(-1)  # (..., n_states)
        return torch.cat([state + F.logsigmoid(-unknown), F.logsigmoid(unknown)], -1)


CodecName = Literal["integer", "binary"]
CODECS: dict[str, type[IntegerCodec]] = {"integer": IntegerCodec, "binary": BinaryCodec}  # of symbols


class ViewCodec(Codec):
    """States are egocentric views of 25 cells, each of nine classes; for architectures that embed no whole views."""

    cells = N_CELLS
    n_classes = N_CLASSES
    refusal = "cell {} of a view is outside the classes 0 ... {}"

    def embed(self, source: Tensor, end: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} embeds no views")

    def read_out(self, x: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError(f"{type(self).__name__} has no heads")


class EgocentricCodec(ViewCodec):
    """Embeds and predicts views as the paper does ("MiniGrid" in "Training Details").

    Each cell is embedded by itself; the embeddings side by side are projected to the width of a token. The read-out is
    25 classifications.

    Args:
        dim: width of a token.
        cell_dim: width of the embedding of a cell.
    """

    def __init__(self, dim: int, cell_dim: int = 64) -> None:
        super().__init__()
        self.embed_cell = nn.Embedding(N_CLASSES + 1, cell_dim)  # the last row stands for "masked"
        self.project_source = nn.Linear(N_CELLS * cell_dim, dim)
        self.project_end = nn.Linear(N_CELLS * cell_dim, dim)
        self.source_head = nn.Linear(dim, N_CELLS * N_CLASSES)
        self.end_head = nn.Linear(dim, N_CELLS * N_CLASSES)

    def embed(self, source: Tensor, end: Tensor) -> Tensor:
        """(..., dim) sum of the embeddings of source and end views (..., 25), -1 for masked."""
        return self.project_source(self._cells(source)) + self.project_end(self._cells(end))

    def _cells(self, view: Tensor) -> Tensor:
        return self.embed_cell(torch.where(view < 0, N_CLASSES, view)).flatten(-2)

    def read_out(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(..., 25, 9) logits of source and end from tokens (..., dim)."""
        shape = (N_CELLS, N_CLASSES)
        return self.source_head(x).unflatten(-1, shape), self.end_head(x).unflatten(-1, shape)
