"""Poses and moves against matrices, and classes of moves at the edges between them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.rooms.indoor import (
    N_DISPLACEMENTS,
    N_ROTATIONS,
    action_between,
    displacement_class,
    moved,
    reverse,
    rotation_class,
    within_reach,
    wrap,
)

metres, angles = st.floats(-20, 20), st.floats(-7, 7)
poses = st.tuples(metres, metres, angles)
RIGHT, BACK = math.pi / 2, math.pi


def matrix(pose) -> np.ndarray:
    """What takes points (right, ahead, 1) as they are seen from a pose to where they are, and frames to frames."""
    x, y, heading = pose
    return np.array(
        [[math.cos(heading), math.sin(heading), x], [-math.sin(heading), math.cos(heading), y], [0.0, 0.0, 1.0]]
    )


def is_at(pose, expected):
    np.testing.assert_allclose(matrix(pose), matrix(expected), atol=1e-9)


@pytest.mark.parametrize(
    ("pose", "action", "end"),
    [
        ((1, 2, 0), (0.5, 1, 0), (1.5, 3, 0)),  # facing y, right is x
        ((1, 2, RIGHT), (0.5, 1, 0), (2, 1.5, RIGHT)),  # facing x, right is -y
        ((1, 2, BACK), (0.5, 1, RIGHT), (0.5, 1, -RIGHT)),
        ((1, 2, -RIGHT), (0.5, -1, RIGHT), (2, 2.5, 0)),
        ((0, 0, 0), (1, 1, BACK), (1, 1, -BACK)),  # it moves first and turns then
    ],
)
def test_moves_by_hand(pose, action, end):
    np.testing.assert_allclose(moved(pose, action), end, atol=1e-12)
    np.testing.assert_allclose(action_between(pose, end)[:2], action[:2], atol=1e-12)
    is_at(action_between(pose, end), action)


@given(poses, poses)
def test_moves_are_products_of_matrices(pose, action):
    end = moved(pose, action)
    np.testing.assert_allclose(matrix(end), matrix(pose) @ matrix(action), atol=1e-9)
    is_at(action_between(pose, end), action)


@given(poses, poses)
def test_reverse_undoes(pose, action):
    is_at(moved(moved(pose, action), reverse(action)), pose)
    np.testing.assert_allclose(matrix(reverse(action)), np.linalg.inv(matrix(action)), atol=1e-9)


@given(poses, poses, poses)
def test_actions_compose(one, two, three):
    is_at(moved(action_between(one, two), action_between(two, three)), action_between(one, three))


@given(angles)
def test_wrap(angle):
    wrapped = float(wrap(angle))
    assert -math.pi <= wrapped <= math.pi
    assert abs(math.remainder(wrapped - angle, 2 * math.pi)) < 1e-12
    assert float(wrap(wrapped)) == pytest.approx(wrapped, abs=1e-12) or abs(wrapped) == math.pi


def test_wrap_at_the_edges():
    assert wrap(np.array([-math.pi, math.pi, 3 * math.pi, 0])).tolist() == [-math.pi, -math.pi, -math.pi, 0]


def test_arrays_of_any_shape():
    rng = np.random.default_rng(0)
    starts, actions = rng.normal(size=(5, 1, 3)), rng.normal(size=(1, 4, 3))
    ends = moved(starts, actions)
    assert ends.shape == (5, 4, 3)
    for i, j in np.ndindex(5, 4):
        is_at(ends[i, j], moved(starts[i, 0], actions[0, j]))
        is_at(reverse(actions)[0, j], reverse(actions[0, j]))
    np.testing.assert_allclose(action_between(starts, ends)[..., :2], np.broadcast_to(actions, (5, 4, 3))[..., :2])


def test_reach():
    actions = [(1.5, -1.5, 9), (1.51, 0, 0), (0, 1.51, 0), (-1.51, 0, 0), (0, -1.51, 0), (1.4, 1.4, 0)]
    assert within_reach(actions).tolist() == [True, False, False, False, False, True]


# Classes: 8 x 8 squares of 37.5 cm, 36 sectors of 10 degrees


def test_every_class_of_displacement():
    middles = [-1.5 + 0.375 * (k + 0.5) for k in range(8)]
    actions = np.array([(right, ahead, 0) for right in middles for ahead in middles])
    assert N_DISPLACEMENTS == 64
    assert displacement_class(actions).tolist() == list(range(64))
    assert displacement_class(actions.reshape(8, 8, 3)).shape == (8, 8)
    assert displacement_class(actions).dtype == np.int64


@pytest.mark.parametrize("axis", [0, 1])
def test_edges_of_displacement_belong_to_the_class_above(axis):
    actions = np.full((10, 3), -1.5)
    actions[:, axis] = [-9, *(-1.5 + 0.375 * k for k in range(9))]
    expected = np.array([0, 0, 1, 2, 3, 4, 5, 6, 7, 7])  # the last edge has no class above it
    assert displacement_class(actions).tolist() == (expected * (8 if axis == 0 else 1)).tolist()


def test_every_class_of_rotation():
    degrees = np.arange(-175, 180, 10)
    actions = np.stack([0 * degrees, 0 * degrees, np.radians(degrees)], -1)
    assert N_ROTATIONS == 36
    assert rotation_class(actions).tolist() == list(range(36))
    assert rotation_class(actions + [0, 0, 2 * math.pi]).tolist() == list(range(36))
    assert rotation_class(actions).dtype == np.int64


@pytest.mark.parametrize(
    ("turn", "sector"),
    [(-math.pi, 0), (math.pi, 0), (math.pi - 1e-9, 35), (0, 18), (-1e-9, 17), (math.pi / 2, 27), (-math.pi / 2, 9)],
)
def test_edges_of_rotation(turn, sector):
    assert rotation_class([0, 0, turn]) == sector


@given(poses)
def test_classes_are_in_range(action):
    assert 0 <= displacement_class(action) < 64
    assert 0 <= rotation_class(action) < 36
    assert rotation_class(action) * 10 - 180 <= math.degrees(wrap(action[2])) + 1e-6
    assert math.degrees(wrap(action[2])) <= rotation_class(action) * 10 - 170 + 1e-6
