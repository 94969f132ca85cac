"""The agent for MiniGrid's own environments, in which many places look alike."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from eswm_gym.agents.base import Agent, Info, Observation
from eswm_gym.agents.exploration import NEWS, most_news
from eswm_gym.agents.planning import UNKNOWN, TransitionTable, search
from eswm_gym.rooms.grid import FORWARD, LEFT, N_ACTIONS, N_CLASSES, UNSEEN, VIEW, WALL, moved, own_cell
from eswm_gym.rooms.grid.views import view_positions
from eswm_gym.rooms.transitions import MASKED, parts
from eswm_gym.world_model import ESWM, EncodedBank, OverlapModel, load_pretrained
from eswm_gym.world_model.overlap import relative_poses
from eswm_gym.wrappers.minigrid_views import BALL, BOX, DOOR, GOAL, KEY, LAVA

WIDEST = 25  # cells along a side of MiniGrid's rooms
LONGEST = 1024  # moves of an episode
IN_THE_WAY = (DOOR, KEY, BALL, BOX)  # what going ahead clears, without a step
WANTED = (GOAL, KEY)  # the agent goes to the nearest of the first kind that it knows of
SURE = 0.5  # the agent walks into a cell if the model says with more than this probability what it is
BEHIND_A_DOOR = 10.0  # new cells that it expects there


class MiniGridAgent(Agent):
    """ESWM in MiniGrid's own environments, as `eswm_gym.wrappers.MiniGridViews` shows them.

    Floors are blank there and many places look alike, so that views are no states. States are poses in the frame of the
    walk so far: the model composes them along the walk (`OverlapModel.follow`), and imagines from it what one sees at
    other poses. The agent goes to a goal that it has seen. Else it fetches a key that it has seen, else it goes where
    it expects to see most that is new for each move. The model knows no doors and no objects: it reads them as walls,
    and the agent remembers where they are.

    Args:
        model: an `OverlapModel`, or what has its `follow` and `imagine_from`; frozen, shared, never changed.
        seed: of the random numbers that break ties.

    Raises:
        TypeError: if the model is of another kind, which composes no poses.
    """

    def __init__(self, model: ESWM, seed: int | None = None) -> None:
        if not hasattr(model, "imagine_from"):
            kind = type(model).__name__
            raise TypeError(f"MiniGridAgent needs an OverlapModel, as load_pretrained('minigrid') gives, got a {kind}")
        walker: Any = model
        self.model: OverlapModel = walker if walker.config.size >= WIDEST else walker.for_rooms(WIDEST, LONGEST)
        self.rng = np.random.default_rng(seed)
        self._begin()

    @classmethod
    def from_pretrained(cls, name: str = "minigrid", device: str = "cpu", seed: int | None = None) -> MiniGridAgent:
        """An agent with a shipped model; arguments as for `ESWMAgent.from_pretrained`."""
        return cls(load_pretrained(name, device), seed)

    def spawn(self, seed: int | None = None) -> MiniGridAgent:
        return type(self)(self.model, seed)

    def reset(self, obs: Observation, info: Info) -> None:
        self._begin()

    def _begin(self) -> None:
        self.walk: list[np.ndarray] = []  # (2 C + 1,) transitions, each of which begins where the last one ended
        self.outdated = torch.zeros(0, 1, dtype=torch.bool, device=self.model.device)  # (N, C) cells of their sources
        self.blocked: set[int] = set()  # poses from which a step ahead changed nothing
        self.expected: int | None = None  # the pose where the last move should have ended
        self.table: TransitionTable | None = None
        self.ahead: dict[int, int] = {}  # the class of the cell in front at each pose of the table

    def act(self, obs: Observation, info: Info) -> int:
        view = _flat(obs)
        bank = self._read(view)
        here = int(bank.cache.pose[0, -1])
        self._notice(bank, here, view)
        if self.table is None or self.table.row(here) is None:
            self._imagine(bank, here, view)
        assert self.table is not None
        action = self._to_wanted(self.table, here)
        if action is None:
            action = most_news(self.table, here, range(N_ACTIONS), self.rng)
        if action is None:
            action = int(self.rng.choice([a for a in range(N_ACTIONS) if a != FORWARD or self.ahead[here] != LAVA]))
        row = self.table.index[here]
        self.expected = int(self.table.end[row, action])
        if self.table.new[row, action] > NEWS:  # type: ignore[index]
            self.table = None
        return action

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        if len(self.walk) + 2 > self.model.config.max_memories:
            self._begin()  # a walk too long to read: it forgets all of it
        self.walk.append(np.concatenate([_flat(obs), [action], _flat(next_obs)]))

    def _read(self, view: np.ndarray) -> EncodedBank:
        """The walk, and a last move whose end is not known, which begins at the agent's pose."""
        rows = np.stack([*self.walk, np.concatenate([view, [LEFT], np.full_like(view, MASKED)])])
        for cells in parts(rows)[::2]:
            cells[np.isin(cells, IN_THE_WAY)] = WALL
        bank = self.model.follow(torch.from_numpy(rows[None]).to(self.model.device))
        return self._edited(bank)

    def _edited(self, bank: EncodedBank) -> EncodedBank:
        """The bank without the cells that some later view contradicts: doors open, and keys are taken."""
        outdated = self.model.localization.contradicted(bank.cache, -1)[0]
        outdated[: len(self.outdated)] |= self.outdated
        self.outdated = outdated
        shown = torch.where(outdated, UNSEEN, bank.cache.shown)
        return replace(bank, cache=bank.cache._replace(shown=shown))

    def _notice(self, bank: EncodedBank, here: int, view: np.ndarray) -> None:
        """Drop the table if the last move ended elsewhere than expected; keep in mind a step that changed nothing."""
        if self.walk and here != self.expected:
            self.table = None
        if self.walk and int(self.walk[-1][len(view)]) == FORWARD:
            before = self.walk[-1][: len(view)]
            if (before == view).all() and here == int(bank.cache.pose[0, -2]):
                self.blocked.add(here)
            elif before[own_cell(len(view)) - 1] == KEY:
                self.blocked.clear()  # it may open doors now

    @torch.inference_mode()
    def _imagine(self, bank: EncodedBank, here: int, view: np.ndarray) -> None:
        """Imagine every move from here and, in turn, from every pose where a move ends."""
        near = relative_poses(torch.device("cpu"), len(view)).near.numpy()
        in_front = own_cell(len(view)) - 1
        things = self._things(bank, view)
        been = set(bank.cache.pose[0].tolist())  # where nothing is new any more
        views, waiting = {here: np.where(np.isin(view, IN_THE_WAY), WALL, view)}, [here]
        self.ahead = {here: int(view[in_front])}
        found: list[tuple[Any, ...]] = []
        while waiting:
            pose = torch.tensor(waiting).repeat_interleave(N_ACTIONS)[None]
            source = torch.from_numpy(np.stack([views[p] for p in waiting])).repeat_interleave(N_ACTIONS, 0)[None]
            action = torch.arange(N_ACTIONS).repeat(len(waiting))[None]
            imagined, end = self.model.imagine_from(
                bank, *(part.to(self.model.device) for part in (pose, source, action))
            )
            p, ends = imagined.cells[0].cpu().numpy(), end[0].cpu().numpy().reshape(-1, N_ACTIONS)
            new = np.where(np.isin(ends, list(been)), 0.0, imagined.new[0].cpu().numpy().reshape(-1, N_ACTIONS))
            for i, at in enumerate(waiting):
                if self.ahead[at] == LAVA or at in self.blocked:
                    ends[i, FORWARD], new[i, FORWARD] = at, 0.0
                elif self.ahead[at] == DOOR:
                    ends[i, FORWARD], new[i, FORWARD] = UNKNOWN, BEHIND_A_DOOR
                elif self.ahead[at] == UNSEEN:
                    ends[i, FORWARD] = UNKNOWN
            found.append((waiting, ends, new))
            waiting = []
            for cells, end_pose in zip(p, ends.ravel().tolist(), strict=True):
                if end_pose not in views and end_pose not in (UNKNOWN, self.model.localization.frame.n_poses):
                    sure = np.where(cells.max(-1) > SURE, cells.argmax(-1), UNSEEN)
                    views[end_pose] = np.full_like(view, UNSEEN)
                    views[end_pose][near] = sure
                    self.ahead[end_pose] = things.get(self._cell_ahead(end_pose), int(views[end_pose][in_front]))
                    waiting.append(end_pose)
        states, ends, new = (np.concatenate(part) for part in zip(*found, strict=True))
        self.table = TransitionTable(states, ends, np.ones(ends.shape), np.zeros(ends.shape), new)

    def _to_wanted(self, table: TransitionTable, here: int) -> int | None:
        """The first action of a shortest way into the nearest cell of a kind that it wants."""
        for kind in WANTED:
            before = [pose for pose, ahead in self.ahead.items() if ahead == kind and pose not in self.blocked]
            if here in before:
                return FORWARD
            plans = [plan for pose in before if (plan := search(table, here, pose)).found]
            if plans:
                return min(plans, key=len).actions[0]
        return None

    def _things(self, bank: EncodedBank, view: np.ndarray) -> dict[tuple[int, int], int]:
        """What is in the way at cells of the frame, by what the agent saw last."""
        seen = np.array([*(parts(row)[0] for row in self.walk), view])
        poses = self.model.localization.frame.pose[bank.cache.pose[0]].cpu().numpy()
        last: dict[tuple[int, int], int] = {}
        for cells, where in zip(seen, view_positions(poses, math.isqrt(len(view))), strict=True):
            last |= {
                (x, y): kind for (x, y), kind in zip(where.tolist(), cells.tolist(), strict=True) if kind != UNSEEN
            }
        return {cell: kind for cell, kind in last.items() if kind in IN_THE_WAY}

    def _cell_ahead(self, pose: int) -> tuple[int, int]:
        x, y, _ = moved(self.model.localization.frame.pose[pose].cpu().numpy(), FORWARD).tolist()
        return x, y


def _flat(obs: Observation) -> np.ndarray:
    """(C,) int64, the classes of a view.

    Raises:
        ValueError: if the state is no view of an odd number of cells a side, at least 5, or a cell is of no class.
    """
    view = np.asarray(obs["state"])
    if view.ndim != 2 or view.shape[0] != view.shape[1] or view.shape[0] % 2 == 0 or len(view) < VIEW:
        raise ValueError(
            f"a state is a square view of an odd side from {VIEW} on, as MiniGridViews shows, got {view!r}"
        )
    wrong = view[(view < 0) | (view >= N_CLASSES)]
    if wrong.size or view.dtype.kind not in "iu":
        one = wrong[0] if wrong.size else view.flat[0]
        raise ValueError(f"cell {one!r} of a view is none of the integers 0 ... {N_CLASSES - 1}")
    return view.astype(np.int64).ravel()
