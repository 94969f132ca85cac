"""What models of views imagine by pose, from a walk, against the room where it was walked."""

import copy
from functools import cache

import gymnasium as gym
import minigrid  # noqa: F401  registers its environments
import numpy as np
import pytest
import torch

from eswm_gym.agents.baselines import OverlapOnly
from eswm_gym.rooms.grid import GridBatch, pose_index, poses, rows_of
from eswm_gym.world_model import OverlapConfig, OverlapModel, available, load_pretrained
from eswm_gym.wrappers import MiniGridViews

AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
LEFT, RIGHT, FORWARD = 0, 1, 2
# The nearest 5 x 5 cells of a view of 7 x 7, numbered column by column, the farthest cell first.
NEAR = [7 * column + row for column in range(1, 6) for row in range(2, 7)]


@cache
def pretrained():
    if "minigrid" not in available():
        pytest.skip("no such model yet")
    return load_pretrained("minigrid")


every_model = pytest.mark.parametrize("make", [pretrained, OverlapOnly], ids=["pretrained", "overlap-only"])


def seen_from(a, b):
    """Pose b as (steps ahead, steps to the right, turns to the right) from pose a."""
    (ax, ay), (rx, ry) = AHEAD[a[2]], AHEAD[(a[2] + 1) % 4]
    dx, dy = b[0] - a[0], b[1] - a[1]
    return dx * ax + dy * ay, dx * rx + dy * ry, (b[2] - a[2]) % 4


def with_last(rows):
    """A walk (N, 2 C + 1) as a batch of one, and one more row for the view where it ended."""
    rows, n_cells = torch.from_numpy(np.asarray(rows)), rows.shape[1] // 2
    last = torch.cat([rows[-1, n_cells + 1 :], torch.tensor([LEFT]), torch.full((n_cells,), -1)])
    return torch.cat([rows, last[None]])[None]


class Walk:
    """Through a room of 9 x 9 cells with a short wall in it: all around, ahead into the wall at the rim, and on."""

    def __init__(self):
        grid = np.pad(np.random.default_rng(0).integers(2, 9, (7, 7)), 1, constant_values=1).astype(np.int8)
        grid[3, 3:5] = 1
        self.room = GridBatch.of(grid[None])
        actions = [*[LEFT] * 4, *[RIGHT] * 2, 2, 2, 0, 2, 2, 2, 0, 2, 2, 2, 2]
        at = [pose_index(9, 4, 6, 3)]
        for action in actions:
            at.append(int(self.room.targets[0, at[-1], action]))
        self.at = np.array(at)
        self.rows = with_last(rows_of(self.room, self.at[None, :-1], np.array([actions]))[0])
        # Every move from every pose of the walk; what one sees where it ends, and how much of that is new.
        self.source, self.action = np.repeat(self.at, 3), np.tile(np.arange(3), len(at))
        self.end = self.room.targets[0, self.source, self.action]
        self.view = self.room.views[0, self.end].astype(np.int64)
        self.new = (self.room.sight[0, self.end] & ~self.room.sight[0, self.at].any(0)).sum(1)

    def ask(self, model):
        """What the model imagines of every move, and the poses (x, y, heading) where it thinks that they end."""
        bank = model.follow(self.rows)
        pose = bank.cache.pose.repeat_interleave(3, 1)
        view = torch.from_numpy(self.room.views[0, self.source].astype(np.int64))[None]
        imagined, end = model.imagine_from(bank, pose, view, torch.from_numpy(self.action)[None])
        return imagined, [tuple(pose) for pose in model.localization.frame.pose[end[0]].tolist()]


walk = cache(Walk)


@every_model
def test_where_moves_end(make):
    every, origin = poses(9).tolist(), poses(9)[walk().at[0]].tolist()
    _, found = walk().ask(make())
    assert found == [seen_from(origin, every[end]) for end in walk().end]
    assert (walk().end == walk().source).sum() >= 2  # steps that are blocked


@every_model
def test_one_sees_what_the_walk_has_seen(make):
    imagined, _ = walk().ask(make())
    assert imagined.cells.shape == (1, 54, 25, 9)
    known = walk().new == 0
    assert known.sum() > 30
    right = imagined.cells[0].argmax(-1).numpy() == walk().view
    assert right[known].mean() > 0.99


@every_model
def test_how_many_cells_one_will_see_for_the_first_time(make):
    imagined, _ = walk().ask(make())
    assert imagined.new.shape == (1, 54) and (walk().new > 0).sum() >= 3
    np.testing.assert_allclose(imagined.new[0].numpy(), walk().new, atol=1.0)


@every_model
def test_new_cells_by_hand(make):
    """At (4, 6) in a room without walls it looked up, at columns 2 to 6 of rows 2 to 6, and left, at 0 to 4 of 4 to 8.

    One step up it would see row 1; to the right 4 to 8 of rows 4 to 8, of which it has seen 11 cells, and its own.
    """
    layout = np.pad(np.random.default_rng(1).integers(2, 9, (7, 7)), 1, constant_values=1).astype(np.int8)
    room, model = GridBatch.of(layout[None]), make()
    up = pose_index(9, 4, 6, 3)
    bank = model.follow(with_last(rows_of(room, np.array([[up]]), np.array([[LEFT]]))[0]))
    view = torch.from_numpy(room.views[0, [up, up]].astype(np.int64))[None]
    imagined, _ = model.imagine_from(bank, bank.cache.pose[:, [0, 0]], view, torch.tensor([[FORWARD, RIGHT]]))
    np.testing.assert_allclose(imagined.new[0].numpy(), [5, 14], rtol=0.3)  # what it has not seen may be a wall


@every_model
def test_nothing_is_new_to_who_has_turned_round_twice(make):
    model, at = make(), [pose_index(9, 4, 4, heading) for heading in (3, 2, 1, 0)] * 2
    bank = model.follow(with_last(rows_of(walk().room, np.array([at]), np.full((1, 8), LEFT))[0]))
    view = torch.from_numpy(walk().room.views[0, at[:4]].astype(np.int64))[None]
    imagined, _ = model.imagine_from(bank, bank.cache.pose[:, :4], view, torch.full((1, 4), LEFT))
    assert imagined.new.max() < 0.1


def walked(name, seed, steps=40):
    """Rows (N, 99) of a random walk in one of MiniGrid's own environments, and the pose before each and at the end."""
    env, rng = MiniGridViews(gym.make(f"MiniGrid-{name}-v0")), np.random.default_rng(seed)
    obs, info = env.reset(seed=seed)
    rows, at = [], [info["pose"].tolist()]
    while len(rows) < steps:
        action = int(rng.choice(3, p=[0.2, 0.2, 0.6]))
        following, _, terminated, _, info = env.step(action)
        if terminated:
            break
        rows.append(np.concatenate([obs["state"].ravel(), [action], following["state"].ravel()]).astype(np.int64))
        at.append(info["pose"].tolist())
        obs = following
    return np.stack(rows), at


@every_model
@pytest.mark.parametrize("name", ["FourRooms", "SimpleCrossingS9N1"])
def test_walks_with_views_of_seven_by_seven_cells(make, name):
    """Each move of the walk, imagined again, shows the nearest cells of the view that MiniGrid showed."""
    rows, at = walked(name, 3)
    model = make().for_rooms(19, 64)
    bank = model.follow(with_last(rows))
    every = [tuple(pose) for pose in model.localization.frame.pose[bank.cache.pose[0]].tolist()]
    assert every == [seen_from(at[0], pose) for pose in at]
    source, action, end = (torch.from_numpy(part)[None] for part in (rows[:, :49], rows[:, 49], rows[:, 50:]))
    imagined, there = model.imagine_from(bank, bank.cache.pose[:, :-1], source, action)
    assert torch.equal(there, bank.cache.pose[:, 1:])
    assert (imagined.cells.argmax(-1) == end[..., NEAR]).float().mean() > 0.97
    assert imagined.new.max() < 1


# Other rooms


@pytest.mark.parametrize("make", [lambda: OverlapModel(OverlapConfig(dim=16, layers=1)), OverlapOnly])
def test_for_other_rooms_the_weights_are_the_same(make):
    torch.manual_seed(0)
    model = make()
    before, config = copy.deepcopy(model.state_dict()), model.config
    other = model.for_rooms(25, 300)
    assert (other.config.size, other.config.max_memories, other.localization.frame.side) == (25, 300, 45)
    assert type(other) is type(model) and not other.training
    for name, value in other.state_dict().items():
        assert torch.equal(value, before[name])
        value += 1  # of its own
    assert model.config == config and model.localization.frame.side == 13
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@every_model
def test_in_wider_rooms_it_imagines_the_same(make):
    narrow, wide = (walk().ask(model) for model in (make(), make().for_rooms(25, 300)))
    assert narrow[1] == wide[1]
    for one, other in zip(narrow[0], wide[0], strict=True):
        torch.testing.assert_close(one, other)


@every_model
def test_a_walk_may_be_as_long_as_the_model_says(make):
    model = make().for_rooms(9, 6)
    assert model.follow(walk().rows[:, :6]).cache.pose.shape == (1, 6)
    with pytest.raises(ValueError, match="a bank of 7 memories is longer than the 6"):
        model.follow(walk().rows[:, :7])
