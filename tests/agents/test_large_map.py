"""Large maps of worlds of squares, whose moves are worked out here, with a model that makes no mistake and one that is
shipped."""

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import torch
from square_models import NUMBERS, STEPS, Squares

from eswm_gym.agents import LargeMap
from eswm_gym.agents.large_map import Wall
from eswm_gym.rooms import CODES
from eswm_gym.world_model import NumberedActions, load_pretrained

BACK = (2, 3, 0, 1)  # left, down, right, up


def squares(**options):
    return NumberedActions(Squares(**options), NUMBERS)


def grid(width, height, walls=()):
    """All moves between free cells, (x, y) to (x, y)."""
    cells = {(x, y) for x in range(width) for y in range(height)} - set(walls)
    return {
        (cell, action): (cell[0] + dx, cell[1] + dy)
        for cell in cells
        for action, (dx, dy) in enumerate(STEPS)
        if (cell[0] + dx, cell[1] + dy) in cells
    }


def tree(moves, seed):
    """A random spanning tree of the moves, one way each."""
    rng = np.random.default_rng(seed)
    seen, facts = {next(iter(moves))[0]}, []
    while edges := [(s, a, e) for (s, a), e in moves.items() if (s in seen) != (e in seen)]:
        source, action, end = edges[rng.integers(len(edges))]
        facts.append((source, action, end))
        seen |= {source, end}
    return facts


def mapped(facts, model=None, **options):
    world = LargeMap(model or squares(), **options)
    for fact in facts:
        world.add(*fact)
    return world


def test_a_world_much_larger_than_the_vocabulary():
    walls = [(x, 5) for x in range(3, 8)]
    moves = grid(12, 12, walls)
    facts = tree(moves, 0)
    world = mapped(facts)
    assert len(world.states) == 139 > world.model.config.n_states
    new = world.imagine()
    imagined = {(m.source, m.action): m for m in world.transitions() if m.votes}
    assert new == len(imagined)
    assert all(moves[key] == move.end for key, move in imagined.items())
    assert len(imagined) > 0.9 * (len(moves) - len(facts))
    assert all(0.99 <= move.probability <= 1 for move in imagined.values())
    assert {(m.source, m.action, m.end) for m in world.transitions() if not m.votes} == set(facts)


def test_plans_are_as_short_as_the_map_allows():
    world = mapped(tree(grid(9, 9), 1))
    before = world.plan((0, 0), (8, 8))
    world.imagine()
    plan = world.plan((0, 0), (8, 8))
    assert len(plan) == 16 <= len(before) or not before.found
    here = (0, 0)
    for action, state in zip(plan.actions, plan.states[1:], strict=True):
        here = (here[0] + STEPS[action][0], here[1] + STEPS[action][1])
        assert here == state
    assert here == (8, 8) and 0 < plan.probability <= 1
    assert world.plan((3, 3), (3, 3)).states == ((3, 3),)
    assert not world.plan((0, 0), "nowhere").found


def test_votes():
    world = mapped(tree(grid(6, 6), 2))
    world.imagine()
    agreed = {(m.source, m.action) for m in world.transitions() if m.votes != 1}
    for move in world.transitions():
        assert world.end_of(move.source, move.action) == move.end
        assert (world.end_of(move.source, move.action, votes=2) is None) == ((move.source, move.action) not in agreed)
    plan = world.plan((0, 0), (5, 5), votes=2)
    assert all(step in agreed for step in zip(plan.states, plan.actions, strict=False))


def test_what_was_imagined_from_a_fact_goes_with_it_and_comes_back_with_it():
    # Two rows joined by one fact, so that all that is imagined between them rests on it.
    rows = [((x, y), 2, (x + 1, y)) for y in range(2) for x in range(4)]
    world = mapped([*rows, ((2, 0), 1, (2, 1))])
    world.imagine()
    assert world.end_of((0, 0), 1) == (0, 1) and world.end_of((1, 0), 0) == (0, 0)
    gone = world.forget((2, 0), 1)
    assert ((2, 0), 1, (2, 1)) in gone and ((0, 0), 1, (0, 1)) in gone
    assert all(world.end_of((x, 0), 1) is None and world.end_of((x, 1), 3) is None for x in range(5))
    world.imagine()
    assert world.end_of((1, 0), 0) == (0, 0)  # this rests on its row alone
    assert world.end_of((0, 0), 1) is None
    world.add((2, 0), 1, (2, 1))
    world.imagine()
    assert world.end_of((0, 0), 1) == (0, 1)


def test_a_wall_that_appears():
    moves = grid(5, 5)
    world = mapped(tree(moves, 3))
    world.imagine()
    assert len(world.plan((2, 0), (2, 4))) == 4
    world.forget((2, 2))
    for action, (dx, dy) in enumerate(STEPS):
        cell = (2 - dx, 2 - dy)
        world.add(cell, action, cell)
    world.imagine()
    plan = world.plan((2, 0), (2, 4))
    assert (2, 2) not in plan.states and len(plan) == 6


def test_a_strip_is_zipped_up_from_its_end_window_by_window():
    out = [((x, 0), 2, (x + 1, 0)) for x in range(6)]
    home = [((x + 1, 1), 0, (x, 1)) for x in range(6)]
    world = mapped([*out, ((6, 0), 1, (6, 1)), *home], window=10)
    world.imagine()
    assert world.end_of((0, 0), 1) == (0, 1)


def ring(width, height):
    """The way round a rectangle, from its corner (0, 1) to its corner (0, 0)."""
    here, facts = (0, 1), []
    for action, length in [(1, height - 2), (2, width - 1), (3, height - 1), (0, width - 1)]:
        for _ in range(length):
            there = (here[0] + STEPS[action][0], here[1] + STEPS[action][1])
            facts.append((here, action, there))
            here = there
    return facts


def test_ways_round_a_wall_meet_across_its_place():
    """A ring of 12 cells round a wall of 3: its two ends are neighbours, and no window of 7 or 10 holds both."""
    assert len(ring(5, 3)) == 11
    facts = ring(5, 3)
    world = mapped(facts, window=7)
    world.imagine()
    assert world.end_of((0, 1), 3) is None
    for x in (1, 2, 3):  # a bump into each wall
        world.add((x, 0), 1, (x, 0))
    world.imagine()
    assert world.end_of((0, 1), 3) == (0, 0) and world.end_of((0, 0), 1) == (0, 1)
    bumps = {(m.source, m.action) for m in world.transitions() if m.source == m.end}
    assert bumps == {((x, y), a) for x in (1, 2, 3) for y, a in ((0, 1), (2, 3))} | {((0, 1), 2), ((4, 1), 0)}
    assert all(world.move((x, 0), 1).votes == 0 < world.move((x, 2), 3).votes for x in (1, 2, 3))
    assert set(world.states) == {(x, y) for x in range(5) for y in range(3)} - {(1, 1), (2, 1), (3, 1)}
    plan = world.plan((2, 0), (2, 2))
    assert len(plan) == 6 and all(state in world.states for state in plan.states)  # not through the wall


def test_bumps_from_several_sides_are_into_one_wall():
    model = NumberedActions(load_pretrained("lattices"), NUMBERS)  # is unsure where a place has two names
    world = mapped([*ring(3, 3), ((1, 0), 1, (1, 0)), ((1, 2), 3, (1, 2))], model, window=7)
    walls = world.place_of((1, 0), 1), world.place_of((1, 2), 3)
    assert walls[0] != walls[1] and all(isinstance(wall, Wall) for wall in walls)
    world.imagine()
    places = {world.place_of(*move) for move in (((1, 0), 1), ((1, 2), 3), ((0, 1), 2), ((2, 1), 0))}
    assert len(places) == 1 and places < set(walls)
    assert world.end_of((0, 1), 2) == (0, 1) and world.move((1, 2), 3).votes == 0


def test_a_state_that_becomes_a_wall_keeps_its_place():
    world = mapped(tree(grid(5, 5), 3))
    world.imagine()
    known = len(world)
    world.wall((2, 2))
    assert len(world) == known and (2, 2) not in world.states
    assert world.end_of((2, 1), 1) == (2, 1) and world.place_of((2, 1), 1) == (2, 2)
    assert len(world.plan((2, 0), (2, 4))) == 6
    world.rename((2, 2), "open")
    assert world.end_of((2, 1), 1) == "open" and len(world.plan((2, 0), (2, 4))) == 4
    with pytest.raises(KeyError):
        world.wall("nowhere")


def test_near_a_state_only_its_surroundings_are_imagined():
    world = mapped(tree(grid(12, 12), 4), window=9)
    world.imagine(near=(0, 0))
    assert 0 < len({m.source for m in world.transitions() if m.votes}) < 60
    before = world.n_windows
    world.imagine(windows=3)
    assert world.n_windows - before <= 3


def test_the_same_facts_make_the_same_map():
    facts = tree(grid(8, 8), 5)

    def made():
        world = mapped(facts)
        world.imagine()
        return list(world.transitions())

    assert made() == made()


def test_the_shipped_model_maps_hexagons():
    from eswm_gym.rooms import hex_lattice

    lattice = hex_lattice(5)
    moves = {
        (f"place {s}", a): f"place {e}" for s, ends in enumerate(lattice.neighbors.tolist()) for a, e in enumerate(ends)
        if e >= 0
    }  # fmt: skip
    facts = tree(moves, 6)
    world = mapped(facts, load_pretrained("random-wall"))
    world.imagine()
    imagined = {(m.source, m.action): m.end for m in world.transitions() if m.votes}
    assert all(moves.get(key) == end for key, end in imagined.items())
    assert len(imagined) > 0.9 * (len(moves) - len(facts))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="window has 2 to 40 states"):
        LargeMap(squares(), window=41)
    with pytest.raises(ValueError, match="confidence .* got 1.5"):
        LargeMap(squares(), confidence=1.5)
    world = mapped([((0, 0), 2, (1, 0))])
    with pytest.raises(ValueError, match="from 0 to 3, got 4"):
        world.add((0, 0), 4, (1, 0))
    assert world.states == ((0, 0), (1, 0)) and len(world) == 1
    with pytest.raises(ValueError, match="got -1"):
        world.end_of((1, 0), -1)
    with pytest.raises(KeyError):
        world.forget("nowhere")
    with pytest.raises(KeyError):
        world.forget((0, 0), 1)
    with pytest.raises(KeyError):
        world.imagine(near="nowhere")


def test_a_pool_makes_the_same_map_as_one_process():
    facts = tree(grid(10, 10, [(4, y) for y in range(2, 7)]), 4)
    maps = []
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        for doer in (None, pool):
            world = mapped(facts, passes=3, pool=doer)
            world.imagine()
            maps.append(list(world.transitions()))
    assert maps[0] == maps[1] and len(maps[0]) > 1.5 * len(facts)


def test_a_map_goes_on_from_its_dictionary_as_it_would_have():
    facts = tree(grid(9, 9, [(4, 3), (5, 3)]), 5)
    world = mapped([*facts, ((4, 2), 1, (4, 2)), ((4, 4), 3, (4, 4)), ((5, 2), 1, (5, 2))])
    world.imagine(windows=5)
    saved = json.loads(json.dumps(world.to_dict()))
    other = LargeMap(squares())
    other.load_dict({**saved, "states": list(map(tuple, saved["states"]))})
    for one in (world, other):
        one.imagine(windows=6)
        one.forget((4, 4))
        one.imagine()
    assert list(other.transitions()) == list(world.transitions()) and other.n_windows == world.n_windows
    with pytest.raises(ValueError, match="a map of 4 actions is none of the model's 19"):
        LargeMap(Squares()).load_dict(saved)


def test_another_name():
    world = mapped([("a", 2, "b"), ("b", 2, "c")])
    world.rename("b", "d")
    assert world.end_of("a", 2) == "d" and world.end_of("d", 2) == "c" and "b" not in world
    assert [(move.source, move.action) for move in world.moves_to("d")] == [("a", 2)]
    with pytest.raises(ValueError, match="has a state 'c' already"):
        world.rename("a", "c")


def test_actions_of_which_nothing_is_known():
    moves, order = grid(9, 9), np.random.default_rng(0).permutation(4)
    facts = [(s, int(order[a]), e) for (s, a), e in moves.items()]
    kept = np.random.default_rng(1).random(len(facts)) < 0.6
    world = mapped(
        [fact for fact, keep in zip(facts, kept, strict=True) if keep],
        NumberedActions(load_pretrained("lattices"), CODES[:4]),
    )
    world.imagine()
    imagined = [(m.source, m.action, m.end) for m in world.transitions() if m.votes]
    right = set(facts).intersection(imagined)
    assert len(right) >= 0.7 * sum(~kept) and len(right) >= 0.98 * len(imagined)
