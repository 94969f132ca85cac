"""The numbers of states."""

import hashlib

import numpy as np
import pytest
from view_models import bank_of, rooms_of

import eswm_gym  # noqa: F401
from eswm_gym.agents import MemoryBank
from eswm_gym.agents.states import state_of, view_number
from eswm_gym.rooms.grid import (
    cover_banks,
)


def test_numbers_of_views():
    view = np.arange(25) % 9
    expected = int.from_bytes(hashlib.blake2b(bytes(view.tolist()), digest_size=8).digest(), "big") >> 2
    shapes = [view, view.reshape(5, 5), view.astype(np.uint8).reshape(5, 5), view.astype(np.int8), list(view)]
    assert {view_number(shape) for shape in shapes} == {expected}
    assert state_of(view.astype(np.uint8).reshape(5, 5)) == expected
    assert view_number(np.asfortranarray(view.reshape(5, 5))) == expected
    assert view_number(view.reshape(5, 5).T) != expected
    rooms, _ = rooms_of(50)
    every = {view.tobytes(): view_number(view) for view in rooms.views[rooms.free]}
    assert len(every) > 5000 and len(set(every.values())) == len(every)
    assert all(0 <= number < 2**62 for number in every.values())


@pytest.mark.parametrize("cell", [-1, 256, 2**40])
def test_two_views_have_one_number_only_if_they_are_equal(cell):
    with pytest.raises(ValueError, match=f"cell {cell} of a view is outside the classes 0 ... 8"):
        view_number(np.where(np.arange(25) == 7, cell, 2))


def test_an_album_gives_back_what_was_put_into_it():
    rooms, rng = rooms_of(1)
    rows = cover_banks(rng, rooms).transitions()[0]
    bank, album = bank_of(rows)
    held = rows[:, 0] >= 0
    assert len(bank) == held.sum() < len(rows)
    np.testing.assert_array_equal(album.rows(bank), rows[held])
    assert [t[1] for t in bank] == rows[held][:, 25].tolist()
    source, _, end = next(iter(bank))
    np.testing.assert_array_equal(album.views([end, source, end]), [rows[0, 26:], rows[0, :25], rows[0, 26:]])
    assert album.number(rows[0, :25].astype(np.uint8).reshape(5, 5)) == source
    assert album.views([]).shape == (0, 25) and album.rows(MemoryBank()).shape == (0, 51)
    with pytest.raises(ValueError, match="state 123 is no view"):
        album.views([source, 123])
