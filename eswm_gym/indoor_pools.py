"""Make pools of views of houses: `python -m eswm_gym.indoor_pools --houses 2000 --out pools`.

Each house is drawn from a seed, its views are rendered and encoded once, and training makes thousands of transitions of
them. A pool that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from eswm_gym.envs.indoor_camera import camera
from eswm_gym.rooms.indoor import POSES, WAYS, Space, draw_house, draw_pool, draw_ways
from eswm_gym.world_model.indoor.vision import EfficientNetLite0, Encoder, Reduction

CHUNK = 50  # houses in a file
FITTED_ON = 60  # houses
REDUCTION = "reduction.pt"


def make_pools(
    out: Path, houses: int, seed: int, encoder: Encoder, reduction: Reduction | None = None, n: int = POSES
) -> None:
    """Write files of `CHUNK` houses each, those that are not there yet or hold fewer.

    Args:
        out: folder, made where there is none.
        seed: of the houses; house k of a seed is always the same.
        reduction: of the encoder's features, kept in the folder. None: the one that is there, or one fitted on the
            first houses.
        n: poses of each house.

    Raises:
        ValueError: if the folder holds pools of another seed, encoder or reduction.
    """
    out.mkdir(parents=True, exist_ok=True)
    about = {"encoder": encoder.name, "seed": seed, "poses": n, "ways": WAYS}
    note = out / "about.json"
    if note.exists() and json.loads(note.read_text()) != about:
        raise ValueError(f"{out} holds pools of {json.loads(note.read_text())}, not of {about}")
    note.write_text(json.dumps(about))
    reduction = _kept(out / REDUCTION, reduction, seed, encoder, n)
    with tqdm(total=houses, desc="houses", disable=None) as bar:
        for first in range(0, houses, CHUNK):
            file, some = out / f"houses-{first:05d}.npz", range(first, min(first + CHUNK, houses))
            if not (file.exists() and _houses_in(file) >= len(some)):
                drawn = [_draw(seed, number, encoder, reduction, n) for number in some]
                temporary = file.with_suffix(".tmp.npz")
                parts: dict[str, Any] = {key: np.stack([house[key] for house in drawn]) for key in drawn[0]}
                np.savez(temporary, **parts)
                temporary.rename(file)
            bar.update(len(some))


def _houses_in(file: Path) -> int:
    with np.load(file) as chunk:
        return len(chunk["poses"])


@torch.inference_mode()
def _draw(seed: int, number: int, encoder: Encoder, reduction: Reduction | None, n: int) -> dict[str, np.ndarray]:
    """Poses, moves, ways, what is seen and tokens of one house; tokens as they are without a reduction."""
    rng = np.random.default_rng([seed, number])
    house = draw_house(rng)
    pool = draw_pool(house, rng, n)
    tokens = encoder(np.stack([camera().picture(house, pose) for pose in pool.poses]))
    tokens = tokens if reduction is None else reduction(tokens)
    ways, blocked = draw_ways(Space(house), pool.poses, rng)
    return {
        "poses": pool.poses,
        "moves": pool.moves,
        "sees": pool.sees,
        "ways": ways.astype(np.float16),
        "blocked": blocked,
        "tokens": tokens.half().numpy(),
    }


def _kept(file: Path, given: Reduction | None, seed: int, encoder: Encoder, n: int) -> Reduction:
    """The reduction that the folder holds, or else the given one or one fitted on some views of its first houses."""
    if file.exists():
        reduction = _read(file, encoder)
        if given and not all(map(torch.equal, given.state_dict().values(), reduction.state_dict().values())):
            raise ValueError(f"{file} is another reduction than the given one; use another folder")
        return reduction
    if given is None:
        houses = tqdm(range(FITTED_ON), desc="reduction", disable=None)
        tokens = np.concatenate([_draw(seed, number, encoder, None, n)["tokens"][::4] for number in houses])
        given = Reduction(encoder.groups).fit(torch.from_numpy(tokens).float().flatten(0, 1))
    torch.save(given.state_dict(), file)
    return given


def _read(file: Path, encoder: Encoder) -> Reduction:
    reduction = Reduction(encoder.groups)
    reduction.load_state_dict(torch.load(file, weights_only=True))
    return reduction


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m eswm_gym.indoor_pools", description=__doc__)
    parser.add_argument("--houses", type=int, default=2000, help="so many (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the houses (default 0)")
    parser.add_argument("--out", type=Path, default=Path("pools"), help="folder (default pools)")
    parser.add_argument("--reduction", type=Path, help="that of another folder, for houses to test on")
    args = parser.parse_args(argv)
    if args.houses < 1 or args.seed < 0:
        parser.error("--houses must be at least 1 and --seed must not be negative")
    encoder = EfficientNetLite0()
    reduction = _read(args.reduction, encoder) if args.reduction else None
    make_pools(args.out, args.houses, args.seed, encoder, reduction)


if __name__ == "__main__":
    main()
