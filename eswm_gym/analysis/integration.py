"""Does a model integrate its memories: what it predicts from banks that are larger, denser, contradictory, or hold a
shortcut (paper: "ESWM Integrates Overlapping Memories")."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import entr, rel_entr

from eswm_gym.analysis.activations import CHUNK
from eswm_gym.rooms import (
    UNSEEN_ONLY,
    BankBatch,
    QueryBatch,
    RoomConfig,
    add_transitions,
    draw_queries,
    generate_rooms,
    random_regions,
    spanning_banks,
)
from eswm_gym.rooms.lattice.noise import append_memory
from eswm_gym.rooms.transitions import ACTION, mask, to_problems
from eswm_gym.world_model import ESWM, Answer
from eswm_gym.world_model.evaluate import compare, complete


@torch.inference_mode()
def predictions(model: ESWM, memories: np.ndarray, query: np.ndarray, chunk: int = CHUNK) -> np.ndarray:
    """Complete queries.

    Args:
        model: on any device.
        memories: (B, N, 3) int banks, padded with -1.
        query: (B, Q, 3) int, each with one component -1.
        chunk: banks in one pass.

    Returns:
        (B, Q, C) float64, probabilities of the classes of the masked component, as its head has them; C is the size
        of the largest head, and the others are padded with 0.

    Raises:
        ValueError: if the banks are longer than any that the model was trained on.
    """
    found = []
    for first in range(0, len(memories), chunk):
        banks, asked = (
            torch.from_numpy(x[first : first + chunk].astype(np.int64)).to(model.device) for x in (memories, query)
        )
        heads = model(banks, asked)
        n_classes = max(head.shape[2] for head in heads)
        logits = torch.stack([F.pad(head, (0, n_classes - head.shape[2]), value=-torch.inf) for head in heads], 2)
        masked = (asked < 0).int().argmax(2)
        found.append(logits.take_along_dim(masked[..., None, None], 2)[:, :, 0].double().softmax(-1).cpu().numpy())
    return np.concatenate(found)


def right_answers(
    model: ESWM, memories: np.ndarray, banks: BankBatch, queries: QueryBatch
) -> tuple[np.ndarray, np.ndarray]:
    """Which queries the model completes as `evaluate` counts them.

    Args:
        model: on any device.
        memories: (B, N, 3) int, what the model reads: the banks' own transitions or noisy ones.
        banks, queries: what is true.

    Returns:
        (B, Q) bool, accurate: the generating transition, "I don't know" if the query is unsolvable; and (B, Q) bool,
        valid: any that is true in the room.
    """
    problems = to_problems(banks, queries)
    best = predictions(model, memories, problems.query).argmax(2)
    unknown = best == np.where(queries.masked == ACTION, model.config.n_actions, model.config.n_states)
    answer = Answer(best[..., None], best, unknown)
    accurate, _ = compare(answer, problems)
    true = banks.rooms.is_true(complete(answer, problems))
    return accurate, true | (unknown & (problems.unknown == 1))


def sized_banks(rng: np.random.Generator, n: int, config: RoomConfig, hidden: int = 0, extra: int = 0) -> BankBatch:
    """Banks of rooms with so many locations unobserved, and so many transitions more than a minimal one.

    Args:
        rng: source of randomness.
        n: rooms.
        config: their family, whose own `hidden` is ignored.
        hidden: locations of the unobserved region.
        extra: transitions to add; none of them leads off the lattice.
    """
    rooms = generate_rooms(rng, n, config)
    rooms = replace(rooms, observed=~random_regions(rng, np.full(n, hidden), rooms.lattice))
    return add_transitions(rng, spanning_banks(rng, rooms), np.full(n, extra), off_lattice=False)


def forgotten(memories: np.ndarray, noisy: np.ndarray, transitions: np.ndarray) -> np.ndarray:
    """Which queries name a state that noise took out of the bank, so that the bank has no answer left.

    Args:
        memories, noisy: (B, N, 3) int banks, padded with -1, before and after.
        transitions: (B, Q, 3) int, whole.

    Returns:
        (B, Q) bool.
    """
    names = np.arange(1 + max(memories.max(), transitions.max()))
    before, after = ((bank[:, :, ::2, None] == names).any((1, 2)) for bank in (memories, noisy))
    return (before & ~after)[np.arange(len(memories))[:, None, None], transitions[:, :, ::2]].any(2)


def integration_lengths(memories: np.ndarray, transitions: np.ndarray) -> np.ndarray:
    """Shortest paths from source to end over memories, walked in either direction (paper: "ESWM integrates memories").

    Args:
        memories: (B, N, 3) int banks, padded with -1.
        transitions: (B, Q, 3) int, whole.

    Returns:
        (B, Q) int, how many memories a query has to integrate; 0 if it stays in place, -1 where no path leads.
    """
    rows = np.arange(len(memories))[:, None]
    n = 2 + max(memories[..., ::2].max(initial=0), transitions[..., ::2].max(initial=0))  # the last one for padding
    beside = np.zeros((len(memories), n, n), np.float32)
    beside[rows, memories[..., 0], memories[..., 2]] = 1
    beside = np.maximum(beside, beside.swapaxes(1, 2))
    reached = np.broadcast_to(np.eye(n, dtype=np.float32), beside.shape)
    lengths = np.where(reached > 0, 0, -1)
    for length in range(1, n):
        reached = np.minimum(reached + reached @ beside, 1)
        lengths[(reached > 0) & (lengths < 0)] = length
    return lengths[rows, transitions[..., 0], transitions[..., 2]]


def entropy_by_length(model: ESWM, rng: np.random.Generator, banks: BankBatch, n: int) -> tuple[np.ndarray, np.ndarray]:
    """How unsure the model is of unseen moves, and how many memories each has to integrate (paper: "ESWM integrates
    memories", a).

    Args:
        model: on any device.
        rng: draws the queries.
        banks: B banks.
        n: queries of each; fewer where a bank connects the ends of hardly any.

    Returns:
        (B n,) int lengths of paths, 1 at least, and (B n,) float entropies in nats.
    """
    memories, queries = banks.transitions(), draw_queries(rng, banks, 8 * n, UNSEEN_ONLY)
    lengths = integration_lengths(memories, queries.transitions)
    first, chosen = _first(lengths > 0, n)
    p = predictions(model, memories, _query(queries, first))
    return np.take_along_axis(lengths, first, 1)[chosen], entr(p).sum(2)[chosen]


def shortcut_divergences(
    model: ESWM, rng: np.random.Generator, banks: BankBatch, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """How much one more memory changes predictions (paper: "ESWM integrates memories", b).

    Two more memories are drawn for each bank. The queries are unseen moves whose path one of the two shortens (the
    informative memory) and the other does not. Neither is the move that is asked about or its reverse, which would be
    the answer itself.

    Args:
        model: on any device.
        rng: draws the memories and the queries.
        banks: B banks.
        n: queries of each; fewer where a bank has no more.

    Returns:
        (N,) float, Kullback-Leibler divergences in nats of the prediction before from that after the informative
        memory, and (N,) of the same queries after the uninformative one.
    """
    before = banks.transitions()
    more = draw_queries(rng, banks, 2, UNSEEN_ONLY).transitions
    after = [append_memory(before, more[:, i]) for i in range(2)]
    queries = draw_queries(rng, banks, 20 * n, UNSEEN_ONLY)
    asked = queries.transitions
    lengths = np.stack([integration_lengths(bank, asked) for bank in after])
    shortens = lengths < integration_lengths(before, asked)
    first, chosen = _first((shortens[0] ^ shortens[1]) & (lengths > 1).all(0), n)
    query = _query(queries, first)
    p, *q = (predictions(model, bank, query) for bank in (before, *after))
    divergence = [rel_entr(p, other).sum(2) for other in q]
    which = np.take_along_axis(shortens[1], first, 1)
    return np.where(which, *divergence[::-1])[chosen], np.where(which, *divergence)[chosen]


def _first(wanted: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(B, n) int, columns of the first n True of each row of (B, Q), and (B, n) bool, whether there were so many."""
    first = (~wanted).argsort(1, kind="stable")[:, :n]
    return first, np.take_along_axis(wanted, first, 1)


def _query(queries: QueryBatch, columns: np.ndarray) -> np.ndarray:
    """(B, n, 3) int, the queries in these columns (B, n) with their components masked."""
    return np.take_along_axis(mask(queries.transitions, queries.masked), columns[..., None], 1)
