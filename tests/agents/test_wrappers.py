"""The world model lent to agents in training: its doubt as a reward, its agent's move as an observation."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env
from stable_baselines3.common.env_util import make_vec_env
from torch import nn

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.baselines import RandomAgent
from eswm_gym.agents.wrappers import PlannedAction, UncertaintyBonus
from eswm_gym.rooms import Room
from eswm_gym.world_model import ESWM, EncodedBank, ModelConfig, Prediction
from eswm_gym.world_model.codecs import IntegerCodec

N_STATES = 19
# Without houses: their actions are not discrete, and have no mask.
ENV_IDS = [env_id for env_id in gym.registry if env_id.startswith("ESWM-") and "Indoor" not in env_id]


def model_name(env_id):
    return "minigrid" if "MiniGrid" in env_id else "random-wall"


class Hesitant(ESWM):
    """Takes the way back to be there with probability 0.75, and does not know any other move."""

    def __init__(self):
        super().__init__(ModelConfig(n_states=N_STATES))
        self.codec = IntegerCodec(N_STATES, 1, embeddings=False)
        self.weight = nn.Parameter(torch.zeros(()))
        self.passes = 0

    def encode(self, memories):
        self.passes += 1
        return EncodedBank(memories)

    def predict(self, bank, query):
        p = torch.zeros(*query.shape[:2], N_STATES + 1)
        for b, questions in enumerate(query.tolist()):
            back = {(end, (action + 3) % 6): source for source, action, end in bank.memories[b].tolist()}
            for q, (state, action, _) in enumerate(questions):
                end = back.get((state, action), N_STATES)
                p[b, q, N_STATES] = 0.25
                p[b, q, end] = 1.0 if end == N_STATES else 0.75
        return Prediction(p.log(), torch.zeros(*query.shape[:2], 7), p.log())

    def activations(self, bank, query):
        raise NotImplementedError


# 3 1 / 4 0 5 / 2 6, of which 3 is wall; the agent starts in the middle.
ROOM = Room(1, [3, 1, 4, 0, 5, 2, 6], walls=[0])
EAST, NORTH_WEST, WEST = 0, 2, 3


def test_the_bonus_by_hand():
    env = UncertaintyBonus(gym.make("ESWM-RandomWall19Explore-v0", radius=1), Hesitant(), scale=0.5)
    for _ in range(2):  # the memory bank of an episode is its own
        env.reset(options={"room": ROOM, "start": 3})
        steps = [env.step(action) for action in (EAST, WEST, EAST, EAST, WEST, NORTH_WEST, NORTH_WEST)]
        states = [obs["state"] for obs, *_ in steps]
        assert states == [5, 0, 5, 5, 0, 0, 0]
        # Not known; the way back; done before; off the lattice, as the mask says; the wall is unknown, once.
        bonus = [0.5, 0.125, 0, 0, 0, 0.5, 0]
        assert [info["intrinsic_reward"] for *_, info in steps] == pytest.approx(bonus)
        assert [reward for _, reward, *_ in steps] == pytest.approx([1.5, *bonus[1:]])
    assert env.agent.memory.to_numpy().tolist() == [[0, 0, 5], [5, 3, 0], [5, 0, 5], [0, 2, 0]]


def test_a_step_before_the_first_reset_is_refused_as_gymnasium_does():
    with pytest.raises(gym.error.ResetNeeded):
        UncertaintyBonus(gym.make("ESWM-RandomWall19-v0"), Hesitant()).step(0)


def test_actions_may_be_arrays_of_no_dimension():
    """As stable-baselines3's policies give them for one environment."""
    for action in (EAST, np.int64(EAST), np.array(EAST)):
        env = UncertaintyBonus(gym.make("ESWM-RandomWall19Explore-v0", radius=1), Hesitant())
        env.reset(options={"room": ROOM, "start": 3})
        assert env.step(action)[4]["intrinsic_reward"] == 1


def test_what_is_remembered_needs_no_pass_of_the_model():
    model = Hesitant()
    env = UncertaintyBonus(gym.make("ESWM-RandomWall19Explore-v0", radius=1), model)
    env.reset(options={"room": ROOM, "start": 3})
    for action in (EAST, WEST):
        env.step(action)
    before = model.passes
    for action in (EAST, WEST, EAST, WEST):
        env.step(action)
    assert model.passes == before


def test_a_memory_bank_leaves_little_to_be_unsure_of():
    doubt = {}
    for memory_bank in ("spanning", "none"):
        env = UncertaintyBonus(gym.make("ESWM-RandomWall19-v0", memory_bank=memory_bank), "random-wall")
        env.reset(seed=3)
        room = env.unwrapped.room.copy()
        rng = np.random.default_rng(0)
        doubt[memory_bank] = []
        for seed in range(4):
            _, info = env.reset(seed=seed, options={"room": room, "start": 9 if not room.walls[9] else 10})
            for _ in range(12):
                *_, terminated, _, info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))
                doubt[memory_bank].append(info["intrinsic_reward"])
                if terminated:
                    break
    assert np.mean(doubt["none"]) > 0.3 > 0.05 > np.mean(doubt["spanning"])


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_planned_actions_are_those_of_the_agent_in_a_loop_of_its_own(env_id):
    agent = ESWMAgent.from_pretrained(model_name(env_id))
    wrapped, plain = PlannedAction(gym.make(env_id), agent), gym.make(env_id)
    agent = agent.spawn(7)
    shown, _ = wrapped.reset(seed=7)
    obs, info = plain.reset(seed=7)
    agent.reset(obs, info)
    for step in range(12):
        action = agent.act(obs, info)
        assert shown["planned_action"] == action and wrapped.observation_space.contains(shown)
        if step % 4 == 3:  # what the agent learns from need not be what it planned
            action = (action + 1) % plain.action_space.n
        shown, _, terminated, truncated, _ = wrapped.step(action)
        next_obs, *_, info = plain.step(action)
        agent.observe(obs, action, next_obs, info)
        obs = next_obs
        if terminated or truncated:
            break
    assert wrapped.agent.memory == agent.memory


@pytest.mark.parametrize("seed", range(5))
def test_who_does_as_planned_arrives_by_a_shortest_way(seed):
    env = PlannedAction(gym.make("ESWM-RandomWall19-v0"), "random-wall")
    obs, info = env.reset(seed=seed)
    shortest = info["shortest_path_length"]
    for step in range(shortest):
        obs, _, terminated, _, _ = env.step(obs["planned_action"])
        assert terminated == (step == shortest - 1)
    assert obs["planned_action"] == 0  # nothing to plan


def test_any_agent_can_plan():
    env = PlannedAction(gym.make("ESWM-RandomWall19-v0"), RandomAgent())
    expected = RandomAgent(4)
    _, info = gym.make("ESWM-RandomWall19-v0").reset(seed=4)
    assert env.reset(seed=4)[0]["planned_action"] == expected.act({}, info)


@pytest.mark.parametrize("kind", [UncertaintyBonus, PlannedAction])
def test_environments_share_a_model_but_no_memory(kind):
    agent = ESWMAgent.from_pretrained("random-wall")
    one, other = (kind(gym.make("ESWM-RandomWall19Explore-v0"), agent) for _ in range(2))
    assert one.agent.model is other.agent.model is agent.model
    one.reset(seed=0)
    other.reset(seed=0)
    one.step(0)
    assert [len(a.memory) for a in (one.agent, other.agent, agent)] == [1, 0, 0]


# That there is a wrapper and, in MiniGrid, that views are neither pictures nor vectors.
EXPECTED_WARNINGS = (
    "is different from the unwrapped version",
    "has an unconventional shape",
    "minimal resolution for an image",
    "observation space image is an image",
)


@pytest.mark.parametrize("kind", [UncertaintyBonus, PlannedAction])
@pytest.mark.parametrize("env_id", ["ESWM-RandomWall19-v0", "ESWM-OpenArenaExplore-v0", "ESWM-MiniGrid-v0"])
def test_checkers(env_id, kind):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(kind(gym.make(env_id).unwrapped, model_name(env_id)), skip_render_check=True)
        sb3_check_env(kind(gym.make(env_id), model_name(env_id)))
    texts = [str(warning.message) for warning in caught]
    assert [text for text in texts if not any(expected in text for expected in EXPECTED_WARNINGS)] == []


def test_specs_build_the_wrapped_environment_again():
    env = UncertaintyBonus(PlannedAction(gym.make("ESWM-RandomWall19-v0"), "random-wall"), "random-wall", scale=0.3)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.scale == 0.3
    assert env.reset(seed=2)[0] == again.reset(seed=2)[0]
    for (obs, reward, *_), (obs_again, reward_again, *_) in [(env.step(a), again.step(a)) for a in (0, 3, 1)]:
        assert (obs, reward) == (obs_again, reward_again)


def both(env):
    return UncertaintyBonus(PlannedAction(env, "random-wall"), "random-wall")


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vectorised(mode):
    # Not `both`: a spawned process cannot import this file.
    wrap = [lambda env: UncertaintyBonus(PlannedAction(env, "random-wall"), "random-wall")]
    how = {"context": "spawn"} if mode == "async" else {}
    envs = gym.make_vec("eswm_gym:ESWM-RandomWall19-v0", 2, mode, wrappers=wrap, vector_kwargs=how)
    try:
        assert isinstance(envs.single_observation_space["planned_action"], gym.spaces.Discrete)
        obs, _ = envs.reset(seed=0)
        stepped = envs.step(np.array([1, 4]))
    finally:
        envs.close()
    for i, action in enumerate((1, 4)):
        alone = both(gym.make("ESWM-RandomWall19-v0"))
        assert alone.reset(seed=i)[0]["planned_action"] == obs["planned_action"][i]
        one = alone.step(action)
        assert one[0]["planned_action"] == stepped[0]["planned_action"][i]
        assert one[4]["intrinsic_reward"] == pytest.approx(stepped[4]["intrinsic_reward"][i], abs=1e-5)


def test_masks_reach_maskable_policies():
    venv = make_vec_env("ESWM-RandomWall19-v0", 2, seed=0, wrapper_class=both)
    venv.reset()
    masks = np.stack(venv.env_method("action_masks"))
    assert masks.shape == (2, 6) and masks.dtype == bool
    assert masks.tolist() == [venv.envs[i].unwrapped.action_masks().tolist() for i in range(2)]


@pytest.mark.parametrize("kind", [UncertaintyBonus, PlannedAction])
def test_what_does_not_fit_is_refused(kind):
    with pytest.raises(ValueError, match="must show a state"):
        kind(gym.make("CartPole-v1"), "random-wall")
    with pytest.raises(ValueError, match="3 actions, the environment 6"):
        kind(gym.make("ESWM-RandomWall19-v0"), "minigrid")
