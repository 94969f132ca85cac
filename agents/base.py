"""What every agent can do, in an episode loop and in the place of a stable-baselines3 policy."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Observation = dict[str, Any]
Info = dict[str, Any]


def end_of(next_obs: Observation, info: Info) -> Any:
    """The state that a move led to, as observations show states.

    The next observation shows another state where `ManyGoals` has begun the next episode.
    """
    return info.get("end_state", next_obs["state"])


def goal_of(obs: Observation) -> Any:
    """The goal as an observation shows it; None if it shows none, or -1 because it is not known yet."""
    goal = np.asarray(obs.get("goal", -1))
    return None if goal.ndim == 0 and goal.dtype.kind == "i" and goal == -1 else obs["goal"]


class Agent(ABC):
    """An agent in a room.

    An episode loop calls `reset`, then `act` and `observe` in turn. `predict` does the same from observations alone,
    for one environment or many, as stable-baselines3's policies do. It does not work with `ManyGoals`: only `info`
    says that the next episode has begun.

    Attributes:
        rng: the random numbers of the agent, from its seed; `predict` needs it.
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
        """n fresh agents, with seeds drawn from a copy of `rng`: the same ones until this agent draws a number."""
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
            observation: of one environment, or stacked for n of them. If it has `memory_bank`, an episode begins with
                that bank, else with an empty one. If it has `action_mask`, that is the mask, else any action is
                allowed. `eswm_gym.wrappers.for_sb3` adds both.
            state: what the last call returned; None at the start, which makes new agents with `spawn_many`.
            episode_start: (n,) bool, whether the observation of each environment is the first of an episode: "done"
                of the last step in stable-baselines3, and in Gymnasium's vector environments with
                `autoreset_mode=SAME_STEP`. With NEXT_STEP, that observation is the last one of the old episode. It is
                recognised by its memory bank, which is still the same, and the next one begins an episode. Without
                memory banks, give "done" of the step before the last one there.
            deterministic: ignored: agents draw random numbers only to break ties.

        Returns:
            Actions, () or (n,) int64, and the state for the next call: for each environment its agent, its last
            observation and its last action.

        Raises:
            ValueError: if `state` or `episode_start` has another number of environments.
        """
        self._check_shown(observation)
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
        is_last = [  # of an episode whose environment resets at the next step
            bool(start) and last is not None and _same_bank(last, obs)
            for obs, (_, last, _), start in zip(rows, state, starts, strict=True)
        ]
        for obs, info, (agent, last, action), start, ends in zip(rows, infos, state, starts, is_last, strict=True):
            if last is None or (start and not ends):
                agent.reset(obs, info | {k: obs[k] for k in ("memory_bank",) if k in obs})
            else:
                agent.observe(last, action, obs, info)
        agents = [agent for agent, _, _ in state]
        self.prepare(agents, rows, infos)
        actions = np.array([agent.act(obs, info) for agent, obs, info in zip(agents, rows, infos, strict=True)])
        # Copies, since vector environments may use their arrays again.
        kept = [None if ends else copy.deepcopy(obs) for obs, ends in zip(rows, is_last, strict=True)]
        state = tuple(zip(agents, kept, actions.tolist(), strict=True))
        return (actions[0] if one else actions), state

    def _check_shown(self, observation: Observation) -> None:
        """Refuse, or warn of, observations from which `predict` cannot choose well."""
        require_state(observation)

    @staticmethod
    def prepare(
        agents: Sequence[Any], observations: Sequence[Observation], infos: Sequence[Info] | None = None
    ) -> None:
        """Do for many agents at once what `act` would do for each. By default, nothing."""
        return None


def allowed_actions(info: Info, n_actions: int) -> np.ndarray:
    """The actions that `info["action_mask"]` allows; all of them without a mask.

    Raises:
        ValueError: if the mask has another number of actions, or allows none.
    """
    mask = np.asarray(info.get("action_mask", np.ones(n_actions)))
    if mask.shape != (n_actions,) or not mask.any():
        named = "; obs['actions'] says which of a model's actions these are, as in ESWM-Lattice-v0 and DiscreteStates"
        advice = named if mask.any() else ""
        raise ValueError(f"action_mask must allow one or more of {n_actions} actions, got {mask!r}{advice}")
    return np.flatnonzero(mask)


def require_state(obs: Any) -> None:
    """Refuse an observation that is no dictionary with a state.

    Raises:
        TypeError: saying what it is.
    """
    if not isinstance(obs, Mapping) or "state" not in obs:
        shown = sorted(obs) if isinstance(obs, Mapping) else type(obs).__name__
        raise TypeError(
            f"an observation has to be a dictionary with `state`, got {shown}: agents come before wrappers that "
            "flatten it, and environments of others go into eswm_gym.wrappers.DiscreteStates"
        )


def _same_bank(one: Observation, other: Observation) -> bool:
    """Whether two observations show the same memory bank and goal."""
    return "memory_bank" in one and all(np.array_equal(one[k], other[k]) for k in ("memory_bank", "goal") if k in one)


def _is_single(observation: Observation) -> bool:
    """Whether an observation shows one state: an integer, bits (N,) int8 or a view (5, 5) uint8.

    Stacked integers are int64, and stacked bits and views have one dimension more.
    """
    shown = np.asarray(observation["state"])
    return shown.ndim == 0 or (shown.ndim, shown.dtype.type) in ((1, np.int8), (2, np.uint8))
