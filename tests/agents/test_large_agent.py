"""Agents with windows in worlds of squares that are larger than anything their model reads at once."""

import networkx as nx
import numpy as np
import pytest
from square_models import NUMBERS, STEPS, Grid, Squares

from eswm_gym.agents import ESWMAgent, Place
from eswm_gym.agents.beliefs import beliefs
from eswm_gym.world_model import NumberedActions, ViewTransformer, ViewTransformerConfig

WALLS = [(3, y) for y in range(1, 7)] + [(x, 8) for x in range(5, 10)]


def an_agent(**options):
    return ESWMAgent(NumberedActions(Squares(), NUMBERS), seed=0, **{"window": 19} | options)


def begin(agent, env, bank=()):
    obs, info = env.reset()
    obs.pop("actions")
    agent.reset(obs, {**info, "memory_bank": bank})
    return obs


def step(agent, env, obs):
    action = agent.act(obs, {})
    following, *_, info = env.step(action)
    following.pop("actions")
    agent.observe(obs, action, following, info)
    return following, info


def facts_of(env):
    """(s, a, e) of the moves down and to the right between cells."""
    cells = [(x, y) for x in range(env.width) for y in range(env.height) if (x, y) not in env.walls]
    moves = [(cell, action, env.to(cell, action)) for cell in cells for action in (1, 2)]
    return [(env.name(cell), action, env.name(end)) for cell, action, end in moves if end != cell]


def graph_of(env):
    cells = {(x, y) for x in range(env.width) for y in range(env.height)} - env.walls
    return nx.Graph((c, d) for c in cells for d in (env.to(c, a) for a in range(4)) if d != c)


def test_it_visits_all_of_a_world_from_nothing_and_knows_the_way_then():
    env, agent = Grid(12, 12, WALLS), an_agent()
    obs, seen, steps = begin(agent, env), set(), 0
    free = 144 - len(WALLS)
    while len(seen) < free:
        seen.add(env.at)
        obs, _ = step(agent, env, obs)
        steps += 1
    assert steps < 3 * free
    assert len(agent.memory) > agent.model.config.max_memories
    agent.prepare([agent], [obs])
    graph = graph_of(env)
    for goal in [(11, 11), (4, 3), (6, 9)]:
        plan, shortest = agent.plan(obs["state"], env.name(goal)), nx.shortest_path_length(graph, env.at, goal)
        assert shortest <= len(plan) <= shortest + 2
        assert all(state < 144 for state in plan.states)


def test_it_bumps_into_each_wall_once():
    env, agent = Grid(8, 8, [(3, 3), (4, 3)]), an_agent()
    obs, bumps = begin(agent, env), []
    for _ in range(120):
        action = agent.act(obs, {})
        dx, dy = STEPS[action]
        there = env.at[0] + dx, env.at[1] + dy
        following, *_, info = env.step(action)
        following.pop("actions")
        if following["state"] == obs["state"]:
            bumps.append(there)
        agent.observe(obs, action, following, info)
        obs = following
    assert bumps and len(bumps) == len(set(bumps))


def test_it_plans_over_a_bank_that_no_model_reads_at_once():
    env, agent = Grid(12, 12, WALLS, goal=(11, 11)), an_agent()
    bank = facts_of(env)
    obs = begin(agent, env, bank)
    steps, info = 0, {"is_success": False}
    while not info["is_success"]:
        obs, info = step(agent, env, obs)
        steps += 1
    assert steps == nx.shortest_path_length(graph_of(env), (0, 0), (11, 11))


def test_a_wall_that_appears_is_gone_around_and_what_was_imagined_near_it_stays():
    env, agent = Grid(9, 9, goal=(8, 4)), an_agent()
    obs = begin(agent, env, facts_of(env))
    env.at = (0, 4)
    obs["state"] = env.name(env.at)
    agent.reset(obs, {}, keep_memories=True)
    agent.prepare([agent], [obs])
    n_known = len(agent.knowledge.map)
    env.walls.add((4, 4))
    steps, info, forgotten = 0, {"is_success": False}, []
    while not info["is_success"]:
        obs, info = step(agent, env, obs)
        forgotten += info.get("forgotten", [])
        steps += 1
    assert steps == 11  # 8 straight on, one bump, and two aside
    assert forgotten and all(env.name((4, 4)) in (source, end) for source, _, end in forgotten)
    assert len(agent.knowledge.map) >= n_known
    assert list(agent.knowledge.places.values()) == [Place.WALL]
    # The wall goes again.
    env.walls.clear()
    env.at = (3, 4)
    obs["state"], here = env.name(env.at), env.name((4, 4))
    agent.observe(obs, 2, {**obs, "state": here}, {})
    assert agent.plan(env.name((4, 3)), env.name((4, 5))).states == tuple(map(env.name, [(4, 3), (4, 4), (4, 5)]))


def test_dead_ends_are_never_entered():
    env, agent = Grid(9, 9, goal=(8, 0)), an_agent()
    obs = begin(agent, env, facts_of(env))
    for cell in [(4, y) for y in range(8)]:
        agent.knowledge.avoid(env.name(cell))
    plan = agent.plan(obs["state"], env.name((8, 0)))
    assert len(plan) == 8 + 2 * 8
    agent.knowledge.avoid(env.name((4, 8)))
    assert not agent.plan(obs["state"], env.name((8, 0))).found
    explorer, visited = an_agent(), set()
    env.goal = None
    obs = begin(explorer, env, facts_of(env))
    explorer.knowledge.avoid(env.name((1, 1)))
    for _ in range(60):
        obs, _ = step(explorer, env, obs)
        visited.add(env.at)
    assert len(visited) > 20 and (1, 1) not in visited


def test_jumps_do_not_bend_the_map():
    env = Grid(9, 9, jumps={((4, 4), 2): (0, 0)}, goal=(8, 8))
    agent = an_agent()
    obs = begin(agent, env)
    for _ in range(300):
        obs, info = step(agent, env, obs)
        if info["is_success"]:
            break
    plan = agent.plan(env.name((4, 4)), env.name((0, 0)))
    assert len(plan) <= 8


def test_looking_changes_nothing_and_the_same_seed_does_the_same():
    def play(looks):
        env, agent = Grid(7, 7, [(3, 3)]), an_agent()
        obs, done = begin(agent, env), []
        for _ in range(40):
            if looks:
                believed = beliefs(agent, obs["state"])
                assert believed.state == obs["state"]
            obs, _ = step(agent, env, obs)
            done.append(int(obs["state"]))
        return done

    assert play(False) == play(False) == play(True)


@pytest.mark.parametrize("at", [0, 5, 30])
def test_a_saved_agent_goes_on_as_it_would_have(at, tmp_path):
    def play(saves):
        env = Grid(7, 7, [(3, 3)])
        agent = ESWMAgent.from_pretrained("lattices", seed=1, window=10)
        obs, info = env.reset()
        agent.reset(obs, info)
        done = []
        for i in range(45):
            if saves and i == at:
                agent.save(tmp_path / "agent")
                agent = ESWMAgent.load(tmp_path / "agent")
            action = agent.act(obs, {})
            following, *_, info = env.step(action)
            agent.observe(obs, action, following, info)
            done.append(int(action))
            obs = following
        return done, agent.knowledge.to_dict()

    assert play(True) == play(False)


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="window of 19 .* 'uncertainty'"):
        an_agent(exploration="uncertainty")
    with pytest.raises(ValueError, match="a window has 2 to 40 states with this model, got 41"):
        an_agent(window=41)
    with pytest.raises(ValueError, match="models of symbols"):
        ESWMAgent(ViewTransformer(ViewTransformerConfig(dim=8, layers=1, heads=1, cell_dim=2)), window=5)
    with pytest.raises(ValueError, match="a state is a number from 0"):
        an_agent().plan(-1, 3)


def test_memory_is_unbounded_but_windows_are_not():
    agent = an_agent()
    bank = [(i, 2, i + 1) for i in range(500)]
    agent.reset({"state": 0}, {"memory_bank": np.array(bank)})
    assert len(agent.memory) == 500
    assert len(agent.plan(0, 500)) == 500
