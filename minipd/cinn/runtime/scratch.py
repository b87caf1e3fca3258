"""The scratch arrays of a call: as large as the sizes of its arrays make them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from minipd.cinn.codegen.phases import Phases
from minipd.cinn.ir.ast import STORAGE_ONLY, Binary, Cast, Const, Dim, Expr, Select, Unary, Var
from minipd.cinn.ir.operators import BINARY, UNARY

__all__ = ["scratch_arrays"]


def scratch_arrays(cut: Phases, buffers: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """New arrays for a call on `buffers`, by the parameters' names."""
    if not cut.scratch:
        return []
    known = {let.name: let.value for let in cut.before}
    return [np.empty(tuple(_size(n, known, buffers) for n in alloc.shape),
                     np.uint16 if alloc.dtype in STORAGE_ONLY else alloc.dtype) for alloc in cut.scratch]


def _size(e: Expr, known: Mapping[str, Expr], buffers: Mapping[str, np.ndarray]) -> int:
    """A size as a number.  (A function that calls itself by a name of its caller's would be a cycle, which keeps a
    call's arrays until the garbage collector comes.)"""
    match e:
        case Const(value=value):
            return int(value)
        case Dim(param=param, axis=axis):
            return buffers[param].shape[axis]
        case Var(name=name):
            return _size(known[name], known, buffers)
        case Binary(op=op, x=x, y=y):
            return int(BINARY[op].function(_size(x, known, buffers), _size(y, known, buffers)))
        case Unary(op=op, x=x):
            return int(UNARY[op].function(_size(x, known, buffers)))
        case Select(cond=cond, x=x, y=y):
            return _size(x if _size(cond, known, buffers) else y, known, buffers)
        case Cast(x=x):
            return _size(x, known, buffers)
    raise TypeError(f"expected the size of an array in terms of other sizes, got {e}")
