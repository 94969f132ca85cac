"""The clone-structured graph on a small world that is known: a ring of six places, two of which look alike."""

import numpy as np
import pytest

from eswm_gym.agents.baselines import CSCGAgent
from eswm_gym.agents.baselines.cscg import CLONES, clones_of, fit

SHOWN = np.array([0, 1, 2, 3, 1, 4])  # places 1 and 4 of the ring show state 1
MASK = {"action_mask": np.ones(2, np.int8)}


def walk(n=600, seed=0):
    """A random walk round the ring: action 0 leads on, action 1 back."""
    rng = np.random.default_rng(seed)
    actions = rng.integers(2, size=n)
    places = np.cumsum([0, *np.where(actions == 0, 1, -1)]) % 6
    return np.stack([SHOWN[places[:-1]], actions, SHOWN[places[1:]]], 1)


@pytest.fixture(scope="module")
def graph():
    return fit(np.stack([walk()]), 5, n_actions=2)[0]


def test_probabilities(graph):
    assert graph.moves.shape == (2, 5 * CLONES, 5 * CLONES)
    np.testing.assert_allclose(graph.moves.sum(2), 1, rtol=1e-4)
    assert graph.visits.sum() == pytest.approx(600, rel=0.1)


def test_places_that_look_alike_are_told_apart_by_where_one_comes_from(graph):
    """From state 0 on and on again is state 2; from state 3 on and on again is state 4, through a state 1 as well."""
    for start, end in ((0, 2), (3, 4)):
        agent = CSCGAgent(graph, 0)
        agent.reset({"state": start, "goal": 0}, {})
        agent.observe({"state": start}, 0, {"state": 1}, {})
        after = agent.belief @ graph.moves[0]
        assert after[clones_of(end)].sum() > 0.8


def test_it_takes_the_shorter_way(graph):
    for start, goal, action in ((0, 2, 0), (2, 0, 1), (3, 4, 0), (4, 3, 1), (0, 4, 1)):
        agent = CSCGAgent(graph, 0)
        obs = {"state": start, "goal": goal}
        agent.reset(obs, {})
        assert agent.act(obs, MASK) == action
        other = np.zeros(2, np.int8)
        other[1 - action] = 1
        assert agent.act(obs, {"action_mask": other}) == 1 - action


def test_a_state_that_surprises_it_starts_it_anew(graph):
    agent = CSCGAgent(graph, 0)
    agent.reset({"state": 0, "goal": 4}, {})
    agent.observe({"state": 0}, 0, {"state": 3}, {})  # no move leads there
    assert agent.belief[clones_of(3)].sum() == pytest.approx(1)


def test_rooms_that_are_fitted_together_do_not_mix():
    together = fit(np.stack([walk(100, 0), walk(100, 1)]), 5, n_actions=2)
    moves = [found.moves for found in together]
    assert not np.allclose(*moves)
    alone = fit(np.stack([walk(100, 0)]), 5, n_actions=2)[0].moves
    np.testing.assert_allclose(alone, moves[0], atol=1e-5)  # its random start is the first part of both
