"""Agents that go to where a picture was taken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from common.intervals import mean, rate
from common.progress import progress
from common.rows import Row

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import IndoorAgent
from eswm_gym.agents.baselines import PoseGraph
from eswm_gym.rooms.indoor import Space
from eswm_gym.world_model.indoor.model import IndoorModel
from eswm_gym.world_model.indoor.vision import Encoder

ENV_ID = "ESWM-Indoor-v0"


class Walked(NamedTuple):
    """An episode: whether it succeeded, its steps, the metres walked and the metres of the shortest way."""

    success: bool
    steps: int
    metres: float
    shortest: float


class Random:
    """Draws actions."""

    def __init__(self, space: gym.Space, seed: int) -> None:
        self.space = space
        space.seed(seed)

    def reset(self, obs: Any, info: Any) -> None:
        return None

    def act(self, obs: Any, info: Any) -> np.ndarray:
        return self.space.sample()

    def observe(self, obs: Any, action: Any, next_obs: Any, info: Any) -> None:
        return None


def navigation_rows(seeds: Iterable[int], model: IndoorModel, encoder: Encoder, seed: int) -> list[Row]:
    """Success, and the way over the shortest way of those that arrive."""
    env = gym.make(ENV_ID)
    agents = {
        "eswm": IndoorAgent(model, encoder),
        "pose-graph": IndoorAgent(PoseGraph(model.reduction), encoder),
    }
    rows = []
    for method in progress(["random", *agents], "navigation"):
        walked = []
        for s in seeds:
            agent = agents[method].spawn(s) if method in agents else Random(env.action_space, s)
            walked.append(walk(env, agent, s))
        rows += rows_of("indoor-navigation", method, walked, seed)
    return rows + rows_of(
        "indoor-navigation", "oracle", [Walked(True, 0, w.shortest, w.shortest) for w in walked], seed
    )


def door_rows(first: int, n: int, model: IndoorModel, encoder: Encoder, seed: int) -> list[Row]:
    """The same where a door that the shortest way leads through was closed after the bank was made."""
    env = gym.make(ENV_ID, rooms=4)
    agents = {
        "eswm": IndoorAgent(model, encoder),
        "eswm-no-editing": IndoorAgent(model, encoder, edits=False),
        "pose-graph": IndoorAgent(PoseGraph(model.reduction), encoder),
    }
    found: dict[str, list[Walked]] = {method: [] for method in agents}
    bar, s = iter(progress(range(n), "closed doors")), first
    for _ in bar:
        while (door := _on_the_way(env, s)) is None:
            s += 1
        for method, agent in agents.items():
            found[method].append(walk(env, agent.spawn(s), s, door))
        s += 1
    return [row for method, walked in found.items() for row in rows_of("indoor-door-closed", method, walked, seed)]


def _on_the_way(env: gym.Env, s: int) -> int | None:
    """A door of the house of a seed whose closing makes the way to the goal longer and does not cut it off."""
    env.reset(seed=s)
    world: Any = env.unwrapped
    before = Space(world.house).distance(world.pose[:2], world.goal[:2])
    for door in range(len(world.house.doors)):
        space = Space(world.house.with_door(door, closed=True))
        if not (space.free(world.pose[:2]) and space.free(world.goal[:2])):
            continue
        after = space.distance(world.pose[:2], world.goal[:2])
        if before + 1 < after < np.inf:
            return door
    return None


def walk(env: gym.Env, agent: Any, seed: int, door: int | None = None) -> Walked:
    """One episode."""
    obs, info = env.reset(seed=seed)
    world: Any = env.unwrapped
    if door is not None:
        world.set_door(door, closed=True)
    shortest = Space(world.house).distance(world.pose[:2], world.goal[:2])
    agent.reset(obs, info)
    metres, steps, done = 0.0, 0, False
    while not done:
        action = agent.act(obs, info)
        following, _, terminated, truncated, info = env.step(action)
        agent.observe(obs, action, following, info)
        metres += 0.0 if info["blocked"] else float(np.hypot(*action[:2]))
        obs, done, steps = following, terminated or truncated, steps + 1
    return Walked(info["is_success"], steps, metres, shortest)


def rows_of(setting: str, method: str, walked: list[Walked], seed: int) -> list[Row]:
    """Success, and metres over those of the shortest way where that is longer than the goal is wide."""
    rows = [Row(setting, method, "success_rate", *rate([one.success for one in walked]))]
    arrived = [one.metres / one.shortest for one in walked if one.success and one.shortest > 1]
    if arrived:
        rows.append(Row(setting, method, "path_ratio", *mean(arrived, seed)))
    return rows
