"""Rooms seen through a camera: what lies between two views, what a move will show, and the way to where a picture was
taken, in houses that nobody saw before (paper: "ProcThor Experiments").

settings
  indoor              actions and views between views that the bank does not hold
  indoor-overlap      those of them whose two views show some of the same walls
  indoor-no-overlap   the others
  indoor-bank-views   between views of the bank that do not overlap, by moves that it does not hold
  indoor-small        banks of four transitions, which do not show all of the house
  indoor-map          sRSA over the views of a house, by layer: among positions and among headings
  indoor-navigation   to where a picture was taken
  indoor-door-closed  a door was closed after the bank was made, and there is another way

methods
  eswm                the model with a bank
  no-bank             the model by what the query gives
  nearest-memory      the memory that looks most like the query
  pose-graph          knows that moves compose, and matches views by their features
  majority            the commonest action, the mean view
  untrained           the model with random weights
  random, oracle      in navigation; the oracle walks the shortest way
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common.cli import BySize, Parser, finish, model_seed, room_seeds
from common.intervals import Estimate, bootstrap, over_rooms
from common.plots import draw_settings
from common.progress import progress
from common.rows import Row

from eswm_gym.rooms.indoor import Asked as Kind
from eswm_gym.rooms.indoor import displacement_class, draw_house, draw_pool, rotation_class
from eswm_gym.rooms.transitions import ACTION, END, SOURCE
from eswm_gym.world_model.indoor.model import cosine
from eswm_gym.world_model.indoor.pose_mixtures import reverse, wrap
from eswm_gym.world_model.indoor.saving import load_indoor
from eswm_gym.world_model.indoor.vision import EfficientNetLite0
from indoor.houses import N_QUERIES, Asked, ask, everyone
from indoor.maps import draw_maps, map_rows
from indoor.navigation import door_rows, navigation_rows

SETTINGS = ("indoor", "indoor-map", "indoor-small", "indoor-navigation", "indoor-door-closed")
SIZES = (1, 2, 4, 8, 16, 32)
SMALL = 4  # transitions
GROWING = ("eswm", "no-bank", "nearest-memory", "pose-graph")


def main(argv: list[str] | None = None) -> list[Row]:
    options = Parser(__doc__, BySize(1, 4, 20))
    options.add_settings(SETTINGS)
    options.add_count("--houses", (3, 12, 60), "to ask about")
    options.add_count("--episodes", (2, 8, 40), "of navigation")
    options.add_argument("--model", default="indoor", metavar="FILE", help="saved weights (default: the package's)")
    args = options.parse_args(argv)
    houses, episodes = args.houses, args.episodes
    model, encoder = load_indoor(args.model), EfficientNetLite0()
    wanted = args.settings
    seeds = [model_seed(args.seed) + k for k in range(houses)]
    rows: list[Row] = []
    asked: list[Asked] = []
    methods: dict[str, Any] = {}
    if {"indoor", "indoor-map"} & set(wanted):
        asked = [ask(seed, model, encoder) for seed in progress(seeds, "houses")]
        methods = everyone(model, commonest())
    if "indoor" in wanted:
        rows += prediction_rows(asked, methods, args.seed)
    if "indoor-map" in wanted:
        rows += map_rows(asked, {name: methods[name] for name in ("eswm", "untrained")}, args.seed)
    if "indoor-small" in wanted:
        small = [ask(seed, model, encoder, SMALL) for seed in progress(seeds, "small banks")]
        rows += unknown_rows(small, model, args.seed)
    if "indoor-navigation" in wanted:
        rows += navigation_rows(room_seeds(args.seed, episodes), model, encoder, args.seed)
    if "indoor-door-closed" in wanted:
        rows += door_rows(room_seeds(args.seed, 1)[0], episodes, model, encoder, args.seed)

    def draw(folder: Path) -> None:
        if "indoor-map" in wanted:
            draw_maps(asked, model, folder)
        draw_settings(rows, folder, "indoor")

    return finish(args, "indoor", rows, draw=draw)


@torch.inference_mode()
def prediction_rows(asked: Sequence[Asked], methods: dict[str, Any], seed: int) -> list[Row]:
    """Rows of each method in the settings of prediction, and of some with ever larger banks."""
    rows = []
    for method in progress(methods, "prediction"):
        answers = methods[method]
        for name, counted in subsets(asked, ACTION).items():
            rows += action_rows(name, method, [actions(answers, house) for house in asked], counted, seed)
        found = {part: [views(answers, house, part) for house in asked] for part in (SOURCE, END)}
        for part, label in ((END, "end"), (SOURCE, "source")):
            for name, counted in subsets(asked, part).items():
                for metric, k in (("cosine", 0), ("retrieval", 1)):
                    values = np.stack([of[k] for of in found[part]])
                    rows.append(Row(name, method, f"{metric}/{label}", *over_rooms(values, counted, seed)))
        if method in GROWING:
            for size in SIZES:
                part = action_rows(
                    "indoor-no-overlap",
                    method,
                    [actions(answers, house, size) for house in asked],
                    subsets(asked, ACTION)["indoor-no-overlap"],
                    seed,
                )
                rows += [replace(row, along="memories", at=size) for row in part]
    return rows


def commonest() -> np.ndarray:
    """(N, 3) actions of houses that nothing is reported of."""
    drawn = []
    for number in range(20):
        rng = np.random.default_rng([5, number])
        pool = draw_pool(draw_house(rng), rng)
        drawn.append(pool.actions[pool.moves])
    return np.concatenate(drawn)


def subsets(asked: Sequence[Asked], part: int) -> dict[str, np.ndarray]:
    """(R, Q) bool for each setting, which queries count."""
    kind = np.stack([house.queries[part].asked for house in asked])
    overlap = np.stack([house.queries[part].overlap for house in asked])
    free = kind == Kind.FREE
    return {
        "indoor": free,
        "indoor-overlap": free & overlap,
        "indoor-no-overlap": free & ~overlap,
        "indoor-bank-views": (kind == Kind.BANK) & ~overlap,
    }


def actions(answers: Any, house: Asked, size: int | None = None) -> np.ndarray:
    """(4, Q): whether displacement and rotation are of the right class, and the errors in metres and degrees."""
    queries = house.queries[ACTION]
    start, end = house.tokens[queries.start], house.tokens[queries.end]
    true = house.pool.actions[queries.start, queries.end]
    found, _ = answers.action_between(answers.encode(house.memories(size)), start, end)
    displacement, rotation = (p.argmax(-1).numpy() for p in found.classes())
    error = found.best().double().numpy() - true
    return np.stack(
        [
            displacement == displacement_class(true),
            rotation == rotation_class(true),
            np.linalg.norm(error[:, :2], axis=1),
            np.degrees(np.abs(wrap(torch.from_numpy(error[:, 2])).numpy())),
        ]
    )


def action_rows(setting: str, method: str, found: Sequence[np.ndarray], counted: np.ndarray, seed: int) -> list[Row]:
    """Shares of right classes and median errors, with intervals over houses."""
    values = np.stack(found, 1)  # (4, R, Q)
    rows = [
        Row(setting, method, f"accuracy/{name}", *over_rooms(some, counted, seed))
        for name, some in zip(("displacement", "rotation"), values[:2], strict=True)
    ]
    return rows + [
        Row(setting, method, name, *median(some, counted, seed))
        for name, some in zip(("median_metres", "median_degrees"), values[2:], strict=True)
    ]


def median(values: np.ndarray, counted: np.ndarray, seed: int) -> Estimate:
    """The median of values (R, Q) where `counted` (R, Q), with an interval over rooms."""
    rooms = np.flatnonzero(counted.any(1))
    by_room = [room[some] for room, some in zip(values, counted, strict=True)]

    def of(sample: np.ndarray, axis: int = -1) -> np.ndarray:
        drawn = np.moveaxis(sample, axis, -1).astype(int)
        return np.apply_along_axis(lambda some: np.median(np.concatenate([by_room[r] for r in some])), -1, drawn)

    interval = bootstrap(of, rooms, seed=seed)
    return Estimate(float(np.median(values[counted])), interval, len(rooms))


def views(answers: Any, house: Asked, part: int) -> tuple[np.ndarray, np.ndarray]:
    """(Q,) the cosine with the true view, and (Q,) whether no other view of the house is nearer to the answer."""
    queries = house.queries[part]
    given, asked_for = (queries.start, queries.end) if part == END else (queries.end, queries.start)
    action = torch.from_numpy(house.pool.actions[given, asked_for]).float()
    seen, _ = answers.view_after(answers.encode(house.memories()), house.tokens[given], action)
    near = cosine(seen[:, None], house.tokens[None])
    return near[torch.arange(N_QUERIES), asked_for].numpy(), (near.argmax(1).numpy() == asked_for)


@torch.inference_mode()
def unknown_rows(asked: Sequence[Asked], model: Any, seed: int) -> list[Row]:
    """How often the model says "I don't know" where it should, and where it should not."""
    rows = []
    for part, label in ((SOURCE, "source"), (ACTION, "action"), (END, "end")):
        said = []
        for house in asked:
            queries, bank = house.queries[part], model.encode(house.memories())
            start, end = house.tokens[queries.start], house.tokens[queries.end]
            action = torch.from_numpy(house.pool.actions[queries.start, queries.end]).float()
            if part == ACTION:
                _, unknown = model.action_between(bank, start, end)
            elif part == END:
                _, unknown = model.view_after(bank, start, action)
            else:
                _, unknown = model.view_after(bank, end, reverse(action))
            said.append(unknown.numpy() > 0)
        right = np.stack(said)
        kind = np.stack([house.queries[part].asked for house in asked])
        for metric, counted, values in (
            (f"accuracy/unsolvable/{label}", kind == Kind.UNKNOWN, right),
            (f"answered/{label}", kind == Kind.FREE, ~right),
        ):
            rows.append(Row("indoor-small", "eswm", metric, *over_rooms(values, counted, seed)))
    return rows
