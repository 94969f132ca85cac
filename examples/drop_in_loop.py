"""ESWMAgent in the place of a stable-baselines3 policy: in `evaluate_policy`, and in a vectorised loop."""

import gymnasium as gym
import numpy as np
from eswm_gym.agents import ESWMAgent
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.wrappers import MemoryBankObservation

agent = ESWMAgent.from_pretrained("random-wall")

# stable-baselines3 hands a policy observations only, so the memory bank travels in the observation.
env = make_vec_env("ESWM-RandomWall19-v0", n_envs=4, seed=0, wrapper_class=MemoryBankObservation)
mean, std = evaluate_policy(agent, env, n_eval_episodes=20)
print(f"evaluate_policy: reward {mean:.2f} +- {std:.2f}")

# The same in a loop of one's own over Gymnasium's vector environments; without a memory bank the agent explores first.
envs = gym.make_vec("ESWM-RandomWallExplore-v0", num_envs=4)
obs, _ = envs.reset(seed=0)
state, starts, rewards = None, np.ones(4, bool), np.zeros(4)
for _ in range(25):
    actions, state = agent.predict(obs, state, starts)
    obs, reward, terminated, truncated, _ = envs.step(actions)
    starts = terminated | truncated
    rewards += reward
print(f"new locations visited in 25 steps: {rewards.astype(int).tolist()}")
