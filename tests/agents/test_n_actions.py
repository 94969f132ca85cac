"""The number of actions is the model's: agents with 4 and with 8, end to end."""

import numpy as np
import pytest
import torch

from eswm_gym.agents import ESWMAgent, MemoryBank, imagine_tables, latent_maps
from eswm_gym.world_model import Transformer, TransformerConfig, load_model, save_model

SIDE = 4  # locations along a side of a square room
STEPS = [(1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]  # the last four for 8 actions only

every_number = pytest.mark.parametrize("n_actions", [4, 8])


def build(n_actions: int) -> Transformer:
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(n_states=20, n_actions=n_actions, dim=16, layers=2, heads=2, max_memories=40))
    model.latent_radius = 1.5
    return model.eval()


def move(state: int, action: int) -> int:
    """In a square room a step off the lattice leads nowhere."""
    x, y = state % SIDE + STEPS[action][0], state // SIDE + STEPS[action][1]
    return x + SIDE * y if 0 <= x < SIDE and 0 <= y < SIDE else state


def mask(state: int, n_actions: int) -> np.ndarray:
    return np.array([move(state, action) != state for action in range(n_actions)], np.int8)


def play(agent, steps, bank, goal=None):
    """States and actions of an episode that begins in state 0; `info` has a mask."""
    state, done = 0, []
    agent.reset({"state": state}, {"memory_bank": bank})
    for _ in range(steps):
        obs = {"state": state} if goal is None else {"state": state, "goal": goal}
        info = {"action_mask": mask(state, agent.n_actions)}
        action = agent.act(obs, info)
        assert info["action_mask"][action]
        state = move(state, action)
        agent.observe(obs, action, {**obs, "state": state}, {})
        done.append((action, state))
    return done


@every_number
@pytest.mark.parametrize("exploration", ["frontier", "uncertainty"])
def test_explores(n_actions, exploration):
    agent = ESWMAgent(build(n_actions), exploration=exploration, seed=0)
    done = play(agent, 60, [])
    assert max(action for action, _ in done) == n_actions - 1
    assert all(move(source, action) == end for source, action, end in agent.memory)
    assert len(agent.memory) <= 40


@every_number
def test_plans_a_remembered_way_to_the_last_action_and_follows_it(n_actions):
    """East, then the last action: south or south-east, away from what lies in between, and back."""
    last, model = n_actions - 1, build(n_actions)
    there = move(5, last)
    bank = [(0, 0, 1), (1, 1, 5), (5, last, there)]
    agent = ESWMAgent(model, seed=0)
    agent.reset({"state": 0}, {"memory_bank": bank})
    table = agent.imagined(0)
    assert table.end.shape == table.probability.shape == table.entropy.shape == (len(table.states), n_actions)
    assert table.end[table.row(5), last] == there and table.probability[table.row(5), last] == 1
    for algorithm in ("dijkstra", "astar", "greedy"):
        plan = agent.plan(0, there, algorithm)
        assert not plan.found or (plan.states[0], plan.states[-1]) == (0, there)
    assert agent.plan(5, there).actions == (last,)
    assert agent.latent_map().activations.shape == (len(agent.memory.states), 16)
    with pytest.raises(ValueError, match=f"an action from 0 to {last}, got"):
        agent.observe({"state": 0}, n_actions, {"state": 1}, {})
    with pytest.raises(ValueError, match=f"action_mask must allow one or more of {n_actions} actions"):
        agent.act({"state": 0}, {"action_mask": [1] * 6})


@every_number
def test_walks_to_goals_and_forgets_what_is_outdated(n_actions):
    agent = ESWMAgent(build(n_actions), seed=0)
    every = [(s, a, move(s, a)) for s in range(SIDE**2) for a in range(n_actions) if move(s, a) != s]
    rng = np.random.default_rng(0)
    bank = [every[i] for i in rng.permutation(len(every))[:40]]
    play(agent, 10, bank, goal=15)
    agent.reset({"state": 0}, {"memory_bank": [(0, 0, 1), (1, 0, 2), (5, 3, 1)]})
    agent.observe({"state": 0}, 0, {"state": 0}, info := {})
    assert sorted(info["forgotten"]) == [(0, 0, 1), (1, 0, 2), (5, 3, 1)]
    assert list(agent.memory) == [(0, 0, 0)]


@every_number
def test_imagines_each_move_as_if_asked_alone(n_actions):
    model, bank = build(n_actions), MemoryBank([(0, 0, 1), (5, n_actions - 1, 7)])
    (table,) = imagine_tables(model, [bank])
    encoded = model.encode(torch.from_numpy(bank.to_numpy())[None])
    for row, state in enumerate([0, 1, 5, 7]):
        for action in range(n_actions):
            cells, unknown, _ = model.imagine(encoded, torch.tensor([[[state]]]), torch.tensor([[action]]))
            p = torch.cat([cells[0, 0, 0], unknown[0]])
            end = int(p.argmax())
            assert table.end[row, action] == (end if end < 20 else -1)
            assert table.probability[row, action] == pytest.approx(float(p.max()), abs=1e-5)
    assert latent_maps(model, [bank])[0].states.tolist() == [0, 1, 5, 7]


@every_number
def test_predicts_for_many_environments_as_for_one(n_actions):
    agent, steps = ESWMAgent(build(n_actions), seed=0), 5

    def run(states, agent, state=None):
        taken = []
        for _ in range(steps):
            masks = np.array([mask(s, n_actions) for s in states])
            actions, state = agent.predict({"state": np.array(states), "action_mask": masks}, state)
            states = [move(s, a) for s, a in zip(states, actions.tolist(), strict=True)]
            taken.append(actions.tolist())
        return taken

    together = run([0, 9], agent)
    assert np.shape(together) == (steps, 2) and np.max(together) < n_actions
    first = [agent.spawn_many(2)[0]]
    first[0].spawn_many = lambda n: first
    assert run([0], first[0]) == [row[:1] for row in together]


@every_number
def test_a_saved_agent_goes_on_as_it_would_have(n_actions, tmp_path):
    model = build(n_actions)
    save_model(model, tmp_path / "model")
    agent = ESWMAgent(load_model(tmp_path / "model"), seed=0)
    play(agent, 6, [])
    agent.save(tmp_path / "agent", model=tmp_path / "model")
    loaded = ESWMAgent.load(tmp_path / "agent")
    assert list(loaded.memory) == list(agent.memory) and loaded.memory.n_actions == n_actions
    for state in (0, 5, 10):
        info = {"action_mask": mask(state, n_actions)}
        assert loaded.act({"state": state}, info) == agent.act({"state": state}, info)
