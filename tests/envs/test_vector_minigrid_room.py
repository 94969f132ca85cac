"""The vector environment returns what a SyncVectorEnv of single environments in the same MiniGrid rooms returns."""

import copy
import pickle
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from vector_equality import check_equal

from eswm_gym.envs import MiniGridRoomEnv, MiniGridRoomVectorEnv, SB3VecEnv
from eswm_gym.envs.grid_episodes import draw_grid_episodes
from eswm_gym.rooms.grid import GridBatch, distances_to, generate_grids, poses, steps_to
from eswm_gym.rooms.grid.layouts import GridConfig

IDS = ("ESWM-MiniGrid-v0", "ESWM-MiniGridExplore-v0")
every_mode = pytest.mark.parametrize("mode", AutoresetMode, ids=lambda mode: mode.value)


def make(env_id, n, mode=AutoresetMode.NEXT_STEP, **kwargs):
    return gym.make_vec(env_id, n, "vector_entry_point", autoreset_mode=mode, **kwargs)


class Follows(gym.Wrapper):
    """A single environment whose episodes begin as those in room i of a vector environment, which is stepped first."""

    def __init__(self, env, vector, i):
        super().__init__(env)
        self.vector, self.i = vector, i

    def reset(self, *, seed=None, options=None):
        grid, start, goal = (self.vector.call(name)[self.i] for name in ("grid_classes", "pose", "goal"))
        given = {"grid": grid, "start": start} | ({} if goal is None else {"goal": goal})
        obs, info = self.env.reset(options=given)
        if "memory_bank" in info:  # drawn at random
            info["memory_bank"] = self.vector.banks[self.i].copy()
        return obs, info


def explorers(rng, n):
    """Actions that get around: mostly ahead."""
    return rng.choice(3, n, p=(0.2, 0.2, 0.6))


@every_mode
@pytest.mark.parametrize("env_id", IDS)
def test_equal_to_single_environments(env_id, mode):
    ours = make(env_id, 4, mode, max_episode_steps=25)
    sync = SyncVectorEnv(
        [partial(lambda i: Follows(gym.make(env_id, max_episode_steps=25), ours, i), i) for i in range(4)],
        autoreset_mode=mode,
    )
    assert isinstance(ours, MiniGridRoomVectorEnv)
    assert sync.observation_space == ours.observation_space and sync.action_space == ours.action_space
    assert sync.metadata == ours.metadata

    def reset(seed=None, options=None):
        found = ours.reset(seed=seed, options=options)
        ours.banks = found[1].get("memory_bank")
        check_equal(sync.reset(options=options), found, "reset")

    reset(seed=5)
    rng, ended = np.random.default_rng(0), 0
    for step in range(80):
        actions = explorers(rng, 4)
        found = ours.step(actions)
        ours.banks = found[4].get("memory_bank")
        for part, (one, other) in enumerate(zip(sync.step(actions), found, strict=True)):
            check_equal(one, other, f"step {step}, part {part}")
        done = found[2] | found[3]
        ended += done.sum()
        if mode == AutoresetMode.DISABLED and done.any():
            reset(options={"reset_mask": done})
    assert ended >= 10
    check_equal(sync.call("action_masks"), ours.call("action_masks"))
    for name in ("pose", "goal", "shortest_path_length", "place"):
        assert sync.get_attr(name) == ours.get_attr(name)


def test_goals_are_reached():
    """Episodes end where the shortest way is walked by what the infos say."""
    env = make("ESWM-MiniGrid-v0", 20, AutoresetMode.SAME_STEP)
    _, infos = env.reset(seed=1)
    reached = np.zeros(20, int)
    single = MiniGridRoomEnv()
    for _ in range(60):
        grids, places, goals = (env.call(name) for name in ("grid_classes", "pose", "goal"))
        actions = []
        for grid, place, goal in zip(grids, places, goals, strict=True):
            best = []
            for action in range(3):
                single.reset(seed=0, options={"grid": grid, "start": place, "goal": goal})
                best.append(single.step(action)[4]["shortest_path_length"])
            actions.append(int(np.argmin(best)))
        before = infos["shortest_path_length"]
        _, rewards, terminated, _, infos = env.step(np.array(actions))
        reached += terminated
        assert (terminated == (before == 1)).all() and (rewards[terminated] == 1).all()
        if reached.min() >= 1:
            break
    assert reached.min() >= 1


@pytest.mark.parametrize("env_id", IDS)
def test_same_seed_same_episodes(env_id):
    def play(seed):
        env, results = make(env_id, 70, AutoresetMode.SAME_STEP), []
        results.append(env.reset(seed=seed))
        for actions in np.random.default_rng(1).integers(3, size=(62, 70)):
            results.append(env.step(actions))
        return results

    first = play(4)
    assert data_equivalence(first, play(4)) and not data_equivalence(first, play(5))


def test_reset_options_and_banks():
    env = make("ESWM-MiniGrid-v0", 3)
    _, infos = env.reset(seed=0)
    assert infos["memory_bank"].shape == (3, 24, 51) and infos["memory_bank"].dtype == np.int64
    grid = generate_grids(np.random.default_rng(3), 1, GridConfig())[0]
    room = GridBatch.of(grid[None])
    start, goal = (tuple(poses(9)[i].tolist()) for i in np.flatnonzero(room.unique[0])[[0, -1]])
    mask = np.array([True, False, True])
    before = env.get_attr("pose")[1]
    obs, infos = env.reset(options={"reset_mask": mask, "grid": grid, "start": start, "goal": goal})
    assert env.get_attr("pose") == (start, before, start) and env.get_attr("goal")[0] == goal
    assert (obs["state"][0] == obs["state"][2]).all() and infos["_memory_bank"].tolist() == mask.tolist()
    with pytest.raises(ValueError, match="start must be"):
        env.reset(options={"start": (0, 0, 0)})


def test_minigrids_own_limit():
    for limits, steps in (({"max_steps": 5}, 5), ({"max_steps": 5, "max_episode_steps": 3}, 3), ({}, 60)):
        env = make("ESWM-MiniGridExplore-v0", 2, **limits)
        env.reset(seed=0)
        cut = [env.step(np.zeros(2, int))[3].all() for _ in range(steps)]
        assert cut.index(True) == steps - 1


def test_copies_and_pictures():
    env = make("ESWM-MiniGrid-v0", 3, render_mode="rgb_array")
    env.reset(seed=0)
    assert [picture.ndim for picture in env.render()] == [3] * 3
    other = pickle.loads(pickle.dumps(copy.deepcopy(env.unwrapped)))
    actions = np.array([2, 0, 2])
    assert data_equivalence(env.step(actions), other.step(actions))
    with pytest.raises(ValueError, match="actions must be from 0 to 2, got 3 in room 1"):
        env.step(np.array([0, 3, 0]))
    with pytest.raises(ValueError, match="'human' shows one room"):
        make("ESWM-MiniGrid-v0", 2, render_mode="human")


def test_what_is_handed_out_does_not_change():
    env = make("ESWM-MiniGridExplore-v0", 5, AutoresetMode.SAME_STEP)
    obs, infos = env.reset(seed=0)
    kept = copy.deepcopy((obs, infos))
    for actions in np.random.default_rng(0).integers(3, size=(70, 5)):
        env.step(actions)
    assert data_equivalence(kept, (obs, infos))


def test_for_stable_baselines3():
    venv = SB3VecEnv(make("ESWM-MiniGrid-v0", 6, "SameStep"))
    obs = venv.reset()
    assert obs["state"].shape == (6, 5, 5) and obs["image"].shape == (6, 5, 5, 3)
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(61):
        obs, rewards, dones, infos = venv.step(rng.integers(3, size=6))
        ended += dones.sum()
        for done, info in zip(dones, infos, strict=True):
            assert ("terminal_observation" in info) == done
            if done:
                assert info["terminal_observation"].keys() == {"state", "goal", "image"}
                assert info["TimeLimit.truncated"] != info["is_success"]
    assert ended >= 6 and rewards.dtype == np.float32
    assert all(mask.all() for mask in venv.env_method("action_masks"))


def test_episodes_begin_as_those_of_single_environments():
    """Starts are uniform among the free poses, goals among the others with a view of their own; banks are true."""
    n = 400
    drawn = draw_grid_episodes(np.random.default_rng(0), "navigate", "cover", n)
    rooms, room = GridBatch.of(drawn.grids.reshape(n, 9, 9)), np.arange(n)
    assert rooms.free[room, drawn.start].all() and rooms.unique[room, drawn.goal].all()
    assert (drawn.start != drawn.goal).all()
    # The rank of the start among the free poses, as a share, is uniform; so is that of the goal.
    for among, at in ((rooms.free, drawn.start), (rooms.unique, drawn.goal)):
        rank = np.array([m[:i].sum() / m.sum() for m, i in zip(among, at, strict=True)])
        assert rank.mean() == pytest.approx(0.5, abs=0.06) and np.histogram(rank, 4, (0, 1))[0].min() > 60
    for i in range(0, n, 40):
        assert (drawn.distances[i] == np.where(rooms.free[i], distances_to(rooms.targets[i], drawn.goal[i]), -1)).all()
        held = {tuple(row) for row in drawn.bank[i].tolist() if row[0] >= 0}
        true = {
            (*rooms.views[i, p].tolist(), a, *rooms.views[i, rooms.targets[i, p, a]].tolist())
            for p in np.flatnonzero(rooms.free[i])
            for a in range(3)
        }
        assert held and held <= true


def test_steps_to_where_a_room_is_cut_in_two():
    grid = np.full((1, 9, 9), 2, np.int8)
    grid[:, [0, -1]] = grid[:, :, [0, -1]] = grid[:, :, 4] = 1
    room = GridBatch.of(grid)
    end = int(np.flatnonzero((poses(9) == (1, 1, 0)).all(1))[0])
    steps = steps_to(room.free, np.array([end]))[0]
    assert steps[end] == 0 and (steps[poses(9)[:, 0] > 3] == -1).all()
    expected = distances_to(room.targets[0], end)
    assert (steps == np.where(room.free[0], expected, -1)).all()
