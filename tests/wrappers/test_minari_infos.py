"""Infos that have the same entries at each step, as Minari records them, and banks from what it recorded."""

import gymnasium as gym
import numpy as np
import pytest

import eswm_gym  # noqa: F401
from eswm_gym.agents import MemoryBank
from eswm_gym.agents.wrappers import UncertaintyBonus
from eswm_gym.wrappers import DiscreteStates, ManyGoals, MemoryBankObservation

ENV_IDS = [env_id for env_id in gym.registry if env_id.startswith("ESWM-") and "Indoor" not in env_id]
HOUSES = [pytest.param(f"ESWM-Indoor{task}-v0", marks=pytest.mark.camera) for task in ("", "Explore")]


def lake():
    return DiscreteStates(gym.make("FrozenLake-v1", is_slippery=False), lattice="square", goal=15)


def doubtful():
    return UncertaintyBonus(gym.make("ESWM-RandomWall19Explore-v0"), "random-wall")


@pytest.mark.parametrize("make", [*ENV_IDS, *HOUSES, lake, doubtful])
def test_reset_and_step_have_the_same_entries_but_for_the_bank(make):
    env = gym.make(make) if isinstance(make, str) else make()
    _, first = env.reset(seed=0)
    still = 0 if isinstance(env.action_space, gym.spaces.Discrete) else np.zeros(3)
    for _ in range(3):
        *_, info = env.step(still)
        assert info.keys() == first.keys() - {"memory_bank"}
        kept = info.keys() - {"prob"}  # FrozenLake's own: an integer first, then a float
        assert [type(info[key]) for key in kept] == [type(first[key]) for key in kept]


@pytest.fixture
def collect(tmp_path, monkeypatch):
    """Records random episodes with Minari; returns the dataset, loaded anew, and what each episode was."""
    minari = pytest.importorskip("minari", reason="needs the extra minari")
    pytest.importorskip("jax", reason="needs the extra minari")
    pytest.importorskip("h5py", reason="needs the extra minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))

    def record(env, n_episodes=2, **options):
        collector, lived = minari.DataCollector(env, record_infos=True, **options), []
        collector.action_space.seed(0)
        for seed in range(n_episodes):
            lived.append([collector.reset(seed=seed)])
            while len(lived[-1]) == 1 or not (lived[-1][-1][3] or lived[-1][-1][4]):
                action = collector.action_space.sample()
                lived[-1].append((action, *collector.step(action)))
        collector.create_dataset("tests/random-v0")
        collector.close()
        return minari.load_dataset("tests/random-v0"), lived

    return record


def steady():
    pytest.importorskip("minari", reason="needs the extra minari")
    from eswm_gym.wrappers.minari_infos import SteadyInfos

    return SteadyInfos


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("env_id", ENV_IDS)  # a house's episode is all pictures, and has no states to compare
def test_episodes_of_every_environment_are_recorded(env_id, collect):
    env = gym.make(env_id)
    dataset, lived = collect(env, step_data_callback=steady())
    for episode, (first, *steps) in zip(dataset.iterate_episodes(), lived, strict=True):
        infos = [first[1], *(step[5] for step in steps)]
        assert set(episode.infos) == infos[-1].keys()
        for key, column in episode.infos.items():
            np.testing.assert_array_equal(column, [info[key] for info in infos])
        states = [first[0]["state"], *(step[1]["state"] for step in steps)]
        np.testing.assert_array_equal(episode.observations["state"], states)
    assert ("memory_bank" in lived[0][0][1]) == ("Explore" not in env_id)  # whoever collects sees it


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("actions", ["known", "permuted"])
def test_the_bank_of_an_episode_is_true_in_its_room(actions, collect):
    """The seed that Minari keeps leads back to the room, and each transition is a move there."""
    env = gym.make("ESWM-Lattice-v0", actions=actions)
    dataset, lived = collect(env, step_data_callback=steady())
    for i, (_, *steps) in enumerate(lived):
        bank = MemoryBank.from_minari(dataset, episodes=[i], n_actions=4)
        (kept,) = dataset.storage.get_episode_metadata([i])
        assert kept["seed"] == i
        env.reset(seed=kept["seed"])
        room = env.unwrapped.room
        assert len(bank) == len({(lived[i][t][0 if t == 0 else 1]["state"], steps[t][0]) for t in range(len(steps))})
        assert all(room.next_state(source, action) == end for source, action, end in bank)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_entries_that_come_and_go_are_left_out(collect):
    env = ManyGoals(gym.make("ESWM-RandomWall19-v0"), episode_steps=40)
    dataset, lived = collect(env, n_episodes=1, step_data_callback=steady())
    assert any("goal_result" in step[5] for step in lived[0][1:])
    (episode,) = dataset.iterate_episodes()
    assert set(episode.infos) == {"action_mask", "blocked", "is_success", "location", "shortest_path_length"}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_bank_may_be_recorded_with_the_observations(collect):
    env = MemoryBankObservation(gym.make("ESWM-OpenArena-v0"))
    dataset, lived = collect(env, n_episodes=1, step_data_callback=steady())
    (episode,) = dataset.iterate_episodes()
    bank = lived[0][0][1]["memory_bank"]
    assert all((shown == bank).all() for shown in episode.observations["memory_bank"])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_worlds_of_others_need_no_callback(collect):
    dataset, lived = collect(lake())
    episode = next(dataset.iterate_episodes())
    assert episode.infos["terminated"].tolist() == [False] + [step[3] for step in lived[0][1:]]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_bank_of_frozen_lake_is_true(collect):
    """Cells are numbered row by row, the moves are left, down, right and up, and the rim stops them."""
    dataset, _ = collect(gym.make("FrozenLake-v1", is_slippery=False), n_episodes=5)
    bank = MemoryBank.from_minari(dataset)
    assert len(bank) > 5
    for source, action, end in bank:
        row, column = divmod(source, 4)
        down, right = ((0, -1), (1, 0), (0, 1), (-1, 0))[action]
        assert divmod(end, 4) == (min(max(row + down, 0), 3), min(max(column + right, 0), 3))
