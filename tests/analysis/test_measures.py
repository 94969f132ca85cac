"""Measures of maps whose values are known: perfect ones, none at all, and ones worked out by hand."""

import builtins

import networkx as nx
import numpy as np
import pytest

from eswm_gym.analysis import (
    DistanceProbe,
    draw_triplets,
    isomap,
    latent_geodesics,
    map_fit,
    path_lengths,
    r_squared,
    room_of_kind,
    spearman,
    srsa,
)
from eswm_gym.rooms import RoomConfig, hex_lattice

XY = hex_lattice(3).xy


def plane(rng, dim=40):
    """Two orthonormal directions of a space."""
    return np.linalg.qr(rng.normal(size=(dim, 2)))[0].T


def test_srsa_of_a_perfect_map_is_one_and_of_a_shuffled_one_about_zero():
    rng = np.random.default_rng(0)
    vectors = XY @ plane(rng)
    assert srsa(vectors, XY, "euclidean") == pytest.approx(1)
    # Seen from far above, angles between the places are as the distances.
    assert srsa(np.concatenate([XY, np.full((len(XY), 1), 1e3)], 1), XY) > 0.999
    shuffled = [srsa(rng.permutation(vectors), XY, "euclidean") for _ in range(30)]
    assert abs(np.mean(shuffled)) < 0.05
    assert np.isnan(srsa(np.ones((len(XY), 4)), XY))


def test_srsa_leaves_out_places_without_a_vector():
    vectors = XY @ plane(np.random.default_rng(1))
    vectors[5] = np.nan
    assert srsa(vectors, XY, "euclidean") == pytest.approx(1)


def test_spearman_by_hand():
    assert spearman(np.array([1.0, 2, 3]), np.array([1.0, 10, 100])) == pytest.approx(1)
    assert spearman(np.array([1.0, 2, 3]), np.array([1.0, 3, 2])) == pytest.approx(0.5)  # 1 - 6 * 2 / (3 * 8)
    assert r_squared(np.array([0.0, 1, 2]), np.array([5.0, 3, 1])) == pytest.approx(1)


@pytest.mark.parametrize("kind", ["no-wall", "straight-wall", "two-walls", "clump"])
def test_geodesics_go_round_walls(kind):
    """Free places laid out as in the room on a small patch of a sphere, straight across the wall being too far."""
    room = room_of_kind(np.random.default_rng(0), kind)
    step = 0.01
    vectors = np.pad(
        np.where(room.walls[0][:, None], np.nan, step * room.lattice.xy), ((0, 0), (0, 1)), constant_values=1
    )
    latent = latent_geodesics(vectors, 1 - np.cos(1.2 * step)) / step
    true = path_lengths(room, 0)
    graph = nx.Graph(edge for edge in room.lattice.edges.tolist() if not room.walls[0][edge].any())
    for a, lengths in nx.all_pairs_shortest_path_length(graph):
        for b, steps in lengths.items():
            assert latent[a, b] == pytest.approx(steps, rel=0.01) and true[a, b] == steps
    free = np.ix_(~room.walls[0], ~room.walls[0])
    assert np.isfinite(latent[free]).sum() == (true[free] >= 0).sum()
    assert np.isnan(latent[room.walls[0]]).all() and (true[room.walls[0]] == -1).all()


def test_geodesics_by_hand():
    """Three directions in a plane, 0.1 and 0.2 apart; how long the vectors are does not matter."""
    angle = np.array([0, 0.1, 0.3])
    vectors = np.array([[1], [2], [5]]) * np.stack([np.cos(angle), np.sin(angle)], 1)
    expected = np.array([[0, 0.1, 0.3], [0.1, 0, 0.2], [0.3, 0.2, 0]])
    assert np.allclose(latent_geodesics(vectors, 0.021), expected)  # 1 - cos(0.2) is 0.0199
    near, far = 1 - np.cos(0.1), 1 - np.cos(0.2)
    expected = np.array([[0, near, near + far], [near, 0, far], [near + far, far, 0]])
    assert np.allclose(latent_geodesics(vectors, 0.021, "cosine"), expected)
    assert np.isinf(latent_geodesics(vectors, 0.019)[0, 2])


def test_isomap_unrolls_a_plane_and_a_bent_sheet():
    rng = np.random.default_rng(2)
    place = np.tile(np.arange(37), 12)
    noise = rng.normal(scale=0.05, size=(len(place), 40))
    flat = XY[place] @ plane(rng) + noise
    fit = map_fit(isomap(flat, 2, 40, "euclidean"), place, XY)
    assert fit.disparity < 0.02 and fit.correlation > 0.97
    # A sheet rolled to three quarters of a cylinder, whose ends straight distances bring together.
    angle = XY[place, 0] / 6 * 1.5 * np.pi
    radius = 6 / (1.5 * np.pi)
    rolled = np.stack([radius * np.cos(angle), radius * np.sin(angle), XY[place, 1]], 1) + noise[:, :3]
    unrolled = map_fit(isomap(rolled, 2, 40, "euclidean"), place, XY)
    assert unrolled.disparity < 0.03 < map_fit(rolled[:, :2], place, XY).disparity
    none = map_fit(isomap(rng.normal(size=flat.shape), 2, 30), place, XY)
    assert none.disparity > 0.5 and abs(none.correlation) < 0.3
    assert isomap(flat, 3).shape == (len(place), 3)


def test_the_fit_ignores_turn_scale_and_mirror():
    turned = XY @ np.array([[0.0, 3], [3, 0]]) + 7
    fit = map_fit(turned, np.arange(37), XY)
    assert fit.disparity == pytest.approx(0, abs=1e-12) and fit.correlation == pytest.approx(1)
    nothing = map_fit(np.zeros((37, 2)), np.arange(37), XY)
    assert nothing.disparity == 1 and np.isnan(nothing.correlation)


def test_without_scikit_learn_isomap_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"eswm-gym\[plot\]"):
        isomap(np.eye(5))


def test_triplets_are_of_different_free_places_and_say_which_is_farther():
    triplets = draw_triplets(np.random.default_rng(3), 300, RoomConfig.random_wall(2, hidden=0.0))
    rooms, xy = triplets.banks.rooms, hex_lattice(2).xy
    for i, (a, b, c) in enumerate(triplets.places):
        assert len({a, b, c}) == 3 and not rooms.walls[i, [a, b, c]].any()
        to_b, to_c = np.linalg.norm(xy[[b, c]] - xy[a], axis=1)
        assert abs(to_b - to_c) > 0.1 and triplets.farther[i] == (to_b > to_c)
    assert 0.4 < triplets.farther.mean() < 0.6
    query = triplets.queries_to_reference().query
    row = np.arange(300)[:, None]
    assert (query[..., 0] == rooms.states[row, triplets.places]).all() and (query[..., 1] == -1).all()
    assert (query[..., 2] == rooms.states[row, triplets.places[:, :1]]).all()
    own = triplets.queries_of_own_moves(np.random.default_rng(0)).query
    targets = rooms.states[np.arange(300)[:, None, None], rooms.targets()[row, triplets.places]]
    assert (own[..., 2, None] == targets).any(2).all()


def test_the_probe_reads_distances_but_a_sum_cannot_compare_places():
    """With B and C seen from A it is right; from coordinates alone only as far as the rim tells."""
    triplets = draw_triplets(np.random.default_rng(4), 900, RoomConfig.random_wall(2, hidden=0.0))
    xy = hex_lattice(2).xy[triplets.places]
    half = 600

    def score(x):
        return DistanceProbe(x[:half], triplets.farther[:half]).accuracy(x[half:], triplets.farther[half:])

    seen_from_a = np.linalg.norm(xy - xy[:, :1], axis=2)
    assert score(seen_from_a) > 0.98
    assert score(xy.reshape(-1, 6)) < 0.6
    assert score(np.eye(19)[triplets.places].reshape(len(xy), -1)) < 0.75
    assert abs(score(np.random.default_rng(0).normal(size=(900, 30))) - 0.5) < 0.08
