"""What a model is asked, and the rows of its answers, with the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.cli import model_seed
from common.intervals import over_rooms
from common.models import find_info, find_model
from common.rows import Row

from eswm_gym.rooms.transitions import ACTION, Kind, Source
from eswm_gym.world_model import ESWM
from eswm_gym.world_model.evaluate import Judged, cells_of, judge
from eswm_gym.world_model.presets import PRESETS

Cells = dict[str, tuple[float, float, float]]
T_4L: Cells = {"seen": (0.905, 0.870, 1.0), "unseen": (0.875, 0.888, 0.903), "unsolvable": (0.827, 0.905, 0.818)}
# Accuracies of source, action and end.
PAPER: dict[tuple[str, str], Cells] = {
    ("random-wall-37", "random-wall"): T_4L,
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
Settings = Mapping[str, Source]


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
        for setting, source in settings.items():
            judged = judge(model, source, self.rooms, model_seed(self.seed))
            rows += rows_of(setting, method, judged, self.seed)
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
    assert judged.valid is not None
    for measure, right in (("accuracy", judged.accurate), ("validity", judged.valid)):
        for kind, component, name, cell in cells_of(judged.kind, judged.masked):
            paper = PAPER.get((setting, method), {}).get(kind.name.lower()) if measure == "accuracy" else None
            found = over_rooms(right, cell, seed)._replace(n=int(cell.sum()))
            rows.append(Row(setting, method, f"{measure}/{name}", *found, paper=paper and paper[component]))
    return rows


def view_rows(setting: str, method: str, judged: Judged, seed: int, **along: Any) -> list[Row]:
    """Rows of the measures of MiniGrid's views: `views` counts whole ones, `cells` their cells, `accuracy` actions and
    "I don't know"; intervals are over rooms."""
    rows = []
    for kind, component, name, cell in cells_of(judged.kind, judged.masked):
        measures = {"accuracy": judged.accurate}
        if component != ACTION and kind != Kind.UNSOLVABLE:
            measures = {"views": judged.accurate, "cells": judged.cells}
        for measure, right in measures.items():
            found = over_rooms(right, cell, seed)._replace(n=int(cell.sum()))
            rows.append(Row(setting, method, f"{measure}/{name}", *found, **along))
    return rows
