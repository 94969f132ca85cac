"""Curves and bars of rows: on any matplotlib axis, and as figures in a folder."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from common.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "osD^vPX*"
PAPER = {"marker": "D", "markersize": 5, "markeredgewidth": 1.2, "linestyle": "none", "zorder": 4}
# What a name looks like: arguments of matplotlib's `plot`.
Look = Mapping[str, Any]
Label = Callable[[Row], str]
_caption: ContextVar[str] = ContextVar("_caption", default="")


def by_setting(row: Row) -> str:
    return row.setting


def by_method(row: Row) -> str:
    return row.method


def by_metric(row: Row) -> str:
    return row.metric


def looks_of(names: Iterable[str], palette: Sequence[str] = tuple(f"C{i}" for i in range(10))) -> dict[str, Look]:
    """A colour and a marker of its own for each name, and dashes when all colours are taken."""
    looks = {}
    for i, name in enumerate(dict.fromkeys(names)):
        again, place = divmod(i, len(palette))
        marker = MARKERS[place % len(MARKERS)]
        looks[name] = {"color": palette[place], "marker": marker, "linestyle": "--" if again else "-"}
    return looks


def curves(axis: Axes, rows: Sequence[Row], looks: Mapping[str, Look], line: Label = by_method) -> None:
    """Draw values along a number, with their intervals and the paper's figures.

    Args:
        axis: where to draw.
        rows: of one number. A row without a number is drawn as a level line, if no other row has its label.
        looks: of each label.
        line: the label of the line that a row belongs to.
    """
    lines: dict[str, list[Row]] = {}
    for row in sorted((row for row in rows if row.at is not None), key=lambda row: row.at or 0):
        lines.setdefault(line(row), []).append(row)
    lines = {label: lines[label] for label in dict.fromkeys(map(line, rows)) if label in lines}
    places = sorted({row.at for some in lines.values() for row in some if row.at is not None})
    spacing = min((b - a for a, b in pairwise(places)), default=1)
    values = {label: {row.at: row.value for row in some} for label, some in lines.items()}
    alike, drawn = Counter(map(_key, values.values())), Counter[tuple]()
    for i, (label, some) in enumerate(lines.items()):
        # Markers side by side and dashes by turns, so that methods that do equally well are all seen.
        shift = 0.5 * spacing * ((i + 0.5) / len(lines) - 0.5)
        x = [(row.at or 0) + shift for row in some]
        look, key = dict(looks[label]), _key(values[label])
        if (n := alike[key]) > 1:
            look["linestyle"] = (3 * drawn[key], (3, 3 * (n - 1)))
            drawn[key] += 1
        color = look["color"]
        on = _gaps(values[label], places)
        axis.plot([at + shift for at in on], list(on.values()), **look, markersize=4, linewidth=1.3, label=label)
        for place, row in zip(x, some, strict=True):
            if row.ci95:
                axis.plot((place, place), row.ci95, color=color, linewidth=1.3, alpha=0.6)
        papers = [(place, row.paper) for place, row in zip(x, some, strict=True) if row.paper is not None]
        if papers:
            _draw_paper(axis, papers, color, f"{label}, paper")
    for row in rows:
        if row.at is None and line(row) not in lines:
            axis.axhline(row.value, color=looks[line(row)]["color"], linestyle=":", label=line(row))
    axis.set_xlabel(words(next((row.along for row in rows if row.along), "")))
    axis.xaxis.get_major_locator().set_params(integer=all(float(place).is_integer() for place in places))
    if _are_fractions(rows):
        axis.set_ylim(-0.03, 1.03)


def bars(
    axis: Axes, rows: Sequence[Row], looks: Mapping[str, Look], group: Label = by_setting, label: Label = by_method
) -> None:
    """Draw a bar for each row, with its interval and the paper's figure; bars of a group come together.

    Args:
        axis: where to draw.
        rows: in order.
        looks: of each label.
        group, label: the group that a row belongs to, and its label.
    """
    from matplotlib import rcParams

    lines: list[tuple[str, Row | None]] = []
    for name in dict.fromkeys(map(group, rows)):
        lines.append((name, None))
        lines += [(label(row), row) for row in rows if group(row) == name]
    ink, papers = rcParams["text.color"], []
    for y, (text, row) in enumerate(lines):
        if row is None:
            axis.text(0, y + 0.1, text, transform=axis.get_yaxis_transform(), fontweight="bold", va="center")
        elif math.isnan(row.value):
            axis.text(0, y, " not available", transform=axis.get_yaxis_transform(), va="center")
        else:
            axis.barh(y, row.value, 0.7, color=looks[text]["color"], alpha=0.7)
            if row.ci95:
                axis.plot(row.ci95, (y, y), color=ink, linewidth=1.2)
            if row.paper is not None:
                papers.append((row.paper, y))
    if papers:
        _draw_paper(axis, papers, ink, "paper")
    axis.set_yticks(range(len(lines)), ["" if row is None else text.replace("/", "/\n") for text, row in lines])
    axis.set_ylim(len(lines) - 0.4, -0.5)
    axis.grid(visible=False, axis="y")
    axis.tick_params(axis="y", length=0)
    axis.axvline(0, color=ink, linewidth=0.8)
    axis.locator_params(axis="x", nbins=5)
    axis.xaxis.set_major_formatter("{x:,g}")
    if _are_fractions(rows):
        axis.set_xlim(0, 1.02)


def height_of_bars(rows: Sequence[Row], group: Label = by_setting) -> float:
    """Inches that bars want."""
    n_lines = len(rows) + len(set(map(group, rows)))
    return 0.5 + (0.42 if any("/" in row.method for row in rows) else 0.25) * n_lines


def draw_settings(rows: Sequence[Row], folder: Path, name: str) -> None:
    """Draw FOLDER/NAME-SETTING.png and .svg of each setting with metrics along a number."""
    for setting in dict.fromkeys(row.setting for row in rows if row.along):
        some = [row for row in rows if row.setting == setting]
        metrics = {row.metric for row in some if row.along}
        draw_curves([row for row in some if row.metric in metrics], folder, f"{name}-{setting}")


def draw_curves(
    rows: Sequence[Row],
    folder: Path,
    name: str,
    panel: Label = by_metric,
    line: Label = by_method,
    across: int | None = None,
) -> None:
    """Draw FOLDER/NAME.png and .svg: a panel for each metric, a line for each method, or as the labels say.

    Args:
        across: panels side by side; None: all of them.
    """
    import matplotlib.pyplot as plt

    panels, looks = list(dict.fromkeys(map(panel, rows))), looks_of(map(line, rows))
    across = across or len(panels)
    down = -(-len(panels) // across)
    figure, axes = plt.subplots(
        down, across, figsize=(1 + 3.6 * across, 1 + 3 * down), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, title in zip(axes.flat, panels, strict=False):
        curves(axis, [row for row in rows if panel(row) == title], looks, line)
        axis.set_title(fill(words(title), 30))
    place_legend(figure)
    save_figure(figure, folder, name)


def draw_bars(
    panels: Mapping[str, Sequence[Row]],
    folder: Path,
    name: str,
    group: Label = by_setting,
) -> None:
    """Draw FOLDER/NAME.png and .svg: bars side by side in panels, which have titles."""
    import matplotlib.pyplot as plt

    looks = looks_of(row.method for rows in panels.values() for row in rows)
    height = 1 + max(height_of_bars(rows, group) for rows in panels.values())
    width = 2.6 + 0.07 * max(map(len, looks))  # of a panel, with its labels
    figure, axes = plt.subplots(
        1, len(panels), figsize=(width * len(panels), height), squeeze=False, layout="constrained"
    )
    for axis, (title, rows) in zip(axes[0], panels.items(), strict=True):
        bars(axis, rows, looks, group)
        axis.set_title(fill(words(title), round(width * 8)))
    place_legend(figure)
    save_figure(figure, folder, name)


def place_legend(figure: Figure) -> None:
    """One legend below all panels, if there is anything to name."""
    named = {
        label: handle for axis in figure.axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    if named:
        figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=2 + 2 * (len(figure.axes) > 1))


@contextmanager
def captioned(text: str) -> Iterator[None]:
    """Figures that are saved meanwhile have this text above them."""
    token = _caption.set(text)
    try:
        yield
    finally:
        _caption.reset(token)


def n_text(rows: Iterable[Row]) -> str:
    """How many observations the figures of rows rest on."""
    numbers = sorted({row.n for row in rows})
    return f"n = {numbers[0]:,}" + (f" to {numbers[-1]:,}" if len(numbers) > 1 else "") if numbers else ""


def save_figure(figure: Figure, folder: Path, name: str) -> None:
    """Write FOLDER/NAME.png and .svg, and close the figure."""
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    if text := _caption.get():
        lines = (figure.get_suptitle(), fill(text, round(figure.get_figwidth() * 15)))
        figure.suptitle("\n".join(filter(None, lines)), fontsize=8, color="0.4")
    for suffix in ("png", "svg"):
        figure.savefig(folder / f"{name}.{suffix}", dpi=150)
    plt.close(figure)


def words(name: str) -> str:
    """A name of code as text: "new_walls" is "new walls"."""
    return name.replace("_", " ").replace("-", " ").replace("/", ", ")


def _key(values: Mapping[float | None, float]) -> tuple:
    """The same for lines that lie on each other."""
    return tuple((at, round(value, 3)) for at, value in values.items())


def _gaps(values: Mapping[float | None, float], places: Iterable[float]) -> dict[float, float]:
    """A line's values, and nan at places of other lines between its own where it has none, over which nothing is drawn:
    unless it lacks as many as it has, and so goes by other places."""
    own = [at for at in values if at is not None]
    others = set(places) - set(own)
    if 0 < len(others) < len(own):
        return {at: values.get(at, math.nan) for at in sorted({*own, *others}) if own[0] <= at <= own[-1]}
    return {at: values[at] for at in own}


def _draw_paper(axis: Axes, points: Sequence[tuple[float, float]], color: str, label: str) -> None:
    from matplotlib import rcParams

    ground = rcParams["figure.facecolor"]
    axis.plot(*zip(*points, strict=True), **PAPER, color=color, markerfacecolor=ground, label=label)  # type: ignore[arg-type]


def _are_fractions(rows: Iterable[Row]) -> bool:
    """Whether an axis from 0 to 1 suits the values."""
    values = [
        x for row in rows for x in (row.value, row.paper, *(row.ci95 or ())) if x is not None and not math.isnan(x)
    ]
    return bool(values) and min(values) >= 0 and 0.5 < max(values) <= 1
