"""The agent in rooms of MiniGrid."""

import gymnasium as gym
import numpy as np
import pytest
from view_models import Surveyor, TrueModel, distinct_room, numbers

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.baselines import MapOnly, RandomAgent
from eswm_gym.agents.states import view_number
from eswm_gym.rooms.grid import (
    GridBatch,
    pose_index,
    rows_of,
)
from eswm_gym.world_model import available
from eswm_gym.wrappers import MemoryBankObservation


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
    for action, _ in agent.route:
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
        true = transitions_of(GridBatch.of(env.grid_classes[None]))
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
    room = GridBatch.of(env.grid_classes[None])
    pose, action = np.divmod(np.flatnonzero(room.free[0])[:, None] * 3 + np.arange(3), 3)
    every = rows_of(room, pose.reshape(1, -1), action.reshape(1, -1))[0]
    most = model.config.max_memories
    agent.reset(obs, {**info, "memory_bank": every[:: len(every) // most + 1][:most]})
    in_sight = np.flatnonzero(room.sight[0, pose_index(9, *env.pose)] & room.floor[0])
    env.add_walls([(int(in_sight[0]) % 9, int(in_sight[0]) // 9)])
    walk(env, agent, env.gen_obs(), info, steps=60)
    assert len(agent.knowledge.partial) > 5
    assert len(agent.memory) + len(agent.knowledge.partial) <= most


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


def make_env():
    return MemoryBankObservation(gym.make("ESWM-MiniGrid-v0"))


@pytest.mark.parametrize("model", [Surveyor, MapOnly])
def test_learns_nothing_from_a_view_with_a_cell_of_no_class(model):
    agent = ESWMAgent(model())
    _, obs, _ = begin(agent, 0)
    held = agent.memory.copy()
    broken = {**obs, "state": np.where(np.eye(5, dtype=bool), np.uint8(9), obs["state"])}
    for before, after in ((obs, broken), (broken, obs)):
        with pytest.raises(ValueError, match="cell 9 of a view is outside the classes 0 ... 8"):
            agent.observe(before, 0, after, {})
    assert agent.memory == held
    with pytest.raises(ValueError, match="cell 9 of a view"):
        agent.act(broken, {})


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
