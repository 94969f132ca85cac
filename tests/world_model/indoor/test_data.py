"""Batches for training: what they hold is true of the houses they are drawn from."""

import math
import shutil

import numpy as np
import pytest
import torch

from eswm_gym.rooms.indoor import action_between, moved, wrap
from eswm_gym.world_model.indoor import data
from eswm_gym.world_model.indoor.data import Houses, draw_glances, draw_pairs, draw_ways_of

P = 48


@pytest.fixture(scope="module")
def houses(pools_folder):
    return Houses(pools_folder)


def bits(numbers):
    """How many bits are set, one by one."""
    return np.vectorize(lambda number: bin(number).count("1"))(numbers)


def shows_some_of(pool, i, j):
    """Whether one of two views shows at least a tenth of the 32 points that the other shows."""
    return max(bits(pool.sees[i, j]), bits(pool.sees[j, i])) >= 3.2


def numbers_of(houses, tokens):
    """House and row of each view (N, 16, D)."""
    known = {view.numpy().tobytes(): (h, row) for h, some in enumerate(houses.tokens) for row, view in enumerate(some)}
    return [known[view.numpy().tobytes()] for view in tokens.half()]


# Houses


def test_houses(houses, pools_folder):
    assert len(houses) == 4 == len(houses.pools) == len(houses.tokens)
    with np.load(pools_folder / "houses-00000.npz") as first:
        for k in range(3):
            for name in ("poses", "moves", "sees"):
                np.testing.assert_array_equal(getattr(houses.pools[k], name), first[name][k])
            np.testing.assert_array_equal(houses.tokens[k], first["tokens"][k])
    assert houses.tokens[3].shape == (P, 16, 192) and houses.tokens[3].dtype == torch.float16


def test_houses_that_come_later_are_read_and_none_twice(tmp_path, pools_folder, more_houses):
    shutil.copy(pools_folder / "houses-00000.npz", tmp_path)
    found = Houses(tmp_path)
    assert len(found) == 3
    found.read_new()
    assert len(found) == 3
    (tmp_path / "houses-00050.tmp.npz").write_bytes(b"half of a file that is being written")
    pools, _ = more_houses(tmp_path, 100, [7, 8])
    found.read_new()
    assert len(found) == 5
    np.testing.assert_array_equal(found.pools[4].poses, pools[1].poses)


def test_a_folder_without_houses(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ValueError, match="holds no pools; make them with python -m eswm_gym.indoor_pools --out"):
            Houses(folder)


@pytest.mark.parametrize("n", [1, 9, 10, 25])
def test_every_tenth_house_is_apart(n):
    """For what has to be learned where the other networks never were; of few houses, all serve for both."""
    houses = Houses.__new__(Houses)
    houses.pools = [None] * n
    drawn = {apart: set(houses.draw(np.random.default_rng(0), 2000, apart)) for apart in (False, True)}
    apart = {house for house in range(n) if house % 10 == 9}
    assert drawn[False] == set(range(n)) - apart
    assert drawn[True] == (apart or set(range(n)))
    assert len(houses.draw(np.random.default_rng(0), 3)) == 3


# Pairs


def test_pairs(houses):
    pairs = draw_pairs(np.random.default_rng(0), houses, 5, 400)
    assert pairs.tokens.shape == (5 * P, 16, 192) and pairs.tokens.dtype == torch.float32
    assert pairs.start.shape == pairs.end.shape == pairs.overlap.shape == (400,)
    number = numbers_of(houses, pairs.tokens)
    for n in range(400):
        (house, i), (other, j) = number[pairs.start[n]], number[pairs.end[n]]
        pool = houses.pools[house]
        assert house == other and i != j
        assert math.dist(pool.poses[i, :2], pool.poses[j, :2]) < 4
        np.testing.assert_allclose(pairs.action[n], action_between(pool.poses[i], pool.poses[j]), atol=1e-5)
        assert pairs.overlap[n] == shows_some_of(pool, i, j)


def test_ways(houses):
    """Views, points that lie to them as the file says, and whether the way there is blocked."""
    tokens, to, blocked = draw_ways_of(np.random.default_rng(0), houses, 5, 50)
    assert tokens.shape == (50, 16, 192) and to.shape == (50, 64, 2) and blocked.shape == (50, 64)
    for n, (house, i) in enumerate(numbers_of(houses, tokens)):
        assert torch.equal(to[n], houses.ways[house][0][i].float())
        assert torch.equal(blocked[n].bool(), houses.ways[house][1][i])


def test_pairs_that_overlap_are_eight_times_as_likely(houses):
    pairs = draw_pairs(np.random.default_rng(1), houses, 40, 20_000)
    share, expected = pairs.overlap.mean().item(), []
    for house in houses.draw(np.random.default_rng(1), 40):
        poses = houses.pools[house].poses
        near = [(i, j) for i in range(P) for j in range(P) if i != j and math.dist(poses[i, :2], poses[j, :2]) < 4]
        overlap = sum(shows_some_of(houses.pools[house], i, j) for i, j in near)
        expected.append(8 * overlap / (8 * overlap + len(near) - overlap))
    assert share == pytest.approx(np.mean(expected), abs=0.02)
    drawn = set(zip(pairs.start.tolist(), pairs.end.tolist(), strict=True))
    assert len(drawn) > 5_000  # all over the houses


def test_the_same_seed_draws_the_same(houses):
    for draw in (
        lambda seed: draw_pairs(np.random.default_rng(seed), houses, 3, 60),
        lambda seed: draw_glances(np.random.default_rng(seed), houses, 3, 60, nearest),
    ):
        assert all(torch.equal(a, b) for a, b in zip(draw(3), draw(3), strict=True))
        assert not torch.equal(draw(3)[1], draw(4)[1])


# Glances


def nearest(relative):
    """In place of what is learned of overlap: the nearer the more."""
    return -relative[..., :2].norm(dim=-1)


@pytest.fixture(scope="module")
def glances(houses):
    """Some, with the banks that they are drawn from."""
    banks = []

    def kept(*args):
        banks.append(draw_bank(*args))
        return banks[-1]

    draw_bank = data.draw_bank
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "draw_bank", kept)
        return draw_glances(np.random.default_rng(2), houses, 12, 12 * 24, nearest), banks


def test_glances(houses, glances):
    """What is given, what is asked for and what lies where; the bank's views as if from a pose nearby."""
    found, banks = glances
    n = 12 * 24
    assert found.tokens.shape == (n, 8, 16, 192) and found.relative.shape == (n, 8, 3)
    assert found.there.shape == (n, 8) and found.target.shape == (n, 16, 192) and len(banks) == 12
    assert all(part.dtype == torch.float32 for part in (found.tokens, found.relative, found.target))
    targets, errors = numbers_of(houses, found.target), []
    for q, (house, end) in enumerate(targets):
        pool, held = houses.pools[house], np.unique(banks[q // 24])
        there = found.there[q].tolist()
        kept = min(7, len(held))
        assert there == [True] * (1 + kept) + [False] * (7 - kept)
        assert end not in held
        (_, start), *rows = numbers_of(houses, found.tokens[q][found.there[q]])
        assert pool.moves[start, end]
        relative = found.relative[q].double().numpy()
        np.testing.assert_allclose(relative[0], action_between(pool.poses[end], pool.poses[start]), atol=1e-4)
        assert {other for other, _ in rows} == {house}
        views = [row for _, row in rows]
        assert set(views) <= set(held) and len(set(views)) == kept
        believed = [moved(pool.poses[v], action_between(relative[1 + k], np.zeros(3))) for k, v in enumerate(views)]
        for other in believed:
            difference = other - believed[0]
            assert np.abs([*difference[:2], wrap(difference[2])]).max() < 1e-3
        far = np.linalg.norm(pool.poses[held, :2] - believed[0][:2], axis=1)
        assert set(views) == set(held[np.argsort(far, kind="stable")[:kept]])
        errors.append(action_between(pool.poses[end], believed[0]))
    metres, radians = np.abs(errors)[:, :2], np.abs(errors)[:, 2]
    assert 0.04 < np.median(metres) < 0.12 and 0.02 < np.median(radians) < 0.06  # two thirds of 0.12 and 0.06, or less
    assert metres.max() < 2 and radians.max() < 1


def test_what_glances_know(houses, glances):
    """At least 70 % of a view is shown by the bank and the given view, or next to nothing; and half are known."""
    found, banks = glances
    for q, ((house, end), (_, start)) in enumerate(
        zip(numbers_of(houses, found.target), numbers_of(houses, found.tokens[:, 0]), strict=True)
    ):
        pool, held = houses.pools[house], np.unique(banks[q // 24])
        by_bank = [np.bitwise_or.reduce(pool.sees[held, row]) for row in range(P)]
        shown = bits(by_bank[end] | pool.sees[start, end]) / 32
        given_is_found = bits(by_bank[start]) / 32 >= 0.7 or shows_some_of(pool, start, end)
        assert found.known[q] == (shown >= 0.7 and given_is_found and start not in held)
        assert found.unknown[q] == (shown <= 0.1)
    assert 0.4 < found.known.float().mean() < 1
    assert found.unknown.any() and not (found.known & found.unknown).any()
