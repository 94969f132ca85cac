"""Rivals in worlds worked out by hand; they say nothing that is not true; the small run says what it should."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from worlds.command import HELD, MEASURED, SETTINGS, judge_rival, main, rivals_of, shares_held, sources_of
from worlds.rivals import UNDOES, answers, remember, told
from worlds.rules import add, echelon, infer, reduce

from eswm_gym.rooms import MOVES, lattice_of
from eswm_gym.rooms.transitions import Problems
from eswm_gym.world_model.presets import PRESETS
from eswm_gym.world_model.pretrained import build_model, save_model

MOVE = {name: i for i, name in enumerate(MOVES)}
RIGHT, LEFT, UP, DOWN = (MOVE[name] for name in ("right", "left", "up", "down"))
TURN_RIGHT, TURN_LEFT, FORWARD = (MOVE[name] for name in ("turn right", "turn left", "forward"))
P, Q, R, S = range(11, 15)  # codes


def test_the_memory_graph_that_is_told_reverses():
    facts = {(0, RIGHT, 1), (1, UP, 1), (2, TURN_LEFT, 3), (3, FORWARD, 4)}
    new = {(1, LEFT, 0), (3, TURN_RIGHT, 2)}  # neither a bump nor a step forward can be undone
    assert remember(facts, UNDOES) == facts | new
    assert UNDOES[MOVE["down-right"]] == {MOVE["up-left"]} and FORWARD not in UNDOES


def test_the_memory_graph_finds_reverses_that_it_saw():
    facts = {(0, P, 1), (1, Q, 0), (1, P, 2), (2, R, 3)}
    assert remember(facts) == facts | {(2, Q, 1)}
    assert remember(facts - {(1, Q, 0)}) == facts - {(1, Q, 0)}


def test_paths_are_integrated_around_a_square_and_up_to_a_wall():
    """0 1 in the upper row, 2 3 in the lower one; a wall right of 1, and 4 far from them."""
    facts = {(0, RIGHT, 1), (0, DOWN, 2), (2, RIGHT, 3), (1, RIGHT, 1), (4, RIGHT, 4)}
    found = told(lattice_of("square", (9, 9)))(facts)
    back = {(1, LEFT, 0), (2, UP, 0), (3, LEFT, 2)}
    assert found == facts | back | {(1, DOWN, 3), (3, UP, 1)}


def test_paths_are_integrated_around_a_torus_whose_size_is_told():
    facts = {(0, RIGHT, 1), (1, RIGHT, 2), (1, DOWN, 3)}
    lattice = lattice_of("torus", (3, 4))
    assert (2, RIGHT, 0) not in told(lattice)(facts)
    assert told(lattice, (3, 4))(facts) - told(lattice)(facts) == {(2, RIGHT, 0), (0, LEFT, 2)}


def test_a_wall_stops_poses_from_all_sides():
    """0 looks right, 1 is one step ahead; they turn right to 2 and 3; the cell below 1 is a wall, that below 0 free."""
    facts = {(0, FORWARD, 1), (0, TURN_RIGHT, 2), (1, TURN_RIGHT, 3), (3, FORWARD, 3), (2, FORWARD, 4)}
    facts |= {(5, TURN_RIGHT, 4)}
    found = told(lattice_of("pose", (9, 9)))(facts)
    back = {(2, TURN_LEFT, 0), (3, TURN_LEFT, 1), (4, TURN_LEFT, 5)}
    assert found == facts | back | {(5, FORWARD, 5)}


def test_a_cycle_shows_which_moves_are_reverses():
    """P Q R S lead around; were Q the reverse of P, or S, two states would be in one place."""
    facts = {(0, P, 1), (1, Q, 2), (2, R, 3), (3, S, 0)}
    assert remember(facts) == facts
    assert infer(facts, 4) == facts | {(1, R, 0), (2, S, 1), (3, P, 2), (0, Q, 3)}


def test_the_order_of_moves_does_not_matter():
    """R was seen to undo P, so that S undoes Q; what bars 4 on its way by P bars 3 on its way by Q."""
    facts = {(0, P, 1), (1, R, 0), (0, Q, 2), (2, P, 3), (4, S, 2), (4, P, 4)}
    new = {(3, R, 2), (1, Q, 3), (3, S, 1), (2, S, 0), (2, Q, 4), (3, Q, 3)}
    assert infer(facts, 4) == facts | new


def test_a_cycle_closes_a_torus():
    row = {(0, P, 1), (1, P, 2), (2, P, 0)}
    facts = row | {(3, P, 4), (4, P, 5), (0, Q, 3), (2, R, 1), (5, S, 2)}
    found = infer(facts, 4)
    assert found >= {(5, P, 3), (1, Q, 4), (2, Q, 5), (0, R, 2), (3, R, 5), (3, S, 0)}
    assert not [fact for fact in infer(facts - {(2, P, 0)}, 4) if fact[:2] in {(2, P), (5, P)}]


def test_three_axes_lie_in_a_plane():
    """R leads where P and Q do together: were it any other sum or difference, two states would be in one place."""
    reverses = {(1, 14, 0), (2, 15, 1), (3, 16, 2)}
    facts = {(0, P, 1), (1, Q, 2), (2, R, 3)} | reverses  # R is not back to 0
    assert (0, R, 2) not in infer(facts, 6)
    facts |= {(3, Q, 4), (2, P, 5)} | {(3, P, 6), (2, Q, 7)}  # R and Q are not P; R and P are not Q
    assert infer(facts, 6) >= {(0, R, 2), (2, 16, 0), (7, P, 3), (5, Q, 3)}


def test_four_turns_lead_back():
    """P turns left, Q right: of three actions two are taken to be turns. The third was not seen."""
    cell = {(0, P, 1), (1, P, 2), (2, P, 3), (1, Q, 0)}
    assert infer(cell, 3) == cell | {(3, P, 0), (0, Q, 3), (3, Q, 2), (2, Q, 1)}


def test_a_way_there_and_back_leads_back_from_everywhere():
    """R steps forward: 0 to 2 in one cell, 10 to 13 in the next, 20 to 22 in one beside that."""
    facts = {(0, P, 1), (0, R, 10), (10, Q, 11), (11, Q, 12), (12, R, 2), (2, Q, 1), (1, Q, 0)}
    beside = {(10, P, 13), (11, R, 20), (20, Q, 21), (21, Q, 22)}
    assert (22, R, 13) in infer(facts | beside, 3)
    assert (22, R, 13) not in infer(facts - {(12, R, 2)} | beside, 3)


def test_whole_combinations_of_rows():
    assert echelon([(2, 0), (1, 1), (0, 3)]) == [(1, 1), (0, 1)]
    basis = echelon([(4, 0), (2, 2)])
    assert reduce((6, 2), basis) == (0, 0) != reduce((1, 1), basis)
    assert reduce(add((1, 1), (2, 2), 5), basis) == reduce((1, 1), basis)


def test_an_answer_completes_a_query():
    memories = np.array([[[0, RIGHT, 1], [1, UP, 1], [-1, -1, -1]]])
    query = np.array([[[-1, LEFT, 0], [1, -1, 1], [1, LEFT, -1], [0, LEFT, -1]]])
    masked = np.array([[0, 1, 2, 2]])
    found = answers(partial(remember, undoes=UNDOES), Problems(memories, query, None, masked, None))
    assert found.cells[0, [0, 2], 0].tolist() == [1, 0] and found.action[0, 1] == UP
    assert found.unknown.tolist() == [[False, False, False, True]]


@pytest.mark.parametrize("setting", SETTINGS)
def test_rivals_say_only_what_is_true(setting):
    for _, source in sources_of(setting):
        banks = source.draw_banks(np.random.default_rng(0), 3)
        ended = banks.rooms.terminal
        for name, rival in rivals_of(source).items():
            for i, bank in enumerate(banks.transitions().tolist()):
                facts = {(s, a, t) for s, a, t in bank if s >= 0}
                last = set(banks.rooms.states[i, ended[i]].tolist())  # an episode ends there, so that no move is made
                found = {fact for fact in rival(facts) if fact[0] not in last}
                true = source.is_true(banks, np.broadcast_to(np.array([*found]), (3, len(found), 3)))[i]
                assert facts <= found and true.all(), name


def test_rules_against_memory_graphs():
    for setting in ("permuted-square-16", "permuted-pose-16"):
        source = dict(sources_of(setting))[0.6]
        right = {
            name: judge_rival(rival, source, 20, 1).metrics()["validity/unseen/end"]
            for name, rival in rivals_of(source).items()
        }
        assert right["rules"] > 0.8 > right["memory-graph"] + 0.05
        assert shares_held(source, 20, 1).mean() == pytest.approx(0.6, abs=0.1)


def test_worlds(tmp_path, capsys):
    preset = PRESETS["lattices"].model
    config = replace(preset, dim=32, layers=1, loops=1)
    save_model(build_model(config), tmp_path / "model")
    rows = main(["--quick", "--model", str(tmp_path / "model"), "--json", str(tmp_path / "out.json")])
    found = json.loads((tmp_path / "out.json").read_text())
    assert (found["benchmark"], found["seed"]) == ("worlds", 0)
    assert {row.setting for row in rows} == set(SETTINGS)
    for row in rows:
        assert row.along == ("held" if row.setting.startswith("permuted") else None)
        assert row.ci95 is None or row.ci95[0] - 1e-9 <= row.value <= row.ci95[1] + 1e-9
    value = {(row.setting, row.method, row.metric, row.at): row.value for row in rows}
    for setting in ("hexagon-48", "square-48", "pose-32", "pose-64"):
        assert all(value[setting, "path-integration", f"validity/{name}", None] == 1 for name in MEASURED)
    assert value["torus-48", "path-integration-told", "validity/unseen/end", None] == 1
    shares = [value["permuted-torus-16", "bank", "share_held", at] for at in HELD]
    assert shares == sorted(shares)
    assert "path-integration-told" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["pentagon-48"])
