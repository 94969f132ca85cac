"""Floor and ceiling, against what they promise, in rooms that are drawn anew."""

from __future__ import annotations

import pytest
import torch

from eswm_gym.rooms import PAPER_MIX, LatticeSource, RoomConfig
from eswm_gym.world_model.eswm import ModelConfig
from eswm_gym.world_model.evaluate import evaluate
from eswm_gym.world_model.lookup import Lookup, PathIntegrator, lay_out

#  0 -E-> 1 -E-> 2, 2 bumps into a wall to the east; 3 -NE-> 4 elsewhere.
BANK = torch.tensor([[[0, 0, 1], [1, 0, 2], [2, 0, 2], [3, 1, 4], [-1, -1, -1]]])
CONFIG = ModelConfig(n_states=8)
IDK = (8, 6, 8)


def answers(model, queries) -> list[int]:
    query = torch.tensor([queries])
    prediction = model(BANK, query)
    masked = (query < 0).int().argmax(2)[0].tolist()
    return [int(prediction.head(m)[0, q].argmax()) for q, m in enumerate(masked)]


SEEN = {(0, 0, -1): 1, (-1, 0, 2): 1, (3, -1, 4): 1, (2, 0, -1): 2, (2, -1, 2): 0}
REVERSED = {(1, 3, -1): 0, (-1, 3, 1): 2, (4, -1, 3): 4}
NOWHERE = {(2, 1, -1): 8, (-1, 4, 0): 8, (0, -1, 3): 6, (7, 1, -1): 8, (3, 0, -1): 8, (0, -1, 2): 6}


@pytest.mark.parametrize("kind", [Lookup, PathIntegrator])
def test_memories_and_their_reverses_are_found_and_nothing_is_made_up(kind):
    known = SEEN | REVERSED | NOWHERE
    assert answers(kind(CONFIG), list(known)) == list(known.values())


def test_the_path_integrator_composes_moves_and_the_lookup_does_not():
    """0 -E-> 1 and 0 -NE-> 2, so that 2 lies north-west of 1; 3 lies beside the wall to the east of 1."""
    bank = torch.tensor([[[0, 0, 1], [0, 1, 2], [1, 0, 1], [1, 1, 3]]])
    query = torch.tensor([[[1, 2, -1], [1, -1, 2], [-1, 2, 2], [3, 5, -1]]])
    masked = (2, 1, 0, 2)
    right = (2, 2, 1, 3)
    for kind, expected in ((Lookup, [IDK[m] for m in masked]), (PathIntegrator, list(right))):
        found = kind(CONFIG)(bank, query)
        assert [int(found.head(m)[0, q].argmax()) for q, m in enumerate(masked)] == expected


def test_lay_out():
    cluster, place = lay_out(BANK, 8)
    assert cluster.tolist() == [[0, 0, 0, 3, 3, -1, -1, -1]]
    assert place[0, :5].tolist() == [[0, 0], [1, 0], [2, 0], [0, 0], [1, -1]]


def test_figures_in_rooms():
    """All is known in an open arena and along a trajectory; a lookup knows what was seen."""
    arena = LatticeSource(RoomConfig.open_arena(), mix=PAPER_MIX)
    walk = LatticeSource(RoomConfig.random_wall(2), "trajectory", mix=PAPER_MIX, components=(2,))
    for source in (arena, walk):
        config = ModelConfig(n_states=64)
        ceiling, floor = (evaluate(kind(config), source, 100) for kind in (PathIntegrator, Lookup))
        for name, value in ceiling.items():
            if name.startswith("validity"):
                assert value == 1, name
        assert floor["validity/seen/end"] == 1 and 0.2 < floor["accuracy/unseen/end"] < 0.7
        assert ("accuracy/unseen/source" in floor) == (source is arena)
