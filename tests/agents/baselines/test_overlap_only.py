"""Overlap of views with constants in place of what a model learns."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.baselines import MapOnly
from eswm_gym.agents.baselines.overlap_only import OverlapOnly
from eswm_gym.rooms.grid import GridBatch, GridConfig, GridSource, pose_index, rows_of
from eswm_gym.world_model.evaluate import evaluate

LEFT, RIGHT, FORWARD = 0, 1, 2
ROOMS = GridSource(GridConfig())

# A room without walls in it, 7 x 7 cells of coloured floor.
LAYOUT = np.pad(np.random.default_rng(0).integers(2, 9, (7, 7)), 1, constant_values=1).astype(np.int8)
ROOM = GridBatch.of(LAYOUT[None])


def transitions(*moves):
    """(N, 51) true transitions of moves (x, y, heading, action); heading 3 is up."""
    pose, action = [pose_index(9, *move[:3]) for move in moves], [move[3] for move in moves]
    return torch.from_numpy(rows_of(ROOM, np.array([pose]), np.array([action]))[0])


@pytest.mark.parametrize("make", [OverlapOnly, MapOnly.for_errors], ids=["overlap", "map"])
def test_right_where_the_bank_determines_the_answer(make):
    found = evaluate(make(), ROOMS, n_rooms=8, seed=5, chunk=8)
    for kind in ("unseen", "seen"):
        for part in ("source", "action", "end"):
            assert found[f"accuracy/{kind}/{part}"] > 0.8, part
    for part in ("source", "end"):
        assert found[f"cells/unseen/{part}"] > 0.95
        assert found.get(f"accuracy/unsolvable/{part}", 1) > 0.8


def test_weights_for_errors_are_better_where_there_are_some():
    noisy = replace(ROOMS, wrong_cells=(0.1, 0.1))
    strict, lenient = (
        evaluate(model, noisy, n_rooms=8, seed=5, chunk=8) for model in (MapOnly(), MapOnly.for_errors())
    )
    for part in ("source", "end"):
        assert lenient[f"cells/unseen/{part}"] > strict[f"cells/unseen/{part}"] + 0.02
    assert lenient["cells/unseen/end"] > 0.8


@pytest.mark.parametrize("make", [OverlapOnly, MapOnly.for_errors], ids=["overlap", "map"])
def test_sees_a_wrong_cell_as_the_memories_show_it(make):
    """At (4, 6), looking up, one sees columns 2 to 6 of rows 2 to 6."""
    model = make()
    bank = model.encode(transitions((4, 6, 3, LEFT), (4, 6, 3, RIGHT), (4, 5, 3, LEFT), (4, 5, 3, RIGHT))[None])
    true = transitions((4, 6, 3, LEFT))[:, :25]
    wrong = true.clone()
    wrong[0, 7] = 2 + (true[0, 7] - 1) % 7
    wrong[0, 12] = 0
    p, unknown, _ = model.look(bank, wrong[None])
    assert torch.equal(p[0].argmax(-1), true) and unknown[0, 0] < 0.5


def test_trusts_what_it_sees_unless_told_that_there_may_be_errors():
    bank = transitions((4, 6, 3, LEFT), (4, 6, 3, RIGHT), (4, 5, 3, LEFT), (4, 5, 3, RIGHT))[None]
    true = transitions((4, 6, 3, LEFT))[:, :25]
    wrong = true.clone()
    wrong[0, 7] = 2 + (true[0, 7] - 1) % 7
    seen = [
        model.look(model.encode(bank), wrong[None]).cells[0].argmax(-1) for model in (MapOnly(), MapOnly.for_errors())
    ]
    assert torch.equal(seen[0], wrong) and torch.equal(seen[1], true)


@pytest.mark.parametrize("n", [1, 4])
def test_an_empty_bank_shows_what_the_given_view_shows(n):
    model = OverlapOnly()
    step = transitions((4, 6, 3, FORWARD))[None]
    query = step.clone()
    query[..., 26:] = -1
    answer = model(torch.full((1, n, 51), -1), query)
    assert answer.end.isfinite().all() and answer.unknown.isfinite().all()
    assert answer.unknown[0, 0, 1] > 0  # nothing shows row 1, at the far end
    near = torch.arange(25) % 5 > 0  # all cells but the farthest
    assert torch.equal(answer.end[0, 0].argmax(-1)[near], step[0, 0, 26:][near])


@pytest.mark.parametrize("seed", range(2))
def test_the_agent_with_it_arrives(seed):
    env = gym.make("ESWM-MiniGrid-v0").unwrapped
    obs, info = env.reset(seed=seed)
    agent = ESWMAgent(OverlapOnly(), seed=0)
    agent.reset(obs, info)
    done, steps = False, 0
    while not done and steps < 60:
        action = agent.act(obs, info)
        following, _, done, _, info = env.step(action)
        agent.observe(obs, action, following, info)
        obs, steps = following, steps + 1
    assert done
