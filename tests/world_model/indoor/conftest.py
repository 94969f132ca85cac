"""What tests of the model of camera views share: houses small enough to train on in a moment."""

import numpy as np
import pytest
import torch

from eswm_gym.rooms.indoor import Space, draw_house, draw_pool, draw_ways
from eswm_gym.world_model.indoor import IndoorConfig, Reduction

P, D = 48, 192  # poses of a house; width of reduced tokens


def write_houses(folder, first, seeds):
    """A file as `python -m eswm_gym.indoor_pools` writes it, of real houses whose views are random tokens."""
    rooms = [draw_house(np.random.default_rng(seed)) for seed in seeds]
    pools = [draw_pool(house, np.random.default_rng(seed), P) for house, seed in zip(rooms, seeds, strict=True)]
    ways = [
        draw_ways(Space(house), pool.poses, np.random.default_rng(0)) for house, pool in zip(rooms, pools, strict=True)
    ]
    tokens = np.random.default_rng(first).standard_normal((len(pools), P, 16, D)).astype(np.float16)
    parts = {key: np.stack([getattr(pool, key) for pool in pools]) for key in ("poses", "moves", "sees")}
    parts |= {key: np.stack(part) for key, part in zip(("ways", "blocked"), zip(*ways, strict=True), strict=True)}
    np.savez(folder / f"houses-{first:05d}.npz", **parts, tokens=tokens)
    return pools, tokens


@pytest.fixture(scope="session")
def pools_folder(tmp_path_factory):
    """A folder of four houses in two files, and what reduced their tokens; only to be read."""
    folder = tmp_path_factory.mktemp("pools")
    write_houses(folder, 0, [0, 1, 2])
    write_houses(folder, 50, [3])
    config = IndoorConfig()
    reduction = Reduction(config.groups, config.kept)
    reduction.directions.normal_(generator=torch.Generator().manual_seed(0))
    torch.save(reduction.state_dict(), folder / "reduction.pt")
    return folder


@pytest.fixture(scope="session")
def more_houses():
    """Writes such a file: folder, number of its first house, seeds of its houses; returns their pools and tokens."""
    return write_houses
