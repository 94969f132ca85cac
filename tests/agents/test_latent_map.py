"""Distances in the latent space against distances worked out on known points."""

import shutil

import networkx as nx
import numpy as np
import pytest

from eswm_gym.agents import ESWMAgent, LatentMap, MemoryBank, latent_maps
from eswm_gym.agents.latent_radius import greedy_success, main
from eswm_gym.rooms import Room, RoomConfig
from eswm_gym.world_model import available, load_model, load_pretrained
from eswm_gym.world_model.pretrained import WEIGHTS, read_info, write_info


@pytest.fixture(scope="module")
def model():
    return load_pretrained("random-wall")


def on_a_sphere(xy, radius=50.0):
    """Points of the plane on a sphere so large that cosine distance orders them as distance does."""
    return np.column_stack([np.full(len(xy), radius), xy])


def test_geodesics_are_hops_between_neighbors():
    """Six points in a U: its two ends are near as the crow flies and five hops apart along it."""
    xy = np.array([[0, 0], [0, 1], [0, 2], [1.4, 2], [1.4, 1], [1.4, 0]], float)
    latent = LatentMap(np.arange(6), on_a_sphere(xy))
    # Cosine distance grows as the square of the distance: 1.4 apart is 1.96 times as far as neighbours are.
    np.testing.assert_array_equal(latent.geodesic(1.5)[:3, :3], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    assert np.isinf(latent.geodesic(1.5)[2, 3])
    assert latent.geodesic(2.1)[0, 5] == 1
    np.testing.assert_allclose(latent.euclidean()[0], [0, 1, 2, np.hypot(1.4, 2), np.hypot(1.4, 1), 1.4], rtol=1e-9)


def test_distances_by_state():
    latent = LatentMap(np.array([3, 5, 9]), on_a_sphere(np.array([[0, 0], [1, 0], [2, 0]], float)))
    assert latent.distances_to(9, latent.geodesic(1.5)) == {3: 2, 5: 1, 9: 0}
    assert latent.distances_to(4, latent.geodesic(1.5)) == {}


def test_one_state_is_a_map_too():
    latent = LatentMap(np.array([3]), np.ones((1, 4)))
    assert latent.geodesic(1.8).tolist() == [[0]] and latent.euclidean().tolist() == [[0]]


@pytest.mark.parametrize(("radius", "least"), [(2, 0.8), (3, 0.9)])
def test_the_shipped_model_has_the_map_of_a_room_in_its_head(model, radius, least):
    """In most rooms; in some of the small ones a shortcut spoils it."""
    rng = np.random.default_rng(radius)
    rooms = [Room.generate(rng, RoomConfig.random_wall(radius, hidden=0.0)) for _ in range(24)]
    banks = [MemoryBank(room.memory_bank(rng)) for room in rooms]
    explained = []
    for room, found in zip(rooms, latent_maps(model, banks), strict=True):
        graph = nx.Graph(
            (i, int(room.targets[i, a]))
            for i in np.flatnonzero(~room.walls)
            for a in range(6)
            if room.targets[i, a] != i
        )
        lengths = dict(nx.all_pairs_shortest_path_length(graph))
        geodesic = found.geodesic(model.latent_radius)
        latent, true = [], []
        for i, a in enumerate(found.states):
            for j, b in enumerate(found.states):
                there = lengths.get(room.location_of(int(a)), {}).get(room.location_of(int(b)))
                if i < j and there is not None and np.isfinite(geodesic[i, j]):
                    latent.append(geodesic[i, j])
                    true.append(there)
        explained.append(np.corrcoef(latent, true)[0, 1] ** 2)
    assert np.median(explained) > least


def test_maps_of_many_banks_equal_those_of_one(model):
    banks = [MemoryBank([(0, 0, 1), (1, 1, 2)]), MemoryBank([(5, 2, 6)])]
    for bank, found in zip(banks, latent_maps(model, banks), strict=True):
        (alone,) = latent_maps(model, [bank])
        assert found.states.tolist() == bank.states
        np.testing.assert_allclose(found.activations, alone.activations, atol=1e-4)
    with pytest.raises(ValueError, match="state 99 is outside the vocabulary"):
        latent_maps(model, [MemoryBank([(0, 0, 99)])])


def test_a_radius_that_joins_everything_makes_a_poor_guide(model):
    rng = np.random.default_rng(0)
    rooms = [Room.generate(rng, RoomConfig.random_wall(2, hidden=0.0)) for _ in range(6)]
    chosen, joined = greedy_success(model, rooms, [model.latent_radius, 100.0], np.random.default_rng(1))
    assert chosen > 0.85 and joined < 0.6


def test_the_radius_is_stored_with_the_weights(tmp_path, capsys):
    assert "random-wall" in available()
    for suffix in (".safetensors", ".json"):
        shutil.copy(WEIGHTS / f"random-wall{suffix}", tmp_path / f"mine{suffix}")
    info = read_info(tmp_path / "mine")
    del info["latent_radius"]
    write_info(tmp_path / "mine", info)
    model = load_model(tmp_path / "mine")
    assert model.latent_radius is None
    agent = ESWMAgent(model)
    agent.reset({"state": 0}, {"memory_bank": [(0, 0, 1)]})
    with pytest.raises(ValueError, match="without a latent radius"):
        agent.plan(0, 1, "astar")
    main([str(tmp_path / "mine.safetensors"), "--rooms", "3"])
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    best = max(printed, key=lambda words: float(words[-1]))
    assert len(printed) == 11 and load_model(tmp_path / "mine").latent_radius == float(best[1])


def test_a_star_by_uncertainty_is_guided_in_the_unit_of_its_cost():
    """Steps would outweigh it by far: the plans would be the shortest ones, however improbable."""
    agent = ESWMAgent.from_pretrained("random-wall", trust_memory=False, cost="uncertainty", seed=0)
    for seed in range(10):
        room = Room.generate(np.random.default_rng(seed), RoomConfig.random_wall(3, hidden=0.0))
        agent.reset({"state": 0}, {"memory_bank": room.memory_bank(np.random.default_rng(seed))})
        start, *goals = sorted(agent.memory.states)[::6]
        for goal in goals:
            best, found = (agent.plan(start, goal, algorithm) for algorithm in ("dijkstra", "astar"))
            assert found.probability > 0.99 * best.probability
