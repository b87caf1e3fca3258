"""Compiled kernels on disk, under their content's hash, whole or not at all.

    kernels/softmax_1f0c...e9.py                            the source, for the reader; nothing is read from it
    kernels/softmax_1f0c...e9.contiguous.7d31...52.bin      the machine code: SHA-256 of the rest, then numba's pickle

numba's own cache (`cache=True`) is not used.  It asks for the source file's time stamp, which changes when two ranks
write the same text; cannot read from a folder that it cannot write to; and hands damaged machine code to LLVM, which
may end the process.
"""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path

from minipd.framework.files import reason, write_atomically

__all__: list[str] = []

DIGEST = hashlib.sha256().digest_size


class DamagedError(Exception):
    """A file whose content is not what was written."""


class Store:
    """A folder of kernels.  Whatever goes wrong with it costs time, never a result: the first trouble is warned of.

    Attributes:
        folder: where the files are; made when the first one is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._warned = False

    def load(self, name: str) -> bytes | None:
        """What `save` has put there; None if it is missing, damaged or cannot be read."""
        try:
            content = (self.folder / name).read_bytes()
            payload = content[DIGEST:]
            if hashlib.sha256(payload).digest() != content[:DIGEST]:
                raise DamagedError("its checksum is wrong")
            return payload
        except FileNotFoundError:
            return None
        except (OSError, DamagedError) as error:
            self.warn(f"the compiled kernel {self.folder / name} cannot be used: {reason(error)}.  It is compiled anew")
            return None

    def save(self, name: str, payload: bytes) -> None:
        self._write(name, hashlib.sha256(payload).digest() + payload)

    def save_source(self, name: str, source: str) -> None:
        """Write the source for the reader, unless it is there."""
        path = self.folder / name
        try:
            if path.read_bytes() == source.encode():
                return
        except OSError:
            pass
        self._write(name, source.encode())

    def _write(self, name: str, content: bytes) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.folder / name, content)
        except OSError as error:
            self.warn(f"compiled kernels cannot be kept in {self.folder}: {reason(error)}.  They are compiled again in "
                      "each process; set MINIPD_CACHE to a folder that can be written")

    def warn(self, message: str) -> None:
        """One warning for a store: more of the same would hide what else is said."""
        if not self._warned:
            self._warned = True
            # (no RuntimeWarning: minipd ignores its own, which are numpy's words on NaN)
            warnings.warn(message, UserWarning, stacklevel=2)
