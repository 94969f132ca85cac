"""What a user may take for granted of how two views are compared, whatever was learned."""

import math
from functools import cache

import numpy as np
import pytest
import torch

from eswm_gym.rooms.indoor import action_between
from eswm_gym.world_model.indoor.pose_mixtures import SPREADS, TURNS, PoseMixture
from eswm_gym.world_model.indoor.relative_poses import COMPONENTS, Look, RelativePoses

WIDTH = 12


@cache
def scrambled() -> RelativePoses:
    """With random weights everywhere, also where they are born as zeros."""
    model = RelativePoses(WIDTH, dim=32, heads=4)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3, generator=generator)
    return model


def views(n=6, seed=1):
    return torch.randn(n, 16, WIDTH, generator=torch.Generator().manual_seed(seed))


def close(a, b):
    for x, y in zip([*a[0], a[1]], [*b[0], b[1]], strict=True):
        torch.testing.assert_close(x, y, atol=1e-4, rtol=1e-4)


def at(found, rows):
    """What is said of some pairs."""
    said, overlap = found
    return PoseMixture(*(part[rows] for part in said)), overlap[rows]


def test_shapes():
    model = scrambled()
    look = model.look(views())
    assert look.columns.shape == (6, 8, 32) and look.whole.shape == (6, 32)
    for shape in ((5,), (2, 3)):
        start = torch.full(shape, 2)
        said, overlap = model(look, start, start + 1)
        assert said.mean.shape == (*shape, COMPONENTS, 3)
        assert said.spread.shape == said.turn.shape == said.log_weight.shape == (*shape, COMPONENTS)
        assert overlap.shape == shape
        assert all(part.dtype == torch.float32 and part.isfinite().all() for part in (*said, overlap))


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_what_is_said_is_a_mixture_whatever_is_seen(scale):
    model = scrambled()
    said, overlap = model(model.look(scale * views()), torch.arange(5), torch.arange(5) + 1)
    assert all(part.isfinite().all() for part in (*said, overlap))
    torch.testing.assert_close(said.log_weight.exp().sum(-1), torch.ones(5))
    for part, (low, high) in ((said.spread, SPREADS), (said.turn, TURNS)):
        assert (part >= low - 1e-6).all() and (part <= high + 1e-6).all()
    assert (said.mean[..., 2].abs() <= math.pi + 1e-6).all()


def test_pairs_do_not_depend_on_what_else_is_compared():
    model, tokens = scrambled(), views()
    together = model(model.look(tokens), torch.tensor([0, 3, 5]), torch.tensor([1, 1, 4]))
    for k, (start, end) in enumerate([(0, 1), (3, 1), (5, 4)]):
        alone = model(model.look(tokens[[end, start]]), torch.tensor([1]), torch.tensor([0]))
        close(alone, at(together, slice(k, k + 1)))
    grid = model(model.look(tokens), torch.arange(6)[:, None].expand(6, 6), torch.arange(6).expand(6, 6))
    close(at(grid, (3, 1)), at(together, 1))


def test_answers_depend_on_all_that_they_should():
    """On which view is which, on what each shows, and on where in the picture that is."""
    model, tokens = scrambled(), views(2)
    said, _ = model(model.look(tokens), torch.tensor([0]), torch.tensor([1]))
    other_way = tokens[[1, 0]]
    other_view, mirrored = tokens.clone(), tokens.clone()
    other_view[1, 5] += 1
    mirrored[1] = tokens[1].unflatten(0, (4, 4)).flip(1).flatten(0, 1)
    for changed in (other_way, other_view, mirrored):
        found, _ = model(model.look(changed), torch.tensor([0]), torch.tensor([1]))
        assert (found.mean - said.mean).abs().max() > 1e-2


def test_columns_go_from_left_to_right():
    """As born, where tokens do not read each other: a column of tokens gives two, and no others."""
    torch.manual_seed(0)
    model = RelativePoses(WIDTH, dim=32)
    before = model.look(views(1)).columns
    for column in range(4):
        changed = views(1).unflatten(1, (4, 4)).clone()
        changed[:, :, column] += 1
        different = (model.look(changed.flatten(1, 2)).columns - before).abs().amax((0, 2)) > 1e-6
        assert different.nonzero()[:, 0].tolist() == [2 * column, 2 * column + 1]


def test_numbers_are_read_as_they_should_be():
    """Four times right, ahead, sine, cosine, logarithms of spread and turn, and weight; then the overlap."""
    one = [0.5, -1.0, 1.0, 0.0, math.log(0.3), math.log(0.2), 2.0]
    far = [9.0, 9.0, 0.0, -1.0, 50.0, 50.0, 1.0]
    near = [0.0, 0.0, 0.0, 1.0, -50.0, -50.0, 0.0]
    said, overlap = RelativePoses.mixture(torch.tensor([*one, *far, *near, *near, -3.0]))
    np.testing.assert_allclose(said.mean[0], [0.5, -1, math.pi / 2], atol=1e-5)
    assert abs(said.mean[1, 2].item()) == pytest.approx(math.pi)
    np.testing.assert_allclose(said.spread, [0.3, SPREADS[1], SPREADS[0], SPREADS[0]], rtol=1e-5)
    np.testing.assert_allclose(said.turn, [0.2, TURNS[1], TURNS[0], TURNS[0]], rtol=1e-5)
    weights = np.exp([2.0, 1.0, 0.0, 0.0])
    np.testing.assert_allclose(said.log_weight.exp(), weights / weights.sum(), rtol=1e-5)
    assert overlap.item() == -3


def test_every_weight_learns():
    model = scrambled()
    said, overlap = model(model.look(views()), torch.arange(5), torch.arange(5) + 1)
    (said.log_prob(torch.tensor([0.3, 0.2, 0.1]).expand(5, 3)).sum() + overlap.sum()).backward()
    missing = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    model.zero_grad()
    assert missing == []


def test_it_learns_how_views_lie_that_tell_their_pose():
    """Where poses can be read from tokens, a few steps say more of the action between them than what is common."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    poses = np.c_[rng.uniform(-1, 1, (64, 2)), rng.uniform(-math.pi, math.pi, 64)]
    facts = torch.tensor(np.c_[poses[:, :2], np.sin(poses[:, 2]), np.cos(poses[:, 2])], dtype=torch.float)
    tokens = (facts @ torch.randn(4, 16 * WIDTH)).unflatten(1, (16, WIDTH))
    model = RelativePoses(WIDTH, dim=32, layers=1, heads=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(60):
        start, end = torch.from_numpy(rng.integers(64, size=(2, 256)))
        actions = torch.from_numpy(action_between(poses[start], poses[end])).float()
        loss = -model(model.look(tokens), start, end)[0].log_prob(actions).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    evenly = math.log(4 * 4 * 2 * math.pi)  # what one says who knows how far apart they may be
    assert losses[0] > evenly - 0.3 and np.mean(losses[-5:]) < evenly - 1.5


def test_a_look_is_what_it_is_compared_by():
    """Rows of a look can be put together in any way."""
    model = scrambled()
    look = model.look(views())
    some = Look(*(part[[4, 2]] for part in look))
    close(model(some, torch.tensor([0]), torch.tensor([1])), model(look, torch.tensor([4]), torch.tensor([2])))
