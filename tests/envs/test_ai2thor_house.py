"""AI2-THOR's houses, with a stand-in for Unity's player behind the real client of AI2-THOR and behind none."""

import copy
import json
import os
from contextlib import ExitStack
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from thor_player import Direct, World, real_client

from eswm_gym.envs.ai2thor_house import AI2ThorEnv

# A room from (1, 2) to (5, 8), where the agent, 0.2 m wide to each side, has 15 x 23 places on a grid through (2, 3).
FLOOR = [{"x": x, "y": 0, "z": z} for x, z in ((1, 2), (1, 8), (5, 8), (5, 2))]
BEGIN = {
    "position": {"x": 2, "y": 0.95, "z": 3},
    "rotation": {"x": 0, "y": 270, "z": 0},
    "horizon": 30,
    "standing": True,
}
HOUSE = {"rooms": [{"floorPolygon": FLOOR}], "metadata": {"agent": BEGIN}}
START, GOAL = (3.0, 5.0, 0.0), (4.0, 7.0, np.pi / 2)


@pytest.fixture(params=["direct", "client"])
def controller(request):
    """A function that makes a controller over a world."""
    if request.param == "client":
        pytest.importorskip("ai2thor.controller")
    with ExitStack() as stack:

        def make(world=None, scene=HOUSE):
            world = world or World()
            made = Direct(world, scene) if request.param == "direct" else stack.enter_context(real_client(world, scene))
            made.world = world
            return made

        yield make


def walking(controller, start=START, **kwargs):
    env = AI2ThorEnv(controller, **kwargs)
    options = {"start": start} | ({"goal": GOAL} if env.task == "navigate" else {})
    env.reset(seed=0, options=options)
    return env


def test_what_reset_asks_for(controller):
    controller = controller(scene="FloorPlan1")
    env = AI2ThorEnv(controller)
    controller.world.log.clear()
    obs, info = env.reset(seed=0, options={"house": HOUSE, "start": START, "goal": GOAL})
    log = [{k: v for k, v in action.items() if k != "sceneName"} for action in controller.world.log]
    assert [action["action"] for action in log] == [
        "Reset", "Initialize", "CreateHouse", "Teleport", "GetReachablePositions", "Teleport", "Teleport", "Teleport",
    ]  # fmt: skip
    settings = {"action": "Initialize", "fieldOfView": 90, "snapToGrid": False}
    assert settings.items() <= log[1].items()
    assert log[2]["house"] == HOUSE
    begin, start, goal, back = (log[i] for i in (3, 5, 6, 7))
    assert begin == {"action": "Teleport"} | BEGIN | {"horizon": 0}
    level = {"horizon": 0, "standing": True, "action": "Teleport"}
    flat = {"x": 0.0, "z": 0.0}
    height = pytest.approx(0.95)
    assert start == {"position": {"x": 3.0, "y": height, "z": 5.0}, "rotation": {"y": 0.0} | flat} | level
    assert goal == {"position": {"x": 4.0, "y": height, "z": 7.0}, "rotation": {"y": 90.0} | flat} | level
    assert back == start
    assert info["pose"].tolist() == [3.0, 5.0, 0.0] and info["pose"].dtype == np.float32
    assert (info["is_success"], info["blocked"]) == (False, False)
    assert set(obs) == {"image", "goal"} and set(info) == {"pose", "is_success", "blocked"}


# Start heading in degrees, action with the turn in degrees, and where it leads from (3, 5): x, z, degrees.
MOVES = [
    (0, (0.5, 1.0, 0), (3.5, 6.0, 0)),
    (0, (0.0, 0.0, 45), (3.0, 5.0, 45)),
    (90, (0.0, 1.0, 0), (4.0, 5.0, 90)),
    (90, (0.5, 0.0, -90), (3.0, 4.5, 0)),
    (180, (0.5, 1.5, 90), (2.5, 3.5, 270)),
    (-90, (-1.0, -0.5, 30), (3.5, 4.0, 300)),
    (30, (0.0, 1.0, 90), (3.5, 5 + 0.75**0.5, 120)),
    (30, (1.0, 0.0, -60), (3 + 0.75**0.5, 4.5, 330)),
]


@pytest.mark.parametrize(("heading", "action", "there"), MOVES)
def test_moves(controller, heading, action, there):
    controller = controller()
    env = walking(controller, (3, 5, np.deg2rad(heading)))
    *move, turn = action
    obs, reward, terminated, truncated, info = env.step(np.array([*move, np.deg2rad(turn)], np.float32))
    world = controller.world
    assert (world.x, world.z) == pytest.approx(there[:2], abs=1e-5)
    assert (world.degrees - there[2] + 180) % 360 - 180 == pytest.approx(0, abs=1e-4)
    assert world.y == pytest.approx(0.95)  # as high as it was
    x, y, heading = env.pose
    assert (x, y) == pytest.approx(there[:2], abs=1e-5) and -np.pi <= heading < np.pi
    assert np.exp(1j * heading) == pytest.approx(np.exp(1j * np.deg2rad(there[2])), abs=1e-5)
    np.testing.assert_array_equal(info["pose"], env.pose.astype(np.float32))
    assert (reward, terminated, truncated, info["blocked"]) == (-0.01, False, False, False)
    assert obs["image"][0, [0, 100, 223], 2].tolist() == [round(there[0] * 40), round(there[1] * 25), there[2] // 2]


def test_a_refused_pose_leaves_the_agent_where_it_is(controller):
    controller = controller()
    env = walking(controller, (4.5, 5, np.pi / 2))  # 0.3 m from where the agent fits no more
    before = env.step(np.zeros(3, np.float32))[0]
    for action in ((0, 0.5, 1), (0, 0.31, -1)):
        obs, reward, terminated, _, info = env.step(np.array(action, np.float32))
        assert info["blocked"] and (reward, terminated) == (-0.01, False)
        assert (controller.world.x, controller.world.z, controller.world.degrees) == (4.5, 5.0, 90.0)
        np.testing.assert_allclose(info["pose"], (4.5, 5, np.pi / 2), rtol=1e-6)
        np.testing.assert_array_equal(obs["image"], before["image"])
    assert not env.step(np.array((0, 0.29, 0), np.float32))[4]["blocked"]
    np.testing.assert_allclose(env.pose, (4.79, 5, np.pi / 2), atol=1e-6)


@pytest.mark.parametrize("channels", [3, 4])
def test_pictures_are_the_right_way_up(controller, channels):
    """The top row first, the left column first, red first; the goal's is taken at the goal."""
    env = AI2ThorEnv(controller(World(channels=channels)))
    obs, _ = env.reset(options={"start": START, "goal": GOAL})
    for picture in obs.values():
        assert picture.shape == (224, 224, 3) and picture.dtype == np.uint8
        assert picture[0, 223, :2].tolist() == [0, 223]
        assert picture[223, 0, :2].tolist() == [223, 0]
        assert picture[7, 100, :2].tolist() == [7, 100]
    assert obs["image"][50, [0, 100, 223], 2].tolist() == [120, 125, 0]
    assert obs["goal"][50, [0, 100, 223], 2].tolist() == [160, 175, 45]


def test_the_goal_is_reached_within_half_a_metre_and_30_degrees(controller):
    env = walking(controller())  # from (3, 5, 0) to (4, 7, 90 degrees)
    np.testing.assert_allclose(env.goal, GOAL)
    steps = [  # actions with the turn in degrees, and whether they reach it
        ((1, 1.45, 90), False),  # at (4, 6.45), 0.55 m short
        ((-0.1, 0, 31), False),  # at (4, 6.55), 0.45 m short, at 121 degrees
        ((0, 0, -2), True),  # at 119 degrees
    ]
    for (right, forward, turn), reached in steps:
        _, reward, terminated, _, info = env.step(np.array((right, forward, np.deg2rad(turn)), np.float32))
        assert (reward, terminated, info["is_success"]) == ((1.0 if reached else -0.01), reached, reached)


def test_explore_counts_the_positions_it_comes_near_to(controller):
    env = AI2ThorEnv(controller(), task="explore")
    obs, info = env.reset(seed=0, options={"start": (3.0, 5.0, 0.0)})
    assert set(obs) == {"image"} and env.goal is None
    # Points of a grid of 0.25 m within 1 m of one of them, column by column; there are 15 x 23 in all.
    assert info["coverage"] == pytest.approx((9 + 2 * (7 + 7 + 5 + 1)) / 345)
    # 1 m, or four points, on: those that are new are four in each of nine columns, but one where a column has but one.
    obs, reward, terminated, truncated, info = env.step(np.array((0, 1, 0), np.float32))
    assert reward == pytest.approx((7 * 4 + 2) / 345)
    assert info["coverage"] == pytest.approx((49 + 30) / 345)
    assert not (terminated or truncated or info["is_success"])
    assert env.step(np.array((0, -1, 0), np.float32))[1] == 0.0  # nothing new


def test_explore_ends_at_95_percent(controller):
    small = copy.deepcopy(HOUSE)
    for point in small["rooms"][0][
        "floorPolygon"
    ]:  # from (1.75, 2.75) to (5, 3.25): 12 places in a row, from 2 to 4.75
        point |= {"x": 1.75 if point["x"] == 1 else 5, "z": 2.75 if point["z"] == 2 else 3.25}
    env = AI2ThorEnv(controller(), task="explore", houses=[small])
    _, info = env.reset(options={"start": (2.0, 3.0, np.pi / 2)})
    assert info["coverage"] == pytest.approx(5 / 12)
    _, reward, terminated, _, info = env.step(np.array((0, 1, 0), np.float32))
    assert (reward, terminated) == (pytest.approx(4 / 12), False)
    _, reward, terminated, _, info = env.step(np.array((0, 1, 0), np.float32))  # from 3 to 4.75, which is all
    assert (reward, terminated, info["is_success"], info["coverage"]) == (pytest.approx(3 / 12), True, True, 1.0)


def test_a_scene_by_its_name(controller):
    controller = controller()
    env = AI2ThorEnv(controller)
    env.reset(seed=0)
    assert controller.world.high == [5, 8]  # the controller's own
    env.reset(seed=0, options={"house": "FloorPlan1"})
    assert controller.world.high == [2, 2] and (np.abs(env.pose[:2]) <= 1.75).all()
    env.reset(seed=1)  # it stays
    assert controller.world.high == [2, 2]


def test_draws(controller):
    """Starts and goals are places of the grid, headings anything, the goal is not reached at the start."""
    env = AI2ThorEnv(controller())
    for seed in range(20):
        _, info = env.reset(seed=seed)
        for x, y, heading in (env.pose, env.goal):
            assert x * 4 == round(x * 4) and y * 4 == round(y * 4)
            assert 1.25 <= x <= 4.75 and 2.25 <= y <= 7.75 and -np.pi <= heading < np.pi
        assert not info["is_success"]
    poses = [env.pose, env.goal]
    env.reset(seed=19)
    np.testing.assert_array_equal(poses, [env.pose, env.goal])


def test_reachable_positions_that_are_none_are_not_drawn(controller):
    """AI2-THOR calls some positions reachable where the agent does not fit."""
    fit = {(2.0, 3.0), (4.0, 7.0)}
    unfit = {(x / 4, z / 4) for x in range(5, 20) for z in range(9, 32)} - fit
    env = AI2ThorEnv(controller(World(unfit=unfit)))
    env.reset(seed=0)
    assert {tuple(pose[:2].tolist()) for pose in (env.pose, env.goal)} <= fit


def test_houses_are_drawn(controller):
    other = copy.deepcopy(HOUSE)
    other["rooms"][0]["floorPolygon"][2]["x"] = 6
    controller = controller()
    env = AI2ThorEnv(controller, houses=[HOUSE, other])
    shown = []
    for seed in range(10):
        env.reset(seed=seed)
        shown.append(controller.world.high[0])
    assert set(shown) == {5, 6}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"house": {"metadata": {}}}, "refuses the house: a house without rooms"),
        ({"house": {"rooms": HOUSE["rooms"]}}, r"refuses the search for reachable positions: \(0.0, 0.0\) is"),
        ({"house": HOUSE | {"metadata": {"agent": BEGIN | {"position": {"x": 9, "y": 1, "z": 9}}}}},
         r"refuses where the agent begins in the house: \(9.0, 9.0\) collides"),
        ({"start": (0, 0, 0)}, r"start \[0.0, 0.0, 0.0\] cannot be taken: \(0.0, 0.0\) collides"),
        ({"start": START, "goal": (3, 9, 0)}, r"goal \[3.0, 9.0, 0.0\] cannot be taken: \(3.0, 9.0\) collides"),
        ({"start": START, "goal": (3.1, 5.1, 0.1)}, "it is reached at the start"),
        ({"start": (1, 2)}, r"start must be \(x, y, heading\)"),
        ({"start": (3, 5, np.nan)}, r"start must be \(x, y, heading\)"),
        ({"pose": START}, r"the reset options .* got \['pose'\]"),
    ],
)  # fmt: skip
def test_reset_errors(controller, options, message):
    env = AI2ThorEnv(controller())
    with pytest.raises(ValueError, match=message):
        env.reset(seed=0, options=options)
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(3, np.float32))
    env.reset(seed=0, options={"house": HOUSE})  # and it can go on


def test_pictures_of_another_size_are_refused(controller):
    """The stand-in's cannot be changed."""
    with pytest.raises(ValueError, match=r"\(224, 224, 3\), got \(64, 64, 3\)"):
        AI2ThorEnv(controller(World(size=64))).reset(seed=0)


def test_a_controller_that_is_passed_is_not_stopped(controller):
    controller = controller()
    env = walking(controller)
    env.close()
    assert controller.step("Teleport", **BEGIN)


@pytest.mark.filterwarnings("ignore:.*we recommend using a symmetric and normalized space")
@pytest.mark.parametrize("task", ["navigate", "explore"])
def test_gymnasium_accepts_it(controller, task):
    env = AI2ThorEnv(controller(), task=task, render_mode="rgb_array")
    check_env(env, skip_render_check=True, skip_close_check=True)


def test_explore_takes_no_goal():
    with pytest.raises(ValueError, match="got .'goal'."):
        AI2ThorEnv(Direct(World(), HOUSE), task="explore").reset(options={"goal": GOAL})


def test_before_the_first_reset():
    env = AI2ThorEnv(Direct(World(), HOUSE), render_mode="rgb_array")
    for call in (lambda: env.step(np.zeros(3, np.float32)), lambda: env.pose, lambda: env.goal, env.render):
        with pytest.raises(ResetNeeded):
            call()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [({"task": "walk"}, "task .* 'walk'"), ({"render_mode": "human"}, "render_mode .* 'human'")],
)
def test_constructor_errors(kwargs, message):
    with pytest.raises(ValueError, match=message):
        AI2ThorEnv(Direct(World(), HOUSE), **kwargs)


@pytest.mark.parametrize("action", [(0, 1.6, 0), (0, 0, 4), (0, 0), (0, np.nan, 0)])
def test_actions_out_of_bounds(action):
    env = walking(Direct(World(), HOUSE))
    with pytest.raises(ValueError, match="action must be in"):
        env.step(np.array(action, np.float32))
    assert env.pose.tolist() == list(START)


def test_a_function_makes_the_controller_once_and_close_stops_it():
    made = []

    def make():
        made.append(Direct(World(), HOUSE))
        return made[-1]

    env = AI2ThorEnv(make)
    assert made == []
    env.reset(seed=0)
    env.reset(seed=1)
    assert len(made) == 1 and not made[0].stopped
    env.close()
    env.close()
    assert made[0].stopped
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(3, np.float32))
    env.reset(seed=0)
    assert len(made) == 2


def test_no_reachable_position_at_all():
    class Nowhere(World):
        def do_GetReachablePositions(self, action):
            return []

    with pytest.raises(ValueError, match="no reachable position"):
        AI2ThorEnv(Direct(Nowhere(), HOUSE)).reset(seed=0)


def test_what_is_returned_is_a_copy():
    env = walking(Direct(World(), HOUSE), render_mode="rgb_array")
    obs, *_, info = env.step(np.zeros(3, np.float32))
    for array in (*obs.values(), info["pose"], env.pose, env.goal, env.render()):
        array[...] = 7
    again, *_ = env.step(np.zeros(3, np.float32))
    assert again["image"][3, 4, :2].tolist() == again["goal"][3, 4, :2].tolist() == [3, 4]
    assert env.pose.tolist() == list(START) and env.goal.tolist() == pytest.approx(list(GOAL))


def test_render():
    assert walking(Direct(World(), HOUSE)).render() is None
    env = walking(Direct(World(), HOUSE), render_mode="rgb_array")
    np.testing.assert_array_equal(env.render(), env.step(np.zeros(3, np.float32))[0]["image"])


def test_a_time_limit():
    env = gym.wrappers.TimeLimit(AI2ThorEnv(Direct(World(), HOUSE)), 3)
    env.reset(seed=0, options={"start": START, "goal": GOAL})
    assert [env.step(np.zeros(3, np.float32))[3] for _ in range(3)] == [False, False, True]


@pytest.mark.slow
@pytest.mark.skipif("ESWM_UNITY" not in os.environ, reason="ESWM_UNITY is no scene's name and no file of a house")
def test_with_unity():
    """Run by hand where Unity is: ESWM_UNITY=FloorPlan212, or a file with a house in ProcTHOR's format."""
    name = os.environ["ESWM_UNITY"]
    house = json.loads(Path(name).read_text()) if name.endswith(".json") else name
    controller = pytest.importorskip("ai2thor.controller").Controller()
    env = AI2ThorEnv(controller)
    try:
        obs, info = env.reset(seed=0, options={"house": house})
        assert obs["image"].std() > 5 and obs["goal"].std() > 5  # something is in them

        # Right, ahead and clockwise are what they are to AI2-THOR's own moves; from other places, if need be.
        own = {"MoveRight": (0.2, 0, 0), "MoveAhead": (0, 0.2, 0), "RotateRight": (0, 0, np.pi / 4)}
        for move, action in own.items():
            for seed in range(20):
                _, info = env.reset(seed=seed, options={"house": house})
                amount = {"degrees": 45} if move == "RotateRight" else {"moveMagnitude": 0.2}
                event = controller.step(move, **amount)
                agent = event.metadata["agent"]
                expected = agent["position"]["x"], agent["position"]["z"], agent["rotation"]["y"]
                env.reset(seed=seed, options={"house": house})
                *_, info = env.step(np.array(action, np.float32))
                if event and not info["blocked"]:
                    break
            else:
                raise AssertionError(f"{move} is blocked everywhere")
            np.testing.assert_allclose(info["pose"][:2], expected[:2], atol=0.02)
            assert np.exp(1j * info["pose"][2]) == pytest.approx(np.exp(1j * np.deg2rad(expected[2])), abs=0.01)

        # A whole turn ends at the same picture, and a quarter of it does not.
        obs, _ = env.reset(seed=0, options={"house": house})
        pictures = [env.step(np.array((0, 0, np.pi / 2), np.float32))[0]["image"] for _ in range(4)]
        differences = [np.abs(p.astype(int) - obs["image"]).mean() for p in pictures]
        assert differences[3] < min(differences[:3]) / 2

        # The picture of the goal is what is seen there.
        goal = env.goal
        obs, _ = env.reset(seed=0, options={"house": house})
        shown = env.reset(seed=0, options={"house": house, "start": goal})[0]["image"]
        assert np.abs(shown.astype(int) - obs["goal"]).mean() < differences[0] / 2

        # Whoever walks on and on comes to a wall, and then stays where he is.
        infos = [env.step(np.array((0, 1.5, 0), np.float32))[4] for _ in range(40)]
        assert infos[-1]["blocked"]
        np.testing.assert_allclose(infos[-1]["pose"], infos[-2]["pose"], atol=1e-3)
    finally:
        controller.stop()
