"""The rules of exploration on tables made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from eswm_gym.agents import ESWMAgent, Place, TransitionTable
from eswm_gym.agents.exploration import curiosity, most_news, most_uncertain, nearest_frontier
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


def news_of(moves, news, states):
    """A table of moves (state, action): end, and of how many cells some of them are expected to show."""
    table, new = table_of(moves, states), np.zeros((len(states), 6))
    for (source, action), n in news.items():
        new[states.index(source), action] = n
    return replace(table, new=new)


WAY = {(0, 0): 1, (1, 1): 2, (0, 3): 3, (3, 4): 4}  # 0 - 1 - 2 and 0 - 3 - 4


def newest(news, state=0, actions=range(6), moves=WAY, seed=0):
    return most_news(news_of(moves, news, [0, 1, 2, 3, 4]), state, actions, np.random.default_rng(seed))


@pytest.mark.parametrize(("far", "first"), [(8, 2), (10, 0)])
def test_goes_where_most_is_new_for_each_move(far, first):
    """3 new cells after one move, or 8 or 10 after three."""
    assert newest({(0, 2): 3, (2, 5): far}) == first


def test_what_one_sees_on_the_way_counts():
    """5 cells after two moves, and 1 on the way there, are more than 5.5 after two moves."""
    news = {(1, 1): 5, (3, 4): 5.5}
    assert newest(news) == 3 and newest({**news, (0, 0): 1}) == 0


def test_one_may_see_news_where_nobody_knows_the_end_of_a_move():
    assert newest({(2, 5): 1}) == 0 and (2, 5) not in WAY
    assert newest({(2, 5): 1}, state=2) == 5


@pytest.mark.parametrize("news", [{}, {(0, 2): 0.05, (2, 5): 0.05}])
def test_hardly_anything_new_is_nothing_new(news):
    assert newest(news) is None


def test_news_that_no_known_move_leads_to_are_none():
    news = {(2, 5): 9}
    assert newest(news, moves={(0, 0): 1, (3, 1): 2}) is None and newest(news, state=4) is None
    assert newest(news, state=99) is None  # no state of the table


def test_the_mask_rules_the_moves_from_here_alone():
    """In the end a move that is not allowed here shows most."""
    news = {(0, 2): 3, (1, 2): 7, (4, 0): 2}
    assert newest(news) == 0
    assert newest(news, actions=[0, 1]) == 0 and newest(news, actions=[1, 2, 3]) == 2
    assert newest(news, actions=[3, 5]) == 3 and newest(news, actions=[5]) is None


def test_equal_news_are_drawn_by_the_seed():
    news = {(0, action): 2 for action in range(6)}
    drawn = [newest(news, seed=seed) for seed in range(40)]
    assert drawn == [newest(news, seed=seed) for seed in range(40)] and set(drawn) == set(range(6))
    assert {newest({**news, (0, 4): 2.1}, seed=seed) for seed in range(40)} == {4}
