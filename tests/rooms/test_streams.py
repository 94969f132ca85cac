"""Drawing from many generators at once is drawing from each alone."""

import numpy as np
import pytest

from eswm_gym.rooms import Room, RoomConfig, generate_rooms, spanning_banks
from eswm_gym.rooms.streams import Streams

N = 50


def generators():
    return [np.random.default_rng(seed) for seed in range(N)]


def streams_of(rngs, n_words=64):
    return Streams(rngs, np.zeros(N), np.zeros(N, bool), n_words)


def check_where(rngs, streams, alone):
    """The generators are where those that drew alone are."""
    streams.close()
    for rng, waits, half, other in zip(rngs, streams.waits, streams.half, alone, strict=True):
        state = other.bit_generator.state
        assert rng.bit_generator.state["state"] == state["state"]
        assert waits == state["has_uint32"] and (not waits or half == state["uinteger"])


@pytest.mark.parametrize("n_words", [1, 1000])
def test_every_kind_of_number(n_words):
    rngs, alone = generators(), generators()
    streams = streams_of(rngs, n_words)
    draw = np.random.default_rng(0)
    for round in range(30):
        k = int(draw.integers(0, 8))
        mask = draw.random((N, 5)) < 0.5
        some = draw.permutation(N)[:10]
        bounds = draw.integers(1, 2**32 - 1 if round % 2 else 4, size=N)  # large ones are often drawn again
        ours = [
            streams.random((N, k), dtype=np.float32),
            streams.random(N),
            streams.integers(3, 9, N),
            streams.choice((-1, 1), N),
            streams.at(some).at(np.arange(5)).random(5),
            streams.only(mask[:, 0]).random(N)[mask[:, 0]],
            streams.random_at(mask),
            streams.below(bounds),
            streams.integers(1, size=N),
            streams.pick(np.ones((N, 7), bool)),
        ]
        theirs = [
            np.array([rng.random(k, dtype=np.float32) for rng in alone]),
            [rng.random() for rng in alone],
            [rng.integers(3, 9) for rng in alone],
            [rng.choice((-1, 1)) for rng in alone],
            [alone[i].random() for i in some[:5]],
            [alone[i].random() for i in np.flatnonzero(mask[:, 0])],
            np.concatenate([rng.random(row.sum(), dtype=np.float32) for rng, row in zip(alone, mask, strict=True)]),
            [rng.integers(bound) for rng, bound in zip(alone, bounds, strict=True)],
            [rng.integers(1) for rng in alone],
            [rng.choice(np.arange(7)) for rng in alone],
        ]
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == np.asarray(other).dtype
    check_where(rngs, streams, alone)


@pytest.mark.parametrize(
    "config", [RoomConfig.random_wall(3), RoomConfig.open_arena(2), RoomConfig.random_wall(2, wall_length=(6, 12))]
)
def test_rooms_and_banks(config):
    rngs, alone = generators(), generators()
    streams = streams_of(rngs)
    rooms = generate_rooms(streams, N, config)
    banks = spanning_banks(streams, rooms).transitions()
    for i, rng in enumerate(alone):
        room = Room.generate(rng, config)
        assert room == Room.from_batch(rooms, i)
        np.testing.assert_array_equal(room.memory_bank(rng), banks[i][banks[i][:, 1] >= 0])
    check_where(rngs, streams, alone)


def test_distances_of_a_batch():
    rooms = generate_rooms(np.random.default_rng(0), N, RoomConfig.random_wall(3, wall_length=(5, 20), no_wall=0.0))
    start = (~rooms.walls).argmax(1)
    expected = [Room.from_batch(rooms, i).distances_from(start[i]) for i in range(N)]
    np.testing.assert_array_equal(rooms.distances_from(start), expected)
