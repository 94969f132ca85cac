"""Many goals in one room, one after another: what an agent learns about the room outlives each goal."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from eswm_gym.envs import HexRoomEnv


class ManyGoals(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """An episode is one room with many goals (Ritter et al. 2021; paper: appendix "Episodic Planning Networks").

    Where an episode of the wrapped environment would end, at the goal or at its time limit, the agent is put at a new
    random start with a new random goal in the same room. `info` has besides:

    - `end_state`: what the action led to. Where a goal ends, the observation is of the next start already.
    - `goal_result`: only where a goal ends, a dict of `success`, `steps`, `shortest` (steps of a shortest path) and
      `began` (step of the episode at which the goal was given).

    `reset(options={"elapsed": n})` counts n steps as taken, so that parallel environments need not end together.

    Args:
        env: a hexagonal room, task `navigate`, with a time limit.
        episode_steps: steps until truncation; the only end of an episode.
        progress_reward: added to the reward for each step nearer to the goal, taken off for each step farther: a
            potential, which leaves the best way the best one and shows in every step which way that is. For training.

    Raises:
        ValueError: if the environment has no goals.
    """

    def __init__(self, env: gym.Env, episode_steps: int = 300, progress_reward: float = 0.0) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, episode_steps=episode_steps, progress_reward=progress_reward)
        super().__init__(env)
        room = env.unwrapped
        if not isinstance(room, HexRoomEnv) or room.task != "navigate":
            raise ValueError("ManyGoals needs a hexagonal room with the task 'navigate'")
        self._room_env = room
        self.episode_steps, self.progress_reward = episode_steps, progress_reward
        self._elapsed = self._began = 0  # steps of the episode, and where in it the goal was given
        self._shortest = self._distance = 0  # steps to the goal, from its start and from here

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        options = dict(options or {})
        self._elapsed = options.pop("elapsed", 0)
        return self._next_goal(seed=seed, options=options)

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._elapsed += 1
        distance = info["shortest_path_length"]
        reward = float(reward)
        if distance >= 0:  # else walls cut the goal off
            reward += self.progress_reward * (self._distance - distance)
            self._distance = distance
        end_state = obs["state"]
        if terminated or truncated:
            steps = self._elapsed - self._began
            result = {"success": terminated, "steps": steps, "shortest": self._shortest, "began": self._began}
            obs, info = self._next_goal(options={"room": self._room_env.room})
            info["goal_result"] = result
        info["end_state"] = end_state
        return obs, reward, False, self._elapsed >= self.episode_steps, info

    def _next_goal(self, **reset: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        obs, info = self.env.reset(**reset)
        self._began = self._elapsed
        self._distance = self._shortest = info["shortest_path_length"]
        return obs, info
