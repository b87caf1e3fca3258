"""Files that are whole or absent."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__: list[str] = []


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` when the block ends; after an error nothing is left of it.

    A reader finds the old file or the whole new one, never a part.  Several processes may replace the same file at
    once: each writes one of its own and renames it, the last one wins.
    """
    # Renaming is atomic only within one file system, so the temporary file lies beside its goal.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)       # there only when something went wrong, Ctrl-C included


def write_atomically(path: Path, data: str | bytes) -> None:
    """Write `data` (text as UTF-8) so that a reader finds the old file or the whole new one, never a part.

    Raises:
        OSError: the folder does not exist or cannot be written; nothing is left behind.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "note"), "whole")
    ...     os.listdir(folder), Path(folder, "note").read_text()
    (['note'], 'whole')
    """
    with replacing(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)


def reason(error: Exception) -> str:
    """Why reading or writing failed, without the path that an OSError's text repeats.

    >>> reason(FileNotFoundError(2, "No such file or directory", "a path")), reason(ValueError("embedded null byte"))
    ('No such file or directory', 'embedded null byte')
    """
    return getattr(error, "strerror", None) or str(error)
