"""Thousands of hexagonal rooms in one object: what `gymnasium.make_vec` makes of the hexagonal ids."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from eswm_gym.envs.hex_room import STEP_PENALTY, HexRoomEnv
from eswm_gym.envs.open_arena import OpenArenaEnv
from eswm_gym.envs.random_wall import RandomWallEnv
from eswm_gym.rooms import N_ACTIONS, Room, RoomBatch, generate_rooms, hex_lattice, spanning_banks
from eswm_gym.rooms.streams import Streams

AHEAD = 4  # episodes drawn ahead in each room, so that many rooms are drawn at a time
AT_A_TIME = 1024  # as many as a processor's cache holds


class HexRoomVectorEnv(VectorEnv[dict[str, np.ndarray], np.ndarray, np.ndarray]):
    """Rooms side by side: what a `SyncVectorEnv` of single environments returns under the same seeds, but fast.

    Observations, rewards, ends and infos are the same in each mode of resetting. Each room has a random number
    generator of its own. No step draws from it, so that the rooms of later episodes are drawn ahead, many at a time;
    `np_random` takes back what is ahead.

    Arrays that `reset` and `step` return are not touched again.

    Args:
        env: a single environment, which this object keeps: it says what the rooms are like and what is seen of them.
        num_envs: number of rooms.
        max_episode_steps: steps after which an episode is truncated. None: never.
        autoreset_mode: how rooms start anew; `"SameStep"`, `"Disabled"` and so on name them too.

    Raises:
        ValueError: if the environment's render mode is `"human"`, num_envs or max_episode_steps is not positive.
    """

    def __init__(
        self,
        env: HexRoomEnv,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        if env.render_mode == "human":
            raise ValueError("render_mode 'human' shows one room; a vector environment takes 'rgb_array' or 'ansi'")
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise ValueError(f"max_episode_steps must be at least 1, got {max_episode_steps}")
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**env.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = env.render_mode
        self.single_observation_space, self.single_action_space = env.observation_space, env.action_space
        self.observation_space = batch_space(env.observation_space, num_envs)
        self.action_space = batch_space(env.action_space, num_envs)
        self._single = env
        self._lattice = hex_lattice(env.config.radius)
        self._seen = np.array([env.observe(state) for state in range(env.n_states)], dtype=env.state_space().dtype)

        # Each room has a ring of episodes: the one that runs is in `_slot`, `_ahead` more are drawn after it.
        n_locations = self._lattice.n_locations
        ring = (AHEAD + 1, num_envs)
        self._states = np.zeros((*ring, n_locations), np.int32)
        self._walls = np.zeros((*ring, n_locations), bool)
        self._observed = np.ones((*ring, n_locations), bool)
        self._distances = np.zeros((*ring, n_locations), np.int32)
        self._start = np.zeros(ring, np.int64)
        self._goal = np.zeros(ring, np.int64)
        self._banks = np.zeros(
            (*ring, n_locations - 1, 3) if env.memory_bank == "spanning" else (*ring, 0, 3), np.int32
        )
        self._words = np.zeros(ring, np.int64)  # of random bits that the drawing took
        self._n_words = 4 * n_locations  # that it is likely to take
        self._half_before, self._waits_before = np.zeros(ring, np.uint32), np.zeros(ring, bool)
        self._slot = np.zeros(num_envs, np.int64)
        self._ahead = np.zeros(num_envs, np.int64)

        self._rooms = np.arange(num_envs)
        self._base = self._rooms * n_locations  # where the running episode lies in the flat arrays above
        self._location = np.zeros(num_envs, np.int64)
        self._visited = np.zeros((num_envs, n_locations), bool)
        self._unvisited = np.zeros(num_envs, np.int64)  # how many that can be reached
        self._elapsed = np.zeros(num_envs, np.int64)
        self._done = np.zeros(num_envs, bool)
        self._begun = np.zeros(num_envs, bool)

        self._generators: list[Any] = [None] * num_envs
        self._seeds = [-1] * num_envs
        self._half, self._waits = np.zeros(num_envs, np.uint32), np.zeros(num_envs, bool)  # see Streams
        self._lent = np.zeros(num_envs, bool)  # whether the generator has the waiting half itself

    def reset(  # type: ignore[override]  # a seed for each room, as SyncVectorEnv takes
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode in every room, or in some.

        Args:
            seed: room i gets `seed + i`, or a list has one for each room. None: go on.
            options: `reset_mask`, (n,) bool, says which rooms; the rest are `HexRoomEnv`'s, for all of these rooms.

        Raises:
            ValueError: if there is not one seed for each room, the mask is no (n,) bool array with a True,
                or the single environment does not take the options.
            ResetNeeded: if the mask leaves out a room that never started.
        """
        options = dict(options or {})
        rows = self._masked(options.pop("reset_mask", None))
        seeds: list[int | None]
        if seed is None or isinstance(seed, (int, np.integer)):
            seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed must have one entry for each of {self.num_envs} rooms, got {len(seeds)}")
        new = [i for i in rows.tolist() if seeds[i] is not None or self._generators[i] is None]
        for i in new:
            self._generators[i], self._seeds[i] = seeding.np_random(seeds[i])
        self._ahead[new] = 0
        self._half[new], self._waits[new], self._lent[new] = 0, False, False
        if options:
            self._begin_with(rows, options)
        else:
            self._begin(rows, ahead=1 if new else AHEAD)
        infos = _masked_infos(self._info(), None if len(rows) == self.num_envs else self._mask(rows))
        self._add_banks(infos, rows)
        return self._observation(), infos

    def step(
        self, actions: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one step in every room; one that starts anew in this step ignores its action.

        Args:
            actions: (n,) integers from 0 to 5.

        Raises:
            ValueError: if they are not that.
            ResetNeeded: before the first reset, or if an episode has ended and resetting is disabled.
        """
        actions = self._checked(actions)
        if not self._begun.all():
            raise ResetNeeded("call reset() first: there are no rooms yet")
        ended: np.ndarray = self._done
        if self.autoreset_mode == AutoresetMode.DISABLED and ended.any():
            raise ResetNeeded(
                f"the episodes in rooms {np.flatnonzero(ended).tolist()} have ended: "
                "reset them with options={'reset_mask': ...}"
            )

        ahead = self._lattice.next_location.ravel().take(self._location * N_ACTIONS + actions)
        blocked = self._walls.ravel().take(self._base + ahead) | (ahead == self._location)
        self._location = np.where(blocked, self._location, ahead)
        self._elapsed += 1
        if self._single.task == "navigate":
            terminations = self._is_success()
            rewards = np.where(terminations, 1.0, STEP_PENALTY)
        else:
            place = self._rooms * self._lattice.n_locations + self._location
            first_visit = ~self._visited.ravel().take(place)
            self._visited.ravel()[place] = True
            self._unvisited -= first_visit
            terminations = self._is_success()
            rewards = first_visit.astype(np.float64)
        truncations = np.zeros(self.num_envs, bool)
        if self.max_episode_steps is not None:
            truncations = self._elapsed >= self.max_episode_steps

        infos: dict[str, Any] = {}
        rows = np.zeros(0, np.int64)  # that start anew
        if self.autoreset_mode == AutoresetMode.NEXT_STEP:
            rows = np.flatnonzero(ended)
            rewards[rows], terminations[rows], truncations[rows], blocked[rows] = 0, False, False, False
        elif self.autoreset_mode == AutoresetMode.SAME_STEP:
            rows = np.flatnonzero(terminations | truncations)
            if rows.size:
                infos = self._final(rows, blocked)
                blocked[rows] = False
        self._done = terminations | truncations
        if rows.size:
            self._begin(rows, ahead=AHEAD)
        infos.update(_masked_infos(self._info(blocked), None))
        if rows.size:
            self._add_banks(infos, rows)
        return self._observation(), rewards, terminations, truncations, infos

    def render(self) -> tuple[Any, ...] | None:
        """Draw every room as the single environment does."""
        return tuple(self._at(i).render() for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        if "_single" in vars(self):  # not where the arguments were wrong: Gymnasium closes what was never built, too
            self._single.close()

    def action_masks(self) -> np.ndarray:
        """(n, 6) bool, steps that stay on the lattice."""
        return self._lattice.on_lattice[self._location]

    def call(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of every room's single environment, such as `room`, or its `action_masks()`.

        Raises:
            AttributeError: if there is no such attribute, or it is another method.
        """
        if name == "action_masks":
            return tuple(self.action_masks())
        if name in ("np_random", "np_random_seed"):
            return getattr(self, name)
        if name in ("room", "location", "goal", "shortest_path_length"):
            return tuple(getattr(self._at(i), name) for i in range(self.num_envs))
        value = getattr(self._single, name)  # the same in all rooms
        if callable(value):
            raise AttributeError(f"the rooms of a vector environment have no method {name!r}")
        return (value,) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """The same as `call`."""
        return self.call(name)

    @property  # type: ignore[misc]  # read-only and one for each room, as SyncVectorEnv has it
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The rooms' generators, which the next episodes will be drawn from.

        Raises:
            ResetNeeded: before the first reset.
        """
        if not self._begun.all():
            raise ResetNeeded("call reset() first: there are no generators yet")
        self._lend(self._rooms)
        return tuple(self._generators)

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of each room, -1 before the first reset."""
        return tuple(self._seeds)

    def _masked(self, mask: Any) -> np.ndarray:
        """The rooms of a reset mask."""
        if mask is None:
            return self._rooms
        if not isinstance(mask, np.ndarray) or mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
            raise ValueError(f"reset_mask must be a ({self.num_envs},) bool array with at least one True, got {mask!r}")
        if not (mask | self._begun).all():
            raise ResetNeeded(f"reset_mask leaves out rooms that never started, got {mask!r}")
        return np.flatnonzero(mask)

    def _checked(self, actions: Any) -> np.ndarray:
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "biu":
            raise ValueError(
                f"actions must be {self.num_envs} integers, got {actions.dtype} of shape {actions.shape}: {actions!r}"
            )
        wrong = np.flatnonzero((actions < 0) | (actions >= N_ACTIONS))
        if wrong.size:
            i = wrong[0]
            raise ValueError(f"actions must be from 0 to {N_ACTIONS - 1}, got {actions[i]} in room {i}")
        return actions.astype(np.int64, copy=False)

    def _mask(self, rows: np.ndarray) -> np.ndarray:
        """(n,) bool, True for some rooms."""
        mask = np.zeros(self.num_envs, bool)
        mask[rows] = True
        return mask

    # Episodes

    def _begin(self, rows: np.ndarray, ahead: int) -> None:
        """Start the next episode in some rooms. If one is missing, draw 1 ahead in these, or more in all rooms."""
        if not self._ahead[rows].all():
            self._draw(rows[self._ahead[rows] == 0] if ahead == 1 else self._short(ahead))
            while len(short := self._short(ahead)) > self.num_envs // 8:  # fewer are not worth it
                self._draw(short)
        self._slot[rows] = (self._slot[rows] + 1) % (AHEAD + 1)
        self._ahead[rows] -= 1
        self._enter(rows)

    def _short(self, ahead: int) -> np.ndarray:
        """The rooms with fewer episodes ahead."""
        return np.flatnonzero(self._begun & (self._ahead < ahead))

    def _enter(self, rows: np.ndarray) -> None:
        slot = self._slot[rows]
        self._base[rows] = (slot * self.num_envs + rows) * self._lattice.n_locations
        self._location[rows] = self._start[slot, rows]
        self._elapsed[rows] = 0
        self._begun[rows] = True
        if self._single.task == "explore":
            self._visited[rows] = False
            self._visited[rows, self._location[rows]] = True
            self._unvisited[rows] = (self._distances[slot, rows] >= 0).sum(1) - 1
        self._done[rows] = False

    def _draw(self, rows: np.ndarray) -> None:
        """Draw one more episode ahead in some rooms."""
        for i in range(0, len(rows), AT_A_TIME):
            self._draw_some(rows[i : i + AT_A_TIME])

    def _draw_some(self, rows: np.ndarray) -> None:
        """Draw by the calls of `HexRoomEnv.reset`, in its order."""
        for i in rows[self._lent[rows]].tolist():
            state = self._generators[i].bit_generator.state
            self._half[i], self._waits[i], self._lent[i] = state["uinteger"], state["has_uint32"], False
        slot = (self._slot[rows] + self._ahead[rows] + 1) % (AHEAD + 1)
        self._half_before[slot, rows], self._waits_before[slot, rows] = self._half[rows], self._waits[rows]
        streams = Streams(
            [self._generators[i] for i in rows.tolist()],
            self._half[rows],
            self._waits[rows],
            self._n_words,
        )
        rooms = generate_rooms(streams, len(rows), self._single.config)
        starts = _starts(rooms)
        while (again := np.flatnonzero(~starts.any(1))).size:
            new = generate_rooms(streams.at(again), len(again), self._single.config)
            for old, drawn in ((rooms.states, new.states), (rooms.walls, new.walls), (rooms.observed, new.observed)):
                old[again] = drawn
            starts[again] = _starts(new)
        start = streams.pick(starts)
        distances = rooms.distances_from(start)
        if self._single.task == "navigate":
            goal = streams.pick(distances > 0)
            distances = rooms.distances_from(goal)
            self._goal[slot, rows] = goal
        if self._single.memory_bank == "spanning":
            bank = spanning_banks(streams, rooms).transitions()
            self._banks[slot, rows, : bank.shape[1]] = bank
            self._banks[slot, rows, bank.shape[1] :] = -1
        streams.close()
        self._states[slot, rows], self._walls[slot, rows] = rooms.states, rooms.walls
        self._observed[slot, rows], self._distances[slot, rows] = rooms.observed, distances
        self._start[slot, rows], self._words[slot, rows] = start, streams.used
        self._half[rows], self._waits[rows] = streams.half, streams.waits
        self._n_words = int(min(streams.used.max(), 1.3 * streams.used.mean())) + self._lattice.n_locations
        self._ahead[rows] += 1

    def _lend(self, rows: np.ndarray) -> None:
        """Set the generators of some rooms to where the single environments' would be; forget what is drawn ahead."""
        for i in rows[~self._lent[rows]].tolist():
            source = self._generators[i].bit_generator
            slots = (self._slot[i] + 1 + np.arange(self._ahead[i])) % (AHEAD + 1)
            if slots.size:
                source.advance(-int(self._words[slots, i].sum()))
                self._half[i], self._waits[i] = self._half_before[slots[0], i], self._waits_before[slots[0], i]
            source.state = {**source.state, "has_uint32": int(self._waits[i]), "uinteger": int(self._half[i])}
        self._ahead[rows] = 0
        self._lent[rows] = True

    def _begin_with(self, rows: np.ndarray, options: dict[str, Any]) -> None:
        """Start an episode in some rooms by the single environment's reset, with options."""
        self._lend(rows)
        env, begun = self._single, []
        for i in rows.tolist():
            env.np_random = self._generators[i]
            _, info = env.reset(options=options)
            begun.append((env.room, env.location, env.goal, info.get("memory_bank", -1)))
        for i, (room, start, goal, bank) in zip(rows.tolist(), begun, strict=True):
            here = (self._slot[i], i)
            self._states[here], self._walls[here], self._observed[here] = room.states, room.walls, room.observed
            self._distances[here] = room.distances_from(start if goal is None else goal)
            self._start[here], self._goal[here], self._banks[here] = start, goal or 0, bank
        self._enter(rows)

    def _at(self, i: int) -> HexRoomEnv:
        """The single environment, set to room i."""
        if not self._begun[i]:
            raise ResetNeeded("call reset() first: there are no rooms yet")
        env, here = self._single, (self._slot[i], i)
        env._room = Room(self._lattice.radius, self._states[here], self._walls[here], self._observed[here])
        env.location = int(self._location[i])
        env.goal = int(self._goal[here]) if env.task == "navigate" else None
        env._visited = self._visited[i].copy()
        env._measure()
        return env

    # What is returned

    def _is_success(self) -> np.ndarray:
        if self._single.task == "explore":
            return self._unvisited == 0
        return self._location == self._goal[self._slot, self._rooms]

    def _observation(self) -> dict[str, np.ndarray]:
        states = self._states.ravel()
        shown = {"state": self._seen[states.take(self._base + self._location)]}
        if self._single.task == "navigate":
            shown["goal"] = self._seen[states.take(self._base + self._goal[self._slot, self._rooms])]
        return shown

    def _info(self, blocked: np.ndarray | None = None) -> dict[str, np.ndarray]:
        info: dict[str, np.ndarray] = {
            "action_mask": self._lattice.on_lattice.view(np.int8).take(self._location, axis=0),
            "location": self._location.copy(),
            "is_success": self._is_success(),
            "blocked": np.zeros(self.num_envs, bool) if blocked is None else blocked.copy(),
        }
        if self._single.task == "navigate":
            distances = self._distances.ravel().take(self._base + self._location)
            info["shortest_path_length"] = distances.astype(np.int64)
        return info

    def _final(self, rows: np.ndarray, blocked: np.ndarray) -> dict[str, Any]:
        """`final_obs` and `final_info` of the rooms whose episodes end."""
        mask = self._mask(rows)
        seen = self._observation()
        observations = np.full(self.num_envs, None, object)
        columns = [list(column[rows]) if column.ndim > 1 else column[rows].tolist() for column in seen.values()]
        for i, values in zip(rows.tolist(), zip(*columns, strict=True), strict=True):
            observations[i] = dict(zip(seen, values, strict=True))
        return {
            "final_obs": observations,
            "_final_obs": mask,
            "final_info": _masked_infos(self._info(blocked), mask),
            "_final_info": mask.copy(),
        }

    def _add_banks(self, infos: dict[str, Any], rows: np.ndarray) -> None:
        if self._single.memory_bank == "spanning":
            banks = np.zeros((self.num_envs, *self._banks.shape[2:]), np.int64)
            banks[rows] = self._banks[self._slot[rows], rows]
            infos.update(memory_bank=banks, _memory_bank=self._mask(rows))


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


def _masked_infos(info: dict[str, np.ndarray], mask: np.ndarray | None) -> dict[str, Any]:
    """Add Gymnasium's `_key` masks and set what they leave out to 0; None leaves out nothing."""
    infos: dict[str, Any] = {}
    for key, column in info.items():
        if mask is not None:
            column[~mask] = 0
        infos[key] = column
        infos[f"_{key}"] = np.ones(len(column), bool) if mask is None else mask.copy()
    return infos


def _starts(rooms: RoomBatch) -> np.ndarray:
    """(B, L) bool, free locations that have a free neighbour."""
    free = ~rooms.walls
    beside = (rooms.lattice.distances == 1).astype(np.float32)
    return free & (free.astype(np.float32) @ beside > 0)
