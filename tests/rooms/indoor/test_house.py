"""Houses: what a drawn one must be, what JSON keeps, and ProcTHOR's format by hand."""

import copy
import json
import math
from dataclasses import asdict, replace
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eswm_gym.rooms.indoor import Door, Furniture, House, Picture, Room, Space, Surface, draw_house, from_procthor

seeds, sizes = st.integers(0, 2**32 - 1), st.integers(1, 6)
HOUSE = House(
    rooms=(Room((0.0, 4.0), (0.0, 3.0), wall=Surface("wood", 2, (0.5, 0.6, 0.7))), Room((4.0, 7.0), (0.0, 3.0))),
    doors=(Door((0, 1), 0, 4.0, (1.0, 2.1)), Door((0, 1), 0, 4.0, (2.2, 2.9), closed=True)),
    furniture=(Furniture("box", 1.0, 1.0, (0.5, 0.6, 0.7), colour=(1.0, 0.0, 0.0)), Furniture("tree", 6, 2, (1, 1, 1))),
    pictures=(Picture(3, 0.0, 1.5, 1.4, math.pi / 2, 0.6),),
)


def drawn(seed, n_rooms=None) -> House:
    return draw_house(np.random.default_rng(seed), n_rooms)


def box(piece: Furniture) -> tuple:
    """From and to along x, then along y."""
    (width, depth, _), x, y = piece.size, piece.x, piece.y
    return x - width / 2, x + width / 2, y - depth / 2, y + depth / 2


def apart(one, other) -> bool:
    """Whether two rectangles have no area in common, by more than rounding."""
    return any(
        one[low + 1] <= other[low] + 1e-9 or other[low + 1] <= one[low] + 1e-9 for low in (0, 2)
    )  # along x, along y


def test_houses_are_drawn_from_a_seed():
    houses = [drawn(seed) for seed in range(40)]
    assert houses == [drawn(seed) for seed in range(40)]
    assert len(set(map(repr, houses))) == 40
    assert {len(house.rooms) for house in houses} == {1, 2, 3, 4}
    assert any(house.furniture for house in houses) and any(house.pictures for house in houses)


@given(seeds, sizes)
def test_rooms_fill_a_rectangle(seed, n_rooms):
    rooms = [(*room.x, *room.y) for room in drawn(seed, n_rooms).rooms]
    assert len(rooms) == n_rooms
    assert all(apart(one, other) for one, other in combinations(rooms, 2))
    x0, x1, y0, y1 = (f(side) for f, side in zip((min, max) * 2, zip(*rooms, strict=True), strict=True))
    area = sum((b - a) * (d - c) for a, b, c, d in rooms)
    assert area == pytest.approx((x1 - x0) * (y1 - y0))
    assert all(min(b - a, d - c) > 1.4 for a, b, c, d in rooms)
    assert 6 * n_rooms < area < 20 * n_rooms


@given(seeds, sizes)
def test_all_rooms_hang_together_through_doors(seed, n_rooms):
    house = drawn(seed, n_rooms)
    plan = nx.Graph([door.rooms for door in house.doors])
    plan.add_nodes_from(range(n_rooms))
    assert nx.is_connected(plan)
    for door in house.doors:
        one, other = (house.rooms[number] for number in door.rooms)
        low, high = door.span
        assert high - low == pytest.approx(1.1) and not door.closed
        if door.across == 0:
            assert door.at == one.x[1] == other.x[0]
            assert max(one.y[0], other.y[0]) < low and high < min(one.y[1], other.y[1])
        else:
            assert door.at == one.y[1] == other.y[0]
            assert max(one.x[0], other.x[0]) < low and high < min(one.x[1], other.x[1])


@given(seeds, sizes)
def test_furniture_stands_free(seed, n_rooms):
    house = drawn(seed, n_rooms)
    boxes = [box(piece) for piece in house.furniture]
    assert all(apart(one, other) for one, other in combinations(boxes, 2))
    for x0, x1, y0, y1 in boxes:
        assert any(r.x[0] < x0 and x1 < r.x[1] and r.y[0] < y0 and y1 < r.y[1] for r in house.rooms)
    for door in house.doors:  # half a metre on both sides of a door is empty
        across, along = (door.at - 0.5, door.at + 0.5), door.span
        empty = (*across, *along) if door.across == 0 else (*along, *across)
        assert all(apart(empty, piece) for piece in boxes)


@given(seeds, sizes)
def test_one_can_go_through_every_door(seed, n_rooms):
    house = drawn(seed, n_rooms)
    space = Space(house)
    for door in house.doors:
        ends = np.array([[door.at - 0.6, sum(door.span) / 2], [door.at + 0.6, sum(door.span) / 2]])
        start, end = ends if door.across == 0 else ends[:, ::-1]
        assert space.passable(start, end)


@given(seeds, sizes)
def test_pictures_hang_on_walls_beside_doors(seed, n_rooms):
    house = drawn(seed, n_rooms)
    for picture in house.pictures:
        ahead = math.sin(picture.heading), math.cos(picture.heading)
        front = np.array([picture.x, picture.y]) + 0.1 * np.array(ahead)
        (room,) = (number for number, room in enumerate(house.rooms) if room.contains(front, 0.05))
        across = 0 if abs(ahead[0]) > 0.5 else 1
        at, along = (picture.x, picture.y) if across == 0 else (picture.y, picture.x)
        sides, ends = (house.rooms[room].x, house.rooms[room].y)[:: 1 if across == 0 else -1]
        assert at in sides and ends[0] < along - picture.width / 2 and along + picture.width / 2 < ends[1]
        for door in house.doors:
            if room in door.rooms and door.across == across and door.at == at:
                low, high = door.span
                assert along + picture.width / 2 <= low + 1e-9 or high <= along - picture.width / 2 + 1e-9


def test_room():
    room = Room((1.0, 4.0), (2.0, 4.0))
    assert room.area == 6
    points = np.array([[[1, 2], [4, 4]], [[0.9, 3], [2, 4.1]]])
    assert room.contains(points).tolist() == [[True, True], [False, False]]
    assert room.contains(np.array([[1.5, 2.5], [1.4, 3]]), margin=0.5).tolist() == [True, False]


@pytest.mark.parametrize("n_rooms", [0, -1])
def test_a_house_needs_a_room(n_rooms):
    with pytest.raises(ValueError, match=f"at least 1, got {n_rooms}"):
        drawn(0, n_rooms)
    with pytest.raises(ValueError, match="at least one room"):
        House(())


@pytest.mark.parametrize("rooms", [(0, 2), (-1, 0)])
def test_doors_need_rooms(rooms):
    with pytest.raises(ValueError, match="not among 0 to 1"):
        replace(HOUSE, doors=(Door(rooms, 0, 4.0, (1.0, 2.1)),))


def test_doors_open_and_close():
    closed = HOUSE.with_door(0, True)
    assert [door.closed for door in closed.doors] == [True, True]
    assert [door.closed for door in HOUSE.with_door(1, False).doors] == [False, False]
    assert [door.closed for door in HOUSE.doors] == [False, True], "the house itself stays as it is"
    assert closed.with_door(0, False) == HOUSE
    for number in (-1, 2):
        with pytest.raises(ValueError, match=f"no door {number}; the house has 2"):
            HOUSE.with_door(number, True)


# JSON


@settings(max_examples=30)
@given(seeds)
def test_json_keeps_a_house(seed):
    house = drawn(seed)
    assert House.from_dict(json.loads(json.dumps(asdict(house)))) == house


def test_json_keeps_every_part():
    again = House.from_dict(json.loads(json.dumps(asdict(HOUSE))))
    assert again == HOUSE and hash(again) == hash(HOUSE)  # lists became tuples
    assert House.from_dict(asdict(HOUSE)) == HOUSE


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts.pop("rooms"),
        lambda parts: parts.pop("light"),
        lambda parts: parts["rooms"][0].pop("x"),
        lambda parts: parts["rooms"][0].update(wall="wood"),
        lambda parts: parts["doors"][0].update(wide=True),
        lambda parts: parts["doors"][0].update(rooms=[0, 5]),
        lambda parts: parts.update(doors=["front door"]),
        lambda parts: parts.update(rooms=[]),
        lambda parts: parts.update(furniture=3),
    ],
)
def test_what_is_no_house_is_refused(change):
    parts = json.loads(json.dumps(asdict(HOUSE)))
    change(parts)
    with pytest.raises(ValueError, match="house|rooms"):
        House.from_dict(parts)


# ProcTHOR


def polygon(*corners):
    return [{"x": x, "y": 0, "z": z} for x, z in corners]


def wall(name, start, end):
    """From the start to the end along the floor, then back along the ceiling."""
    up = [{"x": x, "y": 3, "z": z} for x, z in (end, start)]
    return {"id": name, "polygon": polygon(start, end) + up}


def hole(start, end):
    return [{"x": start, "y": 0, "z": 0}, {"x": end, "y": 2.1, "z": 0}]


# Three rooms: two beside each other along x, and one behind the first along z.
PROCTHOR = {
    "rooms": [
        {"id": "room|2", "floorPolygon": polygon((0, 0), (0, 4), (5, 4), (5, 0))},
        {"id": "room|3", "floorPolygon": polygon((5, 0), (5, 4), (8, 4), (8, 0))},
        {"id": "room|4", "floorPolygon": polygon((0, 4), (0, 7), (5, 7), (5, 4))},
    ],
    "walls": [
        wall("wall|2|east", (5, 0), (5, 4)),
        wall("wall|3|west", (5, 4), (5, 0)),
        wall("wall|2|north", (0, 4), (5, 4)),
        wall("wall|2|west", (0, 0), (0, 4)),
    ],
    "doors": [
        {"room0": "room|2", "room1": "room|3", "wall0": "wall|2|east", "holePolygon": hole(0.7, 1.7)},
        {"room0": "room|2", "room1": "room|4", "wall0": "wall|2|north", "holePolygon": hole(2.0, 3.0)},
        {"room0": "room|2", "room1": "room|2", "wall0": "wall|2|west", "holePolygon": hole(1.0, 2.0)},
        {"room0": "room|2", "room1": "exterior", "wall0": "wall|2|west", "holePolygon": hole(1.0, 2.0)},
    ],
    "objects": [
        {"assetId": "Sofa_1", "position": {"x": 1.0, "y": 0.4, "z": 3.0}, "rotation": {"x": 0, "y": 90, "z": 0},
         "size": {"x": 1.6, "y": 0.8, "z": 0.7}},
        {"assetId": "Sofa_1", "position": {"x": 6.0, "y": 0.4, "z": 0.6}, "rotation": {"x": 0, "y": 180, "z": 0},
         "boundingBox": {"size": {"x": 1.6, "y": 0.8, "z": 0.7}}},
        {"assetId": "Lamp_7", "position": {"x": 4.0, "y": 0.5, "z": 6.5}},
    ],
}  # fmt: skip


def test_procthor():
    house = from_procthor(PROCTHOR)
    assert [(room.x, room.y) for room in house.rooms] == [((0, 5), (0, 4)), ((5, 8), (0, 4)), ((0, 5), (4, 7))]
    doors = [(door.rooms, door.across, door.at, door.span, door.closed) for door in house.doors]
    assert doors == [((0, 1), 0, 5, (0.7, 1.7), False), ((0, 2), 1, 4, (2, 3), False)]  # none leads outside
    places = [(piece.kind, piece.x, piece.y, piece.size) for piece in house.furniture]
    assert places == [
        ("box", 1, 3, (0.7, 1.6, 0.8)),  # turned by a quarter
        ("box", 6, 0.6, (1.6, 0.7, 0.8)),
        ("box", 4, 6.5, (0.5, 0.5, 0.5)),  # of unknown size
    ]
    sofa, other_sofa, lamp = (piece.colour for piece in house.furniture)
    assert sofa == other_sofa != lamp
    assert from_procthor(json.loads(json.dumps(PROCTHOR))) == house
    space = Space(house)
    assert space.passable([4.5, 1.2], [5.5, 1.2]) and space.passable([2.5, 3.5], [2.5, 4.5])
    assert not space.passable([4.5, 3.2], [5.5, 3.2])


def test_holes_are_measured_from_where_the_wall_begins():
    house = copy.deepcopy(PROCTHOR)
    house["doors"] = [{"room0": "room|3", "room1": "room|2", "wall0": "wall|3|west", "holePolygon": hole(0.7, 1.7)}]
    (door,) = from_procthor(house).doors
    assert door.rooms == (1, 0) and door.span == pytest.approx((2.3, 3.3))


def test_older_houses_have_boxes_for_holes():
    house = copy.deepcopy(PROCTHOR)
    low, high = house["doors"][0].pop("holePolygon")
    house["doors"][0]["boundingBox"] = {"min": low, "max": high}
    assert from_procthor(house) == from_procthor(PROCTHOR)


def test_an_empty_house():
    house = from_procthor({"rooms": PROCTHOR["rooms"][:1], "walls": []})
    assert len(house.rooms) == 1 and not house.doors and not house.furniture


@pytest.mark.parametrize(
    "change",
    [
        lambda house: house.pop("rooms"),
        lambda house: house.update(rooms=[]),
        lambda house: house.pop("walls"),
        lambda house: house["rooms"][1].pop("floorPolygon"),
        lambda house: house["rooms"][1].update(floorPolygon=[]),
        lambda house: house["doors"][0].update(wall0="wall|9"),
        lambda house: house["doors"][0].pop("holePolygon"),
        lambda house: house["doors"][0].pop("room1"),
        lambda house: house["objects"][0].pop("position"),
        lambda house: house["objects"][0].pop("assetId"),
        lambda house: house["objects"][0].update(rotation=None),
        lambda house: house.update(objects=3),
    ],
)
def test_what_is_not_procthors_is_refused(change):
    house = copy.deepcopy(PROCTHOR)
    change(house)
    with pytest.raises(ValueError):
        from_procthor(house)
