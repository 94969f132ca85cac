"""Prediction in rooms never seen: the masked component of transitions (paper: "Modeling Spatial Environments from
Episodic Memories" and "ESWM Integrates Overlapping Memories").

Measures by kind of query and masked component: `accuracy`, the answer is the generating transition's, the paper's
measure; `validity`, the completed transition is true in the room; both count "I don't know" as right for an unsolvable
query. In MiniGrid, where states are views of 25 cells, `accuracy` is of whole views and `cells` of their cells, over
the queries that the bank determines (see `eswm_gym.rooms.grid.move_kinds`).

  random-wall   every model with about a million parameters and the same minutes of training; eswm-t-longer and
                eswm-t-relational have more; eswm-agent is the shipped one, relational, trained for an hour on more than
                the paper's rooms; lookup knows the memories alone, path-integrator the lattice, within connected
                memories; tem-t and ...-trajectory read trajectories, tem-t and emwm complete end states alone;
                emwm-nearest looks up one memory, emwm five
  open-arena    the same, trained on some states and tested on others; eswm-t-looped has the shipped model's shape
  losses        training and held-out loss of each model in Open Arena: who overfits
  larger        trained on 19 locations, tested on 37; eswm-t-relational-shapes on parts of arenas, of any shape
  dense         trained on minimal banks or on dense ones, tested on both
  ablation      small models: heads and layers; joint and cross attention, with and without relations; unaligned weights
  integration   banks of all sizes, noisy banks, entropy and path length, informative memories; eswm-t-dense was trained
                on dense banks
  duplicates    locations that share a state, told apart by the moves that led there
  minigrid      views; majority: the commonest class of each cell and the commonest action; copy: the given view
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from duplicates import duplicate_rows, plot_duplicates
from integration import integration_rows, plot_integration
from models import find_info, find_model
from report import Row, draw_curve, over_rooms, parser, print_table, save_figure, wilson, write_json
from significance import Test, print_tests
from tqdm import tqdm

from eswm_gym.rooms import RoomConfig
from eswm_gym.rooms.grid import GridConfig
from eswm_gym.world_model import ESWM
from eswm_gym.world_model.data import COMPONENTS, Source, cells_of
from eswm_gym.world_model.evaluate import Judged, evaluate, judge
from eswm_gym.world_model.grid_evaluate import baselines
from eswm_gym.world_model.lookup import Lookup, PathIntegrator
from eswm_gym.world_model.presets import PRESETS

Cells = dict[str, tuple[float, float, float]]
T_4L: Cells = {"seen": (0.905, 0.870, 1.0), "unseen": (0.875, 0.888, 0.903), "unsolvable": (0.827, 0.905, 0.818)}
# Accuracies of source, action and end.
PAPER: dict[tuple[str, str], Cells] = {
    ("random-wall-37", "eswm-t"): T_4L,
    ("random-wall-37", "eswm-t-longer"): T_4L,
    ("random-wall-37", "eswm-t-relational"): T_4L,
    ("random-wall-37", "eswm-agent"): T_4L,
    ("random-wall-37", "eswm-lstm"): {
        "seen": (0.878, 0.869, 1.0), "unseen": (0.666, 0.753, 0.703), "unsolvable": (0.762, 0.883, 0.756),
    },
    ("random-wall-37", "eswm-mamba"): {
        "seen": (0.900, 0.881, 1.0), "unseen": (0.771, 0.811, 0.823), "unsolvable": (0.811, 0.899, 0.801),
    },
    ("random-wall-37", "eswm-t-trajectory"): {"unseen": (0.81, 0.89, 0.78)},
    ("open-arena-unseen", "eswm-t"): {"unseen": (0.833, 0.926, 0.796)},
    ("open-arena-unseen", "eswm-t-relational-trajectory"): {"unseen": (0.99, 0.99, 0.99)},
    ("open-arena-37", "eswm-t"): {"unseen": (0.59, 0.90, 0.55)},
    ("open-arena-37", "eswm-t-relational"): {"unseen": (0.59, 0.90, 0.55)},
    ("open-arena-37", "eswm-t-looped"): {"unseen": (0.59, 0.90, 0.55)},
    ("open-arena-37", "eswm-t-relational-shapes"): {"unseen": (0.59, 0.90, 0.55)},
    ("open-arena-unseen", "6l-2h"): {"unseen": (0.404, 0.846, 0.376)},
    ("open-arena-unseen", "6l-4h"): {"unseen": (0.789, 0.918, 0.781)},
    ("open-arena-unseen", "6l-8h"): {"unseen": (0.833, 0.926, 0.796)},
    ("open-arena-unseen", "6l-16h"): {"unseen": (0.420, 0.918, 0.404)},
}  # fmt: skip
COMPARED = {
    "rw": ("t", "t-longer", "t-relational", "t-trajectory", "lstm", "mamba", "tem-t", "emwm"),
    "oa": ("t", "t-relational", "t-looped", "t-relational-trajectory", "lstm", "mamba", "tem-t", "emwm"),
}
SHAPES = ("6l-2h", "6l-4h", "6l-8h", "6l-16h", "2l-8h", "4l-8h", "8l-8h")
ATTENTION = ("cross", "cross-relations", "joint", "joint-relations", "cross-unaligned")
Settings = Mapping[str, RoomConfig | GridConfig | Source]


class Found(NamedTuple):
    """What an experiment found.

    Attributes:
        rows: all of it.
        draw: draws its figures into a folder.
        tests: of significance.
    """

    rows: list[Row]
    draw: Callable[[Path], None] = lambda folder: None
    tests: Sequence[Test] = ()


@dataclass(frozen=True)
class Run:
    """How large the experiments are.

    Attributes:
        rooms: held-out rooms of each setting, 48 queries each.
        queries: of the experiments on integration.
        seed: of everything.
        device: where the models run.
    """

    rooms: int
    queries: int
    seed: int
    device: str

    def measure(self, method: str, model: ESWM, settings: Settings) -> list[Row]:
        """All measures of a model in some settings."""
        rows = []
        for setting, problems in settings.items():
            seed = 10**6 * (1 + self.seed)
            if isinstance(problems, GridConfig):
                rows += view_rows(setting, method, evaluate(model, problems, self.rooms, seed))
            else:
                rows += rows_of(setting, method, judge(model, problems, self.rooms, seed), self.seed)
        return rows

    def trained(self, name: str, method: str) -> list[Row]:
        """All measures of a model in the settings that it was trained for, and how it was trained."""
        training = find_info(name)["training"]
        model = find_model(name, self.device)
        settings = PRESETS[training["preset"]].settings
        rows, setting = self.measure(method, model, settings), list(settings)[-1]
        pairs = hours = 0.0
        while training:
            pairs, hours = pairs + training["pairs"], hours + training["hours"]
            training = training.get("started_from")
        return rows + [
            Row(setting, method, "parameters", sum(p.numel() for p in model.parameters())),
            Row(setting, method, "training_minutes", 60 * hours),
            Row(setting, method, "training_queries", pairs),
        ]


def rows_of(setting: str, method: str, judged: Judged, seed: int) -> list[Row]:
    """Rows of one model's or baseline's measures; intervals are over rooms, whose queries share their bank."""
    rows = []
    for measure, right in (("accuracy", judged.accurate), ("validity", judged.valid)):
        for kind, component, name, cell in cells_of(judged.kind, judged.masked):
            paper = PAPER.get((setting, method), {}).get(kind.name.lower()) if measure == "accuracy" else None
            row = over_rooms(setting, method, f"{measure}/{name}", right, cell, seed, paper and paper[component])
            rows.append(replace(row, n=int(cell.sum())))
    return rows


def view_rows(setting: str, method: str, metrics: Mapping[str, float]) -> list[Row]:
    """Rows of the measures of MiniGrid's views."""
    rows = []
    for name, value in metrics.items():
        measure, _, cell = name.partition("/")
        if measure in ("accuracy", "cells"):
            n = int(metrics[f"n/{cell}"])
            # The cells of a view are not independent, so that their share has no such interval.
            rows.append(
                Row(setting, method, name, value, None if measure == "cells" else wilson(round(value * n), n), n)
            )
    return rows


def method_of(name: str) -> str:
    """The name of a model in tables."""
    return name if name in ("tem-t", "emwm") else f"eswm-{name}"


def compare(run: Run, prefix: str) -> list[Row]:
    """Every model of a world, the simple ones beside them."""
    rows = []
    for name in tqdm(COMPARED[prefix], desc="models", leave=False, disable=None):
        rows += run.trained(f"{prefix}-{name}", method_of(name))
    nearest = find_model(f"{prefix}-emwm", run.device)
    nearest.config = replace(nearest.config, nearest=1)  # type: ignore[call-arg]
    rows += run.measure("emwm-nearest", nearest, PRESETS[f"{prefix}-emwm"].settings)
    settings, config = PRESETS[f"{prefix}-t"].settings, PRESETS[f"{prefix}-t"].model
    rows += run.measure("lookup", Lookup(config), settings)
    return rows + run.measure("path-integrator", PathIntegrator(config), settings)


def random_wall(run: Run) -> Found:
    rows = run.measure("eswm-agent", find_model("random-wall", run.device), PRESETS["rw-t"].settings)
    rows += compare(run, "rw")
    return Found(rows, partial(draw_comparison, rows, "random-wall-37", ("seen", "unseen", "unsolvable")))


def open_arena(run: Run) -> Found:
    rows = compare(run, "oa")
    return Found(rows, partial(draw_comparison, rows, "open-arena-unseen", ("unseen",)))


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
                rows.append(
                    Row("open-arena", method_of(name), f"loss_{metric}/minutes-{point['minutes']:.0f}", point[key])
                )
    return Found(rows, partial(draw_losses, rows))


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
    rows = [row for shape in SHAPES for row in run.trained(f"oa-small-{shape}", shape)]
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
    rows = run.measure("eswm", find_model("minigrid", run.device), PRESETS["minigrid"].settings)
    for method, metrics in baselines(GridConfig(), run.rooms, 10**6 * (1 + run.seed)).items():
        rows += view_rows("minigrid", method, metrics)
    return Found(rows)


EXPERIMENTS: dict[str, Callable[[Run], Found]] = {
    "random-wall": random_wall,
    "open-arena": open_arena,
    "losses": losses,
    "larger": larger,
    "dense": dense,
    "ablation": ablation,
    "integration": integration,
    "duplicates": duplicates,
    "minigrid": minigrid,
}


def show(rows: Sequence[Row]) -> None:
    """Print, for each setting, accuracies as a table of methods with the paper's below ours, then the other rows."""
    for setting in dict.fromkeys(row.setting for row in rows):
        found = {(row.method, row.metric): row for row in rows if row.setting == setting}
        columns = dict.fromkeys(metric for _, metric in found if metric.startswith("accuracy/"))
        methods = dict.fromkeys(method for method, metric in found if metric in columns)
        if columns:
            width = max(map(len, methods)) + len("  paper")
            names = [column.removeprefix("accuracy/") for column in columns]
            print(f"\n{setting + ', accuracy':{width}}" + "".join(f"{name:>{len(name) + 2}}" for name in names))
            for method in methods:
                cells = [found.get((method, column)) for column in columns]
                ours = [None if cell is None else cell.value for cell in cells]
                paper = [None if cell is None else cell.paper for cell in cells]
                for label, values in ((method, ours), (f"{method}  paper", paper)):
                    if any(value is not None for value in values):
                        texts = ["" if value is None else f"{value:.3f}" for value in values]
                        line = (f"{text:>{len(name) + 2}}" for text, name in zip(texts, names, strict=True))
                        print(f"{label:{width}}" + "".join(line))
    others = [row for row in rows if not row.metric.startswith(("accuracy/", "validity/", "loss_"))]
    if others:
        print()
        print_table(others)


def draw_comparison(rows: Sequence[Row], setting: str, kinds: Sequence[str], folder: Path) -> None:
    """Accuracy of every model, the paper's beside it as lines."""
    import matplotlib.pyplot as plt

    found = {(row.method, row.metric): row for row in rows if row.setting == setting}
    methods = list(dict.fromkeys(method for method, metric in found if metric.startswith("accuracy")))
    figure, axes = plt.subplots(len(kinds), 1, figsize=(9, 0.8 + 2.2 * len(kinds)), sharex=True, squeeze=False)
    for axis, kind in zip(axes[:, 0], kinds, strict=True):
        for i, component in enumerate(COMPONENTS):
            x = np.arange(len(methods)) + 0.27 * (i - 1)
            cells = [found.get((method, f"accuracy/{kind}/{component}")) for method in methods]
            heights = [0 if cell is None else cell.value for cell in cells]
            axis.bar(x, heights, 0.25, color=f"C{i}", label=component)
            papers = [(at, cell.paper) for at, cell in zip(x, cells, strict=True) if cell and cell.paper is not None]
            if papers:
                at, paper = np.array(papers).T
                axis.hlines(paper, at - 0.13, at + 0.13, "k", linewidth=1.5, label="paper" if i == 2 else None)
        axis.set(ylabel=f"{kind}, accuracy", ylim=(0, 1.02))
    axes[-1, 0].set_xticks(range(len(methods)), [method.replace("-", "\n") for method in methods], fontsize=8)
    axes[0, 0].legend(fontsize=8, ncols=2, loc="center")
    figure.suptitle(setting)
    save_figure(figure, folder, f"predict-{setting}")


def draw_losses(rows: Sequence[Row], folder: Path) -> None:
    """A panel for each model."""
    import matplotlib.pyplot as plt

    methods = list(dict.fromkeys(row.method for row in rows))
    figure, axes = plt.subplots(1, len(methods), figsize=(2.2 * len(methods), 2.8), sharex=True)
    for axis, method in zip(axes, methods, strict=True):
        for metric, label in (("training", "training"), ("seen", "held-out rooms"), ("unseen", "held-out states")):
            draw_curve(axis, rows, "open-arena", method, f"loss_{metric}", label)
        axis.set(title=method, xlabel="minutes", ylim=(0, None))
        axis.title.set_fontsize(9)
    axes[0].set_ylabel("loss, nats")
    axes[0].legend(fontsize=7)
    save_figure(figure, folder, "predict-losses")


def draw_ablation(rows: Sequence[Row], folder: Path) -> None:
    """End states of unseen transitions by heads, layers and attention; the paper's of heads as a line."""
    import matplotlib.pyplot as plt

    found = {
        row.method: row for row in rows if row.metric == "accuracy/unseen/end" and row.setting != "open-arena-seen"
    }
    figure, axes = plt.subplots(1, 3, figsize=(11, 3), sharey=True)
    groups = (
        ("heads", {shape.split("-")[1][:-1]: found[shape] for shape in SHAPES[:4]}),
        ("layers", {shape[0]: found[shape] for shape in ("2l-8h", "4l-8h", "6l-8h", "8l-8h")}),
        ("attention", {kind.replace("-", "\n"): found[kind] for kind in ATTENTION}),
    )
    for axis, (label, bars) in zip(axes, groups, strict=True):
        axis.bar(list(bars), [row.value for row in bars.values()], color="C2")
        if label == "heads":
            axis.plot(list(bars), [row.paper for row in bars.values()], "k_", markersize=20, label="paper")
            axis.legend(fontsize=8)
        axis.set_xlabel(label)
        axis.tick_params(axis="x", labelsize=8)
    axes[0].set(ylabel="accuracy, unseen end", ylim=(0, 1))
    save_figure(figure, folder, "predict-ablation")


def main(argv: list[str] | None = None) -> list[Row]:
    options = parser(__doc__)
    options.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="only these (default: all)")
    options.add_argument("--rooms", type=int, default=300, help="rooms of each setting, 48 queries each (default 300)")
    options.add_argument("--plot", type=Path, metavar="DIR", help="draw figures there (needs matplotlib)")
    args = options.parse_args(argv)
    if unknown := set(args.experiments) - set(EXPERIMENTS):
        options.error(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(EXPERIMENTS)}")
    run = Run(20 if args.quick else args.rooms, 200 if args.quick else 5000, args.seed, args.device)
    rows: list[Row] = []
    tests: list[Test] = []
    for name in tqdm(args.experiments or EXPERIMENTS, disable=None):
        found = EXPERIMENTS[name](run)
        tqdm.write(f"\n# {name}")
        show(found.rows)
        print_tests(found.tests)
        rows, tests = rows + found.rows, tests + list(found.tests)
        if args.plot:
            found.draw(args.plot)
    if args.json:
        write_json(args.json, "predict", args.seed, rows, tests)
    return rows


if __name__ == "__main__":
    main()
