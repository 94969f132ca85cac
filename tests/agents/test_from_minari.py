"""A memory bank from a dataset: small datasets written out by hand, which look like Minari's."""

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

from eswm_gym.agents import ESWMAgent, MemoryBank
from eswm_gym.rooms import state_to_bits
from eswm_gym.wrappers import DiscreteStates


class Dataset:
    """Episodes as pairs of observations and actions."""

    def __init__(self, *episodes):
        self.episodes = [SimpleNamespace(id=i, observations=o, actions=a) for i, (o, a) in enumerate(episodes)]

    def iterate_episodes(self, indices=None):
        return iter(self.episodes if indices is None else [self.episodes[i] for i in indices])


def test_integers_are_their_own_numbers():
    dataset = Dataset((np.array([4, 4, 9]), np.array([1, 0])), (np.array([9, 2]), np.array([3])))
    assert list(MemoryBank.from_minari(dataset)) == [(4, 1, 4), (4, 0, 9), (9, 3, 2)]  # none from 9 to 9 in between
    assert list(MemoryBank.from_minari(dataset, episodes=[1])) == [(9, 3, 2)]


@pytest.mark.parametrize(
    "observations",
    [
        np.array([[5, 7], [5, 8], [5, 7]]),
        np.array([[0.5], [1.5], [0.5]]),
        np.arange(100).reshape(1, 100) * np.array([[0], [1], [0]]),
        ["here", "there", "here"],
        {"x": np.array([5, 5, 5]), "y": np.array([1, 2, 1])},
        {"place": {"x": np.array([1, 2, 1])}},
        (np.array([1, 2, 1]), ["a", "b", "a"]),
        {"state": np.array([[0, 1], [1, 1], [0, 1]]), "clock": np.array([0, 1, 2])},
    ],
)
def test_other_states_are_numbered_as_they_come(observations):
    assert list(MemoryBank.from_minari(Dataset((observations, np.array([2, 3]))))) == [(0, 2, 1), (1, 3, 0)]


def test_a_key_says_what_is_a_state():
    observations = {"at": np.array([[3, 1], [3, 2], [3, 1]]), "clock": np.array([0, 1, 2])}
    bank = MemoryBank.from_minari(Dataset((observations, np.array([2, 3]))), key=lambda shown: int(shown["at"][1]))
    assert list(bank) == [(1, 2, 2), (2, 3, 1)]


def test_numbers_of_an_environment():
    """Its start, 0, has the number 1, since the goal came first."""
    env = DiscreteStates(gym.make("FrozenLake-v1", is_slippery=False), lattice="square", goal=15)
    env.reset(seed=0)
    bank = MemoryBank.from_minari(Dataset((np.array([14, 15, 0]), np.array([2, 0]))), number=env.number)
    assert list(bank) == [(2, 2, 0), (0, 0, 1)]


def test_bits_have_the_numbers_that_the_agent_knows_them_by():
    bits = np.array([state_to_bits(state, 6) for state in (37, 2)])
    agent = ESWMAgent.from_pretrained("random-wall")
    bank = MemoryBank.from_minari(Dataset(({"state": bits}, np.array([5]))), number=agent.number)
    assert list(bank) == [(37, 5, 2)]


def test_the_newest_end_counts_and_a_full_bank_forgets_the_oldest():
    dataset = Dataset((np.array([0, 1, 0, 2]), np.array([0, 3, 0])))
    assert list(MemoryBank.from_minari(dataset)) == [(1, 3, 0), (0, 0, 2)]
    bank = MemoryBank.from_minari(dataset, capacity=1, n_actions=4)
    assert list(bank) == [(0, 0, 2)] and (bank.capacity, bank.n_actions) == (1, 4)


@pytest.mark.parametrize(
    ("actions", "named"),
    [
        (np.array([0.25], np.float32), r"0\.25"),
        (np.array([[1, 0]]), r"\[1, 0\]"),
        (np.array([True]), "True"),
        ({"turn": np.array([3])}, r"\{'turn': .*3"),
        (np.array([-1]), r"\(0, -1, 1\)"),
        (np.array([4]), r"from 0 to 3, got \(0, 4, 1\)"),
    ],
)
def test_actions_that_are_none_are_named(actions, named):
    with pytest.raises(ValueError, match=named):
        MemoryBank.from_minari(Dataset((np.array([0, 1]), actions)), n_actions=4)


def test_states_that_are_none_are_named():
    with pytest.raises(ValueError, match=r"\(0, 1, -1\)"):
        MemoryBank.from_minari(Dataset((np.array([0, -1]), np.array([1]))))
    with pytest.raises(TypeError, match="set"):
        MemoryBank.from_minari(Dataset(([{1}, {2}], np.array([1]))))
