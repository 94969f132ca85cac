"""The agent with a model that knows the truth: what goes wrong then is the doing of the agent."""

import copy
import pickle

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
from symbol_models import Dreamer, ReverseModel, TrueModel, make, true_graph, walk

import eswm_gym  # noqa: F401
from eswm_gym.agents import AgentConfig, ESWMAgent, MemoryBank, TransitionTable
from eswm_gym.agents.baselines import MapOnly
from eswm_gym.rooms import Room
from eswm_gym.world_model import load_pretrained


@pytest.mark.parametrize("seed", range(5))
def test_walks_a_shortest_path(small, seed):
    env, agent = make(small)
    obs, info = env.reset(seed=seed, options={"room": small})
    agent.reset(obs, info)
    shortest = nx.shortest_path_length(true_graph(small), int(obs["state"]), int(obs["goal"]))
    plan = agent.plan(int(obs["state"]), int(obs["goal"]))
    assert plan.found and len(plan) == shortest and plan.probability == pytest.approx(1, abs=1e-3)
    assert len(walk(env, agent, obs, info)) - 1 == shortest
    assert agent.model.passes == 1  # nothing surprised it


@pytest.mark.parametrize("model", [TrueModel, lambda room: ReverseModel()], ids=["true", "reverse"])
@pytest.mark.parametrize("seed", range(8))
def test_arrives_though_walls_appear_while_it_walks(seed, model):
    env = gym.make("ESWM-RandomWall19-v0").unwrapped
    obs, info = env.reset(seed=seed)
    agent = ESWMAgent(model(env.room), seed=seed)
    agent.reset(obs, info)

    def put_a_wall_in_the_way(step):
        plan = agent.plan(int(env.room.states[env.location]), int(obs["goal"]))
        wall = env.room.location_of(plan.states[1]) if len(plan) >= 2 else env.goal
        if step in (0, 2) and wall != env.goal and not env.room.walls[wall]:
            changed = env.room.copy()
            changed.add_walls([wall])
            if changed.shortest_path(env.location, env.goal):
                env.add_walls([wall])

    assert walk(env, agent, obs, info, steps=100, meanwhile=put_a_wall_in_the_way)[-1] == obs["goal"]


def test_never_takes_what_the_mask_rules_out(small):
    """However much the model promises of it, and without walking to and fro between two such places."""
    env, agent = gym.make("ESWM-RandomWall19-v0").unwrapped, ESWMAgent(Dreamer(small), seed=0)
    obs, info = env.reset(seed=0, options={"room": small, "start": 16, "goal": 0})
    agent.reset(obs, info)
    assert len(agent.plan(16, 0)) == 1  # the dream
    for _ in range(10):
        action = agent.act(obs, info)
        assert info["action_mask"][action]
        next_obs, _, terminated, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        obs = next_obs
    assert terminated


def test_a_new_goal_makes_a_new_plan(small):
    _, agent = make(small)
    agent.reset({"state": 0}, {"memory_bank": small.memory_bank(np.random.default_rng(0))})
    assert agent.act({"state": 0, "goal": 2}, {}) == 0
    assert agent.act({"state": 0, "goal": 7}, {}) == 4


@pytest.mark.parametrize("algorithm", ["dijkstra", "astar", "greedy"])
def test_every_algorithm_finds_a_shortest_way_on_a_true_map(small, algorithm):
    model = TrueModel(small)
    model.latent_radius = 1.5
    agent = ESWMAgent(model, algorithm=algorithm)
    agent.reset({"state": 0}, {"memory_bank": small.memory_bank(np.random.default_rng(0))})
    graph = true_graph(small)
    for start, goal in ((0, 18), (7, 11), (2, 16), (5, 5)):
        plan = agent.plan(start, goal)
        assert len(plan) >= nx.shortest_path_length(graph, start, goal) and plan.states[-1] == goal
        if algorithm != "greedy":
            assert len(plan) == nx.shortest_path_length(graph, start, goal)
    assert agent.plan(0, 18).expanded <= agent.plan(0, 18, "dijkstra").expanded


def test_a_plan_by_uncertainty_prefers_what_the_model_is_sure_of(small):
    """0 -> 2 directly at p = 0.5, or by way of 1 at p = 0.9 twice."""
    agent = ESWMAgent(TrueModel(small))
    agent.reset({"state": 0}, {})
    end, probability = np.full((3, 6), -1), np.ones((3, 6))
    end[0, 0], end[0, 1], end[1, 1] = 2, 1, 2
    probability[0, 0], probability[0, 1], probability[1, 1] = 0.5, 0.9, 0.9
    agent.knowledge.table = TransitionTable(np.arange(3), end, probability, np.zeros((3, 6)))
    assert agent.plan(0, 2).states == (0, 2)
    plan = agent.plan(0, 2, cost="uncertainty")
    assert plan.states == (0, 1, 2) and plan.probability == pytest.approx(0.81)


@pytest.mark.parametrize("option", ["exploration", "algorithm", "cost"])
def test_options_are_named_when_they_are_wrong(small, option):
    with pytest.raises(ValueError, match=f"{option} must be one of .* got 'best'"):
        ESWMAgent(TrueModel(small), **{option: "best"})
    if option != "exploration":
        with pytest.raises(ValueError, match=f"{option} must be one of .* got 'best'"):
            ESWMAgent(TrueModel(small)).plan(0, 1, **{option: "best"})


def test_goal_never_seen_and_goal_outside_the_vocabulary(small):
    agent = ESWMAgent(TrueModel(small), seed=0)
    agent.reset({"state": 0, "goal": 5}, {})
    assert not agent.plan(0, 5).found
    assert agent.act({"state": 0, "goal": 5}, {"action_mask": [0, 0, 0, 0, 1, 1]}) in (4, 5)
    for start, goal in ((99, 5), (0, 99), (-1, 5)):
        with pytest.raises(ValueError, match=f"state {start if start != 0 else goal} is outside the vocabulary"):
            agent.plan(start, goal)
    with pytest.raises(ValueError, match="state 99 is outside"):
        agent.act({"state": 0, "goal": 99}, {})


def test_full_bank_forgets_the_oldest():
    agent = ESWMAgent(TrueModel(Room(1, range(7))), capacity=2)
    agent.reset({"state": 0}, {"memory_bank": [(0, 0, 1), (1, 0, 2), (2, 0, 2)]})
    assert list(agent.memory) == [(0, 0, 1), (1, 0, 2)]  # without the bump, which joins no states
    agent.reset({"state": 0}, {})
    for end in (1, 2, 3):
        agent.observe({"state": end - 1}, 0, {"state": end}, {})
    assert list(agent.memory) == [(1, 0, 2), (2, 0, 3)]


def test_copies_and_equal_seeds_act_alike(small):
    env, agent = make(small)
    twin = ESWMAgent(TrueModel(small), seed=0)
    obs, info = env.reset(seed=3, options={"room": small})
    agent.reset(obs, {})
    twin.reset(obs, {})
    for _ in range(10):
        action = agent.act(obs, info)
        others = [twin, copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))]
        assert [a.memory == agent.memory for a in others] == [True] * 3
        assert twin.act(obs, info) == action
        next_obs, _, terminated, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        twin.observe(obs, action, next_obs, info)
        obs = next_obs
        if terminated:
            break


@pytest.mark.parametrize("capacity", [0, 75, 200])
def test_a_capacity_that_the_model_was_not_trained_for_is_refused(capacity):
    with pytest.raises(ValueError, match=f"capacity must be 1 to the model's 74 memories, got {capacity}"):
        ESWMAgent.from_pretrained("random-wall", capacity=capacity)


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall-v0", "ESWM-OpenArena-v0", "ESWM-MiniGrid-v0"])
def test_states_may_be_given_as_observations_show_them(env_id):
    """An integer, bits or a view; what comes back are numbers, which may be given as well."""
    env = gym.make(env_id)
    obs, info = env.reset(seed=1)
    model = MapOnly() if "MiniGrid" in env_id else load_pretrained("random-wall")
    agent = ESWMAgent(model, seed=0)
    agent.reset(obs, info)
    plan = agent.plan(obs["state"], obs["goal"])
    assert plan.found and len(plan) == info["shortest_path_length"]
    assert plan == agent.plan(agent.number(obs["state"]), agent.number(obs["goal"]))
    assert plan.states[-1] == agent.number(obs["goal"]) == agent.number(plan.states[-1])
    assert agent.imagined(obs["state"]).row(agent.number(obs["state"])) is not None
    assert env.action_space.contains(agent.explore(obs["state"]))


def test_bank_can_be_given_as_a_memory_bank():
    agent = ESWMAgent.from_pretrained("random-wall")
    agent.reset({"state": 1}, {"memory_bank": MemoryBank([(1, 0, 2)])})
    assert agent.plan(1, 2).actions == (0,)


class Estimates:
    """A latent map on which state 1, two steps before the goal, seems to be three steps away."""

    def geodesic(self, radius):
        return None

    def distances_to(self, goal, table):
        return {0: 3.0, 1: 3.0, 2: 1.0, 3: 1.0, 4: 1.0, 5: 1.0, goal: 0.0}


@pytest.mark.parametrize("cost", ["steps", "uncertainty"])
def test_a_star_finds_the_shortest_way_though_some_distances_are_too_long(small, monkeypatch, cost):
    """0 -> 1 -> 2 -> 6, or 0 -> 3 -> 4 -> 5 -> 6. At full length the estimate at 1, or more, would make the first way
    look longer than the second; at three quarters of it, it is 1 + 2.25 steps, and the second way looks longer."""
    model = TrueModel(small)
    model.latent_radius = 1.5
    agent = ESWMAgent(model, algorithm="astar", cost=cost)
    monkeypatch.setattr(agent, "latent_map", Estimates)
    end = np.full((7, 6), -1)
    for source, action, state in ((0, 0, 1), (1, 0, 2), (2, 0, 6), (0, 1, 3), (3, 0, 4), (4, 0, 5), (5, 0, 6)):
        end[source, action] = state
    agent.knowledge.table = TransitionTable(np.arange(7), end, np.ones((7, 6)), np.zeros((7, 6)))
    assert agent.plan(0, 6).states == (0, 1, 2, 6)


@pytest.mark.parametrize(
    ("option", "value", "what"),
    [
        ("confidence", 1.5, "confidence must be a probability, from 0 to 1, got 1.5"),
        ("beta", float("nan"), "beta must be a finite number, got nan"),
        ("gamma", float("inf"), "gamma must be a finite number, got inf"),
        ("gamma", "much", "gamma must be a number, got 'much'"),
        ("adapt", 1, "adapt must be True or False, got 1"),
        ("window", 19.0, "window must be an integer or None, got 19.0"),
        ("capacity", True, "capacity must be an integer or None, got True"),
    ],
)
def test_options_out_of_range_are_named(option, value, what):
    with pytest.raises(ValueError, match=what):
        AgentConfig(**{option: value})


def test_options_are_kept_and_passed_on(small):
    agent = ESWMAgent(TrueModel(small), adapt=False, confidence=0.5)
    expected = AgentConfig(adapt=False, confidence=0.5, capacity=74)  # that of the model
    assert agent.config == agent.spawn(3).config == expected
    with pytest.raises(TypeError, match="colour"):
        ESWMAgent(TrueModel(small), colour="red")
