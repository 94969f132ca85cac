"""A saved agent goes on as if nothing had happened; what is no saved agent is refused, and no save spoils the last."""

import copy
import hashlib
import json
import multiprocessing
import os
import pickle
import time
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from view_models import placing_model

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent, MemoryBank, Place, saving
from eswm_gym.world_model import (
    CheckpointError,
    Transformer,
    TransformerConfig,
    available,
    load_model,
    save_model,
)
from eswm_gym.world_model.pretrained import WEIGHTS

DATA = Path(__file__).parents[1] / "data"
RANDOM_WALL = WEIGHTS / "random-wall.safetensors"
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture(scope="module")
def random_wall():
    return load_model(RANDOM_WALL)


@pytest.fixture(scope="module")
def views(tmp_path_factory):
    """A model of views that was never trained: that it finds poses is enough to get about."""
    path = tmp_path_factory.mktemp("views") / "model.safetensors"
    save_model(placing_model(), path)
    return path


def play(agent, env_id, steps, between=lambda agent: agent, seed=0, walls=False):
    """All that an agent does and forgets, and how it ends; `between` may put another agent in its place each time."""
    env = gym.make(env_id).unwrapped
    obs, info = env.reset(seed=seed)
    agent.reset(obs, info)
    done = []
    for i in range(steps):
        agent = between(agent)
        if walls and i == 1 and (path := env.room.shortest_path(env.location, env.goal)) and len(path) > 2:
            env.add_walls(path[1:2])
        action = agent.act(obs, info)
        agent = between(agent)
        next_obs, _, terminated, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        done.append((int(action), agent.number(next_obs["state"]), info.get("forgotten")))
        obs = next_obs
        if terminated:
            break
    return done, list(agent.memory), agent.rng.random()


@pytest.mark.parametrize(
    ("env_id", "options", "walls"),
    [
        ("ESWM-RandomWall19-v0", {}, False),
        ("ESWM-RandomWall19-v0", {}, True),
        ("ESWM-RandomWall19-v0", {"algorithm": "astar", "cost": "uncertainty"}, True),
        ("ESWM-RandomWall19-v0", {"trust_memory": False, "adapt": False, "algorithm": "greedy"}, True),
        ("ESWM-OpenArenaExplore-v0", {}, False),
        ("ESWM-RandomWall19Explore-v0", {"exploration": "uncertainty", "capacity": 5, "beta": 0.5}, False),
    ],
)
def test_a_loaded_agent_goes_on_act_by_act_as_the_saved_one_would(env_id, options, walls, tmp_path, random_wall):
    def again(agent):
        agent.save(tmp_path / "agent", model=RANDOM_WALL)
        return ESWMAgent.load(tmp_path / "agent", model=random_wall)

    for seed in range(1 if env_id.endswith("Explore-v0") else 2):
        agents = [ESWMAgent(random_wall, seed=seed, **options) for _ in range(2)]
        expected, found = (
            play(agent, env_id, 15, between, seed, walls)
            for agent, between in zip(agents, (lambda a: a, again), strict=True)
        )
        assert found == expected


@pytest.mark.parametrize("env_id", ["ESWM-MiniGrid-v0", "ESWM-MiniGridExplore-v0"])
def test_a_loaded_agent_that_sees_views_goes_on_too(env_id, tmp_path, views):
    def again(agent):
        agent.save(tmp_path / "agent", model=views)
        return ESWMAgent.load(tmp_path / "agent")

    model = load_model(views)
    expected, found = (play(ESWMAgent(model, seed=2), env_id, 12, between) for between in (lambda a: a, again))
    assert found == expected and len(expected[0]) > 2


def assert_equal_banks(mine, theirs):
    assert (list(mine), mine.capacity, mine.n_actions) == (list(theirs), theirs.capacity, theirs.n_actions)


def test_everything_comes_back(tmp_path, random_wall):
    """Also what no short episode shows: every attribute but the model, bit for bit."""
    agent = ESWMAgent(random_wall, algorithm="astar", seed=5)
    play(agent, "ESWM-RandomWall-v0", 3, seed=4)
    mine = agent.knowledge
    mine.ruled_out.add(4, 5, 4)
    mine.map.add(Place.WALL, 6, 1)
    mine.named = 7
    assert agent.route and mine.goal is not None
    agent.save(tmp_path / "deep" / "agent.json")
    loaded = ESWMAgent.load(tmp_path / "deep" / "agent")
    theirs = loaded.knowledge
    assert vars(loaded).keys() == vars(agent).keys() and vars(theirs).keys() == vars(mine).keys()
    assert (loaded.config, loaded.route) == (agent.config, agent.route)
    assert (theirs.named, theirs.goal) == (mine.named, mine.goal)
    assert (theirs.places, theirs.map.next_name) == ({64: Place.WALL}, 65)
    assert list(theirs.map.moves) == [(6, 1, 64)]
    for name in ("memory", "ruled_out"):
        assert_equal_banks(getattr(mine, name), getattr(theirs, name))
    for name in ("states", "end", "probability", "entropy"):
        one, other = (getattr(knowledge.table, name) for knowledge in (mine, theirs))
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert mine.table.new is theirs.table.new is None  # states are no views
    assert theirs.latent.activations.tobytes() == mine.latent.activations.tobytes()
    assert not any(p.requires_grad for p in loaded.model.parameters())
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["agent.json"]


def test_views_come_back_with_what_is_left_of_outdated_memories(tmp_path, views):
    agent = ESWMAgent(load_model(views), seed=1)
    play(agent, "ESWM-MiniGrid-v0", 4)
    mine = agent.knowledge
    source, end = (mine.number(np.full((5, 5), cell)) for cell in (0, 2))
    mine.partial.add(source, 2, end)
    agent.save(tmp_path / "agent", model=views)
    theirs = ESWMAgent.load(tmp_path / "agent").knowledge
    assert vars(theirs).keys() == vars(mine).keys()
    for name in ("memory", "partial", "ruled_out"):
        assert_equal_banks(getattr(mine, name), getattr(theirs, name))
    assert list(theirs.partial) == [(source, 2, end)]
    np.testing.assert_array_equal(list(theirs.album), list(mine.album))
    assert len(list(theirs.album)) > 20 and (theirs.shown(end) == 2).all()


def explorer_with_news(views, file):
    """A saved agent that has imagined where something is new, its file, and what it sees."""
    env, agent = gym.make("ESWM-MiniGridExplore-v0").unwrapped, ESWMAgent(load_model(views), seed=1)
    obs, info = env.reset(seed=0)
    agent.reset(obs, info)
    agent.act(obs, info)
    agent.save(file, model=views)
    return agent, obs, info


def test_what_is_new_comes_back(tmp_path, views):
    agent, *_ = explorer_with_news(views, tmp_path / "agent")
    new, loaded = agent.knowledge.table.new, ESWMAgent.load(tmp_path / "agent").knowledge.table.new
    assert new.any() and loaded.dtype == new.dtype
    np.testing.assert_array_equal(loaded, new)


def test_tables_saved_before_anything_was_new_in_them_are_imagined_again(tmp_path, views):
    agent, obs, info = explorer_with_news(views, tmp_path / "agent")
    table = json.loads((tmp_path / "agent.json").read_text())["agent"]["table"]
    rewrite(tmp_path / "agent.json", table={name: part for name, part in table.items() if name != "new"})
    loaded = ESWMAgent.load(tmp_path / "agent")
    assert 0 <= loaded.act(obs, info) < 3


def test_a_model_that_comes_with_the_package_is_known_by_its_weights(tmp_path, random_wall):
    agents = [ESWMAgent.from_pretrained("random-wall"), ESWMAgent(random_wall), ESWMAgent(copy.deepcopy(random_wall))]
    for agent in agents:
        agent.save(tmp_path / "v1.0")
        assert json.loads((tmp_path / "v1.0.json").read_text())["agent"]["model"] == {
            "pretrained": "random-wall",
            "sha256": hashlib.sha256(RANDOM_WALL.read_bytes()).hexdigest(),
        }
    with torch.no_grad():
        agents[2].model.norm.weight[0] += 1e-3
    with pytest.raises(ValueError, match="save_model"):
        agents[2].save(tmp_path / "v1.0")
    with pytest.raises(ValueError, match="is not the agent's model"):
        agents[2].save(tmp_path / "v1.0", model=RANDOM_WALL)


@pytest.fixture
def pair(tmp_path):
    """An agent and its own little model, saved side by side."""
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(n_states=7, dim=8, layers=1, heads=1))
    folder = tmp_path / "first"
    save_model(model, folder / "model")
    agent = ESWMAgent(load_model(folder / "model"), seed=0)
    agent.reset({"state": 0}, {"memory_bank": [(0, 0, 1), (1, 0, 2)]})
    agent.save(folder / "agent", model=folder / "model")
    return folder / "agent.json"


def test_agent_and_model_may_be_moved_together(pair):
    moved = pair.parent.rename(pair.parent.with_name("second")) / "agent"
    assert list(ESWMAgent.load(moved).memory) == [(0, 0, 1), (1, 0, 2)]


def test_a_model_that_is_missing_or_another(pair):
    save_model(Transformer(TransformerConfig(n_states=7, dim=8, layers=1, heads=1)), pair.with_name("model"))
    with pytest.raises(CheckpointError, match="model is another model than when"):
        ESWMAgent.load(pair)
    pair.with_name("model.json").unlink()
    with pytest.raises(FileNotFoundError, match=str(pair.with_name("model"))):
        ESWMAgent.load(pair)
    other = Transformer(TransformerConfig(n_states=9, dim=8, layers=1, heads=1))
    with pytest.raises(CheckpointError, match="7 states, this one has 9"):
        ESWMAgent.load(pair, model=other)
    same = Transformer(TransformerConfig(n_states=7, dim=16, layers=1, heads=1))
    assert ESWMAgent.load(pair, model=same).model is same
    with pytest.raises(FileNotFoundError, match="no agent at"):
        ESWMAgent.load(pair.with_name("nosuch"))


# Damaged and foreign files


def rewrite(file, sign=True, **changes) -> None:
    """Change the agent in a file, with its hash right again; "none" takes an entry out."""
    described = json.loads(file.read_text())
    described["agent"] |= changes
    described["agent"] = {key: value for key, value in described["agent"].items() if value != "none"}
    if sign:
        text = json.dumps(described["agent"], sort_keys=True)
        described["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    file.write_text(json.dumps(described))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"3", b"null", b"{}", b"\xff\xfe\x00", b"[" * 100_000, pickle.dumps([1]), b"9" * 5000,
     RANDOM_WALL.with_suffix(".json").read_bytes(), RANDOM_WALL.read_bytes()],
    ids=str,
)  # fmt: skip
def test_foreign_files(tmp_path, content):
    (tmp_path / "agent.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=str(tmp_path / "agent.json")):
        ESWMAgent.load(tmp_path / "agent")


@pytest.mark.parametrize("version", [2, 0, "1", None])
def test_other_versions(pair, version):
    described = json.loads(pair.read_text()) | {"version": version}
    pair.write_text(json.dumps(described))
    with pytest.raises(CheckpointError, match=f"version {version!r}, .* this one reads version 1"):
        ESWMAgent.load(pair)


@in_one_folder
@given(data=st.data())
def test_a_damaged_file_is_refused_or_says_the_same(pair, data):
    good = pair.read_bytes()
    at = data.draw(st.integers(0, len(good) - 1))
    if data.draw(st.booleans()):
        damaged = good[:at]
    else:
        damaged = bytearray(good)
        damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        pair.write_bytes(damaged)
        loaded = ESWMAgent.load(pair)
        assert list(loaded.memory) == [(0, 0, 1), (1, 0, 2)]
        assert json.loads(damaged) == json.loads(good)
    except CheckpointError as error:
        assert str(pair) in str(error)
    finally:
        pair.write_bytes(good)


KEYS = ["model", "n_states", "options", "rng", "memory", "worn", "ruled_out", "places", "moves", "next_place", "views",
        "table", "latent", "named", "ahead", "goal"]  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [{key: "none"} for key in KEYS]
    + [{"options": {"colour": 3}}, {"options": {"cost": "gold"}}, {"memory": [[0, 9, 1]]}, {"memory": [[0, 1]]},
       {"rng": {"bit_generator": "MT19937"}}, {"places": [[7, "HEAVEN"]]}, {"table": {"states": []}},
       {"table": {"states": ["int64", [2], [1]]}}, {"latent": {"states": ["int64", [1], [10**30]]}},
       {"model": {"pretrained": "nosuch", "sha256": ""}}, {"model": [1]}, {"n_states": 8}],
    ids=str,
)  # fmt: skip
def test_what_is_signed_but_no_agent(pair, changes):
    rewrite(pair, **changes)
    with pytest.raises(CheckpointError, match=str(pair)):
        ESWMAgent.load(pair)


def test_a_changed_value_without_the_right_hash(pair):
    rewrite(pair, sign=False, goal=3)
    with pytest.raises(CheckpointError, match="damaged"):
        ESWMAgent.load(pair)


# Interrupted saving


@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_save_that_fails_leaves_the_old_agent(pair, monkeypatch, where):
    agent = ESWMAgent.load(pair)
    agent.memory.add(2, 0, 3)

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(*((os, "fsync", fail) if where == "fsync" else (Path, "replace", fail)))
    with pytest.raises(OSError, match="disk full"):
        agent.save(pair, model=pair.with_name("model"))
    assert list(ESWMAgent.load(pair).memory) == [(0, 0, 1), (1, 0, 2)]


def _save_for_ever(agent, file):
    for end in range(10**9):
        agent.knowledge.memory = MemoryBank([(0, 0, end % 7), (1, 0, end % 7)])
        agent.save(file, model=file.with_name("model"))


@pytest.mark.skipif(os.name != "posix", reason="forks")
def test_a_kill_at_any_moment_leaves_a_whole_agent(pair):
    agent, rng = ESWMAgent.load(pair), np.random.default_rng(0)
    for _ in range(8):
        process = multiprocessing.get_context("fork").Process(target=_save_for_ever, args=(agent, pair))
        process.start()
        time.sleep(rng.uniform(0.01, 0.08))
        process.kill()
        process.join()
        (_, _, one), (_, _, other) = ESWMAgent.load(pair).memory
        assert one == other or (one, other) == (1, 2)


# Files of earlier releases: these must load for ever


@pytest.mark.parametrize(("name", "drawn"), [("agent-v1", [124, 453, 976]), ("agent-views-v1", [473, 511, 755])])
def test_an_agent_that_was_saved_long_ago(name, drawn):
    content = json.loads((DATA / f"{name}.json").read_text())["agent"]
    if content["model"]["pretrained"] not in available():
        pytest.skip("no such model yet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model may have been trained again
        agent = ESWMAgent.load(DATA / name)
    assert [list(transition) for transition in agent.memory] == content["memory"] != []
    assert agent.config.confidence == 0.75
    assert agent.rng.integers(1000, size=3).tolist() == drawn
    obs = {"state": agent.knowledge.shown(content["memory"][0][0] if content["views"] else 11)}
    assert 0 <= agent.act(obs, {}) < agent.n_actions


def test_another_model_of_the_same_name_is_told(tmp_path):
    ESWMAgent.from_pretrained("random-wall").save(tmp_path / "agent")
    reference = {"pretrained": "random-wall", "sha256": "0" * 64}
    rewrite(tmp_path / "agent.json", model=reference)
    with pytest.warns(UserWarning, match="'random-wall' is another one") as caught:
        ESWMAgent.load(tmp_path / "agent")
    assert caught[0].filename == __file__
    assert saving.VERSION == 1, "add a fixture to tests/data and keep the old ones"
