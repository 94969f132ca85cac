"""What an agent knows of a room whose views have errors: its model says what they show without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from eswm_gym.agents.config import AgentConfig
from eswm_gym.agents.knowledge import knowledge_for
from eswm_gym.agents.memory_bank import MemoryBank, Transition
from eswm_gym.agents.planning import UNKNOWN
from eswm_gym.agents.views import ViewKnowledge, best_match, imagine_views
from eswm_gym.rooms.transitions import pad
from eswm_gym.world_model import ViewModel
from eswm_gym.world_model.codecs import ViewCodec

if TYPE_CHECKING:
    from typing_extensions import Self


@knowledge_for(ViewCodec, False)
class UncertainViews(ViewKnowledge):
    """Knowledge of states that are egocentric views some of whose cells are wrong.

    The model reads the views as they were seen, which `partial` holds. A state is what it believes that such a view
    shows: that is the view of a known state if the model cannot tell the two apart. Beliefs are formed anew with each
    memory. Nothing is a fact, and one contradiction deletes nothing: the model weighs what most views show.
    """

    def __init__(self, model: ViewModel, config: AgentConfig, memories: Iterable = ()) -> None:
        super().__init__(model, config, memories)
        self.partial = MemoryBank(self.memory, config.capacity, model.config.n_actions)
        self.memory = MemoryBank(capacity=config.capacity, n_actions=model.config.n_actions)
        self._believed: dict[int, int] = {}  # the state that each view was taken for
        self._seen: dict[int, int] = {}  # the last view that was taken for each state
        self._encoded: Any = None
        self._believe(self.partial.states)
        for source, action, end in self.partial:
            self.memory.add(self._believed[source], action, self._believed[end])

    def number(self, shown: Any) -> int:
        seen = super().number(shown)
        if np.ndim(shown) == 0:
            return seen
        self.check(seen)
        self._believe([seen])
        state = self._believed[seen]
        self._seen[state] = seen
        return state

    @torch.inference_mode()
    def _believe(self, views: Sequence[int]) -> None:
        """Find out which states the views with these numbers show."""
        new = [view for view in views if view not in self._believed]
        if not new:
            return
        if self._encoded is None:
            self._encoded = self.model.encode(self._tensor(pad([self.album.rows(self.partial)])))
        p, *_ = self.model.look(self._encoded, self._tensor(self.album.views(new)[None]))
        states = [] if self.table is None else self.table.states.tolist()
        known = self.album.views(states)
        for view, cells in zip(new, p[0].cpu().numpy(), strict=True):
            match = best_match(cells, known)
            self._believed[view] = self.album.number(cells.argmax(-1)) if match is None else states[match]

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self.model.device)

    @classmethod
    def imagine(cls, every: Sequence[Self], states: Sequence[int]) -> None:
        tables = imagine_views(
            every[0].model,
            [MemoryBank()] * len(every),
            [knowledge.album for knowledge in every],
            [knowledge.partial for knowledge in every],
            [
                {*knowledge.memory.states, state, state if knowledge.goal is None else knowledge.goal}
                for knowledge, state in zip(every, states, strict=True)
            ],
        )
        for knowledge, table in zip(every, tables, strict=True):
            knowledge.table = table

    def expected(self, state: int, action: int) -> int:
        return UNKNOWN if self.table is None else self.table.ends_of(state)[action]

    def learn(self, happened: Transition, goal: Any = None) -> list[Transition]:
        source, action, end = happened
        self.partial.add(self._seen.get(source, source), action, self._seen.get(end, end))
        self._encoded = None
        self._believed.clear()
        self._forget_old_news(happened)
        if self.expected(source, action) != end:
            self.table = None
        self.memory.add(*happened)
        return []

    def copy(self) -> Self:
        twin = super().copy()
        twin._believed, twin._seen = dict(self._believed), dict(self._seen)
        return twin

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"believed": list(self._believed.items()), "seen": list(self._seen.items())}

    def load_dict(self, saved: Mapping[str, Any]) -> None:
        super().load_dict(saved)
        self.partial = MemoryBank(saved["worn"], self.config.capacity, self.model.config.n_actions)
        self._believed, self._seen, self._encoded = dict(saved["believed"]), dict(saved["seen"]), None
