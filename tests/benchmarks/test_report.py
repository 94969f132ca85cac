"""Intervals against textbook values, the table, the JSON and the page of it."""

import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import report
from common import reports
from common.cli import command
from common.intervals import bootstrap, mean, over_rooms, rate, ratio, wilson
from common.page import summary
from common.plots import captioned, curves, looks_of, save_figure
from common.printing import print_blocks, sentences
from common.reports import Report
from common.rows import Row, Test, number
from common.tests import compare, t_test


def test_wilson_interval():
    """8 of 10: (0.8 + z^2/20 -+ z sqrt(0.016 + z^2/400)) / (1 + z^2/10) with z = 1.96, worked out by hand."""
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 20)[0] == 0 and wilson(20, 20)[1] == 1
    assert wilson(20, 20)[0] == pytest.approx(20 / (20 + 1.959964**2))


def test_bootstrap_interval_of_a_normal_mean():
    values = np.random.default_rng(0).normal(5, 2, 400)
    low, high = bootstrap(np.mean, values)
    assert (low, high) == bootstrap(np.mean, values)
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)
    assert low < values.mean() < high


def test_rows_table_and_json(tmp_path, capsys):
    rows = [
        Row("random-wall-19", "eswm", "success_rate", *rate([True, True, False, True]), paper=0.968),
        Row("random-wall-19", "eswm", "path_optimality", *mean([1.0, 0.5]), along="length", at=3),
        Row("random-wall-37", "numpy", "rooms_per_second", 12345.6),
    ]
    assert (rows[0].value, rows[0].n, rows[1].value) == (0.75, 4, 0.75)
    print_blocks(rows)
    _, head, line, _, other_head, other_line = capsys.readouterr().out.splitlines()
    assert head.split("  ", 1)[0] == "random-wall-19" and "success_rate" in head and "path_optimality, length 3" in head
    assert line.startswith("eswm *") and "0.7500 (" in line and "paper 0.9680" in line
    assert other_head.split() == ["random-wall-37", "rooms_per_second"] and other_line.split() == ["numpy", "12,346"]
    reports.write(tmp_path / "out.json", "navigate", 3, "python benchmarks/navigate.py", rows)
    content = json.loads((tmp_path / "out.json").read_text())
    assert set(content) == {"benchmark", "seed", "command", "commit", "versions", "rows"}
    assert content["versions"]["eswm_gym"] and content["command"] == "python benchmarks/navigate.py"
    assert list(content["rows"][0]) == ["setting", "method", "metric", "along", "at", "value", "ci95", "n", "paper"]
    assert (content["rows"][1]["along"], content["rows"][1]["at"]) == ("length", 3)
    assert reports.load(tmp_path / "out.json").rows == rows


def test_blocks_have_ours_last_and_fit_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    methods, metrics = ("eswm", "random", "rules"), ("success_rate", "path_optimality", "states_expanded")
    print_blocks([Row("room", method, metric, 0.5, (0.25, 0.75)) for method in methods for metric in metrics])
    blocks = capsys.readouterr().out.strip().split("\n\n")
    assert len(blocks) == 2 and max(len(line) for block in blocks for line in block.splitlines()) <= 60
    for block in blocks:
        assert [line.split()[0] for line in block.splitlines()] == ["room", "random", "rules", "eswm"]


def test_sentences_say_what_was_found():
    def pair(other, difference, p):
        return Test("room", "success_rate", "tukey", ("eswm", other), (9, 9), 1.0, (2, 9), p, difference, (0.0, 1.0))

    anova = Test("room", "success_rate", "anova", ("eswm", "epn"), (9, 9), 1.0, (2, 9), 0.5)
    tests = [
        anova,
        pair("epn", 0.5, 0.01),
        pair("random", 0.7, 1e-9),
        pair("rules", 0.1, 0.3),
        pair("oracle", -0.2, 1e-4),
    ]
    assert sentences(tests) == [
        "room, success_rate: eswm is above epn, random (p <= 0.010); is below oracle (p < 0.001); "
        "is not found to differ from rules."
    ]
    assert sentences([anova]) == []


def test_ratios_and_rooms_by_hand():
    assert ratio([1, 3], [2, 2])[::2] == (1, 2)
    low, high = ratio([1, 3], [2, 2]).ci95
    assert (low, high) == (0.5, 1.5)  # both draws may be of one pair
    values, counted = np.array([[1, 0, 5], [7, 1, 7], [9, 9, 9]]), np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]], bool)
    assert over_rooms(values, counted)[::2] == (pytest.approx(2 / 3), 2)
    assert mean([4.0]) == (4, None, 1)


def test_the_command_is_what_a_user_types():
    options = ["--json", "/tmp/a.json", "--episodes", "5", "--plot=/tmp", "--model", "/home/me/runs/my.safetensors"]
    assert command("navigate", options) == "python benchmarks/navigate.py --episodes 5 --model my.safetensors"
    assert command("latent", []) == "python benchmarks/latent"


def test_no_commit_without_git(monkeypatch):
    assert re.fullmatch("[0-9a-f]{7,}", reports.commit() or "0000000")
    monkeypatch.setenv("PATH", "")
    assert reports.commit() is None


def test_numbers_have_about_four_digits():
    values = (0.5, -3, 13.5, 100, 999.94, 12345.6, math.nan)
    assert [*map(number, values)] == ["0.5000", "-3.0000", "13.50", "100.0", "999.9", "12,346", "not available"]


ROWS = [
    Row("walls", "random", "unique_locations", 6.25, (5.5, 7.0), 20),
    Row("walls", "eswm", "unique_locations", 13.9, (13.8, 14.0), 20, paper=12.5),
    Row("open & free", "random", "unique_locations", -7.125, None, 20),
    Row("open & free", "<b>eswm</b>", "unique_locations", math.nan, (math.nan, math.nan), 0),
    Row("walls", "eswm", "seconds", 1234.5),
    *(
        Row(
            "walls",
            method,
            "success_rate",
            base - k / 10,
            (base - k / 10 - 0.1, base - k / 10),
            50,
            paper,
            along="new_walls",
            at=k,
        )
        for method, base, paper in (("random", 0.51, None), ("eswm", 0.92, 0.875), ("a$b$_c\\1", 0.83, None))
        for k in range(6)
    ),
]
SAMPLES = {"eswm": [4, 5, 6], "epn": [1, 2, 3], "random": [1, 3, 2]}
TESTS = [
    *compare("walls", "steps", SAMPLES, "epn"),
    t_test("walls", "steps", "eswm", [1, 2], "epn", [0, 4], alternative="greater"),
]


class Page(HTMLParser):
    """What a page holds; fails where an element is not closed in its place."""

    VOID = {"meta", "link", "br", "hr", "img"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.references, self.cells = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            self.references += re.findall(r"url\(#(.*?)\)", value)
            if name.endswith("href") and not value.startswith("data:"):
                assert value[0] == "#"
                self.references.append(value[1:])

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data

    def count(self, tag):
        return [name for name, _ in self.tags].count(tag)


@pytest.fixture
def files(tmp_path):
    reports.write(tmp_path / "adapt.json", "adapt", 3, "python benchmarks/adapt.py", ROWS, TESTS)
    reports.write(tmp_path / "new.json", "some-thing", 4, "python some.py", ROWS[:1])
    return [str(tmp_path / name) for name in ("adapt.json", "new.json")]


def html(tmp_path, files):
    report.main([*files, "--out", str(tmp_path / "report.html")])
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_tests_are_written(tmp_path, files):
    content = json.loads((tmp_path / "adapt.json").read_text())
    assert content["tests"][0]["p_value"] == pytest.approx(1 / 64)
    assert content["tests"][1]["methods"] == ["epn", "eswm"] and content["tests"][-1]["alternative"] == "greater"


def test_the_page_holds_every_figure(tmp_path, files):
    text = html(tmp_path, files)
    page = Page(text)
    cells = [cell.replace("−", "-") for cell in page.cells]
    for row in ROWS:
        assert row.method in cells and number(row.value) in cells
        if row.ci95 and not math.isnan(row.ci95[0]):
            assert f"{number(row.ci95[0])} to {number(row.ci95[1])}" in cells
    assert {"12.50", "+1.4000", "+0.0450", "-0.0550"} <= set(cells)  # the paper's figures, and ours less these
    assert {"open & free, unique_locations", "walls, success_rate, new_walls 3", "walls, steps"} <= set(cells)
    assert {"ANOVA", "F(2, 6) = 9.0000", "0.016", "epn - eswm", "-3.0000", "Welch’s t, one-sided"} <= set(cells)
    assert not any("nan" in cell for cell in cells)
    for word in (
        "Adapt",
        "Some thing",
        "adapt.json",
        "seed 3",
        "python benchmarks/adapt.py",
        "numpy " + np.__version__,
    ):
        assert word in text
    assert f"numpy {np.__version__}" in text
    assert "<b>" not in text


def test_the_page_needs_nothing_else(tmp_path, files):
    text = html(tmp_path, files)
    page = Page(text)
    assert not re.search(r"https?:|@import|src=|<script", text)
    assert len(page.ids) == len(set(page.ids)) and set(page.references) <= set(page.ids)
    assert text == html(tmp_path, files)


def test_the_page_is_for_everyone(tmp_path, files):
    page = Page(html(tmp_path, files))
    assert ("html", {"lang": "en"}) in page.tags and page.count("title") == 1
    assert page.count("caption") == page.count("table") == 4  # figures, those of lines and tests; figures
    assert page.count("svg") == page.count("figcaption") == 2  # bars of unique locations, lines of success rate
    for tag, attributes in page.tags:
        if tag == "svg":
            assert attributes["role"] == "img" and attributes["aria-label"]
        if tag == "th":
            assert attributes["scope"] in ("col", "row", "rowgroup")


def test_pages_without_rows_tests_or_plots(tmp_path):
    (tmp_path / "bare.json").write_text('{"benchmark": "bare", "rows": []}')
    assert Page(html(tmp_path, [str(tmp_path / "bare.json")])).count("table") == 0
    reports.write(tmp_path / "tests.json", "tests", 0, "", [], TESTS)
    assert Page(html(tmp_path, [str(tmp_path / "tests.json")])).count("table") == 1


ROW = {"setting": "a", "method": "b", "metric": "c", "value": 1}


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "No such file"),
        ("{", "not JSON"),
        (b"\xff", "not JSON"),
        ("[1]", "'benchmark' is missing"),
        ({"benchmark": "a"}, "'rows' is missing"),
        ({"benchmark": "a", "rows": {}}, "'rows' is missing, or no list"),
        ({"benchmark": "a", "rows": [ROW, 3]}, "row 2"),
        ({"benchmark": "a", "rows": [{"setting": "a"}]}, "row 1 .*'method'"),
        ({"benchmark": "a", "rows": [ROW | {"value": "1"}]}, "row 1 .*'1' is no number"),
        ({"benchmark": "a", "rows": [ROW | {"method": None}]}, "row 1 .*None is no text"),
        ({"benchmark": "a", "rows": [ROW | {"ci95": [1]}]}, "row 1"),
        ({"benchmark": "a", "rows": [], "tests": [{}]}, "test 1"),
    ],
)
def test_wrong_files(tmp_path, capsys, content, message):
    path = tmp_path / "wrong.json"
    if content is not None:
        text = json.dumps(content) if isinstance(content, dict) else content
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SystemExit):
        report.main([str(path), "--out", str(tmp_path / "report.html")])
    assert re.search(rf"wrong\.json: .*{message}", capsys.readouterr().err)
    assert not (tmp_path / "report.html").exists()


def test_the_page_opens_with_one_picture_of_all_settings():
    rows = [Row("a", "eswm", "success_rate", 1.0), Row("a", "memory-graph", "success_rate", 0.25)]
    rows += [Row("b", "eswm", "seconds", 12.0), Row("b", "memory-graph", "seconds", 3.0), Row("c", "eswm", "rate", 0.5)]
    caption, svg = summary([Report("x.json", "navigate", None, None, None, {}, rows, [])])
    assert "Each setting" in caption
    assert "navigate, a: success rate" in svg and ">others<" in svg
    assert "navigate, b" not in svg and "navigate, c" not in svg  # no rate, and nothing to compare with
    assert summary([]) is None


def test_lines_that_lie_on_each_other_are_all_seen_and_none_is_drawn_over_a_missing_value():
    plt = pytest.importorskip("matplotlib.pyplot")
    found = {
        "a": {1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0},
        "b": {1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0},
        "c": {1: 0.5, 2: 0.5, 4: 0.5},
    }
    rows = [Row("s", m, "rate", v, along="x", at=at) for m, line in found.items() for at, v in line.items()]
    figure, axis = plt.subplots()
    curves(axis, rows, looks_of(found))
    a, b, c = axis.get_lines()
    offsets, dashes = zip(*(line._unscaled_dash_pattern for line in (a, b)), strict=True)
    assert dashes[0] == dashes[1] and offsets[0] != offsets[1]  # one begins where the other pauses
    assert np.isnan(c.get_ydata()).tolist() == [False, False, True, False]
    plt.close(figure)


def test_a_saved_figure_says_what_it_is_of(tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    with captioned("benchmarks/navigate.py, seed 0, n = 30"):
        save_figure(plt.figure(), tmp_path, "one")
    save_figure(plt.figure(), tmp_path, "other")
    texts = [(tmp_path / f"{name}.svg").read_text() for name in ("one", "other")]
    assert "seed 0, n = 30" in texts[0] and "seed 0" not in texts[1]
