"""What an agent knows of a room whose states are views, and how imagined views are matched to known ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from eswm_gym.agents.config import AgentConfig
from eswm_gym.agents.exploration import NEWS, most_news
from eswm_gym.agents.knowledge import Knowledge, knowledge_for
from eswm_gym.agents.memory_bank import MemoryBank, Transition
from eswm_gym.agents.planning import UNKNOWN, TransitionTable, require_numbers
from eswm_gym.agents.states import ViewAlbum, state_of
from eswm_gym.rooms.grid import FORWARD, HERE, IN_FRONT, N_CELLS, UNSEEN, WALL
from eswm_gym.rooms.transitions import pad
from eswm_gym.world_model import ViewModel
from eswm_gym.world_model.codecs import ViewCodec

if TYPE_CHECKING:
    from typing_extensions import Self

LIKELY = 0.02  # a view that is imagined with at most this probability is unknown
MATCH = 0.02  # an imagined view is a known one if that is at least this likely, relative to the likeliest view
MOST_STATES = 500  # in a table; a room of 9 x 9 has up to 196


@knowledge_for(ViewCodec, True)
class ViewKnowledge(Knowledge):
    """Knowledge of states that are egocentric views, as in MiniGrid.

    The model chains imagination: a view that it imagines and is sure of is a state like those that the agent has seen.
    Views are the same state if they are equal, or if the model cannot tell them apart.

    A memory is outdated if it shows something else where the agent now looks. The rest of what it shows is kept in
    `partial` for the model to read.

    Attributes:
        album: the views behind the numbers of states.
        partial: outdated memories, with the outdated cells unseen.
    """

    model: ViewModel
    states = "views"
    has_latent_map = False

    def __init__(self, model: ViewModel, config: AgentConfig, memories: Iterable = ()) -> None:
        self.album = ViewAlbum()
        super().__init__(model, config, self.album.transitions(np.asarray(memories)))
        self.partial = MemoryBank(n_actions=model.config.n_actions)

    def number(self, shown: Any) -> int:
        if np.ndim(shown) == 0:
            return state_of(shown)
        view = np.asarray(shown)
        if view.size == N_CELLS and view.flat[HERE] == WALL:
            raise ValueError(
                f"the agent's own cell in a view is {WALL}, a wall: cells are the classes of eswm_gym.rooms.grid, as "
                "ESWM-MiniGrid-v0 shows them, not MiniGrid's own object codes, of which 1 is empty and 2 a wall"
            )
        return self.album.number(view)

    def shown(self, number: int) -> np.ndarray:
        """(25,) int64, the classes of the cells."""
        return self.album.views([number])[0]

    def check(self, *states: int) -> None:
        self.model.codec.check(torch.from_numpy(self.album.views(states)))

    def set_goal(self, goal: int | None) -> None:
        """Keep the goal; if the table does not have it, it has to be imagined anew, since no memory may show it."""
        super().set_goal(goal)
        if goal is not None and self.table is not None and self.table.row(goal) is None:
            self.table = None

    @classmethod
    def imagine(cls, every: Sequence[Self], states: Sequence[int]) -> None:
        tables = imagine_views(
            every[0].model,
            [knowledge.memory for knowledge in every],
            [knowledge.album for knowledge in every],
            [knowledge.partial for knowledge in every],
            [
                [state] if knowledge.goal is None else [state, knowledge.goal]
                for knowledge, state in zip(every, states, strict=True)
            ],
        )
        for knowledge, table in zip(every, tables, strict=True):
            knowledge.table = table.with_facts(knowledge.memory) if knowledge.config.trust_memory else table

    def to_frontier(self, state: int, actions: Collection[int], rng: np.random.Generator, ordered: bool) -> int | None:
        if not ordered:
            return super().to_frontier(state, actions, rng, ordered)
        return most_news(self.table_at(state).with_facts(self.bumps(state, actions)), state, actions, rng)

    def learn(self, happened: Transition, goal: Any = None) -> list[Transition]:
        self._forget_old_news(happened)
        forgotten = super().learn(happened, goal)
        while len(self.partial) and not self._has_space(0):
            self.partial.forget(*next(iter(self.partial))[:2])
        return forgotten

    def _forget_old_news(self, happened: Transition) -> None:
        """Drop the table if a move has shown cells that were new: they are new nowhere else any more."""
        table, (source, action, _) = self.table, happened
        row = None if table is None else table.row(source)
        if table is not None and table.new is not None and row is not None and table.new[row, action] > NEWS:
            self.table = None

    def _revise(self, expected: int, happened: Transition, goal: Any) -> tuple[Transition, list[Transition]]:
        if not self.config.adapt:
            return happened, []
        if self._is_new_wall(happened):
            _, action, end = happened
            happened = end, action, end  # the view before is outdated: a step into the wall now starts at the one after
        return happened, self._forget_contradicted(happened)

    def _is_new_wall(self, happened: Transition) -> bool:
        """Whether a step ahead was blocked by a wall that the view before did not show."""
        state, action, end = happened
        before, after = torch.from_numpy(self.album.views([state, end])).to(self.model.device)
        return action == FORWARD and before[IN_FRONT] != WALL and bool(self.model.is_blocked(before, after))

    def _forget_contradicted(self, happened: Transition) -> list[Transition]:
        """Delete and return the memories that show a cell otherwise than this transition; keep their other cells."""
        held = [*self.memory, *self.partial]
        rows, seen = (torch.from_numpy(self.album.rows(bank)).to(self.model.device) for bank in (held, [happened]))
        outdated = self.model.contradicted(rows[None], seen)[0].cpu().numpy()
        n_remembered, forgotten = len(self.memory), []
        for i, (transition, cells) in enumerate(zip(held, outdated, strict=True)):
            if cells.any():
                if i < n_remembered:
                    forgotten.append(self.memory.forget(*transition[:2]))
                else:
                    self.partial.forget(*transition[:2])
                self._keep_valid_cells(transition, cells)
        return forgotten

    def _keep_valid_cells(self, transition: Transition, outdated: np.ndarray) -> None:
        """Keep a memory without its outdated cells (2, 25), while the model can read so many memories.

        A step into a wall that is gone is not kept: without the wall it would read as a step ahead.
        """
        source, action, end = transition
        views = self.album.views([source, end])
        wall_is_gone = action == FORWARD and views[0, IN_FRONT] == WALL and outdated[0, IN_FRONT]
        if not wall_is_gone and self._has_space(1):
            source, end = map(self.album.number, np.where(outdated, UNSEEN, views))
            self.partial.add(source, action, end)

    def _has_space(self, n: int) -> bool:
        """Whether the model can read n more memories."""
        return len(self.memory) + len(self.partial) + n <= self.model.config.max_memories

    def copy(self) -> Self:
        twin = super().copy()
        twin.album = self.album.copy()
        return twin

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"worn": list(self.partial), "views": [view.tolist() for view in self.album]}

    def load_dict(self, saved: Mapping[str, Any]) -> None:
        super().load_dict(saved)
        if self.table is not None and self.table.new is None:  # saved by a version without it
            self.table = None
        self.album = ViewAlbum(map(np.array, saved["views"]))
        self.partial = MemoryBank(saved["worn"], n_actions=self.model.config.n_actions)


@torch.inference_mode()
def imagine_views(
    model: ViewModel,
    banks: Sequence[MemoryBank],
    albums: Sequence[ViewAlbum],
    partial: Sequence[MemoryBank] | None = None,
    also: Sequence[Collection[int]] | None = None,
    chunk: int = 8,
) -> list[TransitionTable]:
    """Imagine every move from every known view and, in turn, from every view that is imagined.

    Args:
        model: frozen.
        banks: B memory banks of any lengths.
        albums: for each bank the views behind its numbers; imagined views are added.
        partial: for each bank, memories with unseen cells: the model reads them, but their views are no states.
        also: for each bank, states to include that it may not hold, such as the agent's and the goal.
        chunk: the number of banks in one pass.

    Returns:
        B tables.

    Raises:
        ValueError: if a view has a cell of no class, or the model predicts what is not a number.
    """
    also, partial = also or [()] * len(banks), partial or [MemoryBank()] * len(banks)
    n_actions = model.config.n_actions
    tables: list[TransitionTable] = []
    for first in range(0, len(banks), chunk):
        some = range(first, min(first + chunk, len(banks)))
        rows = [np.concatenate([albums[i].rows(bank) for bank in (banks[i], partial[i])]) for i in some]
        encoded = model.encode(torch.from_numpy(pad(rows)).to(model.device))
        makers = [_TableMaker(albums[i], sorted({*banks[i].states, *also[i]}), n_actions) for i in some]
        while any(maker.waiting for maker in makers):
            asked = [maker.next_views() for maker in makers]
            source = np.zeros((len(some), max(map(len, asked)), n_actions, N_CELLS), np.int64)
            for row, views in zip(source, asked, strict=True):
                row[: len(views)] = views[:, None]
            action = np.broadcast_to(np.arange(n_actions), source.shape[:-1]).copy()
            # (b, K, A, 25) -> (b, K * A, 25) and (b, K, A) -> (b, K * A)
            queries = (torch.from_numpy(part).to(model.device).flatten(1, 2) for part in (source, action))
            p, unknown, new = model.imagine(encoded, *queries)
            require_numbers(model, p, unknown, new)
            answers = (part.cpu().numpy() for part in (p, unknown, new))
            for maker, views, *answer in zip(makers, asked, *answers, strict=True):
                maker.answer(*(part[: len(views) * n_actions] for part in answer))
        tables += [maker.table() for maker in makers]
    return tables


def best_match(p: np.ndarray, known: np.ndarray) -> int | None:
    """The row of the (K, 25) views that fits the probabilities (25, 9) of cells best, if they cannot be told apart."""
    return _match(_log(p), known)[0]


def _match(log_p: np.ndarray, known: np.ndarray) -> tuple[int | None, float]:
    """The same from logarithms of the probabilities, and how likely that view is, as a logarithm."""
    if not len(known):
        return None, -np.inf
    likelihood = log_p[np.arange(N_CELLS), known].sum(-1)
    match = int(likelihood.argmax())
    alike = likelihood[match] - log_p.max(-1).sum() >= np.log(MATCH)
    return match if alike else None, float(likelihood[match])


def _log(p: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(p, 1e-3))


class _TableMaker:
    """A table in the making: the states that it has, how many of them were asked about, and the answers."""

    def __init__(self, album: ViewAlbum, states: list[int], n_actions: int) -> None:
        self.album, self.states, self.n_actions, self.asked = album, states, n_actions, 0
        self.known = album.views(states)
        self.parts: list[tuple[np.ndarray, ...]] = []

    @property
    def waiting(self) -> int:
        return len(self.states) - self.asked

    def next_views(self) -> np.ndarray:
        views = self.known[self.asked :]
        self.asked = len(self.states)
        return views

    def answer(self, p: np.ndarray, unknown: np.ndarray, new: np.ndarray) -> None:
        """Match (n, 25, 9) probabilities to known views; a view that is sure, but none of them, is a new state."""
        log_p = _log(p)
        likeliest, best = p.argmax(-1), log_p.max(-1).sum(-1)
        end, fit = np.full(len(p), UNKNOWN), best.copy()
        for i in range(len(p)):
            match, likelihood = _match(log_p[i], self.known)
            if match is not None:
                end[i], fit[i] = self.states[match], likelihood
            elif np.exp(best[i]) > LIKELY and len(self.states) < MOST_STATES:
                end[i] = self.album.number(likeliest[i])
                self.states.append(int(end[i]))
                self.known = np.concatenate([self.known, likeliest[i : i + 1]])
        # Where the model does not know, it may guess right: plans may lead there.
        probability = (1 - unknown) * np.exp(fit)
        sure = (end != UNKNOWN) & (np.exp(fit) > LIKELY)
        entropy = -(p * np.log(np.maximum(p, 1e-9))).sum((1, 2))
        self.parts.append((np.where(sure, end, UNKNOWN), np.where(sure, probability, 1 - probability), entropy, new))

    def table(self) -> TransitionTable:
        parts = (np.concatenate(part).reshape(-1, self.n_actions) for part in zip(*self.parts, strict=True))
        return TransitionTable(np.array(self.states, np.int64), *parts)
