"""The Episodic Spatial World Model: what every architecture takes and gives (paper: "Episodic Spatial World Model")."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from eswm_gym.rooms.transitions import MASKED, parts
from eswm_gym.world_model.codecs import Codec
from eswm_gym.world_model.predictions import Imagined, PredictionLike

CacheT = TypeVar("CacheT")


@dataclass(frozen=True)
class EncodedBank(Generic[CacheT]):
    """B memory banks as an architecture has read them; stale as soon as a bank changes.

    Attributes:
        memories: (B, N, W) int, the banks.
        cache: what the architecture keeps of them.
    """

    memories: Tensor
    cache: CacheT = None  # type: ignore[assignment]


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

    Memories are (B, N, W) int tensors of transitions in any order, padding rows all -1. Queries are (B, Q, W), each
    with one component -1. A state has C cells, as the codec says: 1 for symbols; and W = 2 C + 1.

    An architecture defines `encode`, `layers` and `read_out`; or `predict` in place of the last two.
    """

    config: ModelConfig
    codec: Codec
    blocks: nn.ModuleList
    loops: int = 1  # how often the blocks are applied; training may begin with fewer than the config says
    latent_radius: float | None = None  # how near states are neighbours in the latent space; from the model's JSON

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config

    @abstractmethod
    def encode(self, memories: Tensor) -> EncodedBank:
        """Read the banks once, so that `predict` can answer any number of queries.

        Raises:
            ValueError: if the banks are longer than `config.max_memories`.
        """

    def layers(self, bank: EncodedBank, query: Tensor) -> Iterator[Tensor]:
        """The tokens (B, Q, dim) of (B, Q, W) queries after each block in turn."""
        raise NotImplementedError(f"{type(self).__name__} has no tokens")

    def read_out(self, x: Tensor, bank: EncodedBank) -> PredictionLike:
        """The prediction from query tokens (B, Q, dim) after the last block."""
        raise NotImplementedError(f"{type(self).__name__} has no tokens")

    def predict(self, bank: EncodedBank, query: Tensor) -> PredictionLike:
        """Answer (B, Q, W) queries from encoded banks."""
        *_, x = self.layers(bank, query)
        return self.read_out(x, bank)

    def activations(self, bank: EncodedBank, query: Tensor) -> Tensor:
        """(depth, B, Q, dim) the tokens of (B, Q, W) queries after each block (paper: "ISOMAP").

        Raises:
            NotImplementedError: by models that have no tokens.
        """
        return torch.stack(list(self.layers(bank, query)))

    def forward(self, memories: Tensor, query: Tensor) -> PredictionLike:
        return self.predict(self.encode(memories), query)

    def starts_from(self, other: ESWM) -> bool:
        """Take over the weights of another model, and say whether it could: its shape has to be the same."""
        if type(other) is not type(self) or other.config != self.config:
            return False
        self.load_state_dict(other.state_dict())
        return True

    @property
    def device(self) -> torch.device:
        """Where the model is; the CPU if it has no weights."""
        return next((weight.device for weight in self.parameters()), torch.device("cpu"))

    def check_length(self, memories: Tensor) -> None:
        """Refuse (B, N, W) banks that are longer than any the model was trained on."""
        if memories.shape[1] > self.config.max_memories:
            raise ValueError(
                f"a bank of {memories.shape[1]} memories is longer than the {self.config.max_memories} that the model "
                "was trained for; keep fewer, as MemoryBank(capacity=...) does"
            )

    def check_actions(self, action: Tensor) -> None:
        """Refuse actions that do not exist.

        Raises:
            ValueError: naming the first of them.
        """
        outside = (action < 0) | (action >= self.config.n_actions)
        if outside.any():
            wrong, last = int(action[outside][0]), self.config.n_actions - 1
            raise ValueError(f"action {wrong} is outside the actions 0 ... {last}")

    @torch.inference_mode()
    def imagine(self, bank: EncodedBank | Tensor, source: Tensor, action: Tensor) -> Imagined:
        """Imagine where moves end.

        Args:
            bank: B encoded banks; or (B, N, W) int ones, which is faster if nothing else will be asked of them.
            source: (B, Q, C) int, the states where they start.
            action: (B, Q) int.

        Raises:
            ValueError: if a state or an action is outside the vocabulary.
        """
        memories = bank.memories if isinstance(bank, EncodedBank) else bank
        for held in parts(memories)[::2]:
            self.codec.check(held[held >= 0])
        self.codec.check(source)
        self.check_actions(action)
        query = torch.cat([source, action[..., None], torch.full_like(source, MASKED)], 2)
        prediction = self.predict(bank, query) if isinstance(bank, EncodedBank) else self(bank, query)
        return prediction.imagined()
