"""Another kind of world takes a lattice, a family of rooms and a preset: training, evaluation and the agent are there.

Here it is squares with four actions, in place of hexagons with six.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from eswm_gym.agents import ESWMAgent
from eswm_gym.rooms import Lattice, LatticeSource, RoomConfig, square_lattice
from eswm_gym.world_model import Transformer, TransformerConfig
from eswm_gym.world_model.evaluate import evaluate
from eswm_gym.world_model.presets import Preset
from eswm_gym.world_model.stream import ProblemStream
from eswm_gym.world_model.training import make_optimizers

SQUARES = square_lattice(3, 3)
N = SQUARES.n_locations


@dataclass(frozen=True)
class SquareRooms(RoomConfig):
    """Square rooms."""

    radius: int = 2
    states: tuple[int, ...] = tuple(range(N))

    @property
    def lattice(self) -> Lattice:
        return SQUARES


SOURCE = LatticeSource(SquareRooms())
MODEL = TransformerConfig(n_states=N, n_actions=4, dim=48, layers=2, heads=4, state_embeddings=False, max_memories=24)
PRESET = Preset(MODEL, (SOURCE,), {"squares": SOURCE}, rooms=32, queries=32, lr=5e-3)


@pytest.fixture(scope="module")
def model() -> Transformer:
    """A small model after 100 steps."""
    torch.manual_seed(0)
    model = Transformer(MODEL)
    optimizers = make_optimizers(model, PRESET.lr)
    stream = ProblemStream(PRESET.sources, PRESET.rooms, PRESET.queries, seed=0)
    for step in range(100):
        problems = stream.batch(step)
        model(problems.memories, problems.query).loss(problems).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return model.eval().requires_grad_(False)


def test_it_learns(model):
    """Better than any answer that does not depend on the bank: there are nine states and four actions."""
    found = evaluate(model, SOURCE, n_rooms=40, seed=5)
    assert found["validity/unseen/end"] > 0.5
    assert found["validity/unseen/action"] > 0.6


def test_the_agent_walks_in_it(model):
    """From a dense bank to the far corner and back, on moves that are true."""
    moves = [(i, a, int(SQUARES.neighbors[i, a])) for i, a in np.argwhere(SQUARES.on_lattice).tolist()]
    bank = np.array(moves)[np.random.default_rng(0).permutation(len(moves))[:16]]
    agent = ESWMAgent(model, seed=0)
    state, goal, steps = int(bank[0, 0]), int(bank[-1, 2]), 0
    agent.reset({"state": state, "goal": goal}, {"memory_bank": bank})
    while state != goal and steps < 40:
        mask = SQUARES.on_lattice[state].astype(np.int8)
        action = agent.act({"state": state, "goal": goal}, {"action_mask": mask})
        after = int(SQUARES.neighbors[state, action])
        assert after >= 0
        agent.observe({"state": state, "goal": goal}, action, {"state": after, "goal": goal}, {})
        state, steps = after, steps + 1
    assert state == goal
