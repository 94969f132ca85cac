"""The reference that room generation is measured against does the same work."""

import random
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import speed
import speed_models
import speed_peers
from common import timing

from eswm_gym.rooms import RoomConfig, generate_rooms, hex_lattice, spanning_banks
from eswm_gym.world_model.presets import PRESETS


def test_the_networkx_bank_is_a_minimal_spanning_bank():
    """Lay it out from any transition: every state has one place, no move closes a circle, each bump stays."""
    rng = random.Random(0)
    for _ in range(50):
        bank = speed_peers.networkx_bank(rng, RoomConfig.random_wall(3, hidden=0.0))
        graph = nx.Graph([(s, e) for s, _, e in bank if s != e])
        assert nx.is_forest(graph) and graph.number_of_edges() == sum(s != e for s, _, e in bank)
        place = {}
        lattice = hex_lattice(3)
        step = (lattice.axial[lattice.neighbors[18]] - lattice.axial[18]).tolist()  # location 18 is the centre
        for part in nx.connected_components(graph):
            start = min(part)
            place[start] = (0, 0)
            while missing := part - place.keys():
                for s, a, e in bank:
                    for known, action, new in ((s, a, e), (e, (a + 3) % 6, s)):
                        if known in place and new in missing:
                            place[new] = tuple(np.add(place[known], step[action]).tolist())
            places = [place[state] for state in part]
            assert len(set(places)) == len(places)
            assert np.ptp(places, axis=0).max() <= 6


@pytest.mark.parametrize("config", [RoomConfig.random_wall(3), RoomConfig.random_wall(2, hidden=0.0)])
def test_both_make_banks_of_the_same_size(config):
    """On average over many rooms: the same walls, hidden regions and bumps, as far as work goes."""
    rng = random.Random(0)
    reference = np.mean([len(speed_peers.networkx_bank(rng, config)) for _ in range(1000)])
    ours = spanning_banks(np.random.default_rng(0), generate_rooms(np.random.default_rng(1), 1000, config))
    assert (ours.source >= 0).sum(1).mean() == pytest.approx(reference, rel=0.03)


def test_calls_take_turns_and_the_fastest_counts(monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    order = []
    found = timing.seconds_per_call({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, budget=3)
    assert found == {"a": 1, "b": 1}  # this clock ticks once a look
    assert order == ["a", "b"] * 4  # one call each to warm up, then three


def test_vector_environments_are_compared_step_for_step(monkeypatch):
    """Rates count rooms times steps, whatever the number of rooms."""
    monkeypatch.setattr(speed, "VECTOR_ROOMS", 8)
    monkeypatch.setattr(speed, "SYNC_ROOMS", 2)
    monkeypatch.setattr(
        speed, "seconds_per_call", lambda calls, budget: {name: [c(), 2.0][1] for name, c in calls.items()}
    )
    rows = {row.method: row.value for row in speed.vector_rows(seed=0, budget=0.0)}
    assert rows["ESWM-RandomWall-v0-rooms-8"] == 8 * 40 / 2
    assert rows["ESWM-RandomWall-v0-sync-2"] == 2 * 40 / 2
    assert rows["ESWM-RandomWall-v0-rooms-8/sync-2"] == 4


@pytest.mark.slow
def test_training_is_timed_with_the_loops_that_a_model_has_at_each_time(monkeypatch):
    """Half of the time one loop or two, which take a second here, then three, which take two."""
    tiny = PRESETS["tiny"]
    looped = replace(tiny, model=replace(tiny.model, loops=3), all_loops_from=0.5)
    monkeypatch.setitem(speed_models.PRESETS, "random-wall", looped)

    def timed(calls, budget):
        for call in calls.values():
            call()
        return {name: 2.0 if name == "3 loops" else 1.0 for name in calls}

    monkeypatch.setattr(speed_models, "seconds_per_call", timed)
    rows = {(row.method, row.metric): row.value for row in speed_models.training_rows(0, "cpu", 0.0)}
    pairs = looped.rooms * looped.queries
    assert rows["random-wall", "pairs_per_second"] == pytest.approx(pairs * (1 / 1 + 1 / 2) / 2)
    assert rows["random-wall", "share_of_peak"] > 0


@pytest.mark.slow
def test_nothing_has_become_many_times_slower():
    """Ratios of one run, with margins that a busy machine keeps: a third of what an idle core measured, or less."""
    rows = {(row.setting, row.method): row.value for row in speed.main(["--quick"]) if row.metric == "ratio"}
    taxi = max(name for setting, name in rows if name.startswith("ESWM-RandomWallExplore-v0/Taxi"))
    least = {
        ("random-wall-37", "numpy-batched/networkx"): 2,
        ("environments", taxi): 0.5,
        ("environments", taxi.replace("Explore", "")): 0.4,
        ("vector-environments", "ESWM-RandomWall-v0-rooms-1024/sync-64"): 7,
        ("vector-environments", "ESWM-MiniGrid-v0-rooms-1024/sync-64"): 10,
        ("views", "batched/minigrid-gen-obs"): 50,
        ("imagined-table", "joint-batched/cross-cached"): 10,
        ("imagined-table", "joint-one-by-one/cross-cached"): 20,
    }
    assert {key: rows[key] for key, ratio in least.items() if rows[key] < ratio} == {}
