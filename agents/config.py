"""The options of an ESWMAgent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from eswm_gym.agents.exploration import RULES
from eswm_gym.agents.planning import COSTS
from eswm_gym.checks import require_choices, require_kind

ALGORITHMS = ("dijkstra", "astar", "greedy")


@dataclass(frozen=True)
class AgentConfig:
    """How an ESWMAgent remembers, plans and explores.

    Attributes:
        trust_memory: whether a transition in the bank is a fact. False: every transition is imagined, as in the paper;
            and of views, which may have errors then, the model says what they show, see `UncertainViews`.
        adapt: whether the agent deletes outdated memories. False: it only adds what happens.
        exploration: "frontier", "frontier-unordered", or "uncertainty", the paper's rule; see
            `eswm_gym.agents.exploration`.
        algorithm: "dijkstra", "astar" or "greedy"; see `ESWMAgent.plan`.
        cost: "steps", "tries", "caution" or "uncertainty", what a plan minimises; see `eswm_gym.agents.search`. None:
            "steps" in the rooms of this package, "caution" in worlds of others, where a wrong step may end the episode.
        capacity: the greatest number of transitions in the bank; None: as many as the model was trained for.
        confidence: an outcome of at most this probability is uncertain.
        window: the model reads windows of so many states of a world of any size, see `LargeMap`. None: it reads the
            bank as a whole.
        beta, gamma: weights of the entropy in the paper's rule (algorithm "Explore Function").

    Raises:
        ValueError: naming the option and its value, if it is not one of the choices or out of range.
    """

    trust_memory: bool = True
    adapt: bool = True
    exploration: str = "frontier"
    algorithm: str = "dijkstra"
    cost: str | None = None
    capacity: int | None = None
    confidence: float = 0.8
    window: int | None = None
    beta: float = 0.2
    gamma: float = 0.1

    def __post_init__(self) -> None:
        require_choices(
            exploration=(self.exploration, RULES),
            algorithm=(self.algorithm, ALGORITHMS),
            cost=(self.cost, (None, *COSTS)),
        )
        require_kind(bool, trust_memory=self.trust_memory, adapt=self.adapt)
        require_kind(int, optional=True, capacity=self.capacity, window=self.window)
        require_kind(float, confidence=self.confidence, beta=self.beta, gamma=self.gamma)
        fits = self.trust_memory and self.names_frontiers and self.algorithm == "dijkstra"
        if self.window is not None and not fits:
            raise ValueError(
                f"a window of {self.window} goes with trust_memory=True, exploration 'frontier' or "
                f"'frontier-unordered' and algorithm 'dijkstra', got {self.trust_memory}, {self.exploration!r} and "
                f"{self.algorithm!r}"
            )
        if not 0 <= self.confidence <= 1:
            raise ValueError(f"confidence must be a probability, from 0 to 1, got {self.confidence}")
        for name, weight in (("beta", self.beta), ("gamma", self.gamma)):
            if not math.isfinite(weight):
                raise ValueError(f"{name} must be a finite number, got {weight}")

    @property
    def names_frontiers(self) -> bool:
        """Whether exploring means going to the nearest frontier, whose places have names."""
        return self.exploration != "uncertainty"

    def capacity_of(self, most: int) -> int:
        """The greatest number of transitions in the bank of a model that was trained for `most`.

        Raises:
            ValueError: if the capacity is not from 1 to `most`.
        """
        if self.capacity is None:
            return most
        if not 0 < self.capacity <= most:
            raise ValueError(f"capacity must be 1 to the model's {most} memories, got {self.capacity}")
        return self.capacity
