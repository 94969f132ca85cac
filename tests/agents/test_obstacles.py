"""What blocked ways say of others."""

import numpy as np
import pytest

from eswm_gym.agents.obstacles import Obstacles

NOBODY = np.zeros((0, 2, 2))
A, B = np.array([0.0, 0.0]), np.array([0.0, 1.6])  # a way of 1.6 m, and points of it 0.2 m apart


def share(obstacles, start, end):
    return obstacles.in_way(np.array([start], float), np.array([end], float))[0]


def test_nothing_is_known_at_first():
    np.testing.assert_array_equal(Obstacles().in_way(np.zeros((3, 2)), np.ones((3, 2))), np.zeros(3))


def test_a_way_that_was_blocked_says_so_of_itself_and_of_ways_close_by():
    obstacles = Obstacles()
    obstacles.add(A, B, NOBODY)
    assert share(obstacles, A, B) == share(obstacles, B, A) == pytest.approx(1)
    assert share(obstacles, (0.3, 0), (0.3, 1.6)) == pytest.approx(1)
    assert share(obstacles, (0.4, 0), (0.4, 1.6)) == 0
    # Across its middle, at 0.8 m: those of the eight points at 0.6, 0.8 and 1 m are within 0.35 m.
    assert share(obstacles, (-1, 0.8), (1, 0.8)) == pytest.approx(3 / 8)
    assert share(obstacles, (-1, -0.2), (1, -0.2)) == 0  # behind where it began
    obstacles.add(A, B, NOBODY)
    assert share(obstacles, A, B) == pytest.approx(2)


def test_where_someone_went_nothing_stands():
    """Half of the way was walked: what blocked it is in the other half."""
    obstacles = Obstacles()
    obstacles.add(A, B, np.array([[A, [0.0, 0.9]]]))
    assert share(obstacles, (-1, 0.4), (1, 0.4)) == 0
    assert share(obstacles, (0, 1.3), (0, 1.6)) == pytest.approx(1)  # points at 1.2, 1.4 and 1.6 m


def test_what_came_after_someone_went_there_may_stand_anywhere():
    obstacles = Obstacles()
    obstacles.add(A, B, np.array([[A, B]]))
    assert share(obstacles, A, B) == pytest.approx(1)
