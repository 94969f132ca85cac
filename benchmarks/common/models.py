"""The models of the benchmarks: those that the package comes with, and in `weights` those trained to be compared."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

from eswm_gym.agents import Agent, ESWMAgent
from eswm_gym.agents.baselines import MapOnly, OverlapOnly
from eswm_gym.analysis import untrained
from eswm_gym.world_model import ESWM, available, load_model, load_pretrained
from eswm_gym.world_model.lookup import Lookup, PathIntegrator
from eswm_gym.world_model.pretrained import model_info, read_info

T = TypeVar("T")
PARTS = ("eswm-untrained", "rules", "eswm-memories-alone", "eswm-model-alone")
WEIGHTS = Path(__file__).parents[1] / "weights"


def add_model_option(options: ArgumentParser, default: str) -> None:
    """Let the user choose which models are measured."""
    options.add_argument(
        "--model",
        action="append",
        metavar="NAME|FILE",
        help=f"a pretrained model or saved weights; may be given again (default: {default})",
    )


def find_model(name: str, device: str = "cpu") -> ESWM:
    """A model by its name, or by the path of its file."""
    if name in available():
        return load_pretrained(name, device)
    if _is_compared(name) and not (WEIGHTS / f"{name}.safetensors").exists():
        raise SystemExit(
            f"the weights of {name} are not here, a source distribution leaves them out: clone the repository, or "
            f"train them with the command in benchmarks/README.md and copy {name}.safetensors and {name}.json, which "
            "it writes, into benchmarks/weights"
        )
    return load_model(_path(name), device)


def find_hex_model(name: str, device: str = "cpu") -> ESWM:
    """The same, for benchmarks of hexagonal rooms."""
    model = find_model(name, device)
    if model.codec.cells > 1:
        raise SystemExit(f"{name} is a model of MiniGrid's views; this takes one of hexagonal rooms")
    return model


def agents_in_part(model: ESWM) -> dict[str, Agent]:
    """The agent with an untrained network, with rules in its place, with its memories alone, with its network alone."""
    agents = (
        ESWMAgent(untrained(model.config).to(model.device)),
        ESWMAgent(PathIntegrator(model.config)),
        ESWMAgent(Lookup(model.config)),
        ESWMAgent(model, trust_memory=False),
    )
    return dict(zip(PARTS, agents, strict=True))


def view_models(device: str) -> dict[str, ESWM]:
    """The models of MiniGrid's views by method, those that were not trained among them; see `benchmarks/README.md`."""
    eswm = find_model("minigrid", device)
    return {
        "eswm": eswm,
        "eswm-t": find_model("minigrid-plain", device),
        "eswm-untrained": untrained(eswm.config).to(device),
        "overlap-only": OverlapOnly().to(device),
        "map-only": MapOnly().to(device),
        "map-votes": MapOnly.for_errors().to(device),
    }


def share_of(method: str, episodes: Sequence[T], few: Collection[str] = (), least: int = 2) -> Sequence[T]:
    """All episodes; two of the methods that are to meet few; of an untrained network one in 30 and so many at least,
    since whatever happens surprises it, which takes long."""
    if method == "eswm-untrained":
        return episodes[: max(least, len(episodes) // 30)]
    return episodes[:2] if method in few else episodes


def find_info(name: str) -> dict[str, Any]:
    """What the JSON of a model says."""
    return model_info(name) if name in available() else read_info(_path(name))


def _path(name: str) -> Path:
    return WEIGHTS / name if _is_compared(name) else Path(name)


def _is_compared(name: str) -> bool:
    return name in {file.stem for file in WEIGHTS.glob("*.json")}
