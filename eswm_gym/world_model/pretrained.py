"""Saving and loading frozen models: NAME.safetensors beside NAME.json, no pickle, no network."""

from __future__ import annotations

import getpass
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from eswm_gym.files import CheckpointError, checksum_of, flush, read_json, replacing, sha256_of
from eswm_gym.world_model.emwm import EMWM, EMWMConfig
from eswm_gym.world_model.eswm import ESWM, ModelConfig
from eswm_gym.world_model.overlap_model import OverlapConfig, OverlapModel
from eswm_gym.world_model.recurrent import Recurrent, RecurrentConfig
from eswm_gym.world_model.tem_t import TEMT, TEMTConfig
from eswm_gym.world_model.transformer import Transformer, TransformerConfig
from eswm_gym.world_model.view_transformer import ViewTransformer, ViewTransformerConfig

M = TypeVar("M", bound=nn.Module)
WEIGHTS = Path(__file__).parent / "weights"
VERSION = 1  # of the JSON beside saved weights; one that says none is of version 1
ARCHITECTURES: dict[str, tuple[Any, Any]] = {
    "transformer": (Transformer, TransformerConfig),
    "recurrent": (Recurrent, RecurrentConfig),
    "tem-t": (TEMT, TEMTConfig),
    "emwm": (EMWM, EMWMConfig),
    "overlap": (OverlapModel, OverlapConfig),
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
    return _read_json(_finished(path) or files_of(path)[1])


def write_info(path: str | Path, info: dict[str, Any]) -> None:
    """Replace the JSON beside saved weights, with a hash of its own."""
    with _alone(path), replacing(files_of(path)[1]) as temporary:
        _write_json(temporary, info)


def load_model(path: str | Path, device: str = "cpu") -> ESWM:
    """Load PATH.safetensors as its PATH.json describes it, frozen.

    Raises:
        FileNotFoundError: if either file is missing.
        CheckpointError: if they are damaged, foreign, of another version, or do not belong together, or a weight is not
            finite.
        ValueError: if there is no such device.
    """
    weights, description = files_of(path)
    if folder := next((file for file in (weights, Path(path)) if file.is_dir()), None):
        held = ", ".join(sorted(file.name for file in folder.glob("*.safetensors"))) or "none"
        raise CheckpointError(f"{folder} is a folder, a model is a file NAME.safetensors; there it has {held}")
    info = read_info(path)
    require_version(info, description)
    radius = info.get("latent_radius")
    is_number = isinstance(radius, int | float) and not isinstance(radius, bool)
    if radius is not None and not (is_number and 0 < radius < math.inf):
        raise CheckpointError(f"{description}: latent_radius must be a number greater than 0, got {radius!r}")

    def described(info: dict[str, Any]) -> ESWM:
        model, config = ARCHITECTURES[info["architecture"]]
        return model(config(**info["config"]))

    model = assembled(weights, description, info, described)
    model.latent_radius = radius
    try:
        return model.eval().requires_grad_(False).to(device)
    except (AssertionError, RuntimeError) as error:  # by PyTorch, of a device that is not there
        raise ValueError(f"there is no device {device!r} here, 'cpu' always is: {error}") from error


def require_version(info: dict[str, Any], description: Path) -> None:
    """Raise a CheckpointError if a JSON is of a version that this release does not read."""
    if (version := info.get("version", VERSION)) != VERSION:
        raise CheckpointError(f"{description} is of version {version!r}, this release reads version {VERSION}")


def assembled(weights: Path, description: Path, info: dict[str, Any], described: Callable[[dict[str, Any]], M]) -> M:
    """The model that a JSON describes, with its weights.

    Raises:
        FileNotFoundError: if there are no weights.
        CheckpointError: if the JSON describes no model, or the weights are damaged or another's.
    """
    if not weights.exists():
        raise FileNotFoundError(f"no weights at {weights}")
    try:
        sha256, model = info["sha256"], described(info)
    except (KeyError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise CheckpointError(f"{description} does not describe a model: {error!r}") from error
    tensors = read_weights(weights, sha256)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise CheckpointError(f"{weights} does not fit its JSON: {error}") from error
    return model


def save_model(model: ESWM, path: str | Path, dtype: torch.dtype = torch.float32, **info: Any) -> None:
    """Write PATH.safetensors and PATH.json so that a kill at any moment leaves the old model or the new one.

    Both are written under other names first. The JSON holds the weights' hash: after the weights are renamed and before
    the JSON is, `load_model` reads the JSON that has the right hash. Of several processes that write to one path, each
    waits for the one before.

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
    found = sha256_of(weights)
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
    weights, description = files_of(path)
    written = {name: value.detach().cpu().to(dtype).contiguous() for name, value in tensors.items()}
    require_finite(written)
    with _alone(path):
        if finished := _finished(path):  # an earlier call was killed before it renamed this JSON
            finished.replace(description)
        with replacing(weights) as temporary:
            temporary.write_bytes(save(written))  # save_file would make it readable by its owner alone
            described = {"version": VERSION, "architecture": architecture, "config": config}
            _write_json(_waiting(description), described | {"sha256": sha256_of(temporary), **info})
        _waiting(description).replace(description)


def files_of(path: str | Path) -> tuple[Path, Path]:
    """PATH.safetensors and PATH.json; PATH may have either suffix, and dots of its own."""
    path = Path(path)
    name = path.stem if path.suffix in (".safetensors", ".json") else path.name
    return path.with_name(f"{name}.safetensors"), path.with_name(f"{name}.json")


@contextmanager
def _alone(path: str | Path) -> Iterator[None]:
    """No other process of this user writes this model meanwhile; the lock is a file in the temporary folder."""
    which = checksum_of([getpass.getuser(), str(files_of(path)[0].absolute())])
    with FileLock(Path(tempfile.gettempdir()) / f"eswm-{which[:16]}.lock"):
        yield


def _waiting(description: Path) -> Path:
    """Where a JSON waits until its weights have been renamed."""
    return description.with_name(f"{description.name}.tmp")


def _finished(path: str | Path) -> Path | None:
    """The waiting JSON, if its weights have been renamed but it has not: a kill came between."""
    weights, description = files_of(path)
    waiting = _waiting(description)
    try:
        return waiting if _read_json(waiting).get("sha256") == sha256_of(weights) else None
    except (FileNotFoundError, CheckpointError):
        return None


def _write_json(path: Path, info: dict[str, Any]) -> None:
    info = json.loads(json.dumps(info), parse_constant=lambda nan: None)  # as it will be read: lists, and no NaN
    path.write_text(json.dumps({**info, "checksum": checksum_of(info)}, indent=2) + "\n")
    flush(path)


def _read_json(path: Path) -> dict[str, Any]:
    """What a JSON says besides its checksum, which one written by hand may lack."""
    info = read_json(path)
    checksum = info.pop("checksum", None)
    if checksum not in (None, checksum_of(info)):
        raise CheckpointError(f"{path} is damaged: its content does not have the checksum that it says")
    return info
