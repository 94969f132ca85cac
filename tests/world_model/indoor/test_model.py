"""What a user may take for granted of the model of camera views: what is built in, and what is only learned."""

import math

import networkx as nx
import numpy as np
import pytest
import torch
from torch import nn

from eswm_gym.rooms.indoor import action_between, moved, reverse, wrap
from eswm_gym.world_model.indoor import IndoorConfig, IndoorModel, Memories, PoseMixture
from eswm_gym.world_model.indoor.model import SURE, cosine, distinct
from eswm_gym.world_model.indoor.pose_mixtures import SPREADS, TURNS
from eswm_gym.world_model.indoor.relative_poses import COMPONENTS, Look

CONFIG = IndoorConfig("stand-in", (12,), 8, 32)


def untrained(seed=0, std=None, **parts) -> IndoorModel:
    """As born, or with networks of such random weights; some modules may be replaced."""
    torch.manual_seed(seed)
    model = IndoorModel(CONFIG).eval()
    with torch.no_grad():
        for parameter in model.relative.parameters() if std else ():
            parameter.normal_(std=std)
    for name, module in parts.items():
        setattr(model, name, module)
    return model.requires_grad_(False)


class Perfect(nn.Module):
    """In place of what compares two views: reads their poses, which their first token holds, where they are near."""

    def __init__(self, near=3.0, knows=12.0):
        super().__init__()
        self.near, self.knows = near, knows

    def look(self, tokens):
        return Look(tokens[:, :8], tokens[:, 0, :3].double())

    def forward(self, look, start, end):
        action = torch.from_numpy(action_between(look.whole[start], look.whole[end])).float()
        near = action[..., :2].norm(dim=-1) < self.near
        shape = (*start.shape, COMPONENTS)
        mean = torch.where(near[..., None], action, torch.tensor([7.0, -7.0, 1.0]))
        weight = torch.tensor([0.0, -9.0, -9.0, -9.0]).log_softmax(0).expand(shape)
        said = PoseMixture(
            mean[..., None, :].expand(*shape, 3), torch.full(shape, 0.05), torch.full(shape, 0.05), weight
        )
        return said, torch.where(near, self.knows, -self.knows)


class World:
    """Poses, and views of them that tell nothing but, in the first token, where they are; a bank of moves between."""

    def __init__(self, seed=0, n=10, edges=None, side=3.0):
        rng = np.random.default_rng(seed)
        self.poses = np.c_[rng.uniform(-side, side, (n, 2)), rng.uniform(-math.pi, math.pi, n)]
        self.tokens = torch.from_numpy(rng.standard_normal((n, 16, 8)) * 3).float()
        self.tokens[:, 0, :3] = torch.from_numpy(self.poses)
        tree = nx.random_labeled_tree(n, seed=seed) if edges is None else nx.Graph(edges)
        rows = [edge if rng.random() < 0.5 else edge[::-1] for edge in tree.edges]
        self.rows = rng.permutation(np.array(rows))

    def memories(self, rows=None):
        start, end = np.asarray(self.rows if rows is None else rows).T
        action = torch.from_numpy(action_between(self.poses[start], self.poses[end])).float()
        return Memories(self.tokens[start], action, self.tokens[end])

    def pairs(self):
        """All pairs of different views, and the actions between them."""
        start, end = (~np.eye(len(self.poses), dtype=bool)).nonzero()
        return start, end, action_between(self.poses[start], self.poses[end])

    def numbers(self, tokens):
        """Which views these are."""
        return cosine(tokens[:, None], self.tokens[None]).argmax(1).numpy()


def away(found, actions):
    """Metres and radians between poses."""
    difference = np.asarray(found) - actions
    return np.linalg.norm(difference[..., :2], axis=-1).max(), np.abs(wrap(difference[..., 2])).max()


# Banks


@pytest.mark.parametrize("seed", range(5))
def test_moves_compose_in_whatever_order_and_direction(seed):
    """Poses are those of a walk along the tree from the first view, worked out edge by edge."""
    world = World(seed, 12)
    bank = untrained().encode(world.memories())
    number = world.numbers(bank.tokens)
    assert sorted(number) == list(range(12))
    assert number[bank.rows.numpy()].tolist() == world.rows.tolist()
    actions = action_between(*world.poses[world.rows.T])
    graph = nx.Graph()
    for (start, end), action in zip(world.rows.tolist(), actions, strict=True):
        graph.add_edge(start, end, **{f"from {start}": action, f"from {end}": reverse(action)})
    first = world.rows[0, 0]
    for row, way in ((k, nx.shortest_path(graph, first, v)) for k, v in enumerate(number)):
        pose = np.zeros(3)
        for here, there in zip(way, way[1:], strict=False):
            pose = moved(pose, graph.edges[here, there][f"from {here}"])
        assert max(away(bank.pose[row], pose)) < 1e-4
        assert max(away(bank.pose[row], action_between(world.poses[first], world.poses[number[row]]))) < 1e-4


def test_equal_views_are_one_place():
    """Also where pictures differ by next to nothing; a bank that holds a move twice is as one that holds it once."""
    world = World(1, 6)
    once, twice = world.memories(), world.memories(np.concatenate([world.rows, world.rows]))
    noisy = twice._replace(start=twice.start + 0.01 * torch.randn(twice.start.shape))
    model = untrained()
    bank = model.encode(once)
    for memories in (twice, noisy):
        found = model.encode(memories)
        assert len(found.tokens) == 6 and found.rows.tolist() == [*bank.rows.tolist(), *bank.rows.tolist()]
        torch.testing.assert_close(found.pose, bank.pose)
    tokens, row = distinct(world.tokens[[2, 4, 2, 5, 4]])
    assert row.tolist() == [0, 1, 0, 2, 1]
    torch.testing.assert_close(tokens, world.tokens[[2, 4, 5]])


@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_joined_where_views_overlap(seed):
    """Two groups of views that no move joins: views that tell of each other place one in the frame of the other."""
    world = World(seed, 8, edges=[(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (5, 7)], side=1.5)
    bank = untrained(relative=Perfect()).encode(world.memories())
    number = world.numbers(bank.tokens)
    assert sorted(number) == list(range(8))
    metres, radians = away(bank.pose, action_between(world.poses[number[0]], world.poses[number]))
    assert metres < 0.02 and radians < 0.02


def test_clusters_that_nobody_can_join_hold_together_all_the_same():
    world = World(3, 8, edges=[(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (5, 7)])
    bank = untrained().encode(world.memories())
    number = world.numbers(bank.tokens)
    pose = dict(zip(number, bank.pose.double().numpy(), strict=True))
    for group in (range(4), range(4, 8)):
        for one in group:
            for other in group:
                found = action_between(pose[one], pose[other])
                assert max(away(found, action_between(world.poses[one], world.poses[other]))) < 1e-3


def test_an_empty_bank_is_refused():
    empty = Memories(torch.zeros(0, 16, 8), torch.zeros(0, 3), torch.zeros(0, 16, 8))
    with pytest.raises(ValueError, match="at least one transition"):
        untrained().encode(empty)


def test_the_smallest_banks():
    """One move, and one that turns back to the same view."""
    model, world = untrained(), World(0, 3)
    for rows in ([(0, 1)], [(0, 0)]):
        bank = model.encode(world.memories(rows))
        assert len(bank.tokens) == len(set(rows[0]))
        found, unknown = model.action_between(bank, world.tokens, world.tokens.roll(1, 0))
        seen, dark = model.view_after(bank, world.tokens, torch.zeros(3, 3))
        assert found.mean.shape == (3, 6, 3) and unknown.shape == dark.shape == (3,) and seen.shape == (3, 16, 8)
        assert all(part.isfinite().all() for part in (*found, unknown, seen, dark))


# Actions


@pytest.mark.parametrize("std", [None, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_between_views_of_the_bank_it_integrates_paths_with_random_weights(seed, std):
    """To a centimetre or so, since equal views have equal poses, while what networks say of the others is vague."""
    model, world = untrained(seed, std), World(seed)
    bank = model.encode(world.memories())
    start, end, actions = world.pairs()
    found, _ = model.action_between(bank, world.tokens[start], world.tokens[end])
    metres, radians = away(found.best(), actions)
    assert metres < 0.02 and radians < 0.02
    located, sure = model.locate(bank, world.tokens)
    metres, radians = away(located.best(), action_between(world.poses[world.rows[0, 0]], world.poses))
    assert metres < 0.02 and radians < 0.02
    stranger = torch.randn(1, 16, 8)
    assert (sure > model.locate(bank, stranger)[1] + 3).all()


@pytest.mark.parametrize("seed", range(3))
def test_views_that_the_bank_does_not_hold_are_found_by_those_that_overlap(seed):
    """Where views tell of each other only within two metres, and those that are asked about are further apart."""
    world = World(seed, 30)
    held = nx.Graph([(i, i + 1) for i in range(23)])  # the views from 24 on are in no move
    world.rows = np.array(held.edges)
    model = untrained(relative=Perfect(near=2.0))
    bank = model.encode(world.memories())
    start, end, actions = world.pairs()
    asked = (start >= 24) & (end >= 24) & (np.linalg.norm(actions[:, :2], axis=1) > 2)
    assert asked.sum() >= 8
    found, _ = model.action_between(bank, world.tokens[start[asked]], world.tokens[end[asked]])
    metres, radians = away(found.best(), actions[asked])
    assert metres < 0.1 and radians < 0.1
    alone, unknown = model.action_between(None, world.tokens[start[asked]], world.tokens[end[asked]])
    assert np.allclose(alone.best(), [7, -7, 1]) and (unknown > 10).all()


def test_without_a_bank_it_goes_by_the_two_views():
    world = World()
    model = untrained(relative=Perfect(near=9.0))
    start, end, actions = world.pairs()
    found, unknown = model.action_between(None, world.tokens[start], world.tokens[end])
    assert max(away(found.best(), actions)) < 1e-5 and (unknown == -12).all()
    for other in (model, untrained()):  # equal views, whatever the networks say
        found, unknown = other.action_between(None, world.tokens, world.tokens.clone())
        np.testing.assert_allclose(found.best(), np.zeros((10, 3)), atol=1e-6)
        assert (unknown == -SURE).all() and (found.spread == SPREADS[0]).all() and (found.turn == TURNS[0]).all()


@pytest.mark.parametrize("std", [None, 0.1])
def test_the_order_of_memories_does_not_matter(std):
    """The frame begins with another view then, and the answers are the same."""
    model, world = untrained(0, std), World(4)
    order = torch.from_numpy(np.random.default_rng(0).permutation(9))
    memories = world.memories()
    bank, other = model.encode(memories), model.encode(Memories(*(part[order] for part in memories)))
    torch.manual_seed(1)
    views = torch.cat([world.tokens, torch.randn(4, 16, 8)])
    answers = [model.action_between(b, views, views.roll(3, 0)) for b in (bank, other)]
    torch.testing.assert_close(answers[0][1], answers[1][1], atol=1e-3, rtol=1e-3)
    metres, radians = away(answers[0][0].best(), answers[1][0].best().numpy())
    assert metres < 1e-2 and radians < 1e-2
    seen = [model.view_after(b, views, torch.tensor([0.5, 0.2, 1.0]).expand(14, 3)) for b in (bank, other)]
    torch.testing.assert_close(seen[0], seen[1], atol=1e-2, rtol=1e-2)


def test_queries_do_not_depend_on_each_other():
    model, world = untrained(0, 0.1), World(5)
    bank = model.encode(world.memories())
    found, unknown = model.action_between(bank, world.tokens, world.tokens.roll(1, 0))
    seen, dark = model.view_after(bank, world.tokens, torch.ones(10, 3))
    blocked = model.is_blocked(world.tokens, torch.ones(10, 2, 3))
    for k in (0, 7):
        one = world.tokens[k : k + 1]
        alone, doubt = model.action_between(bank, one, world.tokens[k - 1 : k] if k else world.tokens[-1:])
        torch.testing.assert_close(alone.best()[0], found.best()[k], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(doubt[0], unknown[k], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(model.view_after(bank, one, torch.ones(1, 3))[0][0], seen[k], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(model.is_blocked(one, torch.ones(1, 2, 3))[0], blocked[k], atol=1e-4, rtol=1e-4)
    assert dark.shape == (10,) and blocked.shape == (10, 2)


def sure_of(pose):
    """Six components about a pose."""
    shape = (1, 6)
    mean = torch.tensor(pose).expand(1, 6, 3)
    return PoseMixture(mean, torch.full(shape, 0.1), torch.full(shape, 0.1), torch.zeros(shape).log_softmax(1))


@pytest.mark.parametrize(("sure", "overlap", "bank_wins"), [(30.0, -8.0, True), (-30.0, 8.0, False), (30.0, 8.0, None)])
def test_what_the_bank_tells_and_what_two_views_tell(sure, overlap, bank_wins):
    """As born: whoever is sure is believed; where both are and agree, they are surer together."""
    start, end = [1.0, 2.0, 0.5], [0.0, 1.0, -2.0]
    by_bank = action_between(start, end)
    by_views = by_bank if bank_wins is None else np.array([0.5, 0.5, 0.5])
    direct = PoseMixture(*(part[:, :4] for part in sure_of(by_views.astype(np.float32).tolist())))
    direct = direct._replace(log_weight=direct.log_weight.log_softmax(1))
    found, unknown = untrained().join(
        sure_of(start), sure_of(end), torch.tensor([sure]), torch.tensor([sure]), direct, torch.tensor([overlap])
    )
    best = found.mean[0, found.log_weight[0].argmax()]
    assert max(away(best, by_bank if bank_wins is not False else by_views)) < 0.02
    assert unknown.shape == (1,)
    if bank_wins is None:
        assert found.spread[0, 0] == pytest.approx((1 / 0.1**2 + 1 / 0.02) ** -0.5, rel=0.02)  # 0.02 = 0.1² + 0.1²


# Views


class Recorder(nn.Module):
    """In place of what reads views: those overlap most that were taken nearest, and it keeps what it is given."""

    def overlap(self, relative):
        return -relative[..., :2].norm(dim=-1)

    def forward(self, tokens, relative, there):
        self.given = tokens, relative, there
        return tokens[:, 0], torch.zeros(len(tokens))


@pytest.mark.parametrize("n", [4, 15])
def test_what_is_read_of_a_view(n):
    """The given view and up to seven of the bank, the nearest ones, as they lie from where the action leads."""
    world, recorder = World(6, n), Recorder()
    model = untrained(relative=Perfect(near=20.0), reader=recorder)
    bank = model.encode(world.memories())
    actions = np.random.default_rng(0).uniform([-1.5, -1.5, -3], [1.5, 1.5, 3], (n, 3))
    model.view_after(bank, world.tokens, torch.from_numpy(actions).float())
    tokens, relative, there = recorder.given
    kept = min(n, 7)
    assert tokens.shape == (n, 1 + kept, 16, 8) and there.shape == (n, 1 + kept) and there.all()
    for k in range(n):
        asked = moved(world.poses[k], actions[k])
        assert world.numbers(tokens[k])[0] == k
        assert max(away(relative[k, 0], action_between(asked, world.poses[k]))) < 1e-4
        held = world.numbers(tokens[k, 1:])
        nearest = np.argsort(np.linalg.norm(world.poses[:, :2] - asked[:2], axis=1))[:kept]
        assert set(held) == set(nearest)
        assert max(away(relative[k, 1:], action_between(asked, world.poses[held]))) < 0.05


def test_a_view_depends_on_bank_start_and_action():
    model, world = untrained(0, 0.1), World(7)
    bank, other = model.encode(world.memories()), model.encode(World(8).memories())
    actions = torch.ones(10, 3)
    seen, _ = model.view_after(bank, world.tokens, actions)
    for found in (
        model.view_after(other, world.tokens, actions),
        model.view_after(bank, world.tokens.roll(1, 0), actions),
        model.view_after(bank, world.tokens, -actions),
    ):
        assert (found[0] - seen).abs().max() > 1e-3


def test_ways_are_blocked_by_view_and_action():
    """By where the action leads; a turn at its end changes nothing."""
    model, world = untrained(0, 0.3), World(9)
    odds = model.is_blocked(world.tokens, torch.ones(10, 1, 3))[:, 0]
    assert odds.shape == (10,) and odds.isfinite().all() and odds.std() > 1e-3
    actions = torch.tensor([[-1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, -2.0]]).expand(10, 3, 3)
    back, same, turned = model.is_blocked(world.tokens, actions).unbind(1)
    assert (back - odds).abs().max() > 1e-3
    for others in (same, turned):
        torch.testing.assert_close(others, odds)


def test_trust_is_learned_from_answers():
    """Actions between views that the bank does not hold teach how far to trust whom."""
    torch.manual_seed(0)
    model, world = IndoorModel(CONFIG), World(2, 12)
    bank = model.encode(world.memories())
    views = torch.randn(2, 20, 16, 8)
    found, unknown = model.action_between(bank, *views)
    (found.log_prob(torch.randn(20, 3)).sum() + unknown.sum()).backward()
    for module in (model.locating, model.joining, model.action_unknown):
        for name, p in module.named_parameters():
            assert p.grad is not None and p.grad.isfinite().all() and p.grad.any(), name
    assert model.trust.grad.all()
