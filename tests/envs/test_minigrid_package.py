"""MiniGrid rooms as environments of Gymnasium and of the minigrid package: limits, copies, windows, wrappers."""

import copy
import json
import pickle
import sys
from types import SimpleNamespace

import gymnasium as gym
import minigrid.wrappers
import numpy as np
import pygame
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import data_equivalence
from minigrid.manual_control import ManualControl
from minigrid.minigrid_env import MiniGridEnv

from eswm_gym.envs import MiniGridRoomEnv

pytestmark = pytest.mark.filterwarnings("ignore:The system font")  # MiniGrid asks pygame for it

IDS = ("ESWM-MiniGrid-v0", "ESWM-MiniGridExplore-v0")
every_id = pytest.mark.parametrize("env_id", IDS)
every_task = pytest.mark.parametrize("task", ["navigate", "explore"])

LEFT, RIGHT, FORWARD = 0, 1, 2
TO_RIGHT, DOWN, TO_LEFT, UP = range(4)
FLOOR = np.random.default_rng(0).integers(2, 9, (7, 7))  # all kinds of it, so that no two poses have the same view
ROOM = np.pad(FLOOR, 1, constant_values=1)


def navigate(**kwargs):
    env = MiniGridRoomEnv(**kwargs)
    env.reset(seed=0, options={"grid": ROOM, "start": (1, 1, TO_RIGHT), "goal": (3, 2, DOWN)})
    return env


def explore(**kwargs):
    env = MiniGridRoomEnv(task="explore", **kwargs)
    env.reset(seed=0, options={"grid": ROOM})
    return env


def test_before_the_first_reset():
    env = MiniGridRoomEnv(render_mode="rgb_array")
    for call in (
        lambda: env.step(0),
        lambda: env.add_walls([(1, 1)]),
        lambda: env.remove_walls([(1, 1)]),
        lambda: env.pose,
        lambda: env.grid_classes,
        env.render,
        env.get_state,
        env.action_masks,
    ):
        with pytest.raises(ResetNeeded):
            call()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"task": "walk"}, "task .* 'walk'"),
        ({"memory_bank": "spanning"}, "memory_bank .* 'spanning'"),
        ({"render_mode": "svg"}, "render_mode .* 'svg'"),
    ],
)
def test_constructor_errors(kwargs, message):
    with pytest.raises(ValueError, match=message):
        MiniGridRoomEnv(**kwargs)


@every_id
@pytest.mark.parametrize("limit", [None, 7])
def test_time_limit(env_id, limit):
    env = gym.make(env_id) if limit is None else gym.make(env_id, max_episode_steps=limit)
    env.reset(seed=0, options={"grid": ROOM, "start": (1, 1, UP)})
    ends = [env.step(FORWARD)[2:4] for _ in range(limit or 60)]
    assert ends == [(False, False)] * (len(ends) - 1) + [(False, True)]
    assert env.spec.max_episode_steps == (limit or 60)
    assert env.unwrapped.max_steps == sys.maxsize  # one counter is enough


@every_id
def test_no_time_limit(env_id):
    env = gym.make(env_id, max_episode_steps=-1)
    env.reset(seed=0, options={"grid": ROOM, "start": (1, 1, UP)})
    assert not any(env.step(FORWARD)[3] for _ in range(300))


@every_id
def test_spec_survives_json(env_id):
    spec = gym.make(env_id, render_mode="rgb_array", tile_size=8, max_steps=12).spec
    again = gym.envs.registration.EnvSpec.from_json(spec.to_json())
    assert again == spec
    env = again.make()
    env.reset(seed=0)
    assert env.render()[:72].shape == (72, 72, 3)
    assert env.unwrapped.max_steps == 12


@every_task
def test_state_keeps_everything(task):
    env = MiniGridRoomEnv(task=task, max_steps=20)
    env.reset(seed=0)
    x, y = next((x, y) for y, x in np.argwhere(env.grid_classes[1:-1, 1:-1] == 1).tolist())
    env.remove_walls([(x + 1, y + 1)])
    for action in (LEFT, FORWARD, LEFT):
        env.step(action)
    state = json.loads(json.dumps(env.get_state()))
    twins = [MiniGridRoomEnv(task=task, max_steps=20), copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    twins[0].set_state(state)
    walk = np.random.default_rng(0).integers(3, size=17).tolist()
    future = [env.step(action) for action in walk] + [env.reset()]
    for twin in twins:
        assert data_equivalence([twin.step(action) for action in walk] + [twin.reset()], future, exact=True)
    assert future[-2][3] or any(step[2] for step in future[:-1])


def test_copies_do_not_share_the_room():
    env = navigate()
    other = copy.deepcopy(env)
    other.add_walls([(2, 1)])
    np.testing.assert_array_equal(env.grid_classes, ROOM)


def test_rendering():
    env = navigate(render_mode="rgb_array", tile_size=16, highlight=False)
    image = env.render()
    assert image.shape[1:] == (144, 3) and image.dtype == np.uint8
    assert image.shape[0] > 144 and (image[144:] == 255).mean() > 0.5  # a legend
    white = np.argwhere((image[:144] == 255).all(-1))
    assert set(map(tuple, white // 16)) == {(2, 3)}  # the goal, row by column
    np.testing.assert_array_equal(MiniGridEnv.get_full_render(env, False, 16)[:32], image[:32])
    # It opens downwards: its upper rows are the wide ones.
    rows = [(white[:, 0] == row).sum() for row in np.unique(white[:, 0])]
    assert rows[0] > rows[-1]
    pov = navigate(render_mode="rgb_array", tile_size=16, agent_pov=True).render()
    assert pov.shape == (80, 80, 3)
    np.testing.assert_array_equal(env.grid_classes, ROOM)
    assert not (explore(render_mode="rgb_array", tile_size=16).render()[:144] == 255).all(-1).any()


def test_text():
    env = navigate(render_mode="ansi")
    lines = env.render().splitlines()
    assert lines[0] == "#  " * 8 + "#"
    letters = dict(enumerate(" #.rgbpye"))
    for y, row in enumerate(env.grid_classes.tolist()):
        assert [lines[y].ljust(27)[3 * x] for x in range(9)] == [letters[kind] for kind in row]
    (x, y, heading), (gx, gy, goal_heading) = env.pose, env.goal
    assert lines[y].ljust(27)[3 * x + 1 : 3 * x + 3] == ">v<^"[heading] + "@"
    assert lines[gy].ljust(27)[3 * gx + 1 : 3 * gx + 3] == ">v<^"[goal_heading] + "!"
    assert "@ agent" in lines[9] and "goal" not in explore(render_mode="ansi").render()


def shown(env) -> np.ndarray:
    """The pixels of the window."""
    return pygame.surfarray.array3d(env._screen.window.get_surface()).transpose(1, 0, 2)


@every_id
def test_window(env_id):
    env = gym.make(env_id, render_mode="human").unwrapped
    env.metadata = {**env.metadata, "render_fps": 1000}
    env.reset(seed=0)
    first = shown(env).copy()
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 5  # a room, not a blank
    env.step(LEFT)
    assert (shown(env) != first).any()  # the agent has turned
    twin = copy.deepcopy(env)
    assert twin._screen.window is None
    twin.step(LEFT)
    assert twin._screen.window is not None and env.pose == (*twin.pose[:2], (twin.pose[2] + 1) % 4)
    env.close()
    assert env._screen.window is None
    env.reset()  # opens another one
    assert env._screen.window is not None
    env.close()
    env.close()
    assert env._screen.window is None


@every_id
def test_manual_control(env_id, capsys):
    env = gym.make(env_id, render_mode="human")
    env.unwrapped.metadata = {**env.unwrapped.metadata, "render_fps": 1000}
    control = ManualControl(env, seed=0)
    control.reset(0)
    x, y, heading = env.unwrapped.pose

    def press(key):
        control.key_handler(SimpleNamespace(key=key))
        return env.unwrapped.pose

    assert press("left") == (x, y, (heading - 1) % 4)
    assert press("right") == (x, y, heading)
    for key in ("space", "pageup", "pagedown", "tab", "left shift", "enter", "q"):
        assert press(key) == (x, y, heading)
    assert any(press("up")[:2] != (x, y) or press("right") for _ in range(4))
    for _ in range(60):
        press("right")  # past the time limit, which starts an episode anew
    press("backspace")
    assert env.unwrapped.step_count == 0
    press("escape")
    assert "truncated!" in capsys.readouterr().out


WRAPPERS = {
    "ImgObsWrapper": {},
    "FullyObsWrapper": {},
    "OneHotPartialObsWrapper": {},
    "RGBImgObsWrapper": {},
    "RGBImgPartialObsWrapper": {},
    "SymbolicObsWrapper": {},
    "ViewSizeWrapper": {"agent_view_size": 7},
    "PositionBonus": {},
    "ActionBonus": {},
    "ReseedWrapper": {"seeds": [3, 4]},
    "StochasticActionWrapper": {"prob": 0.5},
    "NoDeath": {"no_death_types": ("lava",)},
}


@every_id
@pytest.mark.parametrize("name", WRAPPERS)
def test_minigrids_wrappers(env_id, name):
    env = getattr(minigrid.wrappers, name)(gym.make(env_id), **WRAPPERS[name])
    obs, _ = env.reset()
    for action in [LEFT, FORWARD, RIGHT, FORWARD] * 5:
        assert obs in env.observation_space
        assert env.observation_space != env.unwrapped.observation_space or "Obs" not in name
        obs, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            obs, _ = env.reset()


@every_id
@pytest.mark.parametrize(
    ("name", "error"),
    [("FlatObsWrapper", KeyError), ("DictObservationSpaceWrapper", KeyError), ("DirectionObsWrapper", ValueError)],
)
def test_wrappers_that_do_not_apply(env_id, name, error):
    with pytest.raises(error, match="mission|Goal"):
        getattr(minigrid.wrappers, name)(gym.make(env_id)).reset()


@every_id
def test_stable_baselines_runs(env_id):
    ppo = pytest.importorskip("stable_baselines3").PPO
    model = ppo("MultiInputPolicy", gym.make(env_id), n_steps=32, batch_size=32, n_epochs=1, seed=0)
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    model.learn(64)
    assert model.num_timesteps == 64
    assert any((value != before[name]).any() for name, value in model.policy.state_dict().items())
