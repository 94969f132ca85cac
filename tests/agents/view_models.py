"""Models of views that know the truth, and rooms to try them in."""

import numpy as np
import torch
from torch.nn.functional import one_hot

import eswm_gym  # noqa: F401
from eswm_gym.agents import MemoryBank
from eswm_gym.agents.baselines import MapOnly
from eswm_gym.agents.baselines.overlap_only import OverlapOnly
from eswm_gym.agents.baselines.registration import kinds_of, motion_of
from eswm_gym.agents.states import ViewAlbum, view_number
from eswm_gym.rooms.grid import (
    EMPTY,
    HERE,
    N_CLASSES,
    WALL,
    GridBatch,
    GridConfig,
    generate_grids,
)
from eswm_gym.rooms.grid.views import is_lit
from eswm_gym.world_model import (
    EncodedBank,
    OverlapConfig,
    OverlapModel,
    ViewPrediction,
    ViewTransformer,
    ViewTransformerConfig,
)
from eswm_gym.world_model.overlap_model import DOUBTS

TINY = ViewTransformerConfig(dim=4, layers=1, heads=1, cell_dim=1)


class TrueModel(ViewTransformer):
    """Knows one room: certain of moves from views that it has once, "I don't know" of all others."""

    def __init__(self, room: GridBatch) -> None:
        super().__init__(TINY)
        self.ends = {
            (view.tobytes(), action): room.views[0, room.targets[0, pose, action]].astype(np.int64)
            for pose, view in enumerate(room.views[0].astype(np.int64))
            for action in range(3)
            if room.unique[0, pose]
        }
        self.asked = []

    def encode(self, memories):
        return EncodedBank(memories)

    def predict(self, bank, query):
        self.asked.append(tuple(query.shape[:2]))
        end = torch.zeros(*query.shape[:2], 25, 9)
        unknown = torch.full((*query.shape[:2], 2), -20.0)
        for b, q in np.ndindex(*query.shape[:2]):
            view = self.ends.get((query[b, q, :25].numpy().tobytes(), int(query[b, q, 25])))
            if view is None:
                unknown[b, q] = 20.0
            else:
                end[b, q] = one_hot(torch.from_numpy(view), 9) * 20.0
        return ViewPrediction(end, torch.zeros(*query.shape[:2], 4), end, unknown)


class Surveyor(MapOnly):
    """Puts the bank together as a map, and is certain of a view when the map shows all that light reaches in it."""

    def __init__(self) -> None:
        super().__init__()
        self.passes = 0

    def encode(self, memories):
        self.check_length(memories)
        self.passes += 1
        return EncodedBank(memories, self.registration.build_map(memories))

    def predict(self, bank, query):
        source, action = query[..., :25], query[..., 25]
        motion = motion_of(source, action)
        p = self.registration.poses(self.registration.match(source, bank.cache))
        there = (self.registration.move(p, motion) @ bank.cache).unflatten(2, (25, 8))
        shown = kinds_of(self.registration.carry_over(source, motion))
        sure, kind = (shown + there * (shown.sum(-1, keepdim=True) == 0)).max(-1)
        kind = torch.where(sure > 0.9, kind + 1, 0)
        kind[..., HERE] = EMPTY
        lit = torch.from_numpy(is_lit((kind == WALL).numpy()))
        known = (~lit | (kind > 0)).all(-1)
        end = one_hot(torch.where(lit, kind, 0), N_CLASSES) * 20.0 * known[..., None, None]
        unknown = torch.where(known, -20.0, 20.0)[..., None].expand(-1, -1, 2)
        new = (lit & (kind == 0)).sum(-1).float()
        return ViewPrediction(end, torch.zeros(*query.shape[:2], 4), end, unknown, new)


def rooms_of(n: int, seed: int = 0) -> tuple[GridBatch, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return GridBatch.of(generate_grids(rng, n, GridConfig())), rng


def distinct_room(seed: int = 0) -> GridBatch:
    """A room in which every pose has a view of its own."""
    rooms, _ = rooms_of(200, seed)
    i = int((rooms.unique == rooms.free).all(1).argmax())
    room = GridBatch.of(rooms.grids[i : i + 1])
    assert (room.unique == room.free).all()
    return room


def numbers(room: GridBatch) -> np.ndarray:
    return np.array([view_number(view) for view in room.views[0]])


def bank_of(rows: np.ndarray) -> tuple[MemoryBank, ViewAlbum]:
    album = ViewAlbum()
    return MemoryBank(album.transitions(rows), n_actions=3), album


def placing_model(dim: int = 8) -> OverlapModel:
    """A model that never learned, but finds poses: it is sure of what memories and the given view show."""
    torch.manual_seed(0)
    model = OverlapModel(OverlapConfig(dim=dim, layers=1))
    model.localization.load_state_dict(OverlapOnly().localization.state_dict())
    with torch.no_grad():
        unsure, _, unknown = model.unknown
        for weight in (model.action_head.weight, unsure.weight, unsure.bias, unknown.weight):
            weight.zero_()
        model.trust.bias.fill_(8.0)
        model.action_head.bias.zero_()
        unsure.weight[0, dim : dim + DOUBTS] = 1.0  # the entropy of the cells that it is least sure of
        unknown.weight[0, 0] = 5.0
        unknown.bias.fill_(-5.0)
    return model.eval().requires_grad_(False)
