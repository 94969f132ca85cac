"""The agent for houses seen through a camera, with those who find poses for sure: what is the agent's own doing."""

import math

import gymnasium as gym
import numpy as np
import pytest
import torch
from indoor_worlds import PaintedCamera, Perfect, Seer, WatchedCamera, plain, poses_of, two_doors

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import IndoorAgent
from eswm_gym.envs import indoor
from eswm_gym.envs.indoor_camera import camera
from eswm_gym.rooms.indoor import Space, action_between, draw_house, moved, wrap

HOUSE = two_doors()
START, GOAL = (2.0, 1.0, 0.0), (7.0, 1.0, 1.0)  # the way leads through the door at y = 1
BEFORE, BEHIND = (3.3, 1.0, 1.5), (4.7, 1.0, 1.5)  # that door
OTHERS = [(2.2, 2.2, 0.3), (3.3, 3.0, 0.0), (3.3, 4.2, 0.2), (3.4, 5.0, 1.5)]  # to the other one, and on from it
BEYOND = [(4.6, 5.0, 1.6), (4.8, 4.0, 2.0), (5.0, 2.8, 2.5), (5.8, 1.6, 2.0), (6.8, 1.6, 2.0)]


@pytest.fixture
def painted(monkeypatch):
    found = PaintedCamera()
    monkeypatch.setattr(indoor, "camera", lambda size: found)
    return found


def bank_of(eye, moves):
    """As environments hand it out: pictures of moves between poses, and rows that stand for none."""
    bank = {name: np.zeros((32, 224, 224, 3), np.uint8) for name in ("start", "end")}
    bank["action"] = np.full((32, 3), np.nan, np.float32)
    for i, (start, end) in enumerate(moves):
        bank["start"][i], bank["end"][i] = (eye.picture(HOUSE, np.array(pose)) for pose in (start, end))
        bank["action"][i] = action_between(start, end)
    return bank


def entered(eye, moves, agent=None, start=START, goal=GOAL, house=HOUSE):
    """An episode in the house with two doors, and an agent that was given a bank."""
    env = indoor.IndoorEnv()
    obs, info = env.reset(seed=0, options={"house": house, "start": start, "goal": goal})
    agent = agent or IndoorAgent(Perfect(house), Seer(eye), seed=0)
    agent.reset(obs, info | {"memory_bank": bank_of(eye, moves)})
    return env, agent, obs, info


def walk(env, agent, obs, info, steps=40):
    """Until the goal is reached or so many steps: each pose and whether the step was blocked, and success."""
    taken = []
    for _ in range(steps):
        action = agent.act(obs, info)
        assert env.action_space.contains(action)
        following, _, done, truncated, info = env.step(action)
        agent.observe(obs, action, following, info)
        obs = following
        taken.append((env.unwrapped.pose, info["blocked"]))
        if done or truncated:
            break
    return taken, info["is_success"]


def lead(env, agent, obs, action):
    """One step that the agent did not choose."""
    agent.act(obs, {})
    action = np.array(action, np.float32)
    following, *_, info = env.step(action)
    agent.observe(obs, action, following, info)
    agent.plan = []
    return following, info


def metres(taken, start):
    places = np.array([start[:2], *[pose[:2] for pose, _ in taken]])
    return np.linalg.norm(np.diff(places, axis=0), axis=1).sum()


# Real houses


@pytest.mark.parametrize("seed", range(1, 7))
def test_it_reaches_goals_in_houses(painted, seed):
    """Hardly further than the shortest way, without a step that is blocked: it was told what is in the way."""
    env = gym.make("ESWM-Indoor-v0")
    obs, info = env.reset(seed=seed)
    agent = IndoorAgent(Perfect(env.unwrapped.house), Seer(painted), seed=seed)
    agent.reset(obs, info)
    start, shortest = env.unwrapped.pose, info["distance"]
    taken, arrived = walk(env, agent, obs, info)
    assert arrived and not any(blocked for _, blocked in taken)
    assert metres(taken, start) < 1.5 * shortest + 0.5


@pytest.mark.camera
def test_it_reaches_a_goal_by_pictures(monkeypatch):
    eye = WatchedCamera(camera())
    monkeypatch.setattr(indoor, "camera", lambda size: eye)
    monkeypatch.setattr(indoor, "draw_house", lambda rng, n: plain(draw_house(rng, n)))
    env = gym.make("ESWM-Indoor-v0")
    obs, info = env.reset(seed=2)
    agent = IndoorAgent(Perfect(env.unwrapped.house), Seer(eye), seed=0)
    agent.reset(obs, info)
    taken, arrived = walk(env, agent, obs, info)
    assert arrived and len(taken) > 2


def test_it_finds_a_way_where_it_does_not_know_what_is_in_it(painted):
    """Who takes all ways for free runs into things, and goes around them all the same."""
    env = gym.make("ESWM-Indoor-v0")
    arrived, blocked = [], 0
    for seed in range(1, 6):
        obs, info = env.reset(seed=seed)
        agent = IndoorAgent(Perfect(), Seer(painted), seed=seed)
        agent.reset(obs, info)
        taken, success = walk(env, agent, obs, info)
        arrived.append(success)
        blocked += sum(hit for _, hit in taken)
    assert sum(arrived) >= 4 and blocked > 0


# A door that is closed after the bank was made


def around():
    """Moves through both doors."""
    way = [START, *OTHERS, *BEYOND]
    return [(BEFORE, BEHIND), (START, BEFORE), (BEHIND, (6.0, 1.0, 1.0)), *zip(way, way[1:], strict=False)]


def closed(painted, edits, steps=40):
    """The door on the way is closed once the agent has its bank; it believes the house to be as it was."""
    agent = IndoorAgent(Perfect(HOUSE), Seer(painted), edits, seed=0)
    env, agent, obs, info = entered(painted, around(), agent)
    env.set_door(0, closed=True)
    return env, agent, *walk(env, agent, obs, info, steps)


def test_it_goes_around_a_door_that_was_closed(painted):
    env, agent, taken, arrived = closed(painted, edits=True)
    assert arrived
    hits = [pose for pose, blocked in taken if blocked]
    assert 1 <= len(hits) <= 15
    assert all(pose[0] < 4 for pose in hits)
    through = [pose for pose, _ in taken if abs(pose[0] - 4) < 1.2]
    assert any(pose[1] > 4 for pose in through)  # by the other door
    held = {(tuple(np.round(a[:2], 1)), tuple(np.round(b[:2], 1))) for a, b in can_be_made(agent)}
    assert ((3.3, 1.0), (4.7, 1.0)) not in held and ((4.6, 5.0), (4.8, 4.0)) in held


def test_while_the_door_is_open_it_goes_through_it(painted):
    env, agent, obs, info = entered(painted, around())
    taken, arrived = walk(env, agent, obs, info)
    assert arrived and len(taken) <= 6 and all(pose[1] < 2.5 for pose, _ in taken)
    assert len(agent.memories.action) == len(around()) + len(taken)


def test_without_editing_it_keeps_what_is_no_longer_so(painted):
    _, agent, taken, _ = closed(painted, edits=False, steps=12)
    hits = sum(blocked for _, blocked in taken)
    assert hits >= 1 and len(can_be_made(agent)) == len(around()) + len(taken) - hits


# Memories


def remembered(agent):
    """The poses that remembered moves lead between."""
    return list(zip(poses_of(agent.memories.start), poses_of(agent.memories.end), strict=True))


def can_be_made(agent):
    """Those of the remembered moves that the agent believes in."""
    return [move for move, free in zip(remembered(agent), agent.open, strict=True) if free]


def test_the_bank_is_kept_as_it_is(painted):
    moves = [(START, BEFORE), (BEHIND, BEFORE)]
    _, agent, *_ = entered(painted, moves)
    np.testing.assert_allclose(np.array(remembered(agent)), moves, atol=1e-3)
    np.testing.assert_allclose(agent.memories.action, [action_between(*move) for move in moves], atol=1e-5)


def test_its_own_moves_are_remembered_and_blocked_ones_are_not(painted):
    first = np.array([1.0, 1.0, 0.0])
    env, agent, obs, _ = entered(painted, [(START, BEFORE)], start=first)
    obs, info = lead(env, agent, obs, [-1.5, 0.0, 0.5])  # into the wall
    assert info["blocked"] and len(agent.memories.action) == 1
    for action in ([0.5, 0.5, 0.5], [-0.3, 0.2, -1.0]):
        obs, info = lead(env, agent, obs, action)
        assert not info["blocked"]
        start, end = remembered(agent)[-1]
        np.testing.assert_allclose(start, first, atol=1e-3)
        first = moved(first, action)
        np.testing.assert_allclose(end, first, atol=1e-3)
        np.testing.assert_allclose(agent.memories.action[-1], action, atol=1e-6)
    assert len(agent.memories.action) == 3


def seen_from_bank(agent, pose):
    """In the frame of the first remembered view."""
    return action_between(poses_of(agent.memories.start[0]), pose)


def same_pose(found, expected):
    difference = np.asarray(found) - np.asarray(expected)
    assert np.abs([*difference[:2], wrap(difference[2])]).max() < 0.05


def test_it_knows_where_it_is(painted):
    env, agent, obs, info = entered(painted, [(START, BEFORE), (BEHIND, BEFORE)], start=(2.0, 3.0, 2.0))
    for action in ([0.5, 0.5, 0.5], [-0.3, 0.2, -1.0], [0.0, -0.5, 2.5], [0.1, 0.1, 1.0]):
        obs, _ = lead(env, agent, obs, action)
        agent.act(obs, info)
        same_pose(agent.here, seen_from_bank(agent, env.pose))


def test_a_move_that_is_blocked_is_forgotten_and_where_its_views_were_taken_is_not(painted):
    """Though poses are told in the frame of that very memory."""
    env, agent, obs, info = entered(painted, [(BEFORE, BEHIND), (START, BEFORE), (START, OTHERS[0])], start=BEFORE)
    env.set_door(0, closed=True)
    ahead = action_between(BEFORE, BEHIND)
    obs, info = lead(env, agent, obs, ahead)
    assert info["blocked"] and agent.open.tolist() == [False, True, True] and len(agent.memories.action) == 3
    np.testing.assert_allclose(agent.bank.pose[agent.bank.rows[0, 1]], action_between(BEFORE, BEHIND), atol=1e-3)
    agent.act(obs, info)
    same_pose(agent.here, seen_from_bank(agent, env.pose))


def test_it_knows_where_it_is_when_its_last_move_is_forgotten(painted):
    """A door closes behind it, and it runs into it on its way back."""
    env, agent, obs, info = entered(painted, [(START, OTHERS[0]), (OTHERS[0], OTHERS[1])], start=(2.0, 1.0, 1.5))
    for there in (BEFORE, BEHIND):
        obs, info = lead(env, agent, obs, action_between(env.pose, there))
        assert not info["blocked"]
    env.set_door(0, closed=True)
    obs, info = lead(env, agent, obs, action_between(BEHIND, BEFORE))
    assert info["blocked"] and agent.open.tolist() == [True, True, True, False]
    agent.act(obs, info)
    same_pose(agent.here, seen_from_bank(agent, env.pose))


def test_it_goes_back_the_way_it_came(painted):
    """Over its own moves, whatever its finder thinks of what is in the way of others."""

    class Fearful(Perfect):
        """Takes ways for blocked but where the goal is near."""

        def is_blocked(self, views, action):
            start = poses_of(views)[:, None]
            end = moved(start, action.double().numpy())
            away = [np.linalg.norm(poses[..., :2] - goal[:2], axis=-1) for poses in (start, end)]
            near = np.maximum(*away) < 1.2
            return torch.tensor(np.where(near, -9.0, 9.0), dtype=torch.float)

    goal = (1.0, 1.2, 2.5)
    agent = IndoorAgent(Fearful(), Seer(painted), seed=0)
    env, agent, obs, info = entered(painted, [(OTHERS[0], OTHERS[1])], agent, start=START, goal=goal)
    for there in ((2.8, 1.0, 0.0), BEFORE):
        obs, info = lead(env, agent, obs, action_between(env.pose, there))
    taken, arrived = walk(env, agent, obs, info, 5)
    assert arrived
    same_pose(taken[0][0], (2.8, 1.0, 0.0))
    same_pose(taken[1][0], START)


# Agents


def test_it_asks_for_a_bank(painted):
    env = indoor.IndoorEnv()
    obs, info = env.reset(seed=0, options={"house": HOUSE, "start": START, "goal": GOAL})
    with pytest.raises(ValueError, match="memory_bank"):
        IndoorAgent(Perfect(), Seer(painted)).reset(obs, info)


def test_the_same_seed_walks_the_same_way(painted):
    """Also where it has no plan and draws what it does."""
    walks = []
    for seed in (1, 1, 2):
        agent = IndoorAgent(Perfect(HOUSE.with_door(0, True).with_door(1, True)), Seer(painted), seed=seed)
        env, agent, obs, info = entered(painted, [(START, BEFORE)], agent)
        taken, _ = walk(env, agent, obs, info, 12)
        walks.append(np.array([pose for pose, _ in taken]))
    np.testing.assert_array_equal(walks[0], walks[1])
    assert walks[0].shape != walks[2].shape or (walks[0] != walks[2]).any()


def test_where_there_is_no_way_it_looks_around_first(painted):
    """Turns on the spot until it has looked everywhere, and then goes somewhere."""
    agent = IndoorAgent(Perfect(HOUSE.with_door(0, True).with_door(1, True)), Seer(painted), seed=1)
    env, agent, obs, info = entered(painted, list(zip([START, *OTHERS], OTHERS, strict=False)), agent)
    taken, _ = walk(env, agent, obs, info, 12)
    poses = np.array([START, *[pose for pose, _ in taken]])
    np.testing.assert_allclose(poses[:4, :2], [START[:2]] * 4, atol=1e-5)
    turns = np.sort(wrap(poses[:4, 2]))
    np.testing.assert_allclose(np.diff(turns), math.pi / 2, atol=1e-3)  # a quarter each, as wide as the picture
    assert len({tuple(place) for place in poses[4:, :2].round(1).tolist()}) >= 4  # it gets about


def test_it_wastes_no_step_on_turning_where_it_is(painted):
    """Though it remembers turns, which cost nothing: a move leads to any side."""
    env, agent, obs, info = entered(painted, around())
    for _ in range(3):
        obs, info = lead(env, agent, obs, [0.0, 0.0, math.pi / 2])
    taken, arrived = walk(env, agent, obs, info)
    assert arrived
    places = np.array([START[:2], *[pose[:2] for pose, _ in taken]])
    assert (np.linalg.norm(np.diff(places, axis=0), axis=1)[:-1] > 0.05).all()


def test_a_goal_that_is_not_where_it_was_thought_to_be(painted):
    """It goes to the next likely place."""

    class Doubtful(Perfect):
        """Takes the goal to be at one of two places, the wrong one first."""

        def locate(self, bank, views):
            found, sure = super().locate(bank, views)
            if np.abs(poses_of(views)[0] - GOAL).max() > 0.01:
                return found, sure
            wrong = torch.tensor(action_between(poses_of(bank.tokens[0]), (1.5, 3.0, 1.0)), dtype=torch.float)
            mean = torch.stack([wrong[None], found.mean[:, 0]], 1)
            return found._replace(
                mean=mean,
                spread=torch.full((1, 2), 0.02),
                turn=torch.full((1, 2), 0.02),
                log_weight=torch.tensor([[-0.1, -2.3]]),
            ), sure

    agent = IndoorAgent(Doubtful(HOUSE), Seer(painted), seed=0)
    env, agent, obs, info = entered(painted, around(), agent)
    taken, arrived = walk(env, agent, obs, info)
    assert arrived
    at_wrong = [k for k, (pose, _) in enumerate(taken) if math.dist(pose[:2], (1.5, 3.0)) < 0.3]
    assert at_wrong and len(taken) <= at_wrong[0] + 8


def test_spawned_agents_share_the_model_and_nothing_else(painted):
    env, agent, obs, info = entered(
        painted, [(START, BEFORE)], IndoorAgent(Perfect(HOUSE), Seer(painted), False, seed=0)
    )
    held = len(agent.memories.action)
    other = agent.spawn(seed=0)
    assert type(other) is IndoorAgent and other.model is agent.model and other.encoder is agent.encoder
    assert other.edits is False and len(other.memories.action) == 0
    other.reset(obs, info | {"memory_bank": bank_of(painted, around())})
    other.act(obs, info)
    assert len(agent.memories.action) == held and len(other.memories.action) == len(around())
    again = agent.spawn(seed=0)
    again.reset(obs, info | {"memory_bank": bank_of(painted, around())})
    np.testing.assert_array_equal(again.act(obs, info), agent_of_seed_0(painted, obs, info).act(obs, info))


def agent_of_seed_0(eye, obs, info):
    agent = IndoorAgent(Perfect(HOUSE), Seer(eye), False, seed=0)
    agent.reset(obs, info | {"memory_bank": bank_of(eye, around())})
    return agent


def test_a_new_episode_begins_anew(painted):
    """What was forgotten or blocked in one house is nothing to the next."""
    env, agent, taken, _ = closed(painted, edits=True)
    obs, info = env.reset(seed=0, options={"house": HOUSE, "start": START, "goal": GOAL})
    agent.reset(obs, info | {"memory_bank": bank_of(painted, around())})
    assert len(agent.memories.action) == len(around())
    taken, arrived = walk(env, agent, obs, info)
    assert arrived and not any(blocked for _, blocked in taken)


def test_the_houses_of_these_tests_are_as_they_should_be():
    """There is a way through either door, and a longer one through the other."""
    open_house, around_it = Space(HOUSE), Space(HOUSE.with_door(0, closed=True))
    assert open_house.distance(START[:2], GOAL[:2]) == pytest.approx(5.0, abs=0.1)
    assert 9 < around_it.distance(START[:2], GOAL[:2]) < 14
    for start, end in around():
        assert open_house.passable(start[:2], end[:2]) and np.abs(action_between(start, end)[:2]).max() <= 1.5
    assert not around_it.passable(BEFORE[:2], BEHIND[:2])
