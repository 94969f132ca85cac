"""Pools of views: what the files hold is true of the houses, and a run that was interrupted goes on."""

import json

import numpy as np
import pytest
import torch
from indoor_worlds import plain

from eswm_gym import indoor_pools
from eswm_gym.envs.indoor_camera import camera
from eswm_gym.indoor_pools import main, make_pools
from eswm_gym.rooms.indoor import Space, action_between, draw_house, moved
from eswm_gym.world_model.indoor import Reduction
from eswm_gym.world_model.indoor.data import Houses

pytestmark = pytest.mark.camera

GROUPS = (100, 120)
N = 12  # poses of a house


class Colours:
    """In place of an encoder: random sums of a picture's colours in 4 x 4 patches; counts what it encodes.

    Args:
        breaks_at: it fails there, as if the run was killed.
    """

    name, groups = "colours", GROUPS

    def __init__(self, breaks_at=None):
        self.breaks_at, self.encoded = breaks_at, 0
        self.sums = torch.randn(3 * 14 * 14, sum(GROUPS), generator=torch.Generator().manual_seed(0)) / 100

    def __call__(self, pictures):
        assert pictures.shape[1:] == (224, 224, 3) and pictures.dtype == np.uint8
        if self.encoded == self.breaks_at:
            raise KeyboardInterrupt
        self.encoded += 1
        x = torch.from_numpy(pictures[:, ::4, ::4] / 255).float().unflatten(1, (4, 14)).unflatten(3, (4, 14))
        return x.permute(0, 1, 3, 2, 4, 5).flatten(3).flatten(1, 2) @ self.sums


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Files of two houses, and houses with few textures, each of which takes a second to read."""
    monkeypatch.setattr(indoor_pools, "CHUNK", 2)
    monkeypatch.setattr(indoor_pools, "FITTED_ON", 3)
    monkeypatch.setattr(indoor_pools, "draw_house", lambda rng: plain(draw_house(rng)))


@pytest.fixture(scope="module")
def reduction():
    """Keeps the first 96 of each group."""
    found = Reduction(GROUPS)
    for begin in (0, GROUPS[0]):
        found.directions[begin : begin + 96] = torch.eye(96)
    return found


def make(out, houses=3, seed=0, encoder=None, reduction=None):
    make_pools(out, houses, seed, encoder or Colours(), reduction, N)


def files(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def contents(folder):
    """What the files of houses hold, one after the other; the archives themselves may hold the time."""
    parts = []
    for file in sorted(folder.glob("houses-*.npz")):
        with np.load(file) as chunk:
            parts.append({name: chunk[name] for name in chunk.files})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def same(a, b):
    return all(np.array_equal(a[name], b[name]) for name in a) and set(a) == set(b)


def test_pools(tmp_path, reduction):
    """Each holds poses of its house, the moves between them, what they see, and tokens of what is seen there."""
    make(tmp_path, reduction=reduction)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "about.json",
        "houses-00000.npz",
        "houses-00002.npz",
        "reduction.pt",
    ]
    about = {"encoder": "colours", "seed": 0, "poses": N, "ways": 64}
    assert json.loads((tmp_path / "about.json").read_text()) == about
    found = contents(tmp_path)
    assert found["poses"].shape == (3, N, 3) and found["moves"].shape == found["sees"].shape == (3, N, N)
    assert found["tokens"].shape == (3, N, 16, 192) and found["tokens"].dtype == np.float16
    for number in range(3):
        house = plain(draw_house(np.random.default_rng([0, number])))
        space, poses = Space(house), found["poses"][number].astype(float)
        assert space.free(poses[:, :2]).all()
        reach = np.abs(action_between(poses[:, None], poses[None])[..., :2]).max(-1) <= 1.5
        for i in range(N):
            for j in range(N):
                free = i != j and reach[i, j] and space.passable(poses[i, :2], poses[j, :2])
                assert found["moves"][number, i, j] == free
        ends = moved(poses[:, None], np.pad(found["ways"][number].astype(float), ((0, 0), (0, 0), (0, 1))))
        free = space.passable(np.broadcast_to(poses[:, None], ends.shape)[..., :2], ends[..., :2])
        assert (found["blocked"][number] == ~free).mean() > 0.99  # ways are kept in float16
        assert 0.1 < found["blocked"][number].mean() < 0.95
        assert (found["sees"][number].diagonal() > 0).all()  # nearly all that a pose sees it sees
        pictures = np.stack([camera().picture(house, pose) for pose in found["poses"][number][:3]])
        np.testing.assert_allclose(
            found["tokens"][number][:3], reduction(Colours()(pictures)).numpy(), atol=5e-3, rtol=5e-3
        )


def test_training_reads_them(tmp_path, reduction):
    make(tmp_path, reduction=reduction)
    houses, found = Houses(tmp_path), contents(tmp_path)
    assert len(houses) == 3
    np.testing.assert_array_equal(houses.pools[2].poses, found["poses"][2])
    np.testing.assert_array_equal(houses.tokens[2], found["tokens"][2])


def test_pools_without_ways_are_refused_by_training(tmp_path, reduction):
    """As they were once made."""
    make(tmp_path, 1, reduction=reduction)
    (file,) = tmp_path.glob("houses-*.npz")
    with np.load(file) as chunk:
        parts = {name: chunk[name] for name in chunk.files if name != "ways"}
    np.savez(file, **parts)
    with pytest.raises(ValueError, match="houses-00000.npz lacks ways: make the pools again"):
        Houses(tmp_path)


def test_the_same_seed_makes_the_same_pools_and_another_seed_others(tmp_path, reduction):
    """And house k of a seed is the same however many there are."""
    for name, houses, seed in (("a", 3, 0), ("b", 2, 0), ("c", 2, 1)):
        make(tmp_path / name, houses, seed, reduction=reduction)
    a, b, c = (contents(tmp_path / name) for name in "abc")
    assert same({name: value[:2] for name, value in a.items()}, b)
    assert not np.array_equal(b["poses"], c["poses"]) and not np.array_equal(b["tokens"], c["tokens"])


def test_what_was_interrupted_goes_on_and_does_nothing_again(tmp_path, reduction):
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "halves", encoder=Colours(breaks_at=2), reduction=reduction)
    first = tmp_path / "halves" / "houses-00000.npz"
    assert [file.name for file in first.parent.glob("houses*")] == [first.name]
    written = first.stat().st_mtime_ns
    encoder = Colours()
    make(tmp_path / "halves", encoder=encoder, reduction=reduction)
    assert encoder.encoded == 1 and first.stat().st_mtime_ns == written
    make(tmp_path / "whole", reduction=reduction)
    assert same(contents(tmp_path / "halves"), contents(tmp_path / "whole"))
    encoder, before = Colours(), files(tmp_path / "whole")
    make(tmp_path / "whole", encoder=encoder, reduction=reduction)
    assert encoder.encoded == 0 and files(tmp_path / "whole") == before


def test_more_houses_of_the_same_folder(tmp_path, reduction):
    """A last file that holds fewer houses than are wanted now is made again."""
    make(tmp_path / "grown", 1, reduction=reduction)
    make(tmp_path / "grown", 3, reduction=reduction)
    make(tmp_path / "whole", 3, reduction=reduction)
    assert same(contents(tmp_path / "grown"), contents(tmp_path / "whole"))
    make(tmp_path / "grown", 1, reduction=reduction)  # nothing is lost
    assert len(contents(tmp_path / "grown")["poses"]) == 3


def test_pools_of_another_seed_or_encoder_are_refused(tmp_path, reduction):
    make(tmp_path, 1, reduction=reduction)
    before, other = files(tmp_path), Colours()
    other.name = "of another name"
    for changes in ({"seed": 1}, {"encoder": other}):
        with pytest.raises(ValueError, match="holds pools of .*, not of"):
            make(tmp_path, 1, reduction=reduction, **changes)
    with pytest.raises(ValueError, match="holds pools of .*, not of"):
        make_pools(tmp_path, 1, 0, Colours(), reduction, N + 1)
    with pytest.raises(ValueError, match="reduction.pt is another reduction than the given one"):
        make(tmp_path, 1, reduction=Reduction(GROUPS))
    assert files(tmp_path) == before


def test_a_reduction_is_fitted_once_and_kept(tmp_path):
    """On every fourth view of the first three houses, however many there will be; they differ by 1 then."""
    make(tmp_path, 1, encoder=(encoder := Colours()))
    assert encoder.encoded == 3 + 1
    kept = torch.load(tmp_path / "reduction.pt")
    make(tmp_path, 3, encoder=(again := Colours()))
    assert again.encoded == 3  # the first file is made again for its second house
    torch.testing.assert_close(torch.load(tmp_path / "reduction.pt"), kept)
    fitted_on = contents(tmp_path)["tokens"][:, ::4].astype(float)
    for group in (fitted_on[..., :96], fitted_on[..., 96:]):
        assert group.std() == pytest.approx(1, abs=0.02)
        assert np.abs(group.mean((0, 1, 2))).max() < 0.05


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--houses", "0"], "--houses"),
        (["--houses", "many"], "many"),
        (["--seed", "-1"], "--seed"),
        (["--poses", "3"], "--poses"),
    ],
)
def test_wrong_arguments_are_refused(argv, named, capsys, tmp_path):
    with pytest.raises(SystemExit) as caught:
        main([*argv, "--out", str(tmp_path / "pools")])
    assert caught.value.code == 2
    assert named in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "pools").exists()
