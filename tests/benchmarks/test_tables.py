"""Tables of pages: the figures of rows, as the specification says; none on a page is stale."""

import pytest
import report
from common.rows import Row
from common.tables import Table, filled
from page_tables import TABLES

ROWS = {
    "navigate": [
        Row("walls", "eswm", "success_rate", 0.98765, (0.97, 0.99), 2000, paper=0.5),
        Row("walls", "eswm", "success_rate", 0.5, (0.25, 0.75), 4, along="length", at=3),
        Row("walls", "eswm", "success_rate", 0.75, None, 4, along="length", at=5),
        Row("walls", "random", "success_rate", 0.25, (0.2, 0.3), 999),
        Row("walls", "random", "accuracy/seen/end", 1.0, None, 1),
    ]
}
TABLE = Table(
    "method",
    {"`eswm`": {"method": "eswm"}, "`random`": {"method": "random"}, "paper": {"method": "eswm", "show": "paper"}},
    {
        "success, seen ends": [{"metric": "success_rate", "digits": 2}, {"metric": "accuracy/{kind}/end"}],
        "of length 3": {"metric": "success_rate", "at": 3},
        "of the longest": {"metric": "success_rate", "at": "last"},
        "n": {"metric": "success_rate", "show": "n"},
    },
    {"file": "navigate", "setting": "walls", "kind": "seen"},
)


def test_a_table_by_hand():
    """An interval stands where fewer than 1,000 observations are, if there is one."""
    columns = dict(TABLE.columns)
    del columns["n"]
    table = Table(TABLE.head, TABLE.lines, columns, TABLE.every)
    assert table.markdown(ROWS).splitlines() == [
        "| method | success, seen ends | of length 3 | of the longest |",
        "|---|---|---|---|",
        "| `eswm` | 0.99 / – | 0.500 (0.250–0.750) | 0.750 |",
        "| `random` | 0.25 (0.20–0.30) / 1.000 |  | 0.250 (0.200–0.300) |",
        "| paper | 0.50 / – |  |  |",
    ]
    assert "| `eswm` | 0.99 / – | 0.500 (0.250–0.750) | 0.750 | 2,000 |" in TABLE.markdown(ROWS)


def test_a_table_is_not_left_empty():
    """A line or a column without any figure is a mistake in the specification or in the files."""
    lines = {**TABLE.lines, "`epn`": {"method": "epn"}}
    with pytest.raises(ValueError, match="no benchmark wrote a figure for '`epn`'$"):
        Table("method", lines, TABLE.columns, TABLE.every).markdown(ROWS)
    with pytest.raises(ValueError, match="'of length 9'$"):
        columns = {**TABLE.columns, "of length 9": {"metric": "success_rate", "at": 9}}
        Table("method", TABLE.lines, columns, TABLE.every).markdown(ROWS)


def test_pages_are_filled_between_the_marks():
    page = "before\n<!-- table: a -->\nold\n<!-- end -->\nafter <!-- end -->\n"
    once = filled(page, {"a": TABLE}, ROWS)
    assert once.startswith("before\n<!-- table: a -->\n\n| method |") and once.endswith(
        "|\n\n<!-- end -->\nafter <!-- end -->\n"
    )
    assert "old" not in once and filled(once, {"a": TABLE}, ROWS) == once
    with pytest.raises(ValueError, match="no table 'b', only a"):
        filled(page.replace("table: a", "table: b"), {"a": TABLE}, ROWS)


def test_no_table_is_stale():
    """`python benchmarks/report.py --tables` would change nothing, and there is a place for each table."""
    pages = report.pages()
    stale = [path.name for path, text in pages.items() if path.read_text(encoding="utf-8") != text]
    assert not stale, f"run `python benchmarks/report.py --tables`: {', '.join(stale)}"
    for name in TABLES:
        assert any(f"<!-- table: {name} -->" in text for text in pages.values()), name
