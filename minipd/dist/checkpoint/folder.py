"""The files of a checkpoint.

    0_0.distcp, 1_0.distcp      what ranks 0 and 1 wrote of the checkpoint number 0: a dict of arrays, as `paddle.save`
                                writes it; 0_0.safetensors if so wished
    0.metadata                  which block of which tensor is in which file
    0.index.json                what Paddle has no place for: checksums, and values that are no tensors

Files are written under other names.  When all are there, one rank removes the metadata of the checkpoint before, puts
the files into place, and the metadata last: a checkpoint is there as soon as its metadata is.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from minipd.framework import dtype as dtypes
from minipd.framework.errors import InputError
from minipd.framework.files import reason, write_atomically
from minipd.framework.tensor import Tensor
from minipd.io import pickled, serialization

__all__: list[str] = []

FORMAT = 1
DATA = re.compile(r"\d+_(\d+)\.(?:distcp|safetensors)")
METADATA = re.compile(r"(\d+)\.metadata")
WRITTEN = ".written"


def latest(folder: Path) -> int | None:
    """The highest number of a checkpoint in the folder; None if there is none."""
    if not folder.is_dir():
        return None
    found = [DATA.fullmatch(name) or METADATA.fullmatch(name) for name in os.listdir(folder)]
    return max((int(m[1]) for m in found if m), default=None)


def checksum(array: np.ndarray) -> int:
    """Of the bytes of an array."""
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data) if array.size else 0


def write_data(path: Path, arrays: Mapping[str, np.ndarray], names: Mapping[str, str]) -> None:
    """A data file, under the name that says that it is complete and not yet in place.   names: of the tensors, by
    key."""
    temporary = path.with_name(path.name + ".writing")
    if path.suffix == ".safetensors":
        save_file({key: np.asarray(a, order="C") for key, a in arrays.items()}, temporary)
    else:
        tensors = {}
        for key, array in arrays.items():
            tensors[key] = Tensor(array)
            tensors[key].name = names[key]
        with open(temporary, "wb") as file:
            pickled.dump(tensors, file, 4)
    os.replace(temporary, written(path))


def written(path: Path) -> Path:
    """The name of a complete file that is not in place."""
    return path.with_name(path.name + WRITTEN)


def publish(folder: Path, number: int, files: Iterable[str], metadata: bytes, index: dict[str, Any]) -> None:
    """Put the files of a checkpoint, all of which are complete, into place."""
    (folder / f"{number}.metadata").unlink(missing_ok=True)
    (folder / f"{number}.index.json").unlink(missing_ok=True)
    for name in os.listdir(folder):
        found = DATA.fullmatch(name)
        if found and int(found[1]) == number:
            (folder / name).unlink()
    for name in files:
        os.replace(written(folder / name), folder / name)
    write_atomically(folder / f"{number}.index.json", json.dumps({"format": FORMAT, **index}))
    write_atomically(folder / f"{number}.metadata", metadata)


def read_index(path: Path) -> dict[str, Any]:
    """What Paddle has no place for; nothing, if Paddle wrote the checkpoint."""
    if not path.exists():
        return {"checksums": {}, "values": []}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != FORMAT or not isinstance(found["checksums"], dict):
            raise ValueError(f"format {found['format']}")
        [(tuple(path), value) for path, value in found["values"]]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise InputError(f"an index of format {FORMAT}", f"{path} ({e!r})", "use another checkpoint") from None
    return found


class DataFile:
    """A data file that is read from."""

    def __init__(self, path: Path, checksums: Mapping[str, int] | None):
        self.path, self.checksums = path, checksums
        self._arrays: Any = None
        if path.suffix != ".safetensors":
            found = serialization.load(path, return_numpy=True)
            if not isinstance(found, dict):
                raise InputError("a dict of tensors", f"a {type(found).__name__} in {path}", "use another checkpoint")
            self._arrays = found

    def read(self, key: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """A block.   InputError unless it has this shape, dtype and the checksum that was noted when it was written."""
        if self._arrays is not None:
            array = self._arrays.get(key)
        else:
            try:
                with safe_open(self.path, framework="numpy") as file:
                    array = file.get_tensor(key)
            except (OSError, SafetensorError) as e:
                raise InputError(f"{key} in a whole safetensors file", f"{self.path} ({_why(e)})",
                                 "use another checkpoint") from None
        if isinstance(array, np.ndarray) and dtype == dtypes.bfloat16.np and array.dtype == np.uint16:
            array = array.view(dtype)
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
            got = f"{array.dtype} {list(array.shape)}" if isinstance(array, np.ndarray) else "nothing"
            raise InputError(f"{key}: {dtype} {list(shape)}, as the metadata says", f"{got} in {self.path}",
                             "use another checkpoint")
        if self.checksums is not None and self.checksums.get(key) != checksum(array):
            raise InputError(f"{key} as it was saved", f"other values in {self.path}: its checksum differs",
                             "use another checkpoint, or copy this one again")
        return array


def _why(e: Exception) -> str:
    return reason(e) if isinstance(e, OSError) else str(e)
