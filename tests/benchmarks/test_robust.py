"""The small run of `robust`, and that each factor does what it says, against the rooms themselves."""

import json

import numpy as np
import pytest
import robust
from robust import FACTORS, drawn, shaped, sized, stale, walk, wrapped

from eswm_gym.agents.baselines import RandomAgent
from eswm_gym.agents.episodes import Episode
from eswm_gym.wrappers import SharedState


def begin(begun):
    return Episode(begun.setup, RandomAgent(), begun.bank)


@pytest.fixture
def few_levels(monkeypatch):
    monkeypatch.setattr(robust, "FACTORS", {name: (begin, levels[:1]) for name, (begin, levels) in FACTORS.items()})
    monkeypatch.setattr(robust, "WALKED", 60)


def test_the_small_run(tmp_path, few_levels, capsys):
    robust.main(["slip", "aliasing", "--quick", "--json", str(tmp_path / "out.json"), "--plot", str(tmp_path)])
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    value = {(r["setting"], r["method"], r["metric"], r["at"]): r["value"] for r in rows}
    methods = {"random", "memory-graph", "path-integration", "epn", "eswm", "rules"}
    assert {r["method"] for r in rows if r["setting"] == "slip"} == methods
    assert {r["method"] for r in rows if r["setting"] == "aliasing"} == methods | {"cscg"}
    for method in ("memory-graph", "path-integration", "eswm"):  # where nothing goes wrong
        assert value["slip", method, "success_rate", 0] == value["aliasing", method, "success_rate", 1] == 1
    assert value["slip", "path-integration", "path_optimality", 0] == 1
    assert {"robust-success_rate.png", "robust-path_optimality.png"} <= {file.name for file in tmp_path.iterdir()}
    assert "slip" in capsys.readouterr().out


@pytest.mark.parametrize("factor", FACTORS)
def test_all_methods_get_the_same_room_start_and_goal_at_each_level(factor):
    begins, levels = FACTORS[factor]
    found = []
    for level in (levels[0], levels[-1]):
        world = begin(begins(level, 5)).env.unwrapped
        found.append((world.room.states.tolist(), world.room.walls.tolist(), world.place, world.goal))
        again = begin(begins(level, 5)).env.unwrapped
        assert found[-1] == (again.room.states.tolist(), again.room.walls.tolist(), again.place, again.goal)
    assert (found[0] == found[1]) == (factor != "shape")  # which is another room


def test_a_stale_bank_is_of_the_room_with_its_wall_elsewhere():
    """None of it is false at level 0; at level 1 what is false has to do with the two walls."""
    for seed in range(5):
        room, *_ = drawn(seed)
        for level in (0, 1):
            bank = stale(level, seed).bank
            false = [
                (state, action, end)
                for state, action, end in bank.tolist()
                if room.walls[room.location_of(state)] or room.next_state(state, action) != end
            ]
            assert bool(false) <= bool(level)
    half = stale(0.5, 0).bank
    assert len(half) == len(stale(0, 0).bank)
    new = {tuple(row) for row in stale(0, 0).bank.tolist()}
    assert 15 <= sum(tuple(row) in new for row in half.tolist()) < len(half)


def test_bank_sizes():
    minimal = sized(1, 3).bank
    assert len(sized(0.25, 3).bank) == round(len(minimal) / 4) and len(sized(3, 3).bank) == 3 * len(minimal)
    room, *_ = drawn(3)
    assert all(room.next_state(s, a) == e for s, a, e in sized(3, 3).bank.tolist())


def test_scattered_walls_leave_the_room_in_one_piece():
    for level in (0, 16):
        room = begin(shaped(level, 1)).env.unwrapped.room
        free = np.flatnonzero(~room.walls)
        assert room.walls.sum() == level and (room.distances_from(int(free[0]))[free] >= 0).all()


def test_walks_show_states_as_the_agent_sees_them(monkeypatch):
    monkeypatch.setattr(robust, "WALKED", 300)
    setup = wrapped(SharedState, 4, 2).setup
    moves, env = walk(setup, np.random.default_rng(0)), Episode(setup, RandomAgent()).env
    assert moves.shape == (300, 3) and (moves[1:, 0] == moves[:-1, 2]).all()
    room = env.unwrapped.room
    shown, shared = env.get_wrapper_attr("shown"), env.get_wrapper_attr("shared")
    hidden = set(room.states[shown(room.states) == shared[0]].tolist())
    assert len(hidden) == 4 and len(hidden & set(moves[:, 0].tolist())) == 1
