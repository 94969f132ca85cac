"""Saving and loading agents: one JSON file with all that a loaded agent needs to go on just as the saved one would.

No pickle: a file from a stranger can be wrong, but it runs nothing. The model is not in the file, only which it is.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from eswm_gym.agents.latent_map import LatentMap
from eswm_gym.agents.memory_bank import MemoryBank
from eswm_gym.agents.places import Place
from eswm_gym.agents.planning import TransitionTable
from eswm_gym.world_model import ESWM, CheckpointError, available, load_model, load_pretrained
from eswm_gym.world_model.pretrained import WEIGHTS, checksum_of, read_info

if TYPE_CHECKING:
    from eswm_gym.agents.eswm_agent import ESWMAgent

    AgentT = TypeVar("AgentT", bound=ESWMAgent)

FORMAT = "eswm_gym agent"
VERSION = 1  # of the format; raise it when an older release could no longer read the file


def save_agent(agent: ESWMAgent, path: str | Path, model: str | Path | None = None) -> None:
    """See `ESWMAgent.save`."""
    file, places, album = _file(path), agent.places, agent._album
    content = {
        "model": _reference(agent.model, file, model),
        "n_states": places.n_states,
        "options": agent.options,
        "rng": agent.rng.bit_generator.state,
        "memory": list(agent.memory),
        "worn": list(agent.worn),
        "ruled_out": list(agent._ruled_out),
        "places": [[place, kind.name] for place, kind in places.kind.items()],
        "moves": list(places.moves),
        "next_place": places._next,
        "views": None if album is None else [view.tolist() for view in album._views.values()],
        "table": _lists(agent._table),
        "latent": _lists(agent._latent),
        "named": agent._named,
        "ahead": agent._ahead,
        "goal": agent._goal,
    }
    content = json.loads(json.dumps(content, default=lambda number: number.item()))  # NumPy's numbers are plain now
    described = {"format": FORMAT, "version": VERSION, "sha256": checksum_of(content), "agent": content}
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".json.tmp")
    with temporary.open("w") as out:
        out.write(json.dumps(described) + "\n")
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(file)


def load_agent(kind: type[AgentT], path: str | Path, device: str = "cpu", model: ESWM | None = None) -> AgentT:
    """See `ESWMAgent.load`."""
    file = _file(path)
    saved = _read(file)
    try:
        model = _find_model(saved["model"], file, device) if model is None else model
        if model.config.n_states != saved["n_states"]:
            raise ValueError(f"its model had {saved['n_states']} states, this one has {model.config.n_states}")
        agent = kind(model, **saved["options"])
        _fill(agent, saved)
    except CheckpointError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CheckpointError(f"{file} does not hold an agent of this kind: {error!r}") from error
    return agent


def _fill(agent: ESWMAgent, saved: dict[str, Any]) -> None:
    """Put all but model and options into a fresh agent."""
    agent.rng.bit_generator.state = saved["rng"]
    if agent._album is not None:
        for view in saved["views"]:
            agent._album.number(np.array(view))
    agent.memory = MemoryBank(saved["memory"], agent.options["capacity"], agent.n_actions)
    agent.worn = MemoryBank(saved["worn"], n_actions=agent.n_actions)
    agent._ruled_out = MemoryBank(saved["ruled_out"])
    agent.places.kind = {place: Place[kind] for place, kind in saved["places"]}
    agent.places.moves, agent.places._next = MemoryBank(saved["moves"]), saved["next_place"]
    agent._table, agent._latent = _arrays(TransitionTable, saved["table"]), _arrays(LatentMap, saved["latent"])
    agent._named, agent._goal = saved["named"], saved["goal"]
    agent._ahead = [(action, state) for action, state in saved["ahead"]]


def _reference(model: ESWM, file: Path, path: str | Path | None) -> dict[str, str]:
    """Which model this is: one that comes with the package, by name, or a saved one, by its path from the file.

    Found by its weights, so that it matters neither how the model was loaded nor whether it was changed since.
    """
    if path is None:
        for name in available():
            if _is_saved_at(model, WEIGHTS / name):
                return {"pretrained": name, "sha256": read_info(WEIGHTS / name)["sha256"]}
        raise ValueError(
            "the agent's model is none of those that come with the package: write it with save_model and say where it "
            "is, as in agent.save(path, model=...)"
        )
    if not _is_saved_at(model, path):
        raise ValueError(f"{path} is not the agent's model")
    where = os.path.relpath(Path(path).absolute(), file.absolute().parent)
    return {"path": Path(where).as_posix(), "sha256": read_info(path)["sha256"]}


def _is_saved_at(model: ESWM, path: str | Path) -> bool:
    saved = load_model(path)
    if type(saved) is not type(model) or saved.config != model.config:
        return False
    mine = model.state_dict()
    return all(torch.equal(value, mine[name].cpu().float()) for name, value in saved.state_dict().items())


def _find_model(reference: dict[str, str], file: Path, device: str) -> ESWM:
    if "pretrained" in reference:
        name = reference["pretrained"]
        model = load_pretrained(name, device)
        if read_info(WEIGHTS / name)["sha256"] != reference["sha256"]:
            warnings.warn(f"the model {name!r} is another one than when {file} was saved", stacklevel=4)
        return model
    path = file.parent / reference["path"]
    try:
        same = read_info(path)["sha256"] == reference["sha256"]
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{file} needs the model {path}, which is missing; load() takes one, too") from error
    if not same:
        raise CheckpointError(f"{path} is another model than when {file} was saved")
    return load_model(path, device)


def _read(file: Path) -> dict[str, Any]:
    """What `save_agent` wrote, whole and undamaged."""
    if not file.exists():
        raise FileNotFoundError(f"no agent at {file}")
    try:
        described = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{file} is not JSON: {error}") from error
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise CheckpointError(f"{file} does not hold an agent")
    version = described.get("version")
    if version != VERSION:
        known = f"this one reads version {VERSION}"
        raise CheckpointError(f"{file} is of version {version!r}, from another release of eswm_gym; {known}")
    if checksum_of(described.get("agent")) != described.get("sha256"):
        raise CheckpointError(f"{file} is damaged: its content does not have the sha256 that it says")
    return described["agent"]


def _file(path: str | Path) -> Path:
    """PATH.json; PATH may have the suffix, and dots of its own."""
    path = Path(path)
    return path if path.suffix == ".json" else path.with_name(f"{path.name}.json")


def _lists(arrays: TransitionTable | LatentMap | None) -> dict[str, Any] | None:
    if arrays is None:
        return None
    named = {field.name: getattr(arrays, field.name) for field in fields(arrays)}
    return {name: [str(array.dtype), list(array.shape), array.ravel().tolist()] for name, array in named.items()}


def _arrays(kind: Any, lists: dict[str, Any] | None) -> Any:
    if lists is None:
        return None
    return kind(**{name: np.array(flat, dtype).reshape(shape) for name, (dtype, shape, flat) in lists.items()})
