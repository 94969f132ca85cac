"""What others would use: a plain reference in networkx, and environments that others wrote, if they are installed.

`pip install envpool xminigrid navix` installs all of them. Each takes one core.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import networkx as nx
import numpy as np
from common.timing import seconds_per_call

from eswm_gym.rooms import RoomConfig, hex_lattice

# As many rooms as are the fastest of 64 to 4,096 here.
STEPS, ENVPOOL_ROOMS, JAX_ROOMS = 60, 256, 1024


def networkx_bank(rng: random.Random, config: RoomConfig) -> list[tuple[int, int, int]]:
    """The reference: one room and its minimal spanning bank, as plain Python and networkx would have it."""
    neighbors = _neighbors(config.radius)
    n = len(neighbors)
    states = rng.sample(config.states, n)
    wall = _plain_wall(rng, config, neighbors)
    hidden = _plain_region(rng, int(config.hidden * n), neighbors)
    free = set(range(n)) - wall - hidden
    graph = nx.Graph()
    graph.add_nodes_from(free)
    for source in free:
        for action, end in enumerate(neighbors[source][:3]):
            if end in free:
                graph.add_edge(source, end, weight=rng.random(), move=(source, action, end))
    bank = []
    for _, _, move in nx.minimum_spanning_edges(graph):
        source, action, end = move["move"]
        if rng.random() < 0.5:
            source, action, end = end, action + 3, source
        bank.append((states[source], action, states[end]))
    for location in wall - hidden:
        bumps = [(end, (action + 3) % 6) for action, end in enumerate(neighbors[location]) if end in free]
        if bumps:
            source, action = rng.choice(bumps)
            bank.append((states[source], action, states[source]))
    rng.shuffle(bank)
    return bank


@cache
def _neighbors(radius: int) -> list[list[int]]:
    return hex_lattice(radius).neighbors.tolist()


def _plain_wall(rng: random.Random, config: RoomConfig, neighbors: list[list[int]]) -> set[int]:
    """A mostly straight run of locations, grown from both ends, and anew if it does not fit."""
    if rng.random() < config.no_wall:
        return set()
    length = rng.randint(*config.wall_lengths)
    wall: set[int] = set()
    while len(wall) < length:
        tip, direction = rng.randrange(len(neighbors)), rng.randrange(6)
        wall, seed = {tip}, tip
        for side in (direction, direction + 3):
            tip = seed
            while len(wall) < length:
                turn = 0 if rng.random() < config.straightness else rng.choice((-1, 1))
                tip = neighbors[tip][(side + turn) % 6]
                if tip < 0 or tip in wall:
                    break
                wall.add(tip)
    return wall


def _plain_region(rng: random.Random, largest: int, neighbors: list[list[int]]) -> set[int]:
    """A connected region of random size, grown by a random location of its rim at a time."""
    region: set[int] = set()
    rim = [rng.randrange(len(neighbors))]
    for _ in range(rng.randint(0, largest)):
        region.add(rim.pop(rng.randrange(len(rim))))
        rim = list({end for location in region for end in neighbors[location] if end >= 0} - region)
    return region


def envpool_rates(seed: int, budget: float) -> dict[str, float]:
    """Steps a second of EnvPool's environments, written in C++, with random actions on one thread; {} without it."""
    if not find_spec("envpool"):
        return {}
    import envpool

    calls: dict[str, Callable[[], object]] = {}
    for env_id, n_actions in (("MiniGrid-FourRooms-v0", 3), ("Taxi-v3", 6)):
        envs = envpool.make(env_id, env_type="gymnasium", num_envs=ENVPOOL_ROOMS, num_threads=1, seed=seed)
        envs.reset()
        actions = np.random.default_rng(seed).integers(n_actions, size=(STEPS, ENVPOOL_ROOMS))

        def walk(envs=envs, actions=actions) -> None:
            for action in actions:
                envs.step(action)

        calls[f"envpool-{env_id}"] = walk
    return {name: STEPS * ENVPOOL_ROOMS / taken for name, taken in seconds_per_call(calls, budget).items()}


def jax_rates(seed: int, budget: float) -> dict[str, float]:
    """Steps a second of MiniGrids in JAX, compiled, with random actions on one thread; {} without them."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    walks = {name: make(seed) for name, make in JAX_GRIDS.items() if find_spec(name)}
    return {name: STEPS * JAX_ROOMS / taken for name, taken in seconds_per_call(walks, budget).items()}


def _xminigrid(seed: int) -> Callable[[], object]:
    import xminigrid
    from xminigrid.wrappers import GymAutoResetWrapper

    env, params = xminigrid.make("MiniGrid-FourRooms")
    env = GymAutoResetWrapper(env)
    return _jax_walk(lambda key: env.reset(params, key), lambda step, action: env.step(params, step, action), seed)


def _navix(seed: int) -> Callable[[], object]:
    import navix

    env = navix.make("Navix-FourRooms-v0")
    return _jax_walk(env.reset, env.step, seed)


JAX_GRIDS: dict[str, Callable[[int], Callable[[], object]]] = {"xminigrid": _xminigrid, "navix": _navix}


def _jax_walk(reset: Callable, step: Callable, seed: int) -> Callable[[], object]:
    """Many rooms for many steps, as one compiled call."""
    import jax

    def walk(key):
        begin, choose = jax.random.split(key)
        first = jax.vmap(reset)(jax.random.split(begin, JAX_ROOMS))
        actions = jax.random.randint(choose, (STEPS, JAX_ROOMS), 0, 3)

        def one(now, action):
            now = jax.vmap(step)(now, action)
            return now, now.reward.sum() + now.observation.sum()

        return jax.lax.scan(one, first, actions)[1].sum()

    compiled, key = jax.jit(walk), jax.random.PRNGKey(seed)
    return lambda: compiled(key).block_until_ready()
