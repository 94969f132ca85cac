"""The map that answers without anything learned, and the model that has learned nothing."""

import gymnasium as gym
import numpy as np
import pytest
import torch

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.baselines import MapOnly
from eswm_gym.rooms.grid import GridBatch, GridConfig, GridSource, pose_index, rows_of
from eswm_gym.world_model.evaluate import evaluate
from eswm_gym.wrappers import MemoryBankObservation

LEFT, RIGHT, FORWARD = 0, 1, 2


# A room without walls in it, 7 x 7 cells of coloured floor.
LAYOUT = np.pad(np.random.default_rng(0).integers(2, 9, (7, 7)), 1, constant_values=1).astype(np.int8)
ROOM = GridBatch.of(LAYOUT[None])


def transitions(*moves):
    """(N, 51) true transitions of moves (x, y, heading, action); heading 3 is up."""
    pose, action = [pose_index(9, *move[:3]) for move in moves], [move[3] for move in moves]
    return torch.from_numpy(rows_of(ROOM, np.array([pose]), np.array([action]))[0])


def ask(bank, query, masked):
    """Each query's (N, 51) view of 25 cells in place of the masked one, its action, and whether "I don't know"."""
    query = query.clone()
    query[:, {0: slice(0, 25), 1: slice(25, 26), 2: slice(26, 51)}[masked]] = -1
    answer = MapOnly()(bank[None], query[None])
    at = torch.full((1, len(query)), masked)
    return answer.masked_view(at)[0].argmax(-1), answer.action[0].argmax(-1), answer.masked_unknown(at)[0] > 0


def test_sees_what_memories_and_the_given_view_show():
    """At (4, 6), looking up, one sees columns 2 to 6 of rows 2 to 6; turned left, columns 0 to 4 of rows 4 to 8."""
    bank = transitions((4, 6, 3, LEFT))
    known = transitions((4, 6, 3, LEFT), (4, 6, 2, RIGHT), (4, 6, 2, FORWARD))
    view, _, unknown = ask(bank, known, 2)
    assert not unknown.any()
    assert torch.equal(view, known[:, 26:])
    unseen = transitions((4, 6, 3, FORWARD), (4, 6, 3, RIGHT))  # they show row 1, and columns 5 to 8 of rows 4 to 8
    assert ask(bank, unseen, 2)[2].tolist() == [True, True]
    more = torch.cat([bank, transitions((4, 5, 3, LEFT))])  # shows row 1, columns 2 to 6
    view, _, unknown = ask(more, unseen, 2)
    assert unknown.tolist() == [False, True]
    assert torch.equal(view[0], unseen[0, 26:])
    view, _, unknown = ask(torch.full((1, 51), -1), known, 2)  # without memories
    assert unknown.tolist() == [True, True, False]  # before a wall, a step ahead shows nothing new
    assert torch.equal(view[2], known[2, 26:])


def test_sources_and_actions():
    bank = transitions((4, 6, 3, LEFT), (4, 5, 3, LEFT), (4, 6, 3, FORWARD))
    true = transitions((4, 6, 3, FORWARD), (4, 6, 2, RIGHT), (4, 5, 3, LEFT))
    view, _, unknown = ask(bank, true, 0)
    assert torch.equal(view, true[:, :25]) and not unknown.any()
    assert ask(bank, true, 1)[1].tolist() == [FORWARD, RIGHT, LEFT]


def test_a_step_that_ends_before_a_wall_was_a_step_into_it_unless_there_is_floor_behind():
    bump = transitions((4, 1, 3, FORWARD))
    assert torch.equal(bump[:, :25], bump[:, 26:])
    assert torch.equal(ask(bump, bump, 0)[0], bump[:, :25])  # nothing shows row 2, which is behind
    step = transitions((4, 2, 3, FORWARD))
    assert torch.equal(step[:, 26:], bump[:, 26:])
    floor_behind = transitions((4, 3, 3, FORWARD))  # seen from behind it
    assert torch.equal(ask(torch.cat([bump, step, floor_behind]), bump, 0)[0], step[:, :25])


def test_right_wherever_the_bank_determines_the_answer():
    """By the rules, which know the rooms."""
    found = evaluate(MapOnly(), GridSource(GridConfig()), n_rooms=20, seed=5, chunk=20)
    for metric, value in found.items():
        assert value == 1 or not metric.startswith(("accuracy", "cells")), metric


@pytest.mark.parametrize("seed", range(4))
def test_the_agent_with_it_arrives(seed):
    env = MemoryBankObservation(gym.make("ESWM-MiniGrid-v0"))
    obs, info = env.reset(seed=seed)
    agent, shortest = ESWMAgent(MapOnly(), seed=0).spawn(1), info["shortest_path_length"]
    agent.reset(obs, info)
    steps, done = 0, False
    while not done and steps < 60:
        action = agent.act(obs, info)
        next_obs, _, done, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        obs, steps = next_obs, steps + 1
    assert done and steps == shortest


def test_it_has_no_activations_to_look_at():
    model = MapOnly()
    bump = transitions((4, 1, 3, FORWARD))[None]
    with pytest.raises(NotImplementedError, match="MapOnly has no tokens"):
        model.activations(model.encode(bump), bump)
