"""Agents whose views have errors, and which do not take what they see for a fact."""

import gymnasium as gym
import numpy as np
import pytest
from view_models import placing_model

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.baselines import MapOnly
from eswm_gym.agents.knowledge import knowledge_of
from eswm_gym.agents.symbols import SymbolKnowledge
from eswm_gym.agents.uncertain_views import UncertainViews
from eswm_gym.agents.views import ViewKnowledge, best_match
from eswm_gym.rooms.grid import HERE
from eswm_gym.world_model import Transformer, TransformerConfig, ViewTransformer, ViewTransformerConfig, save_model
from eswm_gym.wrappers import ViewErrors


def make(share=0.05, env_id="ESWM-MiniGrid-v0"):
    return ViewErrors(gym.make(env_id), share)


def play(agent, env, seed, steps=60, between=lambda agent: agent):
    """Actions until the episode ends, whether it arrived, and the agent; `between` may put another in its place."""
    obs, info = env.reset(seed=seed)
    agent.reset(obs, info)
    actions, terminated, truncated = [], False, False
    while not (terminated or truncated) and len(actions) < steps:
        agent = between(agent)
        action = agent.act(obs, info)
        agent = between(agent)
        following, _, terminated, truncated, info = env.step(action)
        agent.observe(obs, action, following, info)
        obs = following
        actions.append(int(action))
    return actions, terminated, agent


def doubting(model=None, seed=0, **options):
    return ESWMAgent(MapOnly.for_errors() if model is None else model, seed=seed, trust_memory=False, **options)


def test_which_knowledge_goes_with_which_model():
    views = [MapOnly(), placing_model(), ViewTransformer(ViewTransformerConfig(dim=8, layers=1, heads=1, cell_dim=2))]
    for model in views:
        assert knowledge_of(model) is knowledge_of(model, True) is ViewKnowledge
        assert knowledge_of(model, False) is UncertainViews
    symbols = Transformer(TransformerConfig(n_states=9, dim=8, layers=1, heads=1))
    assert knowledge_of(symbols, True) is knowledge_of(symbols, False) is SymbolKnowledge
    assert type(ESWMAgent(MapOnly()).knowledge) is ViewKnowledge
    assert type(doubting().knowledge) is type(doubting().spawn(1).knowledge) is UncertainViews


def test_reaches_goals_though_cells_are_wrong():
    arrived = [play(doubting(), make(), seed)[1] for seed in range(4)]
    assert np.mean(arrived) >= 0.75


def test_without_errors_it_walks_shortest_ways():
    for seed in range(2):
        env = make(0.0)
        env.reset(seed=seed)
        shortest = env.unwrapped.shortest_path_length
        actions, arrived, _ = play(doubting(MapOnly()), env, seed)
        assert arrived and len(actions) == shortest


def test_the_same_seed_acts_the_same_way():
    one, other = (play(doubting(seed=3), make(0.1), 5)[0] for _ in range(2))
    assert one == other


def test_a_view_with_errors_is_the_state_that_it_was_without_them():
    """Where the memories show the place."""
    env = make(0.0)
    obs, info = env.reset(seed=0)
    agent = doubting()
    agent.reset(obs, info)
    agent.act(obs, info)
    state = agent.number(obs["state"])
    np.testing.assert_array_equal(agent.knowledge.shown(state), obs["state"].reshape(25))
    lit = [cell for cell in np.flatnonzero(obs["state"].reshape(25) > 1) if cell != HERE][:3]
    for cell in lit:
        wrong = obs["state"].copy()
        wrong.flat[cell] = 2 + (wrong.flat[cell] - 1) % 7
        assert agent.number(wrong) == state


def test_the_model_reads_views_as_they_were_seen():
    env = make(0.2)
    obs, info = env.reset(seed=1)
    agent = doubting()
    agent.reset(obs, info)
    bank = info["memory_bank"][info["memory_bank"][:, 0] >= 0]
    np.testing.assert_array_equal(agent.knowledge.album.rows(agent.knowledge.partial), bank)
    action = agent.act(obs, info)
    following, *_ = env.step(action)
    agent.observe(obs, action, following, {})
    last = agent.knowledge.album.rows(agent.knowledge.partial)[-1]
    np.testing.assert_array_equal(last, [*obs["state"].flat, action, *following["state"].flat])
    assert len(agent.memory) <= len(agent.knowledge.partial) == len(bank) + 1


def test_one_surprise_deletes_no_memory():
    env = make(0.1)
    obs, info = env.reset(seed=2)
    agent = doubting()
    agent.reset(obs, info)
    held = len(agent.knowledge.partial)
    for _ in range(8):
        action = agent.act(obs, info)
        following, _, terminated, _, info = env.step(action)
        agent.observe(obs, action, following, info)
        assert "forgotten" not in info
        obs = following
        if terminated:
            break
    assert len(agent.knowledge.partial) > held


def test_explores_without_a_memory_bank():
    env = make(0.05, "ESWM-MiniGridExplore-v0")
    actions, _, agent = play(doubting(), env, 0, steps=15)
    assert set(actions) <= {0, 1, 2} and len(agent.knowledge.partial) > 5


def test_a_full_bank_forgets_its_oldest_memories():
    env = make(0.05)
    obs, info = env.reset(seed=0)
    n = int((info["memory_bank"][:, 0] >= 0).sum())
    agent = doubting(capacity=n)
    play(agent, env, 0, steps=4)
    assert len(agent.knowledge.partial) <= n and len(agent.memory) <= n


@pytest.mark.parametrize("cell", [9, 200])
def test_a_view_with_a_cell_of_no_class_is_refused(cell):
    env = make(0.0)
    obs, info = env.reset(seed=0)
    agent = doubting()
    agent.reset(obs, info)
    held = agent.memory.copy(), agent.knowledge.partial.copy()
    broken = {**obs, "state": np.where(np.eye(5, dtype=bool), np.uint8(cell), obs["state"])}
    for before, after in ((obs, broken), (broken, obs)):
        with pytest.raises(ValueError, match=f"cell {cell} of a view is outside the classes 0 ... 8"):
            agent.observe(before, 0, after, {})
    assert (agent.memory, agent.knowledge.partial) == held
    with pytest.raises(ValueError, match=f"cell {cell} of a view"):
        agent.act(broken, {})


@pytest.mark.parametrize("env_id", ["ESWM-MiniGrid-v0", "ESWM-MiniGridExplore-v0"])
def test_questions_to_a_copy_leave_the_agent_as_it_was(env_id):
    env = make(0.4, env_id)
    obs, info = env.reset(seed=0)
    asked, plain = doubting(), doubting()
    for agent in (asked, plain):
        agent.reset(obs, info)
        agent.act(obs, info)
    others = [env.step(action)[0]["state"] for action in (0, 0, 1, 2)]
    twin = asked.knowledge.copy()
    states = [twin.number(view) for view in others]
    twin.imagine([twin], states[:1])
    for view in others:
        number = asked.number(view)
        np.testing.assert_array_equal(asked.knowledge.shown(number), plain.knowledge.shown(plain.number(view)))
    assert asked.knowledge.to_dict() == plain.knowledge.to_dict()


def test_a_loaded_agent_goes_on_as_the_saved_one_would(tmp_path):
    save_model(placing_model(), tmp_path / "model")

    def again(agent):
        agent.save(tmp_path / "agent", model=tmp_path / "model")
        return ESWMAgent.load(tmp_path / "agent")

    (one, _, mine), (other, _, theirs) = (
        play(doubting(placing_model(), seed=2), make(0.1), seed=1, steps=5, between=between)
        for between in (lambda agent: agent, again)
    )
    assert one == other and len(one) == 5
    assert type(theirs.knowledge) is UncertainViews
    assert list(theirs.memory) == list(mine.memory)
    assert list(theirs.knowledge.partial) == list(mine.knowledge.partial)
    assert theirs.rng.random() == mine.rng.random()


def test_what_a_saved_agent_remembers_comes_back_with_its_capacity(tmp_path):
    save_model(placing_model(), tmp_path / "model")
    _, _, agent = play(doubting(placing_model(), capacity=30), make(0.1), 1, steps=4)
    agent.save(tmp_path / "agent", model=tmp_path / "model")
    mine, theirs = agent.knowledge, ESWMAgent.load(tmp_path / "agent").knowledge
    for name in ("memory", "partial"):
        one, other = getattr(mine, name), getattr(theirs, name)
        assert (list(one), one.capacity, one.n_actions) == (list(other), other.capacity, other.n_actions)
    np.testing.assert_array_equal(list(theirs.album), list(mine.album))


# Which known view an imagined one is


def test_the_view_that_fits_best_unless_it_can_be_told_apart():
    known = np.full((3, 25), 2)
    known[1, 4], known[2, :10] = 5, 7
    p = np.full((25, 9), 1e-6)
    p[np.arange(25), known[1]] = 1.0
    assert best_match(p, known) == 1
    p[4] = 1e-6
    p[4, [2, 5]] = 0.4, 0.6  # the first two cannot be told apart
    assert best_match(p, known) == 1
    assert best_match(p, known[[0, 2]]) == 0
    p[4, [2, 5]] = 0.001, 0.999
    assert best_match(p, known[[0, 2]]) is None
    assert best_match(p, known[:0]) is None
