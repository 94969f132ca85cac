"""Checks of options: that they are one of several names, or of the right kind."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

NAMES = {bool: "True or False", int: "an integer", float: "a number"}


def require_choices(**options: tuple[str | None, Collection[str | None]]) -> None:
    """Refuse an option that is none of its choices.

    Args:
        **options: by name, the value and the choices.

    Raises:
        ValueError: naming the first such option, its value and its choices.
    """
    for name, (value, choices) in options.items():
        if value not in choices:
            raise ValueError(f"{name} must be one of {choices}, got {value!r}")


def require_kind(kind: type, optional: bool = False, **options: Any) -> None:
    """Refuse an option that is of another kind. NumPy's numbers are numbers; True and False are none.

    Args:
        kind: bool, int or float; an int will do for a float.
        optional: whether None will do as well.
        **options: by name, the value.

    Raises:
        ValueError: naming the first such option and its value.
    """
    number = {bool: bool, int: Integral, float: Real}[kind]
    for name, value in options.items():
        fits = isinstance(value, number) and (kind is bool) == isinstance(value, bool)
        if not fits and not (optional and value is None):
            raise ValueError(f"{name} must be {NAMES[kind]}{' or None' if optional else ''}, got {value!r}")
