"""The agent for houses that are seen through a camera: it goes to where a picture was taken."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from eswm_gym.agents.base import Info, Observation
from eswm_gym.rooms.indoor import REACH, action_between, moved, wrap
from eswm_gym.world_model.indoor.model import IndoorBank, Memories
from eswm_gym.world_model.indoor.pose_mixtures import PoseMixture, between
from eswm_gym.world_model.indoor.vision import Encoder, Reduction

IMAGINED = 1.5  # a way that nobody went costs so many times its length
SAME_PLACE, SAME_TURN = 0.3, 0.35  # metres and radians: a goal was not here if the agent stood so near and was not done
BESIDE = 0.3  # metres between the middles of two ways that the same thing blocks
CLOSE = 0.35  # metres from the goal at which a turn is enough
LEAST, BLOCKED = 0.05, 1.5  # metres of a way that is worth going; log-odds from which on one does not try
DETOUR = 4.0  # a way that is surely blocked would count for so many times its length more
WAYPOINTS = 100  # poses without a view that a way may lead through
LOOKS = 3  # turns to look around where there is no plan


class Finder(Protocol):
    """What finds views and actions in a bank: an `IndoorModel`, or `eswm_gym.agents.baselines.PoseGraph`."""

    reduction: Reduction

    def encode(self, memories: Memories) -> IndoorBank: ...
    def locate(self, bank: IndoorBank, views: Tensor) -> tuple[PoseMixture, Tensor]: ...
    def is_blocked(self, views: Tensor, action: Tensor) -> Tensor: ...


class IndoorAgent:
    """ESWM in houses: a bank of views and moves is its map, to which its own moves are added.

    It finds where it is and where the goal's picture was taken in the frame of its memories, plans over remembered
    moves and imagined ones, and plans again where a move is blocked or the goal turns out to be elsewhere. A move that
    is blocked is forgotten.

    Args:
        model: frozen, shared, never changed.
        encoder: of pictures, the one that the model was trained with.
        edits: whether it forgets remembered moves that turn out to be blocked.
        seed: of the random numbers that it draws where it has no plan.
    """

    def __init__(self, model: Finder, encoder: Encoder, edits: bool = True, seed: int | None = None) -> None:
        self.model, self.encoder, self.edits, self.rng = model, encoder, edits, np.random.default_rng(seed)
        self._begin()

    def spawn(self, seed: int | None = None) -> IndoorAgent:
        """A fresh agent of the same kind for another environment; the model is shared."""
        return type(self)(self.model, self.encoder, self.edits, seed)

    def _begin(self) -> None:
        self.memories = Memories(torch.zeros(0), torch.zeros(0, 3), torch.zeros(0))
        self.n_given = 0
        self.ways: list[tuple[np.ndarray, np.ndarray]] = []  # from and to, which something blocked
        self.refuted: list[np.ndarray] = []  # poses where the goal is not
        self.plan: list[np.ndarray] = []  # poses to come
        self.looked = 0  # turns since the last plan

    def reset(self, obs: Observation, info: Info) -> None:
        """Begin an episode with `info["memory_bank"]`.

        Raises:
            ValueError: if there is no bank.
        """
        bank: Mapping[str, np.ndarray] | None = info.get("memory_bank")
        if bank is None:
            raise ValueError('IndoorAgent needs info["memory_bank"], as ESWM-Indoor-v0 hands it out')
        self._begin()
        held = np.isfinite(bank["action"]).all(1)
        pictures = np.concatenate([bank["start"][held], bank["end"][held], obs["image"][None], obs["goal"][None]])
        tokens, n = self._tokens(pictures), int(held.sum())
        action = torch.from_numpy(bank["action"][held]).float()
        self.memories, self.n_given = Memories(tokens[:n], action, tokens[n : 2 * n]), n
        self.view, self.goal = tokens[-2:-1], tokens[-1:]

    @torch.inference_mode()
    def act(self, obs: Observation, info: Info) -> np.ndarray:
        """(3,) float32, the next action: metres to the right and ahead, radians clockwise."""
        bank = self.bank = self.model.encode(self.memories)
        # Where its last move ended, unless that was forgotten.
        walked = len(self.memories.action) > self.n_given and torch.equal(self.memories.end[-1:], self.view)
        at = int(bank.rows[-1, 1]) if walked else None
        here = self.model.locate(bank, self.view)[0].best()[0] if at is None else bank.pose[at]
        self.here = here.double().numpy()
        goal = self._goal(bank)
        if goal is None:
            self.refuted.clear()  # what it has seen since may speak for another place
        elif not self.plan or (len(self.plan) > 1 and np.linalg.norm(self.plan[-1][:2] - goal[:2]) > SAME_PLACE):
            self.plan = self._way(bank, at, goal) or self.plan  # else on to where it was going
        if not self.plan and self.looked >= LOOKS:  # from another place it may see more
            elsewhere = bank.pose[(bank.pose - here)[:, :2].norm(dim=1) > CLOSE].double().numpy()
            if len(elsewhere):
                self.plan = self._way(bank, at, self.rng.choice(elsewhere))
        if self.plan:
            action = between(here, torch.from_numpy(self.plan[0]).float()).numpy()
            if len(self.plan) == 1 and np.linalg.norm(action[:2]) < CLOSE:
                action[:2] = 0.0  # a turn is never blocked
        elif self.looked < LOOKS:  # to find out where it is
            self.looked += 1
            action = np.array([0.0, 0.0, 2 * np.pi / (LOOKS + 1)])
        else:
            self.looked = 0
            action = self.rng.uniform([-REACH / 2, 0, -np.pi], [REACH / 2, REACH, np.pi])
        action[:2] *= min(1.0, REACH / max(np.abs(action[:2]).max(), 1e-6))
        return np.array([*action[:2].clip(-REACH, REACH), wrap(action[2])], np.float32).clip(-np.pi, np.pi)

    @torch.inference_mode()
    def observe(self, obs: Observation, action: np.ndarray, next_obs: Observation, info: Info) -> None:
        """Remember the move, or that it was blocked."""
        there = moved(self.here, action)
        if info["blocked"]:
            self.plan = []
            self.ways.append((self.here, there))
            if self.edits:
                self._forget(there)
            return
        if len(self.plan) == 1:
            self.refuted.append(there)  # else the episode would be over
        self.plan = self.plan[1:]
        view = self._tokens(next_obs["image"][None])
        start, taken, end = self.memories
        self.memories = Memories(
            torch.cat([start, self.view]),
            torch.cat([taken, torch.from_numpy(np.asarray(action, np.float32))[None]]),
            torch.cat([end, view]),
        )
        self.view = view

    def _tokens(self, pictures: np.ndarray) -> Tensor:
        with torch.inference_mode():
            return self.model.reduction(self.encoder(pictures))

    def _goal(self, bank: IndoorBank) -> np.ndarray | None:
        """The likeliest pose of the goal at which it was not found missing."""
        found, _ = self.model.locate(bank, self.goal)
        for k in found.log_weight[0].argsort(descending=True).tolist():
            pose = found.mean[0, k].double().numpy()
            near = (
                np.linalg.norm(pose[:2] - other[:2]) < SAME_PLACE and abs(wrap(pose[2] - other[2])) < SAME_TURN
                for other in self.refuted
            )
            if not any(near):
                return pose
        return None

    def _way(self, bank: IndoorBank, at: int | None, goal: np.ndarray) -> list[np.ndarray]:
        """The poses of a cheapest way to the goal, the goal among them; empty where there is none.

        The agent is at that view of the bank, or None: at none of them.
        """
        seen = np.concatenate([bank.pose.double().numpy(), self.here[None], goal[None]])
        low, high = seen.min(0) - REACH / 2, seen.max(0) + REACH / 2
        between_them = self.rng.uniform(low, high, (WAYPOINTS, 3))
        poses = np.concatenate([seen, between_them])
        here, there = len(seen) - 2 if at is None else at, len(seen) - 1
        graph = nx.DiGraph()
        graph.add_weighted_edges_from(self._imagined(bank, poses, len(seen)))
        for start, end in bank.rows.tolist():
            length = float(np.linalg.norm(poses[start, :2] - poses[end, :2]))
            graph.add_edge(start, end, weight=length)
            graph.add_edge(end, start, weight=length)
        try:
            way = [poses[node] for node in nx.dijkstra_path(graph, here, there)]
        except (nx.NetworkXNoPath, nx.NodeNotFound):
            return []
        # To turn where one is, is a step for nothing but at the goal: moves lead to any side.
        legs = zip(way, way[1:], strict=False)
        left = [start for start, end in legs if np.linalg.norm(end[:2] - start[:2]) > LEAST]
        return [*left[1:], way[-1]]

    def _imagined(self, bank: IndoorBank, poses: np.ndarray, n_seen: int) -> list[tuple[int, int, float]]:
        """Moves of one action that nothing seems to block, as seen from those poses that there are views of.

        The first `n_seen` poses are those of the bank, this one and the goal.
        """
        away = poses[None, :, :2] - poses[:n_seen, None, :2]
        length = np.linalg.norm(away, axis=-1)
        start, end = np.nonzero((length < REACH) & (length > LEAST))
        tokens = torch.cat([bank.tokens, self.view, self.goal])
        action = between(torch.from_numpy(poses[start]), torch.from_numpy(poses[end])).float()
        odds = np.full((n_seen, len(poses)), -np.inf)
        odds[start, end] = self.model.is_blocked(tokens[start], action).numpy()
        odds[:, :n_seen] = np.maximum(odds[:, :n_seen], odds[:, :n_seen].T)
        moves = []
        for i, j in zip(start.tolist(), end.tolist(), strict=True):
            if odds[i, j] < BLOCKED and not self._is_blocked(poses[i], poses[j]):
                cost = (IMAGINED + DETOUR / (1 + math.exp(-odds[i, j]))) * float(length[i, j])
                moves += [(i, j, cost), (j, i, cost)]
        # Close to the goal, the right heading is enough.
        near = np.flatnonzero(np.linalg.norm(poses[:, :2] - poses[n_seen - 1, :2], axis=1) < CLOSE)
        return moves + [(i, n_seen - 1, LEAST) for i in near.tolist() if i != n_seen - 1]

    def _is_blocked(self, start: np.ndarray, end: np.ndarray) -> bool:
        """Whether what blocked another way may well block this one."""
        middle, along = (start[:2] + end[:2]) / 2, end[:2] - start[:2]
        for one, other in self.ways:
            way = other[:2] - one[:2]
            parallel = abs(along @ way) > 0.8 * np.linalg.norm(along) * np.linalg.norm(way)
            if parallel and np.linalg.norm((one[:2] + other[:2]) / 2 - middle) < BESIDE:
                return True
        return False

    def _forget(self, there: np.ndarray) -> None:
        """Delete the memories of moves along the way that was blocked."""
        bank = self.bank  # as `act` read it
        pose = bank.pose.double().numpy()
        kept = np.array([not self._same_way(pose[start], pose[end], there) for start, end in bank.rows.tolist()])
        if kept.any() and not kept.all():
            origin = pose[bank.rows[int(kept.argmax()), 0]]  # of the frame of what is kept
            self.ways = [(action_between(origin, one), action_between(origin, other)) for one, other in self.ways]
            self.refuted = [action_between(origin, other) for other in self.refuted]
            self.n_given -= int((~kept[: self.n_given]).sum())
            rows = torch.from_numpy(kept)
            self.memories = Memories(*(part[rows] for part in self.memories))

    def _same_way(self, start: np.ndarray, end: np.ndarray, there: np.ndarray) -> bool:
        """Whether a remembered move leads from here to there, or back."""
        return any(
            np.linalg.norm(one[:2] - self.here[:2]) < SAME_PLACE and np.linalg.norm(other[:2] - there[:2]) < SAME_PLACE
            for one, other in ((start, end), (end, start))
        )
