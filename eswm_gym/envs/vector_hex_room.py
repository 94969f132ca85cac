"""Thousands of hexagonal rooms in one object: what `gymnasium.make_vec` makes of the hexagonal ids."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from eswm_gym.envs.hex_episodes import Episodes, draw_episodes, empty_episodes
from eswm_gym.envs.hex_room import HexRoomEnv
from eswm_gym.envs.open_arena import OpenArenaEnv
from eswm_gym.envs.random_wall import RandomWallEnv
from eswm_gym.envs.vector_room import RoomVectorEnv
from eswm_gym.rooms import Room


class HexRoomVectorEnv(RoomVectorEnv):
    """Hexagonal rooms side by side; see `RoomVectorEnv`.

    Args:
        env: a single environment, which this object keeps: it says what the rooms are like and what is seen of them.
        num_envs: number of rooms.
        max_episode_steps: steps after which an episode is truncated. None, or -1 as in `gymnasium.make`: never.
        autoreset_mode: how rooms start anew; `"SameStep"`, `"Disabled"` and so on name them too.

    Raises:
        ValueError: if the environment's render mode is `"human"`, num_envs or max_episode_steps is not positive.
    """

    ATTRIBUTES = ("room", "location", *RoomVectorEnv.ATTRIBUTES)
    _single: HexRoomEnv

    def __init__(
        self,
        env: HexRoomEnv,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        super().__init__(env, num_envs, max_episode_steps, autoreset_mode)
        self._lattice = env.config.lattice
        self._seen = np.array([env.observe(state) for state in range(env.n_states)], dtype=env.state_space().dtype)
        n_locations = self._lattice.n_locations
        self._base = self._rooms * n_locations  # where each room begins in the flat arrays of the running episodes
        self._visited = np.zeros((num_envs, n_locations), bool)

    def _empty(self, n: int) -> Episodes:
        return empty_episodes(self._single, n)

    def _draw(self, n: int) -> Episodes:
        return draw_episodes(self.np_random, self._single, n)

    def _beginning(self, info: dict[str, Any]) -> Episodes:
        env = self._single
        room, start = env.room, env.location
        end = start if env.goal is None else env.goal
        bank = info.get("memory_bank", np.array(-1))
        return Episodes(room.states, room.walls, room.observed, start, end, room.distances_to(end), bank)  # type: ignore[arg-type]

    def _moved(self, actions: np.ndarray) -> np.ndarray:
        ahead = self._lattice.next_location.ravel().take(self._place * self._n_actions + actions)
        blocked = self._now.walls.ravel().take(self._base + ahead)
        return np.where(blocked, self._place, ahead)

    def _forget(self, rows: np.ndarray) -> np.ndarray:
        self._visited[rows] = False
        self._visited[rows, self._place[rows]] = True
        return (self._now.distances[rows] >= 0).sum(1) - 1

    def _discover(self) -> np.ndarray:
        here = self._base + self._place
        first_visit = ~self._visited.ravel().take(here)
        self._visited.ravel()[here] = True
        return first_visit.astype(np.int64)

    def _state(self, i: int) -> dict[str, Any]:
        now = self._now
        return {
            "room": Room(self._lattice, now.states[i], now.walls[i], now.observed[i]).to_dict(),
            "location": int(self._place[i]),
            "goal": int(now.goal[i]) if self._single.task == "navigate" else None,
            "visited": np.flatnonzero(self._visited[i]),
        }

    def _observation(self) -> dict[str, np.ndarray]:
        states = self._now.states.ravel()
        shown = {"state": self._seen[states.take(self._base + self._place)]}
        if self._single.task == "navigate":
            shown["goal"] = self._seen[states.take(self._base + self._now.goal)]
        return shown

    def _action_mask(self) -> np.ndarray:
        return self._lattice.on_lattice.view(np.int8).take(self._place, axis=0)

    def _where(self) -> dict[str, np.ndarray]:
        return {"location": self._place.copy()}

    def _steps_to_goal(self) -> np.ndarray:
        return self._now.distances.ravel().take(self._base + self._place).astype(np.int64)


class _RoomVectorEnv(HexRoomVectorEnv):
    """Environments of one class side by side, made from its arguments."""

    room_env: type[HexRoomEnv]

    def __init__(
        self,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **kwargs: Any,
    ) -> None:
        super().__init__(self.room_env(**kwargs), num_envs, max_episode_steps, autoreset_mode)


class RandomWallVectorEnv(_RoomVectorEnv):
    """`RandomWallEnv`s side by side; takes its arguments too."""

    room_env = RandomWallEnv


class OpenArenaVectorEnv(_RoomVectorEnv):
    """`OpenArenaEnv`s side by side; takes its arguments too."""

    room_env = OpenArenaEnv
