"""MiniGrid's own ids, with their own views, goals and time limits, and what one would use there instead."""

from __future__ import annotations

import math
from collections import deque
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import minigrid  # noqa: F401  registers its environments
import networkx as nx
import numpy as np
from common.intervals import mean, rate
from common.rows import Row
from gymnasium import spaces

from eswm_gym.agents import MiniGridAgent
from eswm_gym.agents.base import Agent, Info, Observation
from eswm_gym.agents.baselines import OverlapOnly, RandomAgent
from eswm_gym.rooms.grid import FORWARD, N_ACTIONS, moved, own_cell
from eswm_gym.rooms.grid.views import view_positions
from eswm_gym.wrappers import MiniGridViews
from eswm_gym.wrappers.minigrid_views import DOOR, GOAL, KEY, OBJECTS

STOCK = {
    f"minigrid-{name.lower()}-views": f"MiniGrid-{name}-v0"
    for name in (
        "Empty-8x8", "FourRooms", "SimpleCrossingS9N1", "SimpleCrossingS9N2", "SimpleCrossingS9N3", "MultiRoom-N2-S4",
        "Unlock",
    )
} | {"minigrid-multiroom-n4-s5-views": "MiniGrid-MultiRoom-N4-S5-v1"}  # fmt: skip
UNSEEN, WALL, EMPTY = (OBJECTS.index(name) for name in ("unseen", "wall", "empty"))
Pose = tuple[int, int, int]


def make(name: str) -> MiniGridViews:
    """The environment of a setting."""
    return MiniGridViews(gym.make(STOCK[name]))


def rows_of(name: str, seeds: range, seed: int, device: str) -> list[Row]:
    """Success, steps and the share of the room that was seen, of every method."""
    env = make(name)
    agents: dict[str, Agent] = {
        "eswm": MiniGridAgent.from_pretrained(device=device),
        "map-only": MiniGridAgent(OverlapOnly().to(device)),
        "odometry-frontier": OdometryFrontier(),
        "random": RandomAgent(n_actions=N_ACTIONS),
    }
    played = {method: [play(env, agent.spawn(s), s) for s in seeds] for method, agent in agents.items()}
    if find_spec("sb3_contrib"):
        n_steps = sum(steps for _, steps, _ in played["eswm"])
        for method, budget in (("recurrent-ppo", n_steps), ("recurrent-ppo-10x", 10 * n_steps)):
            policy = recurrent_ppo(name, budget, seed)
            played[method] = [play(env, policy.spawn(s), s) for s in seeds]
    played["oracle"] = [(True, shortest(env, s), math.nan) for s in seeds]
    rows = []
    for method, episodes in played.items():
        success, steps, seen = zip(*episodes, strict=True)
        rows.append(Row(name, method, "success_rate", *rate(success)))
        rows.append(Row(name, method, "steps", *mean(steps, seed)))
        if method != "oracle":
            rows.append(Row(name, method, "coverage", *mean(seen, seed)))
    return rows


def play(env: gym.Env, agent: Agent, seed: int) -> tuple[bool, int, float]:
    """One episode: whether it succeeded, its steps, and the share of the cells that are no wall which the agent saw."""
    obs, info = env.reset(seed=seed)
    agent.reset(obs, info)
    seen, steps, done = set(cells_of(obs, info)), 0, False
    inside = reachable(env.unwrapped.grid)  # type: ignore[attr-defined]
    while not done:
        action = agent.act(obs, info)
        following, _, terminated, truncated, info = env.step(action)
        agent.observe(obs, action, following, info)
        obs, done, steps = following, terminated or truncated, steps + 1
        seen |= set(cells_of(obs, info))
    return bool(info["is_success"]), steps, len(inside & seen) / len(inside)


def reachable(grid: Any) -> set[tuple[int, int]]:
    """The cells that are no wall and hang together with the goal, or with any door."""
    cells = nx.grid_2d_graph(grid.width, grid.height)
    kinds = {cell: getattr(grid.get(*cell), "type", "empty") for cell in cells}
    free = cells.subgraph(cell for cell, kind in kinds.items() if kind != "wall")
    ends = [cell for cell, kind in kinds.items() if kind in ("goal", "door")]
    return set().union(*(nx.node_connected_component(free, cell) for cell in ends))


def cells_of(obs: Observation, info: Info) -> dict[tuple[int, int], int]:
    """The classes of the cells (x, y) that a view shows."""
    view = np.asarray(obs["state"]).ravel()
    where = view_positions(info["pose"][None], math.isqrt(len(view)))[0].tolist()
    return {(x, y): int(kind) for (x, y), kind in zip(where, view, strict=True) if kind != UNSEEN}


class OdometryFrontier(Agent):
    """Knows its pose exactly, that turns are by 90 degrees and steps by one cell, and keeps a map of what it saw.

    It goes to the nearest goal on the map; else to the nearest key; else to the nearest pose in front of a cell that it
    has not seen, or of a door (Yamauchi, 1997).
    """

    def __init__(self, seed: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)

    def spawn(self, seed: int | None = None) -> OdometryFrontier:
        return type(self)(seed)

    def reset(self, obs: Observation, info: Info) -> None:
        self.map: dict[tuple[int, int], int] = {}
        self.stuck: set[Pose] = set()  # where a step ahead changed nothing
        self._see(obs, info)

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        before, now = self.pose, np.asarray(obs["state"])
        self._see(next_obs, info)
        if action == FORWARD and self.pose == before and (now == next_obs["state"]).all():
            self.stuck.add(before)
        elif now.flat[own_cell(now.size) - 1] == KEY:
            self.stuck.clear()

    def act(self, obs: Observation, info: Info) -> int:
        for wanted in ((GOAL,), (KEY,), (UNSEEN, DOOR)):
            action = self._to(wanted)
            if action is not None:
                return action
        return int(self.rng.integers(N_ACTIONS))

    def _see(self, obs: Observation, info: Info) -> None:
        self.pose: Pose = tuple(info["pose"].tolist())
        self.map |= cells_of(obs, info)

    def _to(self, wanted: tuple[int, ...]) -> int | None:
        """The first action of a shortest way to a step into a cell of a kind."""
        first: dict[Pose, int | None] = {self.pose: None}
        queue = deque([self.pose])
        while queue:
            pose = queue.popleft()
            for action in self.rng.permutation(N_ACTIONS).tolist():
                there: Pose = tuple(moved(np.array(pose), action).tolist())
                step = action if first[pose] is None else first[pose]
                if action == FORWARD:
                    kind = self.map.get(there[:2], UNSEEN)
                    if kind in wanted and pose not in self.stuck:
                        return step
                    if kind not in (EMPTY, GOAL):
                        continue
                if there not in first:
                    first[there] = step
                    queue.append(there)
        return None


def shortest(env: gym.Env, seed: int) -> int:
    """The fewest steps to success for whoever knows the room."""
    _, info = env.reset(seed=seed)
    world: Any = env.unwrapped
    things = {(i, j): world.grid.get(i, j) for i in range(world.width) for j in range(world.height)}
    graph: nx.DiGraph = nx.DiGraph()
    start, done = (*info["pose"].tolist(), False), "done"
    queue, seen = deque([start]), {start}
    while queue:
        state = queue.popleft()
        x, y, heading, has_key = state
        for action in range(N_ACTIONS):
            at = tuple(moved(np.array([x, y, heading]), action).tolist())
            thing, steps, end = things.get(at[:2]), 1, (*at, has_key)
            kind = getattr(thing, "type", "empty") if action == FORWARD else "empty"
            if kind in ("wall", "lava") or (kind == "door" and thing.is_locked and not has_key):
                continue
            if kind == "goal" or (kind == "door" and thing.is_locked):
                end = done
            elif kind == "door":
                steps = 1 if thing.is_open else 2
            elif kind == "key" and not has_key:
                end = (x, y, heading, True)
            graph.add_edge(state, end, steps=steps)
            if end != done and end not in seen:
                seen.add(end)
                queue.append(end)
    return int(nx.shortest_path_length(graph, start, done, weight="steps"))


class OneHotViews(gym.ObservationWrapper):
    """Views as vectors with a 1 for the class of each cell, for a policy of perceptrons."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        n_cells = math.prod(env.observation_space["state"].shape)  # type: ignore[index]
        self.observation_space = spaces.Box(0, 1, (n_cells * len(OBJECTS),), np.float32)

    def observation(self, observation: dict[str, Any]) -> np.ndarray:
        return one_hot(observation)


def one_hot(obs: Observation) -> np.ndarray:
    """(C * 9,) float32, a 1 for the class of each of C cells."""
    return np.eye(len(OBJECTS), dtype=np.float32)[np.asarray(obs["state"]).ravel()].ravel()


def recurrent_ppo(name: str, steps: int, seed: int) -> RecurrentPolicy:
    """sb3-contrib's RecurrentPPO, trained in rooms that it is not tested in."""
    from sb3_contrib import RecurrentPPO

    env = OneHotViews(make(name))
    sizes = {"lstm_hidden_size": 64}
    model = RecurrentPPO(
        "MlpLstmPolicy", env, n_steps=256, batch_size=256, n_epochs=4, policy_kwargs=sizes, seed=seed % 2**31
    )
    return RecurrentPolicy(model.learn(steps))


class RecurrentPolicy(Agent):
    """A trained recurrent policy, which draws its actions."""

    def __init__(self, model: Any, seed: int | None = None) -> None:
        self.rng, self.model = np.random.default_rng(seed), model

    def spawn(self, seed: int | None = None) -> RecurrentPolicy:
        return type(self)(self.model, seed)

    def reset(self, obs: Observation, info: Info) -> None:
        self.state, self.start = None, True

    def act(self, obs: Observation, info: Info) -> int:
        action, self.state = self.model.predict(one_hot(obs), self.state, np.array([self.start]), deterministic=False)
        self.start = False
        return int(action)
