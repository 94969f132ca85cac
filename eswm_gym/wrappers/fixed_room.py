"""Keeps to one room, for agents that are trained in a single one."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from eswm_gym.rooms import Room


class FixedRoom(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Every episode is in the same room, with starts and goals of its own; a room in the reset options overrides it.

    Args:
        env: a hexagonal room.
        room: the room, or what its `to_dict` returned.
    """

    def __init__(self, env: gym.Env, room: Room | dict[str, Any]) -> None:
        self.room = room if isinstance(room, Room) else Room.from_dict(room)
        gym.utils.RecordConstructorArgs.__init__(self, room=self.room.to_dict())
        super().__init__(env)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.env.reset(seed=seed, options={"room": self.room, **(options or {})})
