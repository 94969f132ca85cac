"""The benchmark of rooms seen through a camera: what it counts, who answers, and that it runs."""

import json
import math
from functools import cache

import numpy as np
import pytest
import torch
from common.intervals import Estimate
from indoor import command, houses
from indoor.command import action_rows, actions, main, median, prediction_rows, subsets, unknown_rows, views
from indoor.houses import N_QUERIES, Asked, Majority, NearestMemory, NoBank, certain, everyone
from indoor_worlds import plain

from eswm_gym.envs.indoor_camera import camera
from eswm_gym.rooms.indoor import Asked as Kind
from eswm_gym.rooms.indoor import IndoorQueries, action_between, draw_bank, draw_house, draw_pool, draw_queries, reverse
from eswm_gym.rooms.transitions import ACTION, END, SOURCE
from eswm_gym.world_model.indoor import IndoorConfig, IndoorModel, Memories, load_indoor, save_indoor
from eswm_gym.world_model.indoor.vision import EfficientNetLite0

WIDTH = 8
METHODS = {"majority", "nearest-memory", "pose-graph", "untrained", "no-bank", "eswm"}


def asked_of(seed, memories=32):
    """A house, a bank of so many memories and queries, where views are random tokens."""
    rng = np.random.default_rng(seed)
    pool = draw_pool(draw_house(rng), rng)
    tokens = torch.from_numpy(rng.standard_normal((len(pool.poses), 16, WIDTH))).float()
    rows = draw_bank(rng, pool, memories)
    return Asked(pool, tokens, rows, {c: draw_queries(rng, pool, rows, N_QUERIES, (c,)) for c in (SOURCE, ACTION, END)})


@pytest.fixture(scope="module")
def some():
    return [asked_of(seed) for seed in (3, 4)]


class Knows:
    """Answers what is true of houses, but for an error of so many metres and degrees."""

    def __init__(self, asked, metres=0.0, degrees=0.0):
        self.asked, self.error = asked, np.array([metres, 0, np.radians(degrees)])

    def encode(self, memories):
        return memories

    def rows(self, tokens):
        house = next(h for h in self.asked if (h.tokens == tokens[0]).flatten(1).all(1).any())
        return house, [int((house.tokens == view).flatten(1).all(1).nonzero()) for view in tokens]

    def action_between(self, bank, start, end):
        house, i = self.rows(start)
        _, j = self.rows(end)
        return certain(torch.from_numpy(house.pool.actions[i, j] + self.error).float()), torch.zeros(len(start))

    def view_after(self, bank, start, action):
        house, i = self.rows(start)
        true = torch.from_numpy(house.pool.actions[i]).float()
        return house.tokens[(true - action[:, None]).abs().sum(-1).argmin(1)], torch.zeros(len(start))


# What is counted


def test_subsets():
    """Queries about views that the bank does not hold, by whether the two views overlap; and of the bank's own."""
    kind = np.array([Kind.FREE, Kind.FREE, Kind.BANK, Kind.BANK, Kind.UNKNOWN, Kind.UNKNOWN])
    overlap = np.array([True, False, True, False, True, False])
    queries = IndoorQueries(*np.zeros((3, 6), int), kind, overlap)
    house = Asked(None, None, None, {ACTION: queries})
    other = house._replace(queries={ACTION: IndoorQueries(*np.zeros((3, 6), int), kind[::-1], overlap)})
    found = {name: counted.astype(int).tolist() for name, counted in subsets([house, other], ACTION).items()}
    assert found == {
        "indoor": [[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]],
        "indoor-overlap": [[1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]],
        "indoor-no-overlap": [[0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]],
        "indoor-bank-views": [[0, 0, 0, 1, 0, 0], [0, 0, 0, 1, 0, 0]],
    }


def test_median():
    """Over all that is counted; the interval is that of houses, each drawn whole."""
    values = np.array([[1.0, 2, 3, 100], [5, 6, 7, 100], [9, 9, 9, 9], [100, 100, 100, 100]])
    counted = np.array([[1, 1, 1, 0], [1, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], bool)
    found = median(values, counted, seed=0)
    assert isinstance(found, Estimate) and found.value == 5 == np.median([1, 2, 3, 5, 6, 7, 9]) and found.n == 3
    low, high = found.ci95
    assert low == 2 and 6 <= high <= 9  # the first house three times, the others as often as the bounds say
    assert median(values, counted, 0) == found
    alone = median(values[:1], counted[:1], 0)
    assert (alone.value, alone.ci95, alone.n) == (2, None, 1)


def test_intervals_narrow_with_houses():
    rng = np.random.default_rng(0)
    widths = []
    for n in (5, 80):
        found = median(rng.normal(3, 1, (n, 20)), rng.random((n, 20)) < 0.5, 0)
        low, high = found.ci95
        assert low < found.value < high and low - 0.2 < 3 < high + 0.2
        widths.append(high - low)
    assert widths[1] < widths[0] / 2


def test_actions_are_measured_against_what_is_true(some):
    for metres, degrees in ((0.0, 0.0), (0.3, -20.0), (2.5, 170.0)):
        found = actions(Knows(some, metres, degrees), some[0])
        assert found.shape == (4, N_QUERIES)
        np.testing.assert_allclose(found[2], metres, atol=1e-5)
        np.testing.assert_allclose(found[3], abs(degrees), atol=1e-3)
        if metres == 0:
            assert found[:2].all()
        assert degrees == 0 or not found[1].any()  # more than a sector of 10 degrees away
    counted = subsets(some, ACTION)["indoor"]
    wrong = np.stack([np.arange(N_QUERIES) % 2 == 0] * 2 + [np.full(N_QUERIES, 0.5), np.full(N_QUERIES, 7.0)])
    rows = {row.metric: row for row in action_rows("indoor", "some", [wrong, wrong], counted, 0)}
    share = counted[:, ::2].sum() / counted.sum()
    assert rows["accuracy/displacement"].value == pytest.approx(share) == rows["accuracy/rotation"].value
    assert (rows["median_metres"].value, rows["median_degrees"].value) == (0.5, 7)
    assert all(row.n == 2 and (row.setting, row.method) == ("indoor", "some") for row in rows.values())


def test_views_are_measured_against_what_is_true(some):
    for part in (SOURCE, END):
        near, right = views(Knows(some), some[1], part)
        assert near.shape == right.shape == (N_QUERIES,) and right.all()
        np.testing.assert_allclose(near, 1, atol=1e-5)

        class Wrong(Knows):
            def view_after(self, bank, start, action):
                seen, doubt = super().view_after(bank, start, action)
                return -seen, doubt

        near, right = views(Wrong(some), some[1], part)
        np.testing.assert_allclose(near, -1, atol=1e-5)
        assert not right.any()


def test_only_so_many_memories(some):
    house = some[0]
    whole, two = house.memories(), house.memories(2)
    assert len(whole.action) == len(house.rows) and len(two.action) == 2
    for k, (start, end) in enumerate(house.rows[:2]):
        torch.testing.assert_close(two.start[k], house.tokens[start])
        torch.testing.assert_close(two.end[k], house.tokens[end])
        np.testing.assert_allclose(
            two.action[k], action_between(house.pool.poses[start], house.pool.poses[end]), atol=1e-5
        )


def test_rows_of_prediction(some):
    methods = {"eswm": Knows(some), "majority": Majority(some[0].pool.actions[some[0].pool.moves])}
    rows = prediction_rows(some, methods, 0)
    value = {(row.setting, row.method, row.metric, row.at): row.value for row in rows}
    assert len(value) == len(rows)
    for setting in ("indoor", "indoor-overlap", "indoor-no-overlap", "indoor-bank-views"):
        assert value[setting, "eswm", "accuracy/displacement", None] == 1
        assert value[setting, "eswm", "median_metres", None] == pytest.approx(0, abs=1e-5)
        assert value[setting, "eswm", "retrieval/end", None] == value[setting, "eswm", "retrieval/source", None] == 1
        assert value[setting, "majority", "accuracy/displacement", None] < 0.3
    sizes = [row.at for row in rows if row.along == "memories" and row.metric == "accuracy/rotation"]
    assert sizes == [1, 2, 4, 8, 16, 32]  # of eswm alone: the majority does not look at the bank


def test_unknown():
    """As often right as it says that it does not know where it should, and answers where it can."""
    some = [asked_of(seed, 2) for seed in (3, 4)]

    class Doubts(Knows):
        def action_between(self, bank, start, end):
            _, i = self.rows(start)
            found, _ = super().action_between(bank, start, end)
            return found, torch.tensor(i).float() - 31.5  # of every second half of the poses

        def view_after(self, bank, start, action):
            seen, _ = super().view_after(bank, start, action)
            return seen, torch.ones(len(start))

    value = {row.metric: row.value for row in unknown_rows(some, Doubts(some), 0)}
    queries = [house.queries[ACTION] for house in some]
    kind, start = (np.concatenate([getattr(q, name) for q in queries]) for name in ("asked", "start"))
    assert value["answered/action"] == pytest.approx((start[kind == Kind.FREE] <= 31).mean())
    assert value["accuracy/unsolvable/action"] == pytest.approx((start[kind == Kind.UNKNOWN] > 31).mean())
    for part in ("source", "end"):
        assert (value[f"answered/{part}"], value[f"accuracy/unsolvable/{part}"]) == (0, 1)


# Who answers


def test_majority():
    """The middle of the commonest class; the mean of the bank's views."""
    actions = np.array([[0.1, 0.1, 0.1], [0.3, 0.2, 0.15], [-1.4, -1.4, 0.05], [0.3, 0.3, -3.1], [1.0, 1.0, 3.0]])
    answers, views = Majority(actions), torch.randn(4, 16, WIDTH)
    found, _ = answers.action_between(None, views, views)
    size = 3 / 8
    np.testing.assert_allclose(found.best(), [[size / 2, size / 2, math.radians(5)]] * 4, atol=1e-5)
    bank = answers.encode(Memories(views[:2], torch.zeros(2, 3), views[2:]))
    seen, _ = answers.view_after(bank, views[:3], torch.zeros(3, 3))
    torch.testing.assert_close(seen, views.mean(0).expand(3, 16, WIDTH))


def test_nearest_memory():
    """Forwards or backwards, whichever fits better."""
    views = torch.randn(4, 16, WIDTH, generator=torch.Generator().manual_seed(0))
    action = torch.tensor([[1.0, 0.5, 0.3], [-0.5, 1.0, -2.0]])
    answers = NearestMemory()
    bank = answers.encode(Memories(views[:2], action, views[2:]))
    noisy = views + 0.1 * torch.randn(4, 16, WIDTH, generator=torch.Generator().manual_seed(1))
    found, _ = answers.action_between(bank, noisy[[0, 3]], noisy[[2, 1]])
    np.testing.assert_allclose(found.best(), [action[0].tolist(), reverse(action[1].numpy())], atol=1e-5)
    seen, _ = answers.view_after(
        bank, noisy[[0, 3]], torch.stack([action[0], torch.tensor(reverse(action[1].numpy())).float()])
    )
    torch.testing.assert_close(seen, views[[2, 1]])
    same_start = answers.encode(Memories(views[[0, 0]], action, views[2:]))
    seen, _ = answers.view_after(same_start, views[[0, 0]], action.flip(0))  # by the action, where views tell nothing
    torch.testing.assert_close(seen, views[[3, 2]])


def model_of(seed=0):
    torch.manual_seed(seed)
    return IndoorModel(IndoorConfig("stand-in", (12,), WIDTH, 32)).eval().requires_grad_(False)


def test_without_a_bank_only_the_query_counts(some):
    model = model_of()
    answers, house = NoBank(model), some[0]
    start, end, action = house.tokens[:5], house.tokens[5:10], torch.rand(5, 3)
    banks = [answers.encode(house.memories(n)) for n in (1, 8)]
    for one, other in (
        [answers.action_between(bank, start, end)[0].best() for bank in banks],
        [answers.view_after(bank, start, action)[0] for bank in banks],
    ):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(
        answers.action_between(None, start, end)[0].best(), model.action_between(None, start, end)[0].best()
    )


def test_everyone():
    model = model_of()
    answers = everyone(model, np.zeros((1, 3)))
    assert set(answers) == METHODS and answers["eswm"] is model
    untrained = answers["untrained"]
    assert untrained.config == model.config and untrained.reduction is model.reduction
    again = everyone(model, np.zeros((1, 3)))["untrained"]
    assert all(torch.equal(a, b) for a, b in zip(untrained.parameters(), again.parameters(), strict=True))


# The command


@cache
def taken(house, pose):
    """A picture, drawn once for all tests."""
    return camera().picture(house, np.frombuffer(pose, np.float32))


class Camera:
    def picture(self, house, pose):
        return taken(house, pose.tobytes())


class Encoder:
    """Which encodes pictures once for all tests."""

    known = {}

    def __init__(self):
        self.encoder = EfficientNetLite0()

    def __call__(self, pictures):
        key = pictures.tobytes()
        if key not in self.known:
            self.known[key] = self.encoder(pictures)
        return self.known[key]


@pytest.fixture
def quick(monkeypatch):
    """Few queries, sizes and views, and houses with few textures, each of which takes a second to read."""
    for module in (command, houses):
        monkeypatch.setattr(module, "N_QUERIES", 12)
    pytest.importorskip("efficientnet_lite_pytorch", reason="the encoder is in the extra `indoor`")
    monkeypatch.setattr(houses, "camera", Camera)
    monkeypatch.setattr(command, "EfficientNetLite0", Encoder)
    monkeypatch.setattr(command, "SIZES", (2,))
    monkeypatch.setattr(command, "commonest", lambda: np.zeros((1, 3)))
    monkeypatch.setattr(command, "bootstrap", lambda *args, **kwargs: None)  # of medians, which takes long
    monkeypatch.setattr(houses, "draw_house", lambda rng: plain(draw_house(rng)))
    monkeypatch.setattr(houses, "draw_pool", lambda house, rng: draw_pool(house, rng, 48))


def read(path):
    found = json.loads(path.read_text())
    return found, {(r["setting"], r["method"], r["metric"], r["at"]): r["value"] for r in found["rows"]}


@pytest.mark.camera
def test_the_command_runs_with_any_model(tmp_path, quick):
    """Here one with random weights, which knows of views of the bank what moves compose to, and no more."""
    torch.manual_seed(1)
    model = IndoorModel(IndoorConfig())
    model.reduction.directions.normal_(std=0.02)
    save_indoor(model, tmp_path / "model.safetensors", {})
    argv = ["--quick", "indoor", "--model", str(tmp_path / "model.safetensors")]
    rows = main([*argv, "--json", str(tmp_path / "out.json")])
    found, value = read(tmp_path / "out.json")
    assert (found["benchmark"], found["seed"], len(found["rows"])) == ("indoor", 0, len(rows))
    assert found["command"] == "python benchmarks/indoor --quick indoor --model model.safetensors"
    assert {row.method for row in rows if row.setting == "indoor"} == METHODS
    for method in ("pose-graph", "untrained", "eswm"):
        assert value["indoor-bank-views", method, "accuracy/displacement", None] == 1
    assert value["indoor-bank-views", "pose-graph", "median_metres", None] < 1e-3
    settings = {"indoor", "indoor-overlap", "indoor-no-overlap", "indoor-bank-views"}
    assert {row.setting for row in rows} == settings
    for row in rows:
        if row.ci95 is not None and not math.isnan(row.value):
            assert row.ci95[0] <= row.value + 1e-9 and row.value <= row.ci95[1] + 1e-9


@pytest.fixture
def weights():
    """Skip what needs the weights of the package where they are not."""
    try:
        load_indoor()
    except FileNotFoundError as error:
        pytest.skip(f"the weights of camera views are not here: {error}")


@pytest.mark.camera
def test_the_model_of_the_package_knows_more_than_others(tmp_path, quick, weights):
    rows = main(["--quick", "indoor", "--json", str(tmp_path / "out.json")])
    value = {(row.setting, row.method, row.metric): row.value for row in rows if row.at is None}
    for other in METHODS - {"eswm", "no-bank"}:
        assert value["indoor", "eswm", "accuracy/rotation"] > value["indoor", other, "accuracy/rotation"]
        assert value["indoor", "eswm", "median_metres"] < value["indoor", other, "median_metres"]


@pytest.mark.slow
@pytest.mark.camera
def test_all_of_it(tmp_path, weights):
    rows = main(["--quick", "--json", str(tmp_path / "out.json"), "--plot", str(tmp_path)])
    settings = {row.setting for row in rows}
    assert set(command.SETTINGS) <= settings
    value = {(row.setting, row.method, row.metric): row.value for row in rows if row.at is None}
    assert value["indoor-navigation", "oracle", "success_rate"] == 1
    assert value["indoor-navigation", "eswm", "success_rate"] >= value["indoor-navigation", "random", "success_rate"]
    assert list(tmp_path.glob("*.png"))


@pytest.mark.parametrize(
    ("argv", "named"),
    [(["no-such-setting"], "no-such-setting"), (["--houses", "few"], "few"), (["--seeds", "3"], "--seeds")],
)
def test_wrong_arguments_are_refused(argv, named, capsys):
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert named in capsys.readouterr().err.splitlines()[-1]
