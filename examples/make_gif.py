"""The picture in README: a wall appears in the agent's way, and it plans again.

Black arrows are what the agent remembers, green ones what it imagines; the line is its plan.
It takes about 10 seconds on one core.
"""

import argparse

import gymnasium as gym
from PIL import Image

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.beliefs import RenderBeliefs
from eswm_gym.agents.replay import SEED, wall_off

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("file", nargs="?", default="replan.gif", help="(default %(default)s)")
parser.add_argument("--width", type=int, default=400, help="pixels (default %(default)s)")
args = parser.parse_args()

agent = ESWMAgent.from_pretrained("random-wall", seed=SEED)
env = RenderBeliefs(gym.make("ESWM-RandomWall-v0", render_mode="rgb_array"), agent)
obs, info = env.reset(seed=SEED)
agent.reset(obs, info)
pictures, done = [], False
while not done:
    action = agent.act(obs, info)
    if len(pictures) == 1:
        wall_off(env, agent, obs, info)
    pictures.append(env.render())
    next_obs, _, terminated, truncated, info = env.step(action)
    agent.observe(obs, action, next_obs, info)
    obs, done = next_obs, terminated or truncated
pictures.append(env.render())

height = round(args.width * len(pictures[0]) / len(pictures[0][0]))
frames = [Image.fromarray(p).resize((args.width, height)).quantize(32, dither=Image.Dither.NONE) for p in pictures]
frames[0].save(args.file, save_all=True, append_images=frames[1:], duration=[900] * (len(frames) - 1) + [2500], loop=0)
print(f"wrote {args.file}: {len(frames)} pictures, {'arrived' if info['is_success'] else 'lost'}")
