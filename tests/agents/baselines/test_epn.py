"""EPN: what it remembers, what its torso sees, and that it finds its way."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import eswm_gym  # noqa: F401
from eswm_gym.agents.baselines import EPNAgent
from eswm_gym.agents.baselines.epn import CAPACITY, deduplicate, many_goals, walk
from eswm_gym.rooms import Room, RoomConfig
from eswm_gym.wrappers import EpisodicMemory, MemoryBankObservation

PADDING = (-1, -1, -1)


@pytest.fixture(scope="module")
def agent():
    return EPNAgent.from_pretrained("epn")


def rooms(n, radius=2, seed=0):
    rng = np.random.default_rng(seed)
    return [Room.generate(rng, RoomConfig.random_wall(radius, hidden=0.0)) for _ in range(n)]


def logits(agent, memory, state, goal):
    with torch.inference_mode():
        return agent._logits(agent.policy, [(memory, state, goal)])[0]


def test_duplicates_and_padding_are_cut():
    memory = torch.tensor(
        [
            [PADDING, (4, 0, 5), (4, 0, 5), (5, 3, 4), (4, 0, 5)],
            [PADDING, PADDING, PADDING, (0, 0, 0), (0, 5, 0)],
        ]
    )
    kept = deduplicate(memory)
    assert kept.shape == (2, 2, 3)
    assert {tuple(row) for row in kept[0].tolist()} == {(4, 0, 5), (5, 3, 4)}
    assert {tuple(row) for row in kept[1].tolist()} == {(0, 0, 0), (0, 5, 0)}
    alone = deduplicate(memory[:, :1])
    assert alone.tolist() == [[[-1, -1, -1]]] * 2


def test_duplicates_order_and_padding_change_nothing(agent):
    memory = [(3, 0, 5), (5, 1, 2), (2, 3, 9), (9, 0, 2)]
    expected = logits(agent, memory, 3, 9)
    for same in (memory[::-1], memory * 3, [memory[1], *memory]):
        torch.testing.assert_close(logits(agent, same, 3, 9), expected)
    together = agent._logits(agent.policy, [(memory, 3, 9), (memory * 9, 5, 2), ([], 1, 2)])
    torch.testing.assert_close(together[0], expected)


def test_names_of_states_do_not_matter(agent):
    """So one policy serves any room and vocabulary, whatever it was trained on."""
    for room, memory in zip(rooms(3), agent.fill_memories(rooms(3), 40), strict=True):
        names = np.random.default_rng(1).permutation(5000)
        renamed = [(int(names[s]), a, int(names[e])) for s, a, e in memory.tolist()]
        state, goal = (int(s) for s in room.states[~room.walls][[0, -1]])
        torch.testing.assert_close(
            logits(agent, memory.tolist(), state, goal),
            logits(agent, renamed, int(names[state]), int(names[goal])),
            atol=1e-4, rtol=1e-4,
        )  # fmt: skip


def test_it_takes_the_moves_it_remembers(agent):
    """To the states beside it on a line: onwards as it walked, and back by the reverse, which it never walked."""
    line = [(10, 0, 11), (11, 0, 12), (12, 0, 13)]
    assert logits(agent, line, 12, 13).argmax() == 0
    assert logits(agent, line, 11, 10).argmax() == 3
    assert logits(agent, line, 13, 12).argmax() == 3


def test_the_agent_sees_what_the_policy_was_trained_on(agent):
    """stable-baselines3's own `predict` on the training environment's observations, action by action."""
    env = EpisodicMemory(many_goals(RoomConfig.random_wall(3, hidden=0.0)))
    greedy = EPNAgent(agent.policy, agent.config, deterministic=True)
    obs, info = env.reset(seed=0)
    greedy.reset(obs, info)
    for _ in range(40):
        action = greedy.act(obs, {})
        assert action == agent.policy.predict(obs, deterministic=True)[0]
        next_obs, _, _, _, info = env.step(action)
        greedy.observe(obs, action, next_obs, info)
        obs = next_obs
        memory = obs["memory"][obs["memory"][:, 1] >= 0]
        assert memory.tolist() == [list(row) for row in greedy.memory]


def test_its_head_reads_the_activations(agent):
    memory = np.array([[(3, 0, 5), PADDING], [(5, 1, 2), (2, 3, 9)]])
    read = agent.activations(memory, np.array([3, 5]), np.array([9, -1]))
    assert read.shape == (2, agent.config["hidden"]) and read.dtype == np.float32
    head = agent.policy.action_net
    expected = torch.stack([logits(agent, [(3, 0, 5)], 3, 9), logits(agent, [(5, 1, 2), (2, 3, 9)], 5, -1)])
    torch.testing.assert_close(torch.from_numpy(read) @ head.weight.T + head.bias, expected)


def test_memory_begins_with_the_bank_and_forgets_its_oldest(agent):
    one = agent.spawn()
    one.reset({"state": 0}, {"memory_bank": np.array([[1, 2, 3], PADDING])})
    assert list(one.memory) == [(1, 2, 3)]
    for i in range(CAPACITY):
        one.observe({"state": i}, 0, {"state": i + 1}, {})
    assert len(one.memory) == CAPACITY and one.memory[0] == (0, 0, 1)
    one.observe({"state": 7}, np.int64(4), {"state": 9}, {"end_state": 8})
    assert one.memory[-1] == (7, 4, 8)
    one.reset({"state": 0}, {})
    assert not one.memory
    many = np.arange(250)[:, None] * [1, 0, 1]
    one.reset({"state": 0}, {"memory_bank": many})
    assert one.memory[-1] == (249, 0, 249) and len(one.memory) == CAPACITY


def test_prepared_together_or_one_by_one_is_the_same(agent):
    memories = agent.fill_memories(rooms(6), 60)
    observations = [{"state": int(memory[-1, 2]), "goal": int(memory[0, 0])} for memory in memories]
    chosen = []
    for together in (True, False):
        agents = [agent.spawn(seed) for seed in range(6)]
        for one, obs, memory in zip(agents, observations, memories, strict=True):
            one.reset(obs, {"memory_bank": memory})
        if together:
            EPNAgent.prepare(agents, observations)
        chosen.append([one.act(obs, {}) for one, obs in zip(agents, observations, strict=True)])
    assert chosen[0] == chosen[1]
    EPNAgent.prepare([], [])


def test_what_was_prepared_for_another_sight_is_not_used(agent):
    one = EPNAgent(agent.policy, agent.config, deterministic=True)
    line = [(10, 0, 11), (11, 0, 12)]
    one.reset({}, {"memory_bank": line})
    one.prepare([one], [{"state": 10, "goal": 12}])
    assert one.act({"state": 12, "goal": 11}, {}) == 3
    assert one.act({"state": 11, "goal": 12}, {}) == 0


def test_masks_are_heeded(agent):
    one = agent.spawn(0)
    one.reset({}, {"memory_bank": [(10, 0, 11)]})
    mask = np.array([0, 0, 1, 0, 0, 0])
    assert {one.act({"state": 10, "goal": 11}, {"action_mask": mask}) for _ in range(9)} == {2}


def test_same_seed_same_walk_and_another_seed_another(agent):
    walks = [agent.fill_memories(rooms(2), 30, seed) for seed in (0, 0, 1)]
    assert np.array_equal(walks[0][0], walks[1][0]) and not np.array_equal(walks[0][0], walks[2][0])


def test_memories_of_rooms_of_any_size_and_vocabulary_are_true(agent):
    odd = Room(2, range(100, 119), walls=[9])
    for room, memory in zip([*rooms(1), *rooms(1, radius=3), odd], agent.fill_memories(
        [*rooms(1), *rooms(1, radius=3), odd], 30), strict=True):  # fmt: skip
        assert memory.shape == (30, 3) and memory.dtype == np.int64
        assert room.to_batch().is_true(memory[None]).all()
    assert len(agent.fill_memories([odd], CAPACITY + 10)[0]) == CAPACITY


def test_with_a_full_memory_it_finds_its_goals(agent):
    _, results = walk(agent, rooms(8, seed=5), 300, seed=5)
    late = [goal for room in results for goal in room if goal["began"] >= CAPACITY]
    early = [goal for room in results for goal in room if goal["began"] < 50]
    assert np.mean([goal["success"] for goal in late]) > 0.95
    assert np.mean([goal["steps"] for goal in late]) < np.mean([goal["steps"] for goal in early])


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall-v0", "ESWM-OpenArena-v0"])
def test_in_the_place_of_a_policy(agent, env_id):
    venv = make_vec_env(env_id, 3, seed=0, wrapper_class=MemoryBankObservation)
    rewards, lengths = evaluate_policy(agent, venv, n_eval_episodes=6, return_episode_rewards=True)
    assert len(rewards) == 6 and np.mean(rewards) > 0.3


def test_without_a_goal_it_still_walks(agent):
    env = gym.make("ESWM-RandomWall19Explore-v0")
    obs, info = env.reset(seed=0)
    one = agent.spawn(0)
    one.reset(obs, info)
    visited = 0.0
    for _ in range(15):
        action = one.act(obs, info)
        next_obs, reward, _, _, info = env.step(action)
        one.observe(obs, action, next_obs, info)
        obs, visited = next_obs, visited + reward
    assert visited >= 4
