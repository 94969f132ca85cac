"""The vector environment returns what a SyncVectorEnv of single environments in the same rooms returns."""

import copy
import pickle
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers
from vector_equality import check_equal

from eswm_gym.envs import HexRoomEnv, HexRoomVectorEnv, RandomWallVectorEnv
from eswm_gym.envs.hex_episodes import draw_episodes
from eswm_gym.rooms import Room, RoomConfig

HEX = [
    env_id
    for env_id, spec in gym.registry.items()
    if env_id.startswith("ESWM-") and spec.vector_entry_point and "MiniGrid" not in env_id
]
every_mode = pytest.mark.parametrize("mode", AutoresetMode, ids=lambda mode: mode.value)


def make(env_id, n, mode=AutoresetMode.NEXT_STEP, **kwargs):
    return gym.make_vec(env_id, n, "vector_entry_point", autoreset_mode=mode, **kwargs)


class Pair:
    """A vector environment, and a SyncVectorEnv of single environments that follow it into the same rooms."""

    def __init__(self, same_room, ours, make_single, n=None):
        self.ours, self.banks = ours, None
        singles = [
            partial(lambda i: same_room(make_single(), ours, i, bank=lambda: self.banks[i]), i)
            for i in range(n or ours.num_envs)
        ]
        self.sync = SyncVectorEnv(singles, autoreset_mode=ours.metadata["autoreset_mode"])

    @classmethod
    def of(cls, same_room, env_id, n, mode=AutoresetMode.NEXT_STEP, **kwargs):
        return cls(same_room, make(env_id, n, mode, **kwargs), partial(gym.make, env_id, **kwargs))

    def check_reset(self, seed=None, options=None):
        ours = self.ours.reset(seed=seed, options=options)
        self.banks = ours[1].get("memory_bank")
        mask = {key: value for key, value in (options or {}).items() if key == "reset_mask"}
        for one, other in zip(self.sync.reset(options=mask), ours, strict=True):
            check_equal(one, other, "reset")

    def check_steps(self, n_steps, seed=0):
        """Step both, resetting what ended where they do not do so by themselves; return how many episodes ended."""
        rng = np.random.default_rng(seed)
        ended = 0
        for step in range(n_steps):
            actions = rng.integers(6, size=self.sync.num_envs)
            ours = self.ours.step(actions)
            self.banks = ours[4].get("memory_bank")
            sync = self.sync.step(actions)
            for part, (one, other) in enumerate(zip(sync, ours, strict=True)):
                check_equal(one, other, f"step {step}, part {part}")
            done = sync[2] | sync[3]
            ended += done.sum()
            if self.ours.metadata["autoreset_mode"] == AutoresetMode.DISABLED and done.any():
                self.check_reset(options={"reset_mask": done})
        return ended


@every_mode
@pytest.mark.parametrize("env_id", HEX)
def test_equal_to_single_environments(same_room, env_id, mode):
    pair = Pair.of(same_room, env_id, 5, mode)
    sync, ours = pair.sync, pair.ours
    assert isinstance(ours, HexRoomVectorEnv)
    assert sync.observation_space == ours.observation_space and sync.action_space == ours.action_space
    assert sync.single_observation_space == ours.single_observation_space
    assert sync.metadata == ours.metadata
    pair.check_reset(seed=3)
    assert pair.check_steps(100) >= 15
    check_equal(sync.call("action_masks"), ours.call("action_masks"))
    assert sync.get_attr("room") == ours.get_attr("room")
    pair.check_reset()
    pair.check_steps(40)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"radius": 1, "wall_length": (2, 6), "no_wall": 0.0},  # often nowhere to go: drawn again
        {"radius": 2, "wall_length": (8, 12), "no_wall": 0.0, "straightness": 0.2},  # split rooms
        {"radius": 4, "task": "explore", "max_episode_steps": 7},
    ],
)
def test_other_rooms_are_equal_too(same_room, kwargs):
    pair = Pair.of(same_room, "ESWM-RandomWall-v0", 16, **kwargs)
    pair.check_reset(seed=0)
    pair.check_steps(60)


@pytest.mark.parametrize("task", ["navigate", "explore"])
def test_any_family_of_rooms(same_room, task):
    """Hidden regions, more states than locations; no time limit."""

    def make():
        return HexRoomEnv(RoomConfig(radius=2, states=tuple(range(5, 30)), hidden=0.6), task, "spanning")

    pair = Pair(same_room, HexRoomVectorEnv(make(), 6, autoreset_mode=AutoresetMode.SAME_STEP), make)
    pair.check_reset(seed=1)
    pair.check_steps(200)
    assert pair.sync.get_attr("room") == pair.ours.get_attr("room")  # with what they hide
    assert any(not room.observed.all() for room in pair.ours.get_attr("room"))


@pytest.mark.parametrize("task", ["", "Explore"])
def test_reset_options(same_room, task):
    pair = Pair.of(same_room, f"ESWM-RandomWall19{task}-v0", 4)
    room = Room(2, range(18, -1, -1), [8, 9, 10])
    pair.check_reset(seed=0, options={"room": room, "start": 4})
    assert pair.ours.get_attr("room") == (room,) * 4 and pair.ours.get_attr("location") == (4,) * 4
    pair.check_steps(40)
    mask = np.array([True, False, True, False])
    before = pair.ours.get_attr("room")
    pair.check_reset(options={"reset_mask": mask})
    now = pair.ours.get_attr("room")
    assert [one == other for one, other in zip(before, now, strict=True)] == [False, True, False, True]
    pair.check_steps(40)


def test_many_rooms_of_one_object(same_room):
    """More rooms than are drawn at a time."""
    ours = RandomWallVectorEnv(1200, max_episode_steps=30, memory_bank="spanning")
    pair = Pair(same_room, ours, partial(gym.make, "ESWM-RandomWall-v0"), n=3)
    obs, infos = ours.reset(seed=10)
    assert len(np.unique(obs["state"])) == 37 and (infos["memory_bank"][:, 20:, 1] >= 0).any(1).all()
    pair.banks = infos["memory_bank"]
    pair.sync.reset()
    rng = np.random.default_rng(0)
    for _ in range(70):
        actions = rng.integers(6, size=1200)
        obs, *_, infos = ours.step(actions)
        pair.banks = infos.get("memory_bank")
        check_equal(pair.sync.step(actions[:3])[0], {key: column[:3] for key, column in obs.items()})
    rooms = [room.states.tobytes() for room in ours.get_attr("room")]
    assert len(set(rooms)) == 1200


@pytest.mark.parametrize("env_id", HEX)
def test_same_seed_same_episodes(env_id):
    def play(seed):
        env, results = make(env_id, 70, AutoresetMode.SAME_STEP), []
        results.append(env.reset(seed=seed))
        for actions in np.random.default_rng(1).integers(6, size=(35, 70)):
            results.append(env.step(actions))
        return [*results, env.reset(), env.np_random_seed]

    first = play(4)
    assert first[-1] == 4 and data_equivalence(first, play(4)) and not data_equivalence(first[:-1], play(5)[:-1])


def test_reset_with_a_seed_forgets_what_was_drawn_ahead():
    env, fresh = make("ESWM-RandomWall-v0", 3), make("ESWM-RandomWall-v0", 3)
    env.reset(seed=0)
    assert data_equivalence(env.reset(seed=8), fresh.reset(seed=8))
    assert not data_equivalence(env.reset(), fresh.reset(seed=8))


def test_starts_and_goals_are_drawn_uniformly():
    """All 42 pairs of different locations of an open room of seven; all 6 starts beside a wall in its centre."""
    n = 8400
    arena = HexRoomEnv(RoomConfig.open_arena(1), memory_bank="spanning")
    episodes = draw_episodes(np.random.default_rng(0), arena, n)
    pairs = np.bincount(episodes.start * 7 + episodes.goal, minlength=49).reshape(7, 7)
    assert (np.diag(pairs) == 0).all()
    assert (abs(pairs[~np.eye(7, dtype=bool)] - n / 42) < 5 * (n / 42) ** 0.5).all()
    assert (abs(np.bincount(episodes.states.ravel(), minlength=64) - n * 7 / 64) < 5 * (n * 7 / 64) ** 0.5).all()
    distances = episodes.distances[np.arange(n), episodes.start]
    assert distances.min() == 1 and distances.max() == 2 and (episodes.bank >= 0).all()
    walled = HexRoomEnv(RoomConfig.random_wall(1, wall_length=(1, 1), no_wall=0.0, hidden=0.0), task="explore")
    episodes = draw_episodes(np.random.default_rng(0), walled, n)
    assert not episodes.walls[np.arange(n), episodes.start].any() and episodes.bank.shape == (n, 0, 3)
    centre = episodes.start[episodes.walls[:, 3]]
    assert (abs(np.bincount(centre, minlength=7)[[0, 1, 2, 4, 5, 6]] - len(centre) / 6) < 5 * 15).all()


def test_mask_is_left_in_the_options():
    ours = make("ESWM-RandomWall19-v0", 2)
    ours.reset(seed=0)
    options = {"reset_mask": np.array([True, False])}
    ours.reset(options=options)
    assert list(options) == ["reset_mask"]


def test_arrays_are_fresh():
    env = make("ESWM-RandomWall19-v0", 50, AutoresetMode.SAME_STEP)
    kept = [env.reset(seed=0)]
    for _ in range(40):
        kept.append(env.step(env.action_space.sample()))
    before = copy.deepcopy(kept)
    env.step(np.zeros(50, int))
    env.reset(seed=1)
    assert data_equivalence(before, kept)
    for part in kept[-1][:2] + (kept[-1][4]["action_mask"],):  # and writing to them does no harm
        for array in part.values() if isinstance(part, dict) else [part]:
            array[...] = 0
    assert env.step(np.zeros(50, int))[4]["action_mask"].any()


@pytest.mark.parametrize("again", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_on_alike(again):
    env = make("ESWM-RandomWall19-v0", 4)
    env.reset(seed=0)
    twin = again(env)
    for actions in np.random.default_rng(0).integers(6, size=(40, 4)):
        assert data_equivalence(env.step(actions), twin.step(actions))


def test_wrappers():
    env = wrappers.RecordEpisodeStatistics(gym.make_vec("ESWM-OpenArena-v0", 6))
    env = wrappers.FlattenObservation(env)
    env = wrappers.TransformObservation(env, lambda seen: seen * 2)
    seen, infos = env.reset(seed=0)
    assert seen.shape == (6, 12)
    lengths = []
    for _ in range(40):
        *_, infos = env.step(env.action_space.sample())
        lengths += infos["episode"]["l"][infos["_episode"]].tolist() if "episode" in infos else []
    assert max(lengths) == 15  # the time limit of the id


@every_mode
def test_infos_as_lists(same_room, mode):
    pair = Pair.of(same_room, "ESWM-RandomWall19-v0", 3, mode, max_episode_steps=1)
    pair.check_reset(seed=0)
    actions = pair.ours.action_space.sample()
    ours = wrappers.DictInfoToList(pair.ours).step(actions)[4]
    pair.banks = [info.get("memory_bank") for info in ours]
    assert data_equivalence(wrappers.DictInfoToList(pair.sync).step(actions)[4], ours)


def test_time_limit():
    env = gym.make_vec("ESWM-RandomWall-v0", 3, max_episode_steps=2)
    env.reset(seed=0, options={"room": Room(3, range(37)), "start": 0, "goal": 36})
    assert [env.step([0] * 3)[3].tolist() for _ in range(3)] == [[False] * 3, [True] * 3, [False] * 3]
    assert env.spec.max_episode_steps == 30 and env.spec.kwargs["max_episode_steps"] == 2
    forever = RandomWallVectorEnv(1, radius=2)
    forever.reset(seed=0, options={"start": 0, "goal": 18, "room": Room(2, range(19))})
    assert not any(forever.step([0])[3].any() for _ in range(50))


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall19-v0", "ESWM-RandomWall19Explore-v0"])
def test_render(same_room, env_id):
    pair = Pair.of(same_room, env_id, 3, render_mode="ansi")
    pair.check_reset(seed=0)
    pair.check_steps(5)
    assert pair.sync.render() == pair.ours.render()
    pytest.importorskip("pygame")
    ours = make(env_id, 2, render_mode="rgb_array")
    ours.reset(seed=0)
    first, second = ours.render()
    assert first.shape == second.shape and first.dtype == np.uint8 and (first != second).any()
    ours.close()


def test_attributes(same_room):
    pair = Pair.of(same_room, "ESWM-RandomWall19-v0", 3)
    pair.check_reset(seed=0)
    pair.check_steps(1)
    ours = pair.ours
    for name in ("location", "place", "layout", "goal", "shortest_path_length", "task", "n_states", "config"):
        assert pair.sync.get_attr(name) == ours.get_attr(name)
    for name in ("add_walls", "nothing"):
        with pytest.raises(AttributeError, match=name):
            ours.call(name)
