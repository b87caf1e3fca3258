"""Functions of Python's on traced tensors: casts, `len`, `range`, `enumerate`, `zip`, `print`, `max`, `any`, ..."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.constraints import user_line
from minipd.framework.dim import DimExpr
from minipd.framework.meta import describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.jit.dy2static.branches import IfExp
from minipd.jit.dy2static.changes import Change, spent
from minipd.jit.dy2static.indexed import Indexed, make_enumerate, make_range, make_zip
from minipd.jit.dy2static.logic import And, Or, as_bool, traced, truth
from minipd.jit.dy2static.reading import READING
from minipd.ops.cast import cast
from minipd.ops.creation import full
from minipd.ops.math import maximum
from minipd.static.effects import Print

__all__: list[str] = []


def one(x: Tensor, asked: str) -> Tensor:
    """A traced tensor of one element as one of shape []; no gradient goes through what Python takes as a number."""
    if x.shape == []:
        return x.detach()
    if all(isinstance(d, int) and d != 1 for d in x.payload.shape):
        raise ValueError(f"{asked}: expected a tensor of one element, got {describe(x.payload)}; reduce it first (sum, "
                         "max, ...), or take one element by its index")
    return x.detach().reshape([])


def to_int(*args: Any, **kwargs: Any) -> Any:
    """`int(x)`: of a traced tensor, its whole part as int64."""
    return cast(one(args[0], "int()"), "int64") if args and traced(args[0]) else int(*args, **kwargs)


def to_float(*args: Any) -> Any:
    """`float(x)`: a traced tensor of floats keeps its dtype, others get the default dtype."""
    if not args or not traced(args[0]):
        return float(*args)
    x = one(args[0], "float()")
    return x if x.payload.dtype in dtypes.INEXACT else cast(x, dtypes.of(current().default_dtype).name)


def to_bool(*args: Any) -> Any:
    return truth(args[0]) if args and traced(args[0]) else bool(*args)


def length(x: Any) -> Any:
    """`len(x)`: the first dimension; as a tensor where only the program knows it."""
    if isinstance(x, Indexed):
        return maximum(x.length, full([], 0, "int64"))
    if traced(x) and x.payload.shape and isinstance(x.payload.shape[0], DimExpr):
        return Tensor(current().ground.value(x.payload.shape[0]))
    return len(x)


def largest(*args: Any, **kwargs: Any) -> Any:
    """`max(...)`: among traced tensors, the first that none is greater than."""
    return _best(max, lambda x, best: x > best, args, kwargs)


def smallest(*args: Any, **kwargs: Any) -> Any:
    return _best(min, lambda x, best: x < best, args, kwargs)


def _best(builtin: Callable, better: Callable, args: tuple, kwargs: dict) -> Any:
    items = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    if kwargs or len(items) < 2 or not any(map(traced, items)):
        return builtin(*args, **kwargs)
    best = items[0]
    for x in items[1:]:
        best = IfExp(better(x, best), _constant(x), _constant(best))
    return best


def _constant(x: Any) -> Callable[[], Any]:
    return lambda: x


def any_of(items: Any) -> Any:
    """`any(items)`: with traced tensors, a tensor."""
    return _joined(items, Or, False)


def all_of(items: Any) -> Any:
    return _joined(items, And, True)


def _joined(items: Any, join: Callable, start: bool) -> Any:
    """(As Python does, up to the first item that decides; of those that only the program knows, none does.)"""
    found: Any = start
    for x in items:
        found = join(as_bool(found), _constant(x), test=True)
        if not traced(found) and bool(found) is not start:
            return not start
    return as_bool(found)


def show(*args: Any, **kwargs: Any) -> None:
    """`print(...)`: traced tensors are printed when the program comes by, with the words before them.

    Raises: TypeError for those that are to go to a file, or are inside of something else.
    """
    if not any(map(traced, args)):
        print(*args, **kwargs)
        return
    if kwargs.get("file") not in (None, sys.stdout):
        raise TypeError(f"print: expected a traced tensor to be printed to stdout, got file={kwargs['file']!r} at "
                        f"{user_line()}: the program prints when it runs. Return the tensor and print it outside, or "
                        "compile in segments, to_static(full_graph=False)")
    words: list[str] = []
    for x in args:
        if traced(x):
            Print(x, message=" ".join(words), print_phase="forward", print_tensor_layout=False, print_tensor_lod=False)
            words = []
        else:
            words.append(str(x))
    if words:
        print(*words, **kwargs)


def set_attribute(owner: Any, name: str, value: Any) -> None:
    setattr(Change(owner, f"(...).{name}"), name, value)


def delete_attribute(owner: Any, name: str) -> None:
    delattr(Change(owner, f"(...).{name}"), name)


def log(method: Callable, *args: Any, **kwargs: Any) -> Any:
    """A function of `logging`, which would swallow the error that the text of a traced tensor is."""
    for x in args:
        if traced(x):
            str(x)
    return method(*args, **kwargs)


def advance(iterator: Any, *default: Any) -> Any:
    spent(iterator, "next()")
    return next(iterator, *default)


BUILTINS: dict[Any, Callable] = {
    builtins.int: to_int, builtins.float: to_float, builtins.bool: to_bool, builtins.len: length,
    builtins.range: make_range, builtins.enumerate: make_enumerate, builtins.zip: make_zip,
    builtins.print: show, builtins.max: largest, builtins.min: smallest, builtins.any: any_of, builtins.all: all_of,
    builtins.setattr: set_attribute, builtins.delattr: delete_attribute,
    builtins.next: advance, **READING,
}
