"""Moves that add the same to the coordinates have one number, whatever the lattice."""

import numpy as np
import pytest

from eswm_gym.rooms import (
    CODES,
    N_NAMES,
    diagonal_lattice,
    hex_lattice,
    move_numbers,
    pose_lattice,
    square_lattice,
    torus_lattice,
)

# Axial (q, r) of hexagons: east adds to q, south-east to r. (x, y) of squares: right adds to x, down to y.
ADDED = {
    "E": (1, 0), "NE": (1, -1), "NW": (0, -1), "W": (-1, 0), "SW": (-1, 1), "SE": (0, 1),
    "right": (1, 0), "up-right": (1, -1), "up": (0, -1), "left": (-1, 0), "down-left": (-1, 1), "down": (0, 1),
    "down-right": (1, 1), "up-left": (-1, -1),
}  # fmt: skip


def test_names_have_one_number_if_and_only_if_they_add_the_same():
    for one, mine in ADDED.items():
        for other, theirs in ADDED.items():
            a, b = move_numbers([one, other])
            assert (a == b) == (mine == theirs), (one, other)


@pytest.mark.parametrize(
    "lattice", [hex_lattice(2), square_lattice(3, 4), diagonal_lattice(3, 3)], ids=("hexagon", "square", "diagonal")
)
def test_lattices_move_as_their_names_say(lattice):
    """A move adds what its name says to the coordinates, which are read from where locations are drawn."""
    y = lattice.xy[:, 1] / (np.sqrt(3) / 2 if lattice.n_actions == 6 else 1)
    x = lattice.xy[:, 0] - (y / 2 if lattice.n_actions == 6 else 0)  # a hexagon's rows are shifted by half a location
    for here, action in np.argwhere(lattice.on_lattice):
        there = lattice.neighbors[here, action]
        assert (x[there] - x[here], y[there] - y[here]) == pytest.approx(ADDED[lattice.actions[action]])


def test_numbers_of_each_lattice():
    assert move_numbers(hex_lattice(1).actions).tolist() == [0, 1, 2, 3, 4, 5]
    for lattice in (square_lattice(2, 2), torus_lattice(3, 3)):
        assert set(move_numbers(lattice.actions)) <= set(range(6))  # a model of hexagons knows them
    assert move_numbers(["NW", "up"]).tolist() == [2, 2]
    assert len(set(move_numbers(diagonal_lattice(2, 2).actions))) == 8
    assert not set(move_numbers(pose_lattice(2, 2).actions)) & set(move_numbers([*ADDED]))


def test_codes_are_no_names():
    named = move_numbers([*ADDED, "turn left", "turn right", "forward"])
    assert sorted({*named, *CODES}) == list(range(N_NAMES))
    assert not set(named) & set(CODES)
    assert len(CODES) >= 8  # one for each action of a lattice with diagonals


def test_an_unknown_move_is_named():
    with pytest.raises(ValueError, match="no move is called 'north'; there are right, .*NW"):
        move_numbers(["left", "north"])
