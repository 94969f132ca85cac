"""What every agent can do, in an episode loop of one's own and in the place of a stable-baselines3 policy."""

from __future__ import annotations

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from eswm_gym.rooms import N_ACTIONS
from eswm_gym.rooms.grid import N_CELLS
from eswm_gym.rooms.lattice.bits import bits_to_state

Observation = dict[str, Any]
Info = dict[str, Any]


def state_of(value: Any) -> int:
    """The integer state that an observation shows as a number or as bits; of a view, its number.

    Raises:
        ValueError: if it is none of these.
    """
    array = np.asarray(value)
    if array.ndim > 1:
        return view_number(array)
    if array.dtype.kind not in "iu" or (array.ndim == 1 and not {0, 1}.issuperset(array.tolist())):
        raise ValueError(f"a state is an integer, bits of 0 and 1 or a view, got {value!r}")
    return int(bits_to_state(array) if array.ndim else array)


def end_of(next_obs: Observation, info: Info) -> Any:
    """The state that a move led to, as observations show states; `ManyGoals` may have moved the agent on from there."""
    return info.get("end_state", next_obs["state"])


def view_number(view: np.ndarray) -> int:
    """A number for a view of classes (5, 5) or (25,): the same for equal views, for any agent at any time.

    Raises:
        ValueError: if it is not 25 integers.
    """
    view = np.asarray(view)
    if view.size != N_CELLS or view.dtype.kind not in "iu":
        raise ValueError(f"a view is {N_CELLS} integers, got {view!r}")
    cells = np.ascontiguousarray(view, np.uint8).tobytes()
    return int.from_bytes(hashlib.blake2b(cells, digest_size=8).digest(), "big") >> 2


class Agent(ABC):
    """An agent in a room.

    A loop of one's own calls `reset`, then `act` and `observe` in turn. `predict` does the same from observations
    alone, for one environment or many, as stable-baselines3's policies do; where `ManyGoals` moves the agent on, it is
    not for that, since only `info` says so.

    Attributes:
        rng: what it draws with, from its seed; `predict` needs it.
    """

    rng: np.random.Generator

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

    def spawn_many(self, n: int) -> list[Agent]:
        """n of them, with seeds that follow from this one's: each time the same, until it draws itself."""
        seeds = copy.deepcopy(self.rng).integers(2**63, size=n)
        return [self.spawn(seed) for seed in seeds.tolist()]

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
                `MemoryBankObservation` adds), an episode begins with that bank, else with an empty one. If it has
                `action_mask` (as `ActionMaskObservation` adds), that is the mask, else any action is allowed.
            state: what the last call returned; None at the start, for agents of `spawn_many`.
            episode_start: (n,) bool, which environments begin an episode: where the observation is the first of
                one. Vector environments of Gymnasium need `autoreset_mode=SAME_STEP` for "done" to mean that.
            deterministic: ignored: agents draw only where all else is equal.

        Returns:
            Actions, () or (n,) int64, and the state for the next call: for each environment its agent, its last
            observation and its last action.

        Raises:
            ValueError: if `state` or `episode_start` is of another number of environments.
        """
        one = _is_single(observation)
        rows = (
            [observation]
            if one
            else [{k: v[i] for k, v in observation.items()} for i in range(len(observation["state"]))]
        )
        if state is None:
            state = tuple((agent, None, None) for agent in self.spawn_many(len(rows)))
        starts = np.zeros(len(rows), bool) if episode_start is None else np.atleast_1d(episode_start)
        for name, given in (("state", state), ("episode_start", starts)):
            if len(given) != len(rows):
                raise ValueError(f"{name} is of {len(given)} environments, the observation of {len(rows)}")
        infos = [{k: obs[k] for k in ("action_mask",) if k in obs} for obs in rows]
        for obs, info, (agent, last, action), start in zip(rows, infos, state, starts, strict=True):
            if start or last is None:
                agent.reset(obs, info | {k: obs[k] for k in ("memory_bank",) if k in obs})
            else:
                agent.observe(last, action, obs, info)
        agents = [agent for agent, _, _ in state]
        self.prepare(agents, rows, infos)
        actions = np.array([agent.act(obs, info) for agent, obs, info in zip(agents, rows, infos, strict=True)])
        state = tuple(zip(agents, rows, actions.tolist(), strict=True))
        return (actions[0] if one else actions), state

    @staticmethod
    def prepare(
        agents: Sequence[Any], observations: Sequence[Observation], infos: Sequence[Info] | None = None
    ) -> None:
        """Do together what `act` would do one by one. By default, nothing."""
        return None


def allowed_actions(info: Info, n_actions: int = N_ACTIONS) -> np.ndarray:
    """Actions that `info["action_mask"]` allows, all of them without a mask.

    Raises:
        ValueError: if the mask is of another number of actions, or allows none.
    """
    mask = np.asarray(info.get("action_mask", np.ones(n_actions)))
    if mask.shape != (n_actions,) or not mask.any():
        raise ValueError(f"action_mask must allow one or more of {n_actions} actions, got {mask!r}")
    return np.flatnonzero(mask)


def _is_single(observation: Observation) -> bool:
    shown = np.asarray(observation["state"])
    # One state as a number, as bits or as a view; integers are int64.
    return shown.ndim == 0 or (shown.ndim, shown.dtype.type) in ((1, np.int8), (2, np.uint8))
