"""`paddle.save` and `paddle.load`: nested dicts and lists of tensors and plain values, as one safetensors file.

The tensors are the file's tensors, named by their keys (`model/layers.0.weight` where dicts nest), so a saved
state_dict is a file that any reader of safetensors understands.  The nesting, the plain values and the order are JSON
in the file's metadata.  The file name says nothing about the format: `.pdparams` and `.safetensors` hold the same.
Nothing in a file is ever executed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.errors import InputError
from minipd.framework.tensor import Tensor
from minipd.io.tensor_file import read_tensors, write_tensors

__all__ = ["load", "save"]

FORMAT = "minipd"       # the metadata entry with the nesting; a file without it is a flat dict of tensors


def save(obj: Any, path: Any, protocol: int = 4, **configs: Any) -> None:
    """Write dicts, lists and tuples of Tensors, arrays, numbers, strings, bools and None.

    A tensor that comes several times is written once.  The file is written under another name and renamed: the old
    file stays until the new one is whole.  A distributed tensor is saved with its global value, which takes all its
    ranks: call `save` on each of them, with different paths.  protocol: accepted for Paddle's sake.

    Raises: TypeError for other values, naming where they are; InputError if the path cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> from minipd.ops.creation import to_tensor
    >>> with TemporaryDirectory() as folder:
    ...     save({"w": to_tensor([1.5], dtype="bfloat16"), "step": 3}, f"{folder}/state.pdparams")
    ...     load(f"{folder}/state.pdparams")
    {'w': Tensor(shape=[1], dtype=bfloat16, place=Place(cpu), stop_gradient=True,
           [1.50000000]), 'step': 3}
    """
    if hasattr(obj, "state_dict"):
        raise TypeError(f"save: expected values, got a {type(obj).__name__}; save its state_dict()")
    tensors: dict[str, np.ndarray] = {}
    tree = _Writer(tensors).node(obj, ())
    write_tensors(Path(path), tensors, {FORMAT: json.dumps(tree)})


def load(path: Any, return_numpy: bool = False, **configs: Any) -> Any:
    """What `save` wrote; of a safetensors file from elsewhere, its tensors by name.

    return_numpy: arrays in place of Tensors.
    Raises: InputError if there is no file, it was cut short, or it is something else (a pickle, say).
    """
    arrays, metadata = read_tensors(Path(path))
    make = np.array if return_numpy else _tensor
    if FORMAT not in metadata:
        return {name: make(a) for name, a in arrays.items()}
    try:
        return _read(json.loads(metadata[FORMAT]), arrays, make, {})
    except (ValueError, KeyError, TypeError) as e:
        raise InputError(f"the nesting that minipd.save writes in {path}", f"something else ({e!r})",
                         "save the file again") from e


def _tensor(array: np.ndarray) -> Tensor:
    return Tensor(np.array(array))                      # its own memory, which may be written


class _Writer:
    """Builds the JSON tree: plain values as they are, everything else as {kind: content}."""

    def __init__(self, tensors: dict[str, np.ndarray]):
        self.tensors = tensors
        self.names: dict[int, str] = {}                 # id of a Tensor -> the name it is written under
        self.alive: list[Any] = []                      # keeps those ids unique

    def node(self, x: Any, at: tuple[str, ...]) -> Any:
        if x is None or type(x) in (bool, int, float, str):
            return x
        if isinstance(x, dict):
            return {"dict": [[self.key(k, at), self.node(v, (*at, str(k)))] for k, v in x.items()]}
        if isinstance(x, (list, tuple)):
            return {"tuple" if isinstance(x, tuple) else "list":
                    [self.node(v, (*at, str(i))) for i, v in enumerate(x)]}
        if isinstance(x, Tensor):
            if id(x) not in self.names:
                self.names[id(x)] = self.add(x.values(f"save of {'/'.join(at)}"), at)
                self.alive.append(x)
            return {"tensor": self.names[id(x)]}
        if isinstance(x, (np.ndarray, np.generic)):
            return {"array": self.add(np.asarray(x), at)}
        raise TypeError(f"save: expected Tensors, arrays, numbers, strings, bools, None, or dicts, lists and tuples of "
                        f"them, got {type(x).__name__} at {'/'.join(at) or 'the top'}")

    def key(self, k: Any, at: tuple[str, ...]) -> Any:
        if type(k) not in (str, int):
            raise TypeError(f"save: expected keys that are strings or ints, got {k!r} at {'/'.join(at) or 'the top'}")
        return k

    def add(self, array: np.ndarray, at: tuple[str, ...]) -> str:
        dtypes.of(array.dtype)                          # a dtype that minipd has
        name = "/".join(at) or "value"
        while name in self.tensors:
            name += "_"
        self.tensors[name] = array
        return name


def _read(node: Any, arrays: dict[str, np.ndarray], make: Any, made: dict[str, Any]) -> Any:
    if not isinstance(node, dict):
        return node
    (kind, content), = node.items()
    if kind == "dict":
        return {k: _read(v, arrays, make, made) for k, v in content}
    if kind in ("list", "tuple"):
        items = [_read(v, arrays, make, made) for v in content]
        return tuple(items) if kind == "tuple" else items
    if kind == "array":
        return np.array(arrays[content])
    if kind == "tensor":
        if content not in made:                         # a tensor that came twice is one tensor again
            made[content] = make(arrays[content])
        return made[content]
    raise ValueError(f"unknown kind {kind!r}")
