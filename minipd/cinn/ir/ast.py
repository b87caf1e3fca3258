"""The loop IR: what a fusion group becomes before it is a kernel.  Plain frozen data, compared by value.

    Function = (name, Param*, Stmt, comment)       comment: the operators that it fuses, but for constants
    Param    = (name, dtype, ndim, output, view)   an array of the caller
    Stmt     = Seq(Stmt*)
             | For(var, extent, Stmt, kind, annotations)     var: int64, 0 .. extent - 1
             | IfThenElse(Expr, Stmt, Stmt | None)
             | ScheduleBlock(name, IterVar*, Expr*, Stmt, predicate, annotations)
             | Store(buffer, Expr*, Expr)          buffer[index] = value
             | Reduce(buffer, Expr*, op, Expr)     buffer[index] = buffer[index] op value
             | Let(name, Expr)                     a scalar that never changes, known to the end of its Seq
             | Init(name, Expr)                    a scalar accumulator, known to the end of its Seq
             | Accumulate(name, op, Expr)          name = name op value
             | Alloc(buffer, Expr*, dtype, memory) a local array, known to the end of its Seq; its values are undefined
             | SyncThreads()
    IterVar  = (name, extent, "S" | "R")           spatial, or reduced
    Expr     = Const(value) | Var(name) | Load(buffer, Expr*) | Dim(buffer, axis)
             | Unary(op, Expr) | Binary(op, Expr, Expr) | Select(Expr, Expr, Expr) | Cast(Expr) | Call(name, Expr*)
    kind     = "serial" | "parallel" | "vector" | "unroll" | "blockIdx.x" .. "blockIdx.z" | "threadIdx.x" ..
    memory   = "local" | "shared" | "global"
    op       = "add" | "mul" | "max" | "min" | "and" | "or"         of Reduce and Accumulate

There are two forms.  In *block form*, where a Function is scheduled, all work stands in ScheduleBlocks: each says what
one element of one buffer is, in terms of its iter vars, and the loops around say in which order the elements are made.
`verify` says what else holds.  In *flat form*, of which code is made, there are no blocks and no iter vars any more,
and what one iteration hands to the next statement is a scalar.  `optim.finalize` makes the second of the first.

Every Expr has a dtype; `__post_init__` checks it, so that an ill-typed tree cannot be built.  The rules:

* Both sides of a Binary have one dtype, which is the result's; comparisons give bool.  A Select is evaluated like
  numpy's `where`: both sides are, and a NaN in the one not chosen does no harm.  What must not be read stands in an
  IfThenElse.
* Indices, sizes and extents are ints (int64 unless said otherwise); of indices and sizes there is one per axis of the
  buffer, and none is negative.  A loop whose extent is negative has no iterations; where iterations are shared out,
  in a "parallel" loop or on a GPU, it is not.  Int arithmetic wraps around; `floordiv` and `mod` are floor's, as in
  Python.
* bfloat16 and float16 are for storage only: Load, Cast, Store and Const have them, arithmetic does not.
* `max` and `min` give NaN if either side is NaN, as numpy's maximum.  `and`, `or`, `not` are for bool.
* The order of an Accumulate or a Reduce over the iterations of a loop is open for floats (that is what vectorizes it):
  who needs a bound on the rounding error, splits the loop.
* Iterations of a "parallel" loop may run in any order and at once: none reads or writes what another one writes; those
  of a "vector" loop may be interleaved likewise, but for Accumulate and Reduce.  No vector loop contains a loop.
* The iterations of a "blockIdx" loop are as those of a parallel one.  Those of a "threadIdx" loop run at once, and meet
  at each SyncThreads, to which all of them come or none; between two of these, none touches what another one writes.
  "shared" arrays belong to one GPU block, "local" ones (there) to one thread.
* `Param.view` lists, for each axis of the buffer, which adjacent axes of the caller's array it merges:
  ((0, 1), (2,)) reads f32[B, S, D] as f32[B*S, D].  Axes of size 1 may be left out.  None: the array as it is.
  Instead of an axis, (axis, n) is a part of n elements of one that is cut up, (axis, -n) one n-th of its elements:
  ((0,), ((1, -4),), ((1, 4), 2)) reads f32[B, S, D] as f32[B, S/4, 4*D].
  Indices, `ndim` and Dim speak of the buffer, that is, of the merged array; `viewed(param, array)` makes it.

The meaning of a Function is what `interpreter` does with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from minipd.cinn.ir.expr import (
    BOOL,
    INT64,
    STORAGE_ONLY,
    Binary,
    Call,
    Cast,
    Const,
    Dim,
    Expr,
    Load,
    Select,
    Unary,
    Var,
    refuse,
)
from minipd.cinn.ir.operators import BINARY, CALLS, COMPARISONS, UNARY
from minipd.cinn.ir.stmt import (
    BLOCK_AXES,
    GPU_AXES,
    LOOP_KINDS,
    MEMORIES,
    REDUCTIONS,
    THREAD_AXES,
    Accumulate,
    Alloc,
    For,
    IfThenElse,
    Init,
    IterVar,
    Let,
    Reduce,
    ScheduleBlock,
    Seq,
    Stmt,
    Store,
    SyncThreads,
)

__all__ = [
    "Accumulate", "Alloc", "BINARY", "BLOCK_AXES", "BOOL", "Binary", "CALLS", "COMPARISONS", "Call", "Cast", "Const",
    "Dim", "Expr", "For", "Function", "GPU_AXES", "INT64", "IfThenElse", "Init", "IterVar", "LOOP_KINDS", "Let", "Load",
    "MEMORIES", "Param", "REDUCTIONS", "Reduce", "STORAGE_ONLY", "ScheduleBlock", "Select", "Seq", "Stmt", "Store",
    "SyncThreads", "THREAD_AXES", "UNARY", "Unary", "Var", "viewed", "viewed_shape",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Param:
    """An array of the caller.  An output is written in full, and not read before it is."""

    name: str
    dtype: np.dtype
    ndim: int
    output: bool = False
    view: tuple[tuple[int | tuple[int, int], ...], ...] | None = None

    def __post_init__(self) -> None:
        if self.view is not None and len(self.view) != self.ndim:
            refuse(f"parameter {self.name}: a view of {len(self.view)} axes, {self.ndim} dimensions")


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel: inputs first, then outputs."""

    name: str
    params: tuple[Param, ...]
    body: Stmt
    comment: tuple[str, ...] = ()

    def param(self, name: str) -> Param:
        """The parameter of that name; KeyError if there is none."""
        for p in self.params:
            if p.name == name:
                return p
        raise KeyError(f"{self.name} has no parameter {name!r}")


def viewed(param: Param, array: Any) -> Any:
    """The caller's array as the buffer that the function indexes: axes merged as `param.view` says.

    >>> viewed(Param("x", np.dtype("f4"), 2, view=((0, 1), (2,))), np.zeros((2, 3, 5), "f4")).shape
    (6, 5)
    """
    if param.view is None:
        return array
    return array.reshape(viewed_shape(param, array.shape))


def viewed_shape(param: Param, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of the buffer that the function indexes, for a caller's array of that shape."""
    if param.view is None:
        return shape
    return tuple(math.prod(_extent(shape, a) for a in axes) for axes in param.view)


def _extent(shape: tuple[int, ...], axis: int | tuple[int, int]) -> int:
    """The size of an axis, or of a part of one."""
    if isinstance(axis, int):
        return shape[axis]
    return axis[1] if axis[1] >= 0 else shape[axis[0]] // -axis[1]
