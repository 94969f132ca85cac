"""How soon an agent reaches a goal and walks the best path from nothing, and how well it plans from a spanning bank."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import networkx as nx
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

from eswm_gym.agents import Agent
from foreign.worlds import DiscreteStates, Table, TableEnv, spanning_bank

LIMIT = 100  # steps of an episode from a spanning bank


def from_bank(agent: Agent, table: Table, seed: int, window: int | None = None) -> float:
    """One episode from a spanning bank: shortest path over steps, 0 if the goal is not reached.

    Args:
        agent: to walk.
        table: the environment.
        seed: of the bank; and of start and goal where there is a window.
        window: how many states the bank spans, with start and goal among them. None: all, and the environment's own
            start and goal.
    """
    rng = np.random.default_rng(seed)
    graph = table.graph()
    if window is None:
        bank, start, goal = spanning_bank(table, rng), table.start, min(table.goals)
    else:
        states = _region(graph, rng, window, set(table.dead_ends) | table.goals)
        bank = spanning_bank(table, rng, states)
        inside = graph.subgraph(states)
        start, goal = _pair(inside, rng)
    env = TableEnv(table, bank, start, goal)
    shortest = nx.shortest_path_length(graph, start, goal)
    obs, info = env.reset()
    agent.reset(obs, info)
    for step in range(1, LIMIT + 1):
        action = agent.act(obs, info)
        following, _, terminated, _, now = env.step(action)
        agent.observe(obs, action, following, now)
        obs, info = following, {**info, **now}
        if terminated:
            return shortest / step if now["is_success"] else 0.0
    return 0.0


def _region(graph: nx.DiGraph, rng: np.random.Generator, size: int, without: set[int]) -> set[int]:
    """Connected states, grown at random around one of them."""
    undirected = graph.subgraph(set(graph) - without).to_undirected()
    region = {int(rng.choice(sorted(undirected)))}
    while len(region) < size:
        rim = sorted({n for state in region for n in undirected[state]} - region)
        region.add(int(rng.choice(rim)))
    return region


def _pair(graph: nx.DiGraph, rng: np.random.Generator) -> tuple[int, int]:
    """Two random states with a way from the first to the second."""
    while True:
        start, goal = (int(state) for state in rng.choice(sorted(graph), 2, replace=False))
        if nx.has_path(graph, start, goal):
            return start, goal


def from_nothing(agent: Any, env: DiscreteStates, seed: int, shortest: int, budget: int) -> tuple[int, int]:
    """Steps of an agent without memories until it is first at the goal, and until it has walked the best path.

    Args:
        agent: to walk; it keeps its memories from one episode to the next.
        env: the environment, with the same layout in each episode.
        seed: of the layout.
        shortest: length of the best path.
        budget: steps in all; what was not reached by then counts as the budget.
    """
    total, first, episode = 0, budget, 0
    while total < budget:
        obs, info = env.reset(seed=seed)
        agent.reset(obs, info, keep_memories=episode > 0)
        done, steps = False, 0
        while not done and total < budget:
            action = agent.act(obs, info)
            following, _, terminated, truncated, info = env.step(action)
            agent.observe(obs, action, following, info)
            obs, done = following, terminated or truncated
            total, steps = total + 1, steps + 1
            if info["is_success"]:
                first, done = min(first, total), True
                if steps == shortest:
                    return first, total
        episode += 1
    return first, budget


class _Watch(BaseCallback):
    """Notes when an episode first ends at the goal, and when one is as short as it can be."""

    def __init__(self, shortest: int, budget: int) -> None:
        super().__init__()
        self.shortest, self.first, self.best, self.began = shortest, budget, budget, 0

    def _on_step(self) -> bool:
        info, done = self.locals["infos"][0], self.locals["dones"][0]
        if done:
            if info["is_success"]:
                self.first = min(self.first, self.num_timesteps)
                if self.num_timesteps - self.began == self.shortest:
                    self.best = self.num_timesteps
                    return False
            self.began = self.num_timesteps
        return True


class OneHot(gym.ObservationWrapper):
    """The state as a vector with a 1 at its number, and the layout's seed in every episode."""

    def __init__(self, env: DiscreteStates, n_states: int, seed: int) -> None:
        super().__init__(env)
        self.n_states, self.seed = n_states, seed
        self.observation_space = gym.spaces.Box(0, 1, (n_states,), np.float32)

    def reset(self, **kwargs: Any) -> tuple[np.ndarray, dict[str, Any]]:
        return super().reset(**(kwargs | {"seed": self.seed}))

    def observation(self, observation: dict[str, Any]) -> np.ndarray:
        return (np.arange(self.n_states) == observation["state"]).astype(np.float32)


def ppo_from_nothing(env: DiscreteStates, seed: int, n_states: int, shortest: int, budget: int) -> tuple[int, int]:
    """What `from_nothing` measures, for stable-baselines3's PPO as it learns."""
    watch = _Watch(shortest, budget)
    shown = OneHot(env, n_states, seed)
    model = PPO("MlpPolicy", shown, n_steps=256, batch_size=64, learning_rate=1e-3, ent_coef=0.01, seed=seed % 2**31)
    model.learn(budget, callback=watch)
    return watch.first, watch.best
