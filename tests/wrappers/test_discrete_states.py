"""Environments that somebody else wrote: their states numbered, their actions named."""

import copy
import pickle
import warnings

import gymnasium as gym
import minigrid  # noqa: F401  registers its environments
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TransformAction

from eswm_gym.rooms import CODES, MOVES
from eswm_gym.wrappers import AbsoluteMoves, DiscreteStates, Poses

LEFT, DOWN, RIGHT, UP = range(4)  # FrozenLake's order, and a square lattice's
NUMBERS = [MOVES.index(name) for name in ("left", "down", "right", "up")]
SOUTH_NORTH_EAST_WEST = ("down", "up", "right", "left")  # Taxi's order


def lake(**options):
    """S F F F / F H F H / F F F H / H F F G, numbered row by row."""
    return DiscreteStates(gym.make("FrozenLake-v1", is_slippery=False), **({"lattice": "square"} | options))


def cliff(**options):
    return DiscreteStates(
        gym.make("CliffWalking-v1"), lattice="square", actions=("up", "right", "down", "left"), **options
    )


def row_and_column(state, env):
    return tuple(env.decode(state))[:2]


def taxi_moves():
    env = TransformAction(gym.make("Taxi-v4"), lambda action: action, spaces.Discrete(4))
    return DiscreteStates(env, row_and_column, "square", SOUTH_NORTH_EAST_WEST)


def taxi():
    return DiscreteStates(gym.make("Taxi-v4"))


def cells(name="Empty-5x5", **options):
    return AbsoluteMoves(gym.make(f"MiniGrid-{name}-v0", **options))


def poses(name="Empty-5x5", **options):
    return Poses(gym.make(f"MiniGrid-{name}-v0", **options))


class Shows(gym.Env):
    """Shows the given observations one after another; a step pays what the action says."""

    def __init__(self, *shown, n_actions=3, start=0):
        self.shown, self.at = shown, 0
        self.action_space = spaces.Discrete(n_actions, start=start)
        self.observation_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.shown[0], {}

    def step(self, action):
        self.at += 1
        return self.shown[self.at], float(action) - 1, False, False, {}


def numbers_of(*shown, **options):
    env = DiscreteStates(Shows(*shown), **options)
    return [int(env.reset()[0]["state"])] + [int(env.step(1)[0]["state"]) for _ in shown[1:]]


@pytest.mark.parametrize(
    "make",
    [
        lake,
        lambda: lake(goal=15),
        lambda: lake(lattice=None),
        lambda: cliff(goal=47),
        taxi_moves,
        taxi,
        cells,
        poses,
        lambda: DiscreteStates(cells(), lattice="square"),
        lambda: DiscreteStates(poses(), lattice="pose"),
    ],
)
def test_checkers(make):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(make(), skip_render_check=True)
    expected = "is different from the unwrapped version"  # that there is a wrapper
    assert [text for warning in caught if expected not in (text := str(warning.message))] == []


def test_states_are_numbered_as_they_are_first_seen_and_keep_their_numbers():
    env = lake()
    obs, _ = env.reset(seed=0)
    way = [int(obs["state"])] + [int(env.step(action)[0]["state"]) for action in (RIGHT, RIGHT, LEFT, UP, DOWN)]
    assert way == [0, 1, 2, 1, 1, 3]  # cells 0, 1, 2, 1, 1 and 5, a hole
    obs, _ = env.reset(seed=1)
    way = [int(obs["state"])] + [int(env.step(action)[0]["state"]) for action in (DOWN, RIGHT)]
    assert way == [0, 4, 3]
    assert [env.number(cell) for cell in (0, 1, 2, 5, 4, 14)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (3, np.int32(3), 4),
        (np.array([1, 2]), np.array([1, 2]), np.array([2, 1])),
        (np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros((90, 90, 3), np.uint8), np.zeros((90, 90, 3), np.uint8), np.ones((90, 90, 3), np.uint8)),
        ({"a": np.array([1]), "b": "text"}, {"b": "text", "a": np.array([1])}, {"a": np.array([2]), "b": "text"}),
        ((1, np.array([2.5])), (1, np.array([2.5])), (1, np.array([2.0]))),
        ([1, [2, 3]], [1, [2, 3]], [1, 2, 3]),
        (np.float64(0.5), 0.5, np.float32(0.25)),
        ("left", "left", "right"),
        (True, np.bool_(True), False),
        (frozenset([1]), frozenset([1]), frozenset()),
    ],
    ids=str,
)
def test_what_is_equal_is_one_state(one, same, other):
    assert numbers_of(one, other, same, one) == [0, 1, 0, 0]


@pytest.mark.parametrize("shown", [{1, 2}, (1, {2}), {"a": {1}}, [bytearray(b"x")]], ids=str)
def test_what_cannot_be_compared_is_refused(shown):
    with pytest.raises(TypeError, match="unhashable"):
        DiscreteStates(Shows(shown)).reset()


def test_an_array_that_changes_in_place_is_another_state_afterwards():
    shown = np.zeros(3)
    env = DiscreteStates(Shows(shown, shown, shown))
    assert env.reset()[0]["state"] == 0
    shown[1] = 1
    assert env.step(1)[0]["state"] == 1
    shown[1] = 0
    assert env.step(1)[0]["state"] == 0


def test_a_key_says_what_counts():
    env = taxi_moves()
    env.reset(seed=0)
    assert env.action_space.n == 4
    at = row_and_column(env.unwrapped.s, env.unwrapped)
    state = int(env.reset(seed=0)[0]["state"])
    for seed in range(30):  # wherever the passenger is
        obs, _ = env.reset(seed=seed)
        assert (row_and_column(env.unwrapped.s, env.unwrapped) == at) == (obs["state"] == state)
    assert env.number((0, 0)) < 25


def test_the_goal_is_where_a_step_last_paid():
    env = DiscreteStates(Shows("a", "b", "c", "a", "b"))
    obs, info = env.reset()
    assert obs["goal"] == -1 and env.goal is None
    assert info == {"is_success": False, "terminated": False}
    found = [env.step(action) for action in (1, 2, 0, 2)]  # 0, 1, -1 and 1 are paid
    assert [int(obs["goal"]) for obs, *_ in found] == [-1, 2, 2, 1]
    assert [info["is_success"] for *_, info in found] == [False, True, False, True]
    assert env.reset()[0]["goal"] == env.goal == 1  # the next episode knows it


def test_a_goal_that_was_given_is_the_goal_whatever_pays():
    env = DiscreteStates(Shows("a", "b", "c"), goal="c")
    assert env.reset()[0] == {"state": 1, "goal": 0, "actions": pytest.approx(CODES[:3])}
    found = [env.step(action) for action in (2, 1)]
    assert [int(obs["goal"]) for obs, *_ in found] == [0, 0]
    assert [info["is_success"] for *_, info in found] == [True, True]  # paid; there


@pytest.mark.parametrize(
    ("goal", "shown"),
    [((2, 3), np.array([2, 3])), ([2, 3], np.array([2, 3], np.uint8)), (np.array([2, 3]), np.array([2.0, 3.0])),
     (5, np.array(5)), ((2, 3), (np.int64(2), np.int64(3)))],
    ids=str,
)  # fmt: skip
def test_a_goal_may_be_written_as_its_numbers(goal, shown):
    env = DiscreteStates(Shows("start", shown), goal=goal)
    env.reset()
    obs, *_, info = env.step(1)
    assert obs["state"] == obs["goal"] == 0 and info["is_success"]


def test_the_goal_of_a_cell():
    env = DiscreteStates(cells(), lattice="square", goal=(1, 2))
    env.reset(seed=0)
    assert env.step(DOWN)[4]["is_success"]


def test_success_and_failure_in_the_lake():
    env = lake()
    for way, reward, success in (((DOWN, RIGHT), 0, False), ((DOWN, DOWN, RIGHT, DOWN, RIGHT, RIGHT), 1, True)):
        env.reset(seed=0)
        for action in way:
            obs, paid, terminated, truncated, info = env.step(action)
            assert info["terminated"] == terminated and not truncated
        assert (paid, terminated, info["is_success"]) == (reward, True, success)
    assert obs["goal"] == obs["state"] == env.number(15)


def test_an_environments_own_word_on_success_counts_first_but_not_on_the_end():
    class Says(gym.Wrapper):
        def step(self, action):
            obs, _, terminated, truncated, info = self.env.step(action)
            return obs, 0.0, terminated, truncated, {"is_success": True, "terminated": True, "other": 3}

    env = DiscreteStates(Says(gym.make("FrozenLake-v1", is_slippery=False)), lattice="square")
    env.reset(seed=0)
    assert env.step(UP)[4] == {"is_success": True, "terminated": False, "other": 3}


def test_names_of_actions():
    assert lake().reset()[0]["actions"].tolist() == NUMBERS
    up, right, down, left = (MOVES.index(name) for name in ("up", "right", "down", "left"))
    assert cliff().actions.tolist() == [up, right, down, left]
    assert taxi_moves().actions.tolist() == [down, up, right, left]
    turns = [MOVES.index(name) for name in ("turn left", "turn right", "forward")]
    assert DiscreteStates(poses(), lattice="pose").actions.tolist() == turns
    hexagonal = DiscreteStates(Shows(0, n_actions=6), lattice="hexagon")
    assert hexagonal.actions.tolist() == list(range(6))
    assert DiscreteStates(Shows(0, n_actions=2), lattice="hexagon", actions=("NW", "E")).actions.tolist() == [2, 0]


def test_codes_for_what_is_not_known():
    assert taxi().actions.tolist() == CODES[:6].tolist()
    obs, _ = taxi().reset(seed=0)
    assert obs["actions"].dtype == np.int64
    assert DiscreteStates(Shows(0, n_actions=8)).actions.tolist() == CODES.tolist()
    with pytest.raises(ValueError, match="codes for 8 unknown actions, the environment has 9"):
        DiscreteStates(Shows(0, n_actions=9))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lattice": "cube"}, "cube"),
        ({"actions": ("left", "right", "up")}, "names of actions need a lattice, one of hexagon, square"),
        ({"lattice": "square"}, r"3 actions, which need 3 different names, got \('left', 'down', 'right', 'up'\)"),
        ({"lattice": "square", "actions": ("left", "right")}, "3 actions, which need 3 different names, got"),
        ({"lattice": "square", "actions": ("left", "right", "left")}, "3 different names, got"),
        ({"lattice": "square", "actions": ("left", "right", "jump")}, "no move is called 'jump'"),
        ({"lattice": "square", "actions": ("left", "right", "forward")}, "'forward' is no move of a square lattice"),
        (
            {"lattice": "pose", "actions": ("turn left", "up", "forward")},
            "'up' is no move of a pose lattice, which has",
        ),
    ],
    ids=str,
)
def test_wrong_names_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        DiscreteStates(Shows(0), **options)


@pytest.mark.parametrize("space", [spaces.Box(0, 1, (2,)), spaces.MultiDiscrete([2, 2]), spaces.Discrete(3, start=1)])
def test_actions_are_numbers_from_0(space):
    env = Shows(0)
    env.action_space = space
    with pytest.raises(ValueError, match="must be Discrete and begin at 0"):
        DiscreteStates(env)


def test_action_masks_of_the_environment_stay():
    env, plain = taxi(), gym.make("Taxi-v4")
    _, info = env.reset(seed=3)
    _, expected = plain.reset(seed=3)
    assert info["action_mask"].tolist() == expected["action_mask"].tolist()
    for action in (0, 1, 2, 3, 4):
        now, expected = env.step(action)[4], plain.step(action)[4]
        assert now["action_mask"].tolist() == expected["action_mask"].tolist()
        assert now.keys() == expected.keys() | {"terminated", "is_success"}


def test_what_is_handed_out_is_not_kept():
    env = lake()
    obs, _ = env.reset(seed=0)
    for value in obs.values():
        value[...] = 1
    obs, *_ = env.step(RIGHT)
    assert (obs["state"], obs["goal"], obs["actions"].tolist()) == (1, -1, NUMBERS)
    walker = cells()
    shown, _ = walker.reset(seed=0)
    shown[:] = 3
    assert walker.step(RIGHT)[0].tolist() == [2, 1]


@pytest.mark.parametrize("make", [lake, lambda: DiscreteStates(cells(), lattice="square")])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=("copy", "pickle"))
def test_copies_go_on_alike_and_apart(make, again):
    env = make()
    env.reset(seed=0)
    env.step(2)
    other = again(env)
    one, two = ([int(e.step(action)[0]["state"]) for action in (1, 0, 1, 2)] for e in (env, other))
    assert one == two
    n_before = other.number("never seen")
    assert env.number("another") == n_before


@pytest.mark.parametrize(
    "make", [lake, lambda: cliff(goal=47), lambda: DiscreteStates(cells(), lattice="square"), poses]
)
def test_specs_build_the_wrapped_environment_again(make):
    env = make()
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    for one, other in [(env.reset(seed=0), again.reset(seed=0)), (env.step(1), again.step(1))]:
        np.testing.assert_equal(one[0], other[0])
