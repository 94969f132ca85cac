"""The page that replays an episode: what is in it, and that it works in a browser."""

import json
import re
import shutil

import gymnasium as gym
import numpy as np
import pytest

from eswm_gym import replay
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.recorder import EpisodeRecorder
from eswm_gym.world_model import load_pretrained, save_model


def episode_in(path):
    return json.loads(re.search(r'id="episode">(.*?)</script>', path.read_text(), re.DOTALL).group(1))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("replay") / "episode.html"
    replay.main(["--wall-at", "1", "--out", str(path)])
    return path


def test_page_tells_the_episode(page):
    episode = episode_in(page)
    frames = episode["frames"]
    assert (episode["env"], episode["seed"], episode["kind"]) == ("ESWM-RandomWall-v0", replay.SEED, "hex")
    assert frames[-1]["success"] and "action" not in frames[-1] and all("action" in frame for frame in frames[:-1])
    assert len(frames[1]["walls"]) == len(frames[0]["walls"]) + 1
    forgot = [t for t, frame in enumerate(frames) if frame["forgotten"]]
    assert forgot and frames[forgot[0]]["blocked"]
    assert [frame["action"] for frame in frames[: forgot[0]]][-1] == frames[forgot[0] - 1]["plan"][0][0]


def test_page_needs_nothing_else(page):
    text = page.read_text()
    assert not re.search(r"https?://|src=|url\(|@import|fetch\(", text)
    assert "{{" not in text


@pytest.mark.parametrize("env_id", ["ESWM-OpenArena-v0", "ESWM-RandomWall19Explore-v0", "ESWM-MiniGrid-v0"])
def test_every_kind_of_room(env_id):
    episode = json.loads(json.dumps(replay.record(env_id, seed=3).to_dict()))
    assert episode["env"] == env_id and episode["frames"]
    if episode["kind"] == "grid":
        frame = episode["frames"][0]
        assert len(episode["views"][frame["state"]]) == 25 and len(frame["grid"]) == episode["size"] ** 2
        assert frame["known_poses"] and frame["imagined_poses"]


def test_in_a_large_room_the_moves_near_the_agent_are_recorded():
    env = gym.make("ESWM-Lattice-v0", lattice="hexagon", size=(9,), memory_bank="none", walls=0.0)
    agent = ESWMAgent(load_pretrained("lattices"), window=7, seed=0)
    recorder = EpisodeRecorder(env, agent)
    obs, info = env.reset(seed=1)
    xy, states = env.unwrapped.layout.lattice.xy, env.unwrapped.layout.states.tolist()
    row = next(at for at, (x, y) in enumerate(xy) if (x, y) == (-9, 0))
    bank = [
        (states[at], 0, states[at + 1]) for at in range(row, row + 18)
    ]  # from one end of the middle row to the other
    recorder.reset(obs, {**info, "memory_bank": np.array(bank)})
    recorder.act(obs, info)
    (frame,) = recorder.to_dict()["frames"]
    here = xy[frame["at"]]
    far = {state: np.hypot(*(xy[at] - here)) for at, state in enumerate(states)}
    assert len(states) == 271 and len(frame["known"]) >= 19
    assert {s for s, _, _ in frame["memories"]} == {s for s, _, _ in bank if far[s] <= 8}
    assert all(far[s] <= 8 for s, *_ in frame["imagined"] + frame["frontier"])


def test_wall_on_the_plan_of_a_grid():
    frames = replay.record("ESWM-MiniGrid-v0", seed=9, wall_at=4).to_dict()["frames"]
    assert frames[4]["grid"].count("1") == frames[3]["grid"].count("1") + 1
    assert any(frame["forgotten"] for frame in frames)


@pytest.mark.parametrize("wall_at, seed, why", [(20, 19, "over after"), (0, 0, "no wall was put up")])
def test_says_why_there_is_no_wall(wall_at, seed, why, tmp_path):
    with pytest.raises(SystemExit, match=why):
        replay.main(["--wall-at", str(wall_at), "--seed", str(seed), "--out", str(tmp_path / "page.html")])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall19Explore-v0", "ESWM-MiniGridExplore-v0"])
def test_a_wall_in_the_way_of_an_explorer(env_id):
    frames = replay.record(env_id, seed=5, wall_at=2).to_dict()["frames"]
    walls = [frame.get("walls", frame.get("grid")) for frame in frames]
    assert walls[0] == walls[1] != walls[2] == walls[3]
    assert env_id == "ESWM-MiniGridExplore-v0" or frames[3]["blocked"]  # there it may have turned that way first


def test_a_model_of_ones_own(tmp_path):
    save_model(load_pretrained("random-wall"), tmp_path / "mine")
    recorder = replay.record(seed=3, model=str(tmp_path / "mine.safetensors"))
    assert recorder.to_dict()["frames"] == replay.record(seed=3).to_dict()["frames"]


def test_recorder_refuses_other_environments_and_empty_recordings():
    agent = ESWMAgent(load_pretrained("random-wall"))
    with pytest.raises(ValueError, match="hexagonal rooms and MiniGrid rooms"):
        EpisodeRecorder(gym.make("CartPole-v1"), agent)
    with pytest.raises(ValueError, match="nothing has been recorded"):
        EpisodeRecorder(gym.make("ESWM-RandomWall-v0"), agent).to_dict()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Chromium")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium)
        yield browser
        browser.close()


@pytest.fixture
def tab(browser, page):
    """The page at the width of a telephone; errors fail the test."""
    tab = browser.new_page(viewport={"width": 400, "height": 800}, reduced_motion="reduce")
    errors = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    tab.on("request", lambda request: errors.append(request.url) if not request.url.startswith("file:") else None)
    tab.goto(page.as_uri())
    yield tab
    tab.close()
    assert not [error for error in errors if not error.startswith("data:")]


def test_steps_keys_and_slider(tab, page):
    last = len(episode_in(page)["frames"]) - 1
    count = tab.locator("#count")
    assert count.inner_text() == f"Step 0 of {last}" and tab.locator("#back").is_disabled()
    tab.click("#on")
    assert count.inner_text().startswith("Step 1 ")
    tab.keyboard.press("ArrowRight")
    tab.focus("#time")
    tab.keyboard.press("ArrowRight")  # once, although the slider listens too
    assert count.inner_text().startswith("Step 3 ")
    tab.keyboard.press("End")
    assert count.inner_text() == f"Step {last} of {last}" and "at the goal" in tab.inner_text("#story")
    tab.fill("#time", "2")
    assert count.inner_text().startswith("Step 2 ") and tab.locator("#time").get_attribute("aria-valuetext")
    tab.keyboard.press("Home")
    assert count.inner_text().startswith("Step 0 ")


def test_plays_and_pauses(tab):
    tab.click("#play")
    assert tab.inner_text("#play") == "Pause"
    tab.wait_for_function("document.getElementById('count').textContent.startsWith('Step 1 ')")
    tab.evaluate("document.activeElement.blur()")
    tab.keyboard.press("Space")
    assert tab.inner_text("#play") == "Play"


def test_events_and_memories(tab):
    tab.click("#marks .forgot")
    assert "forgets" in tab.inner_text("#story") and tab.locator("#bank .gone").count() > 0
    assert tab.locator("#mind .lost").count() > 0
    for point in (tab.hover, tab.focus):
        point("#bank li:last-child button")
        assert tab.locator("#room .ring").count() == tab.locator("#mind .ring").count() == 2
    tab.keyboard.press("ArrowRight")  # keeps the focus on a memory
    assert tab.evaluate("document.activeElement.closest('#bank') !== null")


def test_fits_a_narrow_screen(tab):
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    unnamed = "[...document.querySelectorAll('button')].filter(b => !(b.ariaLabel || b.textContent.trim())).length"
    assert tab.evaluate(unnamed) == 0
