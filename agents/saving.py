"""Saving and loading agents: one JSON file with all that a loaded agent needs to go on just as the saved one would.

The file is no pickle, so that a file from a stranger can be wrong but cannot run code. It names the model, and does not
hold it.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from eswm_gym.files import CheckpointError, checksum_of, read_json, replacing
from eswm_gym.world_model import ESWM, available, load_model, load_pretrained
from eswm_gym.world_model.pretrained import WEIGHTS, read_info

if TYPE_CHECKING:
    from eswm_gym.agents.eswm_agent import ESWMAgent

    AgentT = TypeVar("AgentT", bound=ESWMAgent)

FORMAT = "eswm_gym agent"
VERSION = 1  # of the format; raise it when an older release could no longer read the file


def save_agent(agent: ESWMAgent, path: str | Path, model: str | Path | None = None) -> None:
    """See `ESWMAgent.save`."""
    file = _file(path)
    content = {
        "model": _reference(agent.model, file, model),
        "n_states": agent.model.config.n_states,
        "options": asdict(agent.config),
        "rng": agent.rng.bit_generator.state,
        **({} if agent.numbers is None else {"numbers": agent.numbers}),
        **agent.knowledge.to_dict(),
        "ahead": agent.route,
    }
    content = json.loads(json.dumps(content, default=lambda number: number.item()))  # NumPy's numbers are plain now
    described = {"format": FORMAT, "version": VERSION, "sha256": checksum_of(content), "agent": content}
    with replacing(file) as temporary:
        temporary.write_text(json.dumps(described) + "\n")


def load_agent(kind: type[AgentT], path: str | Path, device: str = "cpu", model: ESWM | None = None) -> AgentT:
    """See `ESWMAgent.load`."""
    file = _file(path)
    saved = _read(file)
    try:
        model = _find_model(saved["model"], file, device) if model is None else model
        if model.config.n_states != saved["n_states"]:
            raise ValueError(f"its model had {saved['n_states']} states, this one has {model.config.n_states}")
        agent = kind(model, **saved["options"])
        if "numbers" in saved:
            agent._begin((), tuple(saved["numbers"]))
        saved = {"seen": [], "blocked": [], "suspended": [], **saved}  # agents of old did not doubt
        if missing := agent.knowledge.to_dict().keys() - saved:
            raise LookupError(f"it lacks {sorted(missing)}")
        agent.knowledge.load_dict(saved)
        agent.route = [(action, state) for action, state in saved["ahead"]]
        agent.rng.bit_generator.state = saved["rng"]
        agent._was_reset = True
    except CheckpointError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CheckpointError(f"{file} does not hold an agent of this kind: {error!r}") from error
    return agent


def _reference(model: ESWM, file: Path, path: str | Path | None) -> dict[str, str]:
    """Which model this is: one that comes with the package, by name, or a saved one, by its path from the file.

    The model is recognised by its weights, however it was loaded. If its weights were changed, it is another model.
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
    described = read_json(file)
    if described.get("format") != FORMAT:
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
