"""Makes an environment that somebody else wrote one that the agents of this package can walk in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from eswm_gym.rooms import CODES, lattice_of, move_numbers
from eswm_gym.rooms.lattice.shapes import SHAPES
from eswm_gym.state_numbers import StateNumbers

_ANY = (-1, np.iinfo(np.int64).max)


class DiscreteStates(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Numbers the states of an environment, and says what its actions are.

    The observation becomes a flat `Dict`:

    - `state`: () int64, the number of the state, given in the order in which states are first seen. The same state
      keeps its number in all episodes, and there may be any number of them.
    - `goal`: () int64, the number of the goal, or -1 while it is not known: the state given as `goal`, else the last
      one that paid, that is where a step had a reward above 0.
    - `actions`: (A,) int64, the world model's numbers of the actions: those of moves that have a name, or codes where
      nothing is known of them.

    `info` has two entries more, from which agents learn: `terminated`, and `is_success`, whether the step paid or led
    to the given goal; an environment's own `is_success` counts first. After `reset` nothing is `terminated`. An
    `action_mask` of the environment stays.

    The world has to be the same in all episodes for an agent that keeps its memories. An environment that changes its
    layout needs a fresh agent in each episode: `agent.reset(obs, info)`.

    Args:
        env: with `Discrete` actions that begin at 0.
        key: what of an observation tells states apart, as a function of (observation, unwrapped environment), such as a
            position. None: the whole observation.
        lattice: "hexagon", "square", "diagonal", "torus" or "pose", if the states are known to lie so. None: unknown,
            and then at most 8 actions.
        actions: the names of the actions, in the environment's order, see `eswm_gym.rooms.MOVES`. None: those of the
            lattice, in its own order.
        goal: the goal, as `key` shows it. None: unknown until a step pays.

    Raises:
        ValueError: if the actions are not discrete, there are more or fewer of them than names, more than codes, or a
            name is none of the lattice's.
    """

    def __init__(
        self,
        env: gym.Env,
        key: Callable[[Any, Any], Any] | None = None,
        lattice: str | None = None,
        actions: Sequence[str] | None = None,
        goal: Any = None,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, key=key, lattice=lattice, actions=actions, goal=goal)
        super().__init__(env)
        space = env.action_space
        if not isinstance(space, spaces.Discrete) or space.start != 0:
            raise ValueError(f"actions must be Discrete and begin at 0, got {space}")
        self.key = key or _whole
        self.actions = _numbers(lattice, actions, int(space.n))
        self._number = StateNumbers()
        self.given_goal = None if goal is None else self.number(goal)
        self.paid: int | None = None
        self.observation_space = spaces.Dict(
            {
                "state": spaces.Box(0, _ANY[1], (), np.int64),
                "goal": spaces.Box(*_ANY, (), np.int64),
                "actions": spaces.MultiDiscrete(self.actions + 1),
            }
        )

    def number(self, state: Any) -> int:
        """The number of a state as `key` shows it.

        Raises:
            TypeError: if it is neither hashable nor an array, nor made of such.
        """
        return self._number(state)

    @property
    def goal(self) -> int | None:
        """The number of the goal, None while it is not known."""
        return self.paid if self.given_goal is None else self.given_goal

    def reset(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        observation, info = self.env.reset(**kwargs)
        state = self._state_of(observation)
        return self._observation(state), self._info(info, state == self.given_goal, False)

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        state, paid = self._state_of(observation), float(reward) > 0
        if paid:
            self.paid = state
        info = self._info(info, paid or state == self.given_goal, terminated)
        return self._observation(state), reward, terminated, truncated, info

    def _state_of(self, observation: Any) -> int:
        return self.number(self.key(observation, self.env.unwrapped))

    @staticmethod
    def _info(info: dict[str, Any], is_success: bool, terminated: bool) -> dict[str, Any]:
        return {"is_success": is_success} | info | {"terminated": terminated}

    def _observation(self, state: int) -> dict[str, Any]:
        goal = -1 if self.goal is None else self.goal
        return {"state": np.array(state), "goal": np.array(goal), "actions": self.actions.copy()}


class AbsoluteMoves(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """A MiniGrid environment whose actions are left, down, right and up, and whose observation is the agent's cell.

    A move turns the agent that way, opens a door there that is not locked, and goes one step forward: up to four of
    MiniGrid's steps, whose rewards add up. There are a quarter of the states that MiniGrid's own actions, turn and
    forward, tell apart.

    Args:
        env: a MiniGrid environment.
    """

    MOVES = ("left", "down", "right", "up")
    HEADINGS = (2, 1, 0, 3)  # MiniGrid's directions of these moves

    def __init__(self, env: gym.Env) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self.action_space = spaces.Discrete(len(self.MOVES))
        self.observation_space = _cells(env, 2)

    def reset(self, **kwargs: Any) -> tuple[np.ndarray, dict[str, Any]]:
        _, info = self.env.reset(**kwargs)
        return self._cell(), info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        world: Any = self.env.unwrapped
        total, gone = 0.0, False
        while not gone:
            turns = (self.HEADINGS[int(action)] - world.agent_dir) % 4
            ahead = world.grid.get(*world.front_pos)
            is_shut = ahead is not None and ahead.type == "door" and not ahead.is_open and not ahead.is_locked
            gone = not turns and not is_shut
            names = ("forward" if gone else "toggle", "right", "right", "left")
            _, reward, terminated, truncated, info = self.env.step(world.actions[names[turns]])
            total += float(reward)
            gone |= terminated or truncated
        return self._cell(), total, terminated, truncated, info

    def _cell(self) -> np.ndarray:
        return np.array(self.env.unwrapped.agent_pos, np.int64)  # type: ignore[attr-defined]


class Poses(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """A MiniGrid environment with the actions turn left, turn right and forward, whose observation is the agent's pose:
    (x, y, heading).

    Args:
        env: a MiniGrid environment.
    """

    MOVES = ("turn left", "turn right", "forward")

    def __init__(self, env: gym.Env) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self.action_space = spaces.Discrete(len(self.MOVES))
        self.observation_space = _cells(env, 3)

    def reset(self, **kwargs: Any) -> tuple[np.ndarray, dict[str, Any]]:
        _, info = self.env.reset(**kwargs)
        return self._pose(), info

    def step(self, action: Any) -> tuple[np.ndarray, Any, bool, bool, dict[str, Any]]:
        _, reward, terminated, truncated, info = self.env.step(action)
        return self._pose(), reward, terminated, truncated, info

    def _pose(self) -> np.ndarray:
        world: Any = self.env.unwrapped
        return np.array([*world.agent_pos, world.agent_dir], np.int64)


def _whole(observation: Any, env: Any) -> Any:
    return observation


def _cells(env: gym.Env, n: int) -> spaces.MultiDiscrete:
    """The space of the first n of (x, y, heading)."""
    world: Any = env.unwrapped
    return spaces.MultiDiscrete([world.width, world.height, 4][:n])


def _numbers(lattice: str | None, actions: Sequence[str] | None, n: int) -> np.ndarray:
    """(n,) int64, the model's numbers of an environment's actions."""
    if lattice is None:
        if actions is not None:
            raise ValueError(f"names of actions need a lattice, one of {', '.join(SHAPES)}")
        if n > len(CODES):
            raise ValueError(f"there are codes for {len(CODES)} unknown actions, the environment has {n}")
        return CODES[:n].astype(np.int64)
    known = lattice_of(lattice, (3,) * len(SHAPES[lattice][1]) if lattice in SHAPES else ()).actions
    names = known if actions is None else tuple(actions)
    numbers = move_numbers(names)
    if wrong := [name for name, number in zip(names, numbers, strict=True) if number not in move_numbers(known)]:
        raise ValueError(f"{wrong[0]!r} is no move of a {lattice} lattice, which has {', '.join(known)}")
    if len(names) != n or len(set(numbers.tolist())) < n:
        raise ValueError(f"the environment has {n} actions, which need {n} different names, got {names}")
    return numbers.astype(np.int64)
