"""Episodes that many agents of one kind live through in step, so that those with a model share its passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import Agent
from eswm_gym.rooms import Room

TOGETHER = 200  # episodes that share the passes of the model


@dataclass(frozen=True)
class Setup:
    """How an episode begins, the same for every method.

    Attributes:
        env_id: which environment.
        seed: of its reset, and of the agent.
        max_steps: time limit; None: the environment's own.
        options: of its reset.
        new_walls: locations that turn into walls after the memory bank was made, before the first step.
    """

    env_id: str
    seed: int
    max_steps: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    new_walls: tuple[int, ...] = ()


class Episode:
    """One episode of one method.

    Args:
        setup: how it begins.
        agent: fresh.
        memory_bank: what the agent begins with in place of what the environment hands out.

    Attributes:
        shortest: length of the shortest way to the goal from the start, if there is a goal.
        straight: that without any walls, on a lattice.
        path: locations or, in MiniGrid, poses, the start first.
        success: whether the task is done.
    """

    def __init__(self, setup: Setup, agent: Agent, memory_bank: np.ndarray | None = None) -> None:
        self.env: Any = gym.make(setup.env_id, max_episode_steps=setup.max_steps)
        self.setup, self.agent = setup, agent
        self.obs, self.info = self.env.reset(seed=setup.seed, options=setup.options)
        if setup.new_walls:
            self.env.unwrapped.add_walls(setup.new_walls)
        world = self.env.unwrapped
        self.path = [_place(self.info)]
        self.shortest = -1 if world.goal is None else world.shortest_path_length
        layout = world.layout
        self.straight = self.shortest
        if isinstance(layout, Room) and world.goal is not None:
            self.straight = int(layout.lattice.distances[world.goal, self.path[0]])
        self.done = self.success = False
        if memory_bank is not None:
            self.info["memory_bank"] = memory_bank
        agent.reset(self.obs, {**self.info, "layout": layout, "goal_pose": world.goal})  # oracles look at these

    @property
    def steps(self) -> int:
        return len(self.path) - 1

    def step(self) -> None:
        action = self.agent.act(self.obs, self.info)
        if action < 0:  # an open-loop plan has run out
            self.done = True
            return
        obs, _, terminated, truncated, info = self.env.step(action)
        self.agent.observe(self.obs, action, obs, info)
        self.obs, self.info = obs, info
        self.path.append(_place(info))
        self.success, self.done = terminated, terminated or truncated


def _place(info: dict[str, Any]) -> Any:
    return info["location"] if "location" in info else tuple(info["pose"].tolist())


def run(
    setups: Sequence[Setup],
    agent: Agent,
    memory_banks: Sequence[np.ndarray] | None = None,
    until: Callable[[Episode], bool] = lambda episode: False,
    kind: type[Episode] = Episode,
) -> list[Episode]:
    """Let a fresh agent of one kind live through each episode.

    Args:
        setups: how they begin.
        agent: which kind.
        memory_banks: for each episode, what the agent begins with; None: what the environment hands out.
        until: ends an episode before its time.
        kind: class of the episodes.
    """
    finished: list[Episode] = []
    for first in range(0, len(setups), TOGETHER):
        chunk = range(first, min(first + TOGETHER, len(setups)))
        batch = [
            kind(setups[i], agent.spawn(setups[i].seed), None if memory_banks is None else memory_banks[i])
            for i in chunk
        ]
        running = batch
        while running:
            agent.prepare(*([getattr(e, name) for e in running] for name in ("agent", "obs", "info")))
            for episode in running:
                episode.step()
            running = [episode for episode in running if not (episode.done or until(episode))]
        finished += batch
    return finished


def optimality(episodes: Sequence[Episode]) -> list[float]:
    """Shortest over actual length of the successful."""
    return [episode.shortest / episode.steps for episode in episodes if episode.success]
