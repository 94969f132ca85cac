"""The pose graph: moves compose, and a view is taken for the one of the bank that looks most like it."""

import math

import networkx as nx
import numpy as np
import pytest
import torch
from indoor_worlds import PaintedCamera, Seer, two_doors

from eswm_gym.agents import IndoorAgent
from eswm_gym.agents.baselines import PoseGraph
from eswm_gym.envs import indoor
from eswm_gym.rooms.indoor import action_between, moved, reverse, wrap
from eswm_gym.world_model.indoor import Memories

EYE = PaintedCamera()
SEER = Seer(EYE)
GRAPH = PoseGraph(torch.nn.Identity())


def views_at(poses):
    """Tokens of views, the more alike the nearer they were taken."""
    return SEER(np.stack([EYE.picture(None, pose) for pose in np.asarray(poses, float)]))


def memories(poses, rows):
    start, end = np.asarray(rows).T
    action = torch.from_numpy(action_between(poses[start], poses[end])).float()
    views = views_at(poses)
    return Memories(views[start], action, views[end])


def drawn(seed, n):
    """Poses that are far enough apart to look different."""
    rng = np.random.default_rng(seed)
    return np.c_[1.2 * rng.permutation(36)[:n] // 6, rng.permutation(n) * 1.0, rng.uniform(-math.pi, math.pi, n)]


def close(found, expected, atol=1e-3):
    difference = np.asarray(found) - np.asarray(expected)
    np.testing.assert_allclose(np.linalg.norm(difference[..., :2], axis=-1), 0, atol=atol)
    np.testing.assert_allclose(wrap(difference[..., 2]), 0, atol=atol)


@pytest.mark.parametrize("seed", range(3))
def test_moves_compose_along_the_tree(seed):
    rng, poses = np.random.default_rng(seed), drawn(seed, 9)
    tree = nx.random_labeled_tree(9, seed=seed)
    rows = rng.permutation(np.array([edge if rng.random() < 0.5 else edge[::-1] for edge in tree.edges]))
    bank = GRAPH.encode(memories(poses, rows))
    number = list(dict.fromkeys(rows.flatten().tolist()))  # in the order in which they appear
    assert np.array(number)[bank.rows.numpy()].tolist() == rows.tolist()
    actions = {(int(a), int(b)): action_between(poses[a], poses[b]) for a, b in rows}
    actions |= {(b, a): reverse(action) for (a, b), action in actions.items()}
    for k, v in enumerate(number):
        pose, way = np.zeros(3), nx.shortest_path(tree, number[0], v)
        for step in zip(way, way[1:], strict=False):
            pose = moved(pose, actions[step])
        close(bank.pose[k], pose)
    start, end = (~np.eye(9, dtype=bool)).nonzero()
    found, _ = GRAPH.action_between(bank, views_at(poses[start]), views_at(poses[end]))
    close(found.best(), action_between(poses[start], poses[end]))


def test_a_cluster_begins_where_a_view_looks_most_like_one_of_it():
    """Two pairs of views that no move joins; the second of one is next to the first of the other."""
    poses = np.array([[0, 0, 0.0], [1, 0.5, 0.3], [1.05, 0.55, 0.35], [1.5, 1.5, 1.0]])
    bank = GRAPH.encode(memories(poses, [(0, 1), (2, 3)]))
    assert len(bank.tokens) == 4 and bank.rows.tolist() == [[0, 1], [2, 3]]
    close(bank.pose[1], action_between(poses[0], poses[1]))
    close(bank.pose[2], bank.pose[1])  # taken for the same place
    close(bank.pose[3], moved(bank.pose[2], action_between(poses[2], poses[3])))


def test_an_empty_bank_is_refused():
    empty = Memories(torch.zeros(0, 16, 64), torch.zeros(0, 3), torch.zeros(0, 16, 64))
    with pytest.raises(ValueError, match="at least one transition"):
        GRAPH.encode(empty)


@pytest.fixture(scope="module")
def walked():
    """Poses along a path, the bank of it, and views a hand's breadth from them."""
    poses = np.c_[np.arange(8) * 1.0, np.zeros(8), np.zeros(8)]
    bank = GRAPH.encode(memories(poses, [(i, i + 1) for i in range(7)]))
    return poses, bank, views_at(poses + [0.1, 0.05, 0.1])


def test_a_view_is_taken_for_the_one_that_looks_most_like_it(walked):
    poses, bank, near = walked
    found, fit = GRAPH.locate(bank, near)
    assert found.mean.shape == (8, 6, 3) and fit.shape == (8,)
    flat, held = near.flatten(1), bank.tokens.flatten(1)
    likeness = (flat @ held.T) / flat.norm(dim=1)[:, None] / held.norm(dim=1)
    order = likeness.argsort(1, descending=True)[:, :6]
    for k in range(8):
        assert order[k, 0] == k
        close(found.mean[k], poses[order[k].numpy()])
    torch.testing.assert_close(fit, likeness.amax(1))
    close(found.best(), poses)
    torch.testing.assert_close(found.log_weight.exp().sum(1), torch.ones(8))
    assert (found.log_weight.diff(dim=1) <= 0).all()


def test_small_banks_have_fewer_places(walked):
    poses, *_ = walked
    found, _ = GRAPH.locate(GRAPH.encode(memories(poses, [(0, 1)])), views_at(poses[:3]))
    assert found.mean.shape == (3, 2, 3)


def test_actions_are_those_between_the_views_that_they_are_taken_for(walked):
    poses, bank, near = walked
    found, doubt = GRAPH.action_between(bank, near, near.flip(0))
    assert found.mean.shape == (8, 1, 3)
    close(found.best(), action_between(poses, poses[::-1]))
    _, surer = GRAPH.action_between(bank, bank.tokens, bank.tokens)
    assert (surer < doubt).all()  # the better they match, the less it doubts


def test_what_is_seen_is_the_view_nearest_to_where_the_action_leads(walked):
    poses, bank, near = walked
    seen, far = GRAPH.view_after(bank, near[:5], torch.tensor([2.1, 0.1, 0.1]).expand(5, 3))
    torch.testing.assert_close(seen, bank.tokens[2:7])
    np.testing.assert_allclose(far, math.sqrt(0.1**2 + 0.1**2 + 0.1**2), atol=1e-3)
    seen, _ = GRAPH.view_after(bank, near[:1], torch.tensor([[-5.0, 0.0, 0.0]]))
    torch.testing.assert_close(seen, bank.tokens[:1])


def test_it_takes_every_way_for_free(walked):
    *_, near = walked
    odds = GRAPH.is_blocked(near, torch.randn(8, 5, 3))
    assert odds.shape == (8, 5) and (odds < 0).all()


def test_an_agent_walks_by_it_where_bank_and_pictures_tell_where_it_is(monkeypatch):
    """From one view of the bank to another, through a door."""
    monkeypatch.setattr(indoor, "camera", lambda size: EYE)
    poses = np.array([[1.5, 1, 0], [2.5, 1, 0.5], [3.4, 1, 1.5], [4.6, 1, 1.5], [5.5, 1.2, 1], [6.5, 1.5, 0.5]])
    env = indoor.IndoorEnv()
    obs, info = env.reset(seed=0, options={"house": two_doors(), "start": poses[0], "goal": poses[-1]})
    bank = {
        name: np.stack([EYE.picture(None, pose) for pose in part])
        for name, part in (("start", poses[:-1]), ("end", poses[1:]))
    }
    bank["action"] = action_between(poses[:-1], poses[1:]).astype(np.float32)
    agent = IndoorAgent(PoseGraph(torch.nn.Identity()), SEER, seed=0)
    agent.reset(obs, info | {"memory_bank": bank})
    for _ in range(8):
        action = agent.act(obs, info)
        following, _, done, _, info = env.step(action)
        agent.observe(obs, action, following, info)
        obs = following
        if done:
            break
    assert info["is_success"]
