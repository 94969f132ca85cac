"""The tables of rooms seen through a camera."""

from __future__ import annotations

from common.tables import Table, methods, of

METHODS = ("majority", "nearest-memory", "pose-graph", "untrained", "no-bank", "eswm")
KINDS = {
    "views overlap": "indoor-overlap",
    "views do not overlap": "indoor-no-overlap",
    "views of the bank, no overlap": "indoor-bank-views",
}
SIZES = (1, 2, 4, 8, 16, 32)

ACTIONS = Table(
    "method",
    methods(*METHODS),
    {
        f"{label}: {name}": [of(setting=setting, metric=metric, digits=digits) for metric, digits in some]
        for label, setting in KINDS.items()
        for name, some in (
            ("displacement / rotation", (("accuracy/displacement", 2), ("accuracy/rotation", 2))),
            ("metres / degrees", (("median_metres", 2), ("median_degrees", 1))),
        )
    },
    of(file="indoor", show="value only"),
)

VIEWS = Table(
    "method",
    methods(*METHODS),
    {
        f"{label}: {name}": of(setting=setting, metric=metric, digits=2)
        for label, setting in KINDS.items()
        for name, metric in (("cosine", "cosine/end"), ("retrieval", "retrieval/end"))
    },
    of(file="indoor"),
)

GROWTH = Table(
    "method",
    methods("nearest-memory", "pose-graph", "no-bank", "eswm"),
    {
        f"{size} {'memory' if size == 1 else 'memories'}": [
            of(metric=metric, at=size, digits=2) for metric in ("accuracy/displacement", "accuracy/rotation")
        ]
        for size in SIZES
    },
    of(file="indoor", setting="indoor-no-overlap", show="value only"),
)

NAVIGATION = Table(
    "method",
    methods("random", "pose-graph", "eswm-no-editing", "eswm", "oracle"),
    {
        f"{label}: {name}": of(setting=setting, metric=metric, digits=2)
        for label, setting in (("to a picture", "indoor-navigation"), ("a door closed", "indoor-door-closed"))
        for name, metric in (("success", "success_rate"), ("way over the shortest", "path_ratio"))
    },
    of(file="indoor"),
)

INDOOR_TABLES = {
    "indoor-actions": ACTIONS,
    "indoor-views": VIEWS,
    "indoor-growth": GROWTH,
    "indoor-navigation": NAVIGATION,
}
