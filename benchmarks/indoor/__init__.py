"""Rooms seen through a camera; `python benchmarks/indoor`: see `command.py`."""
