"""The check of options that are one of several names."""

from __future__ import annotations

from collections.abc import Collection


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
