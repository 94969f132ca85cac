"""Random rooms in batches (paper: "Building Random Environments")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eswm_gym.checks import require_kind
from eswm_gym.rooms.lattice.geometry import HexLattice, Lattice, hex_lattice

MAX_DRAWS = 100  # times that a wall is drawn again because it does not fit; the last draw stays, although it is short


@dataclass(frozen=True)
class RoomConfig:
    """A family of rooms.

    Attributes:
        radius: radius of the lattice.
        states: the vocabulary; each room gives every location a different one of them, duplicates aside.
        wall_length: least and greatest number of wall locations; (0, 0) is an open arena. None: from `radius` to
            `2 * radius - 1`, so that a straight wall seldom splits the room.
        no_wall: probability of a room without a wall.
        straightness: probability that the wall goes on straight at each step, else it turns by 60 degrees.
        hidden: greatest share of locations in the unobserved region; its size is drawn uniformly.
        duplicates: least and greatest number of pairs of locations, observed and free, that share a state.
        observed: locations of the observed region, which then has a random shape; None: all that is not hidden.
    """

    radius: int = 3
    states: tuple[int, ...] = tuple(range(37))
    wall_length: tuple[int, int] | None = None
    no_wall: float = 0.1
    straightness: float = 0.8
    hidden: float = 0.4
    duplicates: tuple[int, int] = (0, 0)
    observed: int | None = None

    def __post_init__(self) -> None:
        n = self.n_locations
        if len(set(self.states)) != len(self.states) or min(self.states, default=-1) < 0:
            raise ValueError("states must be different and not negative")
        if len(self.states) < n:
            raise ValueError(f"{len(self.states)} states cannot fill the {n} locations of radius {self.radius}")
        if not (isinstance(self.wall_lengths, tuple | list) and len(self.wall_lengths) == 2):
            raise ValueError(f"wall_length must be a pair (least, greatest), got {self.wall_length!r}")
        low, high = self.wall_lengths
        require_kind(int, wall_length=low)
        require_kind(int, wall_length=high)
        if not 0 <= low <= high < n:
            raise ValueError(f"wall_length must be 0 <= least <= greatest < {n} locations, got {self.wall_length}")
        low, high = self.duplicates
        if not 0 <= low <= high <= n // 2:
            raise ValueError(
                f"duplicates must be 0 <= least <= greatest <= {n // 2} pairs of {n} locations, got {self.duplicates}"
            )
        if self.observed is not None and not 0 < self.observed <= n:
            raise ValueError(f"observed must be 1 to {n} locations, got {self.observed}")
        for name in ("no_wall", "straightness", "hidden"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")

    @property
    def lattice(self) -> HexLattice:
        return hex_lattice(self.radius)

    @property
    def n_locations(self) -> int:
        return self.lattice.n_locations

    @property
    def most_observed(self) -> int:
        """Greatest number of observed locations."""
        return self.observed or self.n_locations

    @property
    def most_walls(self) -> int:
        """Greatest number of wall locations."""
        return self.wall_lengths[1]

    @property
    def wall_lengths(self) -> tuple[int, int]:
        return self.wall_length or (self.radius, 2 * self.radius - 1)

    def generate(self, rng: np.random.Generator, n: int) -> RoomBatch:
        """Draw n rooms: see `generate_rooms`."""
        return generate_rooms(rng, n, self)

    def name(self, rng: np.random.Generator, rooms: RoomBatch) -> RoomBatch:
        """The same rooms: their states do not depend on what was observed."""
        return rooms

    @staticmethod
    def random_wall(radius: int = 3, **overrides) -> RoomConfig:
        """Random Wall: unique integer states, one mostly straight wall, a hidden region."""
        n = hex_lattice(radius).n_locations
        return RoomConfig(**{"radius": radius, "states": tuple(range(n)), **overrides})

    @staticmethod
    def open_arena(radius: int = 2, **overrides) -> RoomConfig:
        """Open Arena: 64 states (6 bits), no wall, everything observed."""
        arena = {"radius": radius, "states": tuple(range(64)), "wall_length": (0, 0), "hidden": 0.0}
        return RoomConfig(**{**arena, **overrides})


@dataclass(frozen=True, eq=False)
class RoomBatch:
    """B rooms on one lattice.

    Attributes:
        lattice: the lattice.
        states: (B, L) int, the state at each location.
        walls: (B, L) bool.
        observed: (B, L) bool, False in the unobserved region.
        terminal: (B, L) bool, locations where an episode ends: moves lead there and none away. None: there are none.
        numbers: (B, A) int, the number of each action in transitions. None: that of the lattice.
    """

    lattice: Lattice
    states: np.ndarray
    walls: np.ndarray
    observed: np.ndarray
    terminal: np.ndarray | None = None
    numbers: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.states)

    @property
    def passable(self) -> np.ndarray:
        """(B, L) bool, the locations from which an agent can move on."""
        return ~self.walls if self.terminal is None else ~self.walls & ~self.terminal

    def numbered(self, action: np.ndarray) -> np.ndarray:
        """(B, N) int, the numbers in transitions of the lattice's actions (B, N); -1 stays."""
        if self.numbers is None:
            return action
        return np.where(action < 0, action, np.take_along_axis(self.numbers, np.maximum(action, 0), 1))

    def targets(self) -> np.ndarray:
        """(B, L, A) int, the location where each move ends; a move into a wall or off the lattice stays."""
        onto_wall = self.walls[:, self.lattice.next_location]
        here = np.arange(self.lattice.n_locations)[:, None]
        return np.where(onto_wall, here, self.lattice.next_location)

    def duplicated(self) -> np.ndarray:
        """(B, L) bool, the locations that share their state with another one."""
        return (self.states[:, None] == self.states[..., None]).sum(2) > 1

    def distances_from(self, locations: np.ndarray) -> np.ndarray:
        """(B, L) int, steps from one free location (B,) of each room to all; -1 for walls and what it cannot reach."""
        return self._distances(locations, self.lattice.distances == 1)

    def distances_to(self, locations: np.ndarray) -> np.ndarray:
        """(B, L) int, steps from all locations to one free one (B,) of each room; -1 for walls and where there is no
        way."""
        return self._distances(locations, (self.lattice.distances == 1).T)

    def _distances(self, locations: np.ndarray, beside: np.ndarray) -> np.ndarray:
        """(B, L) int, steps from one free location (B,) of each room, where (L, L) `beside` says which steps there are;
        -1 for walls and what is not reached."""
        beside = beside.astype(np.float32)
        left = (~self.walls).astype(np.float32)  # 1 for the free locations not reached yet
        rim = np.zeros_like(left)
        rim[np.arange(len(self)), locations] = 1
        left -= rim
        waited = np.zeros_like(left)  # steps that each location was left
        while rim.any():
            waited += left
            rim = np.minimum(rim @ beside, 1) * left
            left -= rim
        return np.where(self.walls | (left > 0), -1, waited.astype(np.int64))

    def is_true(self, transitions: np.ndarray) -> np.ndarray:
        """Whether transitions happen in their rooms, from any location that shows their source state.

        Args:
            transitions: (B, N, 3) int of (s_s, a, s_e); anything out of range, such as -1, is not true.

        Returns:
            (B, N) bool.
        """
        source, number, end = np.moveaxis(transitions, -1, 0)
        rows = np.arange(len(self))[:, None]
        numbers = np.arange(self.lattice.n_actions)[None] if self.numbers is None else self.numbers
        is_action = number[..., None] == numbers[:, None]  # (B, N, A)
        ends = self.states[rows[..., None], self.targets()].swapaxes(1, 2)  # (B, A, L) states
        starts = (self.states[:, None] == source[..., None]) & self.passable[:, None]
        return is_action.any(2) & (starts & (ends[rows, is_action.argmax(2)] == end[..., None])).any(2)


def random_walls(rng: np.random.Generator, n: int, config: RoomConfig) -> np.ndarray:
    """Draw (n, L) bool walls: each a contiguous, mostly straight run of a random length."""
    low, high = config.wall_lengths
    lengths = np.where(rng.random(n) < config.no_wall, 0, rng.integers(low, high + 1, n))
    walls = np.zeros((n, config.n_locations), bool)
    short = np.nonzero(lengths)[0]
    for _ in range(MAX_DRAWS):
        walls[short] = _grow_walls(rng, lengths[short], config)
        short = short[walls[short].sum(1) < lengths[short]]
        if not len(short):
            break
    return walls


def _grow_walls(rng: np.random.Generator, lengths: np.ndarray, config: RoomConfig) -> np.ndarray:
    """Grow (n, L) bool walls from both ends; a wall that can grow at neither end stays short.

    A wall that turns takes the action before or after that of its direction.
    """
    lattice = config.lattice
    rooms = np.arange(len(lengths))
    walls = np.zeros((len(lengths), lattice.n_locations), bool)
    seed = rng.integers(lattice.n_locations, size=len(lengths))
    direction = rng.integers(lattice.n_actions, size=len(lengths))
    walls[rooms, seed] = True
    left = lengths - 1
    for heading in (direction, lattice.reverse[direction]):  # from the seed as far as it goes, then the other way
        growing, tip = left > 0, seed
        while growing.any():
            straight = rng.random(len(lengths)) < config.straightness
            turn = np.where(straight, 0, rng.choice((-1, 1), len(lengths)))
            ahead = lattice.neighbors[tip, (heading + turn) % lattice.n_actions]
            growing &= (ahead >= 0) & ~walls[rooms, ahead] & (left > 0)
            walls[rooms[growing], ahead[growing]] = True
            tip = np.where(growing, ahead, tip)
            left = left - growing
    return walls


def random_regions(
    rng: np.random.Generator, sizes: np.ndarray, lattice: Lattice, ragged: float = 2.0, around: np.ndarray | None = None
) -> np.ndarray:
    """Draw random connected regions, grown around some location each.

    Args:
        rng: source of randomness.
        sizes: (n,) int, locations of each region.
        lattice: the lattice.
        ragged: 0 makes round regions; the larger it is, the more ragged is their rim. As large as the lattice, it
            makes regions of any shape.
        around: (n,) int, where each begins; random locations by default.

    Returns:
        (n, L) bool.
    """
    n = len(sizes)
    region = np.zeros((n, lattice.n_locations), bool)
    key = np.full((n, lattice.n_locations + 1), np.inf, np.float32)  # last column: off the lattice
    rooms = np.arange(n)
    seed = rng.integers(lattice.n_locations, size=n) if around is None else around
    weight = lattice.distances[seed] + ragged * rng.random((n, lattice.n_locations), dtype=np.float32)
    key[rooms, seed] = 0
    for step in range(sizes.max(initial=0)):
        nearest = key[:, :-1].argmin(1)
        grows = step < sizes
        region[rooms[grows], nearest[grows]] = True
        around = lattice.neighbors[nearest]
        inside = region[rooms[:, None], around] | (around < 0)
        key[rooms[:, None], around] = np.where(inside, np.inf, weight[rooms[:, None], around])
        key[rooms, nearest] = np.inf
    return region


def generate_rooms(rng: np.random.Generator, n: int, config: RoomConfig) -> RoomBatch:
    """Draw n rooms: a random assignment of states to locations, a wall, an unobserved region, duplicate states.

    Args:
        rng: the only source of randomness.
        n: number of rooms.
        config: the family.
    """
    lattice = config.lattice
    order = rng.random((n, len(config.states)), dtype=np.float32).argsort(1)[:, : lattice.n_locations]
    sizes = rng.integers(int(config.hidden * lattice.n_locations) + 1, size=n)
    rooms = RoomBatch(
        lattice=lattice,
        states=np.asarray(config.states)[order],
        walls=random_walls(rng, n, config),
        observed=(
            ~random_regions(rng, sizes, lattice)
            if config.observed is None
            else random_regions(rng, np.full(n, config.observed), lattice, ragged=2 * config.radius)
        ),
    )
    if config.duplicates[1]:
        _duplicate(rng, rooms, config.duplicates)
    return rooms


def _duplicate(rng: np.random.Generator, rooms: RoomBatch, bounds: tuple[int, int]) -> None:
    """Let pairs of observed free locations share a state; a room with fewer such pairs gets fewer."""
    low, high = bounds
    rows = np.arange(len(rooms))[:, None]
    free = rooms.observed & ~rooms.walls
    pairs = np.minimum(rng.integers(low, high + 1, len(rooms)), free.sum(1) // 2)
    order = np.where(free, rng.random(free.shape, dtype=np.float32), 2).argsort(1)
    copies, originals = order[:, : 2 * high : 2], order[:, 1 : 2 * high : 2]
    drawn = np.arange(high) < pairs[:, None]
    rooms.states[rows, copies] = rooms.states[rows, np.where(drawn, originals, copies)]
