"""What a model says of queries, of symbols or of views: logits, the answers they give, and their loss."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from eswm_gym.rooms.transitions import ACTION, SOURCE, Problems, parts


class Answer(NamedTuple):
    """The likeliest answers to B x Q queries, as tensors or NumPy arrays.

    Attributes:
        cells: (B, Q, C) int, the masked state; the end state where the action is masked.
        action: (B, Q) int.
        unknown: (B, Q) bool, whether the answer is "I don't know" instead.
    """

    cells: Any
    action: Any
    unknown: Any


class Imagined(NamedTuple):
    """Where B x Q moves end.

    Attributes:
        cells: (B, Q, C, K) float probabilities of the K classes of each cell of the end state. Those of a symbol, its
            only cell, sum to 1 together with `unknown`; those of each cell of a view sum to 1.
        unknown: (B, Q) float probability of "I don't know".
        new: (B, Q) float, how much one would find out there: of a view, how many cells one is expected to see for the
            first time; else the probability of "I don't know".
    """

    cells: Tensor
    unknown: Tensor
    new: Tensor


class PredictionLike(Protocol):
    """What a prediction can do, whatever a state is."""

    @property
    def source(self) -> Tensor: ...

    @property
    def action(self) -> Tensor: ...

    @property
    def end(self) -> Tensor: ...

    def loss(self, problems: Problems) -> Tensor:
        """Mean cross-entropy of the masked components, each query with equal weight."""

    def answer(self, masked: Tensor) -> Answer:
        """The likeliest answers to queries of which a component (B, Q) is masked."""

    def imagined(self) -> Imagined:
        """The probabilities of the end states."""


class Prediction(NamedTuple):
    """What the three heads say of B x Q queries about symbols; the last class of each head is "I don't know".

    Attributes:
        source: (B, Q, n_states + 1) float logits.
        action: (B, Q, n_actions + 1) float logits.
        end: (B, Q, n_states + 1) float logits.
    """

    source: Tensor
    action: Tensor
    end: Tensor

    def head(self, component: int) -> Tensor:
        """Logits of the source (0), action (1) or end (2) head."""
        return self[component]

    def loss(self, problems: Problems) -> Tensor:
        """Mean cross-entropy of the masked components, each query with equal weight."""
        total = torch.zeros((), device=problems.masked.device)
        for component, logits in enumerate(self):
            target = torch.where(problems.unknown == 1, logits.shape[-1] - 1, problems.truth[..., component])
            total = total + F.cross_entropy(
                logits.flatten(0, 1).float(),  # (B * Q, classes)
                torch.where(problems.masked == component, target, -1).flatten(),
                ignore_index=-1,
                reduction="sum",
            )
        return total / problems.masked.numel()

    def answer(self, masked: Tensor) -> Answer:
        """The likeliest answers to queries of which a component (B, Q) is masked."""
        source, action, end = (logits.argmax(-1) for logits in self)
        state = torch.where(masked == SOURCE, source, end)
        no_state, no_action = self.end.shape[-1] - 1, self.action.shape[-1] - 1
        unknown = torch.where(masked == ACTION, action == no_action, state == no_state)
        return Answer(state[..., None], action, unknown)

    def imagined(self) -> Imagined:
        """The probabilities of the end states."""
        p = self.end.float().softmax(-1)
        return Imagined(p[..., None, :-1], p[..., -1], p[..., -1])


class ViewPrediction(NamedTuple):
    """What the heads say of B x Q queries about views.

    Attributes:
        source: (B, Q, 25, 9) float logits of the class of each cell.
        action: (B, Q, 4) float logits, the last one of "I don't know".
        end: (B, Q, 25, 9) float logits.
        unknown: (B, Q, 2) float logits of "I don't know" for source and end.
        new: (B, Q) float, how many cells of the masked view one is expected to see that neither the memories nor the
            given view show. None: the probability of "I don't know" stands for it.
    """

    source: Tensor
    action: Tensor
    end: Tensor
    unknown: Tensor
    new: Tensor | None = None

    def masked_view(self, masked: Tensor) -> Tensor:
        """(B, Q, 25, 9) logits of the view that is masked (B, Q); those of the end where the action is."""
        return torch.where((masked == SOURCE)[..., None, None], self.source, self.end)

    def masked_unknown(self, masked: Tensor) -> Tensor:
        """(B, Q) logits of "I don't know" of the view that is masked (B, Q); those of the end where the action is."""
        return torch.where(masked == SOURCE, self.unknown[..., 0], self.unknown[..., 1])

    def loss(self, problems: Problems) -> Tensor:
        """Mean cross-entropy of the masked components, each query with equal weight.

        A masked view counts as the sum over its cells and, unless "I don't know" is neither right nor wrong, over
        whether it is known. A masked action counts alone: the true one is its target even if it cannot be known.
        """
        masked = problems.masked
        source, action, end = parts(problems.truth)
        view = torch.where((masked == SOURCE)[..., None], source, end)
        logits = self.masked_view(masked).float().permute(0, 3, 1, 2)  # (B, 9, Q, 25)
        of_cells = F.cross_entropy(logits, view, reduction="none").sum(2)
        of_action = F.cross_entropy(self.action.float().transpose(1, 2), action[..., 0], reduction="none")
        of_unknown = F.binary_cross_entropy_with_logits(
            self.masked_unknown(masked).float(), problems.unknown.clamp(min=0).float(), reduction="none"
        )
        of_view = of_cells + of_unknown * (problems.unknown >= 0)
        return torch.where(masked == ACTION, of_action, of_view).mean()

    def answer(self, masked: Tensor) -> Answer:
        """The likeliest answers to queries of which a component (B, Q) is masked."""
        action = self.action.argmax(-1)
        no_action = self.action.shape[-1] - 1
        unknown = torch.where(masked == ACTION, action == no_action, self.masked_unknown(masked) > 0)
        return Answer(self.masked_view(masked).argmax(-1), action, unknown)

    def imagined(self) -> Imagined:
        """The probabilities of the end states."""
        unknown = self.unknown[..., 1].float().sigmoid()
        return Imagined(self.end.float().softmax(-1), unknown, unknown if self.new is None else self.new)
