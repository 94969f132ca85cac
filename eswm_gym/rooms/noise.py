"""Noise in memory banks (paper: "Noisy Memory Banks Implemention")."""

from __future__ import annotations

import numpy as np


def contradict_states(rng: np.random.Generator, memories: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Make one location's memories observe different states there.

    Args:
        rng: source of randomness.
        memories: (B, N, 3) int banks, padded with -1.
        states: (B, L) int, the state at each location; L of at least 2.

    Returns:
        (B, N, 3) int. A location that the bank visits is drawn; each of its memories observes another state of the room
        instead, drawn on its own.
    """
    visited = (memories[:, :, ::2, None] == states[:, None, None]).any((1, 2))
    location = np.where(visited, rng.random(visited.shape), -1).argmax(1)
    here = memories == np.take_along_axis(states, location[:, None], 1)[..., None]
    here[..., 1] = False
    seen = _others(rng, np.repeat(location[:, None], memories.shape[1], 1), states)
    return np.where(here, seen[..., None], memories)


def contradict_transitions(rng: np.random.Generator, memories: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Append a copy of one memory that ends elsewhere.

    Args:
        rng: source of randomness.
        memories: (B, N, 3) int banks, padded with -1, none of them empty.
        states: (B, L) int, the state at each location; L of at least 2.

    Returns:
        (B, N + 1, 3) int.
    """
    rows = np.arange(len(memories))
    memory = memories[rows, rng.integers((memories[..., 0] >= 0).sum(1))]
    location = (states == memory[:, 2:]).argmax(1)
    memory[:, 2] = _others(rng, location[:, None], states)[:, 0]
    return append_memory(memories, memory)


def append_memory(memories: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """(B, N + 1, 3) int, banks (B, N, 3) with a memory (B, 3) more each, before the padding of -1."""
    longer = np.pad(memories, ((0, 0), (0, 1), (0, 0)), constant_values=-1)
    longer[np.arange(len(memories)), (memories[..., 0] >= 0).sum(1)] = memory
    return longer


def _others(rng: np.random.Generator, location: np.ndarray, states: np.ndarray) -> np.ndarray:
    """(B, N) int, for each location (B, N) the state of another one, of states (B, L)."""
    n_locations = states.shape[1]
    return np.take_along_axis(states, (location + rng.integers(1, n_locations, location.shape)) % n_locations, 1)
