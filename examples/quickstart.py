"""An agent finds its way in a room that it has never seen, from a minimal spanning memory bank.

It takes about 8 seconds on one core.
"""

import gymnasium as gym

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import ESWMAgent

env = gym.make("ESWM-RandomWall-v0", render_mode="ansi")
agent = ESWMAgent.from_pretrained("random-wall")

obs, info = env.reset(seed=17)
agent.reset(obs, info)  # takes info["memory_bank"]
print(env.render())
plan = agent.plan(obs["state"], obs["goal"])
print(f"plan {plan.states}, probability {plan.probability:.2f}, {plan.expanded} states expanded")

done = False
while not done:
    action = agent.act(obs, info)
    next_obs, reward, terminated, truncated, info = env.step(action)
    agent.observe(obs, action, next_obs, info)
    obs, done = next_obs, terminated or truncated
print("arrived" if info["is_success"] else "lost")
