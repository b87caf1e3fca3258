"""safetensors files: arrays by name, and strings by name, in a format that other frameworks read too.

A file is 8 bytes (the header's length), a JSON header (dtype, shape and place of each tensor, and `__metadata__`), and
the bytes of the tensors.  The library checks and writes it; what it lacks is numpy's bfloat16.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

from minipd.framework.errors import InputError
from minipd.framework.files import reason, replacing

__all__: list[str] = []

_NUMPY = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "I64": np.int64,
          "I32": np.int32, "I16": np.int16, "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_, "C64": np.complex64}

#: what a file can hold
STORED = frozenset(map(np.dtype, _NUMPY.values()))


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Write the file, whole or not at all.

    Raises: InputError if the folder does not exist or cannot be written.
    """
    whole = {name: np.ascontiguousarray(a).reshape(a.shape) for name, a in tensors.items()}
    try:
        with replacing(path) as temporary:
            safetensors.numpy.save_file(whole, temporary, dict(metadata or {}))
    except (OSError, safetensors.SafetensorError) as e:
        raise InputError(f"a place to write {path.name}", f"{path} ({reason(e)})",
                         "give a file name in a folder that exists and can be written") from e


def parse_tensors(data: bytes, where: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """(arrays by name, metadata) of the bytes of a file.

    Raises: InputError if they were cut short, or are something else.
    """
    try:
        found = safetensors.deserialize(data)
    except safetensors.SafetensorError as e:
        raise _not_safetensors(where, data, str(e)) from e
    header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    arrays = {}
    for name, tensor in sorted(found):
        if tensor["dtype"] not in _NUMPY:
            raise InputError(f"tensors of dtypes {', '.join(_NUMPY)}", f"{name} of {tensor['dtype']} in {where}",
                             "convert it before saving")
        arrays[name] = np.frombuffer(tensor["data"], _NUMPY[tensor["dtype"]]).reshape(tensor["shape"])
    return arrays, header.get("__metadata__", {})


def _not_safetensors(where: str, data: bytes, why: str) -> InputError:
    if data[:2] == b"PK":
        kind = "a zip archive with a pickle, as PyTorch's save() writes"
        do = "where that framework is installed, write its state dict with safetensors, and load that"
    elif "not fully covered" in why or len(data) < 8 or int.from_bytes(data[:8], "little") > len(data) > 8 and (
            data[8:9] == b"{"):
        kind, do = f"{len(data)} bytes of a file that was cut short", "copy or save it again"
    else:
        kind, do = f"something else ({why})", "load what minipd.save wrote, or any other safetensors file"
    return InputError(f"a whole safetensors file, or one of Paddle's, in {where}", kind, do)
