"""Encoders see where things are, and reductions keep what differs most."""

import numpy as np
import pytest
import torch
from torch import nn

from eswm_gym.world_model.indoor.vision import DINO, KEPT, EfficientNetLite0, Reduction, scaled


def pictures(n=2, size=128, seed=0):
    """Coloured patches of 16 x 16 pixels and larger ones of 48 x 48, as rooms have."""
    rng = np.random.default_rng(seed)
    fine, coarse = (rng.integers(0, 256, (n, size // side + 1, size // side + 1, 3)) for side in (16, 48))
    whole = [np.kron(part, np.ones((1, side, side, 1)))[:, :size, :size] for part, side in ((fine, 16), (coarse, 48))]
    return ((whole[0] + 2 * whole[1]) / 3).astype(np.uint8)


def likeness(one, other):
    """(4, 4) cosine of each column of tokens (B, 4, 4, D) with each of others, less what all pictures share there."""
    columns = [
        torch.nn.functional.normalize((x - x.mean(0)).permute(2, 0, 1, 3).flatten(1), dim=1) for x in (one, other)
    ]
    return columns[0] @ columns[1].T


# EfficientNet


@pytest.fixture(scope="module")
def encoder():
    try:
        return EfficientNetLite0()
    except ImportError as error:
        pytest.skip(f"the encoder is in the extra `indoor`: {error}")


def test_efficientnet(encoder):
    assert encoder.name == "efficientnet-lite0-128" and encoder.groups == (448, 1280)
    seen = pictures(3, 224)
    tokens = encoder(seen)
    assert tokens.shape == (3, 16, 1728) and tokens.dtype == torch.float32 and tokens.isfinite().all()
    assert not tokens.requires_grad
    torch.testing.assert_close(encoder(seen), tokens, atol=0, rtol=0)
    torch.testing.assert_close(EfficientNetLite0()(seen), tokens, atol=0, rtol=0)


def test_a_picture_is_seen_alike_whatever_else_is(encoder):
    """But for what half the precision does."""
    seen = pictures(3)
    tokens, alone = encoder(seen), encoder(seen[1:2])
    likeness = torch.nn.functional.cosine_similarity(alone[0], tokens[1], dim=-1)
    assert likeness.min() > 0.99
    across = torch.nn.functional.cosine_similarity(tokens[0], tokens[1], dim=-1)
    assert across.max() < 0.97


def test_tokens_lie_as_what_they_show(encoder):
    """What moves a quarter of the picture to the right, or down, is seen one column, or row, further on.

    In the features of the eleventh block; the last ones know it less well.
    """
    wide = pictures(8, 160)
    for one, other, turned in (
        (wide[:, :128, 32:], wide[:, :128, :128], False),
        (wide[:, 32:, :128], wide[:, :128, :128], True),
    ):
        tokens = encoder(np.concatenate([one, other]))[..., : encoder.groups[0]].unflatten(1, (4, 4))
        found = likeness(*(tokens.transpose(1, 2) if turned else tokens).split(8))
        assert found[:3].argmax(1).tolist() == [1, 2, 3]
        assert found.diagonal(1).min() > found.diagonal().max() + 0.2


def test_a_mirrored_picture_has_mirrored_tokens(encoder):
    """In the last features, which mean much the same mirrored."""
    seen = pictures(8)
    tokens = encoder(np.concatenate([seen, seen[:, :, ::-1]]))[..., encoder.groups[0] :]
    found = likeness(*tokens.unflatten(1, (4, 4)).split(8))
    assert found.argmax(1).tolist() == [3, 2, 1, 0]
    assert found.flip(1).diagonal().min() > found.diagonal().max() + 0.1


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((128, 128, 3), np.uint8),
        np.zeros((1, 3, 128, 128), np.uint8),
        np.zeros((1, 128, 128, 4), np.uint8),
        np.zeros((1, 128, 128, 3)),
        np.zeros((1, 128, 128, 3), np.int64),
    ],
)
def test_what_is_no_picture_is_refused(wrong):
    with pytest.raises(ValueError, match=r"pictures must be \(B, H, W, 3\) uint8"):
        scaled(wrong, 128)
    with pytest.raises(ValueError, match="pictures must be"):
        DINO(StandIn(), "stand-in", 6)(wrong)


def test_scaling():
    """From bytes to 0 and 1; a picture of one colour stays so, and a step stays where it is."""
    plain = np.full((2, 224, 224, 3), (0, 51, 255), np.uint8)
    found = scaled(plain, 128)
    assert found.shape == (2, 3, 128, 128)
    for channel, value in enumerate((0.0, 0.2, 1.0)):
        torch.testing.assert_close(found[:, channel], torch.full((2, 128, 128), value), atol=1e-5, rtol=0)
    step = np.zeros((1, 256, 256, 3), np.uint8)
    step[:, :, 128:] = 255
    found = scaled(step, 64)[0, 0]
    assert (found[:, :31] < 0.01).all() and (found[:, 33:] > 0.99).all()


# DINO


class StandIn(nn.Module):
    """Shows what it was given, in patches of 14 x 14 pixels: their mean colours, and these once more."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.asked = []

    def get_intermediate_layers(self, x, n=1, reshape=False):
        self.asked.append((x, n, reshape))
        patches = torch.nn.functional.avg_pool2d(x, 14)
        return (torch.cat([patches, 2 * patches], 1),)


def test_dino_is_shown_normalised_pictures_and_its_patches_are_pooled():
    net = StandIn()
    encoder = DINO(net, "dinov2-vits14", 6)
    assert (encoder.name, encoder.groups) == ("dinov2-vits14", (6,))
    assert not net.training and not net.weight.requires_grad
    seen = np.zeros((2, 224, 224, 3), np.uint8)
    colours = np.random.default_rng(0).integers(0, 256, (2, 4, 4, 3))
    seen[:] = np.kron(colours, np.ones((1, 56, 56, 1)))
    tokens = encoder(seen)
    ((x, n, reshape),) = net.asked
    assert x.shape == (2, 3, 224, 224) and (n, reshape) == (1, True)
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])  # of ImageNet's pictures
    expected = ((colours / 255 - mean) / std).reshape(2, 16, 3)
    np.testing.assert_allclose(x[1, :, 100, 200], expected[1, 1 * 4 + 3], atol=1e-4)  # rows first
    assert tokens.shape == (2, 16, 6) and tokens.dtype == torch.float32
    np.testing.assert_allclose(tokens[..., :3], expected, atol=1e-2)
    np.testing.assert_allclose(tokens[..., 3:], 2 * expected, atol=2e-2)


def test_dino_of_other_patches():
    net = StandIn()
    assert DINO(net, "of 28 pixels", 6, pixels=112)(pictures(1)).shape == (1, 16, 6)
    assert net.asked[0][0].shape == (1, 3, 112, 112)


# Reductions


def spread_out(n=600, seed=0):
    """Two groups of features, each with directions in which they differ ever less, and means far from 0."""
    rng = np.random.default_rng(seed)
    parts = []
    for width, scale in ((20, 1.0), (30, 50.0)):
        turned, _ = np.linalg.qr(rng.standard_normal((width, width)))
        parts.append(scale * (rng.standard_normal((n, width)) * 0.5 ** np.arange(width)) @ turned + 10 * scale)
    return torch.tensor(np.concatenate(parts, 1), dtype=torch.float)


def test_reduced_are_the_principal_components_of_each_group():
    tokens, kept = spread_out(), 4
    reduction = Reduction((20, 30), kept).fit(tokens)
    assert reduction.dim == 8
    reduced = reduction(tokens)
    assert reduced.shape == (600, 8)
    for group, part in enumerate((tokens[:, :20], tokens[:, 20:])):
        centred = (part - part.mean(0)).double().numpy()
        left, values, _ = np.linalg.svd(centred, full_matrices=False)
        expected = left[:, :kept] * values[:kept]
        expected /= expected.std(ddof=1)
        found = reduced[:, kept * group : kept * (group + 1)].double().numpy()
        signs = np.sign((found * expected).sum(0))
        np.testing.assert_allclose(found, expected * signs, atol=2e-2)
        assert found.std() == pytest.approx(1, abs=1e-2)  # however large the features are
        np.testing.assert_allclose(found.mean(0), 0, atol=1e-2)


def test_other_tokens_are_reduced_in_the_same_way():
    tokens = spread_out()
    reduction = Reduction((20, 30), 4).fit(tokens)
    views = tokens[:32].reshape(2, 16, 50)
    torch.testing.assert_close(reduction(views), reduction(tokens)[:32].reshape(2, 16, 8))
    torch.testing.assert_close(reduction(tokens + 0), reduction(tokens))
    mean = tokens.mean(0)
    torch.testing.assert_close(reduction(mean + 2 * (tokens - mean)), 2 * reduction(tokens), atol=1e-3, rtol=1e-3)


def test_a_reduction_is_kept_and_is_no_weight():
    reduction = Reduction((20, 30), 4).fit(spread_out())
    other = Reduction((20, 30), 4)
    assert not other(spread_out()).any()
    other.load_state_dict(reduction.state_dict())
    torch.testing.assert_close(other(spread_out(5)), reduction(spread_out(5)))
    assert list(reduction.parameters()) == []
    assert Reduction((200, 300)).dim == 2 * KEPT
    with pytest.raises(RuntimeError, match="size mismatch"):
        Reduction((20, 31), 4).load_state_dict(reduction.state_dict())
