"""Files that are whole or absent."""

import os
import uuid
from pathlib import Path


def write_atomically(path: Path, data: str | bytes) -> None:
    """Write `data` (text as UTF-8) so that a reader finds the old file or the whole new one, never a part.

    Several processes may write the same path at once: each writes a file of its own and renames it, the last one wins.

    Raises:
        OSError: the folder does not exist or cannot be written; nothing is left behind.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "note"), "whole")
    ...     os.listdir(folder), Path(folder, "note").read_text()
    (['note'], 'whole')
    """
    # Renaming is atomic only within one file system, so the temporary file lies beside its goal.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)  # there only when something went wrong, Ctrl-C included


def reason(error: Exception) -> str:
    """Why reading or writing failed, without the path that an OSError's text repeats.

    >>> reason(FileNotFoundError(2, "No such file or directory", "a path")), reason(ValueError("embedded null byte"))
    ('No such file or directory', 'embedded null byte')
    """
    return getattr(error, "strerror", None) or str(error)
