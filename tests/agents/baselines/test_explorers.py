"""The explorers that know more than an agent does."""

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest

import eswm_gym  # noqa: F401
from eswm_gym.agents.baselines import LatticeFrontierAgent, OracleExplorer
from eswm_gym.rooms import Room


def walk(agent, env, steps, **reset):
    obs, info = env.reset(**reset)
    agent.reset(obs, {**info, "layout": env.unwrapped.layout})
    path = [info["location"]]
    for _ in range(steps):
        action = agent.act(obs, info)
        next_obs, _, terminated, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        obs = next_obs
        path.append(info["location"])
        if terminated:
            break
    return path


@pytest.fixture
def env():
    return gym.make("ESWM-RandomWall19Explore-v0").unwrapped


@pytest.mark.parametrize("seed", range(5))
def test_the_frontier_agent_always_goes_to_the_nearest_new_location(env, seed):
    """In an open room, where no step is lost: it never walks farther than the nearest new location is away."""
    room = Room(2, range(19))
    path = walk(LatticeFrontierAgent(2, seed), env, 60, seed=seed, options={"room": room})
    assert set(path) == set(range(19))
    graph, visited, since = nx.from_edgelist(room.lattice.edges.tolist()), {path[0]}, 0
    nearest = 1
    for location in path[1:]:
        since += 1
        if location not in visited:
            assert since == nearest
            visited.add(location)
            lengths = nx.single_source_shortest_path_length(graph, location)
            nearest, since = min((n for i, n in lengths.items() if i not in visited), default=0), 0


def test_the_frontier_agent_does_not_bump_into_a_wall_twice(env):
    room = Room(2, range(19), walls=[8, 9, 10])
    path = walk(LatticeFrontierAgent(2, 0), env, 60, seed=0, options={"room": room})
    assert set(path) == set(np.flatnonzero(~room.walls))
    assert sum(a == b for a, b in zip(path, path[1:], strict=False)) <= 3


@pytest.mark.parametrize("seed", range(8))
def test_the_oracle_never_bumps_and_goes_round_the_whole_room(env, seed):
    path = walk(OracleExplorer(15), env, 60, seed=seed)
    assert all(a != b for a, b in zip(path, path[1:], strict=False))
    reachable = np.flatnonzero(env.unwrapped.room.distances_from(path[0]) >= 0)
    assert set(path) == set(reachable.tolist())
    assert len(path) - 1 <= 2 * len(reachable)


def test_the_oracle_in_a_place_with_nowhere_to_go():
    agent = OracleExplorer(5)
    room = Room(1, range(7), walls=[1, 2, 3, 4, 5, 6])
    agent.reset({"state": 0}, {"layout": room, "location": 0})
    assert 0 <= agent.act({"state": 0}, {}) < 6
