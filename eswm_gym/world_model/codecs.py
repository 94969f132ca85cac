"""Codecs: states to embeddings and tokens to logits over states; architectures need not know what a state is."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
