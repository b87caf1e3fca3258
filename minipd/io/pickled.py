"""Paddle's own file format: `.pdparams`, `.pdopt` and whatever else `paddle.save` writes.

A file is a pickle.  A tensor in it is `tuple((name, array))`.  A state dict, a dict of tensors and perhaps of dicts
without tensors, is flat instead: arrays by key, and under `StructuredToParameterName@@` the names of the tensors.
bfloat16 is written as uint16, which no other tensor is.  Protocols below 4 cannot hold arrays of 4 GB: Paddle cuts
these into pieces, listed under `UnpackBigParamInfor@@`.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.tensor import Tensor
from minipd.io import unpickling

__all__: list[str] = []

NAMES, PIECES = "StructuredToParameterName@@", "UnpackBigParamInfor@@"
PLAIN = (type(None), bool, int, float, complex, str, bytes)
KEYS = (str, int, float, bool, type(None))


def dump(obj: Any, file: Any, protocol: int) -> None:
    """Write `obj` as Paddle does.   TypeError, before anything is written, for what a load would refuse."""
    check(obj, ())
    if isinstance(obj, dict) and _is_state(obj):
        named = {k: t.name for k, t in obj.items() if isinstance(t, Tensor)}
        arrays = {id(t): _array(t, str(k)) for k, t in obj.items() if isinstance(t, Tensor)}
        obj = {k: arrays.get(id(t), t) for k, t in obj.items()}         # one array for a tensor that comes twice
        obj[NAMES] = named
    _Pickler(file, protocol).dump(obj)


def load(file: Any, as_numpy: bool, keep_names: bool) -> Any:
    """What `dump`, or Paddle, wrote.   Refused (`unpickling`) for a file that is something else."""
    def tensor(name: str, array: np.ndarray) -> Any:
        if as_numpy:
            return array
        made = Tensor(array.view(dtypes.bfloat16.np) if array.dtype == np.uint16 else array)
        made.name = name
        return made

    found = unpickling.load(file, tensor)
    if not isinstance(found, dict):
        return found
    if PIECES in found:
        _join(found)
    names: dict = found.get(NAMES, {})
    if NAMES not in found and all(isinstance(v, np.ndarray) for v in found.values()):
        names = {key: key for key in found}     # a state dict of a time before there were names
    made: dict[int, Any] = {}           # id of an array -> its tensor, the same one wherever the array comes
    for key, array in list(found.items()):
        if isinstance(array, np.ndarray) and key in names:
            if id(array) not in made:
                made[id(array)] = tensor(str(names[key]), array)
            found[key] = made[id(array)]
    if not keep_names:
        found.pop(NAMES, None)
    return found


def check(x: Any, at: tuple[str, ...]) -> None:
    """TypeError, naming where, unless `x` is made of what can be loaded again."""
    where = "/".join(at) or "the top"
    if isinstance(x, dict):
        for key, value in x.items():
            for part in key if isinstance(key, tuple) else (key,):
                if not isinstance(part, KEYS):
                    raise TypeError(f"save: expected keys that are strings or numbers, got {key!r} at {where}")
            check(value, (*at, str(key)))
    elif isinstance(x, (list, tuple)) and type(x) in (list, tuple):
        for i, value in enumerate(x):
            check(value, (*at, str(i)))
    elif isinstance(x, (set, frozenset)) and all(isinstance(v, PLAIN) for v in x):
        pass
    elif isinstance(x, (np.ndarray, np.generic)):
        if x.dtype.kind not in "biufc":
            raise TypeError(f"save: expected arrays of numbers, got one of {x.dtype} at {where}"
                            + ("; make a tensor of it" if x.dtype == dtypes.bfloat16.np else ""))
    elif not isinstance(x, (Tensor, *PLAIN)):
        raise TypeError(f"save: expected Tensors, arrays, numbers, strings, bools, None, or dicts, lists and tuples of "
                        f"them, got {type(x).__name__} at {where}")


def _is_state(obj: dict) -> bool:
    values = list(obj.values())
    return any(isinstance(v, Tensor) for v in values) and all(
        isinstance(v, Tensor) or isinstance(v, dict) and not _has_tensor(v) for v in values)


def _has_tensor(x: Any) -> bool:
    if isinstance(x, (dict, list, tuple)):
        return any(map(_has_tensor, x.values() if isinstance(x, dict) else x))
    return isinstance(x, Tensor)


def _array(t: Tensor, at: str) -> np.ndarray:
    """The values as the format has them."""
    values = np.ascontiguousarray(t.values(f"save of {at}")).reshape(tuple(t.shape))
    return values.view(np.uint16) if values.dtype == dtypes.bfloat16.np else values


class _Pickler(pickle.Pickler):
    def reducer_override(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            return tuple, ((x.name, _array(x, x.name)),)
        if isinstance(x, dict) and type(x) not in (dict, OrderedDict):
            return dict, (), None, None, iter(x.items())
        return NotImplemented


def _join(found: dict) -> None:
    """Put arrays together that were cut into pieces."""
    for key, how in found.pop(PIECES).items():
        pieces = [found.pop(name) for name in how["slices"]]
        found[key] = np.concatenate([p.ravel() for p in pieces]).reshape(how["OriginShape"])
