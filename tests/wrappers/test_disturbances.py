"""What goes wrong in a room, against the room itself."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import eswm_gym  # noqa: F401
from eswm_gym.wrappers import MovingWalls, SharedState, Slips, WrongStates

ROOM = "ESWM-RandomWall-v0"
EVERY = [(Slips, 0.3), (WrongStates, 0.3), (MovingWalls, 0.3), (SharedState, 4)]
STEPS = 25


def make(kind, level, env_id=ROOM, steps=1000):
    return kind(gym.make(env_id, max_episode_steps=steps), level)


def episode(env, seed=0, steps=STEPS):
    """Observations, infos, actions, and where the agent was; a random walk that begins again where it arrives."""
    rng = np.random.default_rng(0)
    obs, info = env.reset(seed=seed)
    shown, infos, actions, places = [obs], [info], [], [env.unwrapped.place]
    for _ in range(steps):
        actions.append(int(rng.choice(np.flatnonzero(info["action_mask"]))))
        obs, _, terminated, _, info = env.step(actions[-1])
        shown.append(obs)
        infos.append(info)
        places.append(env.unwrapped.place)
        if terminated:
            break
    return shown, infos, actions, places


@pytest.mark.parametrize(("kind", "level"), EVERY)
def test_checker(kind, level):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is different from the unwrapped version")
        check_env(make(kind, level), skip_render_check=True)


@pytest.mark.parametrize(("kind", "level"), [(Slips, 0), (WrongStates, 0), (MovingWalls, 0), (SharedState, 1)])
def test_where_nothing_goes_wrong_nothing_changes(kind, level):
    found, true = episode(make(kind, level)), episode(gym.make(ROOM, max_episode_steps=1000))
    assert found[0] == true[0] and found[3] == true[3]
    np.testing.assert_array_equal(found[1][0]["memory_bank"], true[1][0]["memory_bank"])


@pytest.mark.parametrize(("kind", "level"), EVERY)
def test_the_same_seed_disturbs_in_the_same_way(kind, level):
    env = make(kind, level)
    first, again, other = episode(env), episode(env), episode(env, seed=1)
    assert first[0] == again[0] and first[3] == again[3]
    assert first[0] != other[0]


def test_slips_are_other_moves_that_the_mask_allows():
    """As often as they should be; what was asked for happens else."""
    env, slipped, n = make(Slips, 0.3), 0, 0
    for seed in range(40):
        _, infos, actions, places = episode(env, seed)
        room = env.unwrapped.room
        for info, action, before, after in zip(infos, actions, places, places[1:], strict=False):
            allowed = np.flatnonzero(info["action_mask"])
            assert after in room.targets[before, allowed]
            slipped += after != room.targets[before, action]
            n += 1
    # Some slips end where the move would have: into walls. Four standard deviations of 500 and more steps.
    assert n > 500 and 0.2 < slipped / n < 0.38


def test_wrong_states_are_those_of_other_locations():
    env, wrong, n = make(WrongStates, 0.3), 0, 0
    for seed in range(40):
        shown, infos, _, places = episode(env, seed)
        room = env.unwrapped.room
        true = room.states[places]
        states = np.array([obs["state"] for obs in shown])
        assert set(states.tolist()) <= set(room.states.tolist())
        assert len({int(obs["goal"]) for obs in shown}) == 1
        wrong, n = wrong + (states != true).sum(), n + len(true)
        bank = infos[0]["memory_bank"]
        for source, action, end in bank[bank[:, 1] >= 0].tolist():
            assert room.next_state(source, action) == end
    assert wrong / n == pytest.approx(0.3, abs=4 * (0.21 / n) ** 0.5)


def test_walls_move_one_at_a_time_and_leave_a_way():
    env, moved, n = make(MovingWalls, 0.4), 0, 0
    for seed in range(10):
        env.reset(seed=seed)
        room = env.unwrapped
        rng, over = np.random.default_rng(seed), False
        for _ in range(STEPS):
            before = room.layout.walls.copy()
            _, _, over, _, info = env.step(int(rng.choice(6)))
            if over:
                break
            changed = np.flatnonzero(before != room.layout.walls)
            assert changed.size in (0, 2) and room.layout.walls.sum() == before.sum()
            assert not room.layout.walls[[room.place, room.goal]].any()
            assert info["shortest_path_length"] == room.shortest_path_length > 0
            moved, n = moved + bool(changed.size), n + bool(before.any())
    assert moved / n == pytest.approx(0.4, abs=4 * (0.24 / n) ** 0.5)


def test_shared_states():
    """Four free locations show what the first of them shows, in the bank too; start and goal are none of them."""
    env = make(SharedState, 4)
    for seed in range(10):
        shown, infos, _, places = episode(env, seed)
        room = env.unwrapped.room
        alike = np.flatnonzero(env.shown(room.states) == env.shared[0])
        assert len(alike) == 4 and not room.walls[alike].any()
        assert places[0] not in alike and env.unwrapped.goal not in alike
        for obs, place in zip(shown, places, strict=True):
            assert obs["state"] == (env.shared[0] if place in alike else room.states[place])
        true = env.unwrapped.reset(seed=seed)[1]["memory_bank"]
        names = dict.fromkeys(room.states[alike].tolist(), int(env.shared[0]))
        expected = [(names.get(s, s), a, names.get(e, e)) for s, a, e in true.tolist()]
        assert infos[0]["memory_bank"].tolist() == [list(row) for row in expected]


@pytest.mark.parametrize(
    ("kind", "level", "message"),
    [
        (Slips, 1.5, "probability must lie between 0 and 1, got 1.5"),
        (WrongStates, -0.1, "probability must lie between 0 and 1, got -0.1"),
        (MovingWalls, float("nan"), "probability must lie between 0 and 1, got nan"),
        (SharedState, 0, "n must be at least 1, got 0"),
    ],
)
def test_wrong_levels_are_refused(kind, level, message):
    with pytest.raises(ValueError, match=message):
        make(kind, level)


@pytest.mark.parametrize(("kind", "level"), EVERY)
def test_other_environments_are_refused(kind, level):
    with pytest.raises(ValueError, match=f"{kind.__name__} needs a room on a lattice, got .*MiniGrid"):
        kind(gym.make("ESWM-MiniGrid-v0"), level)
