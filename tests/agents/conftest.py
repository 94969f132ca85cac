"""Rooms and models that many tests of agents share."""

import numpy as np
import pytest

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent
from eswm_gym.rooms import Room


@pytest.fixture
def room():
    """19 locations; states are locations plus 10; a wall of three."""
    return Room(2, states=np.arange(10, 29), walls=[8, 9, 10])


@pytest.fixture
def small(room):
    """The same room in the environment's vocabulary."""
    return Room(2, states=room.states - 10, walls=np.flatnonzero(room.walls))


@pytest.fixture(scope="module")
def pretrained():
    return ESWMAgent.from_pretrained("random-wall")
