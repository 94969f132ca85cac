"""Whatever comes in: it is taken, or refused with a ValueError, and what was refused has changed nothing."""

import copy
import operator

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent, MemoryBank, imagine_tables
from eswm_gym.agents.states import ViewAlbum
from eswm_gym.agents.views import imagine_views
from eswm_gym.rooms.grid import EMPTY, HERE, GridConfig, cover_bank, generate_grids
from eswm_gym.world_model import (
    OverlapConfig,
    OverlapModel,
    Transformer,
    TransformerConfig,
    ViewTransformer,
    ViewTransformerConfig,
    load_pretrained,
)

few = settings(max_examples=40, deadline=None)
numbers = st.integers(-3, 70) | st.integers(-(2**70), 2**70)
junk = st.one_of(
    st.none(), st.booleans(), numbers, st.floats(), st.text(max_size=3), st.binary(max_size=3), st.complex_numbers(),
    st.lists(st.integers(-3, 9), max_size=7), st.dictionaries(st.text(max_size=2), numbers, max_size=2),
    st.sampled_from([object(), np.nan, np.zeros((2, 2)), np.array([1.5]), np.int8(3), np.array("x"), [[1, 2], [3]]]),
)  # fmt: skip
IDS = ("ESWM-RandomWall19-v0", "ESWM-OpenArenaExplore-v0", "ESWM-MiniGrid-v0")


@pytest.fixture(scope="module", params=IDS)
def env(request):
    env = gym.make(request.param).unwrapped
    env.reset(seed=0)
    return env


@few
@given(action=junk)
def test_actions(env, action):
    """Only an integer of the action space is one, a NumPy integer too."""
    before = env.get_state()
    try:
        obs, *_ = env.step(action)
    except ValueError as error:
        assert "action must be an integer from 0 to" in str(error)
        assert env.get_state() == before
    else:
        assert 0 <= operator.index(action) < env.action_space.n
        assert obs in env.observation_space


@pytest.mark.parametrize("action", [False, True])
def test_a_bool_is_the_action_0_or_1(env, action):
    """Gymnasium's `Discrete` takes one for 0 or 1."""
    assert env.action_space.contains(action)
    twin = copy.deepcopy(env)
    assert env.step(action)[1:4] == twin.step(int(action))[1:4]


@few
@given(options=st.dictionaries(st.sampled_from(["room", "grid", "start", "goal", "x"]), junk, min_size=1, max_size=3))
def test_reset_options(env, options):
    before = env.get_state()
    known = {"start", "room" if hasattr(env, "room") else "grid"} | ({"goal"} if env.task == "navigate" else set())
    try:
        obs, _ = env.reset(options=options)
    except ValueError:
        env.np_random.bit_generator.state = before["rng"]  # a start may have been drawn before the goal was refused
        assert env.get_state() == before
    else:
        assert set(options) <= known
        assert obs in env.observation_space


@few
@given(where=st.lists(junk, max_size=3))
def test_walls(env, where):
    before = env.get_state()
    for change in (env.add_walls, env.remove_walls):
        try:
            change(where)
        except ValueError:
            assert env.get_state() == before
        else:
            env.set_state(before)


@few
@given(value=junk, key=st.sampled_from(["location", "pose", "goal", "visited", "seen", "step_count", "grid"]))
def test_a_state_to_go_back_to(env, value, key):
    before = env.get_state()
    if key not in before:
        return
    try:
        env.set_state({**before, key: value})
    except ValueError:
        assert env.get_state() == before
    else:
        env.set_state(before)


# Memory banks


rows = st.lists(junk | st.tuples(numbers, st.integers(-1, 7), numbers), max_size=12)


@given(rows=rows, capacity=st.none() | st.integers(1, 4))
def test_a_bank_holds_one_end_for_each_move_or_says_what_is_no_transition(rows, capacity):
    try:
        bank = MemoryBank(rows, capacity, n_actions=6)
    except ValueError:
        return
    wanted = {(s, a): e for s, a, e in rows if a >= 0}  # later ones overrule
    assert {(s, a): e for s, a, e in bank} == wanted
    assert all(0 <= a < 6 and s >= 0 and e >= 0 for s, a, e in bank)
    assert capacity is None or len(bank) <= capacity


@pytest.fixture(scope="module")
def random_wall():
    return load_pretrained("random-wall")


transitions = st.tuples(st.integers(0, 63), st.integers(0, 5), st.integers(0, 63))


@settings(max_examples=15, deadline=None)
@given(bank=st.lists(transitions, max_size=90), state=st.integers(0, 63), goal=st.integers(0, 63))
def test_an_agent_takes_any_bank_of_its_vocabulary_however_absurd(random_wall, bank, state, goal):
    """Duplicates and contradictions (the last one counts), loops, states far apart, a goal in no memory."""
    agent = ESWMAgent(random_wall, seed=0)
    obs = {"state": state, "goal": goal}
    kept = {(s, a): e for s, a, e in bank}
    if len(kept) > 74:
        with pytest.raises(ValueError, match="capacity of 74"):
            agent.reset(obs, {"memory_bank": bank})
        return
    agent.reset(obs, {"memory_bank": bank})
    assert {(s, a): e for s, a, e in agent.memory} == kept
    action = agent.act(obs, {})
    assert 0 <= operator.index(action) < 6
    agent.observe(obs, action, {"state": goal, "goal": goal}, {})
    plan = agent.plan(state, goal)
    assert plan.states == () or (plan.states[0], plan.states[-1]) == (state, goal)


@pytest.mark.parametrize("state", [64, 65, 999])
def test_states_of_a_bank_outside_the_vocabulary(random_wall, state):
    agent = ESWMAgent(random_wall, seed=0)
    agent.reset({"state": 0}, {"memory_bank": [(0, 0, 1)]})
    with pytest.raises(ValueError, match=f"state {state} is outside the vocabulary"):
        agent.reset({"state": 0}, {"memory_bank": [(0, 0, state)]})
    for states in ((0, state), (state, 0)):
        with pytest.raises(ValueError, match=f"state {state} is outside the vocabulary"):
            agent.observe({"state": states[0]}, 0, {"state": states[1]}, {})
    assert list(agent.memory) == [(0, 0, 1)]


# Observations


@pytest.mark.parametrize("state", [-1, 64, 2**62, 2**70, float("nan"), "x", np.array([0, 1] * 4), np.ones((5, 5))])
def test_states_outside_the_vocabulary(random_wall, state):
    agent = ESWMAgent(random_wall, seed=0)
    agent.reset({"state": 0}, {"memory_bank": [(0, 0, 1)]})
    for obs in ({"state": state}, {"state": 0, "goal": state}):
        if "goal" in obs and np.ndim(state) == 0 and state == -1:  # a goal that is not known yet
            continue
        with pytest.raises(ValueError):
            agent.act(obs, {})
        if np.ndim(state) == 0:  # else it is the states of many environments
            with pytest.raises(ValueError):
                agent.predict(obs)


NO_STATES = [
    1.5,
    "3",
    np.float32(3.7),
    np.array([0, 2, 0, 1, 0, 1]),
    np.zeros(6),
    np.zeros((4, 5), int),
    np.ones((5, 5)),
]


@pytest.mark.parametrize("state", NO_STATES)
def test_what_is_no_state(random_wall, state):
    agent = ESWMAgent(random_wall, seed=0)
    agent.reset({"state": 0}, {"memory_bank": [(0, 0, 1)]})
    with pytest.raises(ValueError, match="a state is an integer") as caught:
        agent.act({"state": state}, {})
    assert repr(state) in str(caught.value)


@pytest.mark.parametrize("action", [6, -1, 2**70])
def test_an_action_that_cannot_have_been_is_not_remembered(random_wall, action):
    agent = ESWMAgent(random_wall, seed=0)
    agent.reset({"state": 0}, {})
    with pytest.raises(ValueError, match="an action from 0 to 5"):
        agent.observe({"state": 0}, action, {"state": 1}, {})
    assert len(agent.memory) == 0


@pytest.mark.parametrize("action", [1.5, 7.0, "1", None])
def test_an_action_of_another_type_is_not_remembered(random_wall, action):
    agent = ESWMAgent(random_wall, seed=0)
    agent.reset({"state": 0}, {})
    with pytest.raises(ValueError, match="a transition is three integers"):
        agent.observe({"state": 0}, action, {"state": 1}, {})
    assert len(agent.memory) == 0


def test_predict_tells_how_many_environments_it_was_given(random_wall):
    agent = ESWMAgent(random_wall, seed=0)
    _, one = agent.predict({"state": np.array([0])})
    with pytest.raises(ValueError, match="state is of 1 environments, the observation of 2"):
        agent.predict({"state": np.array([0, 1])}, one)
    for state in (None, one):
        with pytest.raises(ValueError, match="episode_start is of 3 environments, the observation of 1"):
            agent.predict({"state": np.array([0])}, state, np.zeros(3, bool))


@pytest.mark.parametrize("mask", [[0] * 6, [1] * 5, [1] * 7, 1, []])
def test_masks_of_another_length_or_of_no_action(random_wall, mask):
    agent = ESWMAgent(random_wall, seed=0)
    agent.reset({"state": 0}, {})
    with pytest.raises(ValueError, match="action_mask must allow one or more of 6 actions"):
        agent.act({"state": 0}, {"action_mask": mask})


# Views


@pytest.fixture(scope="module", params=[True, False], ids=["trusting", "doubting"])
def view_agent(request):
    torch.manual_seed(0)
    return ESWMAgent(OverlapModel(OverlapConfig(dim=16, layers=1)).eval(), seed=0, trust_memory=request.param)


@few
@given(seed=st.integers(0, 10**6), low=st.integers(-300, 9), high=st.integers(9, 300))
def test_views_of_other_classes_are_refused_and_others_taken(view_agent, seed, low, high):
    view = np.random.default_rng(seed).integers(min(low, 8), high + 1, size=(5, 5))
    view.flat[HERE] = EMPTY
    obs = {"state": view, "goal": np.zeros((5, 5), np.uint8)}
    outside = (view < 0) | (view > 8)
    if outside.any():
        with pytest.raises(ValueError, match=f"cell {view[outside][0]} of a view is outside the classes 0 ... 8"):
            view_agent.reset(obs, {})
            view_agent.plan(view_agent.number(view), view_agent.number(obs["goal"]))
    else:
        view_agent.reset(obs, {})
        assert 0 <= view_agent.act(obs, {}) < 3


@pytest.mark.parametrize("shape", [(), (1,), (4, 5), (2, 5, 5), (0,)])
def test_views_of_another_shape_are_refused(view_agent, shape):
    obs = {"state": np.zeros((5, 5), np.uint8)}
    view_agent.reset(obs, {})
    with pytest.raises(ValueError):
        view_agent.plan(view_agent.number(obs["state"]), view_agent.number(np.ones(shape, np.uint8)))


@pytest.mark.parametrize("columns", [3, 50, 52])
def test_banks_of_views_of_another_width(view_agent, columns):
    with pytest.raises(ValueError, match=r"a bank of views must be \(N, 51\), got \(2, "):
        view_agent.reset({"state": np.zeros((5, 5), np.uint8)}, {"memory_bank": np.ones((2, columns), int)})


# A model whose weights are damaged


def damage(model, name: str, value: float):
    model = copy.deepcopy(model)
    with torch.no_grad():
        dict(model.named_parameters())[name].fill_(value)
    return model


SMALL = Transformer(TransformerConfig(n_states=9, dim=8, layers=1, heads=1)).eval()
VIEWS = ViewTransformer(ViewTransformerConfig(dim=8, layers=1, heads=1, cell_dim=2)).eval()
OVERLAP = OverlapModel(OverlapConfig(dim=16, layers=1)).eval()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["blocks.0.up.weight", "norm.weight"])
def test_a_model_that_predicts_nan_is_named_and_makes_no_plan(name, value):
    model = damage(SMALL, name, value)
    with pytest.raises(ValueError, match=r"Transformer predicts nan.*n_states=9"):
        imagine_tables(model, [MemoryBank([(0, 1, 2)])])
    agent = ESWMAgent(model, seed=0)
    obs = {"state": 0, "goal": 5}
    agent.reset(obs, {"memory_bank": [(0, 1, 2), (2, 1, 5)]})
    asks = [lambda: agent.act(obs, {}), lambda: agent.plan(0, 5), lambda: agent.explore(0)]
    if name.startswith("blocks"):  # the last of which is the latent space
        asks.append(agent.latent_map)
    for ask in asks:
        with pytest.raises(ValueError, match="Transformer predicts nan"):
            ask()


@pytest.mark.parametrize(
    ("model", "name"),
    [(VIEWS, "norm.weight"), (VIEWS, "unknown.weight"), (OVERLAP, "norm.weight"), (OVERLAP, "unknown.2.weight")],
    ids=["plain-norm", "plain-unknown", "overlap-norm", "overlap-unknown"],
)
def test_a_model_of_views_that_predicts_nan(model, name):
    rng, album = np.random.default_rng(0), ViewAlbum()
    rows = cover_bank(generate_grids(rng, 1, GridConfig())[0], rng)
    bank = MemoryBank(album.transitions(rows), n_actions=3)
    with pytest.raises(ValueError, match=f"{type(model).__name__} predicts nan"):
        imagine_views(damage(model, name, float("nan")), [bank], [album])
