"""Witnesses of one pose: what they say together, worked out apart."""

import math

import numpy as np
import pytest
import torch
from scipy import special, stats

from eswm_gym.rooms.indoor import wrap
from eswm_gym.world_model.indoor.agreement import NOWHERE, Agreement
from eswm_gym.world_model.indoor.pose_mixtures import SPREADS, PoseMixture

HERE, THERE = [0.5, -0.3, 1.0], [2.5, 1.0, -2.0]


def witnesses(*said):
    """One component each, (mean, spread, turn, trust)."""
    means, spreads, turns, trusts = zip(*said, strict=True)
    spread, turn = (torch.tensor(part)[:, None] for part in (spreads, turns))
    return PoseMixture(torch.tensor(means)[:, None], spread, turn, torch.zeros(len(said), 1)), torch.tensor(trusts)


def believed(*said):
    with torch.no_grad():
        return Agreement()(*witnesses(*said))


def many(seed, *shape, k=3):
    """Random witnesses with several components each."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randn(*shape, k, 6, generator=generator)
    return (
        PoseMixture(
            numbers[..., :3],
            (numbers[..., 3] / 2 - 1).exp(),
            (numbers[..., 4] / 2 - 1).exp(),
            numbers[..., 5].log_softmax(-1),
        ),
        2 * torch.randn(*shape, generator=generator),
    )


def close(a, b, atol=1e-4):
    for x, y in zip([*a[0], a[1]], [*b[0], b[1]], strict=True):
        torch.testing.assert_close(x, y, atol=atol, rtol=1e-4)


def test_one_who_surely_knows_is_believed():
    found, agreed = believed((HERE, 0.2, 0.3, 20.0))
    np.testing.assert_allclose(found.best(), HERE, atol=1e-5)
    assert (found.spread.item(), found.turn.item()) == (pytest.approx(0.2, rel=1e-3), pytest.approx(0.3, rel=1e-3))
    density = stats.norm.pdf(0, scale=0.2) ** 2 * stats.norm.pdf(0, scale=0.3)
    assert agreed.item() == pytest.approx(math.log(density) - NOWHERE, abs=1e-3)


def test_several_who_agree_give_a_narrower_belief_between_them():
    """As Gaussians multiply: precisions add up, and means are weighted with them."""
    found, _ = believed(([0.0, 0.0, 0.0], 0.1, 0.2, 20.0), ([0.1, 0.0, 0.1], 0.2, 0.1, 20.0))
    np.testing.assert_allclose(found.best(), [0.1 * 25 / 125, 0, 0.1 * 100 / 125], atol=1e-3)
    assert found.spread[0].item() == pytest.approx(125**-0.5, rel=1e-2)
    assert found.turn[0].item() == pytest.approx(125**-0.5, rel=1e-2)
    for n in (1, 4, 16):
        found, _ = believed(*[(HERE, 0.3, 0.3, 20.0)] * n)
        np.testing.assert_allclose(found.best(), HERE, atol=1e-4)
        assert found.spread[0].item() == pytest.approx(0.3 / math.sqrt(n), rel=1e-2)


def test_headings_are_averaged_around_the_circle():
    found, _ = believed(([0.0, 0.0, 3.0], 0.2, 0.3, 20.0), ([0.0, 0.0, 0.2 - 3.0], 0.2, 0.3, 20.0))
    assert wrap(found.best()[2].item() - 3.0 - (math.pi - 2.9)).item() == pytest.approx(0, abs=1e-3)


def test_the_more_agree_the_more_it_is_worth():
    worth = [believed(*[(HERE, 0.3, 0.3, 2.0)] * n)[1].item() for n in (1, 2, 4)]
    assert 0 < worth[0] < worth[1] < worth[2]
    apart = believed((HERE, 0.3, 0.3, 2.0), (THERE, 0.3, 0.3, 2.0))[1].item()
    assert apart < worth[1]


def test_nobody_who_knows_anything_is_worth_nothing():
    _, agreed = believed(*[(HERE, 0.1, 0.1, -40.0)] * 3)
    assert agreed.item() == pytest.approx(0, abs=1e-3)


def test_a_lone_liar_of_low_trust_is_ignored():
    honest = [(HERE, 0.3, 0.3, 1.0)] * 3
    found, agreed = believed(*honest, (THERE, 0.05, 0.05, -6.0))
    alone, alone_agreed = believed(*honest)
    np.testing.assert_allclose(found.best(), HERE, atol=1e-2)
    torch.testing.assert_close(found.spread[0], alone.spread[0], atol=1e-3, rtol=1e-2)
    torch.testing.assert_close(agreed, alone_agreed, atol=0.05, rtol=0)
    at = torch.tensor([HERE, THERE])
    here, there = PoseMixture(*(part[None] for part in found)).log_prob(at).tolist()
    assert here > there + 3


def test_a_confident_minority_against_a_majority():
    """Five vague ones outweigh a precise one, and a precise one a vague one, as their densities multiply."""
    vague, precise = (HERE, 0.3, 0.3, 2.0), (THERE, 0.05, 0.05, 2.0)
    np.testing.assert_allclose(believed(*[vague] * 5, precise)[0].best(), HERE, atol=1e-2)
    np.testing.assert_allclose(believed(vague, precise)[0].best(), THERE, atol=1e-2)
    found, _ = believed(vague, (THERE, 0.05, 0.05, -6.0))  # distrusted, what it says weighs less
    np.testing.assert_allclose(found.mean[found.log_weight.argmax()], HERE, atol=1e-2)


def test_weights_are_what_the_witnesses_say_of_each_place():
    """By hand: each either knows, or says nothing; all of them together, for each place that is believed possible."""
    said, trust = many(3, 5)
    with torch.no_grad():
        found, agreed = Agreement()(said, trust)
    scores = []
    for place in found.mean.double().numpy():
        score = 0.0
        for v in range(5):
            density = 0.0
            for k in range(3):
                mean, spread, turn = (part[v, k].double().numpy() for part in said[:3])
                plane = stats.norm.pdf(place[:2] - mean[:2], scale=spread).prod()
                angle = stats.norm.pdf(wrap(place[2] - mean[2]), scale=turn)
                density += said.log_weight[v, k].exp().item() * plane * angle
            knows = special.expit(trust[v].item())
            score += math.log(knows * density + (1 - knows) * math.exp(NOWHERE))
        scores.append(score)
    np.testing.assert_allclose(found.log_weight, special.log_softmax(scores), atol=1e-3)
    assert agreed.item() == pytest.approx(max(scores) - 5 * NOWHERE, abs=1e-3)
    assert sorted(scores, reverse=True) == scores


def test_the_best_place_is_one_that_no_place_nearby_beats_by_much():
    """It is found by steps from what the witnesses say, so it is a peak, or nearly."""
    said, trust = many(4, 6)
    peaked = PoseMixture(0.3 * said.mean, said.spread, said.turn, said.log_weight)
    with torch.no_grad():
        found, _ = Agreement()(peaked, trust)

        def score(place):
            density = peaked.log_prob(place.expand(6, 3))
            knows = torch.nn.functional.logsigmoid(trust) + density
            return torch.logaddexp(knows, torch.nn.functional.logsigmoid(-trust) + NOWHERE).sum()

        best = score(found.mean[0])
        for _ in range(200):
            assert score(found.mean[0] + 0.3 * torch.randn(3)) < best + 0.3


def test_padding_with_witnesses_of_no_trust_changes_nothing():
    said, trust = many(5, 10)  # more components than are looked at, so that all that counts is looked at anyway
    nothing, _ = many(6, 7)
    padded = PoseMixture(*(torch.cat(parts) for parts in zip(said, nothing, strict=True)))
    with torch.no_grad():
        found, agreed = Agreement()(said, trust)
        other, other_agreed = Agreement()(padded, torch.cat([trust, torch.full((7,), -1e4)]))
    close((other, other_agreed), (found, agreed))


def test_padding_of_few_witnesses_changes_no_belief():
    """Then places of the padding are looked at, too, and found wanting."""
    honest = [(HERE, 0.2, 0.3, 3.0), ([0.6, -0.3, 1.1], 0.2, 0.3, 3.0)]
    found, agreed = believed(*honest)
    other, other_agreed = believed(*honest, *[(THERE, 0.2, 0.2, -60.0)] * 4)
    torch.testing.assert_close(other.best(), found.best(), atol=1e-4, rtol=0)
    torch.testing.assert_close(other_agreed, agreed, atol=1e-3, rtol=0)
    at = torch.tensor([HERE, [0.7, -0.5, 1.2], THERE])
    densities = [PoseMixture(*(part[None] for part in mixture)).log_prob(at).exp() for mixture in (found, other)]
    torch.testing.assert_close(*densities, atol=1e-2, rtol=1e-2)


def test_the_order_of_witnesses_and_of_what_each_says_does_not_matter():
    said, trust = many(7, 9)
    order = torch.from_numpy(np.random.default_rng(0).permutation(9))
    with torch.no_grad():
        found = Agreement()(said, trust)
        close(Agreement()(PoseMixture(*(part[order] for part in said)), trust[order]), found)
        turned = PoseMixture(said.mean.flip(1), *(part.flip(1) for part in said[1:]))
        close(Agreement()(turned, trust), found)


def test_batched_as_one_by_one():
    said, trust = many(8, 2, 3, 5)
    with torch.no_grad():
        found, agreed = Agreement()(said, trust)
        assert found.mean.shape == (2, 3, 6, 3) and found.spread.shape == (2, 3, 6) and agreed.shape == (2, 3)
        torch.testing.assert_close(found.log_weight.exp().sum(-1), torch.ones(2, 3))
        for i in range(2):
            for j in range(3):
                alone = Agreement()(PoseMixture(*(part[i, j] for part in said)), trust[i, j])
                close(alone, (PoseMixture(*(part[i, j] for part in found)), agreed[i, j]))


def test_the_frame_does_not_matter():
    """Seen from another pose, all that is believed is seen from there."""
    said, trust = many(9, 6)
    start = torch.tensor([1.0, -2.0, 0.7])
    with torch.no_grad():
        found, agreed = Agreement()(said, trust)
        other, other_agreed = Agreement()(said.after(start.expand(6, 3)), trust)
    torch.testing.assert_close(other_agreed, agreed, atol=1e-3, rtol=1e-3)
    from_there = PoseMixture(*(part[None] for part in found)).after(start[None])
    torch.testing.assert_close(other.best(), from_there.best()[0], atol=1e-3, rtol=1e-3)


def test_what_is_said_stays_within_limits():
    found, _ = believed(*[(HERE, SPREADS[0], 0.01, 20.0)] * 10)
    assert found.spread.min() >= SPREADS[0] - 1e-6 and found.turn.min() >= 0.01 - 1e-6
    found, agreed = believed((HERE, 5.0, 1.8, -50.0), (THERE, 5.0, 1.8, -50.0))
    assert all(part.isfinite().all() for part in (*found, agreed))


def test_how_far_to_trust_is_learned():
    model, (said, trust) = Agreement(), many(10, 4, 6)
    found, agreed = model(said, trust)
    (found.log_prob(torch.zeros(4, 3)).sum() + agreed.sum()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all() and parameter.grad.any(), name
    sharper = Agreement()
    with torch.no_grad():
        sharper.weight.fill_(0.5)
        sharper.spread.copy_(torch.tensor([math.log(2), 1.0]))
        (one, half), (other, whole) = sharper(*witnesses((HERE, 0.2, 0.3, 20.0))), believed((HERE, 0.2, 0.3, 20.0))
    assert one.spread.item() == pytest.approx(2 * other.spread.item())
    assert half.item() == pytest.approx(whole.item() / 2, rel=1e-4)
