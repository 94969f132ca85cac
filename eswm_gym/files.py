"""Files that are either as they were or whole, and JSON that knows its own hash."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class CheckpointError(ValueError):
    """A file that is not what it should be: damaged, foreign, or not the one that another file describes."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, of this writer alone; it takes the place of `path` once the block has ended without error.

    ```python
    with replacing(path) as temporary:
        temporary.write_text(text)
    ```
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        flush(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Wait until a file is on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sha256_of(path: Path) -> str:
    """The hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def checksum_of(content: Any) -> str:
    """The hash of what a JSON says, however it is laid out."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds.

    Raises:
        FileNotFoundError: if it is missing.
        CheckpointError: if it is not JSON, or no object.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} does not hold a JSON object")
    return content
