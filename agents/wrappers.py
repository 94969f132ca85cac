"""Wrappers that tell other agents in training what the world model is unsure of, and what its agent would do."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from eswm_gym.agents.base import Agent, Info, Observation, allowed_actions
from eswm_gym.agents.eswm_agent import ESWMAgent
from eswm_gym.agents.planning import UNKNOWN
from eswm_gym.world_model import ESWM
from eswm_gym.wrappers.episode_wrapper import EpisodeWrapper


class UncertaintyBonus(EpisodeWrapper):
    """Adds a bonus to the reward for moves of whose end the world model was unsure.

    The bonus is `scale` times 1 minus the probability of the likeliest end state, and `scale` where the model's answer
    is "I don't know". It is 0 for moves that the memory bank holds or that `info["action_mask"]` rules out. In each
    episode the bank begins with `info["memory_bank"]`, or empty, and grows with what happens.

    `info["intrinsic_reward"]`, a float, is the bonus; 0 after `reset`. For environments in separate processes see
    `PlannedAction`.

    Args:
        env: an environment of this package, wrapped or not.
        agent: an ESWMAgent, from which a fresh one is spawned, a model, or the name of a pretrained model. Only with a
            name can the environment's spec be written as JSON.
        scale: the greatest bonus.

    Raises:
        ValueError: if observations have no `state`, or the model has another number of actions.
    """

    agent: ESWMAgent

    def __init__(self, env: gym.Env, agent: ESWMAgent | ESWM | str, scale: float = 1.0) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, _disable_deepcopy=True, agent=agent, scale=scale)
        super().__init__(env)
        self.agent, self.scale = _fresh(agent), scale  # type: ignore[assignment]  # an ESWMAgent for any model
        _check(env, self.agent.n_actions)

    def begin(self, obs: Observation, info: Info, seed: int | None = None) -> tuple[Observation, Info]:
        self.agent.reset(obs, info)
        self._keep(obs, info)
        return obs, {**info, "intrinsic_reward": 0.0}

    def follow(
        self, action: Any, obs: Observation, reward: Any, terminated: bool, truncated: bool, info: Info
    ) -> tuple[Observation, float, bool, bool, Info]:
        bonus = self.scale * self._uncertainty(int(action))
        self.agent.observe(self._obs, int(action), obs, info)
        self._keep(obs, info)
        return obs, float(reward) + bonus, terminated, truncated, {**info, "intrinsic_reward": bonus}

    def _keep(self, obs: Observation, info: Info) -> None:
        """Copies of what was handed out, which its receiver may change."""
        self._obs = copy.deepcopy(obs)
        self._info = copy.deepcopy({name: info[name] for name in ("action_mask",) if name in info})

    def _uncertainty(self, action: int) -> float:
        state = self.agent.number(self._obs["state"])
        ruled_out = action not in allowed_actions(self._info, self.agent.n_actions)
        if ruled_out or self.agent.memory.end_of(state, action) is not None:
            return 0.0
        table = self.agent.imagined(state)
        move = table.row(state), action
        return 1.0 if table.end[move] == UNKNOWN else 1.0 - float(table.probability[move])


class PlannedAction(EpisodeWrapper):
    """Adds `planned_action` to the observation, `Discrete`: what an agent would do here.

    An ESWMAgent follows its plan to `goal`, or explores. It sees all observations and infos, and learns from the moves
    that are taken, whether or not they are the planned ones. Policies of stable-baselines3 read `Discrete` one-hot.
    After a terminal step there is nothing to plan, and `planned_action` is 0. For environments in separate processes
    use `context="spawn"`: a fork can hang on PyTorch's threads.

    Args:
        env: an environment of this package, wrapped or not.
        agent: an agent, from which a fresh one is spawned for this environment; or a model, or the name of a pretrained
            one, for an ESWMAgent with default options. Only with a name can the environment's spec be written as JSON.

    Raises:
        ValueError: if observations have no `state`, or an ESWMAgent's model has another number of actions.
    """

    def __init__(self, env: gym.Env, agent: Agent | ESWM | str) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, _disable_deepcopy=True, agent=agent)
        super().__init__(env)
        self.agent = _fresh(agent)
        n_actions = _check(env, getattr(self.agent, "n_actions", None))
        shown = env.observation_space.spaces  # type: ignore[attr-defined]
        self.observation_space = spaces.Dict({**shown, "planned_action": spaces.Discrete(n_actions)})

    def begin(self, obs: Observation, info: Info, seed: int | None = None) -> tuple[Observation, Info]:
        if seed is not None:
            self.agent = self.agent.spawn(seed)
        self.agent.reset(obs, info)
        self._obs = copy.deepcopy(obs)
        return {**obs, "planned_action": self.agent.act(obs, info)}, info

    def follow(
        self, action: Any, obs: Observation, reward: Any, terminated: bool, truncated: bool, info: Info
    ) -> tuple[Observation, Any, bool, bool, Info]:
        self.agent.observe(self._obs, int(action), obs, info)
        self._obs = copy.deepcopy(obs)
        planned = 0 if terminated else self.agent.act(obs, info)
        return {**obs, "planned_action": planned}, reward, terminated, truncated, info


def _fresh(agent: Agent | ESWM | str) -> Agent:
    """A fresh agent."""
    if isinstance(agent, Agent):
        return agent.spawn()
    return ESWMAgent.from_pretrained(agent) if isinstance(agent, str) else ESWMAgent(agent)


def _check(env: gym.Env, n_actions: int | None) -> int:
    """The number of actions of an environment that shows its state.

    Raises:
        ValueError: if it does not show its state, or has another number of actions than the one given and does not
            show which of the model's they are.
    """
    shown, actions = env.observation_space, env.action_space
    if not isinstance(shown, spaces.Dict) or "state" not in shown.spaces or not isinstance(actions, spaces.Discrete):
        raise ValueError(f"the environment must show a state and have discrete actions, got {shown} and {actions}")
    if n_actions not in (None, actions.n) and "actions" not in shown.spaces:
        raise ValueError(f"the model has {n_actions} actions, the environment {actions.n}")
    return int(actions.n)
