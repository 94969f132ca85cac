"""What the agent is compared with in MiniGrid."""

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest

import eswm_gym  # noqa: F401
from eswm_gym.agents.baselines import GridOracle, GridOracleExplorer, RandomAgent, ViewGraphAgent
from eswm_gym.agents.baselines.grid_agents import pose_graph
from eswm_gym.agents.states import view_number
from eswm_gym.rooms.grid import GridBatch, GridConfig, generate_grids, pose_index, rows_of
from eswm_gym.wrappers import MemoryBankObservation

LEFT, RIGHT, FORWARD = 0, 1, 2
AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))


def episode(agent, env_id, seed, steps=60, **options):
    """Actions until the episode ends, whether it is a success, and the infos."""
    env = gym.make(env_id).unwrapped
    obs, info = env.reset(seed=seed, options=options or None)
    agent.reset(obs, {**info, "layout": env.layout, "goal_pose": env.goal})
    actions, infos, terminated = [], [info], False
    while not terminated and len(actions) < steps:
        action = agent.act(obs, info)
        next_obs, _, terminated, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        obs = next_obs
        actions.append(action)
        infos.append(info)
    return actions, terminated, infos


@pytest.mark.parametrize("seed", range(15))
def test_the_oracle_walks_a_shortest_way(seed):
    actions, arrived, infos = episode(GridOracle().spawn(3), "ESWM-MiniGrid-v0", seed)
    assert arrived and len(actions) == infos[0]["shortest_path_length"]
    assert not any(info["blocked"] for info in infos)


def test_the_oracles_graph_is_the_rules():
    env = gym.make("ESWM-MiniGrid-v0").unwrapped
    for seed in range(5):
        env.reset(seed=seed)
        grid, expected = env.grid_classes, nx.DiGraph()
        for y, x in np.argwhere(grid != 1).tolist():
            for heading, (dx, dy) in enumerate(AHEAD):
                here = pose_index(9, x, y, heading)
                expected.add_edge(here, pose_index(9, x, y, (heading - 1) % 4), action=LEFT)
                expected.add_edge(here, pose_index(9, x, y, (heading + 1) % 4), action=RIGHT)
                if grid[y + dy, x + dx] != 1:
                    expected.add_edge(here, pose_index(9, x + dx, y + dy, heading), action=FORWARD)
        assert nx.utils.graphs_equal(pose_graph(grid), expected)


def test_the_exploring_oracle_sees_everything_and_soon():
    oracle = [episode(GridOracleExplorer().spawn(1), "ESWM-MiniGridExplore-v0", seed) for seed in range(15)]
    assert all(done for _, done, _ in oracle)
    assert all(infos[-1]["coverage"] == 1 for *_, infos in oracle)
    assert not any(info["blocked"] for *_, infos in oracle for info in infos)
    lengths = [len(actions) for actions, *_ in oracle]
    assert np.mean(lengths) < 30

    def coverage_at(infos, step):
        return infos[min(step, len(infos) - 1)]["coverage"]

    others = [episode(RandomAgent(seed, n_actions=3), "ESWM-MiniGridExplore-v0", seed)[-1] for seed in range(15)]
    for step in range(0, 61, 5):
        ahead = [coverage_at(infos, step) for *_, infos in oracle]
        assert np.mean(ahead) >= np.mean([coverage_at(infos, step) for infos in others])


def test_the_exploring_oracle_with_nothing_to_see():
    corridor = np.ones((9, 9), int)
    corridor[1, 1] = 2
    _, done, infos = episode(GridOracleExplorer(), "ESWM-MiniGridExplore-v0", 0, grid=corridor, start=(1, 1, 0))
    assert infos[-1]["coverage"] == 1 and done
    agent = GridOracleExplorer()
    agent.reset({}, {"layout": corridor, "pose": np.array([1, 1, 0])})
    agent.seen[:] = True
    assert agent.act({}, {"pose": np.array([1, 1, 0])}) in range(3)


# Remembered views


def view(number):
    """A view for a number, as rows of a bank and as observations have it."""
    return np.full(25, 2) + np.isin(np.arange(25), range(number))


def row(source, action, end):
    return [*view(source), action, *view(end)]


def shown(state, goal=None):
    keys = {"state": state} | ({} if goal is None else {"goal": goal})
    return {key: view(number).reshape(5, 5).astype(np.uint8) for key, number in keys.items()}


CHAIN = np.array([row(1, FORWARD, 2), row(2, LEFT, 3), row(3, FORWARD, 4), [-1] * 51])


def begun(bank=CHAIN, seed=0):
    agent = ViewGraphAgent(seed)
    agent.reset(shown(1, 4), {"memory_bank": bank})
    return agent


def test_follows_a_remembered_chain():
    agent = begun()
    assert len(agent.memory) == 3
    assert [agent.act(shown(state, 4), {}) for state in (1, 2, 3)] == [FORWARD, LEFT, FORWARD]


def test_turns_can_be_taken_back_and_steps_cannot():
    agent = begun()
    assert agent.act(shown(3, 2), {}) == RIGHT
    number = [view_number(view(i)) for i in range(5)]
    graph = agent.build_graph()
    moves = {(a, b): graph.edges[a, b]["action"] for a, b in graph.edges}
    assert moves == {
        (number[1], number[2]): FORWARD,
        (number[2], number[3]): LEFT,
        (number[3], number[2]): RIGHT,
        (number[3], number[4]): FORWARD,
    }
    assert {agent.act(shown(4, 1), {}) for _ in range(60)} == {LEFT, RIGHT, FORWARD}  # no way back: anything


def test_facts_overrule_reverses():
    agent = begun(np.array([row(2, LEFT, 3), row(3, RIGHT, 5)]))
    assert {agent.act(shown(3, 2), {}) for _ in range(60)} == {LEFT, RIGHT, FORWARD}
    assert agent.act(shown(3, 5), {}) == RIGHT


def test_learns_what_it_lives_through():
    agent = begun(np.empty((0, 51), int))
    assert {agent.act(shown(1, 2), {}) for _ in range(60)} == {LEFT, RIGHT, FORWARD}
    agent.observe(shown(1, 2), RIGHT, shown(2, 2), {})
    assert agent.act(shown(1, 2), {}) == RIGHT
    assert agent.act(shown(2, 1), {}) == LEFT
    agent.observe(shown(1, 2), FORWARD, shown(1, 2), {})  # a bump leads nowhere
    assert agent.act(shown(1, 2), {}) == RIGHT
    agent.reset(shown(1, 2), {})
    assert len(agent.memory) == 0
    assert type(agent.spawn(3)) is ViewGraphAgent


@pytest.mark.parametrize("seed", range(5))
def test_walks_a_shortest_way_where_it_remembers_every_move(seed):
    """And every pose has a view of its own."""
    rooms = GridBatch.of(generate_grids(np.random.default_rng(seed), 100, GridConfig()))
    chosen = int((rooms.unique == rooms.free).all(1).argmax())
    room = GridBatch.of(rooms.grids[chosen : chosen + 1])
    assert (room.unique == room.free).all()
    every = np.flatnonzero(room.free[0])
    rows = rows_of(room, every.repeat(3)[None], np.tile([0, 1, 2], len(every))[None])[0]
    env = gym.make("ESWM-MiniGrid-v0").unwrapped
    obs, info = env.reset(seed=seed, options={"grid": room.grids[0]})
    agent = ViewGraphAgent(0)
    agent.reset(obs, {**info, "memory_bank": rows})
    for left in range(info["shortest_path_length"], 0, -1):
        assert info["shortest_path_length"] == left
        obs, _, done, _, info = env.step(agent.act(obs, info))
    assert done


# In the place of a policy


def test_random_without_info():
    env = MemoryBankObservation(gym.make("ESWM-MiniGrid-v0"))
    obs, _ = env.reset(seed=0)
    agent, state, taken = RandomAgent(0, n_actions=3), None, []
    for _ in range(100):
        action, state = agent.predict(obs, state)
        taken.append(int(action))
    assert set(taken) == {0, 1, 2}
    assert {RandomAgent(0, n_actions=3).spawn(s).act(obs, {}) for s in range(30)} == {0, 1, 2}
    assert {agent.act(obs, {"action_mask": np.array([0, 1, 0])}) for _ in range(10)} == {1}


def test_views_of_the_observation_as_of_the_info():
    env = MemoryBankObservation(gym.make("ESWM-MiniGrid-v0"))
    obs, info = env.reset(seed=4)
    one, (state, *_) = ViewGraphAgent(0), ViewGraphAgent(0).predict(obs)[1]
    one.reset(obs, info)
    assert state[0].memory == one.memory and len(one.memory) > 3
