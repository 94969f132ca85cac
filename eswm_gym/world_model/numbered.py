"""A world model under other numbers of actions, such as those of an environment that somebody else wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from eswm_gym.rooms.lattice.vocabulary import CODES
from eswm_gym.rooms.transitions import ACTION, MASKED
from eswm_gym.world_model.eswm import ESWM, EncodedBank, ModelConfig
from eswm_gym.world_model.predictions import Prediction, PredictionLike


class NumberedActions(ESWM):
    """A model of symbols whose action i is another model's action numbers[i]; it shares that model's weights.

    Args:
        model: frozen.
        numbers: the model's number of each action, all different; see `eswm_gym.rooms.move_numbers`, and
            `eswm_gym.rooms.CODES` for actions of which nothing is known.

    Raises:
        ValueError: naming the numbers, if the model has no such actions or one comes twice.
    """

    numbers: Tensor

    def __init__(self, model: ESWM, numbers: Sequence[int] | np.ndarray) -> None:
        n_actions, numbers = model.config.n_actions, [int(number) for number in numbers]
        if not numbers or len(set(numbers)) < len(numbers) or min(numbers) < 0 or max(numbers) >= n_actions:
            raise ValueError(f"actions must be different numbers from 0 to {n_actions - 1}, got {numbers}")
        like = model.config
        super().__init__(ModelConfig(like.n_states, len(numbers), like.dim, like.layers, like.max_memories))
        self.model, self.codec, self.latent_radius = model, model.codec, model.latent_radius
        # The last one stands for "I don't know" among the logits.
        self.register_buffer("numbers", torch.tensor([*numbers, MASKED], device=model.device), persistent=False)

    @property
    def has_codes(self) -> bool:
        """Whether an action is a code, so that the model has to find out from a bank what it does."""
        return not set(CODES).isdisjoint(self.numbers[:-1].tolist())

    def encode(self, memories: Tensor) -> EncodedBank:
        return EncodedBank(memories, self.model.encode(self._translate(memories)))

    def layers(self, bank: EncodedBank, query: Tensor) -> Iterator[Tensor]:
        return self.model.layers(bank.cache, self._translate(query))

    def read_out(self, x: Tensor, bank: EncodedBank) -> Prediction:
        return self._numbered(self.model.read_out(x, bank.cache))

    def predict(self, bank: EncodedBank, query: Tensor) -> Prediction:
        return self._numbered(self.model.predict(bank.cache, self._translate(query)))

    def forward(self, memories: Tensor, query: Tensor) -> Prediction:
        return self._numbered(self.model(self._translate(memories), self._translate(query)))

    def _numbered(self, prediction: PredictionLike) -> Prediction:
        """The other model's prediction, with the logits of these actions."""
        return Prediction(prediction.source, prediction.action[..., self.numbers], prediction.end)

    def _translate(self, rows: Tensor) -> Tensor:
        """Rows (B, N, 3) with the other model's numbers of actions."""
        rows = rows.clone()
        action = rows[..., ACTION]
        rows[..., ACTION] = torch.where(action < 0, MASKED, self.numbers[:-1][action.clamp(min=0)])
        return rows
