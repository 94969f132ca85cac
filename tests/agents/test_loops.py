"""Loops as people write them: what they leave out is said once, and what they do with their arrays harms nothing."""

import copy
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.wrappers import Autoreset, FlattenObservation
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from symbol_models import TrueModel

import eswm_gym.envs
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.wrappers import PlannedAction, UncertaintyBonus
from eswm_gym.wrappers import ActionMaskObservation, EpisodicMemory, History, MemoryBankObservation, for_sb3

# Without houses: their actions are not discrete, and have no mask.
ENV_IDS = [env_id for env_id in gym.registry if env_id.startswith("ESWM-") and "Indoor" not in env_id]


def model_name(env_id):
    return "minigrid" if "MiniGrid" in env_id else "random-wall"


def play(agent, env, episodes, resets=True, observes=True):
    """Run a loop that may leave something out."""
    for seed in range(episodes):
        obs, info = env.reset(seed=seed)
        if resets:
            agent.reset(obs, info)
        done = False
        while not done:
            action = agent.act(obs, info)
            next_obs, _, terminated, truncated, info = env.step(action)
            if observes:
                agent.observe(obs, action, next_obs, info)
            obs, done = next_obs, terminated or truncated


# What is left out


def test_a_loop_with_nothing_left_out_says_nothing(small):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(ESWMAgent(TrueModel(small)), gym.make("ESWM-RandomWall19-v0"), 3)
        play(ESWMAgent(TrueModel(small)), gym.make("ESWM-RandomWall19Explore-v0"), 3)


def test_a_bank_that_is_never_read_is_warned_of_once(small):
    with pytest.warns(UserWarning, match=r"memory bank that the agent has not read.*agent\.reset") as caught:
        play(ESWMAgent(TrueModel(small)), gym.make("ESWM-RandomWall19-v0"), 3, resets=False)
    assert len(caught) == 1 and caught[0].filename == __file__


def test_an_episode_without_reset_is_warned_of_once(small):
    env, agent = gym.make("ESWM-RandomWall19-v0"), ESWMAgent(TrueModel(small))
    play(agent, env, 1)
    with pytest.warns(UserWarning, match=r"act is called in state .*agent\.reset") as caught:
        play(agent, env, 3, resets=False)
    assert len(caught) == 1


def test_steps_that_are_not_observed_are_warned_of(small):
    with pytest.warns(UserWarning, match=r"agent\.observe"):
        play(ESWMAgent(TrueModel(small)), gym.make("ESWM-RandomWall19-v0"), 3, observes=False)


def test_an_agent_that_goes_on_from_a_file_says_nothing(tmp_path):
    env, agent = gym.make("ESWM-RandomWall19-v0"), ESWMAgent.from_pretrained("random-wall")
    obs, info = env.reset(seed=0)
    agent.reset(obs, info)
    agent.save(tmp_path / "agent")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ESWMAgent.load(tmp_path / "agent").act(obs, info)


def test_evaluate_policy_without_masks_and_banks_is_warned_of_once():
    env, agent = Monitor(gym.make("ESWM-RandomWall19-v0")), ESWMAgent.from_pretrained("random-wall")
    with pytest.warns(UserWarning, match=r"for_sb3\(env\)") as caught:
        evaluate_policy(agent, env, n_eval_episodes=2)
    assert len([w for w in caught if "for_sb3" in str(w.message)]) == 1


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_for_sb3_shows_what_there_is_to_show(env_id):
    env = for_sb3(gym.make(env_id))
    obs, info = env.reset(seed=0)
    assert obs["action_mask"].tolist() == info["action_mask"].tolist()
    assert ("memory_bank" in obs) == ("Explore" not in env_id)
    assert env.observation_space.contains(obs)


def test_for_sb3_leaves_other_environments_as_they_are():
    env = gym.make("CliffWalking-v1")
    assert for_sb3(env) is env


@pytest.mark.parametrize("obs, told", [(np.zeros(38), "ndarray"), ({"image": 1}, "image")])
def test_what_is_no_observation_of_a_state_is_refused_with_advice(obs, told, small):
    agent = ESWMAgent(TrueModel(small))
    for call in (lambda: agent.act(obs, {}), lambda: agent.predict(obs)):
        with pytest.raises(TypeError, match=f"{told}.*DiscreteStates"):
            call()


def test_flattened_observations_are_refused_with_advice(small):
    flat, _ = FlattenObservation(gym.make("ESWM-RandomWall19-v0")).reset(seed=0)
    with pytest.raises(TypeError, match="before wrappers that flatten"):
        ESWMAgent(TrueModel(small)).act(flat, {})


def act_in(env_id, model, **options):
    env, agent = gym.make(env_id, **options), ESWMAgent.from_pretrained(model)
    obs, info = env.reset(seed=0)
    agent.reset(obs, info)
    return agent.act(obs, info)


@pytest.mark.parametrize(
    "env_id, model, advice",
    [
        ("ESWM-MiniGrid-v0", "random-wall", r"(?s)integer or bits for a model of symbols, got .*'minigrid'"),
        ("ESWM-MiniGridExplore-v0", "random-wall", r"(?s)integer or bits for a model of symbols, got .*'minigrid'"),
        ("ESWM-RandomWall-v0", "minigrid", r"bank of views must be \(N, 51\).*'random-wall'"),
        ("ESWM-RandomWall-v0", "lattices", r"action_mask must allow one or more of 19 actions.*obs\['actions'\]"),
    ],
)
def test_a_model_in_the_wrong_world_says_which_one_fits(env_id, model, advice):
    with pytest.raises(ValueError, match=advice):
        act_in(env_id, model)


def test_minigrids_own_codes_are_refused():
    """Of its codes 1 is empty, as the agent's own cell always is, and 2 a wall."""
    codes = gym.make("MiniGrid-Empty-8x8-v0", agent_view_size=5).reset(seed=0)[0]["image"][..., 0]
    with pytest.raises(ValueError, match="not MiniGrid's own object codes"):
        ESWMAgent.from_pretrained("minigrid").act({"state": codes}, {})


@pytest.mark.parametrize("length, named", [(5, "pair"), ((2.5, 3), "integer, got 2.5"), ((1, 2, 3), "pair")])
def test_a_wall_length_that_is_no_pair_of_integers_is_named(length, named):
    with pytest.raises(ValueError, match=f"wall_length must be an? {named}"):
        eswm_gym.envs.RandomWallEnv(wall_length=length)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_device_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="no device 'cuda' here, 'cpu' always is"):
        ESWMAgent.from_pretrained("random-wall", device="cuda")


def test_make_vec_without_a_time_limit_as_in_make():
    envs = gym.make_vec("ESWM-RandomWall19Explore-v0", num_envs=2, max_episode_steps=-1)
    envs.reset(seed=0)
    assert not any(envs.step(np.zeros(2, int))[3].any() for _ in range(50))


def test_repr_says_model_memories_and_options():
    agent = ESWMAgent.from_pretrained("random-wall", algorithm="astar")
    agent.reset({"state": 0, "goal": 2}, {"memory_bank": [(0, 0, 1), (1, 0, 2)]})
    shown = repr(agent)
    assert shown == "ESWMAgent(Transformer of 64 states and 6 actions, 2 memories, algorithm='astar', capacity=74)"


# Where an episode begins


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_predict_in_the_native_vector_environment(mode):
    """Every goal is reached, however rooms start anew."""
    envs = gym.make_vec("ESWM-RandomWall19-v0", num_envs=8, autoreset_mode=mode)
    agent = ESWMAgent.from_pretrained("random-wall", seed=0)
    obs, infos = envs.reset(seed=3)
    banks, state, starts, arrived, ended = infos["memory_bank"].copy(), None, np.ones(8, bool), 0, 0
    for _ in range(40):
        shown = obs | {"memory_bank": banks, "action_mask": infos["action_mask"]}
        actions, state = agent.predict(shown, state, starts)
        obs, _, terminations, truncations, infos = envs.step(actions)
        if "memory_bank" in infos:
            banks[infos["_memory_bank"]] = infos["memory_bank"][infos["_memory_bank"]]
        starts = terminations | truncations
        arrived, ended = arrived + terminations.sum(), ended + starts.sum()
    assert ended >= 40 and arrived == ended


def truths(env):
    """All transitions of the room that an environment is in."""
    room = env.unwrapped.room
    moves = [(at, action) for at in np.flatnonzero(~room.walls).tolist() for action in range(6)]
    return {(int(room.states[at]), action, int(room.states[room.next_location(at, action)])) for at, action in moves}


@pytest.mark.parametrize("wrapper", [EpisodicMemory, History, MemoryBankObservation, PlannedAction, UncertaintyBonus])
def test_an_episode_also_begins_at_the_step_after_an_end(wrapper):
    arguments = {"agent": "random-wall"} if wrapper in (PlannedAction, UncertaintyBonus) else {}
    env = wrapper(Autoreset(gym.make("ESWM-RandomWall19-v0", max_episode_steps=4)), **arguments)
    obs, info = env.reset(seed=0)
    begins, done, episodes, rng = True, False, 0, np.random.default_rng(0)
    for _ in range(40):
        if wrapper is MemoryBankObservation and begins:
            assert (obs["memory_bank"] == info["memory_bank"]).all()
        elif wrapper is EpisodicMemory:
            rows = [tuple(row) for row in obs["memory"].tolist() if row[0] >= 0]
            assert len(rows) == 0 if begins else set(rows) <= truths(env)
        elif wrapper is History:
            before = [row for row in obs["history"].tolist() if row[2] >= 0]
            assert (
                len(before) == 1
                if begins
                else {(source, action, end) for source, action, end, _ in before if action >= 0} <= truths(env)
            )
        elif wrapper in (PlannedAction, UncertaintyBonus):
            assert set(env.agent.memory) <= truths(env)
        begins = done
        obs, _, terminated, truncated, info = env.step(int(rng.integers(6)))
        done = terminated or truncated
        episodes += begins
    assert episodes >= 6


# What is kept was copied


def scribble(*handed):
    """Write over every array, however deep."""
    for one in handed:
        if isinstance(one, dict):
            scribble(*one.values())
        elif isinstance(one, list | tuple):
            scribble(*one)
        elif isinstance(one, np.ndarray) and one.flags.writeable:
            one[...] = 1


def handed_out(env, actions, scribbles):
    """What an environment hands out, written over as soon as it has been copied."""
    told = []
    for call in (lambda: env.reset(seed=4), *(lambda a=a: env.step(a) for a in actions)):
        result = call()
        told.append(copy.deepcopy(result))
        if scribbles:
            scribble(result)
    return told


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other)


def wrapped(env_id):
    """An environment and, where they fit, each of the wrappers that keep something."""
    yield gym.make(env_id)
    yield for_sb3(gym.make(env_id))
    yield PlannedAction(gym.make(env_id), model_name(env_id))
    yield UncertaintyBonus(gym.make(env_id), model_name(env_id))
    if env_id.startswith("ESWM-RandomWall"):
        yield EpisodicMemory(gym.make(env_id))
        if "Explore" not in env_id:
            yield History(gym.make(env_id))


@pytest.mark.parametrize("env_id", [env_id for env_id in ENV_IDS if "Lattice" not in env_id])
def test_scribbling_over_what_is_handed_out_changes_nothing(env_id):
    for clean, scribbled in zip(wrapped(env_id), wrapped(env_id), strict=True):
        actions = np.random.default_rng(0).integers(clean.action_space.n, size=8).tolist()
        assert same(handed_out(clean, actions, False), handed_out(scribbled, actions, True)), clean


def test_scribbling_over_what_a_vector_environment_hands_out_changes_nothing():
    clean, scribbled = (gym.make_vec("ESWM-RandomWall19-v0", num_envs=3) for _ in range(2))
    actions = np.random.default_rng(0).integers(6, size=(20, 3))
    assert same(handed_out(clean, actions, False), handed_out(scribbled, actions, True))


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall19-v0", "ESWM-RandomWall19Explore-v0", "ESWM-MiniGrid-v0"])
def test_scribbling_over_what_an_agent_was_handed_changes_nothing(env_id):
    def walk(scribbles):
        env, agent = gym.make(env_id), ESWMAgent.from_pretrained(model_name(env_id), seed=0)
        obs, info = env.reset(seed=2)

        def call(method, *arguments):
            given = copy.deepcopy(arguments)
            result = method(*given)
            if scribbles:
                scribble(*given)
            return result

        call(agent.reset, obs, info)
        actions = []
        for _ in range(6):
            actions.append(call(agent.act, obs, info))
            next_obs, _, over, _, info = env.step(actions[-1])
            call(agent.observe, obs, actions[-1], next_obs, info)
            obs = next_obs
            if over:
                break
        return actions, list(agent.memory)

    assert walk(False) == walk(True)


def test_predict_keeps_copies_of_an_array_that_is_used_again():
    """A vector environment with copy=False writes each observation into the same arrays."""

    def walk(copies):
        wrappers = [MemoryBankObservation, ActionMaskObservation]
        arguments = {"copy": copies, "autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
        envs = gym.make_vec("ESWM-RandomWall19-v0", 3, "sync", wrappers=wrappers, vector_kwargs=arguments)
        agent = ESWMAgent.from_pretrained("random-wall", seed=0)
        obs, _ = envs.reset(seed=0)
        state, starts, taken = None, np.ones(3, bool), []
        for _ in range(15):
            actions, state = agent.predict(obs, state, starts)
            obs, _, terminations, truncations, _ = envs.step(actions)
            starts = terminations | truncations
            taken.append(actions.tolist())
        return taken, [list(inner.memory) for inner, *_ in state]

    assert walk(True) == walk(False)
