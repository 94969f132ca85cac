"""Chooses the distance up to which two states are neighbours in a model's latent space, and stores it with the weights
(paper: "Selection of R_latent"): `python -m eswm_gym.agents.latent_radius FILE`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eswm_gym.agents.knowledge import knowledge_of
from eswm_gym.agents.latent_map import latent_maps
from eswm_gym.agents.memory_bank import MemoryBank
from eswm_gym.agents.planning import follow, imagine_tables
from eswm_gym.rooms import Room, RoomConfig
from eswm_gym.world_model import ESWM, load_model
from eswm_gym.world_model.pretrained import read_info, write_info

RADII = tuple(np.round(np.arange(1.5, 2.55, 0.1), 2).tolist())
PAIRS = 20  # of a start and a goal in each room
HORIZON = 20  # steps within which a goal counts as reached


def greedy_success(model: ESWM, rooms: Sequence[Room], radii: Sequence[float], rng: np.random.Generator) -> list[float]:
    """How short the greedy policy's ways are with each radius (paper: "Selection of R_latent").

    Args:
        model: frozen.
        rooms: rooms to walk in, each with a minimal spanning bank.
        radii: as for `LatentMap.geodesic`.
        rng: draws banks, starts and goals.

    Returns:
        For each radius the mean path optimality, 0 where the goal is not reached within `HORIZON` steps.
    """
    banks = [MemoryBank(room.memory_bank(rng)) for room in rooms]
    score = np.zeros(len(radii))
    n = 0
    for room, table, latent in zip(rooms, imagine_tables(model, banks), latent_maps(model, banks), strict=True):
        geodesics = [latent.geodesic(radius) for radius in radii]
        for _ in range(PAIRS):
            start, goal = (int(room.states[i]) for i in rng.choice(np.flatnonzero(~room.walls), 2, replace=False))
            shortest = room.distances_from(room.location_of(goal))[room.location_of(start)]
            if shortest < 0:
                continue
            n += 1
            for i, geodesic in enumerate(geodesics):
                plan = follow(table, start, goal, latent.distances_to(goal, geodesic), horizon=HORIZON)
                score[i] += shortest / len(plan) if plan.found else 0
    return (score / max(n, 1)).tolist()


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m eswm_gym.agents.latent_radius", description=__doc__)
    parser.add_argument("file", type=Path, help="a saved model, which the radius is stored with")
    parser.add_argument(
        "--rooms", type=int, default=150, help="Random Wall rooms of 19 and of 37 locations, each (default 150)"
    )
    parser.add_argument(
        "--seed", type=int, default=2**20, help="of the rooms (default 2**20: no benchmark uses such seeds)"
    )
    args = parser.parse_args(argv)
    model, rng = load_model(args.file), np.random.default_rng(args.seed)
    if not knowledge_of(model).has_latent_map:
        parser.error(f"{args.file} is a model of {knowledge_of(model).states}, which has no latent map")
    configs = [RoomConfig.random_wall(radius, hidden=0.0) for radius in (2, 3)]
    rooms = [Room.generate(rng, config) for config in configs for _ in range(args.rooms)]
    scores = greedy_success(model, rooms, RADII, rng)
    for radius, score in zip(RADII, scores, strict=True):
        print(f"radius {radius:.2f}  greedy success x path optimality {score:.4f}")
    write_info(args.file, read_info(args.file) | {"latent_radius": RADII[int(np.argmax(scores))]})


if __name__ == "__main__":
    main()
