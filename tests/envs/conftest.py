import os

import gymnasium as gym
import numpy as np
import pytest

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # human rendering without a display


class SameRoom(gym.Wrapper):
    """A single environment whose episodes begin as those in room i of a vector environment, which is stepped first.

    Args:
        env: the single environment.
        vector: the vector environment.
        i: the room.
        bank: returns the memory bank that the vector environment handed out last in room i.
    """

    def __init__(self, env, vector, i, bank):
        super().__init__(env)
        self.vector, self.i, self.bank = vector, i, bank

    def reset(self, *, seed=None, options=None):
        room, start, goal = (self.vector.call(name)[self.i] for name in ("room", "location", "goal"))
        given = {"room": room, "start": start} | ({} if goal is None else {"goal": goal})
        obs, info = self.env.reset(options=given)
        if "memory_bank" in info:  # banks are drawn at random; all of a room's are as long
            bank = np.array(self.bank())
            assert (bank[:, 1] >= 0).sum() == (info["memory_bank"][:, 1] >= 0).sum()
            held = {tuple(row) for row in bank[bank[:, 1] >= 0].tolist()}
            assert len(held) == (bank[:, 1] >= 0).sum()
            assert all(room.next_state(source, action) == end for source, action, end in held)
            info["memory_bank"] = bank
        return obs, info


@pytest.fixture(scope="session")
def same_room():
    return SameRoom
