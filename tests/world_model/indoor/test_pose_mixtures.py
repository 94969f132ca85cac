"""Poses compose as in the house, and mixtures of them are densities."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from eswm_gym.rooms.indoor import action_between, displacement_class, moved, reverse, rotation_class
from eswm_gym.rooms.indoor import wrap as wrap_angle
from eswm_gym.world_model.indoor.pose_mixtures import SPREADS, TURNS, PoseMixture, between, compose, wrap

RIGHT = math.pi / 2


def mixture(*components):
    """Of components (mean, spread, turn, weight)."""
    means, spreads, turns, weights = zip(*components, strict=True)
    return PoseMixture(
        torch.tensor(means), *(torch.tensor(part) for part in (spreads, turns)), torch.tensor(weights).log()
    )


def drawn(seed, n):
    rng = np.random.default_rng(seed)
    return np.c_[rng.uniform(-5, 5, (n, 2)), rng.uniform(-math.pi, math.pi, n)]


def same_pose(found, expected, atol=1e-5):
    """Headings that differ by a whole turn are the same."""
    difference = np.asarray(found) - np.asarray(expected)
    np.testing.assert_allclose(difference[..., :2], 0, atol=atol)
    np.testing.assert_allclose(wrap_angle(difference[..., 2] + 1) - 1, 0, atol=atol)


TWO = mixture(([0.5, -0.2, 0.4], 0.3, 0.4, 0.7), ([-0.8, 1.0, 3.0], 0.5, 0.6, 0.3))


# Poses


@pytest.mark.parametrize(
    ("pose", "action", "end"),
    [
        ([0, 0, 0], [1, 2, 0.5], [1, 2, 0.5]),
        ([1, 2, RIGHT], [0.5, 1, RIGHT], [2, 1.5, -math.pi]),  # ahead is x, to the right is against y
        ([1, 2, -math.pi], [0.5, 1, 0], [0.5, 1, -math.pi]),
        ([0, 0, 3], [0, 0, 1], [0, 0, 4 - 2 * math.pi]),
    ],
)
def test_poses_by_hand(pose, action, end):
    pose, action = torch.tensor(pose, dtype=torch.double), torch.tensor(action, dtype=torch.double)
    same_pose(compose(pose, action), end)
    same_pose(between(pose, torch.tensor(end, dtype=torch.double)), action)


def test_poses_are_those_of_houses():
    start, end = drawn(0, 200), drawn(1, 200)
    a, b = torch.from_numpy(start), torch.from_numpy(end)
    same_pose(compose(a, b), moved(start, end), 1e-9)
    same_pose(between(a, b), action_between(start, end), 1e-9)
    same_pose(compose(a, between(a, b)), end, 1e-9)
    same_pose(between(b, torch.zeros(3, dtype=torch.double)), reverse(end), 1e-9)
    same_pose(compose(a[:, None], b[None])[3, 5], moved(start[3], end[5]), 1e-9)


def test_angles():
    angles = torch.linspace(-20, 20, 1001, dtype=torch.double)
    found = wrap(angles)
    assert (found >= -math.pi).all() and (found < math.pi).all()
    torch.testing.assert_close(torch.stack([found.sin(), found.cos()]), torch.stack([angles.sin(), angles.cos()]))
    assert wrap(torch.tensor(math.pi, dtype=torch.double)).item() == -math.pi


# Densities


def test_densities_are_those_of_gaussians():
    poses = torch.from_numpy(drawn(2, 50)).float()
    expected = 0
    for k, weight in enumerate((0.7, 0.3)):
        mean, spread, turn = (part[k].numpy() for part in TWO[:3])
        angle = wrap_angle(poses[:, 2].numpy() - mean[2])
        plane = stats.multivariate_normal(mean[:2], spread**2).pdf(poses[:, :2].numpy())
        expected = expected + weight * plane * stats.norm(scale=turn).pdf(angle)
    np.testing.assert_allclose(TWO.log_prob(poses).exp().numpy(), expected, rtol=1e-3, atol=1e-30)
    parts = TWO.log_parts(poses)
    assert parts.shape == (50, 2)
    torch.testing.assert_close((parts.exp() @ TWO.log_weight.exp()), TWO.log_prob(poses).exp())


def integral(found):
    """Over x and y from -4 to 4 metres, and all headings."""
    line, headings = torch.linspace(-4, 4, 81), torch.linspace(-math.pi, math.pi, 73)[:-1]
    grid = torch.stack(torch.meshgrid(line, line, headings, indexing="ij"), -1)
    return found.log_prob(grid).exp().sum().item() * 0.1**2 * 2 * math.pi / 72


@pytest.mark.parametrize("heading", [0.0, 3.1, -RIGHT])
def test_densities_integrate_to_one(heading):
    assert integral(TWO) == pytest.approx(1, abs=1e-3)
    assert integral(mixture(([0.3, 0.1, heading], 0.4, 0.5, 1.0))) == pytest.approx(1, abs=1e-3)


def test_the_widest_turn_lacks_what_lies_beyond_half_a_turn():
    within = 1 - 2 * stats.norm.sf(math.pi / TURNS[1])
    assert within > 0.91
    assert integral(mixture(([0.0, 0.0, 1.0], 0.5, TURNS[1], 1.0))) == pytest.approx(within, abs=1e-2)


def test_a_pose_is_as_likely_seen_from_anywhere():
    """Actions from a pose are poses: the density goes along."""
    start, actions = (torch.from_numpy(drawn(seed, 20)).float() for seed in (3, 4))
    wide = PoseMixture(*(part.expand(20, *part.shape) for part in TWO))
    moved_there = wide.after(start)
    torch.testing.assert_close(
        moved_there.log_prob(compose(start, actions)), wide.log_prob(actions), rtol=1e-3, atol=1e-3
    )
    torch.testing.assert_close(moved_there.log_weight, wide.log_weight)


def test_the_best_component_is_the_highest_not_the_heaviest():
    broad, narrow = ([1.0, 0.0, 0.0], 1.0, 1.0, 0.8), ([0.0, 2.0, 1.0], 0.1, 0.1, 0.2)
    assert mixture(broad, narrow).best().tolist() == [0, 2, 1]
    assert mixture(broad, ([0.0, 2.0, 1.0], 1.0, 1.0, 0.2)).best().tolist() == [1, 0, 0]
    several = PoseMixture(*(torch.stack([part, part.flip(0)]) for part in mixture(broad, narrow)))
    assert several.best().tolist() == [[0, 2, 1], [0, 2, 1]]


# Classes


def samples(found, n=200_000):
    """Actions drawn from a mixture."""
    rng = np.random.default_rng(5)
    which = rng.choice(len(found.log_weight), n, p=found.log_weight.double().softmax(0).numpy())
    scale = np.stack([found.spread, found.spread, found.turn], -1)[which]
    return found.mean.numpy()[which] + rng.standard_normal((n, 3)) * scale


@pytest.mark.parametrize(
    "found",
    [
        TWO,
        mixture(([1.4, -1.4, -3.1], 0.4, 0.3, 1.0)),  # much of it beyond the box, and about straight back
        mixture(([0.0, 0.7, 0.0], SPREADS[0], TURNS[0], 0.5), ([9.0, 9.0, 2.0], 1.0, 0.1, 0.5)),
    ],
)
def test_classes_are_as_common_as_among_samples(found):
    actions = samples(found)
    for log_p, classes, n in zip(
        found.classes(), (displacement_class(actions), rotation_class(actions)), (64, 36), strict=True
    ):
        assert log_p.shape == (n,)
        assert log_p.exp().sum().item() == pytest.approx(1, abs=1e-5)
        common = np.bincount(classes, minlength=n) / len(classes)
        np.testing.assert_allclose(log_p.exp().numpy(), common, atol=5e-3)


def test_classes_of_many_mixtures_and_of_sure_ones():
    """Each alone as all together; a sure one names the class of its action; nothing is impossible."""
    actions = torch.tensor([[-1.4, 0.1, 0.1], [0.2, 1.3, -3.0], [0.6, -0.9, 2.0], [4.0, 0.1, 0.1]])
    sure = PoseMixture(
        actions[:, None], torch.full((4, 1), SPREADS[0]), torch.full((4, 1), TURNS[0]), torch.zeros(4, 1)
    )
    displacement, rotation = sure.classes()
    assert displacement.shape == (4, 64) and rotation.shape == (4, 36)
    assert displacement.argmax(1).tolist() == displacement_class(actions.numpy()).tolist()
    assert rotation.argmax(1).tolist() == rotation_class(actions.numpy()).tolist()
    assert displacement.isfinite().all() and rotation.isfinite().all()
    one = PoseMixture(*(part[2] for part in sure)).classes()
    torch.testing.assert_close(one[0], displacement[2])
    torch.testing.assert_close(one[1], rotation[2])


def test_a_wrong_mixture_is_drawn_to_what_is_true():
    """By gradients of its density and of its classes."""
    for loss in (
        lambda found: -found.log_prob(torch.tensor([0.9, 0.4, 1.0])),
        lambda found: -found.classes()[0][displacement_class(np.array([0.9, 0.4, 1.0]))],
        lambda found: -found.classes()[1][rotation_class(np.array([0.9, 0.4, 1.0]))],
    ):
        mean = torch.tensor([[0.3, 0.4, 0.6]], requires_grad=True)
        found = PoseMixture(mean, torch.tensor([0.5]), torch.tensor([0.5]), torch.zeros(1))
        loss(found).backward()
        assert mean.grad.isfinite().all()
        assert mean.grad[0, 0] < 0 or mean.grad[0, 2] < 0
