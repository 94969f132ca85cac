"""One HTML page of benchmarks' JSON files that needs nothing else: no network, no scripts, plots as inline SVG."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from page_plots import DARK, LIGHT, bars, curves
from report import Row, number
from significance import Test, p_text, statistic_text

# A metric along a number: success_rate/length-3 is success_rate, length, 3.
ALONG = re.compile(r"(.+)/([^/]+)-(\d+(?:\.\d+)?)")
TESTS = {"anova": "ANOVA", "tukey": "Tukey", "welch-t": "Welch’s t", "t": "Student’s t", "paired-t": "paired t"}
STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1c1f23; --soft: #5b626b; --rule: #d5d9de; --font: system-ui,
  -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; LIGHT }
@media screen and (prefers-color-scheme: dark) { :root { --ground: #16181b; --ink: #e4e6e9; --soft: #a3abb5;
  --rule: #3a3f46; DARK } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 62rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 var(--font) }
h1 { margin: 0 0 .5rem; font-size: 1.7rem; line-height: 1.2 }
h2 { margin: 3rem 0 .25rem; padding-top: .75rem; border-top: 2px solid var(--ink); font-size: 1.35rem }
h3 { margin: 2rem 0 .5rem; font-size: 1.05rem }
a { color: inherit; text-underline-offset: .2em }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 0; padding: 0; list-style: none }
.soft { color: var(--soft); font-size: .875rem; overflow-wrap: anywhere }
.wide { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums }
caption { padding-bottom: .4rem; text-align: left; color: var(--soft) }
th, td { padding: .2rem .75rem .2rem 0; text-align: left; vertical-align: top; font-weight: 400; white-space: nowrap }
thead th { border-bottom: 1px solid var(--ink); font-weight: 600; vertical-align: bottom }
tbody { border-bottom: 1px solid var(--rule) }
th[scope=rowgroup] { font-weight: 600 }
th[scope=row], .wrap { min-width: 8rem; white-space: normal }
.number { padding-left: .75rem; text-align: right }
th:last-child, td:last-child { padding-right: 0 }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); gap: 1.5rem 2rem }
figure { margin: 0; max-width: 32rem; break-inside: avoid }
figcaption { margin-bottom: .25rem; font-size: .875rem }
svg { display: block; width: 100%; height: auto }
details { margin-top: 1.5rem }
summary { cursor: pointer }
@media (max-width: 30rem) { th, td { padding-right: .25rem } .number { padding-left: .4rem } }
@page { margin: 16mm }
@media print { body { max-width: none; padding: 0; font-size: .875rem } nav { display: none }
  .wide { overflow: visible } table { font-size: .62rem } .plots { grid-template-columns: 1fr 1fr }
  section + section { break-before: page } tbody { break-inside: avoid }
  h2, h3, .soft, caption, figcaption { break-after: avoid } }
"""


@dataclass(frozen=True)
class Report:
    """What a benchmark wrote, and the name of its file."""

    file: str
    benchmark: str
    seed: int | None
    versions: dict[str, str]
    rows: list[Row]
    tests: list[Test]


def load(path: Path) -> Report:
    """Read what a benchmark wrote.

    Raises:
        ValueError: the file cannot be read, or is something else; the message names it and says what is wrong.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path}: not JSON: {error}") from error
    kinds = {"benchmark": str, "rows": list, "versions": dict, "tests": list}
    content = {"versions": {}, "tests": []} | content if isinstance(content, dict) else {}
    for key, kind in kinds.items():
        if not isinstance(content.get(key), kind):
            raise ValueError(f"{path}: not what a benchmark wrote: {key!r} is missing, or no {kind.__name__}")
    return Report(
        path.name,
        content["benchmark"],
        content.get("seed"),
        content["versions"],
        _each(path, "row", content["rows"], _row),
        _each(path, "test", content["tests"], _test),
    )


def _each(path: Path, what: str, items: list, read: Callable[[dict], Any]) -> list:
    found = []
    for i, item in enumerate(items, 1):
        try:
            found.append(read(item))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {what} {i} is not a benchmark's: {error}") from error
    return found


def _row(item: dict) -> Row:
    row = Row(**item)
    _check_texts(row.setting, row.method, row.metric)
    paper = _figure(row.paper)
    return replace(
        row,
        value=_figure(row.value),
        ci95=_interval(row.ci95),
        n=int(row.n),
        paper=None if math.isnan(paper) else paper,
    )


def _test(item: dict) -> Test:
    test = Test(**item)
    _check_texts(test.setting, test.metric, test.test, test.alternative, *test.methods)
    return replace(
        test,
        n=tuple(map(int, test.n)),
        statistic=None if test.statistic is None else _figure(test.statistic),
        df=tuple(map(_figure, test.df)),
        p_value=_figure(test.p_value),
        difference=None if test.difference is None else _figure(test.difference),
        ci95=_interval(test.ci95),
    )


def _check_texts(*values: object) -> None:
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{value!r} is no text")


def _figure(value: object) -> float:
    """The number, NaN where there is none."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return float(value) if math.isfinite(value) else math.nan


def _interval(value: Sequence[object] | None) -> tuple[float, float] | None:
    low, high = map(_figure, value or (None, None))
    return None if math.isnan(low + high) else (low, high)


def page(reports: Sequence[Report]) -> str:
    """The whole page: a section for each report."""
    along = [row for report in reports for row in report.rows if ALONG.fullmatch(row.metric)]
    # Lines are told apart by colour, so their methods have the first choice; a method has one colour throughout.
    methods = list(dict.fromkeys(row.method for rows in (along, *(r.rows for r in reports)) for row in rows))
    links = "".join(f'<li><a href="#b{i}">{escape(_title(report))}</a></li>' for i, report in enumerate(reports, 1))
    nav = f'<nav aria-label="Benchmarks"><ul>{links}</ul></nav>\n' if len(reports) > 1 else ""
    sections = "\n".join(_section(f"b{i}", report, methods) for i, report in enumerate(reports, 1))
    style = STYLE.replace("LIGHT", _colors(LIGHT)).replace("DARK", _colors(DARK))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>ESWM benchmarks</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>ESWM benchmarks</h1>
<p class="soft">Rates are fractions, times are seconds; “paper” is the figure of He, Daigle and Bashivan, in their own
rooms. Thin lines in plots are 95&nbsp;% intervals.</p>
{nav}</header>
<main>
{sections}
</main>
</body>
</html>
"""


def _colors(colors: Iterable[str]) -> str:
    return "; ".join(f"--c{i}: {color}" for i, color in enumerate(colors))


def _title(report: Report) -> str:
    return report.benchmark.replace("-", " ").capitalize()


def _section(name: str, report: Report, methods: Sequence[str]) -> str:
    """One benchmark: main table, bars, lines and their figures, tests."""
    plain = [row for row in report.rows if not ALONG.fullmatch(row.metric)]
    along = [row for row in report.rows if ALONG.fullmatch(row.metric)]
    title = _title(report)
    facts = [report.file] + ([] if report.seed is None else [f"seed {report.seed}"])
    facts += [f"{package} {version}" for package, version in report.versions.items()]
    figures = _bar_figures(name, plain, methods) + _curve_figures(name, along, methods)
    parts = [
        f'<section aria-labelledby="{name}">',
        f'<h2 id="{name}">{escape(title)}</h2>',
        f'<p class="soft">{escape(" · ".join(facts))}</p>',
    ]
    if plain:
        parts.append(_rows_table(f"{title}, figures by setting and metric", plain))
    if figures:
        parts += ["<h3>Plots</h3>", '<div class="plots">', *figures, "</div>"]
    if along:
        table = _rows_table(f"{title}, figures behind the lines", along)
        parts.append(f"<details>\n<summary>The {len(along)} figures behind the lines</summary>\n{table}\n</details>")
    if report.tests:
        parts += ["<h3>Tests</h3>", _tests_table(f"{title}, tests by setting and metric", report.tests)]
    return "\n".join([*parts, "</section>"])


def _bar_figures(name: str, rows: Iterable[Row], methods: Sequence[str]) -> list[str]:
    """A plot of each metric that several methods have."""
    metrics: dict[str, list[Row]] = {}
    for row in rows:
        metrics.setdefault(row.metric, []).append(row)
    figures = []
    for metric, some in metrics.items():
        if len({row.method for row in some}) > 1:
            caption = _words(metric)
            svg = bars(some, methods, f"Bars: {caption}. The table has the figures.", f"{name}-bars{len(figures)}-")
            figures.append(_figure_element(caption, svg))
    return figures


def _curve_figures(name: str, rows: Iterable[Row], methods: Sequence[str]) -> list[str]:
    """A plot of each setting and metric along a number."""
    plots: dict[tuple[str, ...], dict[str, list[tuple[float, Row]]]] = {}
    for row in rows:
        metric, x_name, x = ALONG.fullmatch(row.metric).groups()
        plot = plots.setdefault((row.setting, metric, x_name), {})
        plot.setdefault(row.method, []).append((float(x), row))
    figures = []
    for (setting, metric, x_name), points in plots.items():
        caption = f"{_words(metric)} by {_words(x_name)}, {setting}"
        label = f"Lines: {caption}. The table below has the figures."
        svg = curves(points, _words(x_name), methods, label, f"{name}-lines{len(figures)}-")
        figures.append(_figure_element(caption, svg))
    return figures


def _words(name: str) -> str:
    return name.replace("_", " ").replace("-", " ").replace("/", ", ")


def _figure_element(caption: str, svg: str) -> str:
    return f"<figure>\n<figcaption>{escape(caption)}</figcaption>\n{svg}</figure>"


def _rows_table(caption: str, rows: Sequence[Row]) -> str:
    """The paper's figures beside ours where there are any."""
    with_paper = any(row.paper is not None for row in rows)

    def line(row: Row) -> str:
        cells = [_text(row.value)]
        if with_paper:
            cells += ["", ""] if row.paper is None else [_text(row.paper), _signed(row.value - row.paper)]
        cells += [_interval_text(row.ci95), f"{row.n:,}"]
        return f'<th scope="row">{escape(row.method)}</th>{_numbers(cells)}'

    heads = ["method", "value", *(["paper", "ours − paper"] if with_paper else []), "95 % interval", "n"]
    return _table(caption, heads, 1, rows, line)


def _tests_table(caption: str, tests: Sequence[Test]) -> str:
    def line(test: Test) -> str:
        name = TESTS.get(test.test, test.test) + ("" if test.alternative == "two-sided" else ", one-sided")
        compared = (", " if test.difference is None else " − ").join(test.methods)
        cells = [
            number(math.nan) if math.isnan(test.p_value) else re.sub("^p (= )?", "", p_text(test.p_value)),
            statistic_text(test),
            "" if test.difference is None else _text(test.difference),
            _interval_text(test.ci95),
            f"{test.n[0]:,} each" if len(set(test.n)) == 1 else ", ".join(f"{n:,}" for n in test.n),
        ]
        return f'<th scope="row">{escape(name)}</th><td class="wrap">{escape(compared)}</td>{_numbers(cells)}'

    heads = ["test", "compared", "p", "statistic", "difference", "95 % interval", "n"]
    return _table(caption, heads, 2, tests, line)


def _table(
    caption: str, heads: Sequence[str], n_words: int, items: Iterable[Row | Test], line: Callable[[Any], str]
) -> str:
    """A table that scrolls by itself where it is wider than the page.

    Args:
        heads: names of the columns, of which those after n_words are numbers.
        items: rows or tests; those of a setting and metric come together under a line that names these.
        line: makes an item's cells.
    """
    groups: dict[str, list[str]] = {}
    for item in items:
        groups.setdefault(escape(f"{item.setting}, {item.metric}"), []).append(f"<tr>{line(item)}</tr>")
    bodies = [
        f'<tbody>\n<tr><th scope="rowgroup" colspan="{len(heads)}">{title}</th></tr>\n'
        + "\n".join(lines)
        + "\n</tbody>"
        for title, lines in groups.items()
    ]
    head = "".join(
        f'<th scope="col"{"" if i < n_words else " class=number"}>{escape(text)}</th>' for i, text in enumerate(heads)
    )
    return "\n".join(
        [
            f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}">',
            f"<table>\n<caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>",
            *bodies,
            "</table>\n</div>",
        ]
    )


def _numbers(cells: Iterable[str]) -> str:
    return "".join(f"<td class=number>{escape(cell)}</td>" for cell in cells)


def _text(value: float) -> str:
    return number(value).replace("-", "−")


def _interval_text(ci95: tuple[float, float] | None) -> str:
    return "" if ci95 is None else f"{_text(ci95[0])} to {_text(ci95[1])}"


def _signed(value: float) -> str:
    sign = "+" if value > 0 else "−" if value < 0 else "±"
    return number(value) if math.isnan(value) else sign + number(abs(value))
