"""The ids of the environments, and the only place where their time limits are set."""

from __future__ import annotations

import gymnasium as gym

# Name in the id, start of the names of its classes (of one room and of many), radius of the lattice, most steps in an
# episode (the paper's 15 for 19 locations).
ROOMS = (
    ("RandomWall", "RandomWall", 3, 30),
    ("RandomWall19", "RandomWall", 2, 15),
    ("OpenArena", "OpenArena", 2, 15),
)
# End of the name, task, memory bank handed out at reset.
VARIANTS = (("", "navigate", "spanning"), ("Explore", "explore", "none"))
COVER_VARIANTS = (("", "navigate", "cover"), ("Explore", "explore", "none"))
# Name in the id, classes of one room and of many, most steps in an episode, variants. 60 steps are six times the way
# across 6 x 6 squares, 40 of 1 m some five times the way through a house.
OTHERS = (
    ("Lattice", "eswm_gym.envs:LatticeEnv", None, 60, VARIANTS),
    (
        "MiniGrid",
        "eswm_gym.envs.minigrid_room:MiniGridRoomEnv",
        "eswm_gym.envs.vector_minigrid_room:MiniGridRoomVectorEnv",
        60,
        COVER_VARIANTS,
    ),
    ("Indoor", "eswm_gym.envs.indoor:IndoorEnv", None, 40, COVER_VARIANTS),
)


def register_envs() -> None:
    """Register every environment with Gymnasium; calling it again changes nothing."""
    for name, class_name, radius, max_steps in ROOMS:
        for suffix, task, memory_bank in VARIANTS:
            env_id = f"ESWM-{name}{suffix}-v0"
            if env_id not in gym.registry:
                gym.register(
                    id=env_id,
                    entry_point=f"eswm_gym.envs:{class_name}Env",
                    vector_entry_point=f"eswm_gym.envs:{class_name}VectorEnv",
                    max_episode_steps=max_steps,
                    kwargs={"radius": radius, "task": task, "memory_bank": memory_bank},
                )
    for name, one, many, max_steps, variants in OTHERS:
        for suffix, task, memory_bank in variants:
            env_id = f"ESWM-{name}{suffix}-v0"
            if env_id not in gym.registry:
                gym.register(
                    id=env_id,
                    entry_point=one,
                    vector_entry_point=many,
                    max_episode_steps=max_steps,
                    kwargs={"task": task, "memory_bank": memory_bank},
                )
