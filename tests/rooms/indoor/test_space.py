"""Where one can stand, walk and look, in houses known by heart and against plain geometry."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eswm_gym.rooms.indoor import RADIUS, Furniture, House, Room, Space, draw_house

RIGHT = math.pi / 2
few = settings(max_examples=25)


@pytest.mark.parametrize(
    ("point", "free"),
    [
        ((2, 2), True),
        ((0.21, 2), True),
        ((0.19, 2), False),  # less than 20 cm from a wall
        ((2, 3.81), False),
        ((-1, 2), False),  # outside
        ((9, 2), False),
        ((4, 2), True),  # in the door
        ((4, 1.71), True),
        ((4, 1.69), False),  # beside its frame
        ((3.9, 1), False),
        ((1, 3), False),  # in the box
        ((1.69, 3), False),
        ((1.71, 3), True),
        ((1.63, 2.57), False),  # 18 cm from its corner
        ((1.65, 2.55), True),  # 21 cm
    ],
)
def test_free(two_rooms, point, free):
    assert Space(two_rooms).free(point) == free


def test_a_closed_door_is_a_wall(two_rooms):
    space = Space(two_rooms.with_door(0, True))
    assert space.free(np.array([[4, 2], [3.81, 2], [3.79, 2], [4.21, 2]])).tolist() == [False, False, True, True]
    assert not space.passable([3, 2], [5, 2])


@pytest.mark.parametrize(
    ("start", "end", "passable"),
    [
        ((1, 1), (3, 1), True),
        ((3, 2), (5, 2), True),  # through the door
        ((3, 1), (5, 1), False),  # through the wall
        ((3.7, 1), (4.3, 3), False),  # through the door, but too near to its frame
        ((3.75, 1.75), (4.5, 2), True),
        ((1, 2), (2.5, 3), True),  # past the corner of the box
        ((1, 2.3), (2.5, 3.8), False),
        ((1, 2.3), (1, 3.7), False),  # through the box
        ((2, 2), (2, 2), True),
        ((1, 3), (1, 3), False),
        ((1, 3), (3, 3), False),  # out of the box
        ((2, 2), (9, 2), False),
    ],
)
def test_passable(two_rooms, start, end, passable):
    space = Space(two_rooms)
    assert space.passable(start, end) == space.passable(end, start) == passable


def test_arrays_of_any_shape(two_rooms):
    space = Space(two_rooms)
    points = np.random.default_rng(0).uniform(0, 8, (3, 5, 2))
    ways = space.passable(points[:, :1], points)
    assert space.free(points).shape == ways.shape == (3, 5)
    for i, j in np.ndindex(3, 5):
        assert ways[i, j] == space.passable(points[i, 0], points[i, j])
    assert ways[:, 0].tolist() == space.free(points[:, 0]).tolist()


@few
@given(seed=st.integers(0, 2**32 - 1), closed=st.booleans())
def test_free_and_passable_in_any_house(clearance, seed, closed):
    rng = np.random.default_rng(seed)
    house = draw_house(rng)
    if house.doors:
        house = house.with_door(0, closed)
    space = Space(house)
    x, y = max(room.x[1] for room in house.rooms), max(room.y[1] for room in house.rooms)
    starts = rng.uniform([0, 0], [x, y], (40, 2))
    ends = starts + rng.uniform(-1.5, 1.5, (40, 2))
    free, passable = space.free(starts), space.passable(starts, ends)
    for start, end, stands, goes in zip(starts.tolist(), ends.tolist(), free, passable, strict=True):
        at, room = clearance(house, start, start), clearance(house, start, end)
        assert stands == (at >= RADIUS) or abs(at - RADIUS) < 1e-9
        assert goes == (room >= RADIUS) or 0.198 < room < RADIUS, "looked at every 5 cm"


def test_points_are_drawn_evenly_where_one_can_stand(two_rooms):
    space = Space(two_rooms)
    points = space.draw_points(np.random.default_rng(0), 4000)
    assert points.shape == (4000, 2) and space.free(points).all()
    np.testing.assert_array_equal(points, space.draw_points(np.random.default_rng(0), 4000))
    # 3.6 x 3.6 m in each room, but for the box and 20 cm around it, and the door.
    box = 1.4 * 1.0 - (4 - math.pi) * 0.2**2
    first, door = 3.6**2 - box, 0.4 * 0.6
    share = ((points[:, 0] < 3.8).mean(), (points[:, 0] > 4.2).mean())
    assert share == pytest.approx((first / (first + door + 3.6**2), 3.6**2 / (first + door + 3.6**2)), abs=0.03)
    assert np.abs(points[points[:, 0] > 4.2].mean(0) - [6, 2]).max() < 0.1


def test_walls(one_room, two_rooms):
    def length(house):
        return np.linalg.norm(np.diff(Space(house).walls, axis=1), axis=-1).sum()

    assert length(one_room) == pytest.approx(16)
    assert length(two_rooms) == pytest.approx(2 * (16 - 1))  # the wall between rooms belongs to both
    assert length(two_rooms.with_door(0, True)) == pytest.approx(2 * (16 - 1) + 1)


# Looking: 32 rays in 90 degrees, the first and the last half a step from the edges


def rays() -> np.ndarray:
    return np.tan(np.radians(-45 + 90 / 32 * (np.arange(32) + 0.5)))


def test_seen_in_a_square_room(one_room):
    points = Space(one_room).seen(np.array([[2, 2, 0], [2, 2, RIGHT], [2, 2, 2 * RIGHT], [2, 2, -RIGHT], [1, 3, 0]]))
    across, ahead = 2 * rays(), np.full(32, 2.0)
    views = [(2 + across, 2 + ahead), (2 + ahead, 2 - across), (2 - across, 2 - ahead), (2 - ahead, 2 + across)]
    assert points.shape == (5, 32, 2)
    np.testing.assert_allclose(points[:4], [np.stack(view, -1) for view in views], atol=1e-9)
    np.testing.assert_allclose(points[4], np.stack([1 + rays(), np.full(32, 4)], -1), atol=1e-9)


def test_seen_through_a_door(two_rooms):
    pose = np.array([[3.0, 2.0, RIGHT]])
    ahead = np.abs(rays()) < 0.5  # the door is a metre wide and a metre ahead
    for closed in (False, True):
        points = Space(two_rooms.with_door(0, closed)).seen(pose)[0]
        np.testing.assert_allclose(points[~ahead, 0], 4, atol=1e-9)
        # The other room's far wall is five metres away, unless a side is reached before.
        far = 4 if closed else np.minimum(8, 3 + 2 / np.abs(rays()[ahead]))
        np.testing.assert_allclose(points[ahead, 0], far, atol=1e-9)


def test_furniture_hides_no_walls(two_rooms):
    pose = np.array([[2.0, 2.0, 0.0]])
    np.testing.assert_allclose(Space(two_rooms).seen(pose)[0, :, 1], 4)


@pytest.mark.parametrize(
    ("point", "shown"),
    [
        ((2, 4), True),
        ((0.1, 4), True),
        ((3.9, 4), True),
        ((0, 3.9), False),  # 46.5 degrees to the left
        ((4, 2), False),
        ((2, 0), False),  # behind
        ((6, 4), False),  # in the other room, 63 degrees to the right
    ],
)
def test_shows(two_rooms, point, shown):
    for turned in (0, 2 * math.pi):
        assert Space(two_rooms).shows(np.array([[2, 2, turned]]), np.array(point, float)).tolist() == [shown]


def test_shows_through_a_door(two_rooms):
    pose, points = np.array([[3.0, 2.0, RIGHT]]), np.array([[[8, 2], [8, 4]], [[8, 0], [4, 2]]], float)
    assert Space(two_rooms).shows(pose, points).tolist() == [[[True, True], [True, True]]]
    aside = np.array([[3.0, 1.0, RIGHT], [3.0, 3.0, RIGHT]])
    assert Space(two_rooms).shows(aside, points)[:, 0].tolist() == [[False, True], [False, False]]
    closed = Space(two_rooms.with_door(0, True))
    assert closed.shows(pose, points).tolist() == [[[False, False], [False, True]]]


def test_sees(one_room):
    space = Space(one_room)
    poses = np.array([[2, 2, 0], [2, 2, math.pi / 4], [2, 2, math.pi], [1, 1, 0]])
    sees = space.sees(poses)
    assert sees.shape == (4, 4) and sees.dtype == np.uint32
    bits = [[int(word).bit_count() for word in row] for row in sees]
    # From (1, 1) the wall ahead is in view as well, and from 18 degrees on to the left a wall that is not from (2, 2).
    assert bits[0] == [32, 16, 0, 23] and bits[1][:2] == [16, 32] and bits[2] == [0, 0, 32, 0]
    assert bits[3] == [32, 16, 0, 32]
    np.testing.assert_array_equal(
        np.unpackbits(sees[..., None].view(np.uint8), axis=-1).reshape(4, 4, 32),
        space.shows(poses, space.seen(poses)),
    )


@few
@given(seed=st.integers(0, 2**32 - 1))
def test_one_sees_what_one_sees(clearance, seed):
    rng = np.random.default_rng(seed)
    space = Space(draw_house(rng))
    poses = np.c_[space.draw_points(rng, 12), rng.uniform(-math.pi, math.pi, 12)]
    points, sees = space.seen(poses), space.sees(poses)
    assert np.isfinite(points).all()
    assert (sees.diagonal() == 2**32 - 1).all()
    spun = poses + [0, 0, 2 * math.pi]
    np.testing.assert_allclose(space.seen(spun), points, atol=1e-6)
    for pose, seen in zip(poses, points, strict=True):  # nothing lies between the agent and what it sees
        for point in seen[::8]:
            away = np.linalg.norm(point - pose[:2])
            short = pose[:2] + (point - pose[:2]) * (1 - 0.01 / away)
            without = House(space.house.rooms, space.house.doors)
            assert clearance(without, pose[:2].tolist(), short.tolist()) > 0


# Ways


def test_straight_ways(two_rooms):
    space = Space(two_rooms)
    assert space.distance([1, 1], [3, 2]) == pytest.approx(math.sqrt(5))
    assert space.distance([3, 2], [5, 2]) == 2
    assert space.distance([2, 2], [2, 2]) == 0
    assert type(space.distance([3, 2], [5, 2])) is float


def test_the_way_around_a_wall(two_rooms):
    """Taut around the door's frame: two tangents to 20 cm around it, and the arc between them."""
    space, start, end = Space(two_rooms), np.array([3.5, 3.4]), np.array([4.5, 3.4])
    away = math.dist(start, (4, 2.5))
    tangent, arc = math.sqrt(away**2 - 0.2**2), math.pi - math.acos(0.2 / away) - math.atan2(0.5, 0.9)
    taut = 2 * (tangent + 0.2 * arc)
    assert 2.4 < taut < 2.6
    assert space.distance(start, end) == pytest.approx(taut, rel=0.15)
    assert space.distance(end, start) == pytest.approx(space.distance(start, end))


def test_there_is_no_way_through_a_closed_door(two_rooms):
    space = Space(two_rooms.with_door(0, True))
    ends = np.array([[5, 2], [4.21, 2], [3, 1], [7, 3.5], [0.3, 3.7]])
    assert np.isfinite(space.distances(np.array([3, 2]), ends)).tolist() == [False, False, True, False, True]
    assert [space.distance([3, 2], end) < math.inf for end in ends] == [False, False, True, False, True]
    again = Space(space.house.with_door(0, False))
    assert np.isfinite(again.distances(np.array([3, 2]), ends)).all()


def test_furniture_may_leave_a_corner_without_a_way():
    house = House((Room((0.0, 4.0), (0.0, 4.0)),), (), (Furniture("box", 2.0, 1.0, (4.0, 0.2, 1.0)),))
    assert Space(house).distance([1, 0.4], [1, 3]) == math.inf
    assert Space(house).distance([1, 0.4], [3, 0.4]) == 2


@few
@given(seed=st.integers(0, 2**32 - 1))
def test_ways_are_no_shorter_than_straight_lines(seed):
    rng = np.random.default_rng(seed)
    space = Space(draw_house(rng))
    points = space.draw_points(rng, 8)
    for start in points[:2]:
        far = space.distances(start, points)
        straight = np.linalg.norm(points - start, axis=1)
        assert (far > straight - 0.5).all(), "but for the way to the nearest points of the map"
        for point, way in zip(points, far, strict=True):
            if space.passable(start, point):
                assert space.distance(start, point) == pytest.approx(np.linalg.norm(point - start))
            else:
                assert space.distance(start, point) == way
