"""Each example runs as a user would run it, and prints what it should."""

import ast
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import gymnasium as gym
import pytest

import eswm_gym  # noqa: F401

FOLDER = Path(__file__).parents[2] / "examples"
EVALUATED = ("ESWM-OpenArena-v0", "ESWM-RandomWall19Explore-v0", "ESWM-MiniGrid-v0")  # the default is all of them
# Arguments that make an example short; the rest take none.
ARGUMENTS = {
    "cleanrl_ppo": ["--quick", "--planned-action"],
    "make_gif": ["replan.gif", "--width", "100"],
    "gymnasium_wrappers": ["--episodes", "2", "--folder", "videos"],
    "maskable_ppo": ["--quick"],
    "sb3_evaluate": ["--quick", "--env-ids", *EVALUATED, "--n-envs", "2"],
    "train_with_eswm": ["--quick"],
    "vector_envs": ["--n-envs", "2", "--steps", "15"],
    "your_own_room": ["room.png"],
}
NEEDS = {"minari_dataset": ("minari", "jax", "h5py")}  # what the extra of its name installs


def run(name, folder, *arguments):
    command = [sys.executable, FOLDER / f"{name}.py", *(arguments or ARGUMENTS.get(name, ()))]
    found = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert found.returncode == 0, found.stderr
    return found.stdout


def returns(text):
    return [float(value) for value in re.findall(r"return (-?\d+\.\d+)", text)]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_says_how_long_it_takes(path):
    """One that takes longer than half a minute takes `--quick`."""
    code = path.read_text(encoding="utf-8")
    said = " ".join(ast.get_docstring(ast.parse(code)).split())
    time, unit = re.search(r"takes about (\d+) (seconds|minutes?) on one core", said).groups()
    assert ("--quick" in said) == ('"--quick"' in code) == (unit != "seconds" or int(time) > 30)


@pytest.mark.parametrize("name", sorted({path.stem for path in FOLDER.glob("*.py")} - ARGUMENTS.keys()))
def test_without_arguments(name, tmp_path):
    for module in NEEDS.get(name, ()):
        pytest.importorskip(module, reason="needs the extra minari")
    assert "lost" not in run(name, tmp_path)


def test_your_own_room(tmp_path):
    assert "lost" not in run("your_own_room", tmp_path)
    assert (tmp_path / "room.png").exists()


def test_the_picture_of_the_readme(tmp_path):
    assert "arrived" in run("make_gif", tmp_path)
    assert (tmp_path / "replan.gif").read_bytes()[:3] == b"GIF"


def test_sb3_evaluate(tmp_path):
    text = run("sb3_evaluate", tmp_path)
    assert tuple(line.split(":")[0] for line in text.splitlines()) == EVALUATED
    # evaluate_policy resets once more. The step that arrives gives 1, each one before it -0.01.
    env = gym.make("ESWM-OpenArena-v0")
    env.reset(seed=0)
    _, info = env.reset()
    shortest = info["shortest_path_length"]
    assert f"ESWM-OpenArena-v0: return {1 - 0.01 * (shortest - 1):.4f} in one environment" in text


def test_vector_envs(tmp_path):
    lines = run("vector_envs", tmp_path).splitlines()
    assert [line.split(":")[0] for line in lines] == ["sync", "async", "vector_entry_point"]
    sync, in_processes, one_object = (line.split(": ")[1] for line in lines)
    assert sync == in_processes  # one object draws rooms of its own
    for what in (sync, one_object):
        episodes, mean = re.fullmatch(r"(\d+) episodes, mean return ([\d.]+)", what).groups()
        assert episodes == "2" and 10 <= float(mean) <= 15  # new locations in 15 steps


def test_gymnasium_wrappers(tmp_path):
    lines = run("gymnasium_wrappers", tmp_path).splitlines()
    assert len(lines) == 2
    for line in lines:
        steps = int(re.search(r"in (\d+) steps", line)[1])
        assert "arrived" in line and returns(line) == [pytest.approx(1 - 0.01 * (steps - 1))]
        assert find_spec("moviepy") or line.endswith(f"{steps + 1} frames")  # one of the start
    if find_spec("moviepy"):
        assert len(list((tmp_path / "videos").glob("eswm-episode-*.mp4"))) == 2


def test_gymnasium_wrappers_cut_episodes_short(tmp_path):
    """Goals in rooms of 37 locations often lie more than 2 steps away."""
    text = run("gymnasium_wrappers", tmp_path, "--episodes", "5", "--max-steps", "2")
    assert "out of time, return -0.02 in 2 steps" in text


def test_maskable_ppo(tmp_path):
    text = run("maskable_ppo", tmp_path)
    trained, untrained = returns(text)
    assert "512 steps" in text and -0.15 <= trained < untrained <= 1


def test_train_with_eswm(tmp_path):
    text = run("train_with_eswm", tmp_path)
    names = ["navigate, plain", "navigate, planned action", "explore, plain", "explore, doubt rewarded"]
    assert re.findall(r"^(.*): return", text, re.M) == names
    navigate, explore = returns(text)[:2], returns(text)[2:]
    assert all(-0.15 <= value <= 1 for value in navigate) and all(1 < value <= 15 for value in explore)


def test_cleanrl_ppo(tmp_path):
    text = run("cleanrl_ppo", tmp_path)
    episodes = int(re.search(r"last 100 of (\d+) episodes", text)[1])
    assert 512 // 15 - 8 <= episodes <= 512  # of at most 15 steps; eight may not have ended
    assert -0.15 <= returns(text)[-1] <= 1


@pytest.mark.slow
def test_a_planned_action_is_soon_learnt_to_be_good(tmp_path):
    plain, planned = (
        returns(run("cleanrl_ppo", tmp_path, "--steps", "6000", *more))[-1] for more in ([], ["--planned-action"])
    )
    assert plain < 0.5 < 0.8 < planned
