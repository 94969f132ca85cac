"""Prediction in rooms never seen: the masked component of transitions (paper: "Modeling Spatial Environments from
Episodic Memories" and "ESWM Integrates Overlapping Memories"). Not here are the paper's 3-D rooms, its several seeds of
training, its sweeps over sizes, and its training of the other models on non-minimal banks.

Measures by kind of query and masked component: `accuracy`, the answer is the generating transition's, the paper's
measure; `validity`, the completed transition is true in the room; both count "I don't know" as right for an unsolvable
query. In MiniGrid, where states are views of 25 cells, `views` counts whole views and `cells` their cells, over the
queries that the bank determines (see `eswm_gym.rooms.grid.move_kinds`); `determined` is the share of all questions that
it does.

  shipped       the shipped `random-wall` at both sizes, and in Open Arena, which it was not trained on
  random-wall   models with about a million parameters and the same minutes of training; eswm-t-longer and
                eswm-t-relational have more; eswm-agent is the shipped one, relational, trained for 239 minutes and on
                more than the paper's rooms; lookup knows the memories alone, path-integrator the lattice, within
                connected memories; tem-t and ...-trajectory read trajectories, tem-t and emwm complete end states
                alone; emwm-nearest looks up one memory, emwm five
  open-arena    the same, trained on some states and tested on others; eswm-t-looped has the shipped model's shape
  elsewhere     the models of random-wall in rooms of 19 locations, and with banks that hold more than they need
  losses        training and held-out loss of each model in Open Arena: who overfits; and of a transformer, an LSTM and
                Mamba in Random Wall, at equal minutes and at equal queries
  larger        trained on 19 locations, tested on 37; eswm-t-relational-shapes on parts of arenas, of any shape
  dense         trained on minimal banks or on dense ones, tested on both
  ablation      small models: heads and layers; joint and cross attention, with and without relations; unaligned weights
  integration   banks of all sizes, noisy banks, entropy and path length, informative memories; eswm-t-dense was trained
                on dense banks
  duplicates    locations that share a state, told apart by the moves that led there
  minigrid      views, and in `minigrid-noise` views with errors, along the share of wrong cells; overlap-only: what the
                model learns replaced by constants; map-only: the memories put together as a map; map-votes: the same
                with constants for errors; majority: the commonest class of each cell and the commonest action; copy:
                the given view
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from common.cli import BySize, Parser, finish
from common.printing import print_blocks
from common.progress import progress
from common.rows import Found, Row

from predict.experiments import EXPERIMENTS
from predict.measures import Run


def main(argv: list[str] | None = None) -> list[Row]:
    options = Parser(__doc__, BySize(1, 4, 26))
    options.add_settings(EXPERIMENTS, word="experiment")
    options.add_count("--rooms", (20, 80, 450), "rooms of each setting, 48 queries each")
    args = options.parse_args(argv)
    run = Run(args.rooms, BySize(200, 2000, 5000).of(args), args.seed, args.device)
    found: list[Found] = []
    for name in progress(args.settings, "predict"):
        found.append(EXPERIMENTS[name](run))
        print(f"\n# {name}")
        show(found[-1].rows)

    def draw(folder: Path) -> None:
        for one in found:
            one.draw(folder)

    rows = [row for one in found for row in one.rows]
    tests = [test for one in found for test in one.tests]
    return finish(args, "predict", rows, tests, draw, show=lambda rows: None)


def show(rows: Sequence[Row]) -> None:
    """Print, for each setting, accuracies as a table of methods with the paper's below ours, then the other rows."""
    for setting in dict.fromkeys(row.setting for row in rows):
        found = {(row.method, row.metric): row for row in rows if row.setting == setting}
        columns = dict.fromkeys(metric for _, metric in found if metric.startswith(("accuracy/", "views/")))
        methods = dict.fromkeys(method for method, metric in found if metric in columns)
        if columns:
            width = max(map(len, methods)) + len("  paper")
            names = [column.split("/", 1)[1] for column in columns]
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
    others = [row for row in rows if not row.metric.startswith(("accuracy/", "views/", "validity/", "loss_"))]
    if others:
        print_blocks(others)
