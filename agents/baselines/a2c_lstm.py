"""A2C-LSTM: an actor-critic with a recurrent memory, trained in one room (paper: "Baseline Navigational Agent")."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import torch
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from eswm_gym.agents.base import Info, Observation, end_of
from eswm_gym.agents.baselines.policy_agent import PolicyAgent
from eswm_gym.agents.states import state_of
from eswm_gym.envs import HexRoomEnv
from eswm_gym.rooms import N_ACTIONS, Room, RoomConfig
from eswm_gym.wrappers import FixedRoom, History

MAX_STEPS = 15  # of an episode, and rows of the history


class HistoryLSTM(BaseFeaturesExtractor):
    """History to the last hidden state of a one-layer LSTM.

    The four parts of a row (s_{t-1}, a_{t-1}, s_t, s_goal) are embedded by tables of their own and averaged.

    Args:
        observation_space: of `history`, as the wrapper `History` makes it.
        dim: width of the embeddings.
        hidden: width of the LSTM.
    """

    def __init__(self, observation_space: spaces.Dict, dim: int = 128, hidden: int = 256) -> None:
        super().__init__(observation_space, hidden)
        n_states = observation_space["state"].n  # type: ignore[attr-defined]
        sizes = (n_states, N_ACTIONS, n_states, n_states)
        self.embeddings = nn.ModuleList(nn.Embedding(size + 1, dim) for size in sizes)  # row 0 stands for none, -1
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        """(B, hidden) features of `history`, (B, T, 4) whole numbers, padded with -1 at the end."""
        history = obs["history"].long()
        parts = [embed(1 + part) for embed, part in zip(self.embeddings, history.unbind(2), strict=True)]
        outputs, _ = self.lstm(torch.stack(parts).mean(0))
        last = (history[..., 2] >= 0).sum(1) - 1
        return outputs[torch.arange(len(last)), last]


def one_room(room: Room) -> gym.Env:
    """A2C-LSTM's environment: random starts and goals in one room of states 0 ... L - 1."""
    env = TimeLimit(HexRoomEnv(RoomConfig.random_wall(room.radius, hidden=0.0)), MAX_STEPS)
    return History(FixedRoom(env, room), MAX_STEPS)


class A2CLSTMAgent(PolicyAgent):
    """Acts from the history of the episode by a policy that knows one room; see `PolicyAgent` for its arguments."""

    architecture = "a2c-lstm"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._steps: list[tuple[int, int, int]] = []  # (s_{t-1}, a_{t-1}, s_t)

    @property
    def room(self) -> Room:
        """The room that the agent was trained in."""
        return Room.from_dict(self.config["room"])

    @staticmethod
    def policy_options(config: dict[str, Any]) -> dict[str, Any]:
        """Linear heads on the features."""
        return {
            "features_extractor_class": HistoryLSTM,
            "features_extractor_kwargs": config["lstm"],
            "net_arch": [],
        }

    @staticmethod
    def observation_space(config: dict[str, Any]) -> spaces.Dict:
        return one_room(Room.from_dict(config["room"])).observation_space  # type: ignore[return-value]

    def reset(self, obs: Observation, info: Info) -> None:
        self._steps = [(-1, -1, state_of(obs["state"]))]

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        steps = [*self._steps, (state_of(obs["state"]), int(action), state_of(end_of(next_obs, info)))]
        if "goal_result" in info:  # `ManyGoals` moved the agent on
            steps.append((-1, -1, state_of(next_obs["state"])))
        self._steps = steps[-MAX_STEPS:]

    def _seen(self, obs: Observation) -> list[tuple[int, int, int, int]]:
        """Rows of the history.

        Raises:
            ValueError: if the observation has no goal, or a state is not one of the trained room's.
        """
        if "goal" not in obs:
            raise ValueError("A2C-LSTM was trained to reach goals: the observation needs one")
        goal, n_states = state_of(obs["goal"]), len(self.config["room"]["states"])
        if (greatest := max(goal, *(state for _, _, state in self._steps))) >= n_states:
            raise ValueError(f"A2C-LSTM was trained with states 0 to {n_states - 1}, got {greatest}")
        return [(*step, goal) for step in self._steps]

    @staticmethod
    def _logits(policy: ActorCriticPolicy, seen: list[list[tuple[int, int, int, int]]]) -> Tensor:
        histories = torch.full((len(seen), MAX_STEPS, 4), -1)
        for row, history in zip(histories, seen, strict=True):
            row[: len(history)] = torch.tensor(history)
        return policy.action_net(policy.features_extractor({"history": histories.to(policy.device)}))
