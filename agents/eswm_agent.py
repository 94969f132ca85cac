"""ESWMAgent: explores, plans and adapts with a frozen world model and a memory bank, without any training."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from eswm_gym.agents.base import Agent, Info, Observation, allowed_actions, end_of, state_of
from eswm_gym.agents.exploration import RULES, curiosity, most_uncertain, nearest_frontier
from eswm_gym.agents.latent_map import LatentMap, latent_maps
from eswm_gym.agents.memory_bank import MemoryBank, Transition
from eswm_gym.agents.places import Place, PlaceMap
from eswm_gym.agents.planning import CERTAIN_MOVE, COSTS, UNKNOWN, Plan, TransitionTable, follow, imagine_tables, search
from eswm_gym.agents.saving import load_agent, save_agent
from eswm_gym.agents.views import ViewAlbum, imagine_views
from eswm_gym.options import require_choices
from eswm_gym.rooms.grid import FORWARD, IN_FRONT, N_CELLS, UNSEEN, WALL
from eswm_gym.world_model import ESWM, ViewTransformer, load_pretrained

LIKELY = 0.5  # a move that ends at a place with no more than this probability leads to a place of its own
ALGORITHMS = ("dijkstra", "astar", "greedy")
CAUTION = 0.75  # A* counts on distances a little shorter than the latent ones, which overestimate at times
logger = logging.getLogger(__name__)


class ESWMAgent(Agent):
    """An agent that asks its world model what its memory bank does not hold.

    With a goal it follows a plan and plans again when reality differs; without a goal, or without a known way to
    it, it explores (paper: "Exploration in Novel Environments", "Navigating with Minimal Spanning Episodic
    Memories", "ESWM Enables Fast Adaptation to Changes").

    Where states are views, as in MiniGrid, it chains imagination: a view that the model imagines and is sure of is a
    state like those that it has seen, and one that it is not sure of is the frontier. Views are the same state if they
    are equal or the model cannot tell them apart.

    Where the world has changed, it deletes the memories that this made outdated: it logs them, and writes them to
    `info["forgotten"]`, a list of transitions. Of views, the outdated ones are those that show something else where the
    agent now looks; what they show elsewhere is kept for the model to read.

    Args:
        model: frozen world model; shared, never changed.
        trust_memory: whether what the bank holds is fact. False: every transition is imagined, as in the paper.
        adapt: whether to delete outdated memories. False: it only adds what happens.
        exploration: "frontier", "frontier-unordered", or "uncertainty", the paper's rule; see
            `eswm_gym.agents.exploration`.
        algorithm: how it plans; see `plan`.
        cost: what a plan should be short in; see `plan`.
        capacity: most transitions in the bank; None: as many as the model was trained for.
        confidence: an outcome of at most this probability is uncertain.
        beta, gamma: weights of the entropy in the paper's rule (algorithm "Explore Function").
        seed: breaks ties between equal scores.

    Attributes:
        memory: the memory bank.
        places: places that it knows of without knowing their state.
        worn: memories of views with what is outdated taken out.

    Raises:
        ValueError: if an option is none of those named above, or the model was not trained for so many memories.
    """

    memory: MemoryBank
    places: PlaceMap
    worn: MemoryBank
    _album: ViewAlbum | None  # of a model whose states are views
    _ruled_out: MemoryBank  # moves that masks ruled out, as bumps
    _table: TransitionTable | None  # with named places
    _latent: LatentMap | None
    _named: int | None  # the state where the ends of moves were named since the last move
    _ahead: list[tuple[int, int]]  # the rest of the plan: (action, state it leads to)

    def __init__(
        self,
        model: ESWM,
        trust_memory: bool = True,
        adapt: bool = True,
        exploration: str = "frontier",
        algorithm: str = "dijkstra",
        cost: str = "steps",
        capacity: int | None = None,
        confidence: float = 0.8,
        beta: float = 0.2,
        gamma: float = 0.1,
        seed: int | None = None,
    ) -> None:
        require_choices(exploration=(exploration, RULES), algorithm=(algorithm, ALGORITHMS), cost=(cost, COSTS))
        if capacity is not None and not 0 < capacity <= model.config.max_memories:
            raise ValueError(f"capacity must be 1 to the model's {model.config.max_memories} memories, got {capacity}")
        self.model, self.n_actions = model, model.config.n_actions
        self.options: dict[str, Any] = {
            "trust_memory": trust_memory,
            "adapt": adapt,
            "exploration": exploration,
            "algorithm": algorithm,
            "cost": cost,
            "capacity": model.config.max_memories if capacity is None else capacity,
            "confidence": confidence,
            "beta": beta,
            "gamma": gamma,
        }
        self.rng = np.random.default_rng(seed)
        self._begin(())

    @classmethod
    def from_pretrained(cls, name: str = "random-wall", device: str = "cpu", **options: Any) -> ESWMAgent:
        """An agent with a model that comes with the package and an empty memory bank."""
        return cls(load_pretrained(name, device), **options)

    def save(self, path: str | Path, model: str | Path | None = None) -> None:
        """Write PATH.json, to a temporary file first: memories, map, plan, options and random numbers, no weights.

        Args:
            path: with or without a suffix.
            model: where the model is saved, if it is none of those that come with the package; the path from the
                agent's file to it is kept, so that the two can be moved together.

        Raises:
            ValueError: if the model there, or every one that comes with the package, is another one.
            FileNotFoundError: if there is no model there.
        """
        save_agent(self, path, model)

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu", model: ESWM | None = None) -> ESWMAgent:
        """An agent as it was saved, which goes on as that one would have.

        Args:
            path: with or without a suffix.
            device: where to put the model.
            model: to use in place of the one that the file names.

        Raises:
            FileNotFoundError: if the file or the model that it names is missing.
            CheckpointError: if the file is damaged, foreign or of another version, or its model another than then; of
                a model that comes with the package and is another than then, there is only a warning.
        """
        return load_agent(cls, path, device, model)

    def spawn(self, seed: int | None = None) -> ESWMAgent:
        return type(self)(self.model, **self.options, seed=seed)

    def reset(self, obs: Observation, info: Info) -> None:
        """Begin an episode, with `info["memory_bank"]` if there is one.

        Raises:
            ValueError: if the bank does not fit the model's vocabulary or the capacity.
        """
        self._begin(info.get("memory_bank", ()))

    def act(self, obs: Observation, info: Info) -> int:
        self.prepare([self], [obs], [info])
        if self._ahead:
            return self._ahead[0][0]
        return self.explore(self.number(obs["state"]), allowed_actions(info, self.n_actions))

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        """Keep the transition; where it contradicts what was expected, delete what the change made outdated.

        Raises:
            ValueError: if it is no transition, or a state is outside the model's vocabulary; nothing is learnt then.
        """
        end = self.number(end_of(next_obs, info))
        state, action, end = self.memory.checked(self.number(obs["state"]), action, end)
        self._check(state, end)
        self._named = None
        remembered, expected = self.memory.end_of(state, action), self._expected(state, action)
        forgotten = []
        if remembered is not None and remembered != end:
            forgotten = [self.memory.forget(state, action)]
        if expected in self.places.kind:
            forgotten += self._visit(expected, state, action, end)
        elif self.options["adapt"] and self._album is not None and expected != end:
            if self._met_a_new_wall(state, action, end):
                state = end  # what it saw before is no more: the memory is that of a step from here into a wall
            forgotten += self._forget_contradicted((state, action, end))
        elif self.options["adapt"] and expected not in (UNKNOWN, end):
            goal = self.number(obs["goal"]) if "goal" in obs else None
            forgotten += self._adapt(expected, (state, action, end), goal)
        if forgotten:
            info["forgotten"] = forgotten
            logger.info("move %d from state %d led to %d; forgotten: %s", action, state, end, forgotten)
        expected = self._expected(state, action)  # by now a wall's place where the move was blocked
        new = self.memory.add(state, action, end)
        while len(self.worn) and len(self.memory) + len(self.worn) > self.model.config.max_memories:
            self.worn.forget(*next(iter(self.worn))[:2])
        if new and self._table is not None:
            # The imagined table stays good where reality is as imagined; a surprise calls for a new one.
            if expected == end and self.options["trust_memory"]:
                self._table = self._table.with_facts(MemoryBank([(state, action, end)]))
            elif not (end == state and expected in self.places.kind):
                self._table = None
        if self._ahead and self._ahead[0] == (action, end) and self.number(next_obs["state"]) == end:
            self._ahead.pop(0)
        else:
            self._ahead = []

    def number(self, shown: Any) -> int:
        """The number of a state as an observation shows it; a number stays as it is."""
        return state_of(shown) if self._album is None or np.ndim(shown) == 0 else self._album.number(shown)

    def plan(
        self,
        start: Any,
        goal: Any,
        algorithm: str | None = None,
        cost: str | None = None,
        horizon: int | None = None,
    ) -> Plan:
        """Find a way in what the agent remembers and imagines.

        Args:
            start, goal: states, as observations show them or as their numbers.
            algorithm: "dijkstra" (paper: algorithm "Dijkstra-Style Pathfinding"); "astar", guided by distances in
                the latent space, which expands fewer states and may miss the best way now and then; or "greedy",
                straight down those distances (both: section "Planning by Guided Imagination"). None: the agent's.
            cost: "steps", or "uncertainty": prefer what the model is sure of; see `search`. None: the agent's.
            horizon: longest plan.

        Returns:
            The plan; `found` is False if no way is known, such as to a goal never seen.

        Raises:
            ValueError: if a state is outside the model's vocabulary, algorithm or cost are unknown, or the model
                comes without the latent radius that A* and the greedy policy need.
        """
        algorithm, cost = algorithm or self.options["algorithm"], cost or self.options["cost"]
        require_choices(algorithm=(algorithm, ALGORITHMS), cost=(cost, COSTS))
        if algorithm != "dijkstra" and isinstance(self.model, ViewTransformer):
            raise ValueError(f"{algorithm} needs a latent map, which a model of views does not have: use 'dijkstra'")
        start, goal = self.number(start), self.number(goal)
        self._check(start, goal)
        table = self.imagined(start)
        if algorithm == "dijkstra":
            return search(table, start, goal, horizon, cost)
        if self.model.latent_radius is None:
            raise ValueError("this model comes without a latent radius: see eswm_gym.agents.latent_radius")
        latent = self.latent_map()
        distance = latent.distances_to(goal, latent.geodesic(self.model.latent_radius))
        if algorithm == "greedy":
            return follow(table, start, goal, distance, horizon)
        unit = CAUTION * (1.0 if cost == "steps" else CERTAIN_MOVE)  # what a step costs at least
        return search(table, start, goal, horizon, cost, {s: unit * d for s, d in distance.items()})

    def explore(self, state: Any, actions: Sequence[int] | np.ndarray | None = None) -> int:
        """Choose a move towards what the agent does not know, by the rule `exploration`.

        Where the model is sure of everything in reach, the move of which it is least sure is the uncertain one:
        some of what it is sure of may be wrong, as after a change.

        Args:
            state: where the agent is, as an observation shows it or as its number.
            actions: what it may choose from here; None: anything.
        """
        state = self.number(state)
        actions = range(self.n_actions) if actions is None else actions
        if self.options["exploration"] != "uncertainty":
            if self._name_ends(state, actions):
                self._imagine([self], [state])
            ordered = self.options["exploration"] == "frontier"
            action = nearest_frontier(self._table_at(state), self.places.kind, state, actions, self.rng, ordered)
            if action is not None:
                return action
        table = self.imagined(state).with_facts(self._bumps(state, actions))
        doubt = 1 - table.with_facts(self.memory).probability
        for score in (
            curiosity(table, *(self.options[name] for name in ("confidence", "beta", "gamma"))),
            np.where(doubt > 0, doubt, -np.inf),
        ):
            action = most_uncertain(table, score, state, self.rng)
            if action is not None:
                return action
        return int(self.rng.choice(list(actions)))

    def imagined(self, state: Any) -> TransitionTable:
        """Where each move from each known state and from this one leads; imagined anew when something surprised."""
        return (
            self._table_at(self.number(state))
            .resolve(
                blocked=[place for place, kind in self.places.kind.items() if kind is not Place.FRONTIER],
                unknown=[place for place, kind in self.places.kind.items() if kind is Place.FRONTIER],
            )
            .with_facts(self._ruled_out)
        )

    def latent_map(self) -> LatentMap:
        """Where the states that it remembers lie in the latent space; mapped anew when something surprised.

        Raises:
            ValueError: if states are views.
        """
        if self._album is not None:
            raise ValueError("states that are views have no latent map to plan with")
        if self._latent is None:
            self._latent = latent_maps(self.model, [self.memory])[0]
        return self._latent

    @staticmethod
    def prepare(
        agents: Sequence[ESWMAgent], observations: Sequence[Observation], infos: Sequence[Info] | None = None
    ) -> None:
        """Imagine for all agents that will need it, in one pass."""
        here = [
            (agent, obs, agent.number(obs["state"]), allowed_actions(info, agent.n_actions))
            for agent, obs, info in zip(agents, observations, infos or [{}] * len(agents), strict=True)
        ]
        for agent, obs, state, actions in here:
            agent._check(state, agent.number(obs["goal"]) if "goal" in obs else state)
            agent._heed(obs, state, actions)
        stale = [(agent, state) for agent, _, state, _ in here if agent._is_stale(state)]
        if stale:
            ESWMAgent._imagine(*zip(*stale, strict=True))
        explorers = []
        for agent, obs, state, actions in here:
            explores = not agent._knows_way(obs, state) and agent.options["exploration"] != "uncertainty"
            if explores and agent._name_ends(state, actions):
                explorers.append((agent, state))
        if explorers:
            ESWMAgent._imagine(*zip(*explorers, strict=True))

    @staticmethod
    def _imagine(agents: Sequence[ESWMAgent], states: Sequence[int]) -> None:
        model = agents[0].model
        if isinstance(model, ViewTransformer):
            ESWMAgent._imagine_views(agents, states)
            return
        banks, meanings = [], []
        for agent, state in zip(agents, states, strict=True):
            bank, meaning = agent.places.extend(agent.memory, model.config.max_memories, state, agent._dull_places())
            banks.append(bank)
            meanings.append(np.array([*meaning, UNKNOWN]))  # UNKNOWN, -1, is also the index of its own meaning
        tables = imagine_tables(model, banks, [[state] for state in states])
        for agent, table, names in zip(agents, tables, meanings, strict=True):
            agent._table = replace(table, states=names[table.states], end=names[table.end])
            agent._latent = None
            if agent.options["trust_memory"]:
                agent._table = agent._table.with_facts(agent.memory).with_facts(agent.places.moves)

    @staticmethod
    def _imagine_views(agents: Sequence[ESWMAgent], states: Sequence[int]) -> None:
        """The same where states are views; the goal may be one that no memory shows."""
        also = [
            [state] if agent._goal is None else [state, agent._goal]
            for agent, state in zip(agents, states, strict=True)
        ]
        albums = [agent._album for agent in agents]
        banks, worn = [agent.memory for agent in agents], [agent.worn for agent in agents]
        tables = imagine_views(agents[0].model, banks, albums, worn, also)  # type: ignore[arg-type]
        for agent, table in zip(agents, tables, strict=True):
            agent._table = table.with_facts(agent.memory) if agent.options["trust_memory"] else table

    def _table_at(self, state: int) -> TransitionTable:
        """The table with named places, in which this state has a row."""
        if self._table is None or self._table.row(state) is None:
            self._imagine([self], [state])
        assert self._table is not None
        return self._table

    def _begin(self, memories: Iterable) -> None:
        album = ViewAlbum() if isinstance(self.model, ViewTransformer) else None
        transitions = memories if album is None else album.transitions(np.asarray(memories))
        memory = MemoryBank(transitions, self.options["capacity"], self.n_actions)
        if album is None:
            self.model.codec.check(torch.tensor(memory.states))
        self._album, self.memory = album, memory
        self.worn = MemoryBank(n_actions=self.n_actions)
        self.places = PlaceMap(self.model.config.n_states)
        self._ruled_out = MemoryBank()
        self._table, self._latent, self._named, self._ahead = None, None, None, []
        self._goal: int | None = None

    def _heed(self, obs: Observation, state: int, actions: np.ndarray) -> None:
        """Plan from now on without the moves that a mask rules out here; drop a plan that is no longer one."""
        for bump in self._bumps(state, actions):
            self._ruled_out.add(*bump)
        goal = self.number(obs["goal"]) if "goal" in obs else UNKNOWN
        self._goal = goal if "goal" in obs else None
        if (
            self._goal is not None
            and self._album is not None
            and self._table is not None
            and self._table.row(goal) is None
        ):
            self._table = None  # the goal looks different now
        if self._ahead and (self._ahead[0][0] not in actions or self._ahead[-1][1] != goal):
            self._ahead = []

    def _is_stale(self, state: int) -> bool:
        """Whether the next decision needs a new table. Exploring, the first places have to be named before it."""
        if self._ahead or (self._table is not None and self._table.row(state) is not None):
            return False
        return bool(len(self.memory)) or self.options["exploration"] == "uncertainty"

    def _knows_way(self, obs: Observation, state: int) -> bool:
        """Whether there is a plan to follow, made now if need be."""
        if not self._ahead and "goal" in obs and len(self.memory):
            plan = self.plan(state, self.number(obs["goal"]))
            self._ahead = list(zip(plan.actions, plan.states[1:], strict=True))
        return bool(self._ahead)

    def _expected(self, state: int, action: int) -> int:
        """The state or place where a move should end: as known, else as imagined, else UNKNOWN."""
        for known in (self.places.moves, self.memory):
            end = known.end_of(state, action)
            if end is not None:
                return end
        row = None if self._table is None else self._table.row(state)
        return UNKNOWN if row is None else int(self._table.end[row, action])  # type: ignore[union-attr]

    def _dull_places(self) -> set[int]:
        """Places outside that lie beside no frontier: they tell nothing, and the model does better without them."""
        if self._table is None:
            return set()
        frontier = [place for place, kind in self.places.kind.items() if kind is Place.FRONTIER]
        beside = set(self._table.end[np.isin(self._table.states, frontier)].ravel().tolist())
        newest = self._table.states.max()
        outside = (place for place, kind in self.places.kind.items() if kind is Place.OUTSIDE)
        return {place for place in outside if place not in beside and place <= newest}

    def _name_ends(self, state: int, actions: Sequence[int] | np.ndarray) -> bool:
        """Name the places where moves from here lead that the model does not know; returns whether any are new.

        Once at each step: what the model then makes of the new names is not asked again.
        """
        if self._named == state or self._album is not None:  # a model of views knows no other names
            return False
        self._named = state
        row = None if self._table is None else self._table.row(state)
        n_before = len(self.places.kind)
        # An agent that named all its walls expects to be blocked at one of these, and else nowhere.
        own_walls = all(s != e or self.places.moves.end_of(s, a) is not None for s, a, e in self.memory)
        for action in range(self.n_actions):
            allowed, expected = action in actions, self._expected(state, action)
            kind = self.places.kind.get(expected)
            unsure = row is None or self._table.probability[row, action] <= LIKELY  # type: ignore[union-attr]
            odd = kind is Place.OUTSIDE or (expected == state and own_walls) if allowed else expected == state
            if kind is Place.FRONTIER and not allowed:
                self.places.kind[expected] = Place.OUTSIDE
            elif expected == UNKNOWN or unsure or odd:
                self.places.add(Place.FRONTIER if allowed else Place.OUTSIDE, state, action)
        return len(self.places.kind) > n_before

    def _visit(self, place: int, state: int, action: int, end: int) -> list[Transition]:
        """Learn what a named place is; returns the memories of it that were outdated, if it had been a wall."""
        if end == state:
            if self.places.kind[place] is Place.FRONTIER:
                self.places.kind[place] = Place.WALL
                self.places.moves.add(state, action, place)
            return []
        moves = self.places.rename(place, end)
        self._rename_in_table(place, end)
        return [
            self.memory.forget(source, action)
            for source, action, _ in moves
            if self.memory.end_of(source, action) == source
        ]

    def _adapt(self, expected: int, happened: Transition, goal: int | None) -> list[Transition]:
        """Delete and return what is outdated where the agent did not get to a state that it expected."""
        state, action, end = happened
        if expected == state:  # a wall is gone: so are the other bumps into it
            return self._forget_bumps_into(end, happened)
        if expected == goal:  # which can be reached, if not from here
            return []
        forgotten = self.memory.forget_state(expected)
        if end == state:
            # The state is gone, but its place stays on the map, as a wall, and keeps the rest in its position.
            wall = self.places.add(Place.WALL, state, action)
            for source, move, target in forgotten:
                if source != target:
                    self.places.moves.add(source, move, target)
            self.places.rename(expected, wall)
            self._rename_in_table(expected, wall)
        return forgotten

    def _met_a_new_wall(self, state: int, action: int, end: int) -> bool:
        assert self._album is not None and isinstance(self.model, ViewTransformer)
        before, after = torch.from_numpy(self._album.views([state, end])).to(next(self.model.parameters()).device)
        return action == FORWARD and before[IN_FRONT] != WALL and bool(self.model.is_blocked(before, after))

    def _forget_contradicted(self, happened: Transition) -> list[Transition]:
        """Delete and return the memories that show something else where this transition shows it, and wear them."""
        assert self._album is not None and isinstance(self.model, ViewTransformer)
        device = next(self.model.parameters()).device
        held = [*self.memory, *self.worn]
        rows, seen = (self._album.rows(bank) for bank in (held, [happened]))
        outdated = self.model.contradicted(*(torch.from_numpy(part).to(device) for part in (rows[None], seen)))
        n_remembered, forgotten = len(self.memory), []
        for i, (transition, cells) in enumerate(zip(held, outdated[0].cpu().numpy(), strict=True)):
            if cells.any():
                if i < n_remembered:
                    forgotten.append(self.memory.forget(*transition[:2]))
                else:
                    self.worn.forget(*transition[:2])
                self._wear(rows[i], cells)
        return forgotten

    def _wear(self, row: np.ndarray, outdated: np.ndarray) -> None:
        """Keep of a memory (51,) what is not outdated (2, 25), while there is space.

        Of a step into a wall that is gone nothing is kept: without the wall it would read as a step ahead.
        """
        assert self._album is not None
        source, action, end = row[:N_CELLS], int(row[N_CELLS]), row[N_CELLS + 1 :]
        gone = outdated[0, IN_FRONT] and source[IN_FRONT] == WALL and action == FORWARD
        if not gone and len(self.memory) + len(self.worn) < self.model.config.max_memories:
            worn = [np.where(cells, UNSEEN, view) for view, cells in zip((source, end), outdated, strict=True)]
            self.worn.add(self._album.number(worn[0]), action, self._album.number(worn[1]))

    def _forget_bumps_into(self, state: int, happened: Transition) -> list[Transition]:
        """Delete and return the bumps that lead, as the model sees it without any bumps, to a state found free."""
        bumps = [t for t in self.memory if t[0] == t[2]]
        others = MemoryBank([*(t for t in self.memory if t[0] != t[2]), happened])
        table = imagine_tables(self.model, [others], [[source for source, *_ in bumps]])[0]
        return [
            self.memory.forget(source, action)
            for source, action, _ in bumps
            if table.end[table.row(source), action] == state
        ]

    def _bumps(self, state: int, actions: Sequence[int] | np.ndarray) -> MemoryBank:
        """The actions that are not among these, as bumps."""
        return MemoryBank([(state, action, state) for action in range(self.n_actions) if action not in actions])

    def _check(self, *states: int) -> None:
        """Refuse states that the model cannot be asked about.

        Raises:
            ValueError: naming the first of them.
        """
        if self._album is None:
            self.model.codec.check(torch.tensor(states))
        else:
            self._album.views(states)

    def _rename_in_table(self, old: int, new: int) -> None:
        self._latent = None
        if self._table is not None:
            self._table = None if self._table.row(new) is not None else self._table.rename(old, new)
