"""Batches for training on pools of houses; see `python -m eswm_gym.indoor_pools`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eswm_gym.rooms.indoor import Asked, Pool, draw_bank, query_kinds
from eswm_gym.rooms.transitions import END
from eswm_gym.world_model.indoor.pose_mixtures import between, compose
from eswm_gym.world_model.indoor.view_reader import READ

FAR = 4.0  # metres; views further apart are not compared in training
BANK_SIZES = (2, 6, 12, 32)


class Houses:
    """The houses of a folder of pools, which may still be written to.

    Attributes:
        pools: one of each house.
        tokens: (P, 16, D) float16 of each house, reduced.
        ways: of each house (P, K, 2) float16, metres to the right and ahead of each pose, and (P, K) bool, whether
            something is in the way of going there.

    Raises:
        ValueError: if the folder holds no pools, or some without ways, as they were once made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pools: list[Pool] = []
        self.tokens: list[Tensor] = []
        self.ways: list[tuple[Tensor, Tensor]] = []
        self._read: set[Path] = set()
        self.read_new()
        if not self.pools:
            raise ValueError(f"{folder} holds no pools; make them with python -m eswm_gym.indoor_pools --out {folder}")

    def __len__(self) -> int:
        return len(self.pools)

    def draw(self, rng: np.random.Generator, n: int, apart: bool = False) -> list[int]:
        """Numbers of houses; every tenth is apart, for what has to be learned of networks that never saw the house."""
        numbers = np.arange(len(self))
        held = numbers % 10 == 9
        some = numbers[held == apart]
        return rng.choice(some if len(some) else numbers, n).tolist()

    def read_new(self) -> None:
        """Read the files that have come since."""
        for file in sorted(set(self.folder.glob("houses-?????.npz")) - self._read):
            with np.load(file) as chunk:
                if missing := {"ways", "blocked"} - set(chunk.files):
                    raise ValueError(
                        f"{file} lacks {', '.join(sorted(missing))}: make the pools again, in a new folder"
                    )
                self.pools += [
                    Pool(*one) for one in zip(*(chunk[key] for key in ("poses", "moves", "sees")), strict=True)
                ]
                self.tokens += list(torch.from_numpy(chunk["tokens"]))
                self.ways += list(zip(*(torch.from_numpy(chunk[key]) for key in ("ways", "blocked")), strict=True))
            self._read.add(file)


class Pairs(NamedTuple):
    """N pairs of the views of some houses.

    Attributes:
        tokens: (H * P, 16, D) of all their views.
        start, end: (N,) rows of `tokens`.
        action: (N, 3).
        overlap: (N,) float, 1 where the views overlap.
    """

    tokens: Tensor
    start: Tensor
    end: Tensor
    action: Tensor
    overlap: Tensor


def draw_pairs(rng: np.random.Generator, houses: Houses, n_houses: int, n: int) -> Pairs:
    """Pairs of views within 4 m, eight times as likely where they overlap."""
    parts, offset = [], 0
    chosen = houses.draw(rng, n_houses)
    for house in chosen:
        pool = houses.pools[house]
        near = np.linalg.norm(pool.poses[:, None, :2] - pool.poses[None, :, :2], axis=-1) < FAR
        weight = (near & ~np.eye(len(near), dtype=bool)) * (0.15 + pool.overlap)
        flat = np.searchsorted(np.cumsum(weight), rng.random(n // n_houses) * weight.sum())
        start, end = np.divmod(flat, len(near))
        parts.append((start + offset, end + offset, pool.actions[start, end], pool.overlap[start, end]))
        offset += len(near)
    start, end, *others = (torch.from_numpy(np.concatenate(part)) for part in zip(*parts, strict=True))
    tokens = torch.cat([houses.tokens[house] for house in chosen]).float()
    return Pairs(tokens, start, end, *(part.float() for part in others))


def draw_ways_of(rng: np.random.Generator, houses: Houses, n_houses: int, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Views (n, 16, D) of some houses, points (n, K, 2) as they lie to them, and (n, K) float, 1 where the way there is
    blocked."""
    parts = []
    for house in houses.draw(rng, n_houses):
        rows = torch.from_numpy(rng.integers(len(houses.tokens[house]), size=n // n_houses))
        parts.append([part[rows].float() for part in (houses.tokens[house], *houses.ways[house])])
    tokens, to, blocked = (torch.cat(part) for part in zip(*parts, strict=True))
    return tokens, to, blocked


class Glances(NamedTuple):
    """N views to be read from those that a bank holds near them.

    Attributes:
        tokens: (N, 8, 16, D) of the view that is given, and those of the bank that overlap most.
        relative: (N, 8, 3) how their poses lie as seen from the view that is asked for.
        there: (N, 8) bool, whether there is such a view.
        target: (N, 16, D).
        known: (N,) bool, whether bank and given view show enough of it.
        unknown: (N,) bool, whether they show next to nothing of it.
    """

    tokens: Tensor
    relative: Tensor
    there: Tensor
    target: Tensor
    known: Tensor
    unknown: Tensor


def draw_glances(
    rng: np.random.Generator, houses: Houses, n_houses: int, n: int, overlap: Callable[[Tensor], Tensor]
) -> Glances:
    """Ends of moves from given views; where the bank's views lie is known with an error, as it will be in use."""
    parts = []
    for house in houses.draw(rng, n_houses):
        pool, tokens = houses.pools[house], houses.tokens[house]
        bank = draw_bank(rng, pool, int(rng.choice(BANK_SIZES)))
        start, end, kind = _moves(rng, pool, bank, n // n_houses)
        pose, views = torch.from_numpy(pool.poses), torch.from_numpy(np.unique(bank))
        error = (
            rng.standard_normal((len(end), 3))
            * [0.12, 0.12, 0.06]
            * rng.choice([0.3, 1, 3], (len(end), 1), p=[0.4, 0.5, 0.1])
        )
        believed = compose(pose[end], torch.from_numpy(error).float())
        relative = between(believed[:, None], pose[views][None])
        with torch.no_grad():
            near = overlap(relative).topk(min(READ - 1, len(views)), 1).indices
        rows = torch.cat([torch.from_numpy(start)[:, None], views[near]], 1)
        relative = relative.gather(1, near[..., None].expand(-1, -1, 3))
        relative = torch.cat([between(pose[end], pose[start])[:, None], relative], 1)
        fill = READ - rows.shape[1]
        there = torch.nn.functional.pad(torch.ones(rows.shape, dtype=torch.bool), (0, fill))
        rows, relative = torch.nn.functional.pad(rows, (0, fill)), torch.nn.functional.pad(relative, (0, 0, 0, fill))
        known, unknown = (torch.from_numpy(kind == value) for value in (Asked.FREE, Asked.UNKNOWN))
        parts.append((tokens[rows].float(), relative, there, tokens[end].float(), known, unknown))
    return Glances(*(torch.cat(part) for part in zip(*parts, strict=True)))


def _moves(rng: np.random.Generator, pool: Pool, bank: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts, ends (n,) and kinds of moves to views that no bank holds: half known, a sixth not, the rest any."""
    kind, held = query_kinds(pool, bank, END), np.isin(np.arange(len(pool.poses)), bank)
    known, unknown = (np.argwhere(kind == value) for value in (Asked.FREE, Asked.UNKNOWN))
    others = np.argwhere(pool.moves & ~held[None])
    others = others if len(others) else np.argwhere(pool.moves)
    counts = (n // 2 * bool(len(known)), n // 6 * bool(len(unknown)))
    drawn = [some[rng.integers(len(some), size=k)] for some, k in ((known, counts[0]), (unknown, counts[1])) if k]
    rows = np.concatenate([*drawn, others[rng.integers(len(others), size=n - sum(counts))]])
    return rows[:, 0], rows[:, 1], kind[rows[:, 0], rows[:, 1]]
