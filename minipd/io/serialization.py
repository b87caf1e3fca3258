"""`paddle.save` and `paddle.load`: nested dicts and lists of tensors and plain values, in a file.

    model.pdparams, *.pdopt, ...    Paddle's format: what Paddle writes can be read, and the other way round
    model.safetensors               the format that other frameworks read too (`nested`)

Whatever a file is called, `load` looks at what is in it.  Nothing in a file is ever executed.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minipd.framework.errors import InputError
from minipd.framework.files import reason, replacing
from minipd.framework.tensor import Tensor
from minipd.io import binary_tensor, nested, pickled
from minipd.io.unpickling import Refused

__all__ = ["load", "save"]

class Kind(NamedTuple):
    """Something else that can be saved on its own, in a file that begins with `head`."""

    head: bytes
    fits: Callable[[Any], bool]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]      # raises ValueError for what `encode` cannot have made


#: what later floors add: programs
KINDS: list[Kind] = []

SAVE_OPTIONS = ("use_binary_format", "pickle_protocol")
LOAD_OPTIONS = ("return_numpy", "keep_name_table", "model_filename", "params_filename")


def save(obj: Any, path: Any, protocol: int = 4, **configs: Any) -> None:
    """Write dicts, lists and tuples of Tensors, arrays, numbers, strings, bools and None.

    path: a file name, whose folder is made if need be, or a binary file object.  The file is written under another name
    and renamed: the old file stays until the new one is whole.  A tensor that comes several times is written once.  A
    distributed tensor is saved with its global value, which takes all its ranks: call `save` on each of them, with
    different paths.
    protocol: of the pickle, 2 to 4.  use_binary_format: write a single tensor as Paddle's C++ side does.

    Raises: TypeError for other values, naming where they are; ValueError for an unknown protocol or option; InputError
    if the path cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> from minipd.ops.creation import to_tensor
    >>> with TemporaryDirectory() as folder:
    ...     save({"w": to_tensor([1.5], dtype="bfloat16"), "step": 3}, f"{folder}/state.pdparams")
    ...     found = load(f"{folder}/state.pdparams")
    >>> found["w"].tolist(), found["w"].dtype, found["step"]
    ([1.5], paddle.bfloat16, 3)
    """
    _check_options("save", configs, SAVE_OPTIONS)
    if hasattr(obj, "get_tensor"):                      # a variable of a scope
        obj = Tensor(np.array(obj))
    if hasattr(obj, "state_dict") and not any(kind.fits(obj) for kind in KINDS):
        raise TypeError(f"save: expected values, got a {type(obj).__name__}; save its state_dict()")
    if isinstance(protocol, bool) or not isinstance(protocol, int) or not 2 <= protocol <= 4:
        raise ValueError(f"save: expected protocol 2, 3 or 4, got {protocol!r}")
    if hasattr(path, "write"):
        _write(obj, path, protocol, configs)
        return
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".safetensors":
            nested.write(obj, path)
            return
        with replacing(path) as temporary, open(temporary, "wb") as file:
            _write(obj, file, protocol, configs)
    except OSError as e:
        raise InputError(f"a place to write {path.name}", f"{path} ({reason(e)})",
                         "give a file name in a folder that exists or can be made") from e


def _write(obj: Any, file: Any, protocol: int, configs: dict) -> None:
    kind = next((k for k in KINDS if k.fits(obj)), None)
    if kind is not None:
        file.write(kind.head + kind.encode(obj))
    elif not configs.get("use_binary_format"):
        pickled.dump(obj, file, protocol)
    elif isinstance(obj, Tensor):
        file.write(binary_tensor.encode(obj.values("save")))
    else:
        raise TypeError(f"save: expected a single tensor with use_binary_format, got a {type(obj).__name__}")


def load(path: Any, **configs: Any) -> Any:
    """What `save` wrote, or Paddle's own `save`; of a safetensors file from elsewhere, its tensors by name.

    path: a file name, or a binary file object, of which one saved object is read.
    return_numpy: arrays in place of Tensors (bfloat16 as Paddle gives it, as uint16).  keep_name_table: leave the names
    of a state dict's tensors in it.
    Raises: InputError if there is no file, it was cut short, or it is something else: also where it asks for anything
    but plain values and arrays, as a pickle may.
    """
    _check_options("load", configs, LOAD_OPTIONS)
    as_numpy = bool(configs.get("return_numpy"))
    if hasattr(path, "read"):
        return _read(path, "a file object", as_numpy, configs)
    path = Path(path)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as e:
        raise InputError("a file to load", f"{path} ({reason(e)})", "check the path") from e
    return _read(io.BytesIO(data), str(path), as_numpy, configs)


def _read(file: Any, where: str, as_numpy: bool, configs: dict) -> Any:
    start = file.tell()
    head = file.read(20)
    file.seek(start)
    if head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        try:
            return pickled.load(file, as_numpy, bool(configs.get("keep_name_table")))
        except Refused as e:
            raise InputError(f"tensors, arrays and plain values in {where}", str(e),
                             "a file that was cut short must be copied or saved again; one that asks for more than "
                             "data would run code, and is not loaded") from e
    if head[:16] == binary_tensor.HEAD:
        try:
            array = binary_tensor.decode(file.read())
        except ValueError as e:
            raise InputError(f"a whole binary tensor in {where}", str(e), "copy or save it again") from e
        return array if as_numpy else Tensor(array)
    for kind in KINDS:
        if head.startswith(kind.head):
            try:
                return kind.decode(file.read()[len(kind.head):])
            except ValueError as e:
                raise InputError(f"what save has written in {where}", str(e), "copy or save it again") from e
    return nested.read(file.read(), where, np.array if as_numpy else _tensor)


def _tensor(array: np.ndarray) -> Tensor:
    return Tensor(np.array(array))                      # its own memory, which may be written


def _check_options(what: str, configs: dict, known: tuple[str, ...]) -> None:
    unknown = [name for name in configs if name not in known]
    if unknown:
        raise ValueError(f"{what}: expected options among {', '.join(known)}, got {', '.join(unknown)}")
