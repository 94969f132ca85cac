"""The rules of exploration on tables made by hand."""

import numpy as np
import pytest

from eswm_gym.agents import ESWMAgent, Place, TransitionTable
from eswm_gym.agents.exploration import curiosity, most_uncertain, nearest_frontier
from eswm_gym.world_model import ModelConfig, PathIntegrator


def table_of(moves, states):
    """A table that is sure of these moves and knows no others."""
    end = np.full((len(states), 6), -1)
    for (source, action), target in moves.items():
        end[states.index(source), action] = target
    return TransitionTable(np.array(states), end, np.ones(end.shape), np.zeros(end.shape))


def every_way(state, target):
    return {(state, action): target for action in range(6)}


def test_goes_to_the_nearest_place_not_visited():
    """0 - 1 - 2, all visited; of 2 one move leads to a frontier, of 0 and 1 none."""
    moves = every_way(0, 0) | every_way(1, 1) | every_way(2, 2) | every_way(100, 100)
    moves |= {(0, 4): 1, (1, 2): 2, (2, 5): 100}
    rng = np.random.default_rng(0)
    known = table_of(moves, [0, 1, 2, 100])
    places = {100: Place.FRONTIER}
    assert nearest_frontier(known, places, 0, range(6), rng) == 4
    assert nearest_frontier(known, places, 2, range(6), rng) == 5
    assert nearest_frontier(known, places, 2, [0, 1, 2], rng) is None  # the mask rules the only way out
    assert nearest_frontier(known, {100: Place.WALL}, 0, range(6), rng) is None
    assert nearest_frontier(known, {100: Place.OUTSIDE}, 0, range(6), rng) is None


def test_a_move_that_the_model_does_not_know_leads_to_a_frontier_too():
    moves = every_way(0, 0) | {(0, 1): 1} | every_way(1, 1)
    del moves[1, 3]
    known = table_of(moves, [0, 1])
    assert nearest_frontier(known, {}, 0, range(6), np.random.default_rng(0)) == 1
    assert nearest_frontier(known, {}, 1, range(6), np.random.default_rng(0)) == 3


@pytest.mark.parametrize(
    "beside_a, beside_b, better",
    [
        ([1, 2], [1], "a"),  # more visited places around it
        ([1], [200], "b"),  # a place at the rim is less open than one at a visited place
        ([200], [200, 200], "b"),
        ([], [300], "a"),  # beside a wall there may be wall
        ([], [1], "b"),
        ([400], [], "b"),  # beside other frontiers there is time
    ],
)
def test_of_two_places_equally_near_it_takes_the_less_open_one(beside_a, beside_b, better):
    places = {100: Place.FRONTIER, 101: Place.FRONTIER, 200: Place.OUTSIDE, 300: Place.WALL, 400: Place.FRONTIER}
    moves = every_way(0, 0) | {(0, 2): 100, (0, 5): 101}
    for place, beside in ((100, beside_a), (101, beside_b)):
        moves |= {(place, action): neighbor for action, neighbor in enumerate(beside)}
    known = table_of(moves, [0, 100, 101])
    action = nearest_frontier(known, places, 0, range(6), np.random.default_rng(0))
    assert action == {"a": 2, "b": 5}[better]


def test_a_place_beside_a_wall_counts_as_one_step_farther():
    """Of 0 one move leads to a place beside a wall, another one to 1, and of 1 one to a place beside nothing."""
    places = {100: Place.FRONTIER, 101: Place.FRONTIER, 300: Place.WALL}
    moves = every_way(0, 0) | every_way(1, 1) | {(0, 2): 100, (0, 4): 1, (1, 5): 101, (100, 3): 300}
    known = table_of(moves | {(101, 2): 1}, [0, 1, 100, 101])
    rng = np.random.default_rng(0)
    assert nearest_frontier(known, places, 0, range(6), rng) == 4  # equally far now, and less open
    assert nearest_frontier(known, places, 0, range(6), rng, ordered=False) == 2
    assert nearest_frontier(known, places, 1, range(6), rng) == 5
    del moves[1, 5]
    known = table_of(moves | every_way(1, 1), [0, 1, 100])
    assert nearest_frontier(known, places, 0, range(6), rng) == 2  # there is no other
    assert nearest_frontier(table_of({**moves, (0, 4): 0, (1, 5): 1}, [0, 1, 100]), places, 0, range(6), rng) == 2


def test_without_order_the_nearest_are_equal():
    places = {100: Place.FRONTIER, 101: Place.FRONTIER, 200: Place.OUTSIDE}
    moves = every_way(0, 0) | {(0, 2): 100, (0, 5): 101, (100, 1): 200}
    known = table_of(moves, [0, 100, 101])

    def draws(ordered):
        return {
            nearest_frontier(known, places, 0, range(6), np.random.default_rng(seed), ordered) for seed in range(40)
        }

    assert draws(True) == {2} and draws(False) == {2, 5}


def test_bumps_from_two_sides_are_into_one_wall():
    """With a model that knows the lattice: 2 lies north-west of 1, and the cell west of 1 south-west of 2."""
    agent = ESWMAgent(PathIntegrator(ModelConfig()), seed=0)
    agent.reset({"state": 1}, {})
    agent.act({"state": 1}, {})  # names the six places around
    west, north_west = (agent.knowledge.map.moves.end_of(1, action) for action in (3, 2))
    agent.observe({"state": 1}, 2, {"state": 2}, {})
    agent.act({"state": 2}, {})
    assert agent.knowledge.map.moves.end_of(2, 4) is None and north_west not in agent.knowledge.map.kind
    agent.observe({"state": 2}, 4, {"state": 2}, {})
    assert agent.knowledge.map.kind[west] is Place.WALL
    assert agent.knowledge.map.moves.end_of(2, 4) == agent.knowledge.map.moves.end_of(1, 3) == west


def test_ties_are_broken_by_the_seed():
    known = table_of({(0, action): 100 + action for action in range(6)}, [0])
    places = {100 + action: Place.FRONTIER for action in range(6)}

    def draws(seed):
        rng = np.random.default_rng(seed)
        return [nearest_frontier(known, places, 0, range(6), rng) for _ in range(50)]

    assert draws(0) == draws(0) and set(draws(0)) == set(range(6))


def test_the_papers_score_by_hand():
    """An unknown outcome scores 1 - 0.2 H, an unsure one 0.1 H, a sure one nothing."""
    end = np.array([[1, 2, -1, -1, 3, 4]])
    probability = np.array([[0.95, 0.8, 0.5, 0.9, 0.6, 0.81]])
    entropy = np.array([[0.1, 0.9, 1.5, 0.4, 1.2, 0.7]])
    score = curiosity(TransitionTable(np.array([0]), end, probability, entropy), 0.8, 0.2, 0.1)
    np.testing.assert_allclose(score, [[-np.inf, 0.09, 0.7, 0.92, 0.12, -np.inf]])


def test_looks_ahead_where_every_move_at_hand_is_certain():
    known = table_of(every_way(0, 0) | every_way(1, 1) | {(0, 2): 1, (1, 4): 2} | every_way(2, 2), [0, 1, 2])
    score = np.full((3, 6), -np.inf)
    score[2, 0] = 0.3
    rng = np.random.default_rng(0)
    assert most_uncertain(known, score, 0, rng) == 2
    assert most_uncertain(known, score, 1, rng) == 4
    assert most_uncertain(known, score, 2, rng) == 0
    assert most_uncertain(known, np.full((3, 6), -np.inf), 0, rng) is None
