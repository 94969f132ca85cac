"""Runs an episode and writes it as a page to scrub through: `python -m eswm_gym.replay --out episode.html`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium as gym

from eswm_gym.agents.base import Info, Observation
from eswm_gym.agents.eswm_agent import ESWMAgent
from eswm_gym.agents.recorder import EpisodeRecorder
from eswm_gym.rooms import Room
from eswm_gym.rooms.grid import FORWARD, LEFT, RIGHT, cells_along
from eswm_gym.runs import use_free_cores
from eswm_gym.world_model import available, load_model, load_pretrained

SEED = 19  # of a room where the goal is far, behind a wall


def record(
    env_id: str = "ESWM-RandomWall-v0", seed: int = SEED, wall_at: int | None = None, model: str | None = None
) -> EpisodeRecorder:
    """Run an episode of an agent.

    Args:
        env_id: a registered environment.
        seed: of the room, and of the agent.
        wall_at: the step before which a wall is put on the agent's plan, such that the goal can still be reached;
            without a goal, where its next move would lead.
        model: the name of a pretrained model, or a saved one's file. None: the pretrained one for this environment.

    Returns:
        The recorder, to be saved.

    Raises:
        ValueError: if no wall could be put up, since there was no such step, plan or place.
        FileNotFoundError: if there is no such model.
    """
    env = gym.make(env_id)
    obs, info = env.reset(seed=seed)
    model = model or ("random-wall" if isinstance(env.unwrapped.layout, Room) else "minigrid")  # type: ignore[attr-defined]
    loaded = load_pretrained(model) if model in available() else load_model(model)
    recorder = EpisodeRecorder(env, ESWMAgent(loaded, seed=seed))
    recorder.reset(obs, info)
    step, done = 0, False
    while not done:
        if step == wall_at:
            wall_off(env, recorder.agent, obs, info)
        action = recorder.act(obs, info)
        next_obs, _, terminated, truncated, info = env.step(action)
        recorder.observe(obs, action, next_obs, info)
        step, obs, done = step + 1, next_obs, terminated or truncated
    if wall_at is not None and not 0 <= wall_at < step:
        raise ValueError(f"the episode was over after {step} steps: there is no step {wall_at} for a wall")
    return recorder


def wall_off(env: gym.Env, agent: ESWMAgent, obs: Observation, info: Info) -> None:
    """Put a wall on the first place ahead that takes one and leaves a way to the goal, if there is one."""
    room: Any = env.unwrapped
    for place in _ahead(room, agent, obs, info):
        try:
            room.add_walls([place])
        except ValueError:  # the agent or the goal is there, or a wall
            continue
        if "goal" not in obs or room.shortest_path_length >= 0:
            return
        room.remove_walls([place])
    raise ValueError("no wall was put up: the agent has no plan, or a wall anywhere on it would cut off the goal")


def _ahead(room: Any, agent: ESWMAgent, obs: Observation, info: Info) -> Iterable[Any]:
    """The locations of a hexagonal room, or the cells of a grid, along the plan to the goal or the next move."""
    if "goal" in obs:
        actions: Sequence[int] = agent.plan(obs["state"], obs["goal"]).actions
    else:
        drawn = agent.rng.bit_generator.state
        actions = [agent.act(obs, info)]  # which the agent will choose again
        if actions[0] in (LEFT, RIGHT) and not isinstance(room.layout, Room):
            actions.append(FORWARD)
        agent.rng.bit_generator.state = drawn
    if not isinstance(room.layout, Room):
        return cells_along(room.place, actions)
    places = [room.place]
    for action in actions:
        places.append(room.layout.next_location(places[-1], action))
    return places[1:]


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser("python -m eswm_gym.replay", description=__doc__)
    parser.add_argument("--env", default="ESWM-RandomWall-v0", metavar="ID", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=SEED, help="default: %(default)s")
    parser.add_argument(
        "--wall-at", type=int, metavar="STEP", help="a wall appears in the agent's way before this step, from 0"
    )
    parser.add_argument("--model", metavar="NAME|FILE", help="pretrained or saved (default: what fits the environment)")
    parser.add_argument("--out", default="episode.html", metavar="FILE", help="default: %(default)s")
    options = parser.parse_args(arguments)
    use_free_cores()
    try:
        record(options.env, options.seed, options.wall_at, options.model).save(options.out)
    except (OSError, ValueError, gym.error.Error) as error:
        sys.exit(f"{parser.prog}: {error}")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
