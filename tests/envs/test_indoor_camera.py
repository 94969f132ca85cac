"""Pictures of houses: things are where a pinhole camera would show them."""

import importlib.util
import math
import multiprocessing
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from eswm_gym.envs import indoor_camera
from eswm_gym.envs.indoor_camera import Camera, camera, missing
from eswm_gym.rooms.indoor import Door, Furniture, House, Picture, Room, Surface, house

RIGHT = math.pi / 2
RED, GREEN, BLUE = np.eye(3)
ONE = House((Room((0.0, 4.0), (0.0, 4.0)),))
BOX = Furniture("box", 2.0, 3.0, (0.4, 0.3, 1.0), colour=(1.0, 0.0, 0.0))
TWO = House(
    (Room((0.0, 4.0), (0.0, 4.0)), Room((4.0, 8.0), (0.0, 4.0))),
    (Door((0, 1), 0, 4.0, (1.5, 2.5), colour=(0.0, 0.0, 1.0)),),
    (Furniture("box", 6.0, 2.0, (0.4, 0.3, 1.0), colour=(1.0, 0.0, 0.0)),),
)
HERE = np.array([2.0, 2.0, RIGHT])  # in the middle of the first room, looking through the door

drawn = pytest.mark.camera


def with_things(*things: Furniture) -> House:
    return replace(ONE, furniture=things)


def where(picture: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """Which pixels have that one of red, green and blue, and little of the others."""
    channels = picture.astype(float)
    return (channels @ colour > 60) & (channels @ colour > 2.5 * (channels @ (1 - colour) / 2))


def spread(mask: np.ndarray) -> list:
    """The first and last column and row."""
    rows, columns = np.nonzero(mask)
    return [columns.min(), columns.max(), rows.min(), rows.max()]


def projected(thing: Furniture, pose, size=224) -> list:
    """The columns and rows that the corners of a thing come between, 90 degrees being as wide as the picture."""
    x, y, heading = pose
    corners = []
    for i, j, k in product((-0.5, 0.5), (-0.5, 0.5), (0, 1)):
        dx, dy = thing.x + i * thing.size[0] - x, thing.y + j * thing.size[1] - y
        right = dx * math.cos(heading) - dy * math.sin(heading)
        ahead = dx * math.sin(heading) + dy * math.cos(heading)
        corners.append((size / 2 * (1 + right / ahead), size / 2 * (1 + (1.5 - k * thing.size[2]) / ahead)))
    columns, rows = zip(*corners, strict=True)
    return [min(columns), max(columns) - 1, min(rows), max(rows) - 1]


@drawn
@pytest.mark.parametrize(
    ("pose", "half"),
    [
        ((2.0, 1.0, 0.0), "middle"),
        ((1.0, 0.7, 0.0), "right"),
        ((3.0, 0.7, 0.0), "left"),
        ((2.0, 1.0, -0.4), "right"),  # it has turned left
        ((2.0, 1.0, 0.4), "left"),
        ((0.3, 3.0, RIGHT), "middle"),
        ((3.7, 3.0, -RIGHT), "middle"),
        ((3.7, 2.2, -RIGHT), "right"),
        ((0.4, 1.2, 0.9), "left"),
    ],
)
def test_a_box_is_where_the_pose_says(pose, half):
    picture = camera().picture(with_things(BOX), np.array(pose))
    assert picture.shape == (224, 224, 3) and picture.dtype == np.uint8
    left, right, top, bottom = spread(where(picture, RED))
    assert [left, right, top, bottom] == pytest.approx(projected(BOX, pose), abs=1.5)
    assert {"left": right < 112, "right": left >= 112, "middle": abs(left + right - 223) <= 2}[half]


@drawn
@pytest.mark.parametrize("pose", [(2.0, 1.0, math.pi), (2.0, 1.0, RIGHT), (0.3, 3.0, -RIGHT)])
def test_a_box_out_of_view_is_not_shown(pose):
    assert not where(camera().picture(with_things(BOX), np.array(pose)), RED).any()


@drawn
def test_what_is_near_hides_what_is_behind():
    near = Furniture("box", 2.0, 2.0, (0.6, 0.3, 1.45), colour=(0.0, 0.0, 1.0))
    picture = camera().picture(with_things(BOX, near), np.array([2.0, 1.0, 0.0]))
    assert where(picture, BLUE).any() and not where(picture, RED).any()


@drawn
def test_walls_floor_and_ceiling():
    surfaces = (Surface("drywall", colour=tuple(colour)) for colour in (RED, BLUE, GREEN))
    painted = House((Room((0.0, 4.0), (0.0, 4.0), *surfaces),))
    picture = camera().picture(painted, np.array([2.0, 2.0, -RIGHT]))
    # The wall is 2 m away, from 1.5 m below the camera to 1.24 m above it.
    top, bottom = 112 * (1 - 1.24 / 2), 112 * (1 + 1.5 / 2)
    for colour, rows in ((GREEN, (0, top)), (RED, (top, bottom)), (BLUE, (bottom, 224))):
        mask = where(picture, colour)
        assert [mask[:, 112].argmax(), mask[:, 112].sum()] == pytest.approx([rows[0], rows[1] - rows[0]], abs=2)
        assert spread(mask)[:2] == [0, 223]


@drawn
def test_a_closed_door_hides_what_is_behind():
    opened, closed = (camera().picture(TWO.with_door(0, shut), HERE) for shut in (False, True))
    assert spread(where(opened, RED)) == pytest.approx(projected(TWO.furniture[0], HERE), abs=1.5)
    assert not where(opened, BLUE).any() and not where(closed, RED).any()
    # The leaf is a metre wide, 2.1 m high and 2 m away, less half of its 6 cm.
    leaf = Furniture("box", 4.0, 2.0, (0.06, 1.0, 2.1))
    assert spread(where(closed, BLUE)) == pytest.approx(projected(leaf, HERE), abs=2)
    np.testing.assert_array_equal(camera().picture(TWO, HERE), opened)


@drawn
def test_a_door_is_in_both_rooms():
    back = np.array([7.5, 2.0, -RIGHT])
    blue = Furniture("box", 1.0, 2.0, (0.3, 0.3, 1.0), colour=(0.0, 0.0, 1.0))
    picture = camera().picture(replace(TWO, furniture=(blue,)), back)
    assert spread(where(picture, BLUE)) == pytest.approx(projected(blue, back), abs=1.5)


@drawn
@pytest.mark.parametrize("kind", ["cone", "tree", "potion"])
def test_meshes_stand_where_they_should(kind):
    height, half = house.MESHES[kind]
    thing, pose = Furniture(kind, 1.4, 3.0, (2 * half, 2 * half, height)), np.array([2.0, 1.0, 0.0])
    changed = (camera().picture(with_things(thing), pose) != camera().picture(ONE, pose)).any(-1)
    expected = projected(thing, pose)
    left, right, top, bottom = spread(changed)
    assert expected[0] - 3 < left < right < expected[1] + 3 and expected[2] - 3 < top < bottom < expected[3] + 3
    assert right - left > 0.3 * (expected[1] - expected[0]) and bottom - top > 0.5 * (expected[3] - expected[2])


@drawn
def test_portraits_hang_where_they_should():
    hung = replace(ONE, pictures=(Picture(0, 1.0, 4.0, 1.5, math.pi, 0.8),))
    pose = np.array([2.0, 2.0, 0.0])
    left, right, top, bottom = spread((camera().picture(hung, pose) != camera().picture(ONE, pose)).any(-1))
    assert [left, right] == pytest.approx([112 * (1 - 1.4 / 2), 112 * (1 - 0.6 / 2)], abs=4)
    assert top + bottom == pytest.approx(223, abs=2)  # as high as the camera


# The plan: a metre around the house, the longer side as wide as the picture


@drawn
def test_plan():
    low = Furniture("box", 6.5, 1.0, (1.0, 0.5, 0.5), colour=(0.0, 0.0, 1.0))
    plan = camera().plan(replace(TWO, furniture=(low,)))
    assert plan.shape == (224, 224, 3) and plan.dtype == np.uint8
    scale = 224 / 10
    columns, rows = (7 * scale, 8 * scale - 1), (5.75 * scale, 6.25 * scale - 1)
    assert spread(where(plan, BLUE)) == pytest.approx([*columns, *rows], abs=1.5)
    assert not where(plan, RED).any() and not where(plan, GREEN).any()


@drawn
@pytest.mark.parametrize("heading", [0, RIGHT, math.pi, -RIGHT])
def test_arrows_point_where_the_agent_looks(heading):
    x, y = 1.0, 3.0
    plan = camera().plan(ONE, {"agent": np.array([x, y, heading]), "goal": np.array([3.0, 1.5, 0.0]), "other": None})
    scale, ahead = 224 / 6, (math.sin(heading), math.cos(heading))
    corners = [(x + a * ahead[0] + r * ahead[1], y + a * ahead[1] - r * ahead[0]) for a, r in ARROW]
    columns, rows = [(x + 1) * scale for x, _ in corners], [(5 - y) * scale for _, y in corners]
    expected = [min(columns), max(columns) - 1, min(rows), max(rows) - 1]
    red = where(plan, RED)
    assert spread(red) == pytest.approx(expected, abs=2)
    tip, foot = corners[0], (x - 0.25 * ahead[0], y - 0.25 * ahead[1])

    def wide(point):  # how many of the pixels around a point are red
        column, row = round((point[0] + 1) * scale), round((5 - point[1]) * scale)
        return red[row - 4 : row + 5, column - 4 : column + 5].sum()

    assert wide(foot) > wide(tip) > 0
    green = np.argwhere(where(plan, GREEN)).mean(0)
    assert green == pytest.approx([(5 - 1.5 + 0.2 / 3) * scale, 4 * scale], abs=1.5)
    assert not where(camera().plan(ONE), RED).any()


ARROW = ((0.4, 0.0), (-0.3, -0.25), (-0.3, 0.25))  # its corners ahead and to the right, in metres


# One camera, many houses; many cameras


@drawn
def test_houses_drawn_in_turn_do_not_disturb_each_other():
    one, two = with_things(BOX), TWO
    pose = np.array([2.0, 1.0, 0.0])
    alone = camera().picture(one, pose), camera().picture(two, HERE), camera().plan(one)
    assert (alone[0] != alone[1]).any()
    for _ in range(2):
        np.testing.assert_array_equal(camera().picture(one, pose), alone[0])
        np.testing.assert_array_equal(camera().picture(two, HERE), alone[1])
        np.testing.assert_array_equal(camera().plan(one, {"agent": None}), alone[2])
        camera().plan(two, {"agent": HERE, "goal": HERE})


@drawn
def test_pictures_are_handed_over():
    picture = camera().picture(ONE, HERE)
    kept = picture.copy()
    camera().picture(TWO, HERE)[:] = 0
    np.testing.assert_array_equal(picture, kept)


@drawn
def test_cameras_do_not_disturb_each_other():
    small, pose = camera(64), np.array([2.0, 1.0, 0.0])
    assert camera() is camera(224) is not small and camera(64) is small
    first = camera().picture(with_things(BOX), pose)
    picture = small.picture(TWO, HERE)
    assert picture.shape == (64, 64, 3)
    assert spread(where(picture, RED)) == pytest.approx(projected(TWO.furniture[0], HERE, 64), abs=1.5)
    np.testing.assert_array_equal(camera().picture(with_things(BOX), pose), first)
    Camera(32)  # one that is not the process's own
    np.testing.assert_array_equal(camera().picture(with_things(BOX), pose), first)
    np.testing.assert_array_equal(small.picture(TWO, HERE), picture)


def draw_in_a_fork(told) -> None:
    try:
        camera().picture(ONE, HERE)
    except RuntimeError as error:
        told.put(str(error))


@drawn
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked here")
def test_a_forked_process_is_told_that_it_cannot_draw():
    camera()
    context = multiprocessing.get_context("fork")
    told = context.SimpleQueue()
    process = context.Process(target=draw_in_a_fork, args=(told,), daemon=True)
    process.start()
    process.join(60)
    assert not process.is_alive() and "spawn" in told.get()


@pytest.mark.parametrize(
    ("error", "advice"),
    [(ImportError("No module named 'miniworld'"), r"miniworld.*eswm-gym\[indoor\]"), (OSError("libEGL"), "EGL.*Mesa")],
)
def test_what_is_missing_is_told(error, advice, monkeypatch):
    def fail():
        raise error

    monkeypatch.setattr(indoor_camera, "camera", fail)
    assert re.search(advice, missing())


@drawn
def test_nothing_is_missing():
    assert missing() is None


def test_miniworld_has_every_texture_and_mesh():
    spec = importlib.util.find_spec("miniworld")
    if spec is None:
        pytest.skip("needs the extra indoor")
    folder = Path(spec.origin).parent
    names = {*house.WALLS, *house.FLOORS, *house.CEILINGS}
    assert {name for name in names if not (folder / "textures" / f"{name}_1.png").exists()} == set()
    assert {kind for kind in house.MESHES if not (folder / "meshes" / f"{kind}.obj").exists()} == set()
