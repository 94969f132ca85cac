"""One HTML page of what benchmarks wrote, which needs nothing else: no network, no scripts, plots as inline SVG."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from common.plots import Look, bars, by_method, curves, height_of_bars, looks_of, n_text, place_legend, words
from common.printing import OURS
from common.reports import Report
from common.rows import Row, Test, number
from common.tests import p_text, statistic_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TEMPLATE = Path(__file__).with_name("page.html.j2")
TESTS = {"anova": "ANOVA", "tukey": "Tukey", "welch-t": "Welch’s t", "t": "Student’s t", "paired-t": "paired t"}
# Colours of the methods, on light and on dark ground.
LIGHT = ("#2f6db5", "#c2571a", "#1a8a5f", "#a4418f", "#8a6d00", "#0e8aa8", "#b03049", "#666666")
DARK = ("#7fb2ee", "#f0985e", "#5cc79a", "#dd8ccd", "#d8b94a", "#5cc3dc", "#f08a9b", "#aaaaaa")
# Matplotlib draws in these; the page's own colours take their places afterwards.
INK, RULE, GROUND = "#010203", "#010204", "#010205"
PALETTE = [f"#0102{10 + i}" for i in range(len(LIGHT))]
PAGE_COLORS = {INK: "currentColor", RULE: "var(--rule)", GROUND: "var(--ground)"} | {
    color: f"var(--c{i})" for i, color in enumerate(PALETTE)
}
STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": RULE,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": GROUND,
    "font.size": 10,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "eswm",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": RULE,
    "xtick.labelcolor": INK,
    "ytick.color": RULE,
    "ytick.labelcolor": INK,
}
WIDTH = 5.4  # inches, 389 points: about as wide as the page shows it, on a phone too


@dataclass(frozen=True)
class Table:
    """A table of the page.

    Attributes:
        caption: says what it holds.
        heads: names of the columns.
        n_words: how many columns come before those with numbers.
        groups: lines of cells, by the title above them.
    """

    caption: str
    heads: Sequence[str]
    n_words: int
    groups: Mapping[str, list[list[str]]]


def page(reports: Sequence[Report]) -> str:
    """The whole page: a section for each report."""
    from jinja2 import Environment

    rows = [row for report in reports for row in report.rows]
    # Lines are told apart by colour, so their methods have the first choice; a method has one colour throughout.
    looks = looks_of((row.method for row in sorted(rows, key=lambda row: row.along is None)), PALETTE)
    template = Environment(autoescape=True, keep_trailing_newline=True).from_string(TEMPLATE.read_text("utf-8"))
    sections = [section(f"b{i}", report, looks) for i, report in enumerate(reports, 1)]
    return template.render(summary=summary(reports), sections=sections, light=_colors(LIGHT), dark=_colors(DARK))


def _colors(colors: Iterable[str]) -> str:
    return "; ".join(f"--c{i}: {color}" for i, color in enumerate(colors))


def summary(reports: Sequence[Report]) -> tuple[str, str] | None:
    """Caption and SVG of one picture: in each setting, our method among the others, by the first rate that both have.

    None if there is no such setting.
    """
    lines: list[tuple[str, dict[str, float]]] = []
    for report in reports:
        plain = [row for row in report.rows if row.along is None]
        for setting in dict.fromkeys(row.setting for row in plain):
            for metric in dict.fromkeys(row.metric for row in plain if row.setting == setting):
                rates = {row.method: row.value for row in plain if (row.setting, row.metric) == (setting, metric)}
                if len(rates) > 1 and OURS in rates and all(0 <= rate <= 1 for rate in rates.values()):
                    lines.append((f"{words(report.benchmark)}, {setting}: {words(metric)}", rates))
                    break
    if not lines:
        return None
    with _plot(0.9 + 0.24 * len(lines)) as (figure, axis):
        for y, (_, rates) in enumerate(lines):
            others = [rate for method, rate in rates.items() if method != OURS]
            axis.plot(rates[OURS], y, "D", color=PALETTE[0], markersize=6, label=OURS, clip_on=False)
            axis.plot(others, [y] * len(others), "|", color=PALETTE[1], markersize=13, label="others", clip_on=False)
        axis.set_yticks(range(len(lines)), [title for title, _ in lines])
        axis.set_ylim(len(lines) - 0.4, -0.6)
        axis.set_xlim(-0.02, 1.02)
        return "Each setting in one line: eswm among the methods it is compared with", _svg(
            figure, "Summary: one rate in each setting. The tables have the figures.", "summary-"
        )


def section(name: str, report: Report, looks: Mapping[str, Look]) -> dict:
    """What the template shows of one benchmark: main table, bars, lines and their figures, tests."""
    plain = [row for row in report.rows if row.along is None]
    along = [row for row in report.rows if row.along is not None]
    title = report.benchmark.replace("-", " ").capitalize()
    facts = [report.file] + ([] if report.seed is None else [f"seed {report.seed}"])
    facts += [report.command] if report.command else []
    facts += [f"commit {report.commit}"] if report.commit else []
    facts += [f"{package} {version}" for package, version in report.versions.items()]
    return {
        "id": name,
        "title": title,
        "facts": facts,
        "main": plain and rows_table(f"{title}, figures by setting and metric", plain),
        "figures": [*bar_figures(name, plain, looks), *curve_figures(name, along, looks)],
        "along": along and rows_table(f"{title}, figures behind the lines", along),
        "n_along": len(along),
        "tests": report.tests and tests_table(f"{title}, tests by setting and metric", report.tests),
    }


def bar_figures(name: str, rows: Sequence[Row], looks: Mapping[str, Look]) -> Iterator[tuple[str, str]]:
    """Caption and SVG of each metric that several methods have."""
    for i, metric in enumerate(dict.fromkeys(row.metric for row in rows)):
        some = [row for row in rows if row.metric == metric]
        if len(set(map(by_method, some))) > 1:
            with _plot(height_of_bars(some)) as (figure, axis):
                bars(axis, some, looks)
                caption = f"{words(metric)} ({n_text(some)})"
                yield caption, _svg(figure, f"Bars: {caption}. The table has the figures.", f"{name}-bars{i}-")


def curve_figures(name: str, rows: Sequence[Row], looks: Mapping[str, Look]) -> Iterator[tuple[str, str]]:
    """Caption and SVG of each setting and metric along a number."""
    for i, key in enumerate(dict.fromkeys((row.setting, row.metric, row.along) for row in rows)):
        with _plot(3.4) as (figure, axis):
            some = [row for row in rows if (row.setting, row.metric, row.along) == key]
            curves(axis, some, looks)
            setting, metric, along = key
            caption = f"{words(metric)} by {words(along or '')}, {setting} ({n_text(some)})"
            yield caption, _svg(figure, f"Lines: {caption}. The table below has the figures.", f"{name}-lines{i}-")


def rows_table(caption: str, rows: Sequence[Row]) -> Table:
    """The paper's figures beside ours where there are any."""
    with_paper = any(row.paper is not None for row in rows)

    def line(row: Row) -> list[str]:
        cells = [row.method, _text(row.value)]
        if with_paper:
            cells += ["", ""] if row.paper is None else [_text(row.paper), _signed(row.value - row.paper)]
        return [*cells, _interval_text(row.ci95), f"{row.n:,}"]

    heads = ["method", "value", *(["paper", "ours − paper"] if with_paper else []), "95 % interval", "n"]
    return Table(caption, heads, 1, _grouped(rows, line))


def tests_table(caption: str, tests: Sequence[Test]) -> Table:
    """Each test with its p-value, after correction."""

    def line(test: Test) -> list[str]:
        name = TESTS.get(test.test, test.test) + ("" if test.alternative == "two-sided" else ", one-sided")
        return [
            name + ("" if test.p_corrected is None else ", Holm"),
            (", " if test.difference is None else " − ").join(test.methods),
            number(math.nan) if math.isnan(test.p) else re.sub("^p (= )?", "", p_text(test.p)),
            statistic_text(test),
            "" if test.difference is None else _text(test.difference),
            _interval_text(test.ci95),
            f"{test.n[0]:,} each" if len(set(test.n)) == 1 else ", ".join(f"{n:,}" for n in test.n),
        ]

    heads = ["test", "compared", "p", "statistic", "difference", "95 % interval", "n"]
    return Table(caption, heads, 2, _grouped(tests, line))


def _grouped(items: Sequence, line: Callable) -> dict[str, list[list[str]]]:
    """The lines of rows or tests, by their setting and metric."""
    groups: dict[str, list[list[str]]] = {}
    for item in items:
        title = item.title if isinstance(item, Row) else item.metric
        groups.setdefault(f"{item.setting}, {title}", []).append(line(item))
    return groups


def _text(value: float) -> str:
    return number(value).replace("-", "−")


def _interval_text(ci95: tuple[float, float] | None) -> str:
    return "" if ci95 is None else f"{_text(ci95[0])} to {_text(ci95[1])}"


def _signed(value: float) -> str:
    sign = "+" if value > 0 else "−" if value < 0 else "±"
    return number(value) if math.isnan(value) else sign + number(abs(value))


@contextmanager
def _plot(height: float) -> Iterator[tuple[Figure, Axes]]:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure((WIDTH, height), layout="constrained")
        yield figure, figure.subplots()


def _svg(figure: Figure, label: str, prefix: str) -> str:
    """The figure as an element of the page.

    Its fonts and colours become the page's, so that they follow light and dark.

    Args:
        figure: with all that it shows but the legend.
        label: what a screen reader says.
        prefix: begins the ids within the plot, so that they are its own.
    """
    place_legend(figure)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    _, box, svg = re.split(r'<svg [^>]*viewBox="([^"]*)"[^>]*>', buffer.getvalue(), maxsplit=1)
    svg = f'<svg viewBox="{box}" role="img" aria-label="{escape(label)}">{svg}'
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", svg)
    svg = re.sub(r"(font: [^;\"]*?px) [^;\"]*", r"\1 var(--font)", svg)
    return re.sub("|".join(PAGE_COLORS), lambda found: PAGE_COLORS[found[0]], svg)
