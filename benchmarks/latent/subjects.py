"""What is looked at: a model beside its control, in the same rooms. And what the measures share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from common.cli import model_seed
from common.rows import Row

from eswm_gym.analysis import KINDS
from eswm_gym.rooms import RoomBatch, RoomConfig, generate_rooms
from eswm_gym.world_model import ESWM

PAPER = {
    ("eswm", "srsa"): 0.78,
    ("untrained", "srsa"): 0.50,
    ("eswm", "distance_probe"): 0.9342,
    ("eswm", "latent_r2"): 0.89,
    ("eswm", "latent_r2_cosine"): 0.89,
}
ISOMAP_BANKS, NEIGHBORS = 6, 40


@dataclass(frozen=True)
class Sizes:
    """How many rooms each measure rests on; `other` ones serve to choose."""

    srsa: int = 1000
    srsa_other: int = 40
    tasks: int = 50
    train: int = 3000
    test: int = 1000
    probe_other: int = 1000
    seeds: int = 10
    geodesics: int = 75
    geodesics_other: int = 40
    isomap: int = 3
    gaps: int = 200
    grids: int = 20
    kinds: tuple[str, ...] = KINDS
    kind_banks: int = ISOMAP_BANKS


QUICK = Sizes(6, 3, 3, 160, 60, 80, 2, 4, 3, 1, 8, 1, ("straight-wall",), 1)


@dataclass(frozen=True)
class Subject:
    """A model and its control.

    Attributes:
        name: in the table: "eswm", or the name of the model's file.
        model, control: trained and not.
        seed: of everything.
    """

    name: str
    model: ESWM
    control: ESWM
    seed: int

    def models(self) -> dict[str, ESWM]:
        return {self.name: self.model, self.control_name: self.control}

    @property
    def control_name(self) -> str:
        return "untrained" if self.name == "eswm" else f"{self.name}-untrained"

    def rng(self, *parts: int) -> np.random.Generator:
        """A stream of its own for each measure, and for choosing and reporting."""
        return np.random.default_rng([model_seed(self.seed), *parts])

    def paper(self, method: str, metric: str) -> float | None:
        return PAPER.get((method, metric))

    def rooms(self, rng: np.random.Generator, n: int, radius: int) -> RoomBatch:
        return generate_rooms(rng, n, RoomConfig.random_wall(self.radius(radius), hidden=0.0))

    def radius(self, wanted: int) -> int:
        """The radius that is wanted, or 2 where the model has no vocabulary or memory for larger rooms."""
        config = self.model.config
        return wanted if config.n_states >= 37 and config.max_memories >= 36 else 2

    def setting(self, wanted: int) -> str:
        """The setting of rooms of that radius."""
        return f"random-wall-{37 if self.radius(wanted) == 3 else 19}"


def by_layer(setting: str, method: str, metric: str, values: np.ndarray) -> list[Row]:
    """The mean of (depth, n) values, layer by layer."""
    return [
        Row(setting, method, metric, float(layer.mean()), n=len(layer), along="layer", at=i)
        for i, layer in enumerate(values, 1)
    ]
