"""Two houses, and what tests of them do again and again."""

import numpy as np

from eswm_gym.envs.indoor import IndoorEnv
from eswm_gym.rooms.indoor import Door, Furniture, House, Room

ONE = House((Room((0.0, 4.0), (0.0, 4.0)),))
TWO = House(
    (Room((0.0, 4.0), (0.0, 4.0)), Room((4.0, 8.0), (0.0, 4.0))),
    (Door((0, 1), 0, 4.0, (1.5, 2.5)),),
    (Furniture("box", 1.0, 3.0, (1.0, 0.6, 0.8), colour=(1.0, 0.0, 0.0)),),
)


def navigate(start=(2, 2, 0), goal=(6, 2, 0), house=TWO, **kwargs):
    env = IndoorEnv(**kwargs)
    return env, *env.reset(seed=0, options={"house": house, "start": start, "goal": goal})


def explore(start=(2, 2, 0), house=TWO, **kwargs):
    env = IndoorEnv("explore", **kwargs)
    return env, *env.reset(seed=0, options={"house": house, "start": start})


def move(right=0.0, ahead=0.0, turn=0.0):
    return np.array([right, ahead, turn], np.float32)


def close(pose, expected):
    np.testing.assert_allclose(pose, expected, atol=1e-6)
