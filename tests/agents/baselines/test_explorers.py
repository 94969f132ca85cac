"""The explorers that know more than an agent does."""

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest

import eswm_gym  # noqa: F401
from eswm_gym.agents.baselines import BlindFrontierAgent, LatticeFrontierAgent, OracleExplorer
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


def first_moves(visited, walls, ordered, start=9):
    """The actions that the agent may take first, when it has visited and bumped into these locations."""
    actions = set()
    for seed in range(60):
        agent = LatticeFrontierAgent(2, seed, ordered).spawn(seed)
        agent.reset({}, {"location": start})
        agent.visited |= set(visited)
        agent.graph.remove_nodes_from(walls)
        actions.add(agent.act({}, {}))
    return actions


# Around the centre, 9, lie 10, 5, 4, 8, 13 and 14, in the order of actions; each has three neighbours on the rim.
@pytest.mark.parametrize(
    "visited, walls, better",
    [
        ([], [], {0, 1, 2, 3, 4, 5}),  # each beside one visited and five not: -1 + 5 / 2
        ([10], [], {1, 5}),  # 5 and 14 are beside two visited locations: -2 + 4 / 2
        ([10], [1], {5}),  # 5 is beside a wall, which is worse than a location not visited
        ([10, 5, 4, 8, 13], [], {5}),  # the last one
    ],
)
def test_the_order_of_frontiers_by_hand(visited, walls, better):
    assert first_moves(visited, walls, ordered=True) == better
    every = {action for action, location in enumerate((10, 5, 4, 8, 13, 14)) if location not in visited}
    assert first_moves(visited, walls, ordered=False) == every


def test_places_at_the_rim_are_the_least_open():
    """Beside 5 lie 1 and 6, each with two neighbours off the lattice, and the corner 2 with three."""
    agent = LatticeFrontierAgent(2, 0, ordered=True)
    agent.reset({}, {"location": 5})
    assert agent.openness(1) == -2 * 2 - 1 + 0.5 * 3
    assert agent.openness(2) == -2 * 3 - 1 + 0.5 * 2
    assert agent.openness(6) == -2 * 2 - 1 + 0.5 * 3
    assert agent.act({}, {}) == 1  # to 2, north-east


@pytest.mark.parametrize("start, way", [(8, [8, 9, 10, 11]), (10, [10, 9, 8, 7])])
def test_the_oracle_takes_the_better_of_two_directions(env, start, way):
    """In a corridor 7 - 8 - 9 - 10 - 11: the other end is one step away, and with it three steps find less."""
    room = Room(2, range(19), walls=[*range(7), *range(12, 19)])
    assert walk(OracleExplorer(3), env, 3, seed=0, options={"room": room, "start": start}) == way


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


# Without mask and location


def blind(radii=(), ordered=True, seed=0):
    agent = BlindFrontierAgent(radii, ordered=ordered).spawn(seed)
    agent.reset({"state": 1}, {})
    return agent


def test_what_bumps_tell_about_the_rim():
    """Of the seven starts on a lattice of radius 1, four have an eastern neighbour, one of them a western one too."""
    agent = blind((1,))
    assert agent.on_lattice((1, 0)) == pytest.approx(4 / 7)
    agent.observe({"state": 1}, 0, {"state": 1}, {})  # a wall, or the rim
    assert agent.on_lattice((1, 0)) == pytest.approx(4 * 0.15 / (3 + 4 * 0.15))
    agent.observe({"state": 1}, 3, {"state": 2}, {})
    assert agent.cell == (-1, 0) and agent.visited == {(0, 0), (-1, 0)} and agent.bumped == {(1, 0)}
    assert agent.on_lattice((1, 0)) == pytest.approx(0.15 / (3 + 0.15))
    assert agent.on_lattice((-1, 0)) == pytest.approx(1)
    assert agent.on_lattice((-2, 0)) == pytest.approx(1 / (3 + 0.15))  # only if it began in the east of the middle row
    assert blind().on_lattice((1, 0)) == 1


def test_the_cost_of_a_cell_by_hand():
    agent = blind()
    agent.observe({"state": 1}, 0, {"state": 1}, {})
    risk = 4 * 0.15
    assert agent.cost((0, -1), 1) == pytest.approx(1 + risk + 0.1 * (-1 + 5 * 0.5))  # north-west
    assert agent.cost((1, -1), 1) == pytest.approx(1 + risk + 0.1 * (-1 + 1 + 4 * 0.5))  # north-east, beside the bump
    assert blind(ordered=False).cost((1, -1), 1) == 1
    assert {blind(seed=seed).act({}, {}) for seed in range(60)} == set(range(6))
    agent.cell = (0, -1)
    agent.visited.add((0, -1))
    assert agent.frontier()[0, 1] == (2, 5) and (1, 0) not in agent.frontier()


@pytest.mark.parametrize("radii", [(), (2,), (1, 2, 3)])
def test_explores_all_that_can_be_reached_and_bumps_nowhere_twice(env, radii):
    room = Room(2, range(19), walls=[8, 9, 10])
    path = walk(BlindFrontierAgent(radii, seed=0), env, 90, seed=0, options={"room": room})
    assert set(path) == set(np.flatnonzero(~room.walls))
    alone = blind()
    alone.bumped = {(1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1), (0, 1)}
    assert alone.act({}, {"action_mask": [0, 0, 0, 1, 0, 0]}) == 3
