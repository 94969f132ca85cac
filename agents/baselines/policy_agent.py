"""Agents that act by a trained policy of stable-baselines3."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy, MultiInputActorCriticPolicy
from torch import Tensor

from eswm_gym.agents.base import Agent, Info, Observation, allowed_actions
from eswm_gym.agents.baselines.checkpoints import load_policy
from eswm_gym.rooms import N_ACTIONS

if TYPE_CHECKING:
    from typing_extensions import Self

TOGETHER = 64  # agents in one pass: more are no faster on a CPU, and take memory


class PolicyAgent(Agent):
    """An agent with a trained policy.

    Args:
        policy: made by `build`, or the one in training; shared, never changed.
        config: what it was made from.
        deterministic: take the likeliest action, else draw from the policy.
        seed: of the draws.
    """

    architecture: ClassVar[str]

    def __init__(
        self, policy: ActorCriticPolicy, config: dict[str, Any], deterministic: bool = True, seed: int | None = None
    ) -> None:
        self.policy, self.config, self.deterministic = policy, config, deterministic
        self.rng = np.random.default_rng(seed)
        self._prepared: tuple[Any, np.ndarray] | None = None

    @staticmethod
    @abstractmethod
    def policy_options(config: dict[str, Any]) -> dict[str, Any]:
        """stable-baselines3's `policy_kwargs`."""

    @staticmethod
    @abstractmethod
    def observation_space(config: dict[str, Any]) -> spaces.Dict:
        """What the policy is trained on."""

    @abstractmethod
    def _seen(self, obs: Observation) -> Any:
        """All that the policy sees, so that equal sights have equal logits."""

    @staticmethod
    @abstractmethod
    def _logits(policy: ActorCriticPolicy, seen: list[Any]) -> Tensor:
        """(B, 6) logits of actions."""

    @classmethod
    def build(cls, config: dict[str, Any]) -> ActorCriticPolicy:
        """The untrained policy of a config, for weights to be loaded into."""
        return MultiInputActorCriticPolicy(
            cls.observation_space(config),
            spaces.Discrete(N_ACTIONS),
            lambda _: 0.0,
            ortho_init=False,
            optimizer_class=lambda *_, **__: None,  # type: ignore[arg-type,return-value]  # seconds faster than one
            **cls.policy_options(config),
        )

    @classmethod
    def from_pretrained(cls, name: str | Path | None = None, device: str = "cpu", **options: Any) -> Self:
        """An agent with the policy that comes with the package, or with one in a file.

        Args:
            name: of the policy, or the path of its files with or without a suffix; None for the package's.
            device: where to compute.
            **options: of the agent.

        Raises:
            FileNotFoundError: if there is none.
            CheckpointError: if its files are damaged or foreign.
        """
        policy, info = load_policy(name or cls.architecture, cls.architecture, cls.build, device)
        return cls(policy, info["config"], **options)

    def spawn(self, seed: int | None = None) -> Self:
        return type(self)(self.policy, self.config, self.deterministic, seed)

    def act(self, obs: Observation, info: Info) -> int:
        if self._prepared is None or self._prepared[0] != self._seen(obs):
            self.prepare([self], [obs])
        assert self._prepared is not None
        allowed = allowed_actions(info, N_ACTIONS)
        logits = self._prepared[1][allowed]
        if not self.deterministic:  # Gumbel's way to draw from a softmax
            logits = logits + self.rng.gumbel(size=len(logits))
        return int(allowed[logits.argmax()])

    @staticmethod
    def prepare(
        agents: Sequence[PolicyAgent], observations: Sequence[Observation], infos: Sequence[Info] | None = None
    ) -> None:
        """Compute the logits of agents that share a policy, many in one pass."""
        seen = [agent._seen(obs) for agent, obs in zip(agents, observations, strict=True)]
        for first in range(0, len(agents), TOGETHER):
            some, sights = agents[first : first + TOGETHER], seen[first : first + TOGETHER]
            with torch.inference_mode():
                logits = some[0]._logits(some[0].policy, sights).cpu().numpy()
            for agent, sight, row in zip(some, sights, logits, strict=True):
                agent._prepared = (sight, row)
