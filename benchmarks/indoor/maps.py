"""Whether activations of the model of camera views form a map of the house (paper: "sRSA", "ISOMAP")."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from common.intervals import mean
from common.plots import save_figure
from common.rows import Row

from eswm_gym.analysis import isomap, srsa
from eswm_gym.world_model.indoor import IndoorModel
from indoor.houses import Asked

LAYERS = ("features", "columns", "belief", "reading")


def map_rows(asked: Sequence[Asked], models: dict[str, IndoorModel], seed: int) -> list[Row]:
    """sRSA over the views of each house, by layer: among positions, and among headings."""
    rows = []
    for method, model in models.items():
        scores: dict[tuple[str, str], list[float]] = {}
        for house in asked:
            place, heading = house.pool.poses[:, :2], house.pool.poses[:, 2]
            for layer, vectors in activations(model, house).items():
                for metric, at in (("position", place), ("heading", np.c_[np.sin(heading), np.cos(heading)])):
                    scores.setdefault((layer, metric), []).append(srsa(vectors, at, "euclidean"))
        for (layer, metric), values in scores.items():
            found = mean(np.nan_to_num(values), seed)
            rows.append(Row("indoor-map", method, f"srsa_{metric}/{layer}", *found))
    return rows


@torch.inference_mode()
def activations(model: IndoorModel, house: Asked) -> dict[str, np.ndarray]:
    """(P, dim) for each layer: a view's features, its columns, the pose that the model believes, and the tokens of what
    it imagines there from the other views."""
    bank = model.encode(house.memories())
    pose = model.locate(bank, house.tokens)[0].best()
    kept: list[torch.Tensor] = []
    hook = model.reader.norm.register_forward_hook(lambda module, given, out: kept.append(out))
    model.view_at(bank, pose, house.tokens, torch.zeros(len(pose), 3))
    hook.remove()
    belief = torch.cat([pose[:, :2], pose[:, 2:].sin(), pose[:, 2:].cos()], 1)
    layers = (house.tokens.flatten(1), model.relative.look(house.tokens).whole, belief, kept[0].flatten(1))
    return {name: x.double().numpy() for name, x in zip(LAYERS, layers, strict=True)}


def draw_maps(asked: Sequence[Asked], model: IndoorModel, folder: Path) -> None:
    """FOLDER/indoor-map.png and .svg: ISOMAP of the layers of three houses, coloured by position and by heading."""
    import matplotlib.pyplot as plt

    houses = asked[:3]
    figure, axes = plt.subplots(len(houses) * 2, 1 + len(LAYERS), figsize=(12, 4.4 * len(houses)), squeeze=False)
    for k, house in enumerate(houses):
        place, heading = house.pool.poses[:, :2], house.pool.poses[:, 2]
        span = (place - place.min(0)) / np.ptp(place, axis=0)
        by_place = np.c_[span[:, 0], 0.4 * np.ones(len(span)), span[:, 1]]
        layers = {"true": place} | {
            layer: isomap(vectors, neighbors=12, metric="euclidean")
            for layer, vectors in activations(model, house).items()
        }
        for row, (label, colours) in enumerate((("position", by_place), ("heading", plt.cm.hsv(heading / 6.2832 % 1)))):
            for axis, (layer, points) in zip(axes[2 * k + row], layers.items(), strict=True):
                axis.scatter(*points.T, s=14, c=colours)
                axis.set(xticks=[], yticks=[], aspect="equal" if layer == "true" else "auto")
                axis.set_title(f"{layer}, by {label}", fontsize=8)
    save_figure(figure, folder, "indoor-map")
