"""What a benchmark prints for people to read: a block for each setting, and a sentence for what was tested there."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence

from common.rows import Row, Test, number
from common.tests import LEVEL, p_text

OURS = "eswm"  # its line comes last and is marked


def print_blocks(rows: Sequence[Row], tests: Sequence[Test] = ()) -> None:
    """Print a block for each setting: a line for each method, a column for each metric, and below what tests found.

    A figure has its 95 % interval in brackets, and the paper's after "paper".
    """
    width = shutil.get_terminal_size((120, 24)).columns
    for setting in dict.fromkeys(row.setting for row in rows):
        here = [row for row in rows if row.setting == setting]
        cells = {(row.method, row.title): _text(row) for row in here}
        methods = sorted(dict.fromkeys(row.method for row in here), key=lambda method: method == OURS)
        for titles in _fitting(list(dict.fromkeys(row.title for row in here)), methods, cells, width):
            lines = [[setting, *titles]]
            lines += [
                [f"{method} *" if method == OURS else method, *(cells.get((method, title), "") for title in titles)]
                for method in methods
                if any((method, title) in cells for title in titles)
            ]
            widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
            print()
            for line in lines:
                print("  ".join(text.ljust(size) for text, size in zip(line, widths, strict=True)).rstrip())
        print_sentences(test for test in tests if test.setting == setting)


def print_sentences(tests: Iterable[Test]) -> None:
    """Print what tests of pairs found, a line for each setting, metric and method."""
    for sentence in sentences(tests):
        print(sentence)


def sentences(tests: Iterable[Test]) -> list[str]:
    """What tests of pairs found, a sentence for each setting, metric and method."""
    pairs = [test for test in tests if len(test.methods) == 2 and test.difference is not None]
    told = []
    for about in dict.fromkeys((test.setting, test.metric, test.methods[0]) for test in pairs):
        mine = [test for test in pairs if (test.setting, test.metric, test.methods[0]) == about]
        setting, metric, method = about
        groups = (
            ("is above", [test for test in mine if test.p < LEVEL and test.difference > 0]),  # type: ignore[operator]
            ("is below", [test for test in mine if test.p < LEVEL and test.difference < 0]),  # type: ignore[operator]
            ("is not found to differ from", [test for test in mine if not test.p < LEVEL]),
        )
        said = [f"{verb} {_names(some)}" for verb, some in groups if some]
        told.append(f"{setting}, {metric}: {method} {'; '.join(said)}.")
    return told


def _names(tests: Sequence[Test]) -> str:
    """The methods that one is compared with; where they differ, with the greatest p-value."""
    names = ", ".join(test.methods[1] for test in tests)
    worst = max(test.p for test in tests)
    if not worst < LEVEL:
        return names
    return f"{names} ({p_text(worst) if len(tests) == 1 or worst < 0.001 else f'p <= {worst:.3f}'})"


def _text(row: Row) -> str:
    interval = "" if row.ci95 is None else f" ({number(row.ci95[0])}–{number(row.ci95[1])})"
    return f"{number(row.value)}{interval}" + ("" if row.paper is None else f" paper {number(row.paper)}")


def _fitting(
    titles: Sequence[str], methods: Sequence[str], cells: dict[tuple[str, str], str], width: int
) -> list[list[str]]:
    """The columns in groups that fit into so many characters, one at least in each."""
    groups: list[list[str]] = [[]]
    first = used = max(map(len, methods)) + len(" *")
    for title in titles:
        size = 2 + max(len(title), *(len(cells.get((method, title), "")) for method in methods))
        if groups[-1] and used + size > width:
            groups.append([])
            used = first
        groups[-1].append(title)
        used += size
    return groups
