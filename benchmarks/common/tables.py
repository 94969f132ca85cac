"""Tables of Markdown pages, made from what benchmarks wrote.

A page has a table between the lines `<!-- table: NAME -->` and `<!-- end -->`. What each table shows is in
`benchmarks/page_tables.py`; the figures are in `benchmarks/results`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.reports import load
from common.rows import Row
from eswm_gym.rooms.transitions import COMPONENTS

MANY = 1000  # observations from which on a figure stands without its interval
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

# Which row a cell shows, in part: `file`, `setting`, `method`, `metric` ({names} in them stand for other keys) and `at`
# (a number, or "last"); and how: `show` ("value", the default, with its interval; "value only", "paper" or "n") and
# `digits` (3).
Key = Mapping[str, Any]
Rows = Mapping[str, Sequence[Row]]  # by benchmark


def of(**key: object) -> Key:
    return key


def methods(*names: str, **key: object) -> dict[str, Key]:
    """A line for each method."""
    return {f"`{name}`": of(method=name, **key) for name in names}


def parts(metric: str, names: tuple[str, ...] = COMPONENTS, **key: object) -> list[Key]:
    """Keys of a metric for source, action and end; `metric` has {part} in the place of these."""
    return [of(metric=metric.replace("{part}", name), **key) for name in names]


@dataclass(frozen=True)
class Table:
    """A table. A cell shows what the keys of its line and its column say together.

    Attributes:
        head: the text above the lines' names.
        lines: the key of each line, by its name.
        columns: the key of each column, by its name; several keys are shown side by side, with `between` between them.
        every: the key that all cells share.
        between: see `columns`.
    """

    head: str
    lines: Mapping[str, Key]
    columns: Mapping[str, Key | Sequence[Key]]
    every: Key
    between: str = " / "

    def markdown(self, rows: Rows) -> str:
        """The table with the figures of these rows.

        Raises:
            ValueError: a line or a column would be empty.
        """
        cells = {line: [self._cell(line, column, rows) for column in self.columns] for line in self.lines}
        empty = [line for line, texts in cells.items() if not any(texts)]
        empty += [name for i, name in enumerate(self.columns) if not any(texts[i] for texts in cells.values())]
        if empty:
            raise ValueError(f"no benchmark wrote a figure for {', '.join(map(repr, empty))}")
        rule = "|---" * (1 + len(self.columns)) + "|\n"
        heads, *lines = [_line([self.head, *self.columns]), *(_line([line, *texts]) for line, texts in cells.items())]
        return heads + rule + "".join(lines)

    def _cell(self, line: str, column: str, rows: Rows) -> str:
        keys = self.columns[column]
        parts = [keys] if isinstance(keys, Mapping) else keys
        texts = [text({**self.every, **self.lines[line], **part}, rows) for part in parts]
        return self.between.join(text or "–" for text in texts) if any(texts) else ""


def _line(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |\n"


def text(key: Key, rows: Rows) -> str:
    """One figure, with its interval if it rests on few observations; empty where there is none."""
    wanted = tuple(str(key[name]).format(**key) for name in ("setting", "method", "metric"))
    found = {r.at: r for r in rows.get(key["file"], ()) if (r.setting, r.method, r.metric) == wanted}
    at = key.get("at")
    row = found.get(max(found, key=lambda at: at or 0, default=None) if at == "last" else at)
    if row is None or (key.get("show") == "paper" and row.paper is None):
        return ""
    if key.get("show") == "n":
        return f"{row.n:,}"
    digits = key.get("digits", 3)
    if key.get("show") == "paper":
        return f"{row.paper:.{digits}f}"
    alone = key.get("show") == "value only" or row.n >= MANY
    interval = f" ({row.ci95[0]:.{digits}f}–{row.ci95[1]:.{digits}f})" if row.ci95 and not alone else ""
    return f"{row.value:.{digits}f}{interval}"


def rows_of(folder: Path) -> Rows:
    """The rows that benchmarks wrote into a folder, those of one benchmark together."""
    rows: dict[str, list[Row]] = {}
    for report in map(load, sorted(folder.glob("*.json"))):
        rows.setdefault(report.benchmark, []).extend(report.rows)
    return rows


def filled(page: str, tables: Mapping[str, Table], rows: Rows) -> str:
    """The text of a page with its tables made anew.

    Raises:
        ValueError: the page asks for a table that there is not, or one would be incomplete.
    """

    def table(found: re.Match[str]) -> str:
        if found[2] not in tables:
            raise ValueError(f"there is no table {found[2]!r}, only {', '.join(tables)}")
        return f"{found[1]}\n{tables[found[2]].markdown(rows)}\n{found[3]}"

    return MARKED.sub(table, page)
