"""Pictures: what is drawn where, without a display."""

import gymnasium as gym
import numpy as np
import pytest

from eswm_gym.envs import RandomWallEnv
from eswm_gym.rooms import Room

ROOM = Room(2, range(19), [8, 9, 10])


def env_with(mode, task="navigate", start=4, goal=13):
    env = RandomWallEnv(radius=2, task=task, render_mode=mode)
    env.reset(options={"room": ROOM, "start": start, **({"goal": goal} if task == "navigate" else {})})
    return env


def test_text_of_navigation():
    assert env_with("ansi").render().splitlines() == [
        "        0     1     2",
        "     3   ( 4)    5     6",
        "  7   # 8#  # 9#  #10#   11",
        "    12   [13]   14    15",
        "       16    17    18",
        "(agent)  [goal]  <agent at goal>  #wall#",
    ]


def test_text_at_the_goal():
    env = env_with("ansi", start=12)
    env.step(0)
    assert "<13>" in env.render()


def test_text_of_exploration():
    env = env_with("ansi", task="explore")
    env.step(3)
    assert env.render().splitlines()[1:3] == [
        "   ( 3)  . 4.    5     6",
        "  7   # 8#  # 9#  #10#   11",
    ]


def test_pixels():
    env = env_with("rgb_array")
    frame = env.render()
    assert frame.dtype == np.uint8 and frame.shape == (368, 352, 3)
    blue, orange, dark, light = [0, 114, 178], [230, 159, 0], [64, 64, 64], [243, 243, 243]
    unit, row = 64, 64 * np.sqrt(3) / 2  # pixels from one location to the next, and from row to row
    x0, y0 = 16 + 2.5 * unit, 16 + unit / np.sqrt(3) + 2 * row  # the centre of the room

    def color(location):
        q, r = ROOM.lattice.axial[location]
        return frame[round(y0 + r * row) - 18, round(x0 + (q + r / 2) * unit)].tolist()  # above the number

    assert color(4) == blue
    assert color(13) == orange
    assert [color(wall) for wall in (8, 9, 10)] == [dark] * 3
    assert color(5) == color(0) == light
    env.step(0)
    assert not np.array_equal(env.render(), frame)


def test_visited_locations_are_shaded():
    env = env_with("rgb_array", task="explore")
    before = env.render()
    env.step(0)
    env.step(0)
    changed = (env.render() != before).any(2)
    assert changed.sum() > 3 * 40 * 40 / 2  # three cells look different


def test_frames_do_not_share_memory():
    env = env_with("rgb_array")
    first = env.render()
    first[:] = 0
    assert env.render().any()


def test_human_renders_by_itself_and_closes():
    pygame = pytest.importorskip("pygame")
    env = env_with("human")
    window = env._renderer.screen.window
    assert window.size == pygame.Vector2(env_with("rgb_array").render().shape[1::-1])
    env.step(0)
    assert env.render() is None and env._renderer.screen.window is window
    env.close()
    env.close()


def test_windows_close_one_by_one():
    pytest.importorskip("pygame")
    first, second = env_with("human"), env_with("human")
    grid = gym.make("ESWM-MiniGrid-v0", render_mode="human")
    grid.reset(seed=0)
    first.close()
    second.step(0)
    grid.close()
    second.step(1)
    second.close()


def test_no_render_mode_warns():
    with pytest.warns(UserWarning, match="render_mode"):
        assert env_with(None).render() is None


@pytest.mark.parametrize("mode", ["rgb_array", "ansi"])
def test_wrapped(mode):
    env = gym.make("ESWM-OpenArena-v0", render_mode=mode)
    env.reset(seed=0)
    assert len(env.render()) > 0
