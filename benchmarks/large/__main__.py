"""`python benchmarks/large`: see `command.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # benchmarks/, where the packages `common` and `large` are

from large.command import main  # noqa: E402

main()
