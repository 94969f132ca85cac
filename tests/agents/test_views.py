"""States that are views: numbers, tables imagined by models that know the truth, and the agent in MiniGrid."""

import hashlib

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
import torch
from torch.nn.functional import one_hot

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent, MemoryBank, views
from eswm_gym.agents.base import state_of, view_number
from eswm_gym.agents.baselines import RandomAgent
from eswm_gym.agents.planning import UNKNOWN
from eswm_gym.agents.views import ViewAlbum, imagine_views
from eswm_gym.rooms.grid import (
    EMPTY,
    FORWARD,
    HERE,
    N_CLASSES,
    WALL,
    GridConfig,
    GridRooms,
    cover_banks,
    generate_grids,
    pose_index,
    rows_of,
)
from eswm_gym.rooms.grid.views import _is_lit
from eswm_gym.world_model import EncodedBank, ViewPrediction, ViewTransformer, ViewTransformerConfig, available
from eswm_gym.world_model.registration import kinds_of, motion_of
from eswm_gym.wrappers import MemoryBankObservation

TINY = ViewTransformerConfig(dim=4, layers=1, heads=1, cell_dim=1)


class TrueModel(ViewTransformer):
    """Knows one room: certain of moves from views that it has once, "I don't know" of all others."""

    def __init__(self, room: GridRooms) -> None:
        super().__init__(TINY)
        self.ends = {
            (view.tobytes(), action): room.views[0, room.targets[0, pose, action]].astype(np.int64)
            for pose, view in enumerate(room.views[0].astype(np.int64))
            for action in range(3)
            if room.unique[0, pose]
        }
        self.asked = []

    def encode(self, memories):
        return EncodedBank(memories)

    def predict(self, bank, query):
        self.asked.append(tuple(query.shape[:2]))
        end = torch.zeros(*query.shape[:2], 25, 9)
        unknown = torch.full((*query.shape[:2], 2), -20.0)
        for b, q in np.ndindex(*query.shape[:2]):
            view = self.ends.get((query[b, q, :25].numpy().tobytes(), int(query[b, q, 25])))
            if view is None:
                unknown[b, q] = 20.0
            else:
                end[b, q] = one_hot(torch.from_numpy(view), 9) * 20.0
        return ViewPrediction(end, torch.zeros(*query.shape[:2], 4), end, unknown)


class Surveyor(ViewTransformer):
    """Puts the bank together as a map, and is certain of a view when the map shows all that light reaches in it."""

    def __init__(self) -> None:
        super().__init__(TINY)
        self.passes = 0

    def encode(self, memories):
        self.check_length(memories)
        self.passes += 1
        return EncodedBank(memories, self.registration.build_map(memories))

    def predict(self, bank, query):
        source, action = query[..., :25], query[..., 25]
        motion = motion_of(source, action)
        p = self.registration.poses(self.registration.match(source, bank.cache))
        there = (self.registration.move(p, motion) @ bank.cache).unflatten(2, (25, 8))
        shown = kinds_of(self.registration.carry_over(source, motion))
        sure, kind = (shown + there * (shown.sum(-1, keepdim=True) == 0)).max(-1)
        kind = torch.where(sure > 0.9, kind + 1, 0)
        kind[..., HERE] = EMPTY
        lit = torch.from_numpy(_is_lit((kind == WALL).numpy()))
        known = (~lit | (kind > 0)).all(-1)
        end = one_hot(torch.where(lit, kind, 0), N_CLASSES) * 20.0 * known[..., None, None]
        unknown = torch.where(known, -20.0, 20.0)[..., None].expand(-1, -1, 2)
        return ViewPrediction(end, torch.zeros(*query.shape[:2], 4), end, unknown)


def rooms_of(n: int, seed: int = 0) -> tuple[GridRooms, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return GridRooms.of(generate_grids(rng, n, GridConfig())), rng


def distinct_room(seed: int = 0) -> GridRooms:
    """A room in which every pose has a view of its own."""
    rooms, _ = rooms_of(200, seed)
    i = int((rooms.unique == rooms.free).all(1).argmax())
    room = GridRooms.of(rooms.grids[i : i + 1])
    assert (room.unique == room.free).all()
    return room


def numbers(room: GridRooms) -> np.ndarray:
    return np.array([view_number(view) for view in room.views[0]])


def bank_of(rows: np.ndarray) -> tuple[MemoryBank, ViewAlbum]:
    album = ViewAlbum()
    return MemoryBank(album.transitions(rows), n_actions=3), album


# Numbers


def test_numbers_of_views():
    view = np.arange(25) % 9
    expected = int.from_bytes(hashlib.blake2b(bytes(view.tolist()), digest_size=8).digest(), "big") >> 2
    shapes = [view, view.reshape(5, 5), view.astype(np.uint8).reshape(5, 5), view.astype(np.int8), list(view)]
    assert {view_number(shape) for shape in shapes} == {expected}
    assert state_of(view.astype(np.uint8).reshape(5, 5)) == expected
    assert view_number(np.asfortranarray(view.reshape(5, 5))) == expected
    assert view_number(view.reshape(5, 5).T) != expected
    rooms, _ = rooms_of(50)
    every = {view.tobytes(): view_number(view) for view in rooms.views[rooms.free]}
    assert len(every) > 5000 and len(set(every.values())) == len(every)
    assert all(0 <= number < 2**62 for number in every.values())


def test_an_album_gives_back_what_was_put_into_it():
    rooms, rng = rooms_of(1)
    rows = cover_banks(rng, rooms).transitions()[0]
    bank, album = bank_of(rows)
    held = rows[:, 0] >= 0
    assert len(bank) == held.sum() < len(rows)
    np.testing.assert_array_equal(album.rows(bank), rows[held])
    assert [t[1] for t in bank] == rows[held][:, 25].tolist()
    source, _, end = next(iter(bank))
    np.testing.assert_array_equal(album.views([end, source, end]), [rows[0, 26:], rows[0, :25], rows[0, 26:]])
    assert album.number(rows[0, :25].astype(np.uint8).reshape(5, 5)) == source
    assert album.views([]).shape == (0, 25) and album.rows(MemoryBank()).shape == (0, 51)
    with pytest.raises(ValueError, match="state 123 is no view"):
        album.views([source, 123])


# Tables


def test_a_model_that_knows_the_room_imagines_all_of_it_from_one_memory():
    room = distinct_room()
    number = numbers(room)
    start = int(np.flatnonzero(room.free[0])[0])
    bank, album = bank_of(rows_of(room, np.array([[start]]), np.array([[0]]))[0])
    table = imagine_views(TrueModel(room), [bank], [album])[0]
    free = np.flatnonzero(room.free[0]).tolist()
    assert sorted(table.states.tolist()) == sorted(number[free].tolist())
    true = nx.DiGraph()
    for pose in free:
        for action in range(3):
            assert table.end[table.row(number[pose]), action] == number[room.targets[0, pose, action]]
            true.add_edge(int(number[pose]), int(number[room.targets[0, pose, action]]))
    assert table.probability.min() > 0.99 and table.entropy.max() < 1e-3
    assert np.isin(table.states, list(nx.descendants(true, int(number[start]))) + [number[start]]).all()
    np.testing.assert_array_equal(album.views(number[free]), room.views[0, free])


def test_what_is_not_known_is_unknown_and_ends_the_search():
    room = distinct_room()
    number, model = numbers(room), TrueModel(room)
    free = np.flatnonzero(room.free[0])
    start = int(free[0])
    for action in range(3):  # forget what comes after the first pose's turn to the right, and all steps
        for pose in free:
            if action == FORWARD or pose == room.targets[0, start, 1]:
                del model.ends[room.views[0, pose].astype(np.int64).tobytes(), action]
    bank, album = bank_of(rows_of(room, np.array([[start]]), np.array([[0]]))[0])
    table = imagine_views(model, [bank], [album])[0]
    turns = start - start % 4 + np.arange(4)
    assert sorted(table.states.tolist()) == sorted(number[turns].tolist())
    assert (table.end[:, FORWARD] == UNKNOWN).all()
    right = room.targets[0, start, 1]
    assert (table.end[table.row(number[right])] == UNKNOWN).all()
    assert table.probability[table.end == UNKNOWN].min() > 0.99
    assert table.end[table.row(number[start]), 1] == number[right]


def test_other_states_are_included():
    room = distinct_room()
    number, model = numbers(room), TrueModel(room)
    model.ends = {}
    free = np.flatnonzero(room.free[0])
    bank, album = bank_of(rows_of(room, free[None, :1], np.array([[0]]))[0])
    goal = album.number(room.views[0, free[-1]])
    table = imagine_views(model, [bank], [album], also=[[goal]])[0]
    assert sorted(table.states.tolist()) == sorted({*number[room.targets[0, free[0], [0]]], number[free[0]], goal})
    empty = imagine_views(model, [MemoryBank()], [album], also=[[goal]])[0]
    assert empty.states.tolist() == [goal] and empty.end.tolist() == [[UNKNOWN] * 3]


@pytest.mark.parametrize(("p_wrong", "new"), [(0.9, False), (0.995, True)])
def test_a_view_that_is_nearly_a_known_one_is_no_new_one(p_wrong, new):
    """One cell is imagined otherwise; how surely tells whether it is another view."""
    room = distinct_room()
    number = numbers(room)
    start = int(np.flatnonzero(room.free[0])[0])
    bank, album = bank_of(rows_of(room, np.array([[start]]), np.array([[0]]))[0])
    model = TrueModel(room)
    left = room.views[0, room.targets[0, start, 0]]
    cell = int(np.flatnonzero(left > WALL)[0])
    wrong = 3 if left[cell] != 3 else 4

    class Doubtful(TrueModel):
        def predict(self, bank, query):
            prediction = super().predict(bank, query)
            p = prediction.end.softmax(-1)
            same = (query[0, :, :25].numpy() == room.views[0, start]).all(-1) & (query[0, :, 25] == 0).numpy()
            p[0, same, cell] = 1e-6
            p[0, same, cell, int(left[cell])] = 1 - p_wrong
            p[0, same, cell, wrong] = p_wrong
            prediction.unknown[0, ~torch.from_numpy(same)] = 20.0
            return prediction._replace(end=p.log())

    model.__class__ = Doubtful
    table = imagine_views(model, [bank], [album])[0]
    known = {int(number[start]), int(number[room.targets[0, start, 0]])}
    imagined = left.copy()
    imagined[cell] = wrong
    assert set(table.states.tolist()) == known | ({view_number(imagined)} if new else set())
    end = table.end[table.row(number[start]), 0]
    assert end == view_number(imagined) if new else end in (UNKNOWN, number[room.targets[0, start, 0]])


def test_no_more_states_than_most(monkeypatch):
    monkeypatch.setattr(views, "MOST_STATES", 20)
    room = distinct_room()
    start = int(np.flatnonzero(room.free[0])[0])
    bank, album = bank_of(rows_of(room, np.array([[start]]), np.array([[0]]))[0])
    table = imagine_views(TrueModel(room), [bank], [album])[0]
    assert len(table.states) == len(set(table.states.tolist())) == 20
    assert set(np.unique(table.end)) <= {UNKNOWN, *table.states.tolist()}
    assert (table.end == UNKNOWN).any()


def test_many_banks_as_one_by_one():
    rooms, rng = rooms_of(5)
    rows = cover_banks(rng, rooms, np.array([0.3, 1, 0.5, 1, 0.7])).transitions()
    model = Surveyor()
    alone = [imagine_views(model, [bank], [album])[0] for bank, album in map(bank_of, rows)]
    banks, albums = zip(*map(bank_of, rows), strict=True)
    for together in (imagine_views(model, banks, albums), imagine_views(model, banks, albums, chunk=2)):
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one.states, other.states)
            np.testing.assert_array_equal(one.end, other.end)
            np.testing.assert_allclose(one.probability, other.probability, atol=1e-5)


def test_a_map_of_a_whole_bank_is_the_room():
    """Registration and imagination together, without any training."""
    rooms, rng = rooms_of(5, 3)
    banks = cover_banks(rng, rooms)
    right = asked = 0
    for i in range(5):
        room = GridRooms.of(rooms.grids[i : i + 1])
        number = numbers(room)
        table = imagine_views(Surveyor(), *([x] for x in bank_of(banks.transitions()[i])))[0]
        for pose in np.flatnonzero(room.unique[0]):
            row = table.row(number[pose])
            for action in range(3):
                end = UNKNOWN if row is None else table.end[row, action]
                right += end == number[room.targets[0, pose, action]]
                asked += 1
                # Where it is wrong, it does not know, or it sees a pose that looks like another.
                assert row is None or end in (UNKNOWN, number[room.targets[0, pose, action]])
    assert right / asked > 0.8


# The agent


def walk(env, agent, obs, info, steps=60, meanwhile=None):
    """Actions until the episode ends, whether it arrived, and what it forgot."""
    actions, forgotten, terminated = [], [], False
    while not terminated and len(actions) < steps:
        if meanwhile:
            meanwhile(len(actions))
        action = agent.act(obs, info)
        next_obs, _, terminated, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        forgotten += info.get("forgotten", [])
        obs = next_obs
        actions.append(action)
    return actions, terminated, forgotten, info


def begin(agent, seed, env_id="ESWM-MiniGrid-v0", **options):
    env = gym.make(env_id).unwrapped
    obs, info = env.reset(seed=seed, options=options or None)
    agent.reset(obs, info)
    return env, obs, info


MODELS = [
    pytest.param(Surveyor, id="surveyor"),
    pytest.param(
        lambda: ESWMAgent.from_pretrained("minigrid").model,
        id="pretrained",
        marks=pytest.mark.skipif("minigrid" not in available(), reason="no such model yet"),
    ),
]
every_model = pytest.mark.parametrize("model", MODELS)


@every_model
def test_reaches_goals(model):
    agent, extra = ESWMAgent(model(), seed=0), []
    for seed in range(12):
        env, obs, info = begin(agent, seed)
        shortest = info["shortest_path_length"]
        actions, arrived, forgotten, _ = walk(env, agent, obs, info)
        extra.append(len(actions) - shortest if arrived else 60)
        assert not forgotten, "nothing changed"
    assert min(extra) >= 0
    assert np.median(extra) == 0 and np.mean(np.array(extra) < 60) >= 0.9


@pytest.mark.parametrize("seed", range(3))
def test_one_pass_and_a_shortest_way_where_it_knows_the_room(seed):
    room = distinct_room(seed)
    model = TrueModel(room)
    agent = ESWMAgent(model, seed=0)
    env, obs, info = begin(agent, seed, grid=room.grids[0])
    shortest = info["shortest_path_length"]
    plan = agent.plan(agent.number(obs["state"]), agent.number(obs["goal"]))
    assert len(plan) == shortest and plan.probability > 0.99
    n = len(model.asked)
    actions, arrived, _, _ = walk(env, agent, obs, info)
    assert arrived and len(actions) == shortest
    assert len(model.asked) <= n + 8  # a few poses farther each time, in one go


def wall_ahead(env, agent, obs, info):
    """Put a wall on a cell of the agent's way, so that the goal can be reached and looks as before; None if not."""
    agent.act(obs, info)
    state, cells = env.get_state(), []
    for action, _ in agent._ahead:
        before = env.pose
        env.step(action)
        if env.pose[:2] != before[:2]:
            cells.append(env.pose[:2])
    env.set_state(state)
    for cell in cells:
        if cell in (env.pose[:2], env.goal[:2]):
            continue
        env.add_walls([cell])
        here, there = env.get_state(), None
        if env.shortest_path_length > 0:
            env.set_state({**here, "pose": list(env.goal)})
            there = env.gen_obs()["state"]
        env.set_state(here)
        if there is not None and (there == obs["goal"]).all():
            return cell
        env.set_state(state)
    return None


def transitions_of(room):
    """Every transition that can be lived through in a room."""
    number = numbers(room)
    ends = room.targets[0]
    return {
        (int(number[pose]), action, int(number[ends[pose, action]]))
        for pose in np.flatnonzero(room.free[0])
        for action in range(3)
    }


@every_model
def test_forgets_what_a_new_wall_made_outdated_and_arrives(model):
    shared = model()
    arrived, noticed, dropped, outdated, wrongly = [], [], 0, 0, 0
    for seed in range(16):
        agent = ESWMAgent(shared, seed=0)
        env, obs, info = begin(agent, seed)
        remembered = set(agent.memory)
        if wall_ahead(env, agent, obs, info) is None:
            continue
        obs = env.gen_obs()
        true = transitions_of(GridRooms.of(env.grid_classes[None]))
        _, there, forgotten, _ = walk(env, agent, obs, info, steps=80)
        gone = remembered & set(forgotten)
        arrived.append(there)
        noticed.append(bool(gone))
        dropped, wrongly = dropped + len(gone), wrongly + len(gone & true)
        outdated += len(set(agent.memory) - true)
    assert len(arrived) >= 5 and np.mean(arrived) >= 0.85
    assert np.mean(noticed) >= 0.7
    assert wrongly <= 0.05 * dropped
    assert outdated <= 0.1 * dropped


def test_what_is_left_of_outdated_memories_leaves_room_for_new_ones():
    """However many it has, the model is never asked to read more than it was trained for."""
    model = Surveyor()
    agent = ESWMAgent(model, seed=0)
    env, obs, info = begin(agent, 0)
    room = GridRooms.of(env.grid_classes[None])
    pose, action = np.divmod(np.flatnonzero(room.free[0])[:, None] * 3 + np.arange(3), 3)
    every = rows_of(room, pose.reshape(1, -1), action.reshape(1, -1))[0]
    most = model.config.max_memories
    agent.reset(obs, {**info, "memory_bank": every[:: len(every) // most + 1][:most]})
    in_sight = np.flatnonzero(room.sight[0, pose_index(9, *env.pose)] & room.floor[0])
    env.add_walls([(int(in_sight[0]) % 9, int(in_sight[0]) // 9)])
    walk(env, agent, env.gen_obs(), info, steps=60)
    assert len(agent.worn) > 5
    assert len(agent.memory) + len(agent.worn) <= most


def test_without_adapting_it_keeps_what_was_not_contradicted_itself():
    agent = ESWMAgent(Surveyor(), adapt=False, seed=0)
    for seed in range(5):
        env, obs, info = begin(agent, seed)
        if wall_ahead(env, agent, obs, info) is None:
            continue
        before = {(s, a) for s, a, _ in agent.memory}
        _, _, forgotten, _ = walk(env, agent, obs, info)
        assert before <= {(s, a) for s, a, _ in agent.memory}
        assert len(forgotten) <= 2


@every_model
def test_explores_most_of_a_room(model):
    shared = model()

    def coverage(make):
        found = []
        for seed in range(3):
            agent = make()
            env, obs, info = begin(agent, seed, "ESWM-MiniGridExplore-v0")
            found.append(walk(env, agent, obs, info)[-1]["coverage"])
        return np.mean(found)

    explored = coverage(lambda: ESWMAgent(shared, seed=0))
    assert explored > 0.85
    assert explored > coverage(lambda: RandomAgent(0, n_actions=3)) + 0.1


def test_a_goal_may_be_unknown():
    agent = ESWMAgent(Surveyor(), seed=0)
    obs = {"state": np.full((5, 5), 2, np.uint8), "goal": np.full((5, 5), 3, np.uint8)}
    agent.reset(obs, {})
    assert agent.act(obs, {}) in range(3)
    assert not agent.plan(view_number(obs["state"]), view_number(obs["goal"])).found
    with pytest.raises(ValueError, match="is no view that this agent has seen or imagined"):
        agent.plan(view_number(obs["state"]), 5)
    with pytest.raises(ValueError, match="astar needs a latent map, which a model of views does not have"):
        agent.plan(view_number(obs["state"]), view_number(obs["goal"]), algorithm="astar")


# In the place of a policy


def make_env():
    return MemoryBankObservation(gym.make("ESWM-MiniGrid-v0"))


def test_predict_on_one_environment_does_what_act_and_observe_do():
    for seed in range(3):
        env = make_env()
        obs, info = env.reset(seed=seed)
        [agent] = ESWMAgent(Surveyor(), seed=0).spawn_many(1)
        agent.reset(obs, {"memory_bank": obs["memory_bank"]})
        actions, *_ = walk(env, agent, obs, {})

        env = make_env()
        obs, info = env.reset(seed=seed)
        agent, state, taken, done = ESWMAgent(Surveyor(), seed=0), None, [], False
        while not done and len(taken) < 60:
            action, state = agent.predict(obs, state)
            assert action.shape == () and action.dtype == np.int64
            obs, _, terminated, truncated, _ = env.step(action)
            done = terminated or truncated
            taken.append(int(action))
        assert taken == actions


def test_predict_on_many_environments_does_what_act_and_observe_do_on_each():
    n, steps = 3, 40
    envs = gym.vector.SyncVectorEnv([make_env] * n, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
    obs, _ = envs.reset(seed=5)
    model, starts, state, together = Surveyor(), np.ones(n, bool), None, []
    agent = ESWMAgent(model, seed=0)
    for _ in range(steps):
        actions, state = agent.predict(obs, state, starts)
        assert actions.shape == (n,) and actions.dtype == np.int64
        obs, _, terminated, truncated, _ = envs.step(actions)
        starts = terminated | truncated
        together.append(actions.tolist())
    for i in range(n):
        env, agent = make_env(), ESWMAgent(model, seed=0).spawn_many(n)[i]
        obs, _ = env.reset(seed=5 + i)
        agent.reset(obs, {"memory_bank": obs["memory_bank"]})
        for step in range(steps):
            action = agent.act(obs, {})
            assert action == together[step][i]
            next_obs, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                obs, _ = env.reset()
                agent.reset(obs, {"memory_bank": obs["memory_bank"]})
            else:
                agent.observe(obs, action, next_obs, {})
                obs = next_obs
