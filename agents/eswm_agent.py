"""ESWMAgent: explores, plans and adapts with a frozen world model and a memory bank, without any training."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from eswm_gym.agents.base import Agent, Info, Observation, allowed_actions, end_of, goal_of, require_state
from eswm_gym.agents.config import ALGORITHMS, AgentConfig
from eswm_gym.agents.knowledge import Knowledge, knowledge_of
from eswm_gym.agents.large_knowledge import LargeKnowledge
from eswm_gym.agents.latent_map import LatentMap
from eswm_gym.agents.memory_bank import MemoryBank
from eswm_gym.agents.planning import CERTAIN_MOVE, COSTS, Plan, TransitionTable, follow, search
from eswm_gym.agents.saving import load_agent, save_agent
from eswm_gym.checks import require_choices
from eswm_gym.world_model import ESWM, NumberedActions, load_pretrained

SHRINK = 0.75  # A* scales the latent distances by this, since some of them are longer than the way


class ESWMAgent(Agent):
    """An agent that asks its world model what its memory bank does not hold.

    With a goal it follows a plan, and plans again when reality differs. Without a goal, or without a known way to it,
    it explores (paper: "Exploration in Novel Environments", "Navigating with Minimal Spanning Episodic Memories", "ESWM
    Enables Fast Adaptation to Changes").

    Where the world has changed, it deletes the memories that are outdated now. It logs them and writes them to
    `info["forgotten"]`, a list of transitions.

    Args:
        model: frozen world model; shared, never changed.
        seed: of the random numbers that break ties between equal scores.
        **options: the fields of `AgentConfig`.

    Attributes:
        config: the options.
        knowledge: what it knows of its room: the memory bank, and what the model makes of it.
        route: the rest of its plan, as (action, state that it leads to).
        numbers: the model's numbers of the environment's actions; None if they are the same.
        n_actions: number of the environment's actions.

    Raises:
        ValueError: if an option has a value that it cannot have, or the model was not trained for so many memories.
    """

    knowledge: Knowledge
    route: list[tuple[int, int]]
    _here: int | None  # where its last step ended, if it saw that

    def __init__(self, model: ESWM, *, seed: int | None = None, **options: Any) -> None:
        self.model = model
        self.config = config = AgentConfig(**options)
        if self._kind.is_limited:
            self.config = replace(config, capacity=config.capacity_of(model.config.max_memories))
        self.rng = np.random.default_rng(seed)
        self._was_reset, self._here, self._has_warned = False, None, False
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
            CheckpointError: if the file is damaged, foreign or of another version, or if its saved model has changed
                since. If a model that comes with the package has changed, there is only a warning.
        """
        return load_agent(cls, path, device, model)

    def spawn(self, seed: int | None = None) -> ESWMAgent:
        return type(self)(self.model, **asdict(self.config), seed=seed)

    def __repr__(self) -> str:
        options = {field.name: getattr(self.config, field.name) for field in fields(self.config)}
        changed = "".join(f", {k}={v!r}" for k, v in options.items() if v != getattr(AgentConfig(), k))
        model = f"{type(self.model).__name__} of {self.model.config.n_states} states and {self.n_actions} actions"
        return f"{type(self).__name__}({model}, {len(self.memory)} memories{changed})"

    @property
    def memory(self) -> MemoryBank:
        """The memory bank."""
        return self.knowledge.memory

    def number(self, shown: Any) -> int:
        """The number of a state as an observation shows it; a number stays as it is."""
        return self.knowledge.number(shown)

    def reset(self, obs: Observation, info: Info, keep_memories: bool = False) -> None:
        """Begin an episode, with `info["memory_bank"]` if there is one.

        Of a bank with more transitions than the capacity it keeps those that join states, and the newest of the others.

        Args:
            obs, info: what the environment's `reset` returned. `obs["actions"]`, if it is there, has the model's
                numbers of the environment's actions, see `NumberedActions`.
                `info["dead_ends"]`, states to keep out of: there an episode ends without success.
            keep_memories: whether this is another episode in the same world, whose map is kept.

        Raises:
            ValueError: if the bank does not fit the model's vocabulary, or the model lacks an action.
        """
        require_state(obs)
        self.number(obs["state"])  # refuses what is no state for this model, before its bank is read
        numbers = tuple(np.asarray(obs["actions"]).tolist()) if "actions" in obs else None
        if keep_memories and numbers == self.numbers:
            self.knowledge.begin_episode()
            self.route = []
        else:
            self._begin(info.get("memory_bank", ()), numbers)
        for state in info.get("dead_ends", ()):
            self.knowledge.avoid(self.number(state))
        self._was_reset, self._here = True, self.number(obs["state"])

    def act(self, obs: Observation, info: Info) -> int:
        self._check_place(obs, info)
        self.prepare([self], [obs], [info])
        if self.route:
            return self.route[0][0]
        return self.explore(obs["state"], allowed_actions(info, self.n_actions))

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        """Keep the transition; where it contradicts what was expected, delete what the change made outdated.

        Raises:
            ValueError: if it is no transition, or a state is outside the model's vocabulary; nothing is learnt then.
        """
        end = self.number(end_of(next_obs, info))
        happened = self.knowledge.checked(self.number(obs["state"]), action, end)
        forgotten = self.knowledge.learn(happened, goal_of(obs))
        if info.get("terminated") and not info.get("is_success"):
            self.knowledge.avoid(end)
        if forgotten:
            info["forgotten"] = forgotten
        self._here = self.number(next_obs["state"])
        if self.route and self.route[0] == happened[1:] and self._here == happened[2]:
            self.route.pop(0)
        else:
            self.route = []

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
            cost: "steps", or "tries", "caution" or "uncertainty", which prefer what is sure; see `search`. None:
                the agent's.
            horizon: longest plan.

        Returns:
            The plan; `found` is False if no way is known, such as to a goal never seen.

        Raises:
            ValueError: if a state is outside the model's vocabulary, algorithm or cost are unknown, or the model
                comes without the latent radius that A* and the greedy policy need.
        """
        algorithm = algorithm or self.config.algorithm
        cost = cost or self.config.cost or self.knowledge.cost
        require_choices(algorithm=(algorithm, ALGORITHMS), cost=(cost, COSTS))
        if algorithm != "dijkstra" and not self.knowledge.has_latent_map:
            model = f"a model of {self.knowledge.states}"
            raise ValueError(f"{algorithm} needs a latent map, which {model} does not have: use 'dijkstra'")
        start, goal = self.number(start), self.number(goal)
        self.knowledge.check(start, goal)
        if algorithm == "dijkstra":
            return self.knowledge.search(start, goal, horizon, cost)
        table = self.imagined(start)
        if self.model.latent_radius is None:
            raise ValueError("this model comes without a latent radius: see eswm_gym.agents.latent_radius")
        latent = self.latent_map()
        distance = latent.distances_to(goal, latent.geodesic(self.model.latent_radius))
        if algorithm == "greedy":
            return follow(table, start, goal, distance, horizon)
        unit = SHRINK * (CERTAIN_MOVE if cost == "uncertainty" else 1.0)  # a step costs at least so much
        return search(table, start, goal, horizon, cost, {s: unit * d for s, d in distance.items()})

    def explore(self, state: Any, actions: Collection[int] | np.ndarray | None = None) -> int:
        """Choose a move towards what the agent does not know, by the rule `exploration`.

        If the model is sure of everything in reach, the agent goes for the move of which it is least sure: some of
        what it is sure of may be wrong, as after a change.

        Args:
            state: where the agent is, as an observation shows it or as its number.
            actions: what it may choose from here; None: anything.
        """
        state, config, knowledge = self.number(state), self.config, self.knowledge
        actions = list(range(self.n_actions) if actions is None else actions)
        if config.names_frontiers:
            if knowledge.name_unknown_ends(state, actions):
                knowledge.imagine([knowledge], [state])
            action = knowledge.to_frontier(state, actions, self.rng, config.exploration == "frontier")
            if action is not None:
                return action
        action = knowledge.to_doubt(state, actions, self.rng)
        return int(self.rng.choice(actions)) if action is None else action

    def imagined(self, state: Any) -> TransitionTable:
        """Where each move from each known state and from this one leads; imagined anew when something surprised."""
        return self.knowledge.imagined(self.number(state))

    def latent_map(self) -> LatentMap:
        """Where the states that it remembers lie in the latent space; mapped anew when something surprised.

        Raises:
            ValueError: if states are views.
        """
        return self.knowledge.latent_map()

    @staticmethod
    def prepare(
        agents: Sequence[ESWMAgent], observations: Sequence[Observation], infos: Sequence[Info] | None = None
    ) -> None:
        """Imagine for all agents that will need it, in one pass."""
        infos = infos or [{}] * len(agents)
        here = [
            (agent, obs, agent.number(obs["state"]), allowed_actions(info, agent.n_actions).tolist())
            for agent, obs, info in zip(agents, observations, infos, strict=True)
        ]
        for agent, obs, state, actions in here:
            agent._notice(obs, state, actions)
        _imagine([(agent, state) for agent, _, state, _ in here if agent._is_stale(state)])
        explorers = []
        for agent, obs, state, actions in here:
            explores = not agent._knows_way(obs, state) and agent.config.names_frontiers
            if explores and agent.knowledge.name_unknown_ends(state, actions):
                explorers.append((agent, state))
        _imagine(explorers)

    @property
    def _kind(self) -> type[Knowledge]:
        """The kind of its knowledge."""
        return knowledge_of(self.model, self.config.trust_memory) if self.config.window is None else LargeKnowledge

    def _begin(self, memories: Iterable, numbers: tuple[int, ...] | None = None) -> None:
        model = self.model if numbers is None else NumberedActions(self.model, numbers)
        self.knowledge = self._kind(model, self.config, memories)
        self.numbers, self.n_actions, self.route = numbers, model.config.n_actions, []

    def _check_place(self, obs: Observation, info: Info) -> None:
        """Warn, once, of a loop that leaves out `reset` or `observe`: what the agent knows is then of another room."""
        require_state(obs)
        state, advice = self.number(obs["state"]), "call agent.reset(obs, info) where an episode begins"
        if not self._was_reset and "memory_bank" in info:
            self._warn(f"act is given a memory bank that the agent has not read: {advice}")
        elif self._here not in (None, state):
            self._warn(
                f"act is called in state {state}, but the last step that the agent observed ended in {self._here}: "
                f"{advice}, and agent.observe(obs, action, next_obs, info) after each step"
            )

    def _check_shown(self, observation: Observation) -> None:
        super()._check_shown(observation)
        if not {"memory_bank", "action_mask", "actions"} & set(observation):
            self._warn(
                "predict sees neither a memory bank nor an action mask in the observation, and the agent does much "
                "worse without: eswm_gym.wrappers.for_sb3(env) puts them there"
            )

    def _warn(self, message: str) -> None:
        """Warn, once, the caller of `act` or `predict`."""
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(message, stacklevel=4)

    def _notice(self, obs: Observation, state: int, actions: Collection[int]) -> None:
        """Take in the goal and the action mask; drop a plan that they do not agree with."""
        shown = goal_of(obs)
        goal = None if shown is None else self.number(shown)
        self.knowledge.check(state, state if goal is None else goal)
        self.knowledge.rule_out(state, actions)
        self.knowledge.set_goal(goal)
        if self.route and (self.route[0][0] not in actions or self.route[-1][1] != goal):
            self.route = []

    def _is_stale(self, state: int) -> bool:
        """Whether the next decision needs a new table. An explorer without memories names the first places before."""
        table = self.knowledge.table
        if self.route or (table is not None and table.row(state) is not None):
            return False
        return bool(len(self.memory)) or not self.config.names_frontiers

    def _knows_way(self, obs: Observation, state: int) -> bool:
        """Whether there is a plan to follow; makes one if there is a goal and none yet."""
        goal = goal_of(obs)
        if not self.route and goal is not None and len(self.memory):
            plan = self.plan(state, goal)
            if not plan.found and self.knowledge.reconsider():
                plan = self.plan(state, goal)
            self.route = list(zip(plan.actions, plan.states[1:], strict=True))
        return bool(self.route)


def _imagine(agents: Sequence[tuple[ESWMAgent, int]]) -> None:
    """Imagine the tables of agents, each in its state, in one pass."""
    for numbers in dict.fromkeys(agent.numbers for agent, _ in agents):
        some = [(agent.knowledge, state) for agent, state in agents if agent.numbers == numbers]
        every, states = zip(*some, strict=True)
        every[0].imagine(every, states)
