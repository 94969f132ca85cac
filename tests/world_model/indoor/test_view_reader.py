"""What a user may take for granted of how a view is read from those near it, whatever was learned."""

import math
from functools import cache

import numpy as np
import pytest
import torch

from eswm_gym.world_model.indoor.view_reader import Overlap, ViewReader, pose_features

WIDTH = 12


@cache
def scrambled() -> ViewReader:
    """With random weights everywhere, also where they are born as zeros."""
    model = ViewReader(WIDTH, dim=32, heads=2, layers=2)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3, generator=generator)
    return model


def remembered(n=3, v=5, seed=1):
    """Tokens of views, and how they lie."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, v, 16, WIDTH, generator=generator), torch.randn(n, v, 3, generator=generator)


def there(n=3, v=5):
    return torch.ones(n, v, dtype=torch.bool)


def close(a, b):
    for x, y in zip(a, b, strict=True):
        torch.testing.assert_close(x, y, atol=1e-4, rtol=1e-4)


def test_shapes():
    for v in (1, 5, 8):
        seen, unknown = scrambled()(*remembered(v=v), there(v=v))
        assert seen.shape == (3, 16, WIDTH) and unknown.shape == (3,)
        assert seen.isfinite().all() and unknown.isfinite().all()


def test_views_that_are_not_there_change_nothing():
    tokens, relative = remembered()
    model, given = scrambled(), there()
    given[:, 3:] = False
    found = model(tokens, relative, given)
    close(model(tokens[:, :3], relative[:, :3], there(v=3)), found)
    tokens[:, 3:], relative[:, 3:] = 1e3, -7.0
    close(model(tokens, relative, given), found)
    more_tokens, more_relative = remembered(v=2, seed=4)
    gone = torch.zeros(3, 2, dtype=torch.bool)
    padded = model(
        torch.cat([more_tokens, tokens], 1), torch.cat([more_relative, relative], 1), torch.cat([gone, given], 1)
    )
    close(padded, found)


def test_some_have_fewer_views_than_others():
    tokens, relative = remembered()
    given = there()
    for row, n in enumerate((1, 3, 5)):
        given[row, n:] = False
    seen, unknown = scrambled()(tokens, relative, given)
    for row, n in enumerate((1, 3, 5)):
        one = slice(row, row + 1)
        close(scrambled()(tokens[one, :n], relative[one, :n], there(1, n)), (seen[one], unknown[one]))


def test_the_order_of_remembered_views_does_not_matter():
    tokens, relative = remembered()
    order = torch.from_numpy(np.random.default_rng(0).permutation(5))
    close(scrambled()(tokens[:, order], relative[:, order], there()), scrambled()(tokens, relative, there()))


def test_answers_depend_on_what_is_remembered_and_where():
    tokens, relative = remembered()
    seen, unknown = scrambled()(tokens, relative, there())
    for other in (
        (tokens.roll(1, 1), relative),
        (tokens, relative + torch.tensor([0.3, 0, 0])),
        (tokens + 0.1, relative),
    ):
        found, doubt = scrambled()(*other, there())
        assert (found - seen).abs().max() > 1e-2 and (doubt - unknown).abs().max() > 1e-4


def test_as_born_it_shows_a_mean_of_what_it_reads_or_nothing_of_it():
    """What is seen is then a blend of remembered tokens: with one token everywhere, a multiple of that token."""
    torch.manual_seed(0)
    model, one = ViewReader(WIDTH, dim=32, heads=2), torch.randn(WIDTH)
    with torch.no_grad():
        model.read.bias.zero_()
        seen, _ = model(one.expand(2, 4, 16, WIDTH), remembered(2, 4)[1], there(2, 4))
    share = seen @ one / (one @ one)
    torch.testing.assert_close(seen, share[..., None] * one, atol=1e-4, rtol=1e-4)


def test_every_weight_learns_but_those_of_overlap_which_are_told_apart():
    model = scrambled()
    seen, unknown = model(*remembered(), there())
    (seen.square().sum() + unknown.sum()).backward()
    missing = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()}
    model.zero_grad()
    assert missing == {f"overlap.{name}" for name, _ in model.overlap.named_parameters()}
    model.overlap(remembered()[1]).sum().backward()
    assert all(p.grad.any() for p in model.overlap.parameters())
    model.zero_grad()


def test_it_learns_to_show_the_view_that_lies_there():
    """One of three remembered views was taken at the very pose that is asked for."""
    torch.manual_seed(0)
    model = ViewReader(WIDTH, dim=32, heads=2, layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(80):
        tokens, relative = torch.randn(32, 3, 16, WIDTH), torch.randn(32, 3, 3) + torch.tensor([2.0, 0, 0])
        which = torch.randint(3, (32,))
        relative[torch.arange(32), which] = 0
        seen, _ = model(tokens, relative, there(32, 3))
        target = tokens[torch.arange(32), which]
        loss = 1 - torch.nn.functional.cosine_similarity(seen.flatten(1), target.flatten(1), dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 0.7 and np.mean(losses[-5:]) < 0.4


@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_overlap_is_told_by_poses_alone(shape):
    relative = torch.randn(*shape, 3)
    found = Overlap()(relative)
    assert found.shape == shape and found.isfinite().all()
    whole_turn = relative + torch.tensor([0, 0, 2 * math.pi])
    torch.testing.assert_close(Overlap.forward(model := Overlap(), whole_turn), model(relative), atol=1e-4, rtol=1e-4)


def test_what_networks_see_of_poses():
    """Sides, distance, nearness, and the sines and cosines of four angles."""
    right, forward, turn = 0.6, -0.8, 2.0
    far, around = math.sqrt(0.36 + 0.64 + 0.01), math.atan2(0.6, -0.8)
    # its turn, twice that, where it lies, and where one lies as it sees it
    angles = (turn, 2 * turn, around, around - turn)
    expected = [0.3, -0.4, far / 2, 0.5 / far, *map(math.sin, angles), *map(math.cos, angles)]
    np.testing.assert_allclose(pose_features(torch.tensor([right, forward, turn])), expected, atol=1e-5)
    same_place = pose_features(torch.zeros(2, 3, requires_grad=True))
    assert same_place.shape == (2, 12) and same_place.isfinite().all()
