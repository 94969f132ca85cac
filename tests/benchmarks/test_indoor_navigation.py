"""Walks of the benchmark of rooms seen through a camera: what they count, and which doors are closed."""

import math

import gymnasium as gym
import numpy as np
import pytest
from indoor import navigation
from indoor.navigation import Random, Walked, door_rows, navigation_rows, rows_of, walk
from indoor_worlds import PaintedCamera, Perfect, Seer, two_doors

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import IndoorAgent
from eswm_gym.envs import indoor as env_module


@pytest.fixture
def painted(monkeypatch):
    found = PaintedCamera()
    monkeypatch.setattr(env_module, "camera", lambda size: found)
    return found


def test_rows_of_walks():
    """Only those that arrive count for their way, and only where the goal is not next to the start."""
    walked = [
        Walked(True, 4, 6.0, 4.0),
        Walked(False, 40, 30.0, 4.0),
        Walked(True, 1, 0.9, 0.3),
        Walked(True, 9, 5.0, 5.0),
    ]
    success, way = rows_of("indoor-navigation", "some", walked, 0)
    assert (success.metric, success.value, success.n) == ("success_rate", 0.75, 4)
    assert (way.metric, way.value, way.n) == ("path_ratio", 1.25, 2)
    (alone,) = rows_of("indoor-navigation", "some", walked[1:3], 0)
    assert (alone.metric, alone.value) == ("success_rate", 0.5)


class Led:
    """Goes where it is told."""

    def __init__(self, *actions):
        self.actions = [np.array(action, np.float32) for action in actions]

    def reset(self, obs, info):
        assert "memory_bank" in info

    def act(self, obs, info):
        return self.actions.pop(0)

    def observe(self, obs, action, next_obs, info):
        self.last = info


def test_a_walk(painted, monkeypatch):
    """Steps that are blocked count as steps, not as metres."""
    env = gym.make("ESWM-Indoor-v0")
    reset = env.reset
    begin = {"house": two_doors(), "start": (3.0, 3.0, 0.0), "goal": (3.4, 1.0, 0.0)}
    monkeypatch.setattr(env, "reset", lambda seed: reset(seed=seed, options=begin))
    found = walk(env, Led([1.5, 0, 0], [0.0, -0.5, 0], [0.3, -1.3, 0]), seed=0)
    assert found.success and found.steps == 3
    assert found.metres == pytest.approx(0.5 + math.hypot(0.3, 1.3)) and found.shortest == pytest.approx(
        math.hypot(0.4, 2)
    )
    begin["goal"] = (7.0, 1.0, 0.0)
    steps = [[0, 0.1, 0], [0, -0.1, 0]] * 20
    found = walk(env, Led(*steps), seed=0, door=0)
    assert not found.success and found.steps == 40 and found.metres == pytest.approx(4, abs=1e-4)
    assert 6.6 < found.shortest < 8  # through the other door


def test_navigation(painted):
    """With one who finds every pose: it arrives, at random one hardly does, and the oracle's way is the shortest."""
    rows = navigation_rows([1, 5], Perfect(), Seer(painted), 0)
    value = {(row.method, row.metric): row.value for row in rows}
    assert {row.setting for row in rows} == {"indoor-navigation"}
    assert value["eswm", "success_rate"] == 1 > value["random", "success_rate"]
    assert value["oracle", "success_rate"] == value["oracle", "path_ratio"] == 1 <= value["eswm", "path_ratio"]
    assert 0 <= value["pose-graph", "success_rate"] <= 1
    assert [row.n for row in rows if row.metric == "success_rate"] == [2] * 4


def test_doors_are_closed_on_the_way(painted, monkeypatch):
    """Each with another way around it; all methods meet the same."""
    met = []

    def recorded(env, agent, seed, door=None):
        obs, info = env.reset(seed=seed)
        before = info["distance"]
        env.unwrapped.set_door(door, closed=True)
        env.step(np.zeros(3, np.float32))
        after = env.step(np.zeros(3, np.float32))[4]["distance"]
        met.append((seed, door, before, after, type(agent), agent.edits))
        return Walked(True, 1, after, after)

    monkeypatch.setattr(navigation, "walk", recorded)
    rows = door_rows(10, 2, Perfect(), Seer(painted), 0)
    assert len(met) == 6 and {row.method for row in rows} == {"eswm", "eswm-no-editing", "pose-graph"}
    for k in (0, 3):
        assert len({episode[:4] for episode in met[k : k + 3]}) == 1
        assert [episode[5] for episode in met[k : k + 3]] == [True, False, True]
    for seed, _, before, after, kind, _ in met:
        assert seed >= 10 and before + 1 < after < math.inf and kind is IndoorAgent
    assert met[0][0] < met[3][0]


def test_random_agents_of_a_seed_do_the_same():
    space = gym.make("ESWM-Indoor-v0").action_space
    drawn = [[Random(space, seed).act(None, None) for _ in range(3)] for seed in (1, 1, 2)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
