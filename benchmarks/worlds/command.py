"""Answers in rooms on any lattice, never seen: one model, and rivals that look up, lay out or infer.

Settings, of which NUMBER is the greatest number of observed free locations:
  SHAPE-NUMBER           moves are known by name, memory banks minimal
  permuted-SHAPE-NUMBER  each room has codes of its own for its actions; along `held`, the share of the moves on the
                         lattice that a bank holds, or more where a spanning bank has more: `share_held` of `bank` says
Methods:
  eswm                   the shipped `lattices`, or another --model
  memory-graph           the facts of the bank and their reverses: it is told which moves undo each other or, of codes,
                         takes those that did so once
  path-integration       is told where each move leads, but on a torus not where the world begins again
  path-integration-told  is told that too
  rules                  finds out what codes do; it is told how many there are, and what `rules.py` says of all worlds
Measures: `validity`, the completed transition is true in the room, or the query is unsolvable and the answer "I don't
know". A rival says that where nothing follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from common.cli import BySize, Parser, finish, model_seed
from common.intervals import mean, over_rooms
from common.models import find_model
from common.progress import progress
from common.rows import Row

from eswm_gym.rooms import LatticeSource, observed_moves
from eswm_gym.world_model.evaluate import Judged, cells_of, concatenate, held_out, judge, judge_answers
from eswm_gym.world_model.presets import PRESETS
from worlds.rivals import UNDOES, Rival, answers, remember, told
from worlds.rules import infer

SETTINGS: Mapping[str, LatticeSource] = PRESETS["lattices"].settings  # type: ignore[assignment]
HELD = (0.3, 0.5, 0.6, 0.8, 0.9)
MEASURED = ("unseen/source", "unseen/action", "unseen/end", "unsolvable/end")
CHUNK = 100  # rooms drawn at a time


def sources_of(setting: str) -> Iterator[tuple[float | None, LatticeSource]]:
    """The sources of a setting, by the share of moves that banks hold; None where banks are minimal."""
    source = SETTINGS[setting]
    if source.held is None:
        yield None, source
    else:
        yield from ((share, replace(source, held=(share, share))) for share in HELD)


def rivals_of(source: LatticeSource) -> dict[str, Rival]:
    """What the model is compared with."""
    lattice = source.rooms.lattice
    if source.actions == "permuted":
        return {"memory-graph": remember, "rules": partial(infer, n_actions=lattice.n_actions)}
    rivals = {"memory-graph": partial(remember, undoes=UNDOES), "path-integration": told(lattice)}
    if source.rooms.shape == "torus":
        rivals["path-integration-told"] = told(lattice, source.rooms.size)
    return rivals


def judge_rival(rival: Rival, source: LatticeSource, n_rooms: int, seed: int) -> Judged:
    """A rival's answers to the queries that `judge` asks a model."""
    return concatenate(
        [
            judge_answers(answers(rival, problems), source, banks, queries, problems)
            for banks, queries, problems in held_out(source, n_rooms, seed, CHUNK)
        ]
    )


def shares_held(source: LatticeSource, n_rooms: int, seed: int) -> np.ndarray:
    """(R,) float, the share of the observed moves on the lattice that each bank holds."""
    shares = []
    for banks, *_ in held_out(source, n_rooms, seed, CHUNK):
        there = observed_moves(banks.rooms) & banks.rooms.lattice.on_lattice
        shares.append((banks.holds() & there).sum((1, 2)) / there.sum((1, 2)))
    return np.concatenate(shares)


def show(rows: Sequence[Row]) -> None:
    """Print validities, a line for each setting, share and method."""
    cells = {(row.setting, row.at, row.method, row.metric): row.value for row in rows}
    print(f"{'setting':22}{'held':>6}  {'method':22}" + "".join(f"{name:>16}" for name in MEASURED))
    for setting, at, method in dict.fromkeys(key[:3] for key in cells if key[3] != "share_held"):
        values = (cells.get((setting, at, method, f"validity/{name}")) for name in MEASURED)
        texts = ("" if value is None else f"{value:.3f}" for value in values)
        print(f"{setting:22}{at or '':>6}  {method:22}" + "".join(f"{text:>16}" for text in texts))


def main(argv: list[str] | None = None) -> list[Row]:
    options = Parser(__doc__, BySize(0.1, 2, 8))
    options.add_settings(SETTINGS)
    options.add_count("--rooms", (4, 120, 450), "rooms of each setting, 48 queries each")
    options.add_argument(
        "--model", default="lattices", metavar="NAME|FILE", help="a model, pretrained or saved (default %(default)s)"
    )
    args = options.parse_args(argv)
    model, rooms, seed = find_model(args.model, args.device), args.rooms, model_seed(args.seed)
    rows = []
    for setting in progress(args.settings, "worlds"):
        for share, source in sources_of(setting):
            row = partial(Row, setting, along=None if share is None else "held", at=share)
            judged = {"eswm": judge(model, source, rooms, seed, CHUNK)}
            judged |= {name: judge_rival(rival, source, rooms, seed) for name, rival in rivals_of(source).items()}
            for method, (kind, masked, _, valid, *_) in judged.items():
                for *_, name, cell in cells_of(kind, masked):
                    if name in MEASURED:
                        value, ci95, _ = over_rooms(valid, cell, args.seed)
                        rows.append(row(method, f"validity/{name}", value=value, ci95=ci95, n=int(cell.sum())))
            if share is not None:
                value, ci95, n = mean(shares_held(source, rooms, seed), args.seed)
                rows.append(row("bank", "share_held", value=value, ci95=ci95, n=n))
    return finish(args, "worlds", rows, show=show)
