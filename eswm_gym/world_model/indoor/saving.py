"""Saving and loading models of camera views: NAME.safetensors beside NAME.json."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch

from eswm_gym.files import CheckpointError
from eswm_gym.world_model.indoor.model import IndoorConfig, IndoorModel
from eswm_gym.world_model.pretrained import assembled, files_of, read_info, require_version, write_pair

WEIGHTS = Path(__file__).parent / "weights"


def save_indoor(model: IndoorModel, path: Path, training: dict[str, Any]) -> None:
    """Write PATH.safetensors in float16 and PATH.json, which says the shape, the training and the weights' hash.

    Raises:
        ValueError: if a weight is not finite, as after training that diverged.
    """
    config = dataclasses.asdict(model.config)
    write_pair(path, model.state_dict(), "indoor", config, torch.float16, training=training)


def load_indoor(name: str | Path = "indoor") -> IndoorModel:
    """Load the model that comes with the package, or one from a file, frozen.

    Raises:
        FileNotFoundError: if a file is missing.
        CheckpointError: if the files are damaged, foreign, of another version or do not belong together.
    """
    weights, description = files_of(WEIGHTS / "indoor" if name == "indoor" else name)
    info = read_info(description)
    if info.get("architecture") != "indoor":
        raise CheckpointError(f"{weights} is no model of camera views, but of {info.get('architecture')!r}")
    require_version(info, description)

    def described(info: dict[str, Any]) -> IndoorModel:
        config = info["config"]
        return IndoorModel(IndoorConfig(**{**config, "groups": tuple(config["groups"])}))

    return assembled(weights, description, info, described).eval().requires_grad_(False)
