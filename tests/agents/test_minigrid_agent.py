"""The agent in MiniGrid's own environments, with the model that comes with the package."""

import copy
from functools import cache

import gymnasium as gym
import minigrid  # noqa: F401  registers its environments
import numpy as np
import pytest
import torch
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Goal, Lava
from minigrid.minigrid_env import MiniGridEnv
from minigrid.wrappers import ViewSizeWrapper
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from eswm_gym.agents import MiniGridAgent
from eswm_gym.agents.baselines import MapOnly, OverlapOnly
from eswm_gym.world_model import available, load_pretrained
from eswm_gym.wrappers import MiniGridViews

pytestmark = pytest.mark.skipif("minigrid" not in available(), reason="no such model yet")

AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
FORWARD = 2
WALL, IN_THE_WAY = 1, (4, 6, 7, 8)  # classes of MiniGridViews: door, key, ball and box
IDS = ("Empty-5x5", "SimpleCrossingS9N1", "MultiRoom-N2-S4", "Unlock")


@cache
def model():
    return load_pretrained("minigrid")


def make(name):
    return MiniGridViews(gym.make(f"MiniGrid-{name}-v0"))


def play(agent, env, seed=0, most=400):
    """The actions of an episode, the poses from the first to the last, and how it ended."""
    obs, info = env.reset(seed=seed)
    agent.reset(obs, info)
    actions, poses, ended = [], [tuple(info["pose"].tolist())], False
    while not ended and len(actions) < most:
        action = agent.act(obs, info)
        following, _, terminated, truncated, info = env.step(action)
        agent.observe(obs, action, following, info)
        obs, ended = following, terminated or truncated
        actions.append(action)
        poses.append(tuple(info["pose"].tolist()))
    return actions, poses, info["is_success"]


@cache
def played(name, seed):
    agent = MiniGridAgent(model(), seed)
    return agent, *play(agent, make(name), seed)


class Hall(MiniGridEnv):
    """9 x 9 cells, with things in some; the agent looks to the right from a corner."""

    def __init__(self, things, max_steps=60):
        self.things = things
        super().__init__(MissionSpace(lambda: "walk"), grid_size=9, max_steps=max_steps)

    def _gen_grid(self, width, height):
        self.grid, self.mission = Grid(width, height), "walk"
        self.grid.wall_rect(0, 0, width, height)
        self.agent_pos, self.agent_dir = (1, 1), 0
        for cell, thing in self.things.items():
            self.grid.set(*cell, thing)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", IDS)
def test_succeeds_in_time(name, seed):
    """MiniGrid itself ends the episode when time is up."""
    _, actions, _, success = played(name, seed)
    assert success and set(actions) <= {0, 1, 2}


def test_walks_straight_to_a_goal_that_it_sees():
    actions, *_ = play(MiniGridAgent(model(), 0), MiniGridViews(Hall({(5, 1): Goal()})))
    assert actions == [FORWARD] * 4


def test_fetches_the_key_before_it_opens_the_door():
    """Else the door would not have opened; the door is no cell to walk into."""
    _, _, poses, success = played("Unlock", 0)
    assert success and poses[-1] == poses[-2]


def seen_from(a, b):
    """Pose b as (steps ahead, steps to the right, turns to the right) from pose a."""
    (ax, ay), (rx, ry) = AHEAD[a[2]], AHEAD[(a[2] + 1) % 4]
    dx, dy = b[0] - a[0], b[1] - a[1]
    return dx * ax + dy * ay, dx * rx + dy * ry, (b[2] - a[2]) % 4


def believed(agent):
    """Where the model says that the agent was before each of its moves, as seen from where it began."""
    walk = np.stack(agent.walk)
    bank = agent.model.follow(torch.from_numpy(np.where(np.isin(walk, IN_THE_WAY), WALL, walk))[None])
    return [tuple(pose) for pose in agent.model.localization.frame.pose[bank.cache.pose[0]].tolist()]


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name in IDS for seed in range(2)])
def test_the_model_knows_where_the_agent_is(name, seed):
    agent, _, poses, _ = played(name, seed)
    assert believed(agent) == [seen_from(poses[0], pose) for pose in poses[:-1]]
    assert len(agent.walk) == len(poses) - 1


def scripted(env, actions):
    """An agent that has seen what these actions do, and its poses."""
    agent, poses = MiniGridAgent(model(), 0), []
    obs, info = env.reset(seed=0)
    agent.reset(obs, info)
    for action in actions:
        poses.append(tuple(info["pose"].tolist()))
        following, *_, info = env.step(action)
        agent.observe(obs, action, following, info)
        obs = following
    return agent, poses


def test_it_knows_so_where_everything_looks_the_same():
    """Steps across a hall so wide that all cells of the view are empty, before and after."""
    walk = [*[2] * 5, 1, *[2] * 6, 0, *[2] * 3, 0, 2, 2]
    agent, poses = scripted(make("Empty-16x16"), walk)
    assert any((row == 2).sum() == 99 for row in agent.walk)
    assert believed(agent) == [seen_from(poses[0], pose) for pose in poses]


def test_it_knows_so_where_walls_stop_it():
    agent, poses = scripted(make("Empty-5x5"), [0, 2, 2, 1, 2, 0, 2, 1, 2, 2, 2, 1, 1])
    assert poses[1] == poses[2] and poses[9] == poses[10]
    assert believed(agent) == [seen_from(poses[0], pose) for pose in poses]


def test_it_knows_so_where_it_picks_up_a_key():
    agent, _, poses, _ = played("DoorKey-5x5", 0)
    assert believed(agent) == [seen_from(poses[0], pose) for pose in poses[:-1]]


def test_the_same_seed_does_the_same():
    for name in ("Empty-5x5", "MultiRoom-N2-S4"):
        _, *before = played(name, 1)
        assert list(play(MiniGridAgent(model(), 1), make(name), 1)) == before


def test_spawned_agents_share_the_model_alone():
    agent, *_ = played("Unlock", 0)
    other = agent.spawn(1)
    assert other.model is agent.model and not other.walk and agent.walk
    assert [twin.model is agent.model for twin in agent.spawn_many(3)] == [True] * 3


def test_the_given_model_stays_as_it_was():
    assert model().config.size == 9 and model().config.max_memories == 128
    assert not any(parameter.requires_grad for parameter in model().parameters())
    wide = MiniGridAgent(model()).model
    assert MiniGridAgent(wide).model is wide  # one that is wide enough is used as it is


def test_a_new_episode_begins_with_nothing_known():
    agent = MiniGridAgent(model(), 0)
    play(agent, make("Empty-5x5"), 1)
    fresh = MiniGridAgent(model())
    fresh.rng = copy.deepcopy(agent.rng)
    assert play(agent, make("MultiRoom-N2-S4"), 2) == play(fresh, make("MultiRoom-N2-S4"), 2)


@pytest.mark.parametrize("make_model", [lambda: load_pretrained("random-wall"), MapOnly])
def test_other_models_are_refused(make_model):
    other = make_model()
    with pytest.raises(TypeError, match=f"needs an OverlapModel, .* got a {type(other).__name__}"):
        MiniGridAgent(other)


@pytest.mark.parametrize("state", [5, np.zeros(49, np.uint8), np.zeros((6, 6), np.uint8), np.zeros((5, 7), np.uint8)])
def test_what_is_no_square_view_is_refused(state):
    agent = MiniGridAgent(model(), 0)
    agent.reset({"state": state}, {})
    with pytest.raises(ValueError, match="a state is a square view of an odd side"):
        agent.act({"state": state}, {})
    with pytest.raises(ValueError, match="a state is a square view of an odd side"):
        agent.observe({"state": state}, 0, {"state": state}, {})


def test_views_too_small_to_imagine_are_refused():
    agent = MiniGridAgent(model(), 0)
    with pytest.raises(ValueError, match="a state is a square view"):
        agent.act({"state": np.full((3, 3), 2, np.uint8)}, {})


@pytest.mark.parametrize("side", [5, 9])
def test_plays_with_views_of_another_size(side):
    env = MiniGridViews(ViewSizeWrapper(gym.make("MiniGrid-Empty-5x5-v0"), side))
    assert play(MiniGridAgent(model(), 0), env)[-1]


def test_plays_without_a_network():
    assert play(MiniGridAgent(OverlapOnly(), 0), make("MultiRoom-N2-S4"))[-1]


def test_is_a_policy_of_stable_baselines3():
    envs = DummyVecEnv([lambda: Monitor(make("Empty-5x5"))] * 2)
    envs.seed(0)
    rewards, lengths = evaluate_policy(MiniGridAgent(model(), 0), envs, n_eval_episodes=4, return_episode_rewards=True)
    assert min(rewards) > 0 and max(lengths) < 100  # no reward when time is up


@pytest.mark.parametrize("seed", range(3))
def test_keeps_out_of_lava_that_lies_in_the_way(seed):
    _, _, _, success = played("LavaGapS5", seed)
    assert success


def test_keeps_out_of_lava_when_there_is_nothing_left_to_do():
    """A bank of lava from wall to wall, and behind it the goal."""
    hall = Hall({(3, y): Lava() for y in range(1, 8)} | {(7, 7): Goal()})
    actions, poses, success = play(MiniGridAgent(model(), 0), MiniGridViews(hall))
    assert not success and len(actions) == 60 and max(x for x, _, _ in poses) < 3


def test_a_walk_too_long_to_read_is_forgotten():
    agent = MiniGridAgent(model().for_rooms(25, 8), 0)
    actions, *_ = play(agent, make("Empty-8x8"), most=20)
    assert len(actions) > 8 and len(agent.walk) < 8


def test_to_be_asked_twice_does_no_harm():
    env, agent = make("Empty-5x5"), MiniGridAgent(model(), 0)
    obs, info = env.reset(seed=0)
    agent.reset(obs, info)
    for _ in range(3):
        agent.act(obs, info)
        action = agent.act(obs, info)
        following, *_, info = env.step(action)
        agent.observe(obs, action, following, info)
        obs = following


@pytest.mark.parametrize("cell", [9, -1, 2.0])
def test_cells_of_no_class_are_refused(cell):
    with pytest.raises(ValueError, match=f"cell .*{cell}.* of a view is none of the integers 0 ... 8"):
        MiniGridAgent(model(), 0).act({"state": np.full((7, 7), cell)}, {})
