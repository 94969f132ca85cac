"""ESWMAgent in the place of a stable-baselines3 policy: in `evaluate_policy`, and in a vectorised loop."""

import gymnasium as gym
import numpy as np
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import ESWMAgent
from eswm_gym.wrappers import MemoryBankObservation

agent = ESWMAgent.from_pretrained("random-wall")

# stable-baselines3 hands a policy observations only, so the memory bank travels in the observation.
env = make_vec_env("ESWM-RandomWall19-v0", n_envs=4, seed=0, wrapper_class=MemoryBankObservation)
mean, std = evaluate_policy(agent, env, n_eval_episodes=20)
print(f"evaluate_policy: reward {mean:.2f} +- {std:.2f}")

# The same in a loop of one's own over Gymnasium's vector environments. SAME_STEP: the observation that ends an episode
# is the first of the next one, as in stable-baselines3. Without a memory bank the agent starts by exploring.
same_step = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
envs = gym.make_vec("ESWM-RandomWallExplore-v0", num_envs=4, vectorization_mode="sync", vector_kwargs=same_step)
obs, _ = envs.reset(seed=0)
state, starts, found = None, np.ones(4, bool), 0.0
for _ in range(60):
    actions, state = agent.predict(obs, state, starts)
    obs, rewards, terminations, truncations, _ = envs.step(actions)
    starts = terminations | truncations
    found += rewards.sum()
print(f"explores: {found / 8:.1f} new locations in an episode of 30 steps")
