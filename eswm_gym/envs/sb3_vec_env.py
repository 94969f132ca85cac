"""stable-baselines3 trains on a Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn


class SB3VecEnv(VecEnv):
    """A Gymnasium vector environment as stable-baselines3 expects it.

    Rooms start anew in the step that ends their episode. The info of that step has `terminal_observation` and
    `TimeLimit.truncated`, and `reset_infos` has what the reset said. `env_method("action_masks")` serves MaskablePPO.
    Wrap it in `VecMonitor` to log returns and lengths of episodes.

    Args:
        venv: a vector environment that resets in the same step, such as
            `gymnasium.make_vec("ESWM-RandomWall-v0", 256, autoreset_mode="SameStep")`.

    Raises:
        ValueError: if it resets otherwise.
    """

    def __init__(self, venv: VectorEnv) -> None:
        mode = venv.metadata.get("autoreset_mode")
        if mode != AutoresetMode.SAME_STEP:
            raise ValueError(f"the vector environment's autoreset_mode must be SAME_STEP, got {mode}")
        self.venv = venv
        super().__init__(venv.num_envs, venv.single_observation_space, venv.single_action_space)
        self._actions: np.ndarray | None = None

    def reset(self) -> VecEnvObs:
        """Start an episode in every room, with the seed and the options that `seed` and `set_options` were given.

        Raises:
            ValueError: if the options of the rooms differ.
        """
        options = self._options[0]
        if any(other != options for other in self._options):
            raise ValueError(f"the reset options must be the same in all rooms, got {self._options}")
        observations, infos = self.venv.reset(seed=self._seeds[0], options=options or None)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = _rows(infos, self.num_envs)
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, terminations, truncations, infos = self.venv.step(self._actions)
        final_infos = infos.pop("final_info", {})
        final_observations = infos.pop("final_obs", None)
        rows = _rows(infos, self.num_envs)
        dones = terminations | truncations
        if dones.any():
            last = _rows(final_infos, self.num_envs)
            for i in np.flatnonzero(dones).tolist():
                self.reset_infos[i], rows[i] = rows[i], last[i]
                rows[i]["terminal_observation"] = final_observations[i]
                if "episode" in self.reset_infos[i]:  # of RecordEpisodeStatistics, which adds it after the reset
                    rows[i]["episode"] = self.reset_infos[i].pop("episode")
        for row, cut in zip(rows, (truncations & ~terminations).tolist(), strict=True):
            row["TimeLimit.truncated"] = cut
        return observations, rewards.astype(np.float32), dones, rows

    def close(self) -> None:
        self.venv.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        images: Any = self.venv.render()
        return [None] * self.num_envs if images is None else list(images)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        values = self._unwrapped_venv.get_attr(attr_name)
        return [values[i] for i in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute in all rooms, if the vector environment can do so."""
        if indices is not None:
            raise ValueError(f"attributes can be set in all rooms only, got indices {indices}")
        self._unwrapped_venv.set_attr(attr_name, value)

    def env_method(self, method_name: str, *method_args, indices: VecEnvIndices = None, **method_kwargs) -> list[Any]:
        values = self._unwrapped_venv.call(method_name, *method_args, **method_kwargs)
        return [values[i] for i in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]

    @property
    def _unwrapped_venv(self) -> Any:
        """The vector environment inside its wrappers, which do not pass attributes on."""
        return self.venv.unwrapped


def _rows(infos: dict[str, Any], n: int) -> list[dict[str, Any]]:
    """The infos of a vector environment, room by room."""
    rows: list[dict[str, Any]] = [{} for _ in range(n)]
    for key, column in infos.items():
        if key.startswith("_"):
            continue
        if isinstance(column, dict):
            values: Sequence[Any] = _rows(column, n)
        else:
            values = column.tolist() if column.ndim == 1 else list(column)
        has = infos.get(f"_{key}")
        for i in range(n) if has is None else np.flatnonzero(has).tolist():
            rows[i][key] = values[i]
    return rows
