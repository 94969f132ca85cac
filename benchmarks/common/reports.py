"""The JSON that a benchmark writes, and that the page and the tables read."""

from __future__ import annotations

import json
import math
import platform
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from common.rows import Row, Test

VERSIONS = ("eswm-gym", "torch", "numpy", "gymnasium")


@dataclass(frozen=True)
class Report:
    """What a benchmark wrote.

    Attributes:
        file: name of the file.
        benchmark, seed, command, commit: what was run; `commit` is None outside of a git repository.
        versions: of the packages.
        rows, tests: what was found.
    """

    file: str
    benchmark: str
    seed: int | None
    command: str | None
    commit: str | None
    versions: dict[str, str]
    rows: list[Row]
    tests: list[Test]


def write(path: Path, benchmark: str, seed: int, command: str, rows: Iterable[Row], tests: Iterable[Test] = ()) -> None:
    """Write rows, tests where there are any, and what made them."""
    report = {
        "benchmark": benchmark,
        "seed": seed,
        "command": command,
        "commit": COMMIT,
        "versions": {name.replace("-", "_"): version(name) for name in VERSIONS}
        | {"python": platform.python_version()},
        "rows": [asdict(row) for row in rows],
    }
    if found := [asdict(test) for test in tests]:
        report["tests"] = found
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(f'"{key}": {_text(value)}' for key, value in report.items()) + "\n}\n")


def _text(value: Any) -> str:
    """JSON with a line for each item of a list, so that what changes from run to run can be read line by line."""
    if isinstance(value, list):
        return "[\n" + ",\n".join(f" {json.dumps(item)}" for item in value) + "\n]"
    return json.dumps(value)


def commit() -> str | None:
    """Short hash of the commit that the benchmarks are of, None where there is no git."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


COMMIT = commit()  # when the code was loaded: the repository may move on while a benchmark runs


def load(path: Path) -> Report:
    """Read what a benchmark wrote.

    Raises:
        ValueError: the file cannot be read, or holds something else; the message names it and says what is wrong.
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
        *(content.get(key) for key in ("seed", "command", "commit")),
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
    _check_texts(row.setting, row.method, row.metric, *([] if row.along is None else [row.along]))
    return replace(
        row,
        at=None if row.along is None else _finite(row.at),
        value=_figure(row.value),
        ci95=_interval(row.ci95),
        n=int(row.n),
        paper=None if row.paper is None else _finite(row.paper),
    )


def _test(item: dict) -> Test:
    test = Test(**item)
    _check_texts(test.setting, test.metric, test.test, test.alternative, *test.methods)
    return replace(
        test,
        methods=tuple(test.methods),
        n=tuple(map(int, test.n)),
        statistic=None if test.statistic is None else _figure(test.statistic),
        df=tuple(map(_figure, test.df)),
        p_value=_figure(test.p_value),
        p_corrected=None if test.p_corrected is None else _figure(test.p_corrected),
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


def _finite(value: object) -> float | None:
    figure = _figure(value)
    return None if math.isnan(figure) else figure


def _interval(value: Sequence[object] | None) -> tuple[float, float] | None:
    low, high = map(_figure, value or (None, None))
    return None if math.isnan(low + high) else (low, high)
