"""The agent with a model that knows the truth: what goes wrong then is the agent's own doing."""

import copy
import pickle

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from torch import nn

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent, MemoryBank, TransitionTable
from eswm_gym.agents.baselines import MemoryGraphAgent
from eswm_gym.rooms import Room
from eswm_gym.world_model import ESWM, EncodedBank, ModelConfig, Prediction
from eswm_gym.world_model.codecs import IntegerCodec
from eswm_gym.wrappers import ManyGoals, MemoryBankObservation

N_STATES = 37


class TrueModel(ESWM):
    """Knows one room: certain of moves between states in the bank, "I don't know" of all others."""

    def __init__(self, room: Room) -> None:
        super().__init__(ModelConfig(n_states=N_STATES))
        self.codec = IntegerCodec(N_STATES, 1, embeddings=False)
        self.room = room
        self.passes = 0
        self.weight = nn.Parameter(torch.zeros(()))

    def encode(self, memories):
        self.passes += 1
        return EncodedBank(memories)

    def predict(self, bank, query):
        batch, n = query.shape[:2]
        end = torch.full((batch, n), N_STATES)
        for b in range(batch):
            known = {int(s) for row in bank.memories[b].tolist() for s in (row[0], row[2])}
            for q, (source, action, _) in enumerate(query[b].tolist()):
                if source in known and source in self.room.states[~self.room.walls]:
                    there = self.room.next_state(source, action)
                    end[b, q] = there if there in known else N_STATES
        logits = nn.functional.one_hot(end, N_STATES + 1) * 20.0
        return Prediction(logits, torch.zeros(batch, n, 7), logits)

    def activations(self, bank, query):
        """The coordinates of the source, on a sphere so large that cosine distance orders as distance does."""
        at = [[self.room.location_of(s) for s in row] for row in query[..., 0].tolist()]
        xy = torch.from_numpy(self.room.lattice.xy[at])
        return torch.cat([torch.full_like(xy[..., :1], 20), xy], -1)[None]


class ReverseModel(TrueModel):
    """Knows any room a little: the moves in the bank and the way back, "I don't know" of all others."""

    def __init__(self) -> None:
        super().__init__(Room(1, range(7)))

    def predict(self, bank, query):
        batch, n = query.shape[:2]
        end = torch.full((batch, n), N_STATES)
        for b in range(batch):
            known = {(e, (a + 3) % 6): s for s, a, e in bank.memories[b].tolist() if s != e}
            known |= {(s, a): e for s, a, e in bank.memories[b].tolist()}
            for q, (source, action, _) in enumerate(query[b].tolist()):
                end[b, q] = known.get((source, action), N_STATES)
        logits = nn.functional.one_hot(end, N_STATES + 1) * 20.0
        return Prediction(logits, torch.zeros(batch, n, 7), logits)


class Dreamer(TrueModel):
    """Knows the truth, except that it takes every move off the lattice for a shortcut to one state."""

    dream = 0

    def predict(self, bank, query):
        prediction = super().predict(bank, query)
        on_lattice = self.room.lattice.on_lattice
        for b, q in np.ndindex(*query.shape[:2]):
            source, action, _ = query[b, q].tolist()
            if not on_lattice[self.room.location_of(source), action]:
                prediction.end[b, q] = nn.functional.one_hot(torch.tensor(self.dream), N_STATES + 1) * 20.0
        return prediction


def true_graph(room: Room) -> nx.DiGraph:
    """The room's moves between free locations, states as nodes, from the lattice's geometry alone."""
    xy = room.lattice.xy
    graph = nx.DiGraph()
    free = [i for i in range(len(xy)) if not room.walls[i]]
    graph.add_nodes_from(int(room.states[i]) for i in free)
    for i in free:
        for j in free:
            if i != j and np.linalg.norm(xy[i] - xy[j]) < 1.1:
                graph.add_edge(int(room.states[i]), int(room.states[j]))
    return graph


@pytest.fixture
def room():
    """19 locations; states are locations plus 10; a wall of three."""
    return Room(2, states=np.arange(10, 29), walls=[8, 9, 10])


def make(room, **kwargs):
    return gym.make("ESWM-RandomWall19-v0", **kwargs).unwrapped, ESWMAgent(TrueModel(room), seed=0)


def walk(env, agent, obs, info, steps=40, meanwhile=None):
    """States on the way until the episode ends."""
    way = [int(obs["state"])]
    for i in range(steps):
        if meanwhile:
            meanwhile(i)
        action = agent.act(obs, info)
        next_obs, _, terminated, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        obs = next_obs
        way.append(int(obs["state"]))
        if terminated:
            return way
    return way


@pytest.fixture
def small(room):
    """The same room in the environment's vocabulary."""
    return Room(2, states=room.states - 10, walls=np.flatnonzero(room.walls))


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


def test_goes_round_a_wall_that_appears_and_forgets_what_it_made_outdated(small):
    env, agent = make(small)
    obs, info = env.reset(seed=0, options={"room": small, "start": 0, "goal": 2})
    agent.reset(obs, info)
    agent.memory.add(0, 0, 1)  # it remembers the way east
    env.add_walls([1])
    way = walk(env, agent, obs, info)
    assert way[-1] == 2 and 1 not in way
    assert agent.memory.end_of(0, 0) == 0
    assert all(1 not in (t[0], t[2]) for t in agent.memory)


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


def test_takes_a_shortcut_where_a_wall_vanished(small):
    env, agent = make(small)
    obs, info = env.reset(seed=0, options={"room": small, "start": 7, "goal": 11})
    agent.reset(obs, info)
    agent.memory.add(7, 0, 7)  # it remembers the wall
    agent.model.room = env.room
    assert len(agent.plan(7, 11)) == 5
    env.remove_walls([8, 9, 10])
    for source in (7, 8, 9):
        agent.observe({"state": source}, 0, {"state": source + 1}, {})
    assert agent.memory.end_of(7, 0) == 8
    assert agent.plan(7, 11).states == (7, 8, 9, 10, 11)


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


def test_without_trust_in_memory_it_believes_the_model(small):
    agent = ESWMAgent(TrueModel(small), trust_memory=False)
    bank = np.concatenate([small.memory_bank(np.random.default_rng(0)), [[0, 4, 2]]])  # a false memory
    agent.reset({"state": 0}, {"memory_bank": bank})
    assert len(agent.plan(0, 2)) == 2
    agent.observe({"state": 0}, 0, {"state": 1}, {})
    assert len(agent.plan(0, 2)) == 2
    agent = ESWMAgent(TrueModel(small))
    agent.reset({"state": 0}, {"memory_bank": bank})
    assert agent.plan(0, 2).actions == (4,)


def test_tells_what_it_forgot(small, caplog):
    agent = ESWMAgent(TrueModel(small), seed=0)
    agent.reset({"state": 0}, {"memory_bank": [(0, 0, 1), (1, 0, 2), (3, 0, 4), (4, 1, 1)]})
    info = {}
    with caplog.at_level("INFO", logger="eswm_gym"):
        agent.observe({"state": 0}, 0, {"state": 0}, info)
    assert sorted(info["forgotten"]) == [(0, 0, 1), (1, 0, 2), (4, 1, 1)]
    assert sorted(agent.memory) == [(0, 0, 0), (3, 0, 4)]
    assert "(4, 1, 1)" in caplog.text
    agent.observe({"state": 3}, 0, {"state": 4}, info := {})
    assert info == {}  # as expected


def test_without_adapting_only_what_was_contradicted_goes(small):
    agent = ESWMAgent(TrueModel(small), adapt=False, seed=0)
    agent.reset({"state": 0}, {"memory_bank": [(0, 0, 1), (1, 0, 2)]})
    agent.observe({"state": 0}, 0, {"state": 0}, info := {})
    assert info["forgotten"] == [(0, 0, 1)]
    assert sorted(agent.memory) == [(0, 0, 0), (1, 0, 2)]


def test_a_goal_that_cannot_be_reached_from_here_is_not_forgotten(small):
    agent = ESWMAgent(TrueModel(small), seed=0)
    agent.reset({"state": 0, "goal": 1}, {"memory_bank": [(0, 0, 1), (1, 4, 4)]})
    agent.observe({"state": 0, "goal": 1}, 0, {"state": 0, "goal": 1}, {})
    assert sorted(agent.memory) == [(0, 0, 0), (1, 4, 4)]


def test_another_state_than_remembered(small):
    """A state where the agent expected another is no wall: what it remembers of the other one is outdated."""
    agent = ESWMAgent(TrueModel(small), seed=0)
    agent.reset({"state": 0}, {"memory_bank": [(0, 0, 1), (1, 0, 2), (5, 3, 4)]})
    agent.observe({"state": 0}, 0, {"state": 30}, info := {})
    assert sorted(info["forgotten"]) == [(0, 0, 1), (1, 0, 2)]
    assert sorted(agent.memory) == [(0, 0, 30), (5, 3, 4)] and not agent.places.kind


@pytest.fixture(scope="module")
def pretrained():
    return ESWMAgent.from_pretrained("random-wall")


def test_what_lies_round_a_new_wall_keeps_its_place(pretrained):
    """A spanning tree that hangs together by one location only, which turns into a wall.

    The tree is a star of the seven locations of a small room. Without its centre no memory is left, and yet the
    agent knows the way round.
    """
    room = Room(1, [3, 1, 4, 9, 5, 2, 6])  # 3 1 / 4 9 5 / 2 6
    agent = pretrained.spawn(seed=0)
    centre = 9
    star = [(centre, action, room.next_state(centre, action)) for action in range(6)]
    agent.reset({"state": 4}, {"memory_bank": star})
    assert agent.plan(4, 5).states == (4, centre, 5)
    agent.observe({"state": 4, "goal": 5}, 0, {"state": 4, "goal": 5}, info := {})
    assert sorted(info["forgotten"]) == sorted(star)
    assert list(agent.memory) == [(4, 0, 4)]
    graph = true_graph(Room(1, room.states, walls=[3]))
    plan = agent.plan(4, 5)
    assert len(plan) == nx.shortest_path_length(graph, 4, 5) == 3 and nx.is_simple_path(graph, plan.states)
    for action, state in zip(plan.actions, plan.states, strict=False):
        assert room.next_state(state, action) in plan.states
    # The wall is gone again: so is the detour.
    agent.observe({"state": 4, "goal": 5}, 0, {"state": centre, "goal": 5}, info := {})
    assert info["forgotten"] == [(4, 0, 4)]
    assert agent.plan(4, 5).states == (4, centre, 5)


def test_all_bumps_into_a_wall_that_vanished_are_forgotten(pretrained):
    room = Room(1, [3, 1, 4, 9, 5, 2, 6], walls=[3])
    agent = pretrained.spawn(seed=0)
    ring = [(3, 0, 1), (1, 5, 5), (5, 4, 6), (6, 3, 2), (2, 2, 4)]
    bumps = [(4, 0, 4), (5, 3, 5), (3, 5, 3)]
    outside = [(3, 2, 3)]  # that one stays
    assert all(room.next_state(s, a) == e for s, a, e in ring + bumps + outside)
    agent.reset({"state": 4}, {"memory_bank": ring + bumps + outside})
    assert len(agent.plan(4, 5)) == 3
    agent.observe({"state": 4, "goal": 5}, 0, {"state": 9, "goal": 5}, info := {})
    assert sorted(info["forgotten"]) == sorted(bumps)
    assert sorted(agent.memory) == sorted([*ring, *outside, (4, 0, 9)])
    assert agent.plan(4, 5).states == (4, 9, 5)


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
    agent._table = TransitionTable(np.arange(3), end, probability, np.zeros((3, 6)))
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


def explored(agent, env_id, seeds, steps):
    """Locations visited in so many steps by agents that share their passes."""
    envs = [gym.make(env_id).unwrapped for _ in seeds]
    agents = [agent.spawn(seed) for seed in seeds]
    starts = [env.reset(seed=seed) for env, seed in zip(envs, seeds, strict=True)]
    seen = [[info["location"]] for _, info in starts]
    for one, start in zip(agents, starts, strict=True):
        one.reset(*start)
    for _ in range(steps):
        agent.prepare(agents, [obs for obs, _ in starts], [info for _, info in starts])
        for i, (one, env, (obs, info)) in enumerate(zip(agents, envs, starts, strict=True)):
            action = one.act(obs, info)
            assert info["action_mask"][action]
            next_obs, _, _, _, info = env.step(action)
            one.observe(obs, action, next_obs, info)
            starts[i] = next_obs, info
            seen[i].append(info["location"])
    return seen


def test_the_shipped_agent_explores_better_than_the_papers_rule_and_alone_as_in_company(pretrained):
    env_id, seeds = "ESWM-RandomWall19Explore-v0", range(12)
    paths = explored(pretrained, env_id, seeds, 15)
    assert explored(pretrained, env_id, seeds[:1], 15)[0] == paths[0]
    by_the_paper = explored(ESWMAgent(pretrained.model, exploration="uncertainty"), env_id, seeds, 15)
    count = [np.mean([len(set(path)) for path in some]) for some in (paths, by_the_paper)]
    assert count[0] > count[1] and count[0] > 12.5


def test_explores_one_pass_a_step(small, monkeypatch):
    from eswm_gym.agents import eswm_agent

    agent = ESWMAgent.from_pretrained("random-wall", seed=0)
    passes = []
    imagine = eswm_agent.imagine_tables
    monkeypatch.setattr(eswm_agent, "imagine_tables", lambda *args: passes.append(1) or imagine(*args))
    env = gym.make("ESWM-RandomWall19Explore-v0").unwrapped
    obs, info = env.reset(seed=0, options={"room": small})
    agent.reset(obs, info)
    for step in range(8):
        action = agent.act(obs, info)
        assert len(passes) <= step + 1
        next_obs, _, _, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        obs = next_obs


def test_goes_to_the_nearest_frontier_when_all_is_known_here():
    agent = ESWMAgent(TrueModel(Room(1, range(7))), exploration="uncertainty", seed=0)
    end = np.arange(4)[:, None].repeat(6, 1)
    end[0, 2], end[1, 4], end[2, 0] = 1, 2, -1  # 0 -> 1 -> 2, and 2 has something unknown
    agent._table = TransitionTable(np.arange(4), end, np.ones((4, 6)), np.zeros((4, 6)))
    assert agent.explore(0) == 2
    assert agent.explore(1) == 4
    assert agent.explore(3, [1, 5]) in (1, 5)  # no way to it: anything allowed


def test_doubts_the_least_certain_move_when_no_frontier_can_be_reached():
    agent = ESWMAgent(TrueModel(Room(1, range(7))), exploration="uncertainty", seed=0)
    end, probability = np.arange(4)[:, None].repeat(6, 1), np.ones((4, 6))
    end[0, 2], end[2, 0] = 1, -1  # 0 -> 1; 2 has something unknown, and no way leads there
    agent._table = TransitionTable(np.arange(4), end, probability, np.zeros((4, 6)))
    probability[1, 3:5] = 0.9, 0.95
    assert agent.explore(0) == 2
    assert agent.explore(1) == 3
    agent.memory.add(1, 3, 1)  # tried
    assert agent.explore(1) == 4


def test_explores_a_whole_room_within_the_mask():
    room = Room(2, range(19))
    env = gym.make("ESWM-RandomWall19Explore-v0").unwrapped
    agent = ESWMAgent(TrueModel(room), exploration="uncertainty", seed=0)
    obs, info = env.reset(seed=0, options={"room": room})
    agent.reset(obs, info)
    for _ in range(60):
        action = agent.act(obs, info)
        assert info["action_mask"][action]
        next_obs, _, terminated, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        obs = next_obs
        if terminated:
            break
    assert terminated and len(agent.memory.states) == 19


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
    with pytest.raises(ValueError, match="capacity of 2"):
        agent.reset({"state": 0}, {"memory_bank": [(0, 0, 1), (1, 0, 2), (2, 0, 2)]})
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


def test_predict_on_one_environment_does_what_act_and_observe_do(small):
    env = MemoryBankObservation(gym.make("ESWM-RandomWall19-v0"))
    agent = ESWMAgent(TrueModel(small))
    obs, info = env.reset(seed=1, options={"room": small})
    shortest = nx.shortest_path_length(true_graph(small), int(obs["state"]), int(obs["goal"]))
    state, steps, terminated = None, 0, False
    while not terminated:
        action, state = agent.predict(obs, state, np.array([steps == 0]))
        assert np.shape(action) == ()
        obs, _, terminated, truncated, _ = env.step(action)
        steps += 1
        assert not truncated
    assert steps == shortest


@pytest.mark.parametrize(
    "env_id, wrappers", [("ESWM-RandomWall19-v0", [MemoryBankObservation]), ("ESWM-RandomWall19Explore-v0", [])]
)
def test_predict_on_many_environments_does_what_act_and_observe_do_on_each(env_id, wrappers):
    same_step = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
    envs = gym.make_vec(env_id, 3, "sync", vector_kwargs=same_step, wrappers=wrappers)
    agent = ESWMAgent(ReverseModel(), seed=3)
    obs, _ = envs.reset(seed=5)
    state, starts, taken = None, np.ones(3, bool), []
    for _ in range(40):
        actions, state = agent.predict(obs, state, starts)
        obs, _, terminations, truncations, _ = envs.step(actions)
        starts = terminations | truncations
        taken.append(actions)
    assert np.shape(taken) == (40, 3)
    episodes = 0
    for i in range(3):
        alone, env = agent.spawn_many(3)[i], gym.make(env_id)
        for wrapper in wrappers:
            env = wrapper(env)
        obs, _ = env.reset(seed=5 + i)
        alone.reset(obs, obs)
        for actions in taken:
            action = alone.act(obs, {})
            assert action == actions[i]
            next_obs, _, terminated, truncated, _ = env.step(action)
            alone.observe(obs, action, next_obs, {})
            obs = next_obs
            if terminated or truncated:
                obs, _ = env.reset()
                alone.reset(obs, obs)
                episodes += 1
    assert episodes >= 6


def test_predict_draws_from_the_agents_seed():
    def walk(seed):
        env = gym.make("ESWM-RandomWall19Explore-v0")
        agent, state, actions = ESWMAgent(ReverseModel(), seed=seed), None, []
        obs, _ = env.reset(seed=0)
        for _ in range(12):
            action, state = agent.predict(obs, state)
            obs = env.step(action)[0]
            actions.append(int(action))
        return actions

    assert walk(0) == walk(0)
    assert len({tuple(walk(seed)) for seed in range(5)}) > 1


def test_many_goals_in_a_room_teach_nothing_false():
    """Where a goal ends, the observation is of the next start: what the move led to is in the info."""
    env = ManyGoals(gym.make("ESWM-RandomWall19-v0"), episode_steps=100)
    for agent in (ESWMAgent.from_pretrained("random-wall", seed=0), MemoryGraphAgent(0)):
        obs, info = env.reset(seed=0)
        agent.reset(obs, info)
        reached, done = [], False
        while not done:
            action = agent.act(obs, info)
            next_obs, _, _, done, info = env.step(action)
            agent.observe(obs, action, next_obs, info)
            assert "forgotten" not in info
            reached += [info["goal_result"]["success"]] if "goal_result" in info else []
            obs = next_obs
        room = env.unwrapped.room
        assert all(room.next_state(source, action) == end for source, action, end in agent.memory)
        assert len(reached) > 15 and all(reached)


@pytest.mark.parametrize("capacity", [0, 75, 200])
def test_a_capacity_that_the_model_was_not_trained_for_is_refused(capacity):
    with pytest.raises(ValueError, match=f"capacity must be 1 to the model's 74 memories, got {capacity}"):
        ESWMAgent.from_pretrained("random-wall", capacity=capacity)


def test_predict_begins_anew_where_an_episode_starts():
    agent = ESWMAgent.from_pretrained("random-wall")
    obs = {"state": np.array([3, 4]), "goal": np.array([5, 5])}
    _, state = agent.predict(obs, None, np.ones(2, bool))
    _, state = agent.predict({**obs, "state": np.array([6, 7])}, state, np.array([False, True]))
    assert [len(inner.memory) for inner, _, _ in state] == [1, 0]
    with pytest.raises(ValueError, match="2 environments.* 1"):
        agent.predict({"state": np.array([3]), "goal": np.array([5])}, state)


@pytest.mark.parametrize(
    "env_id, wrapper, least",
    [
        ("ESWM-RandomWall19-v0", MemoryBankObservation, 0.8),
        ("ESWM-RandomWall19-v0", None, -0.15),
        ("ESWM-RandomWall19Explore-v0", None, 6),
        ("ESWM-RandomWallExplore-v0", None, 12),
        ("ESWM-OpenArena-v0", MemoryBankObservation, 0.8),
    ],
)
def test_evaluate_policy(env_id, wrapper, least):
    env = make_vec_env(env_id, n_envs=2, seed=0, wrapper_class=wrapper)
    mean, _ = evaluate_policy(ESWMAgent.from_pretrained("random-wall", seed=0), env, n_eval_episodes=6)
    assert mean >= least


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall-v0", "ESWM-OpenArena-v0", "ESWM-MiniGrid-v0"])
def test_states_may_be_given_as_observations_show_them(env_id):
    """An integer, bits or a view; what comes back are numbers, which may be given as well."""
    env = gym.make(env_id)
    obs, info = env.reset(seed=1)
    agent = ESWMAgent.from_pretrained("minigrid" if "MiniGrid" in env_id else "random-wall", seed=0)
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
