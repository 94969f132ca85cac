"""Random actions: the floor."""

from __future__ import annotations

import numpy as np

from eswm_gym.agents.base import Agent, Info, Observation, allowed_actions


class RandomAgent(Agent):
    """Chooses uniformly among the actions that the mask allows."""

    def __init__(self, seed: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)

    def spawn(self, seed: int | None = None) -> RandomAgent:
        return RandomAgent(seed)

    def reset(self, obs: Observation, info: Info) -> None:
        return None

    def act(self, obs: Observation, info: Info) -> int:
        return int(self.rng.choice(allowed_actions(info)))
