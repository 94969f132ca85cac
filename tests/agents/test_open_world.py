"""Agents in worlds that somebody else wrote: of any size, with jumps, dead ends and walls, and perhaps not as told."""

import warnings
from collections import Counter, defaultdict

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from torch import nn

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.open_world import OpenWorldKnowledge, nearest
from eswm_gym.rooms import CODES, MOVES, N_NAMES
from eswm_gym.world_model import (
    ESWM,
    EncodedBank,
    ModelConfig,
    Prediction,
    Transformer,
    TransformerConfig,
    load_pretrained,
    save_model,
)
from eswm_gym.world_model.codecs import NameCodec
from eswm_gym.world_model.presets import PRESETS
from eswm_gym.world_model.pretrained import build_model
from eswm_gym.wrappers import DiscreteStates

LEFT, DOWN, RIGHT, UP = range(4)  # of environments
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))
NUMBERS = [MOVES.index(name) for name in ("left", "down", "right", "up")]
STEP_OF = dict(zip(NUMBERS, STEPS, strict=True))


class Squares(ESWM):
    """Path integration on squares: sure of moves between states of the bank, "I don't know" of all others.

    Of codes it knows what is in the bank.
    """

    def __init__(self, n_states=40, max_memories=60):
        super().__init__(ModelConfig(n_states, N_NAMES, max_memories=max_memories))
        self.codec = NameCodec(n_states, 1)
        self.weight = nn.Parameter(torch.zeros(()))
        self.banks = []

    def encode(self, memories):
        self.check_length(memories)
        self.banks += [[row for row in bank if row[1] >= 0] for bank in memories.tolist()]
        return EncodedBank(memories)

    def predict(self, bank, query):
        n_states, shape = self.config.n_states, query.shape[:2]
        end = torch.full(shape, n_states)
        for b, rows in enumerate(bank.memories.tolist()):
            facts = {(s, a): e for s, a, e in rows if a >= 0}
            place = self.places(facts)
            state = {there: s for s, there in place.items()}
            for q, (source, action, _) in enumerate(query[b].tolist()):
                found = facts.get((source, action))
                if found is None and source in place and action in STEP_OF:
                    found = state.get(beyond(place[source], action))
                end[b, q] = n_states if found is None else found
        logits = nn.functional.one_hot(end, n_states + 1) * 20.0
        return Prediction(logits, torch.zeros(*shape, self.config.n_actions + 1), logits)

    @staticmethod
    def places(facts):
        """Where the states lie; each part of the bank far from the others."""
        beside = defaultdict(list)
        for (source, action), end in facts.items():
            if source != end and action in STEP_OF:
                dx, dy = STEP_OF[action]
                beside[source].append((end, dx, dy))
                beside[end].append((source, -dx, -dy))
        place = {}
        for part, root in enumerate(beside):
            stack = [] if root in place else [root]
            place.setdefault(root, (part * 10**6, 0))
            while stack:
                here = stack.pop()
                for there, dx, dy in beside[here]:
                    if there not in place:
                        place[there] = place[here][0] + dx, place[here][1] + dy
                        stack.append(there)
        return place


def beyond(place, number):
    return place[0] + STEP_OF[number][0], place[1] + STEP_OF[number][1]


class Grid(gym.Env):
    """A grid of cells with walls, by hand: states are names, `jumps` says where moves lead that do not go straight."""

    def __init__(self, width, height, walls=(), goal=None, jumps=(), first_name=0, order=(LEFT, DOWN, RIGHT, UP)):
        self.width, self.height, self.walls, self.goal = width, height, set(walls), goal
        self.jumps, self.first_name, self.order = dict(jumps), first_name, order
        self.action_space = gym.spaces.Discrete(4)

    def to(self, cell, action):
        if (cell, action) in self.jumps:
            return self.jumps[cell, action]
        dx, dy = STEPS[self.order[action]]
        x, y = cell[0] + dx, cell[1] + dy
        inside = 0 <= x < self.width and 0 <= y < self.height
        return (x, y) if inside and (x, y) not in self.walls else cell

    def name(self, cell):
        return self.first_name + cell[0] + self.width * cell[1]

    def cell(self, name):
        return (name - self.first_name) % self.width, (name - self.first_name) // self.width

    def shown(self):
        goal = -1 if self.goal is None else self.name(self.goal)
        return {"state": self.name(self.at), "goal": goal, "actions": np.array(NUMBERS)}

    def reset(self, *, seed=None, options=None):
        self.at = (0, 0)
        return self.shown(), {}

    def step(self, action):
        self.at = self.to(self.at, int(action))
        success = self.at == self.goal
        return self.shown(), float(success), success, False, {"is_success": success, "terminated": success}


def lake(name="4x4", **options):
    env = gym.make("FrozenLake-v1", is_slippery=False, map_name=name)
    return DiscreteStates(env, **({"lattice": "square"} | options))


def walk(env, agent, steps, keep_memories=False, begin=True):
    """(state, action, end) of an episode, and its last info."""
    obs, info = env.reset(seed=0)
    if begin:
        agent.reset(obs, info, keep_memories=keep_memories)
    done = []
    for _ in range(steps):
        action = agent.act(obs, info)
        following, _, terminated, truncated, info = env.step(action)
        agent.observe(obs, action, following, info)
        done.append((int(obs["state"]), int(action), int(following["state"])))
        obs = following
        if terminated or truncated:
            break
    return done, info


def begun(bank=(), state=0, model=None, goal=-1, **info):
    """An agent in a state of a world of squares, with a bank."""
    agent = ESWMAgent(model or Squares(), seed=0)
    obs = {"state": state, "goal": goal, "actions": np.array(NUMBERS)}
    agent.reset(obs, {"memory_bank": bank, **info})
    return agent, obs


def meet(agent, obs, action, end, **info):
    """The agent looks around, and then a move leads somewhere."""
    agent.prepare([agent], [obs])
    agent.knowledge.table_at(obs["state"])
    following = {**obs, "state": end}
    agent.observe(obs, action, following, info)
    return following


# Size


def test_a_world_of_more_states_and_memories_than_the_model_reads():
    env = Grid(20, 15, first_name=1000)
    model = Squares()
    agent = ESWMAgent(model, seed=0)
    done, _ = walk(env, agent, 700)
    visited = {end for _, _, end in done}
    assert len(visited) > 250
    assert set(agent.memory) == set(done) and len(agent.memory) > 10 * model.config.max_memories / 2
    start, far = 1000, max(visited)
    plan = agent.plan(done[-1][2], start)
    assert plan.found and plan.states[-1] == start
    plan = agent.plan(start, far)
    cells = [env.cell(start)]
    for action in plan.actions:
        cells.append(env.to(cells[-1], action))
    assert [env.name(cell) for cell in cells] == list(plan.states) and plan.states[-1] == far
    assert max(len(bank) for bank in model.banks) <= model.config.max_memories
    assert max(max(s, e) for bank in model.banks for s, _, e in bank) < model.config.n_states


def test_a_bank_of_any_length_is_taken_and_planned_with():
    """A corridor of 200 states: the way to its end is known from memory alone."""
    bank = [(state, RIGHT, state + 1) for state in range(500, 700)]
    agent, _ = begun(bank, state=500, goal=700)
    assert len(agent.memory) == 200
    assert agent.plan(500, 700).actions == (RIGHT,) * 200
    assert not agent.plan(600, 500).found  # the model reads what is near: it says how to go back for a part only
    assert agent.plan(510, 500).actions == (LEFT,) * 10


def test_states_are_numbers_of_at_least_0():
    agent, obs = begun()
    with pytest.raises(ValueError, match="at least 0, got -3"):
        agent.act({**obs, "state": -3}, {})
    assert agent.plan(0, 2**35).found is False


transitions = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 9)), max_size=25).map(
    lambda rows: [(s, a, e) for (s, a), e in {(s, a): e for s, a, e in rows}.items()]
)


@given(rows=transitions, here=st.integers(0, 9), most=st.integers(1, 12), states=st.integers(2, 8))
def test_the_nearest_transitions(rows, here, most, states):
    found = nearest(rows, here, most, states)
    held = {here} | {s for source, _, end in found for s in (source, end)}
    assert len(found) <= most and len(held) <= states
    assert len(set(found)) == len(found) and set(found) <= set(rows)
    everything = {here} | {s for source, _, end in rows for s in (source, end)}
    if len(rows) <= most and len(everything) <= states:
        assert found == rows
        return
    graph, near = nx.Graph(), nx.Graph()
    for every, some in ((graph, rows), (near, found)):
        every.add_node(here)
        every.add_edges_from((source, end) for source, _, end in some)
    assert nx.is_connected(near)
    tree = found[: len(held) - 1]  # a tree first, from here
    reached = {here}
    for source, _, end in tree:
        assert len({source, end} & reached) == 1
        reached |= {source, end}
    assert reached == held
    bumps = [source == end for source, _, end in found[len(tree) :]]
    assert bumps == sorted(bumps, reverse=True)  # then bumps, then others
    far = nx.single_source_shortest_path_length(graph, here)
    left = [far[state] for state in far if state not in held]
    assert max(far[state] for state in held) <= min(left, default=99)
    if left:  # not all that could be reached: for no other reason than the bounds
        assert len(held) == states or len(found) == most
    taken = {t for t in rows if t[0] in held and t[2] in held}
    assert len(found) == min(most, len(taken))


def test_nearest_by_hand():
    """0 - 1 - 2 - 3 in a row, a bump at 1, and two ways between 0 and 1."""
    rows = [(2, RIGHT, 3), (1, RIGHT, 2), (0, RIGHT, 1), (1, LEFT, 0), (1, UP, 1), (3, UP, 3)]
    assert nearest(rows, 0, 99, 99) == rows
    assert nearest(rows, 0, 99, 3) == [(0, RIGHT, 1), (1, RIGHT, 2), (1, UP, 1), (1, LEFT, 0)]
    assert nearest(rows, 0, 3, 3) == [(0, RIGHT, 1), (1, RIGHT, 2), (1, UP, 1)]
    assert nearest(rows, 3, 2, 99) == [(2, RIGHT, 3), (1, RIGHT, 2)]
    assert nearest(rows, 8, 2, 99) == []


# Dead ends


@pytest.mark.parametrize("seed", range(3))
def test_where_an_episode_failed_is_never_entered_again(seed):
    env, agent = lake("8x8"), ESWMAgent(Squares(70, 200), seed=seed)
    ends, reached = Counter(), 0
    for episode in range(25):
        done, info = walk(env, agent, 200, keep_memories=episode > 0)
        if info["terminated"] and not info["is_success"]:
            ends[done[-1][2]] += 1
        reached += info["is_success"]
    assert reached and ends and set(ends.values()) == {1}
    assert agent.knowledge.dead_ends == set(ends)


def test_dead_ends_of_info_are_kept_out_of():
    """0 1 / 2 3: the way over 1 is remembered, that over 2 follows from the rest."""
    bank = [(0, RIGHT, 1), (1, DOWN, 3), (0, DOWN, 2)]
    agent, _ = begun(bank, goal=3)
    assert agent.plan(0, 3).states == (0, 1, 3)
    agent, _ = begun(bank, goal=3, dead_ends=[1])
    assert agent.plan(0, 3).states == (0, 2, 3)
    agent, obs = begun(bank, goal=3, dead_ends=[1, 2])
    assert not agent.plan(0, 3).found
    assert all(agent.explore(0) not in (RIGHT, DOWN) for _ in range(10))


def test_a_goal_where_the_episode_ends_is_no_dead_end():
    agent, obs = begun()
    meet(agent, obs, RIGHT, 1, terminated=True, is_success=True)
    meet(agent, obs, DOWN, 2, terminated=False, is_success=False)
    meet(agent, obs, LEFT, 3, terminated=True, is_success=False)
    assert agent.knowledge.dead_ends == {3}


# Further episodes


def test_another_episode_keeps_the_map_and_goes_to_the_goal_that_paid():
    env, agent = lake(), ESWMAgent(Squares(), seed=0)
    lengths, episode = [], 0
    while len(lengths) < 6:
        before = list(agent.memory) if episode else []
        obs, info = env.reset(seed=0)
        agent.reset(obs, info, keep_memories=episode > 0)
        assert list(agent.memory) == before and agent.route == []
        done, info = walk(env, agent, 100, begin=False)
        if info["is_success"]:
            lengths.append(len(done))
        episode += 1
        assert episode < 30
    assert lengths[-1] == 6  # the shortest way
    obs, info = env.reset(seed=0)
    agent.reset(obs, info)
    assert len(agent.memory) == 0 and not agent.knowledge.dead_ends


def test_other_actions_begin_anew():
    agent, obs = begun([(0, RIGHT, 1)])
    agent.reset(obs, {}, keep_memories=True)
    assert len(agent.memory) == 1 and agent.n_actions == 4 and agent.numbers == tuple(NUMBERS)
    agent.reset({**obs, "actions": CODES[:3]}, {}, keep_memories=True)
    assert len(agent.memory) == 0 and agent.n_actions == 3 and agent.numbers == tuple(CODES[:3])
    agent.reset({"state": 0}, {})
    assert agent.numbers is None and agent.n_actions == N_NAMES


def test_actions_that_the_model_lacks_are_refused():
    with pytest.raises(ValueError, match="different numbers from 0 to 18"):
        ESWMAgent(Squares()).reset({"state": 0, "actions": np.array([0, 19])}, {})
    with pytest.raises(ValueError, match="different numbers from 0 to 5"):
        ESWMAgent(load_pretrained("random-wall")).reset({"state": 0, "actions": CODES[:2]}, {})


def test_the_first_episode_is_careful_and_later_ones_are_not():
    agent, obs = begun([(0, RIGHT, 1)])
    assert agent.knowledge.cost == "caution"
    agent.reset(obs, {}, keep_memories=True)
    assert agent.knowledge.cost == "steps"
    agent.reset(obs, {})
    assert agent.knowledge.cost == "caution"


# Jumps and walls


def test_a_fall_that_leads_back_to_the_start_is_a_fact_and_no_geometry():
    """1 2 3 above 0 and the cliff: down from 2 leads to 0, and so does down from 1."""
    agent, obs = begun([(0, UP, 1), (1, RIGHT, 2), (2, RIGHT, 3)], state=2)
    banks = agent.model.banks
    meet(agent, obs, DOWN, 0)
    fall = (2, DOWN, 0)
    assert fall in agent.memory and fall in agent.knowledge.jumps
    banks.clear()
    assert agent.plan(3, 0).states == (3, 2, 0)
    table = agent.knowledge.table_at(2)
    assert banks and all([2, NUMBERS[DOWN], 0] not in bank for bank in banks)
    assert table.end[table.row(2), DOWN] == 0 and table.probability[table.row(2), DOWN] == 1
    assert table.end[table.row(1), DOWN] == 0  # geometry still holds
    assert list(agent.memory) == [(0, UP, 1), (1, RIGHT, 2), (2, RIGHT, 3), fall]


def test_of_two_ways_into_a_state_by_one_action_both_are_doubted():
    falls = [(1, DOWN, 0), (2, DOWN, 0)]
    agent, _ = begun([*falls, (1, RIGHT, 2), (5, DOWN, 5)])
    assert agent.knowledge.jumps == set(falls)
    assert agent.plan(1, 0).actions == agent.plan(2, 0).actions == (DOWN,)


def test_the_agent_in_cliff_walking():
    env = DiscreteStates(
        gym.make("CliffWalking-v1", max_episode_steps=200), lattice="square", actions=("up", "right", "down", "left"),
        goal=47,
    )  # fmt: skip
    agent, table = ESWMAgent(Squares(60, 200), seed=0), gym.make("CliffWalking-v1").unwrapped.P
    cell, lengths = {}, []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for episode in range(8):
            done, info = walk(env, agent, 200, keep_memories=episode > 0)
            lengths.append(len(done) if info["is_success"] else None)
    cell = {number: state for state, number in env._number.items()}
    assert lengths[-1] == 13
    for state, action, end in agent.memory:
        assert cell[end] == table[cell[state]][action][0][1]
    falls = {t for t in agent.memory if cell[t[0]] in range(25, 35) and t[1] == 2}
    assert falls and falls <= agent.knowledge.jumps


def test_a_wall_between_two_free_states_is_a_fact_and_no_geometry():
    """0 1 / 2 3, with a wall between 0 and 1 that no location takes up."""
    bank = [(0, DOWN, 2), (2, RIGHT, 3), (3, UP, 1)]
    agent, obs = begun(bank)
    assert agent.plan(0, 1).states == (0, 1)
    meet(agent, obs, RIGHT, 0)
    assert (0, RIGHT, 0) in agent.memory and agent.knowledge.jumps == {(0, RIGHT, 0)}
    assert set(bank) < set(agent.memory)
    agent.model.banks.clear()
    assert agent.plan(0, 1).states == (0, 2, 3, 1)
    assert agent.model.banks and all([0, NUMBERS[RIGHT], 0] not in bank for bank in agent.model.banks)
    assert (agent.knowledge.hits, agent.knowledge.misses) == (0, 0)


def test_what_contradicts_a_memory_shows_that_the_world_has_changed():
    agent, obs = begun([(0, RIGHT, 1), (1, RIGHT, 2)])
    meet(agent, obs, RIGHT, 0)
    assert list(agent.memory) == [(0, RIGHT, 0)]  # state 1 is not where it was


# The wrong lattice


def test_hits_and_misses_are_of_moves_that_were_not_made_before():
    agent, obs = begun([(0, DOWN, 2), (2, RIGHT, 3), (3, UP, 1)])
    meet(agent, obs, RIGHT, 1)
    assert (agent.knowledge.hits, agent.knowledge.misses) == (1, 0)
    meet(agent, obs, RIGHT, 1)
    meet(agent, obs, DOWN, 2)
    meet(agent, obs, LEFT, 7)  # nothing was known of it
    assert (agent.knowledge.hits, agent.knowledge.misses) == (1, 0)
    meet(agent, {**obs, "state": 1}, LEFT, 3)
    assert (agent.knowledge.hits, agent.knowledge.misses) == (1, 1)


def told_wrongly():
    """What is called left, down, right and up goes right, left, up and down."""
    return Grid(6, 6, walls=[(1, 1)], order=(RIGHT, LEFT, UP, DOWN))


def no_lattice():
    """Any action leads from anywhere to anywhere."""
    cells = [(x, y) for x in range(5) for y in range(5)]
    rng = np.random.default_rng(0)
    return Grid(5, 5, jumps={(cell, action): cells[rng.integers(25)] for cell in cells for action in range(4)})


@pytest.mark.parametrize("make", [told_wrongly, no_lattice])
def test_a_wrong_lattice_is_noticed_once_and_then_facts_alone_count(make):
    env, agent = make(), ESWMAgent(Squares(), seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        walk(env, agent, 250)
        walk(env, agent, 150, keep_memories=True)
    (one,) = caught
    assert "did not lead where the model was sure" in str(one.message)
    assert "the lattice or the names of the actions are wrong" in str(one.message)
    assert agent.knowledge.is_misled and agent.knowledge.misses >= 4
    truth = nx.DiGraph([(cell, env.to(cell, action)) for cell in every_cell(env) for action in range(4)])
    steps = nx.single_source_shortest_path_length(truth, (0, 0))
    assert {env.cell(state) for state in agent.memory.states} == steps.keys()
    agent.model.banks.clear()
    known = nx.DiGraph([(source, end) for source, _, end in agent.memory])
    assert all(env.name(env.to(env.cell(source), action)) == end for source, action, end in agent.memory)
    for state in known:
        assert len(agent.plan(0, state)) == nx.shortest_path_length(known, 0, state)
    assert not any(agent.model.banks)  # the model is shown nothing any more
    env.goal = max(steps, key=steps.get)
    done, info = walk(env, agent, 100, keep_memories=True)
    assert info["is_success"] and len(done) == nx.shortest_path_length(known, 0, env.name(env.goal))


def every_cell(env):
    return [(x, y) for x in range(env.width) for y in range(env.height) if (x, y) not in env.walls]


def test_names_that_are_turned_around_alike_do_no_harm():
    env, agent = Grid(6, 6, walls=[(1, 1)], order=(UP, LEFT, DOWN, RIGHT)), ESWMAgent(Squares(), seed=0)
    walk(env, agent, 200)
    assert (agent.knowledge.misses, agent.knowledge.hits > 5) == (0, True)


@pytest.mark.parametrize("seed", range(3))
def test_the_right_lattice_is_never_doubted(seed):
    env, agent = lake(), ESWMAgent(Squares(), seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for episode in range(15):
            walk(env, agent, 100, keep_memories=episode > 0)
    assert agent.knowledge.misses == 0 and agent.knowledge.hits > 0


def test_codes_are_never_doubted():
    env, agent = lake(lattice=None), ESWMAgent(Squares(), seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [walk(env, agent, 100, keep_memories=episode > 0)[1]["is_success"] for episode in range(40)]
    assert any(found)


# Files, copies, many at a time


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A model of all named actions and codes that was never trained, and its file."""
    path = tmp_path_factory.mktemp("model") / "small"
    torch.manual_seed(0)
    config = TransformerConfig(30, N_NAMES, dim=16, layers=1, heads=2, max_memories=40, state_embeddings=False, codes=8)
    model = build_model(config).eval().requires_grad_(False)
    save_model(model, path)
    return model, path


@pytest.mark.parametrize("options", [{}, {"lattice": None}], ids=("square", "codes"))
def test_a_loaded_agent_goes_on_as_the_saved_one_would(small, tmp_path, options):
    model, path = small

    def play(again):
        env, agent, everything = lake(**options), ESWMAgent(model, seed=3), []
        for episode in range(4):
            obs, info = env.reset(seed=0)
            agent = again(agent)
            agent.reset(obs, info, keep_memories=episode > 0)
            for _ in range(20):
                agent = again(agent)
                action = agent.act(obs, info)
                agent = again(agent)
                following, _, terminated, truncated, info = env.step(action)
                agent.observe(obs, action, following, info)
                everything.append((int(action), int(following["state"])))
                obs = following
                if terminated or truncated:
                    break
        return everything, list(agent.memory), agent.knowledge.to_dict(), agent.rng.random()

    def again(agent):
        agent.save(tmp_path / "agent", model=path)
        return ESWMAgent.load(tmp_path / "agent", model=model)

    assert play(again) == play(lambda agent: agent)


def test_what_an_open_world_has_taught_comes_back(small, tmp_path):
    model, path = small
    agent, obs = begun([(0, UP, 1), (1, DOWN, 0), (2, DOWN, 0), (50, UP, 60)], model=model, dead_ends=[3])
    agent.knowledge.hits, agent.knowledge.misses = 5, 2
    agent.reset(obs, {}, keep_memories=True)
    agent.save(tmp_path / "agent", model=path)
    loaded = ESWMAgent.load(tmp_path / "agent")
    mine, theirs = agent.knowledge, loaded.knowledge
    assert vars(mine).keys() == vars(theirs).keys() and isinstance(theirs, OpenWorldKnowledge)
    assert (loaded.numbers, loaded.n_actions) == (tuple(NUMBERS), 4)
    assert theirs.jumps == {(1, DOWN, 0), (2, DOWN, 0)} and theirs.dead_ends == {3}
    assert (theirs.hits, theirs.misses, theirs.cost) == (5, 2, "steps")
    assert theirs.map.next_name == mine.map.next_name >= 2**40


def steps_of(agents, envs, n, together):
    """Actions of agents side by side."""
    shown = [env.reset(seed=0) for env in envs]
    for agent, (obs, info) in zip(agents, shown, strict=True):
        agent.reset(obs, info)
    done = []
    for _ in range(n):
        if together:
            agents[0].prepare(agents, [obs for obs, _ in shown], [info for _, info in shown])
        actions = [agent.act(obs, info) for agent, (obs, info) in zip(agents, shown, strict=True)]
        for i, (agent, env, action) in enumerate(zip(agents, envs, actions, strict=True)):
            following, _, terminated, truncated, info = env.step(action)
            agent.observe(shown[i][0], action, following, info)
            shown[i] = (following, info)
            if terminated or truncated:
                shown[i] = env.reset(seed=0)
                agent.reset(*shown[i], keep_memories=True)
        done.append([int(action) for action in actions])
    return done


def test_agents_with_other_actions_act_side_by_side_as_they_do_alone(small):
    envs = [lake(), lake(lattice=None), lake("8x8"), DiscreteStates(gym.make("Taxi-v4"))]
    agents = [ESWMAgent(small[0], seed=seed) for seed in range(4)]
    together = steps_of(agents, envs, 25, True)
    for i, make in enumerate([lake, lambda: lake(lattice=None), lambda: lake("8x8"), lambda: envs[3]]):
        alone = steps_of([ESWMAgent(small[0], seed=i)], [make()], 25, False)
        assert [step[i] for step in together] == [step[0] for step in alone]
    assert len({tuple(agent.numbers) for agent in agents}) == 3


def test_the_same_seed_does_the_same(small):
    one, other, third = (steps_of([ESWMAgent(small[0], seed=seed)], [lake()], 25, False) for seed in (1, 1, 2))
    assert one == other != third


def stacked(observations):
    return {key: np.stack([obs[key] for obs in observations]) for key in observations[0]}


def test_predict_in_two_environments_with_other_actions(small):
    envs, again = ([lake(), lake(lattice=None)] for _ in range(2))
    policy = ESWMAgent(small[0], seed=0)
    spawned = policy.spawn_many(2)
    shown = [env.reset(seed=0)[0] for env in envs]
    alone = [env.reset(seed=0) for env in again]
    state, starts = None, np.array([True, True])
    for agent, (obs, _) in zip(spawned, alone, strict=True):
        agent.reset(obs, {})
    for _ in range(12):
        actions, state = policy.predict(stacked(shown), state, starts)
        expected = [agent.act(obs, {}) for agent, (obs, _) in zip(spawned, alone, strict=True)]
        assert actions.tolist() == expected
        starts = np.zeros(2, bool)
        for i in range(2):
            shown[i], _, terminated, truncated, _ = envs[i].step(actions[i])
            following, *_ = again[i].step(actions[i])
            if terminated or truncated:
                starts[i], shown[i] = True, envs[i].reset(seed=0)[0]
                alone[i] = again[i].reset(seed=0)
                spawned[i].reset(alone[i][0], {})
            else:
                spawned[i].observe(alone[i][0], int(actions[i]), following, {})
                alone[i] = (following, {})
    assert [agent.numbers for agent, _, _ in state] == [tuple(NUMBERS), tuple(CODES[:4])]


def test_evaluate_policy_in_the_lake():
    returns, lengths = evaluate_policy(
        ESWMAgent(Squares(), seed=0), Monitor(lake()), n_eval_episodes=4, return_episode_rewards=True
    )
    assert len(returns) == 4 and set(returns) <= {0.0, 1.0} and min(lengths) > 1
    envs = make_vec_env(lake, 2, seed=0)
    assert 0 <= evaluate_policy(ESWMAgent(Squares(), seed=0), envs, n_eval_episodes=4)[0] <= 1


# A network


@pytest.fixture(scope="module")
def network():
    """What training of the model of lattices starts from: hexagonal rooms and, for that, square ones as well."""
    torch.manual_seed(0)
    model = build_model(PRESETS["lattices"].model)
    assert isinstance(model, Transformer) and model.starts_from(load_pretrained("random-wall"))
    return model.eval().requires_grad_(False)


def test_a_spanning_bank_leads_to_the_goal_in_rooms_of_squares(network):
    env = gym.make("ESWM-Lattice-v0", size=(4, 4))
    reached, longer = 0, 0
    for seed in range(10):
        obs, info = env.reset(seed=seed)
        shortest = info["shortest_path_length"]
        agent = ESWMAgent(network, seed=seed)
        agent.reset(obs, info)
        for step in range(1, 61):
            action = agent.act(obs, info)
            following, _, terminated, _, info = env.step(action)
            agent.observe(obs, action, following, info)
            obs = following
            if terminated:
                reached += 1
                longer += step - shortest
                break
    assert reached >= 9 and longer <= 10


def test_the_network_finds_the_goal_of_the_lake(network):
    env, agent = lake(), ESWMAgent(network, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [walk(env, agent, 100, keep_memories=episode > 0) for episode in range(12)]
    assert any(info["is_success"] for _, info in found)
