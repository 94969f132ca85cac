"""Activations belong to the places that the paper says, and the rooms looked at are as they are called."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import torch

from eswm_gym.analysis import (
    CUES,
    KINDS,
    TASKS,
    activations,
    cluster_banks,
    clusters,
    gap_belief,
    place_means,
    placement_belief,
    queries_of,
    room_of_kind,
    several_banks,
    srsa,
    untrained,
)
from eswm_gym.rooms import RoomConfig, generate_rooms, hex_lattice, random_walls
from eswm_gym.rooms.grid import N_CELLS, GridBatch, GridConfig, cover_banks, generate_grids
from eswm_gym.world_model import Prediction, TransformerConfig, load_pretrained


@pytest.fixture(scope="module")
def model():
    return load_pretrained("random-wall")


def banks_of(n=3, seed=0, **options):
    rng = np.random.default_rng(seed)
    return several_banks(rng, generate_rooms(rng, n, RoomConfig.random_wall(2, **options)), 2)


@pytest.mark.parametrize("task", TASKS)
def test_queries_are_all_true_moves_with_one_part_masked(task):
    banks = banks_of()
    rooms, queries = banks.rooms, queries_of(banks, task)
    masked, given = {"source": (0, 2), "action": (1, 0), "end": (2, 0)}[task]
    targets = rooms.targets()
    for i in range(len(rooms)):
        expected = []
        for start in np.flatnonzero(rooms.observed[i] & ~rooms.walls[i]):
            for action in range(6):
                ahead = rooms.lattice.neighbors[start, action]
                if ahead >= 0 and rooms.observed[i, ahead]:
                    row = [rooms.states[i, start], action, rooms.states[i, targets[i, start, action]]]
                    row[masked] = -1
                    expected.append(tuple(map(int, row)))
        real = queries.place[i] >= 0
        assert sorted(map(tuple, queries.query[i, real].tolist())) == sorted(expected)
        assert (rooms.states[i, queries.place[i, real]] == queries.query[i, real, given]).all()


def test_an_open_room_of_19_has_84_transitions():
    banks = banks_of(wall_length=(0, 0), hidden=0.0)
    assert (queries_of(banks, "end").place >= 0).sum(1).tolist() == [84] * 6
    with pytest.raises(ValueError, match="task must be"):
        queries_of(banks, "goal")


def test_grid_queries_mask_one_part():
    rng = np.random.default_rng(0)
    banks = cover_banks(rng, GridBatch.of(generate_grids(rng, 2, GridConfig())))
    for task, part in (("source", slice(0, N_CELLS)), ("action", slice(N_CELLS, N_CELLS + 1))):
        queries = queries_of(banks, task)
        real = queries.place >= 0
        assert real.sum(1).tolist() == (3 * banks.rooms.free.sum(1)).tolist()
        assert (queries.query[real][:, part] == -1).all()
    given = queries.query[0, real[0]][:, :N_CELLS]
    assert (given == banks.rooms.views[0, queries.place[0, real[0]]]).all()


def test_means_and_chunks_agree(model):
    queries = queries_of(banks_of(hidden=0.3), "end")
    found = activations(model, queries, chunk=4)
    means = place_means(model, queries, chunk=5)
    assert found.vectors.shape[0] == means.shape[0] == 14
    assert len(found.place) == (queries.place >= 0).sum()
    for bank in range(len(queries)):
        for place in range(19):
            mine = found.vectors[:, (found.bank == bank) & (found.place == place)]
            if mine.shape[1]:
                assert np.allclose(mine.mean(1), means[:, bank, place], atol=1e-4)
            else:
                assert np.isnan(means[:, bank, place]).all()
    whole = found.means(19)
    assert np.allclose(whole[3, found.place[0]], found.vectors[3, found.place == found.place[0]].mean(0), atol=1e-4)
    assert np.array_equal(place_means(model, queries, [7, 2])[1], place_means(model, queries)[2], equal_nan=True)


def test_the_trained_model_has_a_map_and_the_control_less(model):
    banks = banks_of(2, seed=5, hidden=0.0)
    score = []
    for subject in (model, untrained(model.config)):
        x = place_means(subject, queries_of(banks, "action"), [8])[0].reshape(2, 2, 19, -1).mean(1)
        score.append(np.mean([srsa(room, hex_lattice(2).xy) for room in x]))
    assert score[0] > 0.8 > 0.6 > score[1]


def test_untrained_networks_draw_what_training_starts_from_zero():
    config = TransformerConfig(n_states=7, dim=32, layers=2, heads=2)
    state = torch.random.get_rng_state()
    one, same, other = untrained(config, 1), untrained(config, 1), untrained(config, 2)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert one.blocks[0].out.weight.any() and one.blocks[1].down.weight.any()
    assert torch.equal(one.blocks[0].out.weight, same.blocks[0].out.weight)
    assert not torch.equal(one.blocks[0].out.weight, other.blocks[0].out.weight)
    assert not one.training and not any(p.requires_grad for p in one.parameters())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("radius", [2, 3])
def test_rooms_are_of_their_kind(kind, radius):
    room = room_of_kind(np.random.default_rng(1), kind, radius)
    walls = nx.Graph(edge for edge in room.lattice.edges.tolist() if room.walls[0][edge].all())
    pieces = nx.number_connected_components(walls) if len(walls) else 0
    assert pieces == {"no-wall": 0, "two-walls": 2}.get(kind, 1)
    free = nx.Graph(edge for edge in room.lattice.edges.tolist() if not room.walls[0][edge].any())
    assert nx.is_connected(free) and len(free) == (~room.walls).sum()
    assert room.observed.all() == (kind != "partly-observed")
    assert sorted(room.states[0].tolist()) == list(range(room.lattice.n_locations))
    with pytest.raises(ValueError, match="kind must be"):
        room_of_kind(np.random.default_rng(1), "maze")


@pytest.mark.parametrize("cue", CUES)
def test_no_memory_leads_from_cluster_to_cluster(cue):
    rng = np.random.default_rng(2)
    rooms, cluster, walls = clusters(rng, 12, cue)
    banks = cluster_banks(rng, rooms, cluster)
    ahead = rooms.lattice.next_location[banks.source, banks.action]
    row, slot = np.nonzero(banks.source >= 0)
    assert (cluster[row, banks.source[row, slot]] == cluster[row, ahead[row, slot]]).all()
    seen = [((cluster == i) & walls).sum(1).tolist() for i in (0, 1)]
    assert seen == [[n] * 12 for n in {"wall": (3, 1), "one-obstacle-each": (1, 1)}.get(cue, (0, 0))]
    for room, sides in zip(walls, cluster, strict=True):
        cells = rooms.lattice.axial[room]
        steps = {tuple(b - a) for a, b in pairwise(cells)}
        assert (len(cells), len(steps)) == ((0, 0) if cue == "shape" else (4, 1))  # four in a straight line
        for i in (0, 1):
            inside = np.flatnonzero((sides == i) & ~room)
            near = nx.Graph(edge for edge in rooms.lattice.edges.tolist() if np.isin(edge, inside).all())
            assert nx.is_connected(near) and len(near) == len(inside)


def test_shape_and_obstacles_tell_how_clusters_lie():
    prior = random_walls(np.random.default_rng(0), 5000, RoomConfig.random_wall(3))
    for cue in CUES:
        rooms, cluster, walls = clusters(np.random.default_rng(1), 2, cue)
        known = [placement_belief(rooms.lattice, cluster[i], walls[i], prior) for i in range(2)]
        assert known == [1, 1] if cue != "none" else max(known) < 0.05


def test_placements_counted_by_hand():
    """On seven locations a row of two fits in four places, and one more location then in five."""
    lattice = hex_lattice(1)
    at = {tuple(cell): i for i, cell in enumerate(lattice.axial.tolist())}
    west, middle, east = at[-1, 0], at[0, 0], at[1, 0]
    cluster, walls = np.full(7, -1), np.zeros(7, bool)
    cluster[[middle, east]], cluster[west] = 0, 1
    open_rooms = np.zeros((3, 7), bool)
    assert placement_belief(lattice, cluster, walls, open_rooms) == pytest.approx(1 / 20)
    walls[east] = True  # an obstacle now, which stands there in two rooms of three
    assert np.isnan(placement_belief(lattice, cluster, walls, open_rooms))
    open_rooms[:2, east] = True
    assert placement_belief(lattice, cluster, walls, open_rooms) == pytest.approx(1 / 5)


def test_gap_belief_of_a_model_that_knows():
    """A stand-in that puts 0.7 on a state, 0.2 on "I don't know" and the rest on staying."""
    rng = np.random.default_rng(3)
    rooms, cluster, _ = clusters(rng, 5, "wall")
    banks = cluster_banks(rng, rooms, cluster)
    location = np.argsort(rooms.states, 1)
    targets = rooms.targets()

    class Knows(torch.nn.Linear):
        device = torch.device("cpu")

        def encode(self, memories):
            self.first = getattr(self, "first", 0)
            return memories

        def predict(self, memories, query):
            p = torch.full((*query.shape[:2], 38), 1e-12)
            for i in range(len(query)):
                room = self.first + i
                for j, (state, action, _) in enumerate(query[i].tolist()):
                    end = rooms.states[room, targets[room, location[room, state], action]]
                    p[i, j, end] += 0.7
                    p[i, j, state] += 0.1
                    p[i, j, -1] += 0.2
            self.first += len(query)
            return Prediction(p, p, p.log())

    belief = gap_belief(Knows(1, 1), banks, cluster, chunk=2)
    assert belief.neighbor == pytest.approx(np.full(5, 0.7), abs=1e-5)
    assert belief.other_cluster == pytest.approx(np.full(5, 0.7), abs=1e-5)
    assert belief.stays == pytest.approx(np.full(5, 0.1), abs=1e-5)
    assert belief.unknown == pytest.approx(np.full(5, 0.2), abs=1e-5)
    with pytest.raises(ValueError, match="no two clusters"):
        gap_belief(Knows(1, 1), banks, np.where(cluster == 0, 0, -1))
