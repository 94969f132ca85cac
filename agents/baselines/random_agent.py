"""Random actions: the floor."""

from __future__ import annotations

import numpy as np

from eswm_gym.agents.base import Agent, Info, Observation, allowed_actions
from eswm_gym.rooms import N_ACTIONS


class RandomAgent(Agent):
    """Chooses uniformly among the actions that the mask allows, all `n_actions` where it gets none."""

    def __init__(self, seed: int | None = None, n_actions: int = N_ACTIONS) -> None:
        self.rng, self.n_actions = np.random.default_rng(seed), n_actions

    def spawn(self, seed: int | None = None) -> RandomAgent:
        return RandomAgent(seed, self.n_actions)

    def reset(self, obs: Observation, info: Info) -> None:
        return None

    def act(self, obs: Observation, info: Info) -> int:
        return int(self.rng.choice(allowed_actions(info, self.n_actions)))
