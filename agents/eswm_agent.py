"""ESWMAgent: explores, plans and adapts with a frozen world model and a memory bank, without any training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from eswm_gym.agents.base import Agent, Info, Observation, allowed_actions, state_of
from eswm_gym.agents.memory_bank import MemoryBank
from eswm_gym.agents.planning import UNKNOWN, Plan, TransitionTable, dijkstra, imagine_tables
from eswm_gym.rooms import N_ACTIONS
from eswm_gym.world_model import ESWM, load_pretrained


class ESWMAgent(Agent):
    """An agent that asks its world model what its memory bank does not hold.

    With a goal it follows a plan and plans again when reality differs; without a goal, or without a known way to
    it, it explores (paper: "Exploration in Novel Environments", "Navigating with Minimal Spanning Episodic
    Memories", "ESWM Enables Fast Adaptation to Changes").

    Args:
        model: frozen world model; shared, never changed.
        trust_memory: whether what the bank holds is fact. False: every transition is imagined, as in the paper.
        capacity: most transitions in the bank; None: as many as the model was trained for.
        confidence: an outcome of at most this probability is uncertain.
        beta, gamma: weights of the entropy when exploring (paper: algorithm "Explore Function").
        seed: breaks ties between equal scores.
    """

    def __init__(
        self,
        model: ESWM,
        trust_memory: bool = True,
        capacity: int | None = None,
        confidence: float = 0.8,
        beta: float = 0.2,
        gamma: float = 0.1,
        seed: int | None = None,
    ) -> None:
        self.model = model
        capacity = model.config.max_memories if capacity is None else capacity
        self.options: dict[str, Any] = {
            "trust_memory": trust_memory,
            "capacity": capacity,
            "confidence": confidence,
            "beta": beta,
            "gamma": gamma,
        }
        self.trust_memory, self.confidence = trust_memory, confidence
        self.beta, self.gamma = beta, gamma
        self.rng = np.random.default_rng(seed)
        self.memory = MemoryBank(capacity=capacity)
        self._masked = MemoryBank()  # moves that masks ruled out, as bumps
        self._table: TransitionTable | None = None
        self._ahead: list[tuple[int, int]] = []  # the rest of the plan: (action, state it leads to)

    @classmethod
    def from_pretrained(cls, name: str = "random-wall", device: str = "cpu", **options: Any) -> ESWMAgent:
        """An agent with a model that comes with the package and an empty memory bank."""
        return cls(load_pretrained(name, device), **options)

    def spawn(self, seed: int | None = None) -> ESWMAgent:
        return ESWMAgent(self.model, **self.options, seed=seed)

    def reset(self, obs: Observation, info: Info) -> None:
        self.memory = MemoryBank(info.get("memory_bank", ()), self.options["capacity"])
        self._masked = MemoryBank()
        self._table, self._ahead = None, []

    def act(self, obs: Observation, info: Info) -> int:
        state, actions = state_of(obs["state"]), allowed_actions(info)
        self._heed_mask(state, actions)
        if "goal" in obs:
            goal = state_of(obs["goal"])
            if self._ahead and (self._ahead[0][0] not in actions or self._ahead[-1][1] != goal):
                self._ahead = []
            if not self._ahead:
                plan = self.plan(state, goal)
                self._ahead = list(zip(plan.actions, plan.states[1:], strict=True))
            if self._ahead:
                return self._ahead[0][0]
        return self.explore(state, actions)

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        """Keep the transition; where it contradicts the bank, delete what the change made outdated."""
        state, end = state_of(obs["state"]), state_of(next_obs["state"])
        remembered = self.memory.end_of(state, action)
        if remembered is not None and remembered != end:
            self.memory.forget_state(remembered if remembered != state else end)
        if self.memory.add(state, action, end):
            # The imagined table stays good where reality is as imagined; a surprise calls for a new one.
            if self._table is None or not self.trust_memory or self._expected(state, action) != end:
                self._table = None
            else:
                self._table = self._table.with_facts(MemoryBank([(state, action, end)]))
        if self._ahead and self._ahead[0] == (action, end):
            self._ahead.pop(0)
        else:
            self._ahead = []

    def plan(self, start: int, goal: int, horizon: int | None = None) -> Plan:
        """Find the shortest way in what the agent remembers and imagines (algorithm "Dijkstra-Style Pathfinding").

        Args:
            start, goal: states.
            horizon: longest plan.

        Returns:
            The plan; `found` is False if no way is known, such as to a goal never seen.

        Raises:
            ValueError: if a state is outside the model's vocabulary.
        """
        self.model.codec.check(torch.tensor([start, goal]))
        return dijkstra(self.imagined(start), start, goal, horizon)

    def explore(self, state: int, actions: Sequence[int] | np.ndarray = range(N_ACTIONS)) -> int:
        """Choose an action whose outcome is uncertain, here or on the way to the nearest place that has one.

        Where the model is sure of everything in reach, the move of which it is least sure is the uncertain one:
        some of what it is sure of may be wrong, as after a change.

        Args:
            state: where the agent is.
            actions: what it may choose from here.
        """
        table = self.imagined(state).with_facts(_ruled_out(state, actions))
        doubt = 1 - table.with_facts(self.memory).probability
        for score in (self._curiosity(table), np.where(doubt > 0, doubt, -np.inf)):
            here = score[table.row(state)]
            if np.isfinite(here).any():
                return int(self.rng.choice(np.flatnonzero(here == here.max())))
            step = self._toward_frontier(table, state, np.isfinite(score).any(1))
            if step is not None:
                return step
        return int(self.rng.choice(list(actions)))

    def imagined(self, state: int) -> TransitionTable:
        """Where each move from each known state and from this one leads; imagined anew when the bank surprised."""
        if self._table is None or self._table.row(state) is None:
            self._imagine([self], [state])
        assert self._table is not None
        return self._table

    @staticmethod
    def prepare(agents: Sequence[ESWMAgent], observations: Sequence[Observation]) -> None:
        """Imagine for all agents that will need it, in one pass."""
        states = [state_of(obs["state"]) for obs in observations]
        stale = [
            (agent, state)
            for agent, state in zip(agents, states, strict=True)
            if not agent._ahead and (agent._table is None or agent._table.row(state) is None)
        ]
        if stale:
            ESWMAgent._imagine(*map(list, zip(*stale, strict=True)))

    @staticmethod
    def _imagine(agents: Sequence[ESWMAgent], states: Sequence[int]) -> None:
        tables = imagine_tables(agents[0].model, [agent.memory for agent in agents], [[s] for s in states])
        for agent, table in zip(agents, tables, strict=True):
            agent._table = table.with_facts(agent._masked)
            if agent.trust_memory:
                agent._table = agent._table.with_facts(agent.memory)

    def _heed_mask(self, state: int, actions: np.ndarray) -> None:
        """Plan from now on without the moves that a mask rules out here."""
        ruled_out = _ruled_out(state, actions)
        new = [self._masked.add(*move) for move in ruled_out]
        if any(new) and self._table is not None:
            self._table = self._table.with_facts(ruled_out)

    def _expected(self, state: int, action: int) -> int | None:
        row = None if self._table is None else self._table.row(state)
        return None if row is None else int(self._table.end[row, action])  # type: ignore[union-attr]

    def _curiosity(self, table: TransitionTable) -> np.ndarray:
        """(K, 6) float, the paper's score of each uncertain move, -inf for those the model is sure of."""
        unknown = table.end == UNKNOWN
        unsure = table.probability <= self.confidence
        score = np.where(unknown, 1 - self.beta * table.entropy, self.gamma * table.entropy)
        return np.where(unknown | unsure, score, -np.inf)

    def _toward_frontier(self, table: TransitionTable, state: int, frontier: np.ndarray) -> int | None:
        """First action of the shortest imagined way to a state with an uncertain move, None if there is none."""
        plans = [dijkstra(table, state, int(goal)) for goal in table.states[frontier] if goal != state]
        found = [plan for plan in plans if plan.found]
        return min(found, key=lambda plan: (len(plan), -plan.probability)).actions[0] if found else None


def _ruled_out(state: int, actions: Sequence[int] | np.ndarray) -> MemoryBank:
    """The other actions, as bumps."""
    return MemoryBank([(state, action, state) for action in range(N_ACTIONS) if action not in actions])
