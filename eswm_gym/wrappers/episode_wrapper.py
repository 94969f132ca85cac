"""What wrappers that keep something of an episode share: where an episode begins."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import gymnasium as gym


class EpisodeWrapper(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """A wrapper that keeps something of an episode.

    An episode begins with `reset`, and also with the step after an end, in which `gymnasium.wrappers.Autoreset` and
    vector environments reset and ignore the action.
    """

    _over = False  # the last step ended an episode

    @abstractmethod
    def begin(self, obs: Any, info: dict[str, Any], seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Take in the first observation and info of an episode, and return what to show."""

    @abstractmethod
    def follow(
        self, action: Any, obs: Any, reward: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take in a step of an episode, and return what to show."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        shown = self.begin(*self.env.reset(seed=seed, options=options), seed)
        self._over = False
        return shown

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        if self._over:
            obs, info = self.begin(obs, info)
        else:
            obs, reward, terminated, truncated, info = self.follow(action, obs, reward, terminated, truncated, info)
        self._over = terminated or truncated
        return obs, reward, terminated, truncated, info
