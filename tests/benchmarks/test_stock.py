"""What one would use in MiniGrid's own environments instead, counted by hand or in MiniGrid itself."""

import copy
import json
import math
from collections import deque

import gymnasium as gym
import numpy as np
import pytest
from foreign import stock
from foreign.command import main
from foreign.stock import STOCK, OdometryFrontier, OneHotViews, make, play, reachable, shortest
from minigrid.core.world_object import Door, Goal, Key
from minigrid_worlds import Corridor

from eswm_gym.agents.baselines import RandomAgent
from eswm_gym.world_model import available
from eswm_gym.wrappers import MiniGridViews

LEFT, RIGHT, AHEAD = 0, 1, 2


def views(name):
    return MiniGridViews(gym.make(f"MiniGrid-{name}-v0"))


def corridor(*things, **options):
    return MiniGridViews(Corridor(*things, **{"max_steps": 30} | options))


class Scripted(RandomAgent):
    """Does what it is told, and then turns left for ever."""

    def __init__(self, *actions):
        super().__init__(0)
        self.script = list(actions)

    def act(self, obs, info):
        return self.script.pop(0) if self.script else LEFT


# The fewest steps


@pytest.mark.parametrize(("name", "steps"), [("Empty-5x5", 2 + 1 + 2), ("Empty-8x8", 5 + 1 + 5), ("Empty-16x16", 27)])
def test_the_shortest_way_in_empty_rooms(name, steps):
    assert shortest(views(name), 0) == steps


@pytest.mark.parametrize("seed", range(4))
def test_turns_count_too(seed):
    """Two cells down, from a heading that the seed draws: 0 is right, 1 down, 2 left and 3 up."""
    env = MiniGridViews(gym.make("MiniGrid-FourRooms-v0", agent_pos=(1, 1), goal_pos=(1, 3)))
    heading = int(env.reset(seed=seed)[1]["pose"][2])
    assert shortest(env, seed) == 2 + [1, 0, 1, 2][heading]


def test_doors_and_keys_take_a_step_each():
    assert shortest(corridor(None, Goal()), 0) == 2
    assert shortest(corridor(Door("red"), Goal()), 0) == 3  # open, step, step
    assert shortest(corridor(Door("red", is_open=True), Goal()), 0) == 2
    assert shortest(corridor(Key("red"), None, Door("red", is_locked=True)), 0) == 4  # pick up, two steps, open


def searched(env, seed):
    """The fewest steps to a reward, by trying all actions in the environment itself."""
    env.reset(seed=seed)
    env.unwrapped.max_steps = 10**6

    def key(one):
        world = one.unwrapped
        return (*world.agent_pos, world.agent_dir, world.carrying is None, world.grid.encode().tobytes())

    queue, seen = deque([(env, 0)]), {key(env)}
    while queue:
        here, steps = queue.popleft()
        for action in (LEFT, RIGHT, AHEAD):
            there = copy.deepcopy(here)
            _, reward, *_ = there.step(action)
            if reward > 0:
                return steps + 1
            if key(there) not in seen:
                seen.add(key(there))
                queue.append((there, steps + 1))
    return math.inf


@pytest.mark.parametrize(("name", "seed"), [("MultiRoom-N2-S4", 0), ("MultiRoom-N2-S4", 3), ("Unlock", 2)])
def test_there_is_no_shorter_way_in_the_environment_itself(name, seed):
    assert shortest(views(name), seed) == searched(MiniGridViews(gym.make(f"MiniGrid-{name}-v0").unwrapped), seed)


# Episodes


def test_an_episode_is_counted():
    assert play(views("Empty-5x5"), Scripted(AHEAD, AHEAD, RIGHT, AHEAD, AHEAD), 0) == (True, 5, 1.0)
    assert play(views("Empty-5x5"), Scripted(), 0)[:2] == (False, 100)  # MiniGrid's own limit


def test_the_share_of_cells_that_were_seen():
    """Of ten cells in a row one sees seven, and after two steps nine."""
    things = [None] * 8 + [Goal()]
    assert play(corridor(*things, max_steps=3), Scripted(), 0) == (False, 3, 0.7)
    assert play(corridor(*things, max_steps=3), Scripted(AHEAD, AHEAD), 0) == (False, 3, 0.9)
    assert play(corridor(*things), Scripted(*[AHEAD] * 9), 0) == (True, 9, 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_all_rooms_that_doors_connect_count(seed):
    env = views("MultiRoom-N2-S4")
    env.reset(seed=seed)
    rooms = env.unwrapped.rooms
    assert len(rooms) == 2
    assert len(reachable(env.unwrapped.grid)) == sum((r.size[0] - 2) * (r.size[1] - 2) for r in rooms) + 1  # the door


@pytest.mark.parametrize("name", ["Empty-8x8", "SimpleCrossingS9N1", "MultiRoom-N2-S4", "Unlock"])
def test_odometry_and_a_map_are_enough(name):
    for seed in range(3):
        env = views(name)
        success, steps, seen = play(env, OdometryFrontier(seed), seed)
        assert success and shortest(env, seed) <= steps and 0 < seen <= 1


def test_odometry_starts_each_episode_from_nothing():
    env, agent = views("MultiRoom-N2-S4"), OdometryFrontier(0)
    play(env, agent, 0)
    fresh = agent.spawn(5)
    agent.rng = np.random.default_rng(5)
    assert play(env, agent, 1) == play(env, fresh, 1)


def test_chance_is_worse():
    found = [play(views("MultiRoom-N2-S4"), RandomAgent(seed, n_actions=3), seed)[0] for seed in range(8)]
    assert np.mean(found) <= 0.5


@pytest.mark.parametrize("name", STOCK)
def test_settings_are_minigrids_own_as_they_are(name):
    env = make(name)
    assert env.observation_space["state"].shape == (7, 7)
    assert env.unwrapped.max_steps == gym.make(STOCK[name]).unwrapped.max_steps


def test_one_hot_views():
    env = OneHotViews(views("Empty-5x5"))
    shown, _ = env.reset(seed=0)
    assert env.observation_space.contains(shown) and shown.shape == (7 * 7 * 9,)
    view = MiniGridViews(gym.make("MiniGrid-Empty-5x5-v0")).reset(seed=0)[0]["state"]
    np.testing.assert_array_equal(shown.reshape(49, 9).argmax(1), view.ravel())
    assert shown.sum() == 49


def test_a_recurrent_policy_plays():
    pytest.importorskip("sb3_contrib", reason="needs the extra foreign")
    policy = stock.recurrent_ppo("minigrid-multiroom-n2-s4-views", 1, 0)
    for seed in range(2):
        success, steps, seen = play(make("minigrid-multiroom-n2-s4-views"), policy.spawn(seed), seed)
        assert 1 <= steps <= 40 and 0 < seen <= 1 and success in (True, False)


def test_foreign(tmp_path, monkeypatch, capsys):
    if "minigrid" not in available():
        pytest.skip("no such model yet")
    trained = []

    def stand_in(name, steps, seed):
        trained.append((name, steps))
        return RandomAgent(seed, n_actions=3)

    monkeypatch.setattr(stock, "recurrent_ppo", stand_in)
    monkeypatch.setattr(stock, "find_spec", lambda name: True)
    name = "minigrid-empty-8x8-views"
    rows = main([name, "--quick", "--json", str(tmp_path / "out.json")])
    found = json.loads((tmp_path / "out.json").read_text())
    assert len(found["rows"]) == len(rows) and {(row.setting, row.n) for row in rows} == {(name, 3)}
    methods = {"eswm", "map-only", "odometry-frontier", "random", "recurrent-ppo", "recurrent-ppo-10x", "oracle"}
    expected = {(method, metric) for method in methods for metric in ("success_rate", "steps", "coverage")}
    value = {(row.method, row.metric): row.value for row in rows}
    assert value.keys() == expected - {("oracle", "coverage")} and len(value) == len(rows)
    assert value["oracle", "success_rate"] == 1 and value["oracle", "steps"] == 11
    assert all(11 <= value[method, "steps"] <= 256 for method in methods)  # MiniGrid's own limit
    assert all(0 < value[method, "coverage"] <= 1 for method in methods - {"oracle"})
    n_steps = round(3 * value["eswm", "steps"])
    assert trained == [(name, n_steps), (name, 10 * n_steps)]
    assert "odometry-frontier" in capsys.readouterr().out


def test_without_sb3_contrib_it_is_left_out(monkeypatch):
    monkeypatch.setattr(stock, "find_spec", lambda name: None)
    monkeypatch.setattr(stock, "MiniGridAgent", Stub)
    rows = stock.rows_of("minigrid-multiroom-n2-s4-views", range(2), 0, "cpu")
    assert {row.method for row in rows} == {"eswm", "map-only", "odometry-frontier", "random", "oracle"}


class Stub(RandomAgent):
    """In the place of the agent."""

    def __init__(self, model=None, seed=None):
        super().__init__(seed, n_actions=3)

    @classmethod
    def from_pretrained(cls, device):
        return cls()

    def spawn(self, seed=None):
        return Stub(None, seed)


def test_no_other_settings():
    with pytest.raises(SystemExit):
        main(["minigrid-empty-9x9-views"])
