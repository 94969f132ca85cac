"""MaskablePPO of sb3-contrib learns on `ESWM-RandomWall19-v0`, which hands out masks, and is evaluated beside ESWM.

Every episode is in a new room, whose states say nothing about where they lie: without a memory there is little to
learn but which moves tend to go somewhere. Needs `pip install sb3-contrib`.

It takes about 80 seconds on one core, and 10 with `--quick`.
"""

import argparse

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy as evaluate_without_masks

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import ESWMAgent
from eswm_gym.wrappers import MemoryBankObservation

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("--env-id", default="ESWM-RandomWall19-v0", help="default: %(default)s")
options.add_argument("--steps", type=int, default=50_000, help="of training (default 50000)")
options.add_argument("--episodes", type=int, default=100, help="of each evaluation (default 100)")
options.add_argument("--quick", action="store_true", help="512 steps and 16 episodes, to see that it runs")
args = options.parse_args()
if args.quick:
    args.steps, args.episodes = 512, 16

envs = make_vec_env(args.env_id, n_envs=8, seed=0)
model = MaskablePPO("MultiInputPolicy", envs, n_steps=64, batch_size=128, learning_rate=1e-3, seed=0, verbose=1)
model.learn(args.steps, log_interval=10)

held_out = make_vec_env(args.env_id, n_envs=8, seed=10**6)
mean, _ = evaluate_policy(model, held_out, n_eval_episodes=args.episodes, deterministic=False)
print(f"MaskablePPO, {model.num_timesteps} steps: return {mean:.2f}", flush=True)

held_out = make_vec_env(args.env_id, n_envs=8, seed=10**6, wrapper_class=MemoryBankObservation)
mean, _ = evaluate_without_masks(ESWMAgent.from_pretrained("random-wall"), held_out, n_eval_episodes=args.episodes)
print(f"ESWM, no training: return {mean:.2f}")
