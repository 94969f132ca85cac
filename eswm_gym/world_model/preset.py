"""What a training run needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eswm_gym.rooms.transitions import Source
from eswm_gym.world_model.eswm import ModelConfig


@dataclass(frozen=True)
class Preset:
    """A model, what it is trained on, how, and what it is measured on.

    Attributes:
        model: its shape.
        sources: mixture of training problems.
        lessons: easier problems that come before it, as (batches, source), one after the other.
        settings: named problems of the held-out evaluation.
        rooms, queries: banks in a training batch and queries of each.
        lr: peak learning rate.
        decay_from: share of the run after which the learning rate falls linearly to nearly nothing.
        all_loops_from: share of a run from random weights after which the model's loops are all applied; until then it
            begins with one and gets the others one by one.

    Raises:
        ValueError: if the model has another number of actions than a source or setting, or takes shorter banks; if
            all_loops_from is outside [0, 1); or if loops are to be added to a model that has one.
    """

    model: ModelConfig
    sources: tuple[Source, ...]
    settings: Mapping[str, Source]
    rooms: int = 32
    queries: int = 64
    lr: float = 2e-3
    decay_from: float = 0.1
    lessons: tuple[tuple[int, Source], ...] = ()
    all_loops_from: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.all_loops_from < 1:
            raise ValueError(f"all_loops_from must be a share from 0 to below 1, got {self.all_loops_from}")
        if self.all_loops_from and getattr(self.model, "loops", 1) == 1:
            raise ValueError(f"{self.model} applies its blocks once, but all_loops_from is {self.all_loops_from}")
        for source in (*self.sources, *self.settings.values(), *(source for _, source in self.lessons)):
            if source.n_actions != self.model.n_actions:
                raise ValueError(f"{source} has {source.n_actions} actions, the model has {self.model.n_actions}")
            if source.capacity > self.model.max_memories:
                raise ValueError(f"{source} has banks of {source.capacity}, more than {self.model.max_memories}")
