"""Runs an episode and writes it as a page to scrub through: `python -m eswm_gym.replay --out episode.html`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np

from eswm_gym.agents.eswm_agent import ESWMAgent
from eswm_gym.agents.planning import Plan
from eswm_gym.agents.recorder import EpisodeRecorder
from eswm_gym.rooms import Room
from eswm_gym.rooms.grid import FORWARD, moved

SEED = 19  # of a room where the goal is far, behind a wall


def record(env_id: str = "ESWM-RandomWall-v0", seed: int = SEED, wall_at: int | None = None) -> EpisodeRecorder:
    """Run an episode with the pretrained agent.

    Args:
        env_id: a registered environment.
        seed: of the room, and of the agent.
        wall_at: the step before which a wall is put on the agent's plan, such that the goal can still be reached.

    Returns:
        The recorder, to be saved.

    Raises:
        ValueError: if no wall could be put up, since there was no such step, plan or place.
    """
    env = gym.make(env_id)
    obs, info = env.reset(seed=seed)
    model = "random-wall" if isinstance(env.unwrapped.layout, Room) else "minigrid"  # type: ignore[attr-defined]
    recorder = EpisodeRecorder(env, ESWMAgent.from_pretrained(model, seed=seed))
    recorder.reset(obs, info)
    step, done = 0, False
    while not done:
        if step == wall_at:
            _wall_off(env, recorder.agent, obs)
        action = recorder.act(obs, info)
        next_obs, _, terminated, truncated, info = env.step(action)
        recorder.observe(obs, action, next_obs, info)
        step, obs, done = step + 1, next_obs, terminated or truncated
    if wall_at is not None and not 0 <= wall_at < step:
        raise ValueError(f"the episode was over after {step} steps: there is no step {wall_at} for a wall")
    return recorder


def _wall_off(env: gym.Env, agent: ESWMAgent, obs: dict[str, Any]) -> None:
    """Put a wall on the first place of the plan that takes one and leaves a way to the goal."""
    if "goal" not in obs:
        raise ValueError("a wall is put on the way to a goal: this task has none")
    plan = agent.plan(obs["state"], obs["goal"])
    room: Any = env.unwrapped
    for place in _places(room, plan):
        try:
            room.add_walls([place])
        except ValueError:  # the agent or the goal is there, or a wall
            continue
        if room.shortest_path_length >= 0:
            return
        room.remove_walls([place])
    raise ValueError("no wall was put up: the agent has no plan, or a wall anywhere on it would cut off the goal")


def _places(room: Any, plan: Plan) -> Iterable[Any]:
    """The locations of a hexagonal room, or the cells of a grid, along a plan."""
    if isinstance(room.layout, Room):
        return [room.layout.location_of(state) for state in plan.states[1:-1]]
    pose, cells = np.array(room.place), []
    for action in plan.actions:
        pose = moved(pose, action)
        if action == FORWARD:
            cells.append(tuple(pose[:2].tolist()))
    return cells


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser("python -m eswm_gym.replay", description=__doc__)
    parser.add_argument("--env", default="ESWM-RandomWall-v0", metavar="ID", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=SEED, help="default: %(default)s")
    parser.add_argument(
        "--wall-at", type=int, metavar="STEP", help="a wall appears on the agent's plan before this step, from 0"
    )
    parser.add_argument("--out", default="episode.html", metavar="FILE", help="default: %(default)s")
    options = parser.parse_args(arguments)
    try:
        record(options.env, options.seed, options.wall_at).save(options.out)
    except (OSError, ValueError, gym.error.Error) as error:
        sys.exit(f"{parser.prog}: {error}")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
