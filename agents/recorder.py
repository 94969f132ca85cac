"""Records an episode with what the agent believes at each step, and writes it as one HTML page to scrub through."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from eswm_gym.agents.base import Info, Observation
from eswm_gym.agents.beliefs import Beliefs, beliefs, poses_of_views
from eswm_gym.agents.eswm_agent import ESWMAgent
from eswm_gym.envs.base import RoomEnv
from eswm_gym.files import replacing
from eswm_gym.rooms import Room

LARGE = 200  # in rooms of more locations, moves are recorded near the agent alone
DETAIL = 8.0  # how near, in steps


class EpisodeRecorder:
    """Stands in for an agent in an episode loop: `reset`, `act` and `observe` are the agent's, and are recorded.

    ```python
    recorder = EpisodeRecorder(env, agent)
    obs, info = env.reset(seed=0)
    recorder.reset(obs, info)
    ...
    recorder.save("episode.html")
    ```

    In a large room a recording has the moves near the agent alone, and the page goes along with it.

    Each frame shows the agent when it has chosen its move, the last one when the episode is over. The recording has
    each state where it truly is, which the agent does not know.

    Args:
        env: a hexagonal room or a MiniGrid room, with or without wrappers.
        agent: the agent in it.

    Raises:
        ValueError: if the environment is neither.
    """

    def __init__(self, env: gym.Env, agent: ESWMAgent) -> None:
        if not isinstance(env.unwrapped, RoomEnv):
            raise ValueError(f"episodes are recorded in hexagonal rooms and MiniGrid rooms, not in {env.unwrapped}")
        self.env, self.agent = env, agent
        self._world: RoomEnv = env.unwrapped
        self._frames: list[dict[str, Any]] = []
        self._views: dict[int, str] = {}  # the cells of each view by its number, in the order of the recording
        self._now: tuple[Observation, Info] | None = None  # not yet acted upon

    def reset(self, obs: Observation, info: Info) -> None:
        """Begin an episode and its recording."""
        self.agent.reset(obs, info)
        self._frames, self._views, self._now = [], {}, (obs, info)

    def act(self, obs: Observation, info: Info) -> int:
        """Choose an action; adds a frame."""
        action = int(self.agent.act(obs, info))
        self._frames.append({**self._frame(obs, info), "action": action})
        self._now = None
        return action

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        """Learn what an action did."""
        self.agent.observe(obs, action, next_obs, info)
        self._now = next_obs, info

    def to_dict(self) -> dict[str, Any]:
        """The recording, ready for JSON. Call it before the environment's next reset.

        Raises:
            ValueError: if nothing has been recorded.
        """
        frames = self._frames + ([] if self._now is None else [self._frame(*self._now)])
        if not frames:
            raise ValueError("nothing has been recorded: call reset() first")
        world = self._world
        about = {
            "env": type(world).__name__ if self.env.spec is None else self.env.spec.id,
            "seed": world.np_random_seed,
            "task": world.task,
            "frames": frames,
        }
        if isinstance(world.layout, Room):
            xy = world.layout.lattice.xy.round(4).tolist()
            return {**about, "kind": "hex", "xy": xy, "states": world.layout.states.tolist()}
        return {**about, "kind": "grid", "size": len(world.layout), "views": list(self._views.values())}

    def save(self, path: str | Path) -> None:
        """Write the recording as an HTML page that needs no other file. Call it before the environment's next reset.

        Raises:
            ValueError: if nothing has been recorded.
        """
        episode = self.to_dict()
        page = files("eswm_gym").joinpath("replay.html").read_text(encoding="utf-8")
        data = json.dumps(episode, separators=(",", ":")).replace("<", "\\u003c")
        page = page.replace("{{title}}", escape(episode["env"])).replace("{{episode}}", data)
        with replacing(Path(path)) as temporary:
            temporary.write_text(page, encoding="utf-8")

    def _frame(self, obs: Observation, info: Info) -> dict[str, Any]:
        believed = beliefs(self.agent, obs["state"], info.get("forgotten", ()))
        world, layout = self._world, self._world.layout
        if isinstance(layout, Room):
            if len(layout.states) > LARGE:
                xy = layout.lattice.xy
                far = np.hypot(*(xy - xy[world.place]).T)
                believed = believed.near(set(layout.states[far <= DETAIL].tolist()))
            frame = {**believed.to_dict(), "walls": np.flatnonzero(layout.walls).tolist()}
        else:
            frame = self._grid_frame(believed, layout, obs)
        frame |= {"at": world.place, "goal": world.goal}
        return {**frame, "blocked": bool(info.get("blocked", False)), "success": bool(info["is_success"])}

    def _grid_frame(self, believed: Beliefs, grid: np.ndarray, obs: Observation) -> dict[str, Any]:
        """Beliefs about views, which the recording names by their place in a list of views.

        JavaScript has no numbers as long as those of views.
        """
        knowledge = self.agent.knowledge.copy()  # which keeps the views of this observation, so that the agent does not
        goal = knowledge.number(obs["goal"]) if "goal" in obs else None
        knowledge.number(obs["state"])

        def index(view: int) -> int:
            self._views.setdefault(view, "".join(map(str, knowledge.shown(view))))
            return list(self._views).index(view)

        poses = poses_of_views(grid)
        known = set(believed.known)
        imagined = {state for source, _, end, _ in believed.imagined for state in (source, end)} - known
        memories = [[index(s), a, index(e)] for s, a, e in believed.memories]
        forgotten = [[index(s), a, index(e)] for s, a, e in believed.forgotten]
        shown = {view for transition in (*believed.memories, *believed.forgotten) for view in transition[::2]}
        return {
            "grid": "".join(map(str, grid.ravel())),
            "state": index(believed.state),
            "goal_view": None if goal is None else index(goal),
            "memories": memories,
            "forgotten": forgotten,
            "plan": [[action] for action, _ in believed.plan],
            "poses": {index(view): poses.get(view, []) for view in shown},
            "known": len(known),
            "imagined": len(imagined),
            "nowhere": len(imagined - set(poses)),
            "known_poses": [pose for view in known for pose in poses.get(view, [])],
            "imagined_poses": [pose for view in imagined for pose in poses.get(view, [])],
            "frontier": [[pose, action] for view, action in believed.frontier for pose in poses.get(view, [])],
        }
