"""Rooms in which some locations share their state (paper: figure on duplicated states).

Which location a query starts at is told by its context: a walk through the room that ends there. Measured, by kind of
query and masked component (the action or the end state): `accuracy`, the answer is the generating transition's, or "I
don't know" where it cannot be known; `validity`, it is that or another move from there to the same state. Settings:
  NAME                               every location has a state of its own
  NAME-duplicates                    one to three pairs of locations share a state
  NAME-duplicates-source-duplicated  of these, queries that start where another location looks the same
  NAME-duplicates-source-unique      the other ones
Methods:
  eswm-t-context     the paper's transformer
  eswm-t-no-context  the same model, without the walk: it cannot tell where a query starts
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from models import find_info, find_model
from report import Row, over_rooms, parser, print_table, save_figure, write_json
from torch import Tensor
from tqdm import tqdm

from eswm_gym.rooms import LatticeSource
from eswm_gym.rooms.transitions import to_problems
from eswm_gym.world_model import ACTION, ESWM, MASKED, Answer
from eswm_gym.world_model.evaluate import cells_of, compare
from eswm_gym.world_model.presets import PRESETS

MODELS = ("rw-t-duplicates", "oa-t-duplicates")
METHODS = ("eswm-t-context", "eswm-t-no-context")
QUERIES = 12  # of a room: as many as there are moves from a location, times two components


class Answers(NamedTuple):
    """What was asked of B rooms with Q queries each, all (B, Q).

    Attributes:
        kind, masked: of each query.
        duplicated: bool, whether another location shows the state that it starts with.
        right: bool, by method and measure, whether it was answered rightly.
    """

    kind: np.ndarray
    masked: np.ndarray
    duplicated: np.ndarray
    right: dict[tuple[str, str], np.ndarray]


@torch.inference_mode()
def ask(model: ESWM, source: LatticeSource, n_rooms: int, seed: int, device: str = "cpu") -> Answers:
    """Ask a model, with and without context, about rooms that it never saw."""
    rng = np.random.default_rng(seed)
    banks = source.draw_banks(rng, n_rooms)
    rooms, batch = banks.rooms, np.arange(n_rooms)[:, None]
    queries = source.ask(rng, banks, QUERIES)
    problems = to_problems(banks, queries, source.capacity)
    blank = problems.memories.copy()
    blank[:, -source.context :] = MASKED
    right = {}
    for method, memories in zip(METHODS, (problems.memories, blank), strict=True):
        answer = likeliest(model, *map(torch.from_numpy, (memories, problems.query, problems.masked)), device)
        accurate, _ = compare(answer, problems)
        move = answer.action % model.config.n_actions
        leads_to = rooms.states[batch, rooms.targets()[batch, queries.location, move]]
        same_end = (leads_to == queries.transitions[..., 2]) & ~answer.unknown
        right[method, "accuracy"] = accurate
        right[method, "validity"] = accurate | ((queries.masked == ACTION) & same_end)
    return Answers(queries.kind, queries.masked, rooms.duplicated()[batch, queries.location], right)


def likeliest(model: ESWM, memories: Tensor, query: Tensor, masked: Tensor, device: str) -> Answer:
    """The likeliest answers, as NumPy arrays, a few rooms at a time."""
    parts = (part.to(device).split(250) for part in (memories, query, masked))
    answers = [model(bank, asked).answer(component) for bank, asked, component in zip(*parts, strict=True)]
    return Answer(*(torch.cat(part).cpu().numpy() for part in zip(*answers, strict=True)))


def rows_of(setting: str, answers: Answers, asked: np.ndarray, seed: int) -> list[Row]:
    """Shares of right answers to the queries `asked` (B, Q) bool; intervals are over rooms."""
    rows = []
    for (method, measure), right in answers.right.items():
        for _, _, name, cell in cells_of(answers.kind, answers.masked):
            counted = cell & asked
            if counted.any():
                rows.append(over_rooms(setting, method, f"{measure}/{name}", right, counted, seed))
    return rows


def duplicate_rows(n_rooms: int, seed: int, device: str = "cpu", models: Sequence[str] = MODELS) -> list[Row]:
    """Rows of models, by their names or paths, each in the settings of its preset."""
    rows = []
    for name in models:
        model, preset = find_model(name, device), PRESETS[find_info(name)["training"]["preset"]]
        for setting, source in tqdm(preset.settings.items(), desc=name, disable=None):
            answers = ask(model, source, n_rooms, 10**6 * (1 + seed), device)
            # Where a room offers none of the kinds that are wanted, others are drawn in their place.
            wanted = np.asarray(source.mix)[answers.kind] > 0
            rows += rows_of(setting, answers, wanted, seed)
            if source.rooms.duplicates[1]:
                rows += rows_of(f"{setting}-source-duplicated", answers, wanted & answers.duplicated, seed)
                rows += rows_of(f"{setting}-source-unique", answers, wanted & ~answers.duplicated, seed)
    return rows


def plot_duplicates(rows: Sequence[Row], folder: Path) -> None:
    """Draw bars of accuracy, an axis for each family of rooms, and write them as FOLDER/duplicates.png and .svg."""
    import matplotlib.pyplot as plt

    found = {(row.setting, row.method, row.metric): row for row in rows}
    families = list(dict.fromkeys(row.setting for row in rows if "-duplicates" not in row.setting))
    figure, axes = plt.subplots(1, len(families), figsize=(3 + 4 * len(families), 4), squeeze=False, sharey=True)
    for axis, family in zip(axes[0], families, strict=True):
        metrics = [m for s, method, m in found if (s, method) == (family, METHODS[0]) and m.startswith("accuracy/")]
        bars = {
            "unique states": (family, METHODS[0]),
            "duplicates, from a unique state": (f"{family}-duplicates-source-unique", METHODS[0]),
            "duplicates, from a duplicated state": (f"{family}-duplicates-source-duplicated", METHODS[0]),
            "duplicates, from a duplicated state, no context": (f"{family}-duplicates-source-duplicated", METHODS[1]),
        }
        for i, (label, (setting, method)) in enumerate(bars.items()):
            shown = [(j, found[setting, method, m]) for j, m in enumerate(metrics) if (setting, method, m) in found]
            heights = np.array([row.value for _, row in shown])
            ends = np.array([row.ci95 for _, row in shown])
            place = np.array([j for j, _ in shown]) + 0.2 * i
            axis.bar(place, heights, 0.2, yerr=np.abs(ends.T - heights), label=label, error_kw={"lw": 0.8})
        axis.set_xticks(
            np.arange(len(metrics)) + 0.3, [m.removeprefix("accuracy/") for m in metrics], rotation=30, ha="right"
        )
        axis.set(title=family, ylim=(0, 1))
    axes[0, 0].set_ylabel("accuracy")
    axes[0, -1].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    save_figure(figure, folder, "duplicates")


def main(argv: list[str] | None = None) -> list[Row]:
    options = parser(__doc__)
    options.add_argument("--model", nargs="+", default=MODELS, metavar="NAME", help="models, or paths of their files")
    options.add_argument("--rooms", type=int, default=2000, help=f"rooms of each setting, {QUERIES} queries each")
    options.add_argument("--plot", type=Path, metavar="DIR", help="draw figures there (needs matplotlib)")
    args = options.parse_args(argv)
    rows = duplicate_rows(100 if args.quick else args.rooms, args.seed, args.device, args.model)
    print_table(rows)
    if args.json:
        write_json(args.json, "duplicates", args.seed, rows)
    if args.plot:
        plot_duplicates(rows, args.plot)
    return rows


if __name__ == "__main__":
    main()
