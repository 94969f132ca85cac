"""What benchmarks wrote, as one HTML page or as the tables of README, docs and model cards.

    python benchmarks/report.py navigate.json explore.json --out report.html  (needs the extra `plot`)
    python benchmarks/report.py --tables

The tables are made from benchmarks/results/*.json. They stand between `<!-- table: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from common.page import page
from common.reports import load
from common.tables import filled, rows_of
from page_tables import TABLES

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"


def pages() -> dict[Path, str]:
    """Every page with tables, as it should be."""
    rows = rows_of(RESULTS)
    folders = (ROOT / "docs", ROOT / "eswm_gym/world_model")
    found = [ROOT / "README.md", *(path for folder in folders for path in sorted(folder.rglob("*.md")))]
    texts = {path: path.read_text(encoding="utf-8") for path in found}
    return {path: filled(text, TABLES, rows) for path, text in texts.items() if "<!-- table: " in text}


def main(argv: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", type=Path, nargs="*", metavar="FILE.json", help="what --json of a benchmark wrote")
    options.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE", help="default: report.html")
    options.add_argument("--tables", action="store_true", help="write the tables of README and docs instead of a page")
    args = options.parse_args(argv)
    if bool(args.files) == args.tables:
        options.error("give either files or --tables")
    if args.tables:
        for path, text in pages().items():
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
        return
    try:
        reports = [load(path) for path in args.files]
    except ValueError as error:
        options.error(str(error))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(page(reports), encoding="utf-8")
    print(args.out)


if __name__ == "__main__":
    main()
