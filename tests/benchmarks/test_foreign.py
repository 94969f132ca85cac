"""Tables of other people's environments against what these say of themselves; banks, rivals and what is counted."""

import json
from functools import cache

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
from foreign.command import main
from foreign.measures import OneHot, from_bank, from_nothing
from foreign.rivals import MemoryGraph, QLearning, Random, Rules
from foreign.worlds import WORLDS, TableEnv, spanning_bank, table_of

from eswm_gym.rooms import CODES, MOVES
from eswm_gym.world_model import TransformerConfig
from eswm_gym.world_model.presets import PRESETS
from eswm_gym.world_model.pretrained import build_model, save_model
from eswm_gym.wrappers import DiscreteStates, Poses

LAKE = "SFFFFHFHFFFHHFFG"  # row by row
POSES = "MiniGrid-Empty-6x6-v0"
HOLES = {cell for cell, kind in enumerate(LAKE) if kind == "H"}


@cache
def world(name, known=True):
    env = WORLDS[name](0, known) if name in WORLDS else DiscreteStates(Poses(gym.make(name)), lattice="pose")
    return env, table_of(env, 0)


@pytest.fixture(scope="module")
def lake():
    env, table = world("frozen-lake-4x4")
    return table, {number: cell for cell, number in env._number.items()}


def test_the_table_of_the_lake_is_its_own(lake):
    table, cell = lake
    truth = gym.make("FrozenLake-v1", is_slippery=False).unwrapped.P
    assert (table.n_actions, cell[table.start]) == (4, 0)
    assert {cell[goal] for goal in table.goals} == {15}
    assert {cell[state] for state in table.dead_ends} == HOLES
    assert {cell[state] for state, _ in table.end} == set(range(15)) - HOLES
    for (state, action), end in table.end.items():
        ((_, there, reward, terminated),) = truth[cell[state]][action]
        assert cell[end] == there and ((state, action) in table.last) == terminated
        assert (reward > 0) == (end in table.goals)
    assert table.actions.tolist() == [MOVES.index(name) for name in ("left", "down", "right", "up")]


def test_the_table_of_the_cliff_is_its_own():
    env, table = world("cliff-walking")
    cell, truth = {number: state for state, number in env._number.items()}, gym.make("CliffWalking-v1").unwrapped.P
    assert cell[table.start] == 36 and {cell[goal] for goal in table.goals} == {47} and table.dead_ends == []
    assert len(table.end) == 4 * 37
    for (state, action), end in table.end.items():
        ((_, there, _, terminated),) = truth[cell[state]][action]
        assert cell[end] == there and ((state, action) in table.last) == terminated


def test_tables_of_minigrid():
    env, table = world("minigrid-empty-8x8")
    assert len(table.graph()) == 36 and len(table.goals) == 1 and table.dead_ends == []
    lengths = nx.single_source_shortest_path_length(table.graph(), table.start)
    assert lengths[min(table.goals)] == 10
    env, table = world(POSES)
    assert table.n_actions == 3
    assert len(table.graph()) == 4 * 15 + 2  # the episode ends in the goal's cell, which is entered in two poses
    assert {state for state, number in env._number.items() if number in table.goals} == {(4, 4, 0), (4, 4, 1)}


def test_the_environment_is_left_as_it_was():
    env, _ = world("minigrid-multi-room-n2")
    again = WORLDS["minigrid-multi-room-n2"](0, True)
    again.reset(seed=0)
    assert env.env.unwrapped.agent_pos == again.env.unwrapped.agent_pos
    assert str(env.env.unwrapped) == str(again.env.unwrapped)  # the doors, too


def test_actions_of_which_nothing_is_known_are_codes():
    assert world("frozen-lake-4x4", known=False)[1].actions.tolist() == CODES[:4].tolist()


@pytest.mark.parametrize("name", ["frozen-lake-4x4", "cliff-walking", "minigrid-simple-crossing-s9n1"])
def test_a_bank_spans_and_enters_each_end_once(name):
    table = world(name)[1]
    for seed in range(5):
        bank = spanning_bank(table, np.random.default_rng(seed)).tolist()
        assert all(table.end[source, action] == end for source, action, end in bank)
        assert len({(source, action) for source, action, _ in bank}) == len(bank)
        tree = nx.Graph([(source, end) for source, _, end in bank if source != end])
        assert nx.is_tree(tree) and set(tree) == set(table.graph())
        for end in {*table.dead_ends, *table.goals}:
            assert sum(t[2] == end for t in bank) == 1


def test_bumps_of_a_bank(lake):
    table, _ = lake
    bumps = [move for move, end in table.end.items() if move[0] == end]
    counts = [
        sum(s == e for s, _, e in spanning_bank(table, np.random.default_rng(seed)).tolist()) for seed in range(40)
    ]
    assert np.mean(counts) == pytest.approx(0.3 * len(bumps), rel=0.2)
    every = spanning_bank(table, np.random.default_rng(0), bumps=1.0).tolist()
    assert {(s, a) for s, a, e in every if s == e} == set(bumps)
    assert not [t for t in spanning_bank(table, np.random.default_rng(0), bumps=0.0).tolist() if t[0] == t[2]]


def test_a_bank_of_some_states(lake):
    table, cell = lake
    number = {c: n for n, c in cell.items()}
    corner = [number[c] for c in (0, 1, 4)]
    bank = spanning_bank(table, np.random.default_rng(0), corner, bumps=0.0).tolist()
    assert len(bank) == 2 and {s for t in bank for s in (t[0], t[2])} == set(corner)


def test_banks_are_in_random_order_and_the_same_for_the_same_seed(lake):
    one, same, other = (spanning_bank(lake[0], np.random.default_rng(seed)).tolist() for seed in (1, 1, 2))
    assert one == same != other
    assert one != sorted(one)


def test_episodes_in_a_table(lake):
    table, cell = lake
    number = {c: n for n, c in cell.items()}
    env = TableEnv(table, spanning_bank(table, np.random.default_rng(0)), number[0], number[8])
    obs, info = env.reset()
    assert (obs["state"], obs["goal"]) == (number[0], number[8]) and info["dead_ends"] == table.dead_ends
    assert obs["actions"].tolist() == table.actions.tolist()
    assert [env.step(action)[1:3] for action in (0, 1, 1)] == [(0.0, False), (0.0, False), (1.0, True)]
    env.reset()
    env.step(1)
    *_, terminated, _, info = env.step(2)
    assert terminated and info == {"is_success": False, "terminated": True}


@pytest.mark.parametrize(
    ("name", "least"),
    [("frozen-lake-4x4", 0.95), ("frozen-lake-8x8", 0.95), ("minigrid-multi-room-n2", 0.9), ("cliff-walking", 0.15)],
)
def test_rivals_reach_the_goal_from_a_bank(name, least):
    """Falls off the cliff are no geometry: of such a bank pieces are left, which have to be found."""
    table = world(name)[1]
    found = {kind: [from_bank(kind(seed), table, seed) for seed in range(8)] for kind in (MemoryGraph, Rules)}
    assert all(0 < one <= 1 for of_kind in found.values() for one in of_kind)
    assert np.mean(found[Rules]) > least


def test_rules_in_poses_of_a_window():
    table = world(POSES)[1]
    found = [from_bank(Rules(seed), table, seed, 32) for seed in range(8)]
    assert min(found) > 0 and np.mean(found) > 0.8


def test_a_wall_beside_falls_is_learnt_once():
    """Down leads from 1 and 2 to 0, and from 0 it is blocked."""
    agent, actions = Rules(0), [MOVES.index(name) for name in ("left", "down", "right", "up")]
    obs = {"state": np.array(0), "goal": np.array(9), "actions": np.array(actions)}
    agent.reset(obs, {"memory_bank": [(1, 1, 0), (2, 1, 0), (0, 1, 0), (0, 0, 0), (0, 2, 0)]})
    assert [agent.act(obs, {}) for _ in range(20)] == [3] * 20


def test_a_memory_graph_without_a_way_explores_the_nearest_moves():
    """0 1 in a row, all moves of 0 made: at 1 there are moves left."""
    agent, actions = MemoryGraph(0), [MOVES.index(name) for name in ("left", "down", "right", "up")]
    obs = {"state": np.array(0), "goal": np.array(9), "actions": np.array(actions)}
    info = {"memory_bank": [(0, 2, 1), (0, 0, 0), (0, 1, 0), (0, 3, 0), (8, 0, 9)]}
    agent.reset(obs, info)
    assert [agent.act(obs, info) for _ in range(20)] == [2] * 20


def test_chance_is_worse(lake):
    found = [from_bank(Random(seed), lake[0], seed) for seed in range(20)]
    assert np.mean(found) < 0.3


class Scripted(Random):
    """Does what it is told, and then left for ever."""

    def __init__(self, *episodes):
        super().__init__(0)
        self.episodes, self.kept = [list(one) for one in episodes], []

    def reset(self, obs, info, keep_memories=False):
        super().reset(obs, info, keep_memories)
        self.kept.append(keep_memories)
        self.script = self.episodes.pop(0) if self.episodes else []

    def act(self, obs, info):
        return self.script.pop(0) if self.script else 0


BEST, LONGER, HOLE = (1, 1, 2, 1, 2, 2), (0, 1, 1, 2, 1, 2, 2), (1, 2)


@pytest.mark.parametrize(
    ("episodes", "budget", "expected"),
    [
        ((BEST,), 100, (6, 6)),
        ((LONGER, HOLE, BEST), 100, (7, 15)),
        ((HOLE, LONGER, LONGER, BEST), 100, (9, 22)),
        ((LONGER,), 50, (7, 50)),
        ((HOLE,), 50, (50, 50)),
        ((HOLE, BEST), 8, (8, 8)),
        ((HOLE, BEST), 7, (7, 7)),
    ],
)
def test_steps_are_counted(episodes, budget, expected):
    agent = Scripted(*episodes)
    assert from_nothing(agent, WORLDS["frozen-lake-4x4"](0, True), 0, 6, budget) == expected
    assert agent.kept == [False] + [True] * (len(agent.kept) - 1)


@pytest.mark.parametrize("kind", [MemoryGraph, Rules, QLearning])
def test_rivals_find_the_best_path_from_nothing(kind):
    first, best = from_nothing(kind(0), WORLDS["frozen-lake-4x4"](0, True), 0, 6, 3000)
    assert 6 <= first <= best < 3000
    assert kind is QLearning or best < 250


def test_walkers_keep_out_of_where_they_failed():
    env, agent = WORLDS["frozen-lake-8x8"](0, True), MemoryGraph(0)
    failed = []
    for episode in range(25):
        obs, info = env.reset(seed=0)
        agent.reset(obs, info, keep_memories=episode > 0)
        for _ in range(100):
            action = agent.act(obs, info)
            following, _, terminated, truncated, info = env.step(action)
            agent.observe(obs, action, following, info)
            failed += [(int(obs["state"]), action)] * (terminated and not info["is_success"])
            obs = following
            if terminated or truncated:
                break
    assert len(failed) == len(set(failed)) > 0
    assert len(agent.dead) <= len(failed)


def test_one_hot():
    env = OneHot(WORLDS["frozen-lake-4x4"](0, True), 16, 0)
    shown, _ = env.reset(seed=5)
    assert shown.tolist() == [1.0] + [0.0] * 15 and env.observation_space.contains(shown)
    assert env.step(2)[0].argmax() == 1


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_foreign(tmp_path, capsys):
    preset = PRESETS["lattices"].model
    config = TransformerConfig(
        preset.n_states, preset.n_actions, dim=16, layers=1, heads=2, max_memories=96, state_embeddings=False, codes=8
    )
    save_model(build_model(config), tmp_path / "model")
    rows = main(["--quick", "--model", str(tmp_path / "model"), "--json", str(tmp_path / "out.json")])
    found = json.loads((tmp_path / "out.json").read_text())
    assert (found["benchmark"], found["seed"]) == ("foreign", 0) and len(found["rows"]) == len(rows)
    agents = {"eswm", "eswm-windows", "eswm-unknown", "memory-graph", "rules", "random"}
    assert {row.setting for row in rows} == {"frozen-lake-4x4"}
    methods = {metric: {row.method for row in rows if row.metric == metric} for metric in {row.metric for row in rows}}
    assert methods["success_rate"] == agents | {"shortest-path"}
    from_nothing = (agents - {"eswm-unknown"}) | {"q-learning", "ppo"}
    assert methods["steps_to_goal"] == methods["steps_to_best_path"] == from_nothing
    assert methods["path_optimality"] >= {"shortest-path", "rules", "memory-graph"}
    value = {(row.method, row.metric): row.value for row in rows}
    assert value["shortest-path", "success_rate"] == value["shortest-path", "path_optimality"] == 1
    for method in methods["steps_to_goal"]:
        assert 6 <= value[method, "steps_to_goal"] <= value[method, "steps_to_best_path"] <= 500
    assert "memory-graph" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["frozen-river"])
