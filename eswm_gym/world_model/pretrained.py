"""Saving and loading frozen models: NAME.safetensors beside NAME.json, no pickle, no network."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from eswm_gym.world_model.emwm import EMWM, EMWMConfig
from eswm_gym.world_model.eswm import ESWM, ModelConfig
from eswm_gym.world_model.recurrent import Recurrent, RecurrentConfig
from eswm_gym.world_model.tem_t import TEMT, TEMTConfig
from eswm_gym.world_model.transformer import Transformer, TransformerConfig
from eswm_gym.world_model.view_transformer import ViewTransformer, ViewTransformerConfig

WEIGHTS = Path(__file__).parent / "weights"
ARCHITECTURES: dict[str, tuple[Any, Any]] = {
    "transformer": (Transformer, TransformerConfig),
    "recurrent": (Recurrent, RecurrentConfig),
    "tem-t": (TEMT, TEMTConfig),
    "emwm": (EMWM, EMWMConfig),
    "view-transformer": (ViewTransformer, ViewTransformerConfig),
}


def build_model(config: ModelConfig) -> ESWM:
    """A model of the architecture that a config belongs to, with random weights.

    Raises:
        ValueError: if it belongs to none.
    """
    for model, kind in ARCHITECTURES.values():
        if type(config) is kind:
            return model(config)
    raise ValueError(f"no architecture in ARCHITECTURES has a {type(config).__name__}")


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
    return _read_json(_unfinished(path) or _files(path)[1])


def write_info(path: str | Path, info: dict[str, Any]) -> None:
    """Replace the JSON beside saved weights, with a hash of its own."""
    description = _files(path)[1]
    _write_json(_temporary(description), info)
    _temporary(description).replace(description)


def load_model(path: str | Path, device: str = "cpu") -> ESWM:
    """Load PATH.safetensors as its PATH.json describes it, frozen.

    Raises:
        FileNotFoundError: if either file is missing.
        CheckpointError: if they are damaged, foreign, or do not belong together, or a weight is not finite.
    """
    weights, description = _files(path)
    info = read_info(path)
    if not weights.exists():
        raise FileNotFoundError(f"no weights at {weights}")
    try:
        architecture, config, sha256 = info["architecture"], info["config"], info["sha256"]
        model_class, config_class = ARCHITECTURES[architecture]
        model = model_class(config_class(**config))
    except (KeyError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise CheckpointError(f"{description} does not describe a model: {error!r}") from error
    tensors = read_weights(weights, sha256)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise CheckpointError(f"{weights} does not fit its JSON: {error}") from error
    model.latent_radius = info.get("latent_radius")
    return model.eval().requires_grad_(False).to(device)


def save_model(model: ESWM, path: str | Path, dtype: torch.dtype = torch.float32, **info: Any) -> None:
    """Write PATH.safetensors and PATH.json, each to a temporary file first, so that neither is ever half written.

    A kill at any moment leaves the old model or the new one: the JSON holds the weights' hash, and between the two
    renames the temporary JSON is the one that `load_model` reads.

    Args:
        model: compiled or not, on any device.
        path: with or without a suffix.
        dtype: of the weights in the file; float16 takes half the room. A loaded model's are float32.
        **info: what else the JSON should say, such as metrics.

    Raises:
        ValueError: if a weight is not finite, as after training that diverged, or the model is of no known
            architecture.
    """
    model = getattr(model, "_orig_mod", model)  # what torch.compile wrapped
    architecture = next((name for name, (kind, _) in ARCHITECTURES.items() if type(model) is kind), None)
    if architecture is None:
        raise ValueError(f"no architecture in ARCHITECTURES is a {type(model).__name__}")
    radius = {} if model.latent_radius is None else {"latent_radius": model.latent_radius}
    write_pair(path, model.state_dict(), architecture, model.config.to_dict(), dtype, **radius, **info)


def read_weights(weights: Path, sha256: str) -> dict[str, Tensor]:
    """The tensors of a file with this hash.

    Raises:
        CheckpointError: if it is another file, damaged, or holds what is not finite.
    """
    found = _sha256(weights)
    if found != sha256:
        raise CheckpointError(f"{weights} has sha256 {found}, its JSON says {sha256}: damaged or replaced")
    try:
        tensors = load_file(weights)
        require_finite(tensors)
    except SafetensorError as error:
        raise CheckpointError(f"{weights} does not fit its JSON: {error}") from error
    except ValueError as error:
        raise CheckpointError(f"{weights}: {error}") from error
    return tensors


def require_finite(tensors: Mapping[str, Tensor]) -> None:
    """Refuse weights that are nan or infinite.

    Raises:
        ValueError: naming the first of them.
    """
    for name, value in tensors.items():
        if not value.isfinite().all():
            raise ValueError(f"{name} has weights that are not finite, as after training that diverged")


def write_pair(
    path: str | Path,
    tensors: Mapping[str, Tensor],
    architecture: str,
    config: dict[str, Any],
    dtype: torch.dtype = torch.float32,
    **info: Any,
) -> None:
    """Write tensors, from any device, and the JSON that describes them, as `save_model` says."""
    weights, description = _files(path)
    written = {name: value.detach().cpu().to(dtype).contiguous() for name, value in tensors.items()}
    require_finite(written)
    weights.parent.mkdir(parents=True, exist_ok=True)
    if unfinished := _unfinished(path):  # what an earlier call was killed in, before its JSON is written over
        unfinished.replace(description)
    save_file(written, _temporary(weights))
    described = {"architecture": architecture, "config": config, "sha256": _sha256(_temporary(weights)), **info}
    _write_json(_temporary(description), described)
    _temporary(weights).replace(weights)
    _temporary(description).replace(description)


def _files(path: str | Path) -> tuple[Path, Path]:
    """PATH.safetensors and PATH.json; PATH may have either suffix, and dots of its own."""
    path = Path(path)
    name = path.stem if path.suffix in (".safetensors", ".json") else path.name
    return path.with_name(f"{name}.safetensors"), path.with_name(f"{name}.json")


def _temporary(file: Path) -> Path:
    return file.with_name(f"{file.name}.tmp")


def _unfinished(path: str | Path) -> Path | None:
    """The temporary JSON, if it is the one of these weights: a kill came before it was renamed."""
    weights, description = _files(path)
    try:
        temporary = _temporary(description)
        return temporary if _read_json(temporary).get("sha256") == _sha256(weights) else None
    except (FileNotFoundError, CheckpointError):
        return None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def checksum_of(info: Any) -> str:
    """The hash of what a JSON says, however it is laid out."""
    return hashlib.sha256(json.dumps(info, sort_keys=True).encode()).hexdigest()


def _write_json(path: Path, info: dict[str, Any]) -> None:
    info = json.loads(json.dumps(info))  # tuples are lists now, as they will be when it is read
    path.write_text(json.dumps({**info, "checksum": checksum_of(info)}, indent=2) + "\n")


def _read_json(path: Path) -> dict[str, Any]:
    """What a JSON says besides its checksum, which one written by hand may lack."""
    if not path.exists():
        raise FileNotFoundError(f"no model description at {path}")
    try:
        info = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not JSON: {error}") from error
    if not isinstance(info, dict):
        raise CheckpointError(f"{path} does not describe a model")
    checksum = info.pop("checksum", None)
    if checksum not in (None, checksum_of(info)):
        raise CheckpointError(f"{path} is damaged: its content does not have the checksum that it says")
    return info
