"""The tables of worlds on any lattice, and of environments that other people wrote."""

from __future__ import annotations

from common.tables import Table, methods, of, parts

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

FOREIGN_METHODS = methods("random", "memory-graph", "rules", "eswm-unknown", "eswm")
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
        for name, key in methods("random", "q-learning", "ppo", "memory-graph", "rules", "eswm").items()
    },
    of(file="foreign", show="value only", digits=0),
    between=", ",
)

LARGE = Table(
    "world",
    {
        f"{name}, `{method}`": of(setting=setting, method=method)
        for name, setting in {"1,027 hexagons": "hexagon-1027", "1,024 squares": "square-1024"}.items()
        for method in ("memory-graph", "path-integration", "eswm", "eswm-closed")
    },
    {
        title: of(metric=metric)
        for title, metric in {
            "CPU seconds": "cpu_seconds",
            "recall": "recall",
            "precision": "precision",
            "success": "success_rate",
            "steps over shortest path": "path_ratio",
        }.items()
    },
    of(file="large"),
)

WORLD_TABLES = {
    "large": LARGE,
    "worlds": WORLDS,
    "worlds-permuted": WORLDS_PERMUTED,
    "foreign-bank": FOREIGN_BANK,
    "foreign-nothing": FOREIGN_NOTHING,
}
