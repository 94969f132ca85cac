"""A plain Gymnasium loop with Gymnasium's own wrappers: a time limit, statistics of episodes, and their frames.

Where moviepy is installed, each episode is written to FOLDER/eswm-episode-N.mp4. It takes about 9 seconds on one core.
"""

import argparse
from importlib.util import find_spec

import gymnasium as gym
from gymnasium.wrappers import RecordEpisodeStatistics, RecordVideo, RenderCollection, TimeLimit

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import ESWMAgent

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("--episodes", type=int, default=5, help="how many (default 5)")
options.add_argument(
    "--max-steps", type=int, default=40, help="time limit, in place of the environment's own (default 40)"
)
options.add_argument("--folder", default="videos", help="where videos go (default videos)")
args = options.parse_args()

env = gym.make("ESWM-RandomWall-v0", max_episode_steps=-1, render_mode="rgb_array")  # -1: no time limit
env = TimeLimit(env, args.max_steps)
if find_spec("moviepy"):
    env = RecordVideo(env, args.folder, episode_trigger=lambda episode: True, name_prefix="eswm")
else:
    env = RenderCollection(env)  # `render` returns the frames since it was last called
env = RecordEpisodeStatistics(env)

agent = ESWMAgent.from_pretrained("random-wall", seed=0)
for episode in range(args.episodes):
    obs, info = env.reset(seed=0 if episode == 0 else None)
    agent.reset(obs, info)
    done = False
    while not done:
        action = agent.act(obs, info)
        next_obs, reward, terminated, truncated, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        obs, done = next_obs, terminated or truncated
    what = "arrived" if info["is_success"] else "out of time"
    frames = env.render()
    shown = f"{len(frames)} frames" if isinstance(frames, list) else f"video in {args.folder}"
    print(f"episode {episode}: {what}, return {info['episode']['r']:.2f} in {info['episode']['l']} steps, {shown}")
env.close()
