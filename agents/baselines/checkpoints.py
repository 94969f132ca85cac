"""Saving and loading stable-baselines3 policies: NAME.safetensors beside NAME.json, no pickle, no network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stable_baselines3.common.policies import ActorCriticPolicy

from eswm_gym.files import CheckpointError
from eswm_gym.world_model.pretrained import files_of, read_info, read_weights, write_pair

WEIGHTS = Path(__file__).parent / "weights"
_SHARED = ("pi_features_extractor.", "vf_features_extractor.")  # other names of features_extractor's weights


def available() -> list[str]:
    """Names of the policies that come with the package."""
    return sorted(path.stem for path in WEIGHTS.glob("*.safetensors"))


def load_policy(
    path: str | Path, architecture: str, build: Callable[[dict[str, Any]], ActorCriticPolicy], device: str = "cpu"
) -> tuple[ActorCriticPolicy, dict[str, Any]]:
    """Load PATH.safetensors as its PATH.json describes it, frozen.

    Args:
        path: one of `available()`, or a path with or without a suffix.
        architecture: what the JSON must say.
        build: makes a policy from the JSON's config, without an environment.
        device: where to put it.

    Returns:
        The policy, in eval mode and without gradients, and the JSON.

    Raises:
        FileNotFoundError: if either file is missing.
        CheckpointError: if they are damaged, foreign, or do not belong together, or a weight is not finite.
    """
    weights, description = files_of(WEIGHTS / path if str(path) in available() else path)
    info = read_info(description)
    if not weights.exists():
        raise FileNotFoundError(f"no weights at {weights}")
    try:
        if info["architecture"] != architecture:
            raise ValueError(f"it is of architecture {info['architecture']!r}, not {architecture!r}")
        policy, sha256 = build(info["config"]), info["sha256"]
    except (KeyError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise CheckpointError(f"{description} does not describe a policy: {error!r}") from error
    state = read_weights(weights, sha256)
    torso = {name: value for name, value in state.items() if name.startswith("features_extractor.")}
    state |= {prefix[:3] + name: value for prefix in _SHARED for name, value in torso.items()}
    try:
        policy.load_state_dict(state)
    except RuntimeError as error:
        raise CheckpointError(f"{weights} does not fit its JSON: {error}") from error
    policy.set_training_mode(False)
    return policy.requires_grad_(False).to(device), info


def save_policy(
    policy: ActorCriticPolicy, path: str | Path, architecture: str, config: dict[str, Any], **info: Any
) -> None:
    """Write PATH.safetensors and PATH.json so that a kill at any moment leaves the old policy or the new one.

    Args:
        policy: its weights are written in float32 from any device.
        path: with or without a suffix.
        architecture, config: what `load_policy` needs to build it again.
        **info: what else the JSON should say, such as metrics.

    Raises:
        ValueError: if a weight is not finite.
    """
    state = {name: value for name, value in policy.state_dict().items() if not name.startswith(_SHARED)}
    write_pair(path, state, architecture, config, **info)
