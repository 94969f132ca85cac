"""Houses that are quick to draw, cameras whose pictures tell where they were taken, and those who read them."""

from dataclasses import replace

import numpy as np
import torch

from eswm_gym.rooms.indoor import Door, House, Room, Space, Surface, action_between, moved
from eswm_gym.world_model.indoor import IndoorBank, Memories, PoseMixture
from eswm_gym.world_model.indoor.relative_poses import Look

D = 64  # width of tokens
SAME = 0.02  # metres and radians between views that are one


def plain(house: House) -> House:
    """The same house with few textures, each of which takes a second to read; its colours stay."""

    def painted(room: Room) -> Room:
        names = {"wall": "drywall", "floor": "wood", "ceiling": "white"}
        return replace(room, **{part: Surface(name, 0, getattr(room, part).colour) for part, name in names.items()})

    boxes = tuple(replace(thing, kind="box", heading=0.0) for thing in house.furniture)
    return replace(house, rooms=tuple(map(painted, house.rooms)), furniture=boxes, pictures=())


def two_doors() -> House:
    """Two rooms beside each other, with two doors in the wall between them, at y = 1 and y = 5."""
    doors = tuple(Door((0, 1), 0, 4.0, (y - 0.55, y + 0.55)) for y in (1.0, 5.0))
    return House((Room((0.0, 4.0), (0.0, 6.0)), Room((4.0, 8.0), (0.0, 6.0))), doors)


class PaintedCamera:
    """In place of a camera: writes the pose into the picture, which is black otherwise."""

    def picture(self, house: House, pose: np.ndarray) -> np.ndarray:
        picture = np.zeros((224, 224, 3), np.uint8)
        picture.reshape(-1)[:24] = np.asarray(pose, float).view(np.uint8)
        return picture

    def pose_of(self, picture: np.ndarray) -> np.ndarray:
        return picture.reshape(-1)[:24].copy().view(float)


class WatchedCamera:
    """A real camera, of which is known where it took its pictures."""

    def __init__(self, camera) -> None:
        self.camera, self.poses = camera, {}

    def picture(self, house: House, pose: np.ndarray) -> np.ndarray:
        picture = self.camera.picture(house, pose)
        self.poses[picture.tobytes()] = np.asarray(pose, float)
        return picture

    def pose_of(self, picture: np.ndarray) -> np.ndarray:
        return self.poses[picture.tobytes()]


class Seer:
    """In place of an encoder: tokens that are the more alike the nearer pictures were taken, and hold the pose."""

    name, groups = "seer", (D,)

    def __init__(self, camera) -> None:
        self.camera = camera
        rng = np.random.default_rng(0)
        self.waves, self.phases = rng.normal(scale=2.0, size=(4, 16 * D)), rng.uniform(0, 2 * np.pi, 16 * D)

    def __call__(self, pictures: np.ndarray) -> torch.Tensor:
        poses = np.array([self.camera.pose_of(picture) for picture in pictures]).reshape(-1, 3)
        facts = np.c_[poses[:, :2], np.sin(poses[:, 2]), np.cos(poses[:, 2])]
        tokens = torch.tensor(np.cos(facts @ self.waves + self.phases), dtype=torch.float).unflatten(1, (16, D))
        tokens[:, 0, :3] = torch.tensor(poses * 1e-3)
        return tokens


def poses_of(tokens: torch.Tensor) -> np.ndarray:
    """(..., 3) where views (..., 16, D) of a `Seer` were taken."""
    return tokens[..., 0, :3].double().numpy() * 1e3


class Perfect:
    """Finds every pose, and knows what was in the way in the house that it was told of.

    Args:
        house: None: it takes all ways for free.
    """

    reduction = torch.nn.Identity()

    def __init__(self, house: House | None = None) -> None:
        self.space = None if house is None else Space(house)

    def encode(self, memories: Memories) -> IndoorBank:
        if not len(memories.action):
            raise ValueError("an empty bank")
        tokens = torch.stack([memories.start, memories.end], 1).flatten(0, 1)
        poses, kept, row = poses_of(tokens), [], []
        for k, pose in enumerate(poses):
            same = [i for i, other in enumerate(kept) if np.abs(action_between(poses[other], pose)).max() < SAME]
            row.append(same[0] if same else len(kept))
            kept += [] if same else [k]
        pose = torch.tensor(action_between(poses[0], poses[kept]), dtype=torch.float)
        return IndoorBank(tokens[kept], Look(tokens[kept], tokens[kept]), pose, torch.tensor(row).unflatten(0, (-1, 2)))

    def locate(self, bank: IndoorBank, views: torch.Tensor) -> tuple[PoseMixture, torch.Tensor]:
        pose = torch.tensor(action_between(poses_of(bank.tokens[0]), poses_of(views)), dtype=torch.float)
        narrow = torch.full((len(views), 1), 0.02)
        return PoseMixture(pose[:, None], narrow, narrow, torch.zeros(len(views), 1)), torch.full((len(views),), 9.0)

    def is_blocked(self, views: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        if self.space is None:
            return torch.full(action.shape[:2], -9.0)
        start = poses_of(views)[:, None]
        end = moved(start, action.double().numpy())
        free = self.space.passable(np.broadcast_to(start, end.shape)[..., :2], end[..., :2])
        return torch.tensor(np.where(free, -9.0, 9.0), dtype=torch.float)
