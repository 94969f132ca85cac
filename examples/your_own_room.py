"""A room of one's own: plan in it, put a wall in the way, and watch the agent find another way.

With a file name as argument, the last picture is saved there. It takes about 8 seconds on one core.
"""

import sys

import gymnasium as gym
import numpy as np

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import ESWMAgent
from eswm_gym.rooms import Room

# Radius 2: 19 locations, numbered row by row from the north-west (0-2, 3-6, 7-11, 12-15, 16-18).
room = Room(2, states=np.random.default_rng(0).permutation(19), walls=[4])
env = gym.make("ESWM-RandomWall19-v0", render_mode="rgb_array")
agent = ESWMAgent.from_pretrained("random-wall")

obs, info = env.reset(seed=0, options={"room": room, "start": 7, "goal": 11})
agent.reset(obs, info)
print("plan:", agent.plan(obs["state"], obs["goal"]).states)

env.unwrapped.add_walls([9, 10])  # the agent's memories do not know of these
done = False
while not done:
    action = agent.act(obs, info)
    next_obs, _, terminated, truncated, info = env.step(action)
    agent.observe(obs, action, next_obs, info)
    print(f"{obs['state']} -> {next_obs['state']}{'  blocked' if info['blocked'] else ''}")
    obs, done = next_obs, terminated or truncated
print("arrived" if info["is_success"] else "lost")

if len(sys.argv) > 1:
    import pygame

    frame = env.render()
    pygame.image.save(pygame.surfarray.make_surface(np.swapaxes(frame, 0, 1)), sys.argv[1])
