"""Codecs: states to embeddings and tokens to logits over states; architectures need not know what a state is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from eswm_gym.rooms.grid import N_CELLS, N_CLASSES


class IntegerCodec(nn.Module):
    """States are integers 0 ... n_states - 1, each its own symbol (paper: "Random Wall").

    Args:
        n_states: size of the vocabulary; class n_states of a head is "I don't know".
        dim: width of a token.
        embeddings: whether states are embedded. Without, a state is only marked as given or masked.
        heads: whether the codec reads out a logit for each class.
    """

    def __init__(self, n_states: int, dim: int, embeddings: bool = True, heads: bool = True) -> None:
        super().__init__()
        self.n_states = n_states
        self.embeddings = embeddings
        rows = n_states + 1 if embeddings else 2
        self.embed_source = nn.Embedding(rows, dim)  # the last row stands for "masked"
        self.embed_end = nn.Embedding(rows, dim)
        if heads:
            self.source_head = nn.Linear(dim, n_states + 1)
            self.end_head = nn.Linear(dim, n_states + 1)

    def embed(self, source: Tensor, end: Tensor) -> Tensor:
        """(..., dim) sum of the embeddings of source and end states (...), -1 for masked."""
        return self._look_up(self.embed_source, source) + self._look_up(self.embed_end, end)

    def _look_up(self, table: nn.Embedding, states: Tensor) -> Tensor:
        known = states if self.embeddings else torch.zeros_like(states)
        return table(torch.where(states < 0, table.num_embeddings - 1, known))

    def read_out(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(..., n_states + 1) logits of source and end from tokens (..., dim)."""
        return self.source_head(x), self.end_head(x)

    def check(self, states: Tensor) -> None:
        """Refuse states outside the vocabulary; a masked one is outside as well.

        Raises:
            ValueError: naming the first of them.
        """
        outside = (states < 0) | (states >= self.n_states)
        if outside.any():
            raise ValueError(f"state {int(states[outside][0])} is outside the vocabulary 0 ... {self.n_states - 1}")


class EgocentricCodec(nn.Module):
    """States are egocentric views of 25 cells, each of nine classes (paper: "MiniGrid" in "Training Details").

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

    def check(self, states: Tensor) -> None:
        """Refuse cells (...) of views that are of none of the nine classes; masked ones are outside as well.

        Raises:
            ValueError: naming the first of them.
        """
        outside = (states < 0) | (states >= N_CLASSES)
        if outside.any():
            raise ValueError(f"cell {int(states[outside][0])} of a view is outside the classes 0 ... {N_CLASSES - 1}")
