"""What an agent believes, and pictures of it."""

import copy
import json
import pickle
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import RenderCollection

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.beliefs import RenderBeliefs, beliefs, render_beliefs
from eswm_gym.agents.recorder import EpisodeRecorder
from eswm_gym.world_model import load_pretrained

MODELS = {"ESWM-RandomWall-v0": "random-wall", "ESWM-OpenArena-v0": "random-wall", "ESWM-MiniGrid-v0": "minigrid"}


def begin(env_id="ESWM-RandomWall-v0", seed=19, **options):
    env = gym.make(env_id, **options)
    agent = ESWMAgent(load_pretrained("minigrid" if "MiniGrid" in env_id else "random-wall"), seed=0)
    obs, info = env.reset(seed=seed)
    agent.reset(obs, info)
    return env, agent, obs, info


def walk(env, agent, obs, info, look=False):
    """The actions of the rest of the episode, and each info."""
    actions, infos, done = [], [], False
    while not done:
        if look:
            beliefs(agent, agent.number(obs["state"]))
        actions.append(agent.act(obs, info))
        if look:
            beliefs(agent, agent.number(obs["state"]))
        next_obs, _, terminated, truncated, info = env.step(actions[-1])
        agent.observe(obs, actions[-1], next_obs, info)
        infos.append(info)
        obs, done = next_obs, terminated or truncated
    return actions, infos


@pytest.mark.parametrize("env_id", MODELS)
def test_are_the_agents_own(env_id):
    env, agent, obs, info = begin(env_id)
    agent.act(obs, info)
    state = agent.number(obs["state"])
    believed = beliefs(agent, state)
    assert believed.state == state and believed.memories == tuple(agent.memory)
    assert set(believed.known) == {state, *agent.memory.states}
    assert believed.plan[-1][1] == agent.number(obs["goal"])
    moves = {move[:2] for move in (*believed.memories, *believed.imagined, *believed.frontier)}
    assert moves >= {(known, action) for known in believed.known for action in range(env.action_space.n)}
    assert all(0 <= p <= 1 for *_, p in believed.imagined)
    assert json.loads(json.dumps(believed.to_dict()))["state"] == state


def test_imagined_moves_are_true():
    env, agent, obs, _ = begin()
    room = env.unwrapped.room
    believed = beliefs(agent, int(obs["state"]))
    true = [room.next_state(s, a) == e for s, a, e, _ in believed.imagined]
    assert len(true) > 100 and np.mean(true) > 0.98


def test_without_memories_all_is_unknown():
    env, agent, obs, info = begin("ESWM-RandomWallExplore-v0")
    state = int(obs["state"])
    agent.act(obs, info)  # names the places around, and walls off what the mask rules out
    believed = beliefs(agent, state)
    assert believed.known == (state,) and believed.memories == believed.plan == ()
    assert {action for _, action in believed.frontier} == set(np.flatnonzero(info["action_mask"]).tolist())


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall-v0", "ESWM-RandomWallExplore-v0", "ESWM-MiniGrid-v0"])
def test_looking_changes_nothing(env_id):
    assert walk(*begin(env_id), look=True)[0] == walk(*begin(env_id))[0]


@pytest.mark.parametrize("env_id", MODELS)
def test_looking_does_not_change_what_is_saved(env_id, tmp_path):
    """Byte for byte, also when the agent has not seen the view that it is asked about."""
    env, agent, obs, info = begin(env_id)
    recorder = EpisodeRecorder(env, agent)
    recorder.reset(obs, info)

    def saved():
        agent.save(tmp_path / "agent")
        return (tmp_path / "agent.json").read_bytes()

    for _ in range(3):
        before = saved()
        beliefs(agent, obs["state"])
        if env_id == "ESWM-RandomWall-v0":
            render_beliefs(env, agent)
        recorder.to_dict()
        assert saved() == before
        action = recorder.act(obs, info)
        obs, *_, info = env.step(action)
        recorder.observe(obs, action, obs, info)
        if env_id == "ESWM-MiniGrid-v0":
            obs = {key: np.full((5, 5), 2 + i, np.uint8) for i, key in enumerate(obs)}


def test_forgotten():
    env, agent, obs, info = begin()
    plan = agent.plan(int(obs["state"]), int(obs["goal"]))
    env.unwrapped.add_walls([env.unwrapped.room.location_of(plan.states[1])])
    action = agent.act(obs, info)
    next_obs, *_, info = env.step(action)
    agent.observe(obs, action, next_obs, info)
    plain = render_beliefs(env, agent)
    believed = beliefs(agent, int(next_obs["state"]), info["forgotten"])
    assert believed.forgotten and not set(believed.forgotten) & set(believed.memories)
    assert plan.states[1] not in believed.known
    crossed = render_beliefs(env, agent, info["forgotten"])
    assert crossed.shape == plain.shape and (crossed != plain).any()


def test_pictures_take_turns_with_the_agent():
    env, agent, obs, info = begin(render_mode="rgb_array")
    width = env.render().shape[1]
    shown = RenderCollection(RenderBeliefs(env, agent))  # draws as RecordVideo does
    obs, info = shown.reset(seed=19)  # when the agent still has the memories of the last episode: none are drawn
    agent.reset(obs, info)
    walk(shown, agent, obs, info)
    frames = shown.render()
    assert all(frame.dtype == np.uint8 and frame.shape == frames[0].shape for frame in frames)
    assert frames[0].shape[1] == width
    changed = [(a != b).any(2).mean() for a, b in pairwise(frames)]
    assert changed[0] > 3 * max(changed[1:]) > 0


def test_window(monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env, agent, *_ = begin(render_mode="human")
    shown = RenderBeliefs(env, agent)
    assert shown.render_mode == "human"
    obs, info = shown.reset(seed=1)
    agent.reset(obs, info)
    shown.step(agent.act(obs, info))
    assert shown.render() is None and shown._renderer.screen.window is not None
    shown.close()
    assert shown._renderer.screen.window is None


def test_only_rooms_of_ours_and_pixels():
    agent = ESWMAgent(load_pretrained("random-wall"))
    for draw in (render_beliefs, RenderBeliefs):
        with pytest.raises(ValueError, match="hexagonal rooms and MiniGrid rooms"):
            draw(gym.make("CartPole-v1", render_mode="rgb_array"), agent)
    squares = gym.make("ESWM-Lattice-v0")
    squares.reset(seed=0)
    with pytest.raises(ValueError, match="not over a square"):
        render_beliefs(squares, agent)
    with pytest.raises(ValueError, match="render_mode"):
        RenderBeliefs(gym.make("ESWM-RandomWall-v0"), agent)


def test_minigrid_shows_where_the_views_are_that_the_agent_knows():
    env = gym.make("ESWM-MiniGrid-v0", render_mode="rgb_array", memory_bank="none", highlight=False)
    agent = ESWMAgent.from_pretrained("minigrid")
    shown = RenderBeliefs(env, agent)
    obs, info = shown.reset(seed=1)
    plain = shown.render()
    agent.reset(obs, info)
    assert agent.act(obs, info) in range(3)
    picture, size = shown.render(), env.unwrapped.tile_size
    assert picture.shape == plain.shape
    changed = (picture != plain).any(-1)[: 9 * size].reshape(9, size, 9, size).any((1, 3))
    x, y, heading = env.unwrapped.pose
    assert changed[y, x]  # its own view, the only one that it knows
    ahead = {0: (0.84, 0.5), 1: (0.5, 0.84), 2: (0.16, 0.5), 3: (0.5, 0.16)}[heading]
    at = [round((cell + part) * size) for cell, part in zip((y, x), ahead[::-1], strict=True)]
    assert picture[tuple(at)].tolist() == [255, 255, 255]
    assert set(map(tuple, np.argwhere(changed))) <= set(map(tuple, np.argwhere(env.unwrapped.grid_classes != 1)))


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_environments_that_draw_beliefs_can_be_copied(twin_of):
    env, agent, obs, info = begin(render_mode="rgb_array")
    env = RenderBeliefs(env, agent)
    env.reset(seed=19)
    agent.reset(obs, info)
    agent.act(obs, info)
    picture = env.render()
    assert np.array_equal(twin_of(env).render(), picture)
