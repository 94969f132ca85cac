"""The Episodic Spatial World Model: what every architecture takes and gives (paper: "Episodic Spatial World Model")."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.world_model.codecs import IntegerCodec

SOURCE, ACTION, END = 0, 1, 2
MASKED = -1  # stands for the masked component of a query, and fills padding rows of a bank


class Prediction(NamedTuple):
    """What the three heads say of B x Q queries; the last class of each head is "I don't know".

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

    def answer(self, masked: Tensor) -> Tensor:
        """(B, Q) int, the likeliest class of the component that is masked, (B, Q) int."""
        return torch.stack([logits.argmax(-1) for logits in self], 2).gather(2, masked[..., None])[..., 0]

    def loss(self, target: Tensor, masked: Tensor) -> Tensor:
        """Cross-entropy of the masked components, each query with equal weight.

        Args:
            target: (B, Q) int, class of the masked component; the last class of its head where unsolvable.
            masked: (B, Q) int, which component is masked.
        """
        total = torch.zeros((), device=target.device)
        for component in (SOURCE, ACTION, END):
            total = total + F.cross_entropy(
                self.head(component).flatten(0, 1).float(),
                torch.where(masked == component, target, -1).flatten(),
                ignore_index=-1,
                reduction="sum",
            )
        return total / target.numel()


@dataclass(frozen=True)
class EncodedBank:
    """B memory banks as an architecture has read them; stale as soon as a bank changes.

    Attributes:
        memories: (B, N, 3) int, the banks.
        cache: what the architecture keeps of them.
    """

    memories: Tensor
    cache: Any = None


@dataclass(frozen=True)
class ModelConfig:
    """What every architecture needs to know.

    Attributes:
        n_states: size of the vocabulary; states are 0 ... n_states - 1.
        n_actions: number of actions.
        dim: width of a token.
        layers: number of blocks.
        max_memories: longest bank that the model is trained for.
    """

    n_states: int = 37
    n_actions: int = 6
    dim: int = 128
    layers: int = 6
    max_memories: int = 74

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class ESWM(nn.Module, ABC):
    """f(M, q): completes queries about a room from its memory bank.

    Memories are (B, N, 3) int tensors of (s_s, a, s_e) in any order, padding rows all -1. Queries are
    (B, Q, 3), each with one component -1.
    """

    config: ModelConfig
    codec: IntegerCodec
    blocks: nn.ModuleList
    latent_radius: float | None = None  # how near states are neighbours in the latent space; from the model's JSON

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @abstractmethod
    def encode(self, memories: Tensor) -> EncodedBank:
        """Read the banks once, so that `predict` can answer any number of queries.

        Raises:
            ValueError: if the banks are longer than `config.max_memories`.
        """

    @abstractmethod
    def predict(self, bank: EncodedBank, query: Tensor) -> Prediction:
        """Answer (B, Q, 3) queries from encoded banks."""

    @abstractmethod
    def activations(self, bank: EncodedBank, query: Tensor) -> Tensor:
        """(depth, B, Q, dim) how each block in turn leaves the tokens of (B, Q, 3) queries (paper: "ISOMAP")."""

    def check_length(self, memories: Tensor) -> None:
        """Refuse (B, N, 3) banks that are longer than any the model was trained on."""
        if memories.shape[1] > self.config.max_memories:
            raise ValueError(
                f"a bank of {memories.shape[1]} memories is longer than the {self.config.max_memories} that the model "
                "was trained for; keep fewer, as MemoryBank(capacity=...) does"
            )

    def check_actions(self, action: Tensor) -> None:
        """Refuse actions that there are not.

        Raises:
            ValueError: naming the first of them.
        """
        outside = (action < 0) | (action >= self.config.n_actions)
        if outside.any():
            wrong, last = int(action[outside][0]), self.config.n_actions - 1
            raise ValueError(f"action {wrong} is outside the actions 0 ... {last}")

    def forward(self, memories: Tensor, query: Tensor) -> Prediction:
        return self.predict(self.encode(memories), query)

    @torch.inference_mode()
    def imagine(self, bank: EncodedBank, source: Tensor, action: Tensor) -> Tensor:
        """Imagine where moves end.

        Args:
            bank: B encoded banks.
            source: (B, Q) int states.
            action: (B, Q) int actions.

        Returns:
            (B, Q, n_states + 1) float probabilities of the end state, the last one of "I don't know".

        Raises:
            ValueError: if a state or an action is outside the vocabulary.
        """
        held = bank.memories[..., ::2]
        self.codec.check(held[held >= 0])
        self.codec.check(source)
        self.check_actions(action)
        query = torch.stack([source, action, torch.full_like(source, MASKED)], dim=2)
        return self.predict(bank, query).end.float().softmax(-1)
