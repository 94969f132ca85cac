"""Every model that this project trains, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from eswm_gym.rooms import PAPER_MIX, RoomConfig
from eswm_gym.rooms.grid import GridConfig
from eswm_gym.world_model.data import Source
from eswm_gym.world_model.emwm import EMWMConfig
from eswm_gym.world_model.eswm import END, ModelConfig
from eswm_gym.world_model.grid_data import GridSource
from eswm_gym.world_model.recurrent import RecurrentConfig
from eswm_gym.world_model.tem_t import TEMTConfig
from eswm_gym.world_model.transformer import TransformerConfig
from eswm_gym.world_model.view_transformer import ViewTransformerConfig


@dataclass(frozen=True)
class Preset:
    """A model, what it is trained on, how, and what it is measured on.

    Attributes:
        model: its shape.
        sources: mixture of training problems.
        settings: named problems of the held-out evaluation; a room family stands for minimal banks and the paper's
            queries.
        rooms, queries: banks in a training batch and queries of each.
        lr: peak learning rate.
        decay_from: share of the run after which the learning rate falls linearly to nearly nothing.
    """

    model: ModelConfig
    sources: tuple[Source | GridSource, ...]
    settings: Mapping[str, RoomConfig | GridConfig | Source]
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

_UNSEEN_ONLY = (1.0, 0.0, 0.0, 0.0)
# Trained on the states with an odd number of ones among their bits and tested on the others: of odd numbers the last
# bit is always 1, and no model could learn to predict another.
_ODD, _EVEN = (tuple(s for s in _STATES if s.bit_count() % 2 == odd) for odd in (1, 0))


def _comparison(
    prefix: str, codec: Literal["integer", "binary"], train: Source, settings: Mapping[str, Source]
) -> dict[str, Preset]:
    """The paper's comparison of architectures on its own problems: each with about a million parameters."""
    n_states = 2**6 if codec == "binary" else 37

    def on_trajectories(source: Source) -> Source:
        return replace(source, bank="trajectory", components=(END,))

    walked = on_trajectories(train)
    walked_settings = {name: on_trajectories(source) for name, source in settings.items()}
    transformer = TransformerConfig(n_states, dim=144, layers=4, relational=False, readout="classes", codec=codec)
    relational = TransformerConfig(n_states, dim=128, layers=4, state_embeddings=False)
    lstm = RecurrentConfig(n_states, dim=174, layers=4, cell="lstm", codec=codec)
    mamba = RecurrentConfig(n_states, dim=168, layers=5, cell="mamba", codec=codec)
    tem_t = TEMTConfig(n_states, dim=144, layers=4, codec=codec)
    emwm = EMWMConfig(n_states, dim=396, codec=codec)
    return {
        f"{prefix}-t": Preset(transformer, (train,), settings),
        f"{prefix}-t-relational": Preset(relational, (train,), settings),
        # These read the whole bank anew for each query: many rooms with few queries teach more for the same work.
        f"{prefix}-lstm": Preset(lstm, (train,), settings, rooms=128, queries=1),
        f"{prefix}-mamba": Preset(mamba, (train,), settings, rooms=128, queries=1),
        f"{prefix}-tem-t": Preset(tem_t, (walked,), walked_settings),
        f"{prefix}-emwm": Preset(emwm, (walked,), walked_settings),
    }


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
    **_comparison(
        "rw",
        "integer",
        Source(RoomConfig.random_wall(3), mix=PAPER_MIX),
        {"random-wall-37": Source(RoomConfig.random_wall(3), mix=PAPER_MIX)},
    ),
    **_comparison(
        "oa",
        "binary",
        Source(RoomConfig.open_arena(states=_ODD), mix=_UNSEEN_ONLY),
        {
            "open-arena-seen": Source(RoomConfig.open_arena(states=_ODD), mix=_UNSEEN_ONLY),
            "open-arena-unseen": Source(RoomConfig.open_arena(states=_EVEN), mix=_UNSEEN_ONLY),
        },
    ),
}
