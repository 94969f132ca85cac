"""The world model inside another agent's training: its agent's move as an observation, its doubt as a reward.

It takes about 6 minutes on one core, and 15 seconds with `--quick`.
"""

import argparse

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents.wrappers import PlannedAction, UncertaintyBonus

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
options.add_argument("--steps", type=int, default=10_000, help="of training")
options.add_argument("--episodes", type=int, default=100, help="of the evaluation")
options.add_argument("--scale", type=float, default=0.5, help="weight of the doubt")
options.add_argument("--quick", action="store_true", help="256 steps and 8 episodes, to see that it runs")
args = options.parse_args()
if args.quick:
    args.steps, args.episodes = 256, 8


def train(name, env_id, wrapper=None, **arguments):
    envs = make_vec_env(env_id, n_envs=4, seed=0, wrapper_class=wrapper, wrapper_kwargs=arguments)
    model = PPO("MultiInputPolicy", envs, n_steps=64, batch_size=128, learning_rate=1e-3, seed=0, verbose=1)
    print(f"{name}: learns")
    model.learn(args.steps, log_interval=2)
    if wrapper is UncertaintyBonus:
        wrapper = None  # evaluated on the task's own reward
    held_out = make_vec_env(env_id, n_envs=4, seed=10**6, wrapper_class=wrapper, wrapper_kwargs=arguments)
    mean, _ = evaluate_policy(model, held_out, n_eval_episodes=args.episodes, deterministic=False)
    print(f"{name}: return {mean:.2f}", flush=True)


train("navigate, plain", "ESWM-RandomWall19-v0")
train("navigate, planned action", "ESWM-RandomWall19-v0", PlannedAction, agent="random-wall")
explore = "ESWM-RandomWall19Explore-v0"
train("explore, plain", explore)
train("explore, doubt rewarded", explore, UncertaintyBonus, agent="random-wall", scale=args.scale)
