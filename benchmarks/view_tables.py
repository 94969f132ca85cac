"""The tables of MiniGrid's views."""

from __future__ import annotations

from common.tables import Table, methods, of

KINDS = ("unseen", "unsolvable")
VIEW_MODELS = ("eswm", "eswm-t", "eswm-untrained", "overlap-only", "map-only", "map-votes")

MINIGRID_PREDICT = Table(
    "method, queries",
    {
        f"`{method}`, {kind}": of(method=method, kind=kind)
        for method in (*VIEW_MODELS, "majority", "copy")
        for kind in (KINDS if method in VIEW_MODELS else KINDS[:1])
    },
    {
        "source": of(metric="views/{kind}/source"),
        "its cells": of(metric="cells/{kind}/source"),
        "action": of(metric="accuracy/{kind}/action"),
        "end": of(metric="views/{kind}/end"),
        "the end's cells": of(metric="cells/{kind}/end"),
        '"I don\'t know": source': of(metric="accuracy/{kind}/source"),
        "and end": of(metric="accuracy/{kind}/end"),
    },
    of(file="predict", setting="minigrid"),
)

MINIGRID_ERRORS = Table(
    "method",
    methods(*VIEW_MODELS),
    {
        f"{share:.0%} of cells wrong: {label}": of(file="predict", at=share, metric=f"{metric}/unseen/end")
        for share in (0.05, 0.1, 0.15)
        for label, metric in (("end", "views"), ("its cells", "cells"))
    }
    | {
        "navigation at 5 %: success": of(file="navigate", metric="success_rate"),
        "optimality": of(file="navigate", metric="path_optimality"),
    },
    of(setting="minigrid-noise"),
)

MINIGRID_AGENTS = Table(
    "method",
    methods("random", "memory-graph", *VIEW_MODELS[1:], "eswm-no-editing", "eswm", "oracle"),
    {
        "success": of(file="navigate", metric="success_rate"),
        "optimality": of(file="navigate", metric="path_optimality"),
        **{f"seen after {n} moves": of(file="explore", metric="coverage", at=n) for n in (10, 20, 30, 60)},
        "wall on the way: success": of(file="adapt", metric="success_rate"),
        "optimality then": of(file="adapt", metric="path_optimality"),
    },
    of(setting="minigrid"),
)

LATENT_VIEWS = Table(
    "layer",
    {
        "pose that the model believes": of(at=1),
        "tokens after block 1": of(at=2),
        "tokens after block 2": of(at=3),
        "tokens after block 3": of(at=4),
    },
    {
        "among cells": of(metric="srsa_cells", method="eswm"),
        "among poses of one heading": of(metric="srsa_one_heading", method="eswm"),
        "among cells, untrained": of(metric="srsa_cells", method="untrained"),
        "among poses of one heading, untrained": of(metric="srsa_one_heading", method="untrained"),
    },
    of(file="latent", setting="minigrid"),
)

STOCK_IDS = (
    "Empty-8x8",
    "SimpleCrossingS9N1",
    "SimpleCrossingS9N2",
    "SimpleCrossingS9N3",
    "FourRooms",
    "MultiRoom-N2-S4",
    "MultiRoom-N4-S5",
    "Unlock",
)


STOCK_METHODS = ("random", "recurrent-ppo", "recurrent-ppo-10x", "map-only", "odometry-frontier", "eswm")


def stock(title: str, metric: str, *names: str, digits: int = 2) -> Table:
    """MiniGrid's own ids, a line each, a column for each method."""
    return Table(
        title,
        {name: of(setting=f"minigrid-{name.lower()}-views") for name in STOCK_IDS},
        methods(*STOCK_METHODS, *names),
        of(file="foreign", metric=metric, show="value only", digits=digits),
    )


VIEW_TABLES = {
    "stock-success": stock("success", "success_rate"),
    "stock-steps": stock("steps", "steps", "oracle", digits=1),
    "stock-seen": stock("seen", "coverage"),
    "minigrid-predict": MINIGRID_PREDICT,
    "minigrid-errors": MINIGRID_ERRORS,
    "minigrid-agents": MINIGRID_AGENTS,
    "latent-views": LATENT_VIEWS,
}
