"""`python benchmarks/predict`: see `command.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # benchmarks/, where the packages `common` and `predict` are

from predict.command import main  # noqa: E402

main()
