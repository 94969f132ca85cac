"""The agent for houses that are seen through a camera: it goes to where a picture was taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from eswm_gym.agents.base import Info, Observation
from eswm_gym.agents.obstacles import Obstacles
from eswm_gym.rooms.indoor import REACH, moved, wrap
from eswm_gym.world_model.indoor.model import IndoorBank, Memories
from eswm_gym.world_model.indoor.pose_mixtures import PoseMixture, between
from eswm_gym.world_model.indoor.vision import Encoder, Reduction

IMAGINED = 1.5  # a way that nobody went costs so many times its length
RISK = 1.5  # metres that each nat costs by which a way may be blocked
STANDS = 3.0  # nats that each blocked way counts for against another where the same thing may block it
SAME_PLACE, SAME_TURN = 0.3, 0.35  # metres and radians: a goal was not here if the agent stood so near and was not done
CLOSE = 0.35  # metres from the goal at which a turn is enough
SAME_WAY = 0.5  # how much of what blocked other ways has to be in that of a remembered move
LEAST = 0.05  # metres of a way that is worth going
WAYPOINTS = 100  # poses without a view that a way may lead through
HOPELESS = 4.0  # nats of doubt from which on it does not try
STUCK = 3  # blocked moves in a row, and it goes anywhere
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
    moves and imagined ones, and plans again where a move is blocked or the goal turns out to be elsewhere. That a
    remembered move can be made is forgotten where something turns out to be in its way; where its two views were taken
    remains true.

    Args:
        model: frozen, shared, never changed.
        encoder: of pictures, the one that the model was trained with.
        edits: whether it forgets that remembered moves can be made which turn out to be blocked.
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
        self.open = np.zeros(0, bool)  # remembered moves that can be made
        self.obstacles = Obstacles()
        self.refuted: list[np.ndarray] = []  # poses where the goal is not
        self.plan: list[np.ndarray] = []  # poses to come
        self.looked = 0  # turns since the last plan
        self.stuck = 0  # blocked moves since the last one that was not

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
        self.open = np.ones(n, bool)
        self.view, self.goal = tokens[-2:-1], tokens[-1:]

    @torch.inference_mode()
    def act(self, obs: Observation, info: Info) -> np.ndarray:
        """(3,) float32, the next action: metres to the right and ahead, radians clockwise."""
        bank = self.bank = self.model.encode(self.memories)
        at = int(bank.rows[-1, 1]) if len(self.memories.action) > self.n_given else None  # where its last move ended
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
        if self.stuck >= STUCK:  # it is not where it believes, or something small stands close
            self.plan, action = [], self.rng.uniform([-REACH / 2, -REACH / 2, -np.pi], [REACH / 2, REACH / 2, np.pi])
        elif self.plan:
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
            self.plan, self.stuck = [], self.stuck + 1
            self._meet(there)
            return
        self.stuck = 0
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
        self.view, self.open = view, np.append(self.open, True)

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
        for start, end in bank.rows[self.open].tolist():
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
        place = poses[:, :2]
        length = np.linalg.norm(place[None] - place[:, None], axis=-1)
        near = (length < REACH) & (length > LEAST)
        at = torch.from_numpy(poses).float()
        tokens = torch.cat([bank.tokens, self.view, self.goal])
        seen = self.model.is_blocked(tokens, between(at[:n_seen, None], at[None])).double().numpy()
        odds = np.zeros_like(length)
        odds[:n_seen] += seen
        odds[:, :n_seen] += seen.T  # from both ends
        near[n_seen:, n_seen:] = False  # no view tells of the way between two poses without one
        start, end = np.nonzero(near)
        stands = self.obstacles.in_way(place[start], place[end])
        doubt = np.logaddexp(0, odds[start, end]) + STANDS * stands  # nats: -log of the probability that it is free
        cost = IMAGINED * length[start, end] + RISK * doubt
        some = doubt < HOPELESS
        moves = [*zip(start[some].tolist(), end[some].tolist(), cost[some].tolist(), strict=True)]
        # Close to the goal, the right heading is enough.
        turn = np.flatnonzero(length[n_seen - 1] < CLOSE)
        return moves + [(i, n_seen - 1, LEAST) for i in turn.tolist() if i != n_seen - 1]

    def _meet(self, there: np.ndarray) -> None:
        """Note that something is in the way from here to there, and in that of which remembered moves."""
        start, end = np.moveaxis(self.bank.pose[self.bank.rows, :2].double().numpy(), 1, 0)  # as `act` read it
        long = np.linalg.norm(end - start, axis=1) > LEAST
        self.obstacles.add(self.here[:2], there[:2], np.stack([start, end], 1)[long & self.open])
        if self.edits:
            blocked = np.zeros(len(start), bool)
            blocked[long] = self.obstacles.in_way(start[long], end[long]) > SAME_WAY
            self.open &= ~blocked
