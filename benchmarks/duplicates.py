"""Rooms in which some locations share their state (paper: figure on duplicated states).

Which location a query starts at is told by its context: a walk through the room that ends there. Measured, by kind of
query and masked component (the action or the end state): `accuracy`, the answer is the generating transition's, or "I
don't know" where it cannot be known; `validity`, it is that or another move from there to the same state. Settings:
  NAME                               every location has a state of its own
  NAME-duplicates                    one to three pairs of locations share a state
  NAME-duplicates-source-duplicated  of these, queries that start where another location looks the same
  NAME-duplicates-source-unique      the other ones
Methods:
  eswm-t-context             the paper's transformer, given the walk
  eswm-agent-context         the agent's architecture, given the walk: it has gone on from the agent's weights
  eswm-t-no-context, eswm-agent-no-context  the same without the walk: they cannot tell where a query starts
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from common.cli import BySize, Parser, finish, model_seed
from common.intervals import over_rooms
from common.models import find_info, find_model
from common.plots import draw_bars
from common.progress import progress
from common.rows import Row
from torch import Tensor

from eswm_gym.rooms import LatticeSource
from eswm_gym.rooms.transitions import to_problems
from eswm_gym.world_model import ACTION, ESWM, MASKED, Answer
from eswm_gym.world_model.evaluate import cells_of, compare
from eswm_gym.world_model.presets import PRESETS

MODELS = {"rw-t-duplicates": "eswm-t", "oa-t-duplicates": "eswm-t", "looped-duplicates": "eswm-agent"}
CONTEXT, NO_CONTEXT = "context", "no-context"
QUERIES = 12  # of a room: as many as there are moves from a location, times two components


class Answers(NamedTuple):
    """What was asked of B rooms with Q queries each, all (B, Q).

    Attributes:
        kind, masked: of each query.
        duplicated: bool, whether another location shows the state that it starts with.
        right: bool, by what was given and measure, whether it was answered rightly.
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
    for given, memories in zip((CONTEXT, NO_CONTEXT), (problems.memories, blank), strict=True):
        answer = likeliest(model, *map(torch.from_numpy, (memories, problems.query, problems.masked)), device)
        accurate, _ = compare(answer, problems)
        move = answer.action % model.config.n_actions
        leads_to = rooms.states[batch, rooms.targets()[batch, queries.location, move]]
        same_end = (leads_to == queries.transitions[..., 2]) & ~answer.unknown
        right[given, "accuracy"] = accurate
        right[given, "validity"] = accurate | ((queries.masked == ACTION) & same_end)
    return Answers(queries.kind, queries.masked, rooms.duplicated()[batch, queries.location], right)


def likeliest(model: ESWM, memories: Tensor, query: Tensor, masked: Tensor, device: str) -> Answer:
    """The likeliest answers, as NumPy arrays, a few rooms at a time."""
    parts = (part.to(device).split(250) for part in (memories, query, masked))
    answers = [model(bank, asked).answer(component) for bank, asked, component in zip(*parts, strict=True)]
    return Answer(*(torch.cat(part).cpu().numpy() for part in zip(*answers, strict=True)))


def rows_of(setting: str, label: str, answers: Answers, asked: np.ndarray, seed: int) -> list[Row]:
    """Shares of right answers of a model to the queries `asked` (B, Q) bool; intervals are over rooms."""
    rows = []
    for (given, measure), right in answers.right.items():
        for _, _, name, cell in cells_of(answers.kind, answers.masked):
            counted = cell & asked
            if counted.any():
                rows.append(Row(setting, f"{label}-{given}", f"{measure}/{name}", *over_rooms(right, counted, seed)))
    return rows


def duplicate_rows(n_rooms: int, seed: int, device: str = "cpu", models: Sequence[str] = tuple(MODELS)) -> list[Row]:
    """Rows of models, by their names or paths, each in the settings of its preset."""
    rows = []
    for name in models:
        model, preset = find_model(name, device), PRESETS[find_info(name)["training"]["preset"]]
        label = MODELS.get(Path(name).stem, Path(name).stem)
        for setting, source in progress(preset.settings.items(), name):
            answers = ask(model, source, n_rooms, model_seed(seed), device)
            # Where a room offers none of the kinds that are wanted, others are drawn in their place.
            wanted = np.asarray(source.mix)[answers.kind] > 0
            rows += rows_of(setting, label, answers, wanted, seed)
            if source.rooms.duplicates[1]:
                rows += rows_of(f"{setting}-source-duplicated", label, answers, wanted & answers.duplicated, seed)
                rows += rows_of(f"{setting}-source-unique", label, answers, wanted & ~answers.duplicated, seed)
    return rows


def plot_duplicates(rows: Sequence[Row], folder: Path) -> None:
    """Draw FOLDER/duplicates.png and .svg: accuracy, a panel for each family of rooms."""
    starts = {
        ("", CONTEXT): "unique states",
        ("-duplicates-source-unique", CONTEXT): "duplicates, from a unique state",
        ("-duplicates-source-duplicated", CONTEXT): "duplicates, from a duplicated state",
        ("-duplicates-source-duplicated", NO_CONTEXT): "duplicates, from a duplicated state, no context",
    }
    models = dict.fromkeys(row.method.removesuffix(f"-{NO_CONTEXT}").removesuffix(f"-{CONTEXT}") for row in rows)
    labels = {
        (suffix, f"{model}-{given}"): f"{model}: {text}" for model in models for (suffix, given), text in starts.items()
    }
    families = [setting for setting in dict.fromkeys(row.setting for row in rows) if "-duplicates" not in setting]
    panels: dict[str, list[Row]] = {}
    for family in families:
        some = [(row, labels.get((row.setting.removeprefix(family), row.method))) for row in rows]
        panels[family] = [
            replace(row, method=label) for row, label in some if label and row.metric.startswith("accuracy/")
        ]
    draw_bars(panels, folder, "duplicates", group=lambda row: row.metric.removeprefix("accuracy/"))


def main(argv: list[str] | None = None) -> list[Row]:
    options = Parser(__doc__, BySize(0.2, 1.5, 3))
    options.add_argument("--model", nargs="+", default=tuple(MODELS), metavar="NAME", help="models, or their files")
    options.add_count("--rooms", (100, 1000, 2000), f"rooms of each setting, {QUERIES} queries each")
    args = options.parse_args(argv)
    rows = duplicate_rows(args.rooms, args.seed, args.device, args.model)
    return finish(args, "duplicates", rows, draw=partial(plot_duplicates, rows))


if __name__ == "__main__":
    main()
