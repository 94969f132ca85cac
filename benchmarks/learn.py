"""Does the world model help another agent learn? sb3-contrib's MaskablePPO, every episode in a room never seen.

In held-out rooms, after N steps of training, success in reaching a goal (`random-wall-19`):
  ppo                     the observation is the state and the goal
  ppo-planned-action      and what the ESWM agent would do here (`PlannedAction`)
and locations visited from an empty memory bank (`random-wall-19-explore`):
  ppo                     the reward is 1 for each new location
  ppo-uncertainty-bonus   and what the model was unsure of (`UncertaintyBonus`)
  ppo-only-bonus          that alone
In both, `eswm` is the ESWM agent itself, without training.

Policies are evaluated as they are trained, on draws from them: the best move of one without a memory goes round in
circles. Values are means over runs, which differ in the seed of training, and the intervals are over runs; those of
`eswm` are over episodes.
"""

from __future__ import annotations

from collections.abc import Callable

import gymnasium as gym
import numpy as np
from common.cli import MODEL_ROOMS, BySize, agent_parser, finish
from common.intervals import mean
from common.models import find_hex_model
from common.progress import progress
from common.rows import Row
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy as evaluate_without_masks

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.wrappers import PlannedAction, UncertaintyBonus
from eswm_gym.wrappers import ActionMaskObservation, MemoryBankObservation

N_ENVS = 8
ROLLOUT = 64  # steps of each environment between updates
LEARNING_RATE = 3e-3
BONUS = 0.5  # weight of the uncertainty
# Setting: environment, metric.
SETTINGS = {
    "random-wall-19": ("ESWM-RandomWall19-v0", "success_rate"),
    "random-wall-19-explore": ("ESWM-RandomWall19Explore-v0", "unique_locations"),
}
Wrapper = Callable[[gym.Env], gym.Env]


def methods(setting: str, agent: ESWMAgent) -> dict[str, tuple[Wrapper | None, Wrapper | None]]:
    """For each method, what is around the environment in training and in evaluation."""

    def planned(env: gym.Env) -> gym.Env:
        return PlannedAction(env, agent)

    def bonus(env: gym.Env) -> gym.Env:
        return UncertaintyBonus(env, agent, BONUS)

    def only_bonus(env: gym.Env) -> gym.Env:
        return UncertaintyBonus(gym.wrappers.TransformReward(env, lambda reward: 0.0), agent, BONUS)

    if setting == "random-wall-19":  # where the memory bank leaves little to be unsure of
        return {"ppo": (None, None), "ppo-planned-action": (planned, planned)}
    return {"ppo": (None, None), "ppo-uncertainty-bonus": (bonus, None), "ppo-only-bonus": (only_bonus, None)}


def score(setting: str, returns: list[float]) -> float:
    """The metric of a setting, from the returns of its episodes."""
    if setting == "random-wall-19":
        return float(np.mean(np.array(returns) > 0))  # 1 - 0.01 (steps - 1) with success, else -0.01 steps
    return 1 + float(np.mean(returns))  # the start counts as visited


def learn(
    setting: str, around: tuple[Wrapper | None, Wrapper | None], run: int, steps: int, every: int, episodes: int
) -> dict[int, float]:
    """Train once; returns the score after each number of steps.

    Args:
        setting: which environment.
        around: its wrappers in training and in evaluation.
        run: seed of training. Rooms of evaluation are the same in all runs.
        steps, every: how long to train, and how long between evaluations.
        episodes: of each evaluation.
    """
    envs = make_vec_env(SETTINGS[setting][0], N_ENVS, seed=1000 * run, wrapper_class=around[0])
    model = MaskablePPO(
        "MultiInputPolicy", envs, n_steps=ROLLOUT, batch_size=128, learning_rate=LEARNING_RATE, seed=run
    )
    found = {}
    while True:
        held_out = make_vec_env(SETTINGS[setting][0], N_ENVS, seed=MODEL_ROOMS, wrapper_class=around[1])
        returns, _ = evaluate_policy(model, held_out, episodes, deterministic=False, return_episode_rewards=True)
        found[model.num_timesteps] = score(setting, returns)  # type: ignore[arg-type]
        if model.num_timesteps >= steps:
            return found
        model.learn(every, reset_num_timesteps=False)


def reference(setting: str, agent: ESWMAgent, episodes: int) -> list[float]:
    """Scores of the ESWM agent in the same rooms, episode by episode; it gets the masks as the policies do."""

    def wrapper(env: gym.Env) -> gym.Env:
        return ActionMaskObservation(env if setting.endswith("explore") else MemoryBankObservation(env))

    held_out = make_vec_env(SETTINGS[setting][0], N_ENVS, seed=MODEL_ROOMS, wrapper_class=wrapper)
    returns, _ = evaluate_without_masks(agent, held_out, episodes, return_episode_rewards=True)  # type: ignore[arg-type]
    return [score(setting, [one]) for one in returns]  # type: ignore[union-attr]


def main(argv: list[str] | None = None) -> list[Row]:
    options = agent_parser(__doc__, BySize(0.3, 3.5, 6), (16, 50, 100), "rooms of each evaluation")
    options.add_count("--steps", (512, 4096, 4096), "of training")
    options.add_count("--runs", (1, 2, 3), "of each method")
    args = options.parse_args(argv)
    steps, runs, episodes = args.steps, args.runs, args.episodes
    every = max(N_ENVS * ROLLOUT, steps // 4)
    agent = ESWMAgent(find_hex_model(args.model, args.device), seed=args.seed)
    rows: list[Row] = []
    for setting, (_, metric) in SETTINGS.items():
        for method, around in methods(setting, agent).items():
            seeds = range(args.seed * 10**4, args.seed * 10**4 + runs)
            bar = progress(seeds, f"{setting}, {method}")
            curves = [learn(setting, around, run, steps, every, episodes) for run in bar]
            for n in curves[0]:
                found = mean([curve[n] for curve in curves], args.seed)
                rows.append(Row(setting, method, metric, *found, along="steps", at=n))
        rows.append(Row(setting, "eswm", metric, *mean(reference(setting, agent, episodes), args.seed)))
    return finish(args, "learn", rows, replay=f"--env {SETTINGS['random-wall-19'][0]} --seed {MODEL_ROOMS}")


if __name__ == "__main__":
    main()
