"""What learned models are measured against: a floor that only looks memories up, and one that knows the lattice.

Neither has weights or is trained. Both answer "I don't know" where they find nothing.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from eswm_gym.rooms import DISPLACEMENTS, reverse_action
from eswm_gym.world_model.codecs import IntegerCodec
from eswm_gym.world_model.eswm import ESWM, EncodedBank, ModelConfig
from eswm_gym.world_model.predictions import Prediction

CERTAINTY = 10.0  # logit of an answer for each memory that says so; "I don't know" has half of that


class Lookup(ESWM):
    """Completes a query to a memory, or to the reverse of one that moved (floor)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.codec = IntegerCodec(config.n_states, dim=1, embeddings=False, heads=False).requires_grad_(False)

    def encode(self, memories: Tensor) -> EncodedBank:
        source, action, end = memories.unbind(2)
        back = torch.stack([end, reverse_action(action), source], 2)
        back = torch.where(((source != end) & (source >= 0))[..., None], back, -1)
        return EncodedBank(memories, torch.cat([memories, back], 1))

    def predict(self, bank: EncodedBank, query: Tensor) -> Prediction:
        facts = bank.cache[:, None]
        fits = ((query[:, :, None] == facts) | (query[:, :, None] < 0)).all(3) & (facts[..., 0] >= 0)
        classes = (self.config.n_states, self.config.n_actions, self.config.n_states)
        return Prediction(*(votes(fits, facts[..., i], n) for i, n in enumerate(classes)))


class PathIntegrator(Lookup):
    """Lays the memories out on the lattice and reads answers off, one map for each connected cluster."""

    def encode(self, memories: Tensor) -> EncodedBank:
        cluster, place = lay_out(memories, self.config.n_states)
        moves = torch.from_numpy(DISPLACEMENTS).to(memories.device)
        source, action, end = memories.unbind(2)
        bump = (source == end) & (source >= 0)
        where = _at(cluster, source), _at(place, source) + moves[action.clamp(min=0)]
        return EncodedBank(memories, (cluster, place, torch.where(bump, where[0], -1), where[1], moves))

    def predict(self, bank: EncodedBank, query: Tensor) -> Prediction:
        cluster, place, wall_cluster, wall, moves = bank.cache
        source, action, end = query.unbind(2)
        step = moves[action.clamp(min=0)]

        def step_from(state: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
            """(B, Q) the known state one step away, and whether a known wall is there; -1 for no known state."""
            there = _at(place, state) + step
            mine = _at(cluster, state)
            known = (mine[..., None] == cluster[:, None]) & (there[:, :, None] == place[:, None]).all(3)
            known &= (mine >= 0)[..., None]
            found = torch.where(known.any(2), known.int().argmax(2), -1)
            blocked = (mine[..., None] == wall_cluster[:, None]) & (there[:, :, None] == wall[:, None]).all(3)
            return found, (blocked & (mine >= 0)[..., None]).any(2)

        ahead, blocked = step_from(source, step)
        ends = torch.where(blocked, source, ahead)
        behind, _ = step_from(end, -step)
        _, stays = step_from(end, step)
        sources = torch.where(behind >= 0, behind, torch.where(stays, end, -1))
        actions = torch.full_like(action, -1)
        for a in range(self.config.n_actions):
            reached, blocked = step_from(source, moves[a])
            actions = torch.where(torch.where(blocked, source, reached) == end, a, actions)
        found = torch.stack([sources, actions, ends], 2)
        found = torch.where(query < 0, found, -1)
        classes = (self.config.n_states, self.config.n_actions, self.config.n_states)
        return Prediction(
            *(votes(f[..., None] >= 0, f[..., None], n) for f, n in zip(found.unbind(2), classes, strict=True))
        )


def votes(fits: Tensor, answers: Tensor, n: int) -> Tensor:
    """(B, Q, n + 1) logits of answers (B, Q, F) that fit (B, Q, F) a query; the last one of "I don't know"."""
    counts = (F.one_hot(answers.clamp(min=0), n) * fits[..., None]).sum(2)
    return CERTAINTY * F.pad(counts.float(), (0, 1), value=0.5)


def lay_out(memories: Tensor, n_states: int) -> tuple[Tensor, Tensor]:
    """Where states lie, by the memories that moved.

    Returns:
        (B, n_states) int, the cluster of each state, -1 for states that no memory holds, and (B, n_states, 2) int, its
        axial place in that cluster.
    """
    batch = torch.arange(len(memories), device=memories.device)
    moves = torch.from_numpy(DISPLACEMENTS).to(memories.device)
    cluster = torch.arange(n_states, device=memories.device).repeat(len(memories), 1)
    place = torch.zeros(len(memories), n_states, 2, dtype=torch.long, device=memories.device)
    held = torch.zeros_like(cluster, dtype=torch.bool)
    changed = True
    while changed:  # the lower number of two clusters spreads over the memories between them
        before = cluster.clone()
        for source, action, end in (row.unbind(1) for row in memories.unbind(1)):
            real = source >= 0
            held[batch[real], source[real]] = held[batch[real], end[real]] = True
            for start, stop, sign in ((source, end, 1), (end, source, -1)):
                spreads = real & (source != end) & (cluster[batch, start] < cluster[batch, stop])
                b, i, j = batch[spreads], start[spreads], stop[spreads]
                cluster[b, j] = cluster[b, i]
                place[b, j] = place[b, i] + sign * moves[action[spreads]]
        changed = bool((cluster != before).any())
    return torch.where(held, cluster, -1), place


def _at(table: Tensor, state: Tensor) -> Tensor:
    """Rows of a (B, n_states, ...) table for states (B, Q); those of state 0 for masked ones are not looked at."""
    found = table[torch.arange(len(table), device=table.device)[:, None], state.clamp(min=0)]
    return found if found.ndim == 3 else torch.where(state < 0, -1, found)
