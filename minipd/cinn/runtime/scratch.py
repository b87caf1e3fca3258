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

    def number(e: Expr) -> int:
        match e:
            case Const(value=value):
                return int(value)
            case Dim(param=param, axis=axis):
                return buffers[param].shape[axis]
            case Var(name=name):
                return number(known[name])
            case Binary(op=op, x=x, y=y):
                return int(BINARY[op].function(number(x), number(y)))
            case Unary(op=op, x=x):
                return int(UNARY[op].function(number(x)))
            case Select(cond=cond, x=x, y=y):
                return number(x) if number(cond) else number(y)
            case Cast(x=x):
                return number(x)
        raise TypeError(f"expected the size of an array in terms of other sizes, got {e}")
    return [np.empty(tuple(map(number, alloc.shape)), np.uint16 if alloc.dtype in STORAGE_ONLY else alloc.dtype)
            for alloc in cut.scratch]
