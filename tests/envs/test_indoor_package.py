"""Houses as environments of Gymnasium: limits, memory banks, states, pictures, many at once."""

import json
import math
from dataclasses import replace

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from indoor_houses import ONE, TWO, close, explore, move, navigate

from eswm_gym.envs import indoor
from eswm_gym.envs.indoor import IndoorEnv
from eswm_gym.envs.indoor_camera import Camera
from eswm_gym.rooms.indoor import Furniture, Space

pytestmark = pytest.mark.camera

RIGHT = math.pi / 2
IDS = ("ESWM-Indoor-v0", "ESWM-IndoorExplore-v0")
every_id = pytest.mark.parametrize("env_id", IDS)
every_task = pytest.mark.parametrize("task", ["navigate", "explore"])


def test_making_one_draws_nothing(monkeypatch):
    """So that processes can be forked afterwards, as vector environments do by default."""
    monkeypatch.delattr(indoor, "camera")
    env = gym.make("ESWM-Indoor-v0")
    with pytest.raises(NameError):
        env.reset(seed=0, options={"house": ONE})


@every_id
def test_time_limit(env_id):
    assert gym.spec(env_id).max_episode_steps == 40
    env = gym.make(env_id)
    env.reset(seed=0, options={"house": ONE})
    env.unwrapped.set_state({**env.unwrapped.get_state(), "pose": [2.0, 2.0, 0.0], "seen": []})
    ends = [env.step(move(ahead=1.5 if k == 0 else 0.5))[2:4] for k in range(40)]  # to the wall, and no further
    assert ends == [(False, False)] * 39 + [(False, True)]


# Memory banks


def test_memory_bank(monkeypatch):
    """Its pictures are of poses that its actions lead to and from, and form a tree."""
    taken, take = {}, Camera.picture

    def picture(self, house, pose):
        image = take(self, house, pose)
        taken.setdefault(image.tobytes(), []).append(np.array(pose, float))
        return image

    monkeypatch.setattr(Camera, "picture", picture)
    env = gym.make("ESWM-Indoor-v0")
    house = replace(TWO, furniture=(*TWO.furniture, Furniture("box", 7.0, 1.0, (0.4, 0.4, 1.2))))
    _, info = env.reset(seed=0, options={"house": house})
    bank = info["memory_bank"]
    assert {key: (value.shape, value.dtype) for key, value in bank.items()} == {
        "start": ((32, 224, 224, 3), np.uint8),
        "end": ((32, 224, 224, 3), np.uint8),
        "action": ((32, 3), np.float32),
    }
    held = ~np.isnan(bank["action"]).any(1)
    n = held.sum()
    assert 5 < n < 32 and held[:n].all(), "padding comes last"
    assert np.isnan(bank["action"][n:]).all() and not bank["start"][n:].any() and not bank["end"][n:].any()
    tree, space = nx.Graph(), Space(house)
    for start, action, end in zip(bank["start"][:n], bank["action"][:n], bank["end"][:n], strict=True):
        assert env.action_space.contains(action)
        (one,), (other,) = taken[start.tobytes()], taken[end.tobytes()]
        (dx, dy, turn), heading = other - one, one[2]
        right, ahead = dx * math.cos(heading) - dy * math.sin(heading), dx * math.sin(heading) + dy * math.cos(heading)
        np.testing.assert_allclose(action[:2], [right, ahead], atol=1e-5)
        assert math.cos(action[2] - turn) == pytest.approx(1)
        assert space.passable(one[:2], other[:2])
        tree.add_edge(start.tobytes(), end.tobytes())
    assert nx.is_tree(tree) and len(tree) == n + 1
    assert {bool(pose[0] < 4) for (pose,) in map(taken.get, tree)} == {True, False}, "it shows both rooms"
    again = env.reset(seed=0, options={"house": house})[1]["memory_bank"]
    np.testing.assert_equal(again, bank)
    other = env.reset(options={"house": house})[1]["memory_bank"]
    assert (other["action"] != bank["action"]).any()


def test_who_gets_a_bank():
    assert [gym.spec(env_id).kwargs["memory_bank"] for env_id in IDS] == ["cover", "none"]
    assert "memory_bank" not in navigate()[2] and "memory_bank" not in explore()[2]
    env, _, info = explore(memory_bank="cover", house=ONE)
    assert set(info["memory_bank"]) == {"start", "action", "end"}
    assert "memory_bank" not in env.step(move())[-1]


# States and pictures


@every_task
@pytest.mark.parametrize("closed", ["before", "meanwhile"])
def test_state_keeps_everything(task, closed):
    house = TWO.with_door(0, True) if closed == "before" else TWO
    env, other = IndoorEnv(task), IndoorEnv(task)
    env.reset(seed=5, options={"house": house, "start": (2, 2, RIGHT)})
    env.step(move(ahead=1.0, turn=0.1))
    env.set_door(0, closed == "meanwhile")
    state = json.dumps(env.get_state())
    other.set_state(json.loads(state))
    assert json.dumps(other.get_state()) == state and other.house == env.house
    for action in (move(), move(turn=1), move(ahead=1.2), move(turn=-3), move(ahead=-1.0)):
        assert data_equivalence(other.step(action), env.step(action), exact=True)
    options = {"house": ONE}
    assert data_equivalence(other.reset(options=options), env.reset(options=options), exact=True)
    drawn = json.dumps(env.get_state())
    other.set_state(json.loads(drawn))
    assert json.dumps(other.get_state()) == drawn, "poses that were drawn too"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"goal": None}, "the task is 'navigate'"),
        ({"pose": [1.0, 3.0, 0.0]}, "pose .* is not free"),
        ({"goal": [1.0, 3.0, 0.0]}, "goal .* is not free"),
        ({"house": {"rooms": []}}, "not a house"),
    ],
)
def test_states_that_do_not_fit(change, message):
    env, *_ = navigate()
    before = env.get_state()
    with pytest.raises(ValueError, match=message):
        env.set_state({**before, "rng": np.random.default_rng(9).bit_generator.state, **change})
    assert env.get_state() == before


def test_what_is_handed_out_is_a_copy():
    env, obs, info = navigate(render_mode="rgb_array")
    for array in (*obs.values(), info["pose"], env.pose, env.goal, env.render()):
        array[:] = 0
    close(env.pose, [2, 2, 0])
    close(env.goal, [6, 2, 0])
    again = env.step(move())[0]
    assert again["image"].any() and again["goal"].any()


def test_render():
    env, obs, _ = navigate(render_mode="rgb_array")
    shown = env.render()
    assert shown.shape == (indoor.PIXELS, 2 * indoor.PIXELS, 3) and shown.dtype == np.uint8
    np.testing.assert_array_equal(shown[:, :224], obs["image"])
    # The plan is 10 m wide: a metre around the house, and as much again above and below.
    plan, scale = shown[:, 224:].astype(int), 22.4
    red = np.argwhere((plan[..., 0] > 90) & (plan[..., 1:].max(-1) < 40))
    green = np.argwhere((plan[..., 1] > 60) & (plan[..., 0] < 30) & (plan[..., 2] < 30))
    agent = red[np.abs(red - [5 * scale, 3 * scale]).max(1) < 0.5 * scale]
    assert agent.mean(0) == pytest.approx([5 * scale, 3 * scale], abs=3) and len(red) > len(agent), "and the box"
    assert green.mean(0) == pytest.approx([5 * scale, 7 * scale], abs=3)
    env.step(move(right=1.0))
    assert (env.render() != shown).any()
    assert navigate()[0].render() is None


def test_spec_survives_json():
    spec = gym.make("ESWM-Indoor-v0", render_mode="rgb_array", rooms=1, memory_bank="none").spec
    again = gym.envs.registration.EnvSpec.from_json(spec.to_json())
    assert again == spec
    env = again.make()
    env.reset(seed=0)
    assert env.render().shape == (224, 448, 3) and len(env.unwrapped.house.rooms) == 1


# Many houses


def test_one_after_the_other():
    envs = gym.make_vec("ESWM-Indoor-v0", num_envs=2, vectorization_mode="sync")
    singles = [gym.make("ESWM-Indoor-v0") for _ in range(2)]
    same_as_singles(envs, singles, {"house": TWO})


def test_in_processes_of_their_own():
    kwargs = {"context": "spawn"}  # this process has a camera by now
    envs = gym.make_vec("ESWM-IndoorExplore-v0", num_envs=2, vectorization_mode="async", vector_kwargs=kwargs)
    singles = [gym.make("ESWM-IndoorExplore-v0") for _ in range(2)]
    same_as_singles(envs, singles, {"house": TWO})


def same_as_singles(envs, singles, options) -> None:
    try:
        observations, infos = envs.reset(seed=5, options=options)
        expected = [env.reset(seed=5 + i, options=options) for i, env in enumerate(singles)]
        for key in observations:
            np.testing.assert_array_equal(observations[key], [obs[key] for obs, _ in expected])
        for key, value in expected[0][1].items():
            parts = value if isinstance(value, dict) else {None: value}
            for part in parts:
                found = infos[key] if part is None else infos[key][part]
                singly = [info[key] if part is None else info[key][part] for _, info in expected]
                np.testing.assert_array_equal(found, singly)
        for _ in range(3):
            actions = envs.action_space.sample()
            observations, rewards, terminations, _, infos = envs.step(actions)
            expected = [env.step(action) for env, action in zip(singles, actions, strict=True)]
            for key in observations:
                np.testing.assert_array_equal(observations[key], [step[0][key] for step in expected])
            np.testing.assert_allclose(rewards, [step[1] for step in expected])
            assert terminations.tolist() == [step[2] for step in expected]
            np.testing.assert_array_equal(infos["pose"], [step[4]["pose"] for step in expected])
    finally:
        envs.close()
