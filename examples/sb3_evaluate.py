"""ESWMAgent in the place of a stable-baselines3 policy: `evaluate_policy` in every environment of a shipped model.

It takes about 5 minutes on one core, and 15 seconds with `--quick`.
"""

import argparse

import gymnasium as gym
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import ESWMAgent
from eswm_gym.wrappers import for_sb3

# Those that a shipped model has learnt.
ENV_IDS = [env_id for env_id in gym.registry if env_id.startswith("ESWM-")]


options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
options.add_argument("--env-ids", nargs="+", default=ENV_IDS, metavar="ID", help="environments")
options.add_argument("--episodes", type=int, default=20, help="of the evaluation")
options.add_argument("--n-envs", type=int, default=4, help="environments at a time")
options.add_argument("--quick", action="store_true", help="one episode in the first three, to see that it runs")
args = options.parse_args()
if args.quick:
    args.env_ids, args.episodes = args.env_ids[:3], 1

for env_id in args.env_ids:
    print(env_id, end=": ", flush=True)
    agent = ESWMAgent.from_pretrained("minigrid" if "MiniGrid" in env_id else "random-wall", seed=0)

    # stable-baselines3 hands a policy observations only: for_sb3 puts masks and memory banks there.
    # One environment; evaluate_policy puts it into a DummyVecEnv.
    env = Monitor(for_sb3(gym.make(env_id)))
    env.reset(seed=0)
    mean, _ = evaluate_policy(agent, env, n_eval_episodes=args.episodes)
    print(f"return {mean:.4f} in one environment", end=", ", flush=True)
    # Several; the agent keeps a memory bank for each, and the model answers for all of them at once.
    envs = make_vec_env(env_id, n_envs=args.n_envs, seed=0, wrapper_class=for_sb3)
    mean, _ = evaluate_policy(agent, envs, n_eval_episodes=args.episodes)
    print(f"{mean:.4f} in {args.n_envs}", flush=True)
