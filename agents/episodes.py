"""Episodes of many agents of one kind, run in step, so that agents with a model share its forward passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from eswm_gym.agents.base import Agent
from eswm_gym.rooms import Room

TOGETHER = 200  # episodes that share forward passes


@dataclass(frozen=True)
class Setup:
    """How an episode begins, the same for every method.

    Attributes:
        env: the id of an environment, or a function that makes one.
        seed: of the environment's reset, and of the agent.
        max_steps: time limit of an environment given by its id; None for the environment's own.
        options: of the environment's reset.
        new_walls: locations that turn into walls after the memory bank was made, before the first step.
    """

    env: str | Callable[[], gym.Env]
    seed: int
    max_steps: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    new_walls: tuple[int, ...] = ()

    def make(self) -> Any:
        """The environment (`gym.Env`), before its reset."""
        return gym.make(self.env, max_episode_steps=self.max_steps) if isinstance(self.env, str) else self.env()


class Episode:
    """One episode of one agent.

    Args:
        setup: how it begins.
        agent: a fresh one.
        memory_bank: (M, W), what the agent begins with; None for what the environment hands out.

    Attributes:
        env, agent, setup: of the episode.
        obs, info: the latest ones.
        shortest: length of the shortest path from the start to the goal; -1 without a goal or a path.
        straight: the same without any walls, on a lattice.
        path: locations or, in MiniGrid, poses; the start comes first.
        success: whether the task is done.
        done: whether the episode is over.
    """

    def __init__(self, setup: Setup, agent: Agent, memory_bank: np.ndarray | None = None) -> None:
        self.env = setup.make()
        self.setup, self.agent = setup, agent
        self.obs, self.info = self.env.reset(seed=setup.seed, options=setup.options)
        world = self.env.unwrapped
        if setup.new_walls:
            world.add_walls(setup.new_walls)
        self.path = [world.place]
        self.shortest = -1 if world.goal is None else world.shortest_path_length
        self.straight = self.shortest
        if world.goal is not None and isinstance(world.layout, Room):
            self.straight = int(world.layout.lattice.distances[world.goal, world.place])
        self.done = self.success = False
        if memory_bank is not None:
            self.info["memory_bank"] = memory_bank
        for_oracles = {"layout": world.layout, "goal_pose": world.goal}
        agent.reset(self.obs, {**self.info, **for_oracles})

    @property
    def steps(self) -> int:
        """How many actions were taken."""
        return len(self.path) - 1

    def step(self) -> None:
        """Let the agent act once. A negative action, of a plan that has run out, ends the episode."""
        action = self.agent.act(self.obs, self.info)
        if action < 0:
            self.done = True
            return
        obs, _, terminated, truncated, info = self.env.step(action)
        self.agent.observe(self.obs, action, obs, info)
        self.obs, self.info = obs, info
        self.path.append(self.env.unwrapped.place)
        self.success, self.done = terminated, terminated or truncated


def run(
    setups: Sequence[Setup],
    agent: Agent,
    memory_banks: Sequence[np.ndarray] | None = None,
    until: Callable[[Episode], bool] = lambda episode: False,
    kind: type[Episode] = Episode,
) -> list[Episode]:
    """Run an episode from each setup, each with a fresh agent.

    Args:
        setups: how the episodes begin.
        agent: fresh agents are made from it.
        memory_banks: what each agent begins with; None for what the environments hand out.
        until: ends an episode early.
        kind: class of the episodes.
    """
    finished: list[Episode] = []
    for first in range(0, len(setups), TOGETHER):
        chunk = range(first, min(first + TOGETHER, len(setups)))
        finished += run_in_step(
            [
                kind(setups[i], agent.spawn(setups[i].seed), None if memory_banks is None else memory_banks[i])
                for i in chunk
            ],
            until,
        )
    return finished


def run_in_step(
    episodes: Sequence[Episode], until: Callable[[Episode], bool] = lambda episode: False
) -> Sequence[Episode]:
    """Run episodes of agents of one kind to their ends, one step of each at a time, and return them."""
    running = list(episodes)
    while running:
        agents = [episode.agent for episode in running]
        agents[0].prepare(agents, [episode.obs for episode in running], [episode.info for episode in running])
        for episode in running:
            episode.step()
        running = [episode for episode in running if not (episode.done or until(episode))]
    return episodes


def optimality(episodes: Sequence[Episode]) -> list[float]:
    """Shortest over actual path length of the episodes that succeeded."""
    return [episode.shortest / episode.steps for episode in episodes if episode.success]
