"""Prediction in rooms never seen: the masked component of transitions (paper: section "Prediction").

Measures by kind of query and masked component: `validity`, the completed transition is true in the room; `accuracy`,
it is the generating one, the paper's measure; both count "I don't know" as right for an unsolvable query. In MiniGrid,
where states are views of 25 cells, `accuracy` is of whole views and `cells` of their cells, over the queries that the
bank determines (see `eswm_gym.rooms.grid.move_kinds`).
  eswm-t-relational  the shipped models: attention over which states two transitions share, or how their views overlap
  majority           in MiniGrid: the commonest class of each cell and the commonest action
  copy               in MiniGrid: the given view
"""

from __future__ import annotations

from report import Row, parser, print_table, wilson, write_json
from tqdm import tqdm

from eswm_gym.rooms.grid import GridConfig
from eswm_gym.world_model import load_pretrained
from eswm_gym.world_model.data import COMPONENTS
from eswm_gym.world_model.evaluate import evaluate
from eswm_gym.world_model.grid_evaluate import baselines
from eswm_gym.world_model.presets import PRESETS

# Model, method in the table.
MODELS = {"random-wall": "eswm-t-relational", "minigrid": "eswm-t-relational"}
# ESWM-T-4L with 37 locations: source, action, end.
PAPER = {"seen": (0.905, 0.870, 1.0), "unseen": (0.875, 0.888, 0.903), "unsolvable": (0.827, 0.905, 0.818)}
PAPER_ROW = ("random-wall-37", "accuracy")


def rows_of(setting: str, method: str, metrics: dict[str, float]) -> list[Row]:
    """Rows of one model's or baseline's measures."""
    rows = []
    for name, value in metrics.items():
        measure, _, cell = name.partition("/")
        if measure in ("accuracy", "validity", "cells"):
            n = int(metrics[f"n/{cell}"])
            kind, component = cell.split("/")
            figure = PAPER[kind][COMPONENTS.index(component)] if (setting, measure) == PAPER_ROW else None
            # The cells of a view are not independent, so that their share has no such interval.
            ci95 = None if measure == "cells" else wilson(round(value * n), n)
            rows.append(Row(setting, method, name, value, ci95, n, figure))
    return rows


def main(argv: list[str] | None = None) -> list[Row]:
    options = parser(__doc__)
    options.add_argument("--rooms", type=int, default=500, help="rooms of each setting, 48 queries each (default 500)")
    args = options.parse_args(argv)
    n_rooms, seed = 20 if args.quick else args.rooms, 10**6 * (1 + args.seed)
    rows: list[Row] = []
    for name, method in tqdm(MODELS.items(), disable=None):
        model = load_pretrained(name, args.device)
        for setting, rooms in PRESETS[name].settings.items():
            rows += rows_of(setting, method, evaluate(model, rooms, n_rooms, seed))
    for method, metrics in baselines(GridConfig(), n_rooms, seed).items():
        rows += rows_of("minigrid", method, metrics)
    print_table(rows)
    if args.json:
        write_json(args.json, "predict", args.seed, rows)
    return rows


if __name__ == "__main__":
    main()
