"""Every model that this project trains, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eswm_gym.rooms import RoomConfig
from eswm_gym.rooms.grid import GridConfig
from eswm_gym.world_model.data import Source
from eswm_gym.world_model.eswm import ModelConfig
from eswm_gym.world_model.grid_data import GridSource
from eswm_gym.world_model.transformer import TransformerConfig
from eswm_gym.world_model.view_transformer import ViewTransformerConfig


@dataclass(frozen=True)
class Preset:
    """A model, what it is trained on, how, and what it is measured on.

    Attributes:
        model: its shape.
        sources: mixture of training problems.
        settings: named room families of the held-out evaluation (minimal banks, the paper's queries).
        rooms, queries: banks in a training batch and queries of each.
        lr: peak learning rate.
        decay_from: share of the run after which the learning rate falls linearly to nearly nothing.
    """

    model: ModelConfig
    sources: tuple[Source | GridSource, ...]
    settings: Mapping[str, RoomConfig | GridConfig]
    rooms: int = 32
    queries: int = 64
    lr: float = 2e-3
    decay_from: float = 0.1


# One vocabulary for all rooms, as large as Open Arena's. The model embeds no states, so that it costs nothing.
_STATES = tuple(range(64))
_RANDOM_WALL = {
    "random-wall-19": RoomConfig.random_wall(2, states=_STATES),
    "random-wall-37": RoomConfig.random_wall(3, states=_STATES),
}


def _agent_mixture(radius: int) -> tuple[Source, ...]:
    """What an agent meets in rooms of this size: the paper's banks first, but also tiny, dense and walked ones."""
    paper = RoomConfig.random_wall(radius, states=_STATES)
    any_region = RoomConfig.random_wall(radius, states=_STATES, hidden=1.0)
    return (
        Source(paper, "minimal", share=0.6),
        Source(any_region, "minimal", share=0.1),
        Source(paper, "dense", share=0.15),
        Source(paper, "walk", share=0.3),
    )


# An exploring agent names the places around the room too, walls and what lies off the lattice, and asks how they
# lie to each other: rooms without a rim or a wall in sight, larger than any room by one ring.
_SURROUNDINGS = (
    Source(RoomConfig.open_arena(4, states=_STATES, hidden=1.0), "minimal", share=0.3),
    Source(RoomConfig.open_arena(3, states=_STATES, hidden=1.0), "minimal", share=0.1),
)

_GRID = GridConfig()
_VIEWS = (
    GridSource(_GRID, "cover", share=0.65, hidden=0.6),
    GridSource(_GRID, "walk", share=0.35),
)

PRESETS = {
    # The shipped agent's model.
    "random-wall": Preset(
        model=TransformerConfig(n_states=64, dim=128, layers=2, loops=7, heads=4, state_embeddings=False),
        sources=_agent_mixture(3) + _agent_mixture(2) + _SURROUNDINGS,
        settings=_RANDOM_WALL,
    ),
    # MiniGrid: egocentric views, and the paper's plain transformer beside it.
    "minigrid": Preset(
        model=ViewTransformerConfig(dim=128, layers=4),
        sources=_VIEWS,
        settings={"minigrid": _GRID},
        queries=32,
    ),
    "minigrid-plain": Preset(
        model=ViewTransformerConfig(dim=128, layers=6, registration=False),
        sources=_VIEWS,
        settings={"minigrid": _GRID},
        queries=32,
    ),
    # A small problem that learns in a minute: for trying things out, and for the tests.
    "tiny": Preset(
        model=TransformerConfig(n_states=7, dim=32, layers=2, heads=2, state_embeddings=False),
        sources=(Source(RoomConfig.random_wall(1, wall_length=(0, 1), hidden=0.3), "minimal"),),
        settings={"random-wall-7": RoomConfig.random_wall(1, wall_length=(0, 1), hidden=0.3)},
        rooms=16,
        queries=16,
    ),
}
