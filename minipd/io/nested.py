"""Nested dicts and lists of tensors as one safetensors file.

The tensors are the file's tensors, named by their keys (`model/layers.0.weight` where dicts nest), so a saved
state_dict is a file that any reader of safetensors understands.  The nesting, the plain values and the order are JSON
in the file's metadata.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from minipd.framework.errors import InputError
from minipd.framework.tensor import Tensor
from minipd.io.tensor_file import STORED, parse_tensors, write_tensors

__all__: list[str] = []

FORMAT = "minipd"       # the metadata entry with the nesting; a file without it is a flat dict of tensors


def write(obj: Any, path: Path) -> None:
    """Write the file.   TypeError for values that it has no place for, naming where they are."""
    tensors: dict[str, np.ndarray] = {}
    tree = _Writer(tensors).node(obj, ())
    write_tensors(path, tensors, {FORMAT: json.dumps(tree)})


def read(data: bytes, where: str, make: Callable[[np.ndarray], Any]) -> Any:
    """What `write` wrote; of another safetensors file, its tensors by name.

    make: from an array, what stands for a tensor.
    Raises: InputError for a file that was cut short, or is something else.
    """
    arrays, metadata = parse_tensors(data, where)
    if FORMAT not in metadata:
        return {name: make(a) for name, a in arrays.items()}
    try:
        return _rebuilt(json.loads(metadata[FORMAT]), arrays, make, {})
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise InputError(f"the nesting that minipd.save writes in {where}", f"something else ({e!r})",
                         "save the file again") from e


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
        if array.dtype not in STORED:
            raise TypeError(f"save: expected a dtype that safetensors has, got {array.dtype} at "
                            f"{'/'.join(at) or 'the top'}; Paddle's format, under another file name, has it")
        name = "/".join(at) or "value"
        while name in self.tensors:
            name += "_"
        self.tensors[name] = array
        return name


def _rebuilt(node: Any, arrays: dict[str, np.ndarray], make: Any, made: dict[str, Any]) -> Any:
    if not isinstance(node, dict):
        return node
    (kind, content), = node.items()
    if kind == "dict":
        return {k: _rebuilt(v, arrays, make, made) for k, v in content}
    if kind in ("list", "tuple"):
        items = [_rebuilt(v, arrays, make, made) for v in content]
        return tuple(items) if kind == "tuple" else items
    if kind == "array":
        return np.array(arrays[content])
    if kind == "tensor":
        if content not in made:                         # a tensor that came twice is one tensor again
            made[content] = make(arrays[content])
        return made[content]
    raise ValueError(f"unknown kind {kind!r}")
