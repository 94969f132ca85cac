"""Random episodes of every id against a second account of the worlds: plain geometry, sets and breadth-first search.

300 episodes by default, 10,000 with `-m slow`.
"""

import math
from collections import Counter, deque
from functools import cache

import gymnasium as gym
import numpy as np
import pytest

import eswm_gym  # noqa: F401

# Without houses, which are no graphs of places: see tests/rooms/indoor for a second account of them.
IDS = sorted(env_id for env_id in gym.registry if env_id.startswith("ESWM-") and "Indoor" not in env_id)
FEW, MANY = -(-300 // len(IDS)), 10_000 // len(IDS)
LIMITS = {"RandomWall": 30, "RandomWall19": 15, "OpenArena": 15, "Lattice": 60, "MiniGrid": 60}
EAST, SOUTH = (1, 0, -1, 0), (0, 1, 0, -1)  # of MiniGrid's headings


@cache
def neighbors(n_locations: int) -> list[list[int]]:
    """For each location, row by row from the north-west, what lies in each direction; -1 off the lattice."""
    if n_locations == 36:  # 6 x 6 squares: left, down, right, up
        squares = [(x, y) for y in range(6) for x in range(6)]
        ways = [[(x - 1, y), (x, y + 1), (x + 1, y), (x, y - 1)] for x, y in squares]
        return [[squares.index(there) if there in squares else -1 for there in around] for around in ways]
    radius = {19: 2, 37: 3}[n_locations]
    rows = range(-radius, radius + 1)
    spots = [(2 * x + abs(row), row) for row in rows for x in range(2 * radius + 1 - abs(row))]
    steps = [(2, 0), (1, -1), (-1, -1), (-2, 0), (-1, 1), (1, 1)]  # in half widths and rows, counter-clockwise
    index = {spot: i for i, spot in enumerate(spots)}
    return [[index.get((x + dx, y + dy), -1) for dx, dy in steps] for x, y in spots]


def distances(to, ends) -> dict:
    """Steps to a place from everywhere, `ends` being the places where moves from each place end; BFS, backwards."""
    before: dict = {place: [] for place in ends}
    for place, there in ends.items():
        for end in there:
            before[end].append(place)
    found, queue = {to: 0}, deque([to])
    while queue:
        for place in before[here := queue.popleft()]:
            if place not in found:
                found[place] = found[here] + 1
                queue.append(place)
    return found


class LatticeWorld:
    """What a room of hexagons or squares must do."""

    back = 1

    def __init__(self, env) -> None:
        self.env, self.bits = env, "OpenArena" in env.spec.id

    def begin(self, obs, info) -> None:
        room = self.env.unwrapped.room
        self.around, self.states = neighbors(room.n_locations), room.states.tolist()
        self.here, self.goal = info["location"], self.env.unwrapped.goal
        self.remap()

    def remap(self) -> None:
        walls = set(np.flatnonzero(self.env.unwrapped.room.walls).tolist())
        self.walls, free = walls, set(range(len(self.around))) - walls
        self.ends = {
            place: [end if end in free else place for end in self.around[place]] for place in free
        }  # -1 is in no set

    def state(self, place):
        state = self.states[place]
        return [int(bit) for bit in f"{state:06b}"] if self.bits else state

    def check(self, obs, info) -> None:
        assert info["location"] == self.here and self.here not in self.walls
        assert info["action_mask"].tolist() == [int(end >= 0) for end in self.around[self.here]]
        assert np.asarray(obs["state"]).tolist() == self.state(self.here)
        if self.goal is not None:
            assert np.asarray(obs["goal"]).tolist() == self.state(self.goal)

    def start_seen(self) -> set:
        return {self.here}

    seen_here = start_seen

    def can_see(self, places) -> set:
        return set(places)

    def disturb(self, rng) -> None:
        spare = sorted(set(self.ends) - {self.here, self.goal})
        if spare:
            self.env.unwrapped.add_walls([int(rng.choice(spare))])


class GridWorld:
    """What a room of MiniGrid must do; what a pose sees is taken from the environment's observation."""

    back = 5

    def __init__(self, env) -> None:
        self.env = env

    def begin(self, obs, info) -> None:
        self.here, self.goal = tuple(info["pose"].tolist()), self.env.unwrapped.goal
        self.remap()

    def remap(self) -> None:
        self.walls = {(x, y) for y, x in np.argwhere(self.env.unwrapped.grid_classes == 1).tolist()}
        free = [(x, y) for x in range(9) for y in range(9) if (x, y) not in self.walls]
        self.ends = {(x, y, h): [self.move((x, y, h), a) for a in range(3)] for x, y in free for h in range(4)}

    def move(self, pose, action):
        x, y, heading = pose
        if action < 2:
            return x, y, (heading + (-1, 1)[action]) % 4
        ahead = x + EAST[heading], y + SOUTH[heading]
        return pose if ahead in self.walls else (*ahead, heading)

    def check(self, obs, info) -> None:
        assert tuple(info["pose"].tolist()) == self.here and self.here[:2] not in self.walls
        assert info["action_mask"].tolist() == [1, 1, 1]
        assert obs["state"][2, 4] == 2, "the agent's own cell shows as empty"
        x, y, heading = self.here
        assert (obs["state"][2, 3] == 1) == ((x + EAST[heading], y + SOUTH[heading]) in self.walls)
        self.view = obs["state"]
        if self.goal is not None:  # the goal's view is its own
            assert (obs["state"] == obs["goal"]).all() == (self.here == self.goal) or self.disturbed

    disturbed = False

    def start_seen(self) -> set:
        return self.seen_here()

    def seen_here(self) -> set:
        """The cells in view: `view[i, j]` lies 4 - j ahead and i - 2 to the right."""
        x, y, h = self.here
        return {
            (x + EAST[h] * (4 - j) - SOUTH[h] * (i - 2), y + SOUTH[h] * (4 - j) + EAST[h] * (i - 2))
            for i, j in np.argwhere(self.view > 0).tolist()
            if (i, j) != (2, 4)
        }

    def can_see(self, poses) -> set:
        """By putting the agent everywhere for a look: its views are MiniGrid's own."""
        env, before = self.env.unwrapped, self.here
        seen: set = set()
        for pose in poses:
            env.agent_pos, env.agent_dir = pose[:2], pose[2]
            self.here, self.view = pose, env.gen_obs()["state"]
            seen |= self.seen_here()
        self.here = before
        env.agent_pos, env.agent_dir = before[:2], before[2]
        return seen

    def disturb(self, rng) -> None:
        kept = {place[:2] for place in (self.here, self.goal) if place is not None}
        spare = sorted({pose[:2] for pose in self.ends} - kept)
        self.env.unwrapped.add_walls([spare[rng.integers(len(spare))]])
        self.disturbed = True


def play(env_id: str, n: int, seed: int) -> None:
    env, rng = gym.make(env_id), np.random.default_rng(seed)
    world = (GridWorld if "MiniGrid" in env_id else LatticeWorld)(env)
    limit = LIMITS[env_id.split("-")[1].removesuffix("Explore")]
    space = env.observation_space
    for episode in range(n):
        obs, info = env.reset(seed=seed * 100_000 + episode)
        world.disturbed = False
        world.begin(obs, info)
        world.check(obs, info)
        assert obs in space and not info["is_success"] and not info["blocked"]
        seen, far = world.start_seen(), None
        to_goal = None if world.goal is None else distances(world.goal, world.ends)
        if to_goal is None:
            to_see = world.can_see(distances_from(world))
        visits = Counter([world.here])
        change_at = rng.integers(3, 10) if episode % 4 == 0 else math.inf  # a wall appears
        for step in range(1, limit + 1):
            if step == change_at:
                world.disturb(rng)
                world.remap()
                far = None
                to_goal = None if world.goal is None else distances(world.goal, world.ends)
                if to_goal is None:
                    to_see = world.can_see(distances_from(world))
            action = int(rng.integers(env.action_space.n))
            if episode % 2:  # where it has been least, so that episodes end
                action = min(range(env.action_space.n), key=lambda a: (visits[world.ends[world.here][a]], rng.random()))
            obs, reward, terminated, truncated, info = env.step(action)
            before, world.here = world.here, world.ends[world.here][action]
            world.check(obs, info)
            assert obs in space
            visits[world.here] += 1
            assert info["blocked"] == (world.here == before)
            if to_goal is None:
                new = world.seen_here() - seen
                seen |= new
                assert reward == len(new)
                assert terminated == (to_see <= seen)
            else:
                length = info["shortest_path_length"]
                assert length == to_goal.get(world.here, -1)
                assert (length == 0) == (world.here == world.goal) == terminated
                if far is not None:  # and MiniGrid's way back is longer: two turns
                    assert far - 1 <= length <= far + world.back
                far = length
                assert reward == (1.0 if terminated else -0.01)
            assert terminated == info["is_success"]
            assert truncated == (step == limit)
            if terminated:
                break
    env.close()


def distances_from(world) -> list:
    """Everywhere that can be reached from here."""
    found, queue = [world.here], [world.here]
    known = {world.here}
    while queue:
        for end in world.ends[queue.pop()]:
            if end not in known:
                known.add(end)
                found.append(end)
                queue.append(end)
    return found


@pytest.mark.parametrize("env_id", IDS)
def test_random_episodes(env_id):
    play(env_id, FEW, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", IDS)
def test_ten_thousand_random_episodes(env_id):
    play(env_id, MANY, seed=2)
