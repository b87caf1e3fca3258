"""Paddle's `.pdiparams`: binary tensors one after the other, in the order of their names.

The names themselves stand in the program beside it.  A file is measured before anything is read from it: where each
tensor begins, and that its values are there; so a size that a damaged file claims is never allocated.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minipd.framework.errors import InputError
from minipd.framework.files import reason, replacing
from minipd.io import binary_tensor
from minipd.io.binary_tensor import Description

__all__: list[str] = []


class Entry(NamedTuple):
    """A tensor of a file: what it is, and where its values begin."""

    what: Description
    start: int


def write_combined(path: Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Write the file, whole or not at all.

    Raises: InputError if the folder does not exist or cannot be written.
    """
    try:
        with replacing(path) as temporary, open(temporary, "wb") as out:
            _write(out, tensors)
    except OSError as e:
        raise InputError(f"a place to write {path.name}", f"{path} ({reason(e)})",
                         "give a file name in a folder that exists and can be written") from e


def combined(tensors: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of the file.

    >>> data = combined({"b": np.float32([1, 2]), "a": np.int64(3)})
    >>> separated(data, ["a", "b"])
    {'a': array(3), 'b': array([1., 2.], dtype=float32)}
    """
    out = io.BytesIO()
    _write(out, tensors)
    return out.getvalue()


def _write(out: Any, tensors: Mapping[str, np.ndarray]) -> None:
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name]).reshape(np.shape(tensors[name]))
        out.write(binary_tensor.preamble(array))
        out.write(array.tobytes() if array.ndim == 0 or not array.size else array.view(np.uint8).data)


def read_combined(path: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """The tensors of a file, by the names in the program that it belongs to.

    Raises: InputError for a file that is not there, is damaged, or has another number of tensors.
    """
    try:
        with open(path, "rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size, names, str(path))
    except OSError as e:
        raise InputError(f"the file {path.name} with the parameters of the program", f"{path} ({reason(e)})",
                         "copy it to where the program is") from e


def separated(data: bytes, names: Iterable[str], where: str = "the data") -> dict[str, np.ndarray]:
    """The tensors in the bytes of a file; as `read_combined`."""
    return _read(io.BytesIO(data), len(data), names, where)


def _read(file: Any, size: int, names: Iterable[str], where: str) -> dict[str, np.ndarray]:
    wanted, found = sorted(set(names)), list(entries(file, size, where))
    if len(wanted) != len(found):
        raise InputError(f"{len(wanted)} tensors, one for each name in the program", f"{len(found)} in {where}",
                         "take program and parameters from the same save")
    return {name: _values(file, entry, where) for name, entry in zip(wanted, found, strict=True)}


def entries(file: Any, size: int, where: str) -> Iterable[Entry]:
    """What a file of `size` bytes holds, tensor after tensor; only what stands before the values is read.

    That is `binary_tensor.BEFORE` bytes, which say how long the description is, and the description.
    Raises: InputError at the first thing that is no tensor, or reaches over the end.
    """
    position = number = 0
    while position < size:
        file.seek(position)
        try:
            n = binary_tensor.description_length(file.read(binary_tensor.BEFORE))
            what = binary_tensor.described(file.read(n))
        except ValueError as error:
            raise InputError("tensors one after the other, as Paddle's .pdiparams has them",
                             f"{error} at byte {position} of {where} (tensor {number})",
                             "copy or save the file again") from error
        start = position + binary_tensor.BEFORE + n
        if what.nbytes > size - start:
            raise InputError(f"{what.nbytes} bytes of values for tensor {number}, {what.dtype}{list(what.shape)}",
                             f"{max(0, size - start)} bytes to the end of {where}",
                             "copy or save the file again; it was cut short or damaged")
        yield Entry(what, start)
        position, number = start + what.nbytes, number + 1


def _values(file: Any, entry: Entry, where: str) -> np.ndarray:
    array = np.empty(entry.what.nbytes, np.uint8)
    file.seek(entry.start)
    if file.readinto(array.data) != len(array):
        raise InputError("a file that does not change while it is read", f"less than there was in {where}",
                         "load it again when it has been written")
    return array.view(entry.what.dtype).reshape(entry.what.shape)
