"""Houses small enough to know by heart, and a second account of where one can stand and walk in a house."""

import math

import pytest

from eswm_gym.rooms.indoor import Door, Furniture, House, Room


@pytest.fixture
def one_room():
    return House((Room((0.0, 4.0), (0.0, 4.0)),))


@pytest.fixture
def two_rooms():
    """Beside each other, with a door of a metre in the middle of the wall between them, and a box in the first."""
    return House(
        (Room((0.0, 4.0), (0.0, 4.0)), Room((4.0, 8.0), (0.0, 4.0))),
        (Door((0, 1), 0, 4.0, (1.5, 2.5)),),
        (Furniture("box", 1.0, 3.0, (1.0, 0.6, 0.8)),),
    )


@pytest.fixture(scope="session")
def clearance():
    """Metres between a straight way in a house and what is nearest to it; 0 if something is in it."""
    return _clearance


def walls(house: House) -> list:
    """Pieces of wall, ((x, y), (x, y)), that nobody can walk through."""
    pieces = []
    for number, room in enumerate(house.rooms):
        for across in (0, 1):
            for at in (room.x, room.y)[across]:
                edge, end = (room.y, room.x)[across]
                for door in sorted(house.doors, key=lambda door: door.span):
                    if number in door.rooms and (door.across, door.at) == (across, at) and not door.closed:
                        pieces.append((across, at, edge, door.span[0]))
                        edge = door.span[1]
                pieces.append((across, at, edge, end))
    return [
        ((at, low), (at, high)) if across == 0 else ((low, at), (high, at))
        for across, at, low, high in pieces
        if high > low
    ]


def _clearance(house: House, start, end) -> float:
    nearest = min(apart(start, end, *piece) for piece in walls(house))
    for thing in house.furniture:
        right, back = thing.size[0] / 2, thing.size[1] / 2
        if abs(start[0] - thing.x) <= right and abs(start[1] - thing.y) <= back:
            return 0.0
        corners = [(thing.x + i * right, thing.y + j * back) for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        nearest = min(nearest, *(apart(start, end, corners[k - 1], corners[k]) for k in range(4)))
    return nearest


def apart(a, b, c, d) -> float:
    """Between two segments in the plane."""
    if (turn(a, b, c) * turn(a, b, d) < 0) and (turn(c, d, a) * turn(c, d, b) < 0):
        return 0.0
    return min(to_segment(a, c, d), to_segment(b, c, d), to_segment(c, a, b), to_segment(d, a, b))


def turn(a, b, c) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def to_segment(point, start, end) -> float:
    length = math.dist(start, end)
    if length == 0:
        return math.dist(point, start)
    ux, uy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    along = min(max((point[0] - start[0]) * ux + (point[1] - start[1]) * uy, 0), length)
    return math.dist(point, (start[0] + along * ux, start[1] + along * uy))
