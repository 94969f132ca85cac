"""A model that has learned nothing: what an agent owes to training."""

from __future__ import annotations

import torch

from eswm_gym.world_model import ESWM, load_pretrained
from eswm_gym.world_model.pretrained import build_model


def untrained(name: str = "random-wall", seed: int = 0, device: str = "cpu") -> ESWM:
    """A model of the shape of one that comes with the package, with random weights, frozen.

    Args:
        name: one of `available()`.
        seed: of the weights.
        device: where to put it.

    Raises:
        ValueError: if there is no such model.
    """
    with torch.random.fork_rng(devices=[]):
        config = load_pretrained(name).config
        torch.manual_seed(seed)
        model = build_model(config)
    return model.to(device).requires_grad_(False).eval()
