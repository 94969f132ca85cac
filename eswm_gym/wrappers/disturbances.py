"""What goes wrong in a room: actions that slip, states seen wrongly, walls that move, places that look alike."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from eswm_gym.envs.lattice_room import LatticeRoomEnv
from eswm_gym.rooms.transitions import END, SOURCE
from eswm_gym.wrappers.episode_wrapper import EpisodeWrapper

TRIES = 20  # to move a wall without cutting off the goal


class Disturbance(EpisodeWrapper):
    """One kind of disturbance, with a stream of random numbers of its own that `reset(seed=...)` begins anew.

    Args:
        env: a room on a lattice whose states are numbers.
        probability: of the disturbance at each step, from 0 to 1.

    Raises:
        ValueError: if that is no probability, or the environment is no such room.
    """

    def __init__(self, env: gym.Env, probability: float) -> None:
        if not 0 <= probability <= 1:
            raise ValueError(f"probability must lie between 0 and 1, got {probability}")
        _require_room(self, env)
        gym.utils.RecordConstructorArgs.__init__(self, probability=probability)
        super().__init__(env)
        self.probability = probability
        self.random = np.random.default_rng()

    def begin(
        self, obs: dict[str, Any], info: dict[str, Any], seed: int | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if seed is not None:
            self.random = np.random.default_rng([seed, 2])  # not the stream that draws the room
        self._mask = info["action_mask"]
        return self._shown(obs), info

    def follow(
        self, action: Any, obs: dict[str, Any], reward: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        self._mask = info["action_mask"]
        return self._shown(obs), reward, terminated, truncated, info

    def _happens(self) -> bool:
        return bool(self.random.random() < self.probability)

    def _shown(self, obs: dict[str, Any]) -> dict[str, Any]:
        """What the agent sees of an observation."""
        return obs


class Slips(Disturbance):
    """Now and then another action happens than the chosen one, drawn evenly from the others that the mask allows."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if not self._over and self._happens():
            others = np.flatnonzero(self._mask)
            others = others[others != action]
            action = int(self.random.choice(others)) if len(others) else action
        return super().step(action)


class WrongStates(Disturbance):
    """Now and then `state` is that of another location, drawn evenly; goals, banks and `info` are never wrong."""

    def _shown(self, obs: dict[str, Any]) -> dict[str, Any]:
        if not self._happens():
            return obs
        room: Any = self.env.unwrapped
        states = room.layout.states
        return {**obs, "state": int(self.random.choice(states[states != obs["state"]]))}


class MovingWalls(Disturbance):
    """Now and then a wall location, drawn evenly, becomes free and another one becomes wall.

    The agent, the goal and some way between them are left alone.
    """

    def follow(
        self, action: Any, obs: dict[str, Any], reward: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        if self._happens() and not terminated:
            self._move()
            room: Any = self.env.unwrapped
            if "shortest_path_length" in info:
                info = {**info, "shortest_path_length": room.shortest_path_length}
        return super().follow(action, obs, reward, terminated, truncated, info)

    def _move(self) -> None:
        room: Any = self.env.unwrapped
        walls = room.layout.walls.copy()
        free = np.setdiff1d(np.flatnonzero(~walls), [room.place, -1 if room.goal is None else room.goal])
        if not walls.any() or not len(free):
            return
        old = int(self.random.choice(np.flatnonzero(walls)))
        room.remove_walls([old])
        for new in self.random.permutation(free)[:TRIES].tolist():
            room.add_walls([new])
            if room.goal is None or room.shortest_path_length >= 0:
                return
            room.remove_walls([new])
        room.add_walls([old])


class SharedState(EpisodeWrapper):
    """Some locations show one state: that of the first of them. Start and goal keep states of their own.

    Args:
        env: a room on a lattice whose states are numbers.
        n: how many locations share a state, drawn anew in each episode.

    Raises:
        ValueError: if n is less than 1, or the environment is no such room.
    """

    def __init__(self, env: gym.Env, n: int) -> None:
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        _require_room(self, env)
        gym.utils.RecordConstructorArgs.__init__(self, n=n)
        super().__init__(env)
        self.n = n
        self.random = np.random.default_rng()

    def begin(
        self, obs: dict[str, Any], info: dict[str, Any], seed: int | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if seed is not None:
            self.random = np.random.default_rng([seed, 3])
        room: Any = self.env.unwrapped
        states = room.layout.states
        others = states[~room.layout.walls & ~np.isin(states, [obs["state"], obs.get("goal", -1)])]
        self.shared = self.random.permutation(others)[: self.n]
        if "memory_bank" in info:
            bank = info["memory_bank"].copy()
            for part in (SOURCE, END):
                bank[:, part] = self.shown(bank[:, part])
            info = {**info, "memory_bank": bank}
        return {**obs, "state": self.shown(obs["state"])}, info

    def follow(
        self, action: Any, obs: dict[str, Any], reward: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        return {**obs, "state": self.shown(obs["state"])}, reward, terminated, truncated, info

    def shown(self, states: Any) -> Any:
        """What is shown in place of true states."""
        return np.where(np.isin(states, self.shared), self.shared[0], states)[()]


def _require_room(wrapper: Any, env: gym.Env) -> None:
    if not isinstance(env.unwrapped, LatticeRoomEnv):
        raise ValueError(f"{type(wrapper).__name__} needs a room on a lattice, got {env}")
