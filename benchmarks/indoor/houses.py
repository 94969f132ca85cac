"""The houses of the benchmark, what is asked about them, and those who answer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from eswm_gym.agents.baselines import PoseGraph
from eswm_gym.envs.indoor_camera import camera
from eswm_gym.rooms.indoor import (
    CELLS,
    N_ROTATIONS,
    IndoorQueries,
    Pool,
    displacement_class,
    draw_bank,
    draw_house,
    draw_pool,
    draw_queries,
    rotation_class,
)
from eswm_gym.rooms.transitions import ACTION, END, SOURCE
from eswm_gym.world_model.indoor.model import IndoorBank, IndoorModel, Memories, cosine
from eswm_gym.world_model.indoor.pose_mixtures import PoseMixture, between, reverse
from eswm_gym.world_model.indoor.vision import Encoder

N_QUERIES = 60  # of each component, about each house


class Asked(NamedTuple):
    """A house, a bank of it, and the queries about each component.

    Attributes:
        tokens: (P, 16, D) of the pool's views.
        rows: (N, 2) int, the transitions of the bank.
    """

    pool: Pool
    tokens: Tensor
    rows: np.ndarray
    queries: dict[int, IndoorQueries]

    def memories(self, n: int | None = None) -> Memories:
        """The bank, or its first n transitions."""
        start, end = self.rows[:n].T
        action = torch.from_numpy(self.pool.actions[start, end]).float()
        return Memories(self.tokens[start], action, self.tokens[end])


@torch.inference_mode()
def ask(seed: int, model: IndoorModel, encoder: Encoder, max_memories: int = 32) -> Asked:
    """Draw a house, photograph it, and ask about it."""
    rng = np.random.default_rng(seed)
    house = draw_house(rng)
    pool = draw_pool(house, rng)
    tokens = model.reduction(encoder(np.stack([camera().picture(house, pose) for pose in pool.poses])))
    rows = draw_bank(rng, pool, max_memories)
    queries = {part: draw_queries(rng, pool, rows, N_QUERIES, (part,)) for part in (SOURCE, ACTION, END)}
    return Asked(pool, tokens, rows, queries)


class NoBank:
    """The model by the view, or the two views, that a query gives."""

    def __init__(self, model: IndoorModel) -> None:
        self.model, self.encode = model, model.encode

    def action_between(self, bank: IndoorBank, start: Tensor, end: Tensor) -> tuple[PoseMixture, Tensor]:
        return self.model.action_between(None, start, end)

    def view_after(self, bank: IndoorBank, start: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        back = reverse(action)
        there = torch.ones(len(start), 1, dtype=torch.bool)
        return self.model.reader(start[:, None], back[:, None], there)


class NearestMemory:
    """Answers with the memory that looks most like the query; forwards or backwards, whichever fits better."""

    METRE = 0.3  # a metre or a radian between actions counts for so much cosine

    def encode(self, memories: Memories) -> Memories:
        back = reverse(memories.action)
        start, action, end = memories
        return Memories(torch.cat([start, end]), torch.cat([action, back]), torch.cat([end, start]))

    def action_between(self, bank: Memories, start: Tensor, end: Tensor) -> tuple[PoseMixture, Tensor]:
        fit = cosine(start[:, None], bank.start[None]) + cosine(end[:, None], bank.end[None])
        return certain(bank.action[fit.argmax(1)]), -fit.amax(1)

    def view_after(self, bank: Memories, start: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        far = between(bank.action[None], action[:, None]).norm(dim=-1)
        fit = cosine(start[:, None], bank.start[None]) - self.METRE * far
        return bank.end[fit.argmax(1)], -fit.amax(1)


class Majority:
    """Answers with the commonest displacement and rotation, and the mean of the bank's views."""

    def __init__(self, actions: np.ndarray) -> None:
        commonest = [np.bincount(of(actions)).argmax() for of in (displacement_class, rotation_class)]
        right, forward = (3.0 * ((cell + 0.5) / CELLS - 0.5) for cell in divmod(int(commonest[0]), CELLS))
        turn = (commonest[1] + 0.5) * 2 * np.pi / N_ROTATIONS - np.pi
        self.action = torch.tensor([right, forward, turn], dtype=torch.float)

    def encode(self, memories: Memories) -> Memories:
        return memories

    def action_between(self, bank: Memories, start: Tensor, end: Tensor) -> tuple[PoseMixture, Tensor]:
        return certain(self.action.expand(len(start), 3)), torch.zeros(len(start))

    def view_after(self, bank: Memories, start: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        mean = torch.cat([bank.start, bank.end]).mean(0)
        return mean.expand(len(start), *mean.shape), torch.zeros(len(start))


def certain(action: Tensor) -> PoseMixture:
    """Actions (Q, 3) as mixtures of one component."""
    narrow = torch.full((len(action), 1), 0.02)
    return PoseMixture(action[:, None], narrow, narrow, torch.zeros_like(narrow))


def everyone(model: IndoorModel, actions: np.ndarray) -> dict[str, Any]:
    """Those who answer, by method; `actions` (N, 3) are of houses that nothing is reported of."""
    torch.manual_seed(0)
    untrained = IndoorModel(model.config)
    untrained.reduction = model.reduction
    return {
        "majority": Majority(actions),
        "nearest-memory": NearestMemory(),
        "pose-graph": PoseGraph(model.reduction),
        "untrained": untrained.eval(),
        "no-bank": NoBank(model),
        "eswm": model,
    }
