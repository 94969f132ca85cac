"""An agent explores a room it has never seen, walks to a goal, and goes round a wall that was not there before.

It takes about 10 seconds on one core.
"""

import gymnasium as gym

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import ESWMAgent

agent = ESWMAgent.from_pretrained("random-wall", seed=0)

# Explore from an empty memory bank.
env = gym.make("ESWM-RandomWall19Explore-v0")
obs, info = env.reset(seed=5)
room = env.unwrapped.room.copy()
agent.reset(obs, info)
path, done = [info["location"]], False
while not done:
    action = agent.act(obs, info)
    next_obs, _, terminated, truncated, info = env.step(action)
    agent.observe(obs, action, next_obs, info)
    obs, done = next_obs, terminated or truncated
    path.append(info["location"])
print(f"visited {len(set(path))} of {(~room.walls).sum()} locations in {len(path) - 1} steps")

# Go back to the farthest place with what it remembers. A wall appears on the way that it planned.
goal = max(path, key=room.distances_from(path[-1]).__getitem__)
explored = agent.memory.to_numpy()
env = gym.make("ESWM-RandomWall19-v0")
obs, info = env.reset(seed=5, options={"room": room, "start": path[-1], "goal": goal})
agent.reset(obs, {**info, "memory_bank": explored})
plan = agent.plan(obs["state"], obs["goal"])
print("plan:", plan.states)
env.unwrapped.add_walls([room.location_of(plan.states[1])])
way, done = [obs["state"]], False
while not done:
    action = agent.act(obs, info)
    next_obs, _, terminated, truncated, info = env.step(action)
    agent.observe(obs, action, next_obs, info)
    if "forgotten" in info:
        print("forgot", info["forgotten"])
    obs, done = next_obs, terminated or truncated
    way.append(obs["state"])
print("walked:", tuple(int(state) for state in way), "and arrived" if info["is_success"] else "and got lost")
