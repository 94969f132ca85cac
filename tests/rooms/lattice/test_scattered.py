"""Rooms that are a whole lattice with scattered walls."""

import numpy as np
import pytest

from eswm_gym.rooms import Room, ScatteredConfig

N = 4000


def draw(*args, **kwargs):
    return ScatteredConfig(*args, **kwargs).generate(np.random.default_rng(0), N)


def test_states_are_dealt_at_random():
    rooms = draw("diagonal", (3, 2))
    assert (np.sort(rooms.states, axis=1) == np.arange(6)).all() and rooms.observed.all()
    often = np.array([np.bincount(states, minlength=6) for states in rooms.states.T])
    assert abs(often / N - 1 / 6).max() < 0.03


def test_walls_are_uniform_in_number_and_place():
    rooms = draw("square", (5, 4), walls=0.2)
    assert np.bincount(rooms.walls.sum(1)) / N == pytest.approx([0.2] * 5, abs=0.03)
    assert rooms.walls.mean(0) == pytest.approx([0.1] * 20, abs=0.02)


def test_numbers_of_actions():
    assert draw("torus", (3, 3)).numbers is None
    numbers = draw("torus", (3, 3), actions="permuted").numbers
    assert (np.sort(numbers, axis=1) == np.arange(4)).all()
    assert len(np.unique(numbers, axis=0)) == 24


def test_one_room():
    config = ScatteredConfig("pose", (3, 2), actions="permuted")
    room = Room.generate(np.random.default_rng(3), config)
    rooms = config.generate(np.random.default_rng(3), 1)
    for name in ("states", "walls", "observed", "numbers"):
        np.testing.assert_array_equal(getattr(room, name), getattr(rooms, name)[0])
