"""Plan in a world known from a dataset alone: random episodes in Minari's format become a memory bank.

It takes about 15 seconds on one core, and needs the extra `minari`.
"""

import os
import tempfile

import gymnasium as gym
import minari

from eswm_gym.agents import ESWMAgent, MemoryBank
from eswm_gym.wrappers import DiscreteStates

with tempfile.TemporaryDirectory() as folder:
    os.environ["MINARI_DATASETS_PATH"] = folder  # without this line, Minari keeps datasets in the home folder
    collector = minari.DataCollector(gym.make("FrozenLake-v1", is_slippery=False), record_infos=True)
    collector.action_space.seed(0)
    for episode in range(20):
        collector.reset(seed=episode)
        done = False
        while not done:
            _, _, terminated, truncated, _ = collector.step(collector.action_space.sample())
            done = terminated or truncated
    collector.create_dataset("frozen-lake/random-v0")
    collector.close()

    env = DiscreteStates(gym.make("FrozenLake-v1", is_slippery=False), lattice="square", goal=15)
    dataset = minari.load_dataset("frozen-lake/random-v0")
    bank = MemoryBank.from_minari(dataset, number=env.number)  # with the numbers that the environment will show
    lost = [e.observations[-1] for e in dataset.iterate_episodes() if e.terminations[-1] and not e.rewards[-1]]

agent = ESWMAgent.from_pretrained("lattices", seed=0)
obs, info = env.reset(seed=0)
agent.reset(obs, info | {"memory_bank": bank, "dead_ends": {env.number(hole) for hole in lost}})
print(f"{len(bank)} of 64 transitions seen, the goal {'too' if env.number(15) in bank.states else 'never'}")
done, steps = False, 0
while not done:
    action = agent.act(obs, info)
    next_obs, _, terminated, truncated, info = env.step(action)
    agent.observe(obs, action, next_obs, info)
    obs, done, steps = next_obs, terminated or truncated, steps + 1
print(f"{'arrived' if info['is_success'] else 'lost'} after {steps} steps, the shortest way has 6")
