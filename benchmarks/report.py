"""What every benchmark shares: its options, its table with the paper's figures, its JSON, its intervals.

As a command, one HTML page of the JSON files that benchmarks wrote:

    python benchmarks/report.py navigate.json explore.json --out report.html  (needs matplotlib)
"""

from __future__ import annotations

import argparse
import json
import math
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from significance import Test


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        setting, method, metric: which figure.
        value: rates are fractions, times seconds.
        ci95: 95 % interval, None where there is none.
        n: how many observations it rests on.
        paper: the paper's figure, None where it has none.
    """

    setting: str
    method: str
    metric: str
    value: float
    ci95: tuple[float, float] | None = None
    n: int = 1
    paper: float | None = None


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, default=0, help="of rooms and agents (default 0)")
    options.add_argument("--quick", action="store_true", help="a small run that shows that everything works")
    options.add_argument("--device", default="cpu", help="where the model runs: cpu or cuda (default cpu)")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    return options


def agent_parser(description: str | None, episodes: int, what: str) -> argparse.ArgumentParser:
    """The options of a benchmark of agents.

    Args:
        description: what it measures.
        episodes: how many there are unless the user says otherwise.
        what: what is counted.
    """
    options = parser(description)
    options.add_argument("--episodes", type=int, default=episodes, help=f"{what} (default {episodes})")
    options.add_argument(
        "--model",
        default="random-wall",
        metavar="NAME|FILE",
        help="a model of hexagonal rooms, pretrained or saved (default %(default)s)",
    )
    options.add_argument("--plot", type=Path, metavar="DIR", help="draw figures there (needs matplotlib)")
    return options


def rate(setting: str, method: str, metric: str, successes: Sequence[bool], paper: float | None = None) -> Row:
    """The share of successes, with Wilson's interval."""
    n, k = len(successes), int(np.sum(successes))
    return Row(setting, method, metric, k / n, wilson(k, n), n, paper)


def mean(
    setting: str, method: str, metric: str, values: Sequence[float], seed: int = 0, paper: float | None = None
) -> Row:
    """The mean of values, with a bootstrap interval."""
    return Row(setting, method, metric, float(np.mean(values)), bootstrap(values, seed), len(values), paper)


def ratio(
    setting: str,
    method: str,
    metric: str,
    values: Sequence[float],
    others: Sequence[float],
    seed: int = 0,
    paper: float | None = None,
) -> Row:
    """The mean of values over the mean of others, pair by pair of the same rooms, with a bootstrap interval."""
    pairs = np.stack([values, others]).astype(float)
    top, bottom = pairs[:, _drawn(pairs.shape[1], seed)].mean(2)
    low, high = np.percentile(top / bottom, [2.5, 97.5])
    value = float(pairs[0].mean() / pairs[1].mean())
    return Row(setting, method, metric, value, (float(low), float(high)), pairs.shape[1], paper)


def over_rooms(
    setting: str,
    method: str,
    metric: str,
    values: np.ndarray,
    counted: np.ndarray,
    seed: int = 0,
    paper: float | None = None,
) -> Row:
    """The mean of values (R, Q) where `counted` (R, Q) bool, with an interval over the R rooms that have any."""
    rooms = counted.any(1)
    sums = (values * counted)[rooms].sum(1), counted[rooms].sum(1)
    return ratio(setting, method, metric, *(part.tolist() for part in sums), seed, paper)


def wilson(k: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval of k successes in n trials."""
    share, spread = k / n, z / n * math.sqrt(k * (n - k) / n + z * z / 4)
    middle, scale = share + z * z / (2 * n), 1 + z * z / n
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def bootstrap(values: Sequence[float], seed: int = 0, resamples: int = 1000) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean."""
    array = np.asarray(values, float)
    low, high = np.percentile(array[_drawn(len(array), seed, resamples)].mean(1), [2.5, 97.5])
    return float(low), float(high)


def _drawn(n: int, seed: int, resamples: int = 1000) -> np.ndarray:
    """(resamples, n) int, observations drawn with replacement."""
    return np.random.default_rng(seed).integers(n, size=(resamples, n))


def draw_curve(
    axis: Axes, rows: Iterable[Row], setting: str, method: str, metric: str, label: str | None = None
) -> None:
    """Draw what a method's rows METRIC/NAME-NUMBER say over the numbers, if there are any; labelled by the method."""
    curve = [
        (int(row.metric.rsplit("-", 1)[1]), row.value)
        for row in rows
        if (row.setting, row.method) == (setting, method) and row.metric.startswith(f"{metric}/")
    ]
    if curve:
        axis.plot(*zip(*curve, strict=True), marker="o", markersize=3, label=label or method)


def save_figure(figure: Figure, folder: Path, name: str) -> None:
    """Write FOLDER/NAME.png and .svg, and close the figure."""
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    for suffix in ("png", "svg"):
        figure.savefig(folder / f"{name}.{suffix}", dpi=150)
    plt.close(figure)


def print_table(rows: Iterable[Row]) -> None:
    """Print the rows, the paper's figures beside ours."""
    cells = [("setting", "method", "metric", "value", "95 % interval", "n", "paper")]
    for row in rows:
        interval = "" if row.ci95 is None else f"{number(row.ci95[0])} to {number(row.ci95[1])}"
        paper = "" if row.paper is None else number(row.paper)
        cells.append((row.setting, row.method, row.metric, number(row.value), interval, str(row.n), paper))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def number(value: float) -> str:
    """A figure as tables show it: about four digits."""
    if math.isnan(value):
        return "not available"
    decimals = 4 if abs(value) < 10 else 2 if abs(value) < 100 else 1 if abs(value) < 1000 else 0
    return f"{value:,.{decimals}f}"


def write_json(path: Path, benchmark: str, seed: int, rows: Iterable[Row], tests: Iterable[Test] = ()) -> None:
    """Write the rows, and tests where there are any, with the versions that made them."""
    names = ("eswm-gym", "torch", "numpy", "gymnasium")
    versions = {name.replace("-", "_"): version(name) for name in names} | {"python": platform.python_version()}
    report = {
        "benchmark": benchmark,
        "seed": seed,
        "versions": versions,
        "rows": [asdict(row) for row in rows],
    }
    if found := [asdict(test) for test in tests]:
        report["tests"] = found
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")


def main(argv: list[str] | None = None) -> None:
    from page import load, page  # which itself needs this file

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", type=Path, nargs="+", metavar="FILE.json", help="what --json of a benchmark wrote")
    options.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE", help="default: report.html")
    args = options.parse_args(argv)
    try:
        reports = [load(path) for path in args.files]
    except ValueError as error:
        options.error(str(error))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(page(reports), encoding="utf-8")
    print(args.out)


if __name__ == "__main__":
    main()
