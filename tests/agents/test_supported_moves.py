"""What rests on what: worked out by hand on small examples, and against a definition by fixed point."""

import numpy as np
import pytest

from eswm_gym.agents.supported_moves import SupportedMoves

N = 4


def moves_of(*facts):
    moves = SupportedMoves(N)
    for state, action, end in facts:
        moves.set_fact(state * N + action, end)
    return moves


def known(moves):
    return {(move // N, move % N, end) for move, end in moves.ends.items()}


def test_what_a_fact_supports_goes_with_it():
    moves = moves_of((0, 0, 1), (5, 0, 6))
    moves.support([0], [(1 * N, 2, 0.9)])  # (0, 0, 1) lets it imagine (1, 0, 2)
    moves.support([1 * N], [(2 * N, 3, 0.9)])  # and that one (2, 0, 3)
    moves.support([5 * N], [(6 * N, 7, 0.9)])
    gone = moves.retract([0])
    assert {move // N for move, _ in gone} == {0, 1, 2}
    assert known(moves) == {(5, 0, 6), (6, 0, 7)}


def test_what_rests_on_something_else_as_well_stays():
    moves = moves_of((0, 0, 1), (5, 0, 6))
    moves.support([0], [(1 * N, 2, 0.9)])
    moves.support([5 * N], [(1 * N, 2, 0.97)])
    moves.support([1 * N], [(2 * N, 3, 0.9)])
    assert [move for move, _ in moves.retract([0])] == [0]
    assert known(moves) == {(5, 0, 6), (1, 0, 2), (2, 0, 3)}
    assert len(moves.beliefs[1 * N].windows) == 1 and moves.beliefs[1 * N].probability == 0.97


def test_moves_that_support_only_each_other_go():
    moves = moves_of((0, 0, 1))
    moves.support([0], [(1 * N, 2, 0.9)])
    moves.support([1 * N], [(2 * N, 3, 0.9)])
    moves.support([2 * N], [(1 * N, 2, 0.9)])
    assert len(moves.retract([0])) == 3
    assert not known(moves) and not moves.beliefs


def test_a_fact_takes_the_place_of_what_contradicts_it():
    moves = moves_of((0, 0, 1))
    moves.support([0], [(1 * N, 2, 0.9), (3 * N + 1, 4, 0.9)])
    moves.support([1 * N], [(2 * N, 5, 0.9)])
    moves.set_fact(1 * N, 9)  # not to 2
    assert known(moves) == {(0, 0, 1), (1, 0, 9), (3, 1, 4)}
    moves.set_fact(8 * N + 1, 4)  # only one state leads to 4 by action 1
    assert known(moves) == {(0, 0, 1), (1, 0, 9), (8, 1, 4)}
    moves.set_fact(8 * N + 1, 7)  # the fact of before is outdated
    assert known(moves) == {(0, 0, 1), (1, 0, 9), (8, 1, 7)}
    assert moves.starts == {1 * N: 0, 9 * N: 1, 7 * N + 1: 8}


def test_what_fits_with_what_is_known_and_what_else_has_to_be_one():
    moves = moves_of((0, 0, 1), (2, 1, 3))
    moves.support([0], [(5 * N, 6, 0.9)])
    answers = [
        (1 * N, 4, 0.9),  # is new
        (5 * N, 6, 0.8),  # is imagined already
        (0, 1, 0.9),  # is a fact
        (0 * N, 7, 0.9),  # 7 should be 1
        (8 * N + 1, 3, 0.9),  # 8 should be 2
        (0 * N + 2, 1, 0.9),  # another action leads from 0 to 1
        (9 * N, 10, 0.9),
        (11 * N, 10, 0.9),  # 9 should be 11
    ]
    assert moves.fitting(answers[:3]) == ([(1 * N, 4, 0.9), (5 * N, 6, 0.8)], [])
    assert moves.fitting(answers[3:]) == ([], [(9, 11), (1, 7), (2, 8)])


def test_what_turns_out_to_be_a_fact_rests_on_nothing():
    moves = moves_of((0, 0, 1))
    moves.support([0], [(1 * N, 2, 0.9)])
    moves.set_fact(1 * N, 2)
    moves.retract([0])
    assert known(moves) == {(1, 0, 2)} and not moves.beliefs


@pytest.mark.parametrize("seed", range(20))
def test_retraction_leaves_what_follows_from_the_facts_that_are_left(seed):
    """Random windows; the definition: what the facts support, in one step or more."""
    rng = np.random.default_rng(seed)
    moves, facts, windows = SupportedMoves(1), set(range(8)), []
    for fact in facts:
        moves.set_fact(fact, fact + 100)
    for _ in range(25):
        held = rng.choice(sorted(moves.ends), 2, replace=False).tolist()
        imagined = [move for move in rng.choice(30, 2, replace=False).tolist() if move not in facts]
        moves.support(held, [(move, move + 100, 0.9) for move in imagined])
        windows.append((held, imagined))
    for fact in rng.permutation(8)[:4].tolist():
        facts.discard(fact)
        moves.retract([fact])
        follows = set(facts)
        for _ in windows:
            follows |= {move for held, imagined in windows if follows.issuperset(held) for move in imagined}
        assert set(moves.ends) == follows
        assert set(moves.beliefs) == follows - facts
        # Windows that held what is gone do not come back with it.
        windows = [(held, imagined) for held, imagined in windows if follows.issuperset(held)]


def test_a_name_and_a_state_that_turn_out_to_be_one_share_their_moves():
    moves = moves_of((0, 0, 8), (3, 1, 1))  # 8 is a name of 1
    moves.support([0], [(8 * N + 2, 5, 0.9)])  # (8, 2, 5)
    moves.support([8 * N + 2], [(5 * N, 6, 0.9)])
    moves.support([3 * N + 1], [(1 * N + 3, 7, 0.9)])
    assert moves.join(8, 1, {8}) == [(8, 1)]
    assert known(moves) == {(0, 0, 1), (3, 1, 1), (1, 2, 5), (5, 0, 6), (1, 3, 7)}
    assert moves.starts == {1 * N: 0, 1 * N + 1: 3, 5 * N + 2: 1, 6 * N: 5, 7 * N + 3: 1}
    moves.retract([0])  # (1, 2, 5) rests on it as (8, 2, 5) did
    assert known(moves) == {(3, 1, 1), (1, 3, 7)}


def test_where_moves_of_both_lead_to_a_name_that_is_one_as_well():
    moves = moves_of((0, 0, 8), (1, 1, 2), (2, 2, 4), (9, 2, 5))  # 8 is 1, so 9 is 2 and 5, a name too, is 4
    moves.support([0], [(8 * N + 1, 9, 0.9)])
    assert dict(moves.join(8, 1, {8, 9, 5})) == {8: 1, 9: 2, 5: 4}
    assert known(moves) == {(0, 0, 1), (1, 1, 2), (2, 2, 4)}
    assert not moves.beliefs  # (1, 1, 2) was a fact already


def test_what_contradicts_a_state_goes_with_what_rests_on_it_when_a_name_turns_out_to_be_it():
    moves = moves_of((0, 0, 8), (1, 1, 2))
    moves.support([0], [(8 * N + 1, 3, 0.9)])  # but 3 is not 2
    moves.support([8 * N + 1], [(3 * N, 4, 0.9)])
    assert moves.join(8, 1, {8}) == [(8, 1)]
    assert known(moves) == {(0, 0, 1), (1, 1, 2)}


@pytest.mark.parametrize("seed", range(20))
def test_names_of_a_ring_all_turn_out_to_be_its_states(seed):
    """A ring of 12 states, the way round by action 0 and back by action 1, walked under a second set of names."""
    rng = np.random.default_rng(seed)
    size, names = 12, range(12, 24)
    moves, shown = SupportedMoves(2), {i: i if rng.random() < 0.5 else 12 + i for i in range(size)}
    ways = [(i, action, (i + step) % size) for i in range(size) for action, step in ((0, 1), (1, -1))]
    for i, action, end in ways:
        if rng.random() < 0.7:
            moves.set_fact(i * 2 + action, end)
    for i, action, end in ways:
        held = rng.choice(list(moves.ends), 2, replace=False).tolist()
        move, target = shown[i] * 2 + action, shown[end]
        if move not in moves.ends and moves.arrival(move, target) not in moves.starts:
            moves.support(held, [(move, target, 0.9)])
    joined = {}
    for i in rng.permutation(size).tolist():
        if joined.get(12 + i) is None:
            joined |= moves.join(12 + i, i, names)
    assert joined == {12 + i: i for i in range(size)}
    assert known_of(moves) <= set(ways)
    assert moves.starts == {end * 2 + action: i for i, action, end in known_of(moves)}
    moves.retract(list(moves.ends))
    assert not moves.ends and not moves.beliefs and not moves._held


def known_of(moves):
    return {(*divmod(move, moves.n_actions), end) for move, end in moves.ends.items()}
