"""The tables of worlds on any lattice, and of environments that other people wrote."""

from __future__ import annotations

from collections.abc import Iterable

from common.tables import Key, Table, methods, of, parts

WORLDS = Table(
    "setting",
    {f"`{name}`": of(setting=name) for name in ("hexagon-48", "square-48", "torus-48", "pose-32", "pose-64")},
    {
        f"`{name}`, unseen": parts("validity/unseen/{part}", method=name)
        for name in ("memory-graph", "path-integration", "path-integration-told", "eswm")
    }
    | {"`eswm`, unsolvable: end": of(metric="validity/unsolvable/end", method="eswm")},
    of(file="worlds"),
)

WORLDS_PERMUTED = Table(
    "share of moves held",
    {
        f"{shape}, `{name}`": of(setting=f"permuted-{shape}-16", method=name, **key)
        for shape in ("hexagon", "square", "diagonal", "torus", "pose")
        for name, key in {"bank": of(metric="share_held"), "memory-graph": {}, "rules": {}, "eswm": {}}.items()
    },
    {str(share): of(at=share) for share in (0.3, 0.5, 0.6, 0.8, 0.9)},
    of(file="worlds", metric="validity/unseen/end"),
)

FOREIGN_METHODS = methods("random", "memory-graph", "rules", "eswm-unknown", "eswm", "eswm-windows")
FOREIGN_CELLS = {
    "FrozenLake 4x4": "frozen-lake-4x4",
    "FrozenLake 8x8": "frozen-lake-8x8",
    "random lakes": "frozen-lake-random",
    "CliffWalking": "cliff-walking",
    "Empty-8x8": "minigrid-empty-8x8",
    "SimpleCrossingS9N1": "minigrid-simple-crossing-s9n1",
    "SimpleCrossingS9N3": "minigrid-simple-crossing-s9n3",
    "MultiRoom-N2": "minigrid-multi-room-n2",
    "POPGym's labyrinth": "popgym-labyrinth",
}

FOREIGN_BANK = Table(
    "success, optimality",
    {name: of(setting=setting) for name, setting in FOREIGN_CELLS.items()}
    | {"FourRooms, 32 poses": of(setting="minigrid-four-rooms-poses-32")},
    {
        name: [of(**key, metric=metric) for metric in ("success_rate", "path_optimality")]
        for name, key in FOREIGN_METHODS.items()
    },
    of(file="foreign", show="value only", digits=2),
    between=", ",
)

FOREIGN_NOTHING = Table(
    "steps to the goal, to the best path",
    {name: of(setting=setting) for name, setting in FOREIGN_CELLS.items()},
    {
        name: [of(**key, metric=metric) for metric in ("steps_to_goal", "steps_to_best_path")]
        for name, key in methods("random", "q-learning", "ppo", "memory-graph", "rules", "eswm", "eswm-windows").items()
    },
    of(file="foreign", show="value only", digits=0),
    between=", ",
)

# README's: the same five questions put to what one writes by hand.
FRONT = Table(
    "",
    {
        "way from a memory bank, 37 locations: optimality": of(
            file="navigate", setting="random-wall-37", metric="path_optimality", digits=2
        ),
        "locations seen in 25 moves": of(file="explore", setting="random-wall-37", metric="unique_locations", digits=1),
        "FourRooms, windows of 32 poses: success": of(
            file="foreign", setting="minigrid-four-rooms-poses-32", metric="success_rate", digits=2
        ),
        "FrozenLake 8x8 from nothing: steps to the best path": of(
            file="foreign", setting="frozen-lake-8x8", metric="steps_to_best_path", digits=0
        ),
        "1,027 locations from nothing: steps to see all": of(
            file="large", setting="hexagon-1027", metric="online_steps", digits=0
        ),
    },
    {
        "Q-learning": of(method="q-learning"),
        "graph of what happened": of(method="memory-graph"),
        "coordinates": of(method="path-integration"),
        "rules": of(method="rules"),
        "ESWM": of(method="eswm"),
    },
    of(show="value only"),
)

LARGE_WORLDS = {
    "1,027 hexagons": "hexagon-1027",
    "9,919 hexagons": "hexagon-9919",
    "1,024 squares": "square-1024",
    "1,024 squares, actions unknown": "permuted-square-1024",
}


def large(names: Iterable[str], methods: Iterable[str], **columns: Key) -> Table:
    """Large worlds, a line for each method; columns with underscores for spaces."""
    return Table(
        "world",
        {
            f"{name}, `{method}`": of(setting=LARGE_WORLDS[name], method=method)
            for name in names
            for method in methods
            if (name.endswith("unknown") and method != "path-integration")
            or (not name.endswith("unknown") and method != "rules")
        },
        {title.replace("_", " "): key for title, key in columns.items()},
        of(file="large"),
    )


LARGE = large(
    LARGE_WORLDS,
    ("memory-graph", "path-integration", "rules", "eswm"),
    CPU_seconds=of(metric="cpu_seconds", digits=1),
    recall=of(metric="recall"),
    precision=of(metric="precision"),
    success=of(metric="success_rate"),
    steps_over_shortest_path=of(metric="path_ratio"),
)

LARGE_ONLINE = large(
    [name for name in LARGE_WORLDS if not name.endswith("unknown")],
    ("memory-graph", "path-integration", "eswm"),
    steps=of(metric="online_steps", digits=0),
    CPU_milliseconds_a_step=of(metric="online_ms_per_step", digits=1),
    success_then=of(metric="online_success_rate"),
    steps_over_shortest_path_then=of(metric="online_path_ratio"),
)

LARGE_WALL = large(
    ["1,027 hexagons", "1,024 squares"],
    ("memory-graph", "path-integration", "eswm", "eswm-no-adapt"),
    success=of(metric="wall_success_rate"),
    steps_over_shortest_path=of(metric="wall_path_ratio"),
)

LARGE_GROWTH = Table(
    "measure",
    {
        "CPU seconds": of(metric="cpu_seconds", digits=0),
        "megabytes": of(metric="megabytes", digits=0),
        "recall": of(metric="recall"),
        "steps over shortest path": of(metric="path_ratio", digits=2),
    },
    {f"{n:,}": of(at=n) for n in (331, 1027, 2977, 9919, 30301)},
    of(file="large", setting="hexagon", method="eswm"),
)

WORLD_TABLES = {
    "front": FRONT,
    "large": LARGE,
    "large-online": LARGE_ONLINE,
    "large-wall": LARGE_WALL,
    "large-growth": LARGE_GROWTH,
    "worlds": WORLDS,
    "worlds-permuted": WORLDS_PERMUTED,
    "foreign-bank": FOREIGN_BANK,
    "foreign-nothing": FOREIGN_NOTHING,
}
