"""What every agent can do, in an episode loop of one's own and in the place of a stable-baselines3 policy."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from eswm_gym.rooms import N_ACTIONS
from eswm_gym.rooms.bits import bits_to_state

Observation = dict[str, Any]
Info = dict[str, Any]


def state_of(value: Any) -> int:
    """The integer state that an observation shows as a number or as bits; of a view, its number."""
    array = np.asarray(value)
    if array.ndim == 0:
        return int(array)
    return int(bits_to_state(array)) if array.ndim == 1 else view_number(array)


def view_number(view: np.ndarray) -> int:
    """A number for a view of classes (5, 5) or (25,): the same for equal views, for any agent at any time."""
    cells = np.ascontiguousarray(view, np.uint8).tobytes()
    return int.from_bytes(hashlib.blake2b(cells, digest_size=8).digest(), "big") >> 2


class Agent(ABC):
    """An agent in a room.

    A loop of one's own calls `reset`, then `act` and `observe` in turn. `predict` does the same from observations
    alone, for one environment or many, as stable-baselines3's policies do.
    """

    @abstractmethod
    def reset(self, obs: Observation, info: Info) -> None:
        """Begin an episode; an agent with a memory bank starts from `info["memory_bank"]` if there is one."""

    @abstractmethod
    def act(self, obs: Observation, info: Info) -> int:
        """Choose an action."""

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        """Learn what an action did. By default, nothing."""
        return None

    @abstractmethod
    def spawn(self, seed: int | None = None) -> Agent:
        """A fresh agent of the same kind for another environment; a model is shared."""

    def predict(
        self,
        observation: Observation,
        state: tuple[Any, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, tuple[Any, ...]]:
        """Choose actions, with stable-baselines3's signature.

        Args:
            observation: of one environment, or stacked for n of them. If it has `memory_bank` (as the wrapper
                `MemoryBankObservation` adds), an episode begins with that bank, else with an empty one.
            state: what the last call returned; None at the start.
            episode_start: (n,) bool, which environments begin an episode: where the observation is the first of
                one. Vector environments of Gymnasium need `autoreset_mode=SAME_STEP` for "done" to mean that.
            deterministic: ignored: agents draw only where all else is equal.

        Returns:
            Actions, () or (n,) int64, and the state for the next call: for each environment its agent, its last
            observation and its last action.
        """
        one = _is_single(observation)
        rows = (
            [observation]
            if one
            else [{k: v[i] for k, v in observation.items()} for i in range(len(observation["state"]))]
        )
        if state is None:
            state = tuple((self.spawn(i), None, None) for i in range(len(rows)))
            episode_start = np.ones(len(rows), bool)
        if len(state) != len(rows):
            raise ValueError(f"state is of {len(state)} environments, the observation of {len(rows)}")
        starts = np.zeros(len(rows), bool) if episode_start is None else np.atleast_1d(episode_start)
        for obs, (agent, last, action), start in zip(rows, state, starts, strict=True):
            if start or last is None:
                agent.reset(obs, {k: obs[k] for k in ("memory_bank",) if k in obs})
            else:
                agent.observe(last, action, obs, {})
        agents = [agent for agent, _, _ in state]
        self.prepare(agents, rows)
        actions = np.array([agent.act(obs, {}) for agent, obs in zip(agents, rows, strict=True)])
        state = tuple(zip(agents, rows, actions.tolist(), strict=True))
        return (actions[0] if one else actions), state

    @staticmethod
    def prepare(
        agents: Sequence[Any], observations: Sequence[Observation], infos: Sequence[Info] | None = None
    ) -> None:
        """Do together what `act` would do one by one. By default, nothing."""
        return None


def allowed_actions(info: Info, n_actions: int = N_ACTIONS) -> np.ndarray:
    """Actions that `info["action_mask"]` allows, all of them without a mask."""
    return np.flatnonzero(info.get("action_mask", np.ones(n_actions)))


def _is_single(observation: Observation) -> bool:
    shown = np.asarray(observation["state"])
    # One state as a number, as bits or as a view; integers are int64.
    return shown.ndim == 0 or (shown.ndim, shown.dtype.type) in ((1, np.int8), (2, np.uint8))
