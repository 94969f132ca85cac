"""Every model that this project trains, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from eswm_gym.rooms import (
    CODES,
    N_NAMES,
    PAPER_MIX,
    SEEN_ONLY,
    UNSEEN_ONLY,
    LatticeSource,
    RegionConfig,
    RoomConfig,
    lattice_of,
)
from eswm_gym.rooms.grid import GridConfig, GridSource
from eswm_gym.rooms.transitions import ACTION, END
from eswm_gym.world_model.codecs import CodecName
from eswm_gym.world_model.emwm import EMWMConfig
from eswm_gym.world_model.overlap_model import OverlapConfig
from eswm_gym.world_model.preset import Preset
from eswm_gym.world_model.recurrent import RecurrentConfig
from eswm_gym.world_model.tem_t import TEMTConfig
from eswm_gym.world_model.transformer import TransformerConfig
from eswm_gym.world_model.view_transformer import ViewTransformerConfig

__all__ = ["PRESETS", "Preset"]

# One vocabulary for all rooms, as large as Open Arena's. The model embeds no states, so that it costs nothing.
_STATES = tuple(range(64))
_LOOPED = TransformerConfig(n_states=64, dim=128, layers=2, loops=7, state_embeddings=False)
_RANDOM_WALL = {
    "random-wall-19": LatticeSource(RoomConfig.random_wall(2, states=_STATES), mix=PAPER_MIX),
    "random-wall-37": LatticeSource(RoomConfig.random_wall(3, states=_STATES), mix=PAPER_MIX),
}


def _agent_mixture(radius: int) -> tuple[LatticeSource, ...]:
    """What an agent meets in rooms of this size: the paper's banks first, but also tiny, dense and walked ones."""
    paper = RoomConfig.random_wall(radius, states=_STATES)
    any_region = RoomConfig.random_wall(radius, states=_STATES, hidden=1.0)
    return (
        LatticeSource(paper, "minimal", share=0.6),
        LatticeSource(any_region, "minimal", share=0.1),
        LatticeSource(paper, "dense", share=0.15),
        LatticeSource(paper, "walk", share=0.3),
    )


# An exploring agent names the places around the room too, walls and what lies off the lattice, and asks how they
# lie to each other: rooms without a rim or a wall in sight, larger than any room by one ring.
_SURROUNDINGS = (
    LatticeSource(RoomConfig.open_arena(4, states=_STATES, hidden=1.0), "minimal", share=0.3),
    LatticeSource(RoomConfig.open_arena(3, states=_STATES, hidden=1.0), "minimal", share=0.1),
)

_PAPER_ROOMS = RoomConfig.random_wall(3, states=_STATES)
# Banks that contradict themselves, and banks that fall into two.
_FLAWED = (
    LatticeSource(_PAPER_ROOMS, "minimal", share=0.25, noise=1.0),
    LatticeSource(_PAPER_ROOMS, "dense", share=0.1, noise=1.0, rows=74),
    LatticeSource(_PAPER_ROOMS, "walk", share=0.1, noise=1.0, rows=74),
    LatticeSource(_PAPER_ROOMS, "clusters", share=2.0, mix=(0.5, 0.0, 0.5, 0.0)),
)

# Any lattice. Of a region of unknown shape no one can tell where its lattice ends, so that is not asked.
_REGION_MIX = (0.7, 0.12, 0.18, 0.0)
_SIZES = {"hexagon": (6,), "square": (12, 12), "diagonal": (12, 12), "torus": (10, 10), "pose": (8, 8)}
_SMALL_TORI = ((3, 5), (4, 4), (4, 5), (5, 5), (6, 6))


def _known(shape: str, share: float) -> tuple[LatticeSource, ...]:
    """Regions of a lattice whose moves the model knows by name, small and large, from banks of all kinds."""

    def source(bank, share_of_bank, rows, most, walls, least=2, held=None, enclosed=0.0):
        rooms = RegionConfig(shape, _SIZES[shape], least, most, walls, enclosed=enclosed)
        return LatticeSource(
            rooms, bank, share * share_of_bank, _REGION_MIX, actions="known", held=held, rows=rows
        )  # fmt: skip

    return (
        source("minimal", 0.33, 48, most=30, walls=18),
        source("minimal", 0.25, 96, most=64, walls=32, least=24),
        source("chain", 0.2, 64, most=64, walls=32),
        source("dense", 0.08, 96, most=40, walls=20, held=(0.2, 1.0)),
        source("walk", 0.06, 48, most=40, walls=0, enclosed=0.5),
        source("walk", 0.08, 96, most=60, walls=0, enclosed=1.0),
    )


def _permuted(shape: str, size: tuple[int, ...], share: float) -> tuple[LatticeSource, ...]:
    """Small regions of a lattice where the model has to find out what each action does."""

    def source(bank, share_of_bank, rows, most, held=None, enclosed=0.0):
        rooms = RegionConfig(shape, size, 2, min(most, n_locations), enclosed=enclosed)
        return LatticeSource(rooms, bank, share * share_of_bank, _REGION_MIX, actions="permuted", held=held, rows=rows)

    n_locations = lattice_of(shape, size).n_locations
    few = len(lattice_of(shape, size).actions) < 6
    return (
        source("dense", 0.4, 48, most=14 if few else 9, held=(0.4, 1.0)),
        source("dense", 0.35, 96, most=24 if few else 18, held=(0.4, 1.0)),
        source("walk", 0.25, 48, most=20, enclosed=1.0),
    )


_LATTICES = {
    f"{shape}-{most}": LatticeSource(
        RegionConfig(shape, _SIZES[shape], least, most), mix=PAPER_MIX, actions="known", rows=96
    )
    for shape, least, most in (
        ("hexagon", 24, 48),
        ("square", 24, 48),
        ("torus", 24, 48),
        ("pose", 16, 32),
        ("pose", 48, 64),
    )
} | {
    f"permuted-{shape}-16": LatticeSource(
        RegionConfig(shape, (4, 4) if shape == "torus" else _SIZES[shape], 8, 16),
        "dense",
        mix=PAPER_MIX,
        actions="permuted",
        held=(0.7, 0.95),
        rows=96,
    )
    for shape in _SIZES
}

_COVER = GridSource(GridConfig(), "cover", hidden=0.6)
_ERRORS = (0.0, 0.15)  # least and greatest share of wrong cells in training
_VIEWS = (
    replace(_COVER, share=0.2, looks=0.08),
    replace(_COVER, share=0.3, looks=0.08, wrong_cells=_ERRORS),
    GridSource(GridConfig(), "walk", share=0.25, steps=60, looks=0.08),
    GridSource(GridConfig(), "walk", share=0.25, steps=60, looks=0.08, wrong_cells=_ERRORS),
)
_VIEW_SETTINGS = {"minigrid": _COVER} | {
    f"minigrid-noise-{percent}": replace(_COVER, wrong_cells=(percent / 100, percent / 100)) for percent in (5, 10, 15)
}

_TINY = RoomConfig.random_wall(1, wall_length=(0, 1), hidden=0.3)
# Trained on the states with an odd number of ones among their bits and tested on the others: of odd numbers the last
# bit is always 1, and no model could learn to predict another.
_ODD, _EVEN = (tuple(s for s in _STATES if s.bit_count() % 2 == odd) for odd in (1, 0))
_CONTEXT = 6  # moves that lead to where a query starts, in rooms with duplicate states
_PAPER_WALL = LatticeSource(RoomConfig.random_wall(3), mix=PAPER_MIX)
_SMALL_WALL = LatticeSource(RoomConfig.random_wall(2, states=tuple(range(37))), mix=PAPER_MIX)
_OPEN_ARENA = LatticeSource(RoomConfig.open_arena(states=_ODD), mix=UNSEEN_ONLY)
_OPEN_ARENA_SETTINGS = {
    "open-arena-seen": _OPEN_ARENA,
    "open-arena-unseen": replace(_OPEN_ARENA, rooms=RoomConfig.open_arena(states=_EVEN)),
}


def _part(train: LatticeSource, locations: int) -> LatticeSource:
    """Problems about a part of a room."""
    return replace(train, rooms=replace(train.rooms, observed=locations))  # type: ignore[arg-type]  # a RoomConfig


def _lessons(train: LatticeSource) -> tuple[tuple[int, LatticeSource], ...]:
    """The smallest parts of rooms, at first about what the bank holds."""
    return (700, replace(_part(train, 3), mix=SEEN_ONLY)), (1600, _part(train, 3)), (1800, _part(train, 4))


def _parts(train: LatticeSource) -> tuple[LatticeSource, ...]:
    """Parts of rooms, small ones above all: of these ten cost as much as one whole room, and teach the same."""
    sizes = ((4, 0.5), (5, 1.0), (7, 1.5), (10, 1.5), (14, 1.0))
    return tuple(replace(_part(train, locations), share=share) for locations, share in sizes)


def _comparison(
    prefix: str,
    codec: CodecName,
    train: LatticeSource,
    settings: Mapping[str, LatticeSource],
    also: Mapping[str, LatticeSource] = MappingProxyType({}),
) -> dict[str, Preset]:
    """The paper's comparison of architectures on its own problems: each with about a million parameters.

    Args:
        prefix: of their names.
        codec: of states.
        train: what they are trained on.
        settings: what they are measured on.
        also: further settings, which recurrent models are trained on and measured on.
    """
    n_states = 2**6 if codec == "binary" else 37

    def ends(source: LatticeSource) -> LatticeSource:
        return replace(source, components=(END,))

    def with_duplicates(source: LatticeSource, fewest: int, most: int) -> LatticeSource:
        rooms = replace(source.rooms, duplicates=(fewest, most))  # type: ignore[arg-type]  # a RoomConfig
        # Few walks end beside what is unobserved: those that do make up for the others.
        unseen, seen, unsolvable, off_lattice = source.mix
        mix = (unseen, seen, 10 * unsolvable, off_lattice)
        return replace(source, rooms=rooms, mix=mix, components=(ACTION, END), context=_CONTEXT)

    hides = train.rooms.hidden  # type: ignore[union-attr]  # a RoomConfig
    usual = 0 if hides else train.capacity  # where nothing is hidden, all banks hold as many
    walked = replace(train, bank="trajectory")
    walked_settings = {name: replace(source, bank="trajectory") for name, source in settings.items()}
    transformer = TransformerConfig(
        n_states, dim=144, layers=4, relational=False, readout="classes", codec=codec, usual_memories=usual
    )
    relational = TransformerConfig(n_states, dim=128, layers=4, state_embeddings=False, usual_memories=usual)
    lstm = RecurrentConfig(n_states, dim=174, layers=4, cell="lstm", codec=codec)
    mamba = RecurrentConfig(n_states, dim=168, layers=5, cell="mamba", codec=codec)
    tem_t = TEMTConfig(n_states, dim=144, layers=4, codec=codec)
    emwm = EMWMConfig(n_states, dim=396, codec=codec)
    # These read the whole bank anew for each query: many rooms with few queries teach more for the same work. In small
    # parts of rooms (ours) they find within minutes what they do not find in whole ones: to look a memory up, to turn
    # it round, to join two.
    recurrent = Preset(
        lstm,
        (train, *also.values(), *_parts(train)),
        {**also, **settings},
        rooms=256,
        queries=1,
        decay_from=0.5,
        lessons=_lessons(train),
    )
    return {
        f"{prefix}-t": Preset(transformer, (train,), settings),
        f"{prefix}-t-duplicates": Preset(
            replace(transformer, context=_CONTEXT, usual_memories=0),
            (replace(with_duplicates(train, 0, 3), doubtful=0.5),),
            {name: with_duplicates(source, 0, 0) for name, source in settings.items()}
            | {f"{name}-duplicates": with_duplicates(source, 1, 3) for name, source in settings.items()},
            rooms=64,
            queries=12,
        ),
        f"{prefix}-t-relational": Preset(relational, (train,), settings),
        f"{prefix}-t-trajectory": Preset(transformer, (walked,), walked_settings),
        f"{prefix}-t-relational-trajectory": Preset(relational, (walked,), walked_settings),
        f"{prefix}-lstm": replace(recurrent, lr=4e-3),
        f"{prefix}-mamba": replace(recurrent, model=mamba, rooms=128),
        # These complete end states alone.
        f"{prefix}-tem-t": Preset(tem_t, (ends(walked),), {k: ends(source) for k, source in walked_settings.items()}),
        f"{prefix}-emwm": Preset(emwm, (ends(train),), {k: ends(source) for k, source in settings.items()}),
    }


def _ablations() -> dict[str, Preset]:
    """Small models: layers and heads in Open Arena; in Random Wall our additions to the paper's transformer."""
    arena = TransformerConfig(64, dim=96, relational=False, readout="classes", codec="binary")
    shapes = [(6, 2), (6, 4), (6, 8), (6, 16), (2, 8), (4, 8), (8, 8)]
    wall = TransformerConfig(37, dim=96, layers=4, relational=False, readout="classes")
    attention = {
        "cross": wall,
        "cross-relations": replace(wall, relational=True),
        "joint": replace(wall, query_attention="joint"),
        "joint-relations": replace(wall, query_attention="joint", relational=True),
        "cross-unaligned": replace(wall, aligned=False),
    }
    return {
        f"oa-small-{layers}l-{heads}h": Preset(
            replace(arena, layers=layers, heads=heads), (_OPEN_ARENA,), _OPEN_ARENA_SETTINGS
        )
        for layers, heads in shapes
    } | {
        f"rw-small-{name}": Preset(
            model,
            (_PAPER_WALL,),
            {"random-wall-37": _PAPER_WALL},
            *((128, 1) if model.query_attention == "joint" else (32, 64)),
        )
        for name, model in attention.items()
    }


_WALL_COMPARISON = _comparison(
    "rw", "integer", _PAPER_WALL, {"random-wall-37": _PAPER_WALL}, {"random-wall-19": _SMALL_WALL}
)
_ARENA_COMPARISON = _comparison("oa", "binary", _OPEN_ARENA, _OPEN_ARENA_SETTINGS)
_WALL_DUPLICATES, _ARENA_DUPLICATES = _WALL_COMPARISON["rw-t-duplicates"], _ARENA_COMPARISON["oa-t-duplicates"]

PRESETS = {
    # The shipped agent's model.
    "random-wall": Preset(
        model=_LOOPED,
        sources=_agent_mixture(3) + _agent_mixture(2) + _SURROUNDINGS + _FLAWED,
        settings=_RANDOM_WALL,
        rooms=16,
        queries=128,
        all_loops_from=0.5,
    ),
    # Any lattice, with actions that are known by name or have to be found out.
    "lattices": Preset(
        model=TransformerConfig(
            n_states=96,
            n_actions=N_NAMES,
            dim=128,
            layers=2,
            loops=7,
            max_memories=96,
            state_embeddings=False,
            codes=len(CODES),
        ),
        sources=(
            *_known("hexagon", 0.13),
            *_known("square", 0.12),
            *_known("diagonal", 0.05),
            *_known("pose", 0.4),
            *(
                source
                for shape in ("hexagon", "square", "diagonal", "pose")
                for source in _permuted(shape, _SIZES[shape], 0.09 if shape == "diagonal" else 0.05)
            ),
            *(source for size in _SMALL_TORI for source in _permuted("torus", size, 0.14 / len(_SMALL_TORI))),
        ),
        settings=_LATTICES,
        rooms=12,
        lr=1e-3,
    ),
    # MiniGrid: egocentric views, some of them with errors, by overlap; and the paper's transformer in our blocks.
    "minigrid": Preset(OverlapConfig(), _VIEWS, _VIEW_SETTINGS, rooms=8, lr=1.5e-3),
    "minigrid-plain": Preset(ViewTransformerConfig(dim=128, layers=6), _VIEWS, _VIEW_SETTINGS, queries=32),
    # A small problem that learns in a minute: for trying things out, and for the tests.
    "tiny": Preset(
        model=TransformerConfig(n_states=7, dim=32, layers=2, heads=2, state_embeddings=False),
        sources=(LatticeSource(_TINY),),
        settings={"random-wall-7": LatticeSource(_TINY, mix=PAPER_MIX)},
        rooms=16,
        queries=16,
    ),
    **_WALL_COMPARISON,
    **_ARENA_COMPARISON,
    # The agent's model where locations share states; it starts from the agent's weights.
    "looped-duplicates": Preset(
        replace(_LOOPED, context=_CONTEXT),
        tuple(
            replace(source, share=share, elsewhere=0.75)  # type: ignore[type-var]  # a LatticeSource
            for share, preset in ((1.0, _WALL_DUPLICATES), (0.5, _ARENA_DUPLICATES))
            for source in preset.sources
        ),
        {**_WALL_DUPLICATES.settings, **_ARENA_DUPLICATES.settings},
        rooms=48,
        queries=48,
        lr=1e-3,
    ),
    # The agent's architecture: deep with few parameters.
    "oa-t-looped": Preset(replace(_LOOPED, usual_memories=_OPEN_ARENA.capacity), (_OPEN_ARENA,), _OPEN_ARENA_SETTINGS),
    # Trained on parts of large arenas, of up to 19 locations, so that it cannot rely on the shape of a room.
    "oa-t-relational-shapes": replace(
        _ARENA_COMPARISON["oa-t-relational"],
        sources=(
            LatticeSource(RoomConfig.open_arena(), share=0.3, mix=UNSEEN_ONLY),
            LatticeSource(RoomConfig.open_arena(4, observed=19), share=0.5, mix=UNSEEN_ONLY),
            LatticeSource(RoomConfig.open_arena(4, observed=10), share=0.2, mix=UNSEEN_ONLY),
        ),
        settings={
            "open-arena-19": LatticeSource(RoomConfig.open_arena(), mix=UNSEEN_ONLY),
            "open-arena-37": LatticeSource(RoomConfig.open_arena(3), mix=UNSEEN_ONLY),
        },
    ),
    # Trained on banks that hold more than they need.
    "rw-t-dense": replace(
        _WALL_COMPARISON["rw-t"],
        sources=(replace(_PAPER_WALL, bank="dense"),),
        settings={"random-wall-37": _PAPER_WALL, "random-wall-37-dense": replace(_PAPER_WALL, bank="dense")},
    ),
    **_ablations(),
}
