"""The experiments of `python benchmarks/predict`, each of which returns what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from common.cli import model_seed
from common.intervals import mean
from common.models import find_info, find_model, view_models
from common.plots import by_method, by_metric, draw_bars, draw_curves
from common.progress import progress
from common.rows import Found, Row, Test
from duplicates import duplicate_rows, plot_duplicates
from integration import integration_rows, plot_integration

from eswm_gym.rooms import RoomConfig
from eswm_gym.rooms.grid import GridBankBatch, move_kinds
from eswm_gym.rooms.transitions import COMPONENTS, Kind
from eswm_gym.world_model.evaluate import baselines, held_out, judge
from eswm_gym.world_model.lookup import Lookup, PathIntegrator
from eswm_gym.world_model.presets import PRESETS
from predict.measures import Run, view_rows

COMPARED = {
    "rw": ("t", "t-longer", "t-relational", "t-trajectory", "lstm", "mamba", "tem-t", "emwm"),
    "oa": ("t", "t-relational", "t-looped", "t-relational-trajectory", "lstm", "mamba", "tem-t", "emwm"),
}
HEADS = ("6l-2h", "6l-4h", "6l-8h", "6l-16h")
LAYERS = ("2l-8h", "4l-8h", "6l-8h", "8l-8h")
WRONG_CELLS = (0.0, 0.05, 0.1, 0.15)
QUERIES = tuple(250_000 * 2**i for i in range(7))  # at which losses are shown
ATTENTION = ("cross", "cross-relations", "joint", "joint-relations", "cross-unaligned")


def method_of(name: str) -> str:
    """The name of a model in tables."""
    return name if name in ("tem-t", "emwm") else f"eswm-{name}"


def compare(run: Run, prefix: str) -> list[Row]:
    """Every model of a world, the simple ones beside them."""
    rows = []
    for name in progress(COMPARED[prefix], f"models of {prefix}"):
        rows += run.trained(f"{prefix}-{name}", method_of(name))
    nearest = find_model(f"{prefix}-emwm", run.device)
    nearest.config = replace(nearest.config, nearest=1)  # type: ignore[call-arg]
    rows += run.measure("emwm-nearest", nearest, PRESETS[f"{prefix}-emwm"].settings)
    settings, config = PRESETS[f"{prefix}-t"].settings, PRESETS[f"{prefix}-t"].model
    rows += run.measure("lookup", Lookup(config), settings)
    return rows + run.measure("path-integrator", PathIntegrator(config), settings)


def shipped(run: Run) -> Found:
    """The shipped model at both sizes, and in Open Arena, which it was not trained on; four times as many rooms."""
    settings = {**PRESETS["random-wall"].settings, "open-arena-unseen": PRESETS["oa-t"].settings["open-arena-unseen"]}
    model = find_model("random-wall", run.device)
    return Found(replace(run, rooms=4 * run.rooms).measure("random-wall", model, settings))


def random_wall(run: Run) -> Found:
    rows = run.measure("eswm-agent", find_model("random-wall", run.device), PRESETS["rw-t"].settings)
    rows += compare(run, "rw")
    return Found(rows, partial(draw_comparison, rows, "random-wall-37"))


def elsewhere(run: Run) -> Found:
    """Models of rooms of 37 locations in rooms of 19, and with banks that hold more than they need; where trajectories
    are read, in rooms of 19 alone. What `random_wall` measures is not measured again."""
    subjects = {
        method_of(name): (find_model(f"rw-{name}", run.device), find_info(f"rw-{name}")["training"]["preset"])
        for name in COMPARED["rw"]
    }
    subjects["lookup"] = Lookup(PRESETS["rw-t"].model), "rw-t"
    rows: list[Row] = []
    for method, (model, preset) in progress(subjects.items(), "elsewhere"):
        known = PRESETS[preset].settings
        source = known["random-wall-37"]
        smaller = RoomConfig.random_wall(2, states=source.rooms.states)  # type: ignore[attr-defined]
        settings = {"random-wall-19": replace(source, rooms=smaller)}  # type: ignore[type-var]
        if source.bank == "minimal":  # type: ignore[attr-defined]
            settings["random-wall-37-dense"] = replace(source, bank="dense")  # type: ignore[type-var]
        rows += run.measure(method, model, {name: found for name, found in settings.items() if name not in known})
    return Found(rows)


def open_arena(run: Run) -> Found:
    rows = compare(run, "oa")
    return Found(rows, partial(draw_comparison, rows, "open-arena-unseen"))


def losses(run: Run) -> Found:
    """Training and held-out loss of each model in Open Arena, as they were reported in training."""
    rows = []
    for name in COMPARED["oa"]:
        for point in find_info(f"oa-{name}")["training"]["curve"]:
            for metric, key in (
                ("training", "loss"),
                ("seen", "open-arena-seen/loss"),
                ("unseen", "open-arena-unseen/loss"),
            ):
                minutes = round(point["minutes"])
                rows.append(
                    Row("open-arena", method_of(name), f"loss_{metric}", point[key], along="minutes", at=minutes)
                )
    for name in ("t", "lstm", "mamba"):
        rows += learning(name)
    return Found(rows, partial(draw_losses, rows))


def learning(name: str) -> list[Row]:
    """Held-out loss of a model of Random Wall by minutes and, between its reports, by queries."""
    training, method, setting = find_info(f"rw-{name}")["training"], method_of(name), "random-wall-37"
    loss = [point[f"{setting}/loss"] for point in training["curve"]]
    seen = [point["step"] * training["pairs"] / training["steps"] for point in training["curve"]]
    minutes = {round(point["minutes"]): loss[i] for i, point in enumerate(training["curve"])}
    queries = {n: float(np.interp(n, seen, loss)) for n in QUERIES if seen[0] <= n <= seen[-1]}
    return [
        Row(setting, method, f"loss_by_{along}", value, along=along, at=at)
        for along, found in (("minutes", minutes), ("queries", queries))
        for at, value in found.items()
    ]


def larger(run: Run) -> Found:
    """Rooms of 37 locations for models that were trained on 19."""
    settings = {"open-arena-37": PRESETS["oa-t-relational-shapes"].settings["open-arena-37"]}
    names = ("t", "t-relational", "t-looped", "t-relational-shapes")
    return Found(
        [row for name in names for row in run.measure(f"eswm-{name}", find_model(f"oa-{name}", run.device), settings)]
    )


def dense(run: Run) -> Found:
    """Minimal banks and dense ones, for a model that was trained on either."""
    settings = PRESETS["rw-t-dense"].settings
    methods = {"trained-on-minimal": "rw-t", "trained-on-dense": "rw-t-dense"}
    return Found([row for m, name in methods.items() for row in run.measure(m, find_model(name, run.device), settings)])


def ablation(run: Run) -> Found:
    rows = [row for shape in dict.fromkeys(HEADS + LAYERS) for row in run.trained(f"oa-small-{shape}", shape)]
    rows += [row for kind in ATTENTION for row in run.trained(f"rw-small-{kind}", kind)]
    return Found(rows, partial(draw_ablation, rows))


def integration(run: Run) -> Found:
    rows: list[Row] = []
    tests: list[Test] = []
    methods = {"eswm-t-longer": "rw-t-longer", "eswm-t-dense": "rw-t-dense", "eswm-agent": "random-wall"}
    for method, name in methods.items():
        model = find_model(name, run.device)
        found, tested = integration_rows(model, RoomConfig.random_wall(3), method, run.queries, run.seed)
        rows, tests = rows + found, tests + tested
    return Found(rows, partial(plot_integration, rows), tests)


def duplicates(run: Run) -> Found:
    rows = duplicate_rows(run.rooms, run.seed, run.device)
    return Found(rows, partial(plot_duplicates, rows))


def minigrid(run: Run) -> Found:
    """Views without errors, and with errors in bank and query, beside what needs no training."""
    source, seed = PRESETS["minigrid"].settings["minigrid"], model_seed(run.seed)
    models = view_models(run.device)
    rows: list[Row] = []
    for method, model in progress(models.items(), "minigrid"):
        rows += view_rows("minigrid", method, judge(model, source, run.rooms, seed), run.seed)
        for share in WRONG_CELLS:
            noisy = replace(source, wrong_cells=(share, share))  # type: ignore[type-var]  # a GridSource
            judged = judge(model, noisy, run.rooms, seed)
            rows += view_rows("minigrid-noise", method, judged, run.seed, along="wrong_cells", at=share)
    for method, judged in baselines(source, run.rooms, seed).items():
        rows += view_rows("minigrid", method, judged, run.seed)
    determined = [
        share for banks, *_ in held_out(source, run.rooms, seed, chunk=50) for share in determined_share(banks)
    ]
    rows.append(Row("minigrid", "all", "determined", *mean(determined, run.seed)))
    return Found(rows, partial(draw_errors, rows))


def determined_share(banks: GridBankBatch) -> np.ndarray:
    """(B,) float, the share of all questions about moves from free poses whose answer a bank determines."""
    kinds, free = move_kinds(banks), banks.rooms.free  # (B, P, 3, 3) and (B, P)
    determined = np.isin(kinds, (Kind.UNSEEN, Kind.SEEN)).mean((2, 3))
    return (determined * free).sum(1) / free.sum(1)


def draw_errors(rows: Sequence[Row], folder: Path) -> None:
    """Whole views and cells that are right by the share of cells that are wrong."""
    shown = ("views/unseen/end", "cells/unseen/end")
    some = [row for row in rows if row.setting == "minigrid-noise" and row.metric in shown]
    draw_curves(some, folder, "predict-errors", panel=by_metric, line=by_method)


def draw_comparison(rows: Sequence[Row], setting: str, folder: Path) -> None:
    """Accuracy of every model by kind of query, the paper's beside it; a panel for each component."""
    some = [row for row in rows if row.setting == setting and row.metric.startswith("accuracy/")]
    panels = {name: [row for row in some if row.metric.endswith(f"/{name}")] for name in COMPONENTS}
    draw_bars(panels, folder, f"predict-{setting}", group=lambda row: row.metric.split("/")[1])


def draw_losses(rows: Sequence[Row], folder: Path) -> None:
    """Losses by minutes, a panel for each model of Open Arena; and those of Random Wall side by side."""
    arena = [row for row in rows if row.setting == "open-arena"]
    draw_curves(arena, folder, "predict-losses", panel=by_method, line=by_metric)
    draw_curves([row for row in rows if row not in arena], folder, "predict-learning")


def draw_ablation(rows: Sequence[Row], folder: Path) -> None:
    """End states of unseen transitions by heads, layers and attention."""
    found = {
        row.method: row for row in rows if row.metric == "accuracy/unseen/end" and row.setting != "open-arena-seen"
    }
    panels = {"heads": HEADS, "layers": LAYERS, "attention": ATTENTION}
    draw_bars({title: [found[name] for name in names] for title, names in panels.items()}, folder, "predict-ablation")


EXPERIMENTS: dict[str, Callable[[Run], Found]] = {
    "shipped": shipped,
    "random-wall": random_wall,
    "open-arena": open_arena,
    "elsewhere": elsewhere,
    "losses": losses,
    "larger": larger,
    "dense": dense,
    "ablation": ablation,
    "integration": integration,
    "duplicates": duplicates,
    "minigrid": minigrid,
}
