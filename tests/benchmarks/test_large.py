"""Large worlds and what is compared in them, on worlds small enough to work out by hand."""

import json
from functools import partial

import networkx as nx
import numpy as np
import pytest
from large.command import deduce, follow, main, map_of, quality, walk
from large.online import explore, explorers
from large.worlds import World, draw_world
from worlds.rivals import UNDOES, remember, told

from eswm_gym.agents import ESWMAgent, LargeMap, Plan
from eswm_gym.rooms import CODES, lattice_of, move_numbers
from eswm_gym.world_model import NumberedActions, load_pretrained

# Four squares around a point; the bank goes round three sides: right, down and left.
LATTICE = lattice_of("square", (2, 2))
LEFT, DOWN, RIGHT, UP = range(4)
NW, NE, SE, SW = 10, 11, 12, 13
ROUND = [(NW, RIGHT, NE), (NE, DOWN, SE), (SE, LEFT, SW), (NW, UP, NW)]
MOVES = {
    (NW, RIGHT): NE, (NE, LEFT): NW, (NE, DOWN): SE, (SE, UP): NE,
    (SE, LEFT): SW, (SW, RIGHT): SE, (SW, UP): NW, (NW, DOWN): SW,
}  # fmt: skip
WORLD = World(("square", (2, 2)), MOVES, ROUND)


MODEL = NumberedActions(load_pretrained("lattices"), move_numbers(LATTICE.actions).tolist())  # imagines nothing here


def test_rivals_know_what_they_are_told():
    graph = follow(ROUND, MODEL, LATTICE, partial(remember, undoes=UNDOES))
    integrated = follow(ROUND, MODEL, LATTICE, told(LATTICE))
    assert quality(WORLD, graph) == (3 / 5, 1.0)
    assert quality(WORLD, integrated) == (1.0, 1.0)
    assert len(graph.plan(NW, SW)) == 3 and len(integrated.plan(NW, SW)) == 1
    assert not graph.plan(NW, 99).found


def test_recall_and_precision():
    found = [(NE, LEFT, NW), (SE, UP, NW)]  # the first is right
    assert quality(WORLD, map_of([*found, (NW, RIGHT, SE)], MODEL)) == (1 / 5, 1 / 2)  # the bank does not count
    assert quality(WORLD, map_of([], MODEL)) == (0.0, None)


def test_a_walk_learns_from_what_goes_wrong():
    wrong = map_of([(NW, RIGHT, SW), (NW, DOWN, SW)], MODEL)
    assert walk(WORLD, wrong, NW, NE, 1) is None  # NE is nowhere on this map
    wrong = map_of([(NW, RIGHT, SW), (NE, DOWN, SE), (SE, LEFT, SW)], MODEL)
    assert walk(WORLD, wrong, NW, SW, 1) == 3.0
    assert wrong.end_of(NW, RIGHT) == NE

    class Stubborn(LargeMap):
        def plan(self, start, goal, votes=1):
            return Plan((start, goal), (UP,), 1.0)

    assert walk(WORLD, Stubborn(MODEL), NW, SE, 2) is None


@pytest.mark.parametrize(("shape", "size"), [("hexagon", (9,)), ("square", (16, 16))])
def test_worlds_are_connected_and_their_banks_span_them(shape, size):
    world, lattice = draw_world(shape, size, 3), lattice_of(shape, size)
    assert nx.is_strongly_connected(world.graph)
    walls = lattice.n_locations - len(world.graph)
    assert 0.1 * lattice.n_locations <= walls < 0.2 * lattice.n_locations
    tree = nx.Graph((s, e) for s, _, e in world.bank if s != e)
    assert nx.is_tree(tree) and set(tree) == set(world.graph)
    assert all(world.moves.get((s, a), s) == e for s, a, e in world.bank)
    assert draw_world(shape, size, 3) == world != draw_world(shape, size, 4)
    for start, goal, steps in world.pairs(5, 0):
        assert nx.shortest_path_length(world.graph, start, goal) == steps > 0


def test_explorers_see_every_state_and_know_the_way_then():
    world = draw_world("square", (6, 6), 1)
    free = {state for state, _ in world.moves}
    model = load_pretrained("lattices")
    pairs = world.pairs(5, 0)
    agent, start = partial(ESWMAgent, model, seed=0, window=12), pairs[0][0]
    for name, begin in explorers(world, agent, 0, start).items():
        explorer = begin()
        steps, times = explore(world, explorer, pairs[0][0])
        assert len(free) - 1 <= steps == len(times)
        assert all(world.moves.get((s, a), s) == e for s, a, e in explorer.facts()), name
        if name == "eswm":
            assert all(far <= explorer.go(world, start, goal, 40) <= far + 2 for start, goal, far in pairs)
            assert explorer.go(world, *pairs[0][:2], pairs[0][2] - 1) is None


def test_a_new_wall_lies_half_way_and_leaves_another_way():
    world, rng = draw_world("square", (8, 8), 2), np.random.default_rng(0)
    found = 0
    for start, goal, far in world.pairs(20, 0):
        if (changed := world.new_wall(start, goal, 3, rng)) is not None:
            found += 1
            walled, steps = changed
            gone = set(world.graph) - set(walled.graph)
            assert steps >= far and {start, goal} <= set(walled.graph) and len(gone) >= 3
            assert walled.bank == world.bank
            assert nx.shortest_path_length(walled.graph, start, goal) == steps
    assert found > 5


def test_banks_that_hold_more():
    world = draw_world("square", (8, 8), 2, held=0.6)
    facts = {(s, a): e for s, a, e in world.bank if s != e}
    assert len(facts) == round(0.6 * len(world.moves)) and facts.items() <= world.moves.items()
    deduced = deduce(world.bank, NumberedActions(load_pretrained("lattices"), CODES[:4]))
    assert quality(world, deduced) == (1.0, 1.0)


def test_large(tmp_path):
    rows = main(["--quick", "--json", str(tmp_path / "out.json")])
    assert json.loads((tmp_path / "out.json").read_text())["benchmark"] == "large"
    value = {(row.method, row.metric): row.value for row in rows}
    assert value["path-integration", "recall"] == value["path-integration", "path_ratio"] == 1
    assert value["memory-graph", "precision"] == value["memory-graph", "success_rate"] == 1
    assert 0 <= value["eswm", "recall"] <= 1 and value["eswm", "cpu_seconds"] > 0
    assert value["path-integration", "online_path_ratio"] == 1 and value["memory-graph", "online_steps"] > 60
    assert {method for method, metric in value if metric == "wall_success_rate"} == {
        "memory-graph", "path-integration", "eswm", "eswm-no-adapt",
    }  # fmt: skip
    assert {row.at for row in rows if row.along == "locations"} == {19, 37}
    with pytest.raises(SystemExit):
        main(["hexagon-7"])


def test_growth_has_worlds_of_its_own(capsys):
    with pytest.raises(SystemExit):
        main(["hexagon-91", "--experiments", "growth"])
    assert "growth has worlds of its own" in capsys.readouterr().err
