"""The recipes of docs/tutorials/other-libraries.md, where the libraries are installed."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[1] / "docs/tutorials/other-libraries.md"


def run(library):
    """Run the snippets under the heading of a library, in order; return the names that they define."""
    section = re.search(rf"^## {library}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]
    names = {"__name__": "__main__"}
    for code in re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
        exec(compile(code, PAGE, "exec"), names)
    return names


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_minari(tmp_path, monkeypatch):
    for module in ("minari", "jax", "h5py"):
        pytest.importorskip(module, reason="needs the extra minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    names = run("Minari")
    names["env"].close()
    assert names["dataset"].total_episodes == 3
    rewards = [episode.rewards for episode in names["dataset"].iterate_episodes()]
    assert all(column[-1] == 1 and (column[:-1] == -0.01).all() for column in rewards)  # the agent arrived
    room = names["env"].unwrapped.room
    assert names["seed"] == 0 and len(names["bank"]) == len(rewards[0])
    assert all(room.next_state(source, action) == end for source, action, end in names["bank"])
    assert list(names["agent"].memory) == list(names["bank"])


def test_torchrl():
    pytest.importorskip("torchrl")
    env, steps = (names := run("TorchRL"))["env"], names["rollout"]
    assert set(env.observation_spec.keys()) == {"observation", "goal", "action_mask"}  # `state` was renamed
    assert steps["observation"].shape == steps["goal"].shape == (200, 19)
    assert (steps["observation"].sum(-1) == 1).all() and (steps["goal"].sum(-1) == 1).all()
    mask, action = steps["action_mask"], steps["action"].bool()
    assert not mask.all() and not (action & ~mask).any()
    arrived = steps["next", "reward"][steps["next", "terminated"]]
    assert set(steps["next", "reward"].unique().tolist()) <= {1.0, np.float32(-0.01).item()} and (arrived == 1).all()
    assert steps["next", "done"].sum() >= 200 // 15 - 1  # episodes of at most 15 steps


@pytest.mark.slow
def test_rllib():
    pytest.importorskip("ray.rllib", exc_type=ImportError)
    result = run("RLlib")["result"]["env_runners"]
    assert result["num_env_steps_sampled_lifetime"] == 256
    assert -0.15 <= result["episode_return_min"] <= result["episode_return_mean"] <= result["episode_return_max"] <= 1
