"""Memories that contradict each other (paper: "Noisy Memory Banks Implemention")."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eswm_gym.rooms.transitions import MASKED


def contradict_states(rng: np.random.Generator, memories: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Make one location's memories observe different states there, those of other locations: the harsh reading.

    Args:
        rng: source of randomness.
        memories: (B, N, 3) int banks, padded with -1.
        states: (B, L) int, the state at each location; L of at least 2.

    Returns:
        (B, N, 3) int. A location that the bank visits is drawn; each of its memories observes another state of the room
        instead, drawn on its own.
    """
    here, location = _one_location(rng, memories, states, 1)
    seen = _others(rng, np.repeat(location[:, None], memories.shape[1], 1), states)
    return np.where(here, seen[..., None], memories)


def strange_states(
    rng: np.random.Generator, memories: np.ndarray, states: np.ndarray, vocabulary: Sequence[int]
) -> np.ndarray:
    """Let all but one of a location's memories observe states there that the room does not have: the mild reading.

    Args:
        rng: source of randomness.
        memories: (B, N, 3) int banks, padded with -1.
        states: (B, L) int, the state at each location.
        vocabulary: (V,) int, states of which each room lacks one at least.

    Returns:
        (B, N, 3) int. A location with two memories or more is drawn, if a bank has one; one of its memories, drawn too,
        stays as it is.
    """
    here, _ = _one_location(rng, memories, states, 2)
    involved = here.any(2)
    first = np.where(involved, rng.random(involved.shape), -1).argmax(1)
    here[np.arange(len(here)), first] = False
    known = np.asarray(vocabulary)
    lacking = (known != states[..., None]).all(1)  # (B, V)
    order = np.where(lacking, rng.random(lacking.shape), 2).argsort(1)
    turn = np.arange(memories.shape[1]) % lacking.sum(1)[:, None]
    strangers = known[np.take_along_axis(order, turn, 1)]
    return np.where(here, strangers[..., None], memories)


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
    longer = np.pad(memories, ((0, 0), (0, 1), (0, 0)), constant_values=MASKED)
    longer[np.arange(len(memories)), (memories[..., 0] >= 0).sum(1)] = memory
    return longer


def _one_location(
    rng: np.random.Generator, memories: np.ndarray, states: np.ndarray, fewest: int
) -> tuple[np.ndarray, np.ndarray]:
    """A location of each room with so many memories: (B, N, 3) bool, where they name its state; and (B,) int. If there
    is none, nothing is."""
    names = (memories[:, :, ::2, None] == states[:, None, None]).any(2).sum(1)  # (B, L)
    location = np.where(names >= fewest, rng.random(names.shape), -1).argmax(1)
    here = memories == np.take_along_axis(states, location[:, None], 1)[..., None]
    here[..., 1] = False
    return here & (names >= fewest).any(1)[:, None, None], location


def _others(rng: np.random.Generator, location: np.ndarray, states: np.ndarray) -> np.ndarray:
    """(B, N) int, for each location (B, N) the state of another one, of states (B, L)."""
    n_locations = states.shape[1]
    return np.take_along_axis(states, (location + rng.integers(1, n_locations, location.shape)) % n_locations, 1)
