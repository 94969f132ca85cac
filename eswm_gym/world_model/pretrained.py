"""Saving and loading frozen models: NAME.safetensors beside NAME.json, no pickle, no network."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from eswm_gym.world_model.eswm import ESWM
from eswm_gym.world_model.transformer import Transformer, TransformerConfig

WEIGHTS = Path(__file__).parent / "weights"
ARCHITECTURES = {"transformer": (Transformer, TransformerConfig)}


class CheckpointError(ValueError):
    """A file that is not a model of this package, or not the one its JSON describes."""


def available() -> list[str]:
    """Names of the models that come with the package."""
    return sorted(path.stem for path in WEIGHTS.glob("*.safetensors"))


def load_pretrained(name: str, device: str = "cpu") -> ESWM:
    """Load a model that comes with the package, frozen: in eval mode and without gradients.

    Args:
        name: one of `available()`.
        device: where to put it.

    Raises:
        ValueError: if there is no such model.
        CheckpointError: if its files are damaged.
    """
    if name not in available():
        raise ValueError(f"no pretrained model {name!r}; there are {', '.join(available()) or 'none'}")
    return load_model(WEIGHTS / f"{name}.safetensors", device)


def model_info(name: str) -> dict[str, Any]:
    """The JSON of a model that comes with the package: its config, training and held-out figures."""
    return read_info(WEIGHTS / f"{name}.json")


def read_info(path: str | Path) -> dict[str, Any]:
    """The JSON beside saved weights.

    Raises:
        FileNotFoundError: if it is missing.
        CheckpointError: if it is damaged.
    """
    return _read_json(_files(path)[1])


def load_model(path: str | Path, device: str = "cpu") -> ESWM:
    """Load PATH.safetensors as its PATH.json describes it, frozen.

    Raises:
        FileNotFoundError: if either file is missing.
        CheckpointError: if they are damaged, foreign, or do not belong together.
    """
    weights, description = _files(path)
    info = _read_json(description)
    if not weights.exists():
        raise FileNotFoundError(f"no weights at {weights}")
    try:
        architecture, config, sha256 = info["architecture"], info["config"], info["sha256"]
        model_class, config_class = ARCHITECTURES[architecture]
        model = model_class(config_class(**config))
    except (KeyError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise CheckpointError(f"{description} does not describe a model: {error!r}") from error
    found = _sha256(weights)
    if found != sha256:
        raise CheckpointError(f"{weights} has sha256 {found}, its JSON says {sha256}: damaged or replaced")
    try:
        model.load_state_dict(load_file(weights))
    except (SafetensorError, RuntimeError) as error:
        raise CheckpointError(f"{weights} does not fit its JSON: {error}") from error
    model.latent_radius = info.get("latent_radius")
    return model.eval().requires_grad_(False).to(device)


def save_model(model: ESWM, path: str | Path, **info: Any) -> None:
    """Write PATH.safetensors and PATH.json, each to a temporary file first, so that neither is ever half written.

    A kill between the two leaves a pair that `load_model` refuses, since the JSON holds the weights' hash.

    Args:
        model: compiled or not; its parameters are written in float32 from any device.
        path: with or without a suffix.
        **info: what else the JSON should say, such as metrics.
    """
    weights, description = _files(path)
    model = getattr(model, "_orig_mod", model)  # what torch.compile wrapped
    weights.parent.mkdir(parents=True, exist_ok=True)
    architecture = next(name for name, (kind, _) in ARCHITECTURES.items() if type(model) is kind)
    temporary = weights.with_suffix(".safetensors.tmp")
    save_file(
        {name: value.detach().cpu().float().contiguous() for name, value in model.state_dict().items()},
        temporary,
    )
    described = {
        "architecture": architecture,
        "config": model.config.to_dict(),
        "sha256": _sha256(temporary),
        **({} if model.latent_radius is None else {"latent_radius": model.latent_radius}),
        **info,
    }
    temporary_json = description.with_suffix(".json.tmp")
    temporary_json.write_text(json.dumps(described, indent=2) + "\n")
    temporary.replace(weights)
    temporary_json.replace(description)


def _files(path: str | Path) -> tuple[Path, Path]:
    """PATH.safetensors and PATH.json; PATH may have either suffix, and dots of its own."""
    path = Path(path)
    name = path.stem if path.suffix in (".safetensors", ".json") else path.name
    return path.with_name(f"{name}.safetensors"), path.with_name(f"{name}.json")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_json(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise FileNotFoundError(f"no model description at {path}")
    try:
        info = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} is not JSON: {error}") from error
    if not isinstance(info, dict):
        raise CheckpointError(f"{path} does not describe a model")
    return info
