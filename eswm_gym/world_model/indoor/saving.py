"""Saving and loading models of camera views: NAME.safetensors beside NAME.json."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from eswm_gym.files import CheckpointError, read_json, replacing, sha256_of
from eswm_gym.world_model.indoor.model import IndoorConfig, IndoorModel

WEIGHTS = Path(__file__).parent / "weights"


def save_indoor(model: IndoorModel, path: Path, training: dict[str, Any]) -> None:
    """Write PATH.safetensors in float16 and PATH.json, which says the shape, the training and the weights' hash."""
    import json

    with replacing(path) as temporary:
        save_file({name: value.half().contiguous() for name, value in model.state_dict().items()}, temporary)
    info = {"version": 1, "architecture": "indoor", "config": dataclasses.asdict(model.config)}
    info |= {"sha256": sha256_of(path), "training": training}
    with replacing(path.with_suffix(".json")) as temporary:
        temporary.write_text(json.dumps(info, indent=1))


def load_indoor(name: str | Path = "indoor") -> IndoorModel:
    """Load the model that comes with the package, or one from a file, frozen.

    Raises:
        FileNotFoundError: if a file is missing.
        CheckpointError: if the files are damaged, foreign or do not belong together.
    """
    path = WEIGHTS / "indoor.safetensors" if name == "indoor" else Path(name)
    info = read_json(path.with_suffix(".json"))
    if info.get("architecture") != "indoor":
        raise CheckpointError(f"{path} is no model of camera views, but of {info.get('architecture')!r}")
    if info["sha256"] != sha256_of(path):
        raise CheckpointError(f"{path} is not the file that {path.with_suffix('.json')} describes")
    config = info["config"]
    model = IndoorModel(IndoorConfig(**{**config, "groups": tuple(config["groups"])}))
    try:
        model.load_state_dict({key: value.to(torch.float32) for key, value in load_file(path).items()})
    except (SafetensorError, RuntimeError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    return model.eval().requires_grad_(False)
