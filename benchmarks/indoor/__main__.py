"""`python benchmarks/indoor`: see `command.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # benchmarks/, where the packages `common` and `indoor` are

from indoor.command import main  # noqa: E402

main()
