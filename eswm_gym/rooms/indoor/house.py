"""Houses of rooms, doors and furniture, seen from above: drawn from a seed, or read from ProcTHOR's format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

MIN_SIDE = 2.4  # metres, the shortest side of a house
DOOR_WIDTH, DOOR_HEIGHT = 1.1, 2.1
WALLS = (
    "brick_wall", "cardboard", "cinder_blocks", "concrete", "concrete_tiles", "drywall", "marble", "stucco", "white",
    "wood", "wood_planks",
)  # fmt: skip
FLOORS = ("asphalt", "concrete", "floor_tiles_bw", "grass", "marble", "wood", "wood_planks")
CEILINGS = ("ceiling_tiles", "concrete", "concrete_tiles", "drywall", "white")
MESHES = {  # height in metres, and half of the width
    "barrel": (0.9, 0.32),
    "cone": (0.6, 0.2),
    "office_chair": (1.1, 0.35),
    "office_desk": (0.9, 0.5),
    "potion": (0.5, 0.15),
    "tree": (1.2, 0.63),
    "tree_pine": (1.6, 0.45),
}
Interval = tuple[float, float]
Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Surface:
    """A texture by its name, which of its variants, and the colour it is painted with."""

    name: str
    variant: int = 0
    colour: Colour = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Room:
    """A rectangle of floor.

    Attributes:
        x, y: from and to, in metres.
    """

    x: Interval
    y: Interval
    wall: Surface = Surface("drywall")
    floor: Surface = Surface("wood")
    ceiling: Surface = Surface("white")

    @property
    def area(self) -> float:
        return (self.x[1] - self.x[0]) * (self.y[1] - self.y[0])

    def contains(self, points: np.ndarray, margin: float = 0.0) -> np.ndarray:
        """(...) bool, whether points (..., 2) lie in the room, so far from its walls."""
        low = np.array([self.x[0], self.y[0]]) + margin
        high = np.array([self.x[1], self.y[1]]) - margin
        return np.all((points >= low) & (points <= high), -1)


@dataclass(frozen=True)
class Door:
    """An opening in the wall that two rooms share.

    Attributes:
        rooms: the two rooms by their numbers.
        across: 0 if one walks through it along x, 1 if along y.
        at: coordinate of the wall along that axis, in metres.
        span: from and to along the other axis, in metres.
        closed: nobody sees or walks through a closed door.
    """

    rooms: tuple[int, int]
    across: int
    at: float
    span: Interval
    closed: bool = False
    colour: Colour = (0.45, 0.3, 0.2)

    @property
    def middle(self) -> tuple[float, float]:
        """The point (x, y) in the middle of the opening."""
        along = (self.span[0] + self.span[1]) / 2
        return (self.at, along) if self.across == 0 else (along, self.at)


@dataclass(frozen=True)
class Furniture:
    """A box, or one of MiniWorld's meshes, that stands on the floor.

    Attributes:
        kind: "box", or the name of a mesh.
        size: along x, along y, and height, in metres.
        heading: of a mesh, in radians.
    """

    kind: str
    x: float
    y: float
    size: tuple[float, float, float]
    heading: float = 0.0
    colour: Colour = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Picture:
    """A portrait on a wall.

    Attributes:
        number: which of MiniWorld's.
        x, y, height: of its middle, in metres.
        heading: which way it looks, in radians.
        width: in metres.
    """

    number: int
    x: float
    y: float
    height: float
    heading: float
    width: float


@dataclass(frozen=True)
class House:
    """What stands where.

    Attributes:
        light: position of the lamp (x, y, height), in metres.
    """

    rooms: tuple[Room, ...]
    doors: tuple[Door, ...] = ()
    furniture: tuple[Furniture, ...] = ()
    pictures: tuple[Picture, ...] = ()
    light: tuple[float, float, float] = (0.0, 0.0, 2.5)

    def __post_init__(self) -> None:
        if not self.rooms:
            raise ValueError("a house has at least one room")
        for door in self.doors:
            if not all(0 <= room < len(self.rooms) for room in door.rooms):
                raise ValueError(f"{door} is between rooms that are not among 0 to {len(self.rooms) - 1}")

    def with_door(self, number: int, closed: bool) -> House:
        """The same house with a door opened or closed."""
        if not 0 <= number < len(self.doors):
            raise ValueError(f"no door {number}; the house has {len(self.doors)}")
        door = replace(self.doors[number], closed=closed)
        return replace(self, doors=(*self.doors[:number], door, *self.doors[number + 1 :]))

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> House:
        """The house that `dataclasses.asdict` made a dict of, as JSON keeps it.

        Raises:
            ValueError: if a part is missing or of another kind.
        """
        try:
            rooms = tuple(
                Room(
                    tuple(room["x"]),
                    tuple(room["y"]),
                    *(
                        Surface(room[s]["name"], room[s]["variant"], tuple(room[s]["colour"]))
                        for s in ("wall", "floor", "ceiling")
                    ),
                )
                for room in parts["rooms"]
            )
            doors = tuple(Door(**_tuples(door)) for door in parts["doors"])
            furniture = tuple(Furniture(**_tuples(piece)) for piece in parts["furniture"])
            return cls(rooms, doors, furniture, tuple(Picture(**p) for p in parts["pictures"]), tuple(parts["light"]))
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"not a house: {error!r}") from error


def _tuples(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The same with tuples for lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in parts.items()}


def draw_house(rng: np.random.Generator, n_rooms: int | None = None) -> House:
    """Draw a house of 1 to 4 rooms, or of `n_rooms`."""
    n_rooms = int(rng.integers(1, 5)) if n_rooms is None else n_rooms
    if n_rooms < 1:
        raise ValueError(f"n_rooms must be at least 1, got {n_rooms}")
    rectangles = _split(rng, n_rooms)
    rooms = tuple(
        Room(x, y, _surface(rng, WALLS, 0.35), _surface(rng, FLOORS, 0.6), _surface(rng, CEILINGS, 0.6))
        for x, y in rectangles
    )
    doors = _doors(rng, rectangles)
    furniture: list[Furniture] = []
    for number, room in enumerate(rooms):
        near = [door for door in doors if number in door.rooms]
        for _ in range(rng.integers(1, 2 + int(room.area / 4))):
            if (piece := _piece(rng, room, near, furniture)) is not None:
                furniture.append(piece)
    pictures = [
        picture
        for number, room in enumerate(rooms)
        for side in range(4)
        if rng.random() < 0.5 and (picture := _picture(rng, room, side, number, doors)) is not None
    ]
    low, high = np.min(rectangles, (0, 2)), np.max(rectangles, (0, 2))
    light = rng.uniform([*low, 2.0], [*high, 3.5])
    return House(rooms, doors, tuple(furniture), tuple(pictures), tuple(light.tolist()))


def _split(rng: np.random.Generator, n_rooms: int) -> list[tuple[Interval, Interval]]:
    """Rectangles that fill one, each cut off from the largest."""
    side = np.sqrt(n_rooms * rng.uniform(9, 16))
    aspect = rng.uniform(0.7, 1.4)
    width, depth = max(side * aspect, MIN_SIDE), max(side / aspect, MIN_SIDE)
    rectangles = [((0.0, float(width)), (0.0, float(depth)))]
    while len(rectangles) < n_rooms:
        rectangles.sort(key=lambda r: (r[0][1] - r[0][0]) * (r[1][1] - r[1][0]))
        widest = list(rectangles.pop())
        axis = int(np.argmax([high - low for low, high in widest]))
        low, high = widest[axis]
        cut = low + (high - low) * rng.uniform(0.4, 0.6)
        for part in ((low, cut), (cut, high)):
            rectangles.append(tuple(part if i == axis else widest[i] for i in range(2)))  # type: ignore[arg-type]
    return rectangles


def _doors(rng: np.random.Generator, rectangles: list[tuple[Interval, Interval]]) -> tuple[Door, ...]:
    """A door in enough shared walls that all rooms hang together, and in some of the others."""
    shared = []
    for i, one in enumerate(rectangles):
        for j, other in enumerate(rectangles):
            for across in (0, 1):
                along = 1 - across
                span = max(one[along][0], other[along][0]), min(one[along][1], other[along][1])
                if one[across][1] == other[across][0] and span[1] - span[0] > DOOR_WIDTH + 0.3:
                    shared.append((i, j, across, one[across][1], span))
    group = list(range(len(rectangles)))
    doors = []
    for k in rng.permutation(len(shared)).tolist():
        i, j, across, at, (low, high) = shared[k]
        if group[i] == group[j] and rng.random() > 0.3:
            continue
        group = [group[j] if g == group[i] else g for g in group]
        start = rng.uniform(low + 0.1, high - 0.1 - DOOR_WIDTH)
        doors.append(Door((i, j), across, at, (start, start + DOOR_WIDTH), colour=_colour(rng)))
    return tuple(doors)


def _piece(rng: np.random.Generator, room: Room, doors: list[Door], others: list[Furniture]) -> Furniture | None:
    """A piece of furniture, most of them at a wall, that leaves room to pass; None if there was no place for it."""
    if rng.random() < 0.5:
        kind = list(MESHES)[rng.integers(len(MESHES))]
        height, half = MESHES[kind]
        size = (2 * half, 2 * half, height)
    else:
        kind = "box"
        size = (*rng.uniform(0.3, 1.2, 2).tolist(), float(rng.uniform(0.3, 1.9)))
    colour, heading = _colour(rng), float(rng.uniform(-np.pi, np.pi))
    low, high = np.array([room.x[0], room.y[0]]), np.array([room.x[1], room.y[1]])
    half_size = np.array(size[:2]) / 2
    for _ in range(10):
        place = rng.uniform(low + half_size + 0.02, high - half_size - 0.02)
        if rng.random() < 0.8:
            axis, end = int(rng.integers(2)), int(rng.integers(2))
            place[axis] = (low + half_size + 0.02)[axis] if end == 0 else (high - half_size - 0.02)[axis]
        clear = all(
            (np.abs(place - [o.x, o.y]) > half_size + np.array(o.size[:2]) / 2 + 0.1).any() for o in others
        ) and all(_distance(place, half_size, np.array(door.middle)) > 0.9 for door in doors)
        if clear:
            return Furniture(kind, float(place[0]), float(place[1]), size, heading, colour)
    return None


def _picture(rng: np.random.Generator, room: Room, side: int, number: int, doors: tuple[Door, ...]) -> Picture | None:
    """A picture on a side of a room; None where there is no place for it beside a door."""
    across, end = divmod(side, 2)
    at, (low, high) = (room.x, room.y)[across][end], (room.x, room.y)[1 - across]
    width = float(rng.uniform(0.5, 1.0))
    middle = float(rng.uniform(low + width / 2 + 0.1, high - width / 2 - 0.1))
    for door in doors:
        beside = number in door.rooms and door.across == across and door.at == at
        if beside and door.span[0] - width / 2 < middle < door.span[1] + width / 2:
            return None
    x, y = (at, middle) if across == 0 else (middle, at)
    heading = {(0, 0): np.pi / 2, (0, 1): -np.pi / 2, (1, 0): 0.0, (1, 1): np.pi}[across, end]
    return Picture(int(rng.integers(1000)), x, y, float(rng.uniform(1.2, 1.7)), float(heading), width)


def _surface(rng: np.random.Generator, names: tuple[str, ...], darkest: float) -> Surface:
    colour = tuple(rng.uniform(darkest, 1, 3).tolist()) if rng.random() < 0.7 else (1.0, 1.0, 1.0)
    return Surface(names[rng.integers(len(names))], int(rng.integers(10)), colour)  # type: ignore[arg-type]


def _colour(rng: np.random.Generator) -> Colour:
    return tuple(rng.uniform(0.05, 1, 3).tolist())  # type: ignore[return-value]


def _distance(place: np.ndarray, half_size: np.ndarray, point: np.ndarray) -> float:
    return float(np.linalg.norm((np.abs(point - place) - half_size).clip(0)))


def from_procthor(house: Mapping[str, Any]) -> House:
    """Read a house in ProcTHOR's JSON format.

    Rooms become the rectangles around their floors, doors openings as wide as their holes, and what stands on the floor
    boxes with a colour for each asset. ProcTHOR's x and z are our x and y.

    Raises:
        ValueError: where a part that is needed is missing.
    """
    try:
        polygons = [[(p["x"], p["z"]) for p in room["floorPolygon"]] for room in house["rooms"]]
        names = [room["id"] for room in house["rooms"]]
        walls = {wall["id"]: [(p["x"], p["z"]) for p in wall["polygon"]] for wall in house["walls"]}
        doors = [_procthor_door(door, names, walls) for door in house.get("doors", ())]
        pieces = [_procthor_piece(thing) for thing in house.get("objects", ())]
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"not a house in ProcTHOR's format: {error!r} is missing or of another kind") from error
    if not polygons:
        raise ValueError("a house in ProcTHOR's format has at least one room, got none")
    rng = np.random.default_rng(len(names))
    rooms = []
    for polygon in polygons:
        (x0, y0), (x1, y1) = np.min(polygon, 0).tolist(), np.max(polygon, 0).tolist()
        rooms.append(Room((x0, x1), (y0, y1), _surface(rng, WALLS, 0.35), _surface(rng, FLOORS, 0.6)))
    return House(
        tuple(rooms),
        tuple(door for door in doors if door),
        tuple(pieces),
        light=(*np.mean(polygons[0], 0).tolist(), 2.5),
    )


def _procthor_door(
    door: Mapping[str, Any], names: list[str], walls: Mapping[str, list[tuple[float, float]]]
) -> Door | None:
    """The opening of a door between two rooms; None for one that leads outside."""
    if door["room0"] not in names or door["room1"] not in names or door["room0"] == door["room1"]:
        return None
    corners = np.array(walls[door["wall0"]])
    low, high = corners.min(0), corners.max(0)
    along = int(np.argmax(high - low))
    hole = door.get("holePolygon") or [door["boundingBox"]["min"], door["boundingBox"]["max"]]
    start, end = sorted(float(point["x"]) for point in hole[:2])
    if corners[0, along] > corners[1, along]:  # holes are measured from where the wall begins
        length = float((high - low)[along])
        start, end = length - end, length - start
    return Door(
        (names.index(door["room0"]), names.index(door["room1"])),
        1 - along,
        float(low[1 - along]),
        (float(low[along]) + start, float(low[along]) + end),
    )


def _procthor_piece(thing: Mapping[str, Any]) -> Furniture:
    """A box as large as the thing where the house says so, else of half a metre."""
    size = thing.get("size") or thing.get("boundingBox", {}).get("size") or {"x": 0.5, "y": 0.5, "z": 0.5}
    colours = np.random.default_rng(list(str(thing["assetId"]).encode()))
    quarter = round(float(thing.get("rotation", {}).get("y", 0)) / 90) % 2
    width, depth = (size["x"], size["z"]) if quarter == 0 else (size["z"], size["x"])
    place = thing["position"]
    return Furniture(
        "box", place["x"], place["z"], (float(width), float(depth), float(size["y"])), colour=_colour(colours)
    )
