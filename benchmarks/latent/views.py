"""The map of a model of MiniGrid: sRSA among poses and among cells."""

from __future__ import annotations

from functools import partial

import numpy as np
from common.intervals import mean
from common.rows import Found, Row

from eswm_gym.analysis import Activations, activations, queries_of, srsa
from eswm_gym.rooms.grid import N_HEADINGS, GridBankBatch, GridBatch, GridConfig, cover_banks, generate_grids, poses
from eswm_gym.world_model import ESWM
from latent.figures import draw_grid
from latent.subjects import ISOMAP_BANKS, Sizes, Subject, by_layer


def grid_rows(subject: Subject, sizes: Sizes) -> Found:
    """MiniGrid: sRSA among poses of one heading and among cells, layers chosen on other layouts; the map's figure."""
    rows: list[Row] = []
    best: dict[str, int] = {}
    for method, model in subject.models().items():
        other = _grid_srsa(subject, model, max(1, sizes.grids // 2), 0)
        found = _grid_srsa(subject, model, sizes.grids, 1)
        for metric in found:
            layer = int(other[metric].mean(1).argmax())
            rows.append(Row("minigrid", method, metric, *mean(found[metric][layer], subject.seed)))
            rows.append(Row("minigrid", method, f"{metric}_layer/chosen", layer + 1, n=other[metric].shape[1]))
            rows += by_layer("minigrid", method, metric, found[metric])
        best[method] = int(other["srsa_one_heading"].mean(1).argmax())

    return Found(rows, partial(draw_grid, subject, _grid_banks(subject.rng(9), ISOMAP_BANKS), best))


def _grid_srsa(subject: Subject, model: ESWM, n: int, part: int) -> dict[str, np.ndarray]:
    """(depth, n) sRSA of n layouts, action prediction: mean over the headings of that among the poses of each, and of
    cells, activations averaged over headings."""
    where = poses(GridConfig().size)
    position = where[:, :2].astype(float)
    cells, cell_of = np.unique(position, axis=0, return_inverse=True)
    rng = subject.rng(8, part)
    scores: dict[str, list] = {"srsa_one_heading": [], "srsa_cells": []}
    for _ in range(n):
        found = activations(model, queries_of(_grid_banks(rng, 2), "action"), chunk=1)
        of_poses = found.means(len(where))
        of_cells = Activations(found.vectors, cell_of.ravel()[found.place], found.bank).means(len(cells))
        heading = [where[:, 2] == h for h in range(N_HEADINGS)]
        scores["srsa_one_heading"].append([np.mean([srsa(x[h], position[h]) for h in heading]) for x in of_poses])
        scores["srsa_cells"].append([srsa(x, cells) for x in of_cells])
    return {metric: np.nan_to_num(values).T for metric, values in scores.items()}


def _grid_banks(rng: np.random.Generator, n: int) -> GridBankBatch:
    """n banks of one new layout."""
    grid = generate_grids(rng, 1, GridConfig())
    return cover_banks(rng, GridBatch.of(np.repeat(grid, n, 0)))
