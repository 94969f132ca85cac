"""The plots of a page, as SVG that takes its fonts and its colours, in light and dark, from the page."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from report import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of the methods, on light and on dark ground.
LIGHT = ("#2f6db5", "#c2571a", "#1a8a5f", "#a4418f", "#8a6d00", "#0e8aa8", "#b03049", "#666666")
DARK = ("#7fb2ee", "#f0985e", "#5cc79a", "#dd8ccd", "#d8b94a", "#5cc3dc", "#f08a9b", "#aaaaaa")
MARKERS = "osD^vPX*"
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
    "figure.facecolor": "none",
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
DIAMOND = {"marker": "D", "markersize": 5, "markeredgewidth": 1.2, "linestyle": "none", "zorder": 4}


def bars(rows: Sequence[Row], methods: Sequence[str], label: str, prefix: str) -> str:
    """One metric: a bar for each method, those of a setting together.

    Args:
        rows: the metric's.
        methods: all methods of the page; a method's place says its colour.
        label: what a screen reader says.
        prefix: begins the ids within the plot.
    """
    lines: list[tuple[str, Row | None]] = []
    for setting in dict.fromkeys(row.setting for row in rows):
        lines.append((setting, None))
        lines += [(row.method.replace("/", "/\n"), row) for row in rows if row.setting == setting]
    line_height = 0.42 if any("\n" in text for text, _ in lines) else 0.25
    with _plot(0.5 + line_height * len(lines)) as (figure, axis):
        papers = []
        for y, (text, row) in enumerate(lines):
            if row is None:
                axis.text(0, y + 0.1, text, transform=axis.get_yaxis_transform(), fontweight="bold", va="center")
            elif math.isnan(row.value):
                axis.text(0, y, " not available", transform=axis.get_yaxis_transform(), va="center")
            else:
                color = PALETTE[methods.index(row.method) % len(PALETTE)]
                axis.barh(y, row.value, 0.7, color=color, alpha=0.7)
                if row.ci95:
                    axis.plot(row.ci95, (y, y), color=INK, linewidth=1.2)
                if row.paper is not None:
                    papers.append((row.paper, y))
        if papers:
            axis.plot(*zip(*papers, strict=True), **DIAMOND, color=INK, markerfacecolor=GROUND, label="paper")
            figure.legend(loc="outside lower center")
        axis.set_yticks(range(len(lines)), ["" if row is None else text for text, row in lines])
        axis.set_ylim(len(lines) - 0.4, -0.5)
        axis.grid(visible=False, axis="y")
        axis.tick_params(axis="y", length=0)
        axis.axvline(0, color=INK, linewidth=0.8)
        axis.locator_params(axis="x", nbins=5)
        axis.xaxis.set_major_formatter("{x:,g}")
        if _fractions(rows):
            axis.set_xlim(0, 1.02)
        return _svg(figure, label, prefix)


def curves(
    points: Mapping[str, Sequence[tuple[float, Row]]], x_name: str, methods: Sequence[str], label: str, prefix: str
) -> str:
    """One metric of one setting along a number: a line for each method.

    Args:
        points: of each method, places on the axis and their rows.
        x_name: what the axis is.
        methods, label, prefix: as for bars.
    """
    places = sorted({x for some in points.values() for x, _ in some})
    spacing = min((b - a for a, b in pairwise(places)), default=1)
    with _plot(3.4) as (figure, axis):
        for i, (method, some) in enumerate(points.items()):
            again, place = divmod(methods.index(method), len(PALETTE))
            color = PALETTE[place]
            look = {"color": color, "marker": MARKERS[place], "linestyle": "--" if again else "-"}
            # Side by side, so that methods that do equally well are all seen.
            shift = 0.5 * spacing * ((i + 0.5) / len(points) - 0.5)
            rows = {x + shift: row for x, row in sorted(some, key=lambda point: point[0])}
            line = [row.value for row in rows.values()]
            axis.plot(list(rows), line, **look, markersize=4, linewidth=1.3, label=method)
            for x, row in rows.items():
                if row.ci95:
                    axis.plot((x, x), row.ci95, color=color, linewidth=1.3, alpha=0.6)
            papers = [(x, row.paper) for x, row in rows.items() if row.paper is not None]
            if papers:
                name = f"{method}, paper"
                axis.plot(*zip(*papers, strict=True), **DIAMOND, color=color, markerfacecolor=GROUND, label=name)
        axis.set_xlabel(x_name)
        axis.xaxis.get_major_locator().set_params(integer=all(x.is_integer() for x in places))
        if _fractions(row for some in points.values() for _, row in some):
            axis.set_ylim(-0.03, 1.03)
        figure.legend(loc="outside lower center", ncols=2)
        return _svg(figure, label, prefix)


def _fractions(rows: Iterable[Row]) -> bool:
    """Whether an axis from 0 to 1 suits the values."""
    values = [
        x for row in rows for x in (row.value, row.paper, *(row.ci95 or ())) if x is not None and not math.isnan(x)
    ]
    return bool(values) and min(values) >= 0 and 0.5 < max(values) <= 1


@contextmanager
def _plot(height: float) -> Iterator[tuple[Figure, Axes]]:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure((WIDTH, height), layout="constrained")
        yield figure, figure.subplots()


def _svg(figure: Figure, label: str, prefix: str) -> str:
    """The figure as an element of a page: without XML's headers, its ids its own."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    _, box, svg = re.split(r'<svg [^>]*viewBox="([^"]*)"[^>]*>', buffer.getvalue(), maxsplit=1)
    svg = f'<svg viewBox="{box}" role="img" aria-label="{escape(label)}">{svg}'
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", svg)
    svg = re.sub(r"(font: [^;\"]*?px) [^;\"]*", r"\1 var(--font)", svg)
    return re.sub("|".join(PAGE_COLORS), lambda found: PAGE_COLORS[found[0]], svg)
