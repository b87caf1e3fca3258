"""The loop IR: what a fusion group becomes before it is a kernel.  Plain frozen data, compared by value.

    Function = (name, Param*, Stmt, comment)       comment: the operators that it fuses, but for constants
    Param    = (name, dtype, ndim, output, view)   an array of the caller
    Stmt     = Seq(Stmt*)
             | For(var, extent, Stmt, "serial" | "parallel" | "vector")     var: int64, 0 .. extent - 1
             | Let(name, Expr)                     a scalar that never changes, known to the end of its Seq
             | Init(name, Expr)                    a scalar accumulator, known to the end of its Seq
             | Accumulate(name, "add" | "max" | "min", Expr)                name = name op value
             | Alloc(buffer, Expr*, dtype)         a local array, known to the end of its Seq; its values are undefined
             | Store(buffer, Expr*, Expr)
    Expr     = Const(value) | Var(name) | Load(buffer, Expr*) | Dim(buffer, axis)
             | Unary(op, Expr) | Binary(op, Expr, Expr) | Select(Expr, Expr, Expr) | Cast(Expr)

Every Expr has a dtype; `__post_init__` checks it, so that an ill-typed tree cannot be built.  The rules:

* Both sides of a Binary have one dtype, which is the result's; comparisons give bool.  A Select is evaluated like
  numpy's `where`: both sides are, and a NaN in the one not chosen does no harm.
* Indices and extents are ints (int64 unless said otherwise), one per axis of the buffer, never negative.  Int
  arithmetic wraps around; `floordiv` and `mod` are floor's, as in Python.
* bfloat16 and float16 are for storage only: Load, Cast, Store and Const have them, arithmetic does not.
* `max` and `min` give NaN if either side is NaN, as numpy's maximum.  `and`, `or`, `not` are for bool.
* The order of an Accumulate over the iterations of a loop is open for floats (that is what vectorizes it): who needs a
  bound on the rounding error, splits the loop.
* Iterations of a "parallel" loop may run in any order and at once: none reads or writes what another one writes; those
  of a "vector" loop may be interleaved likewise, but for Accumulate.  No vector loop contains a loop.
* `Param.view` lists, for each axis of the buffer, which adjacent axes of the caller's array it merges:
  ((0, 1), (2,)) reads f32[B, S, D] as f32[B*S, D].  Axes of size 1 may be left out.  None: the array as it is.
  Indices, `ndim` and Dim speak of the buffer, that is, of the merged array; `viewed(param, array)` makes it.

The meaning of a Function is what `interpreter` does with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import ml_dtypes
import numpy as np

from minipd.cinn.ir.operators import BINARY, COMPARISONS, UNARY

__all__ = [
    "Accumulate", "Alloc", "BINARY", "Binary", "BOOL", "COMPARISONS", "Cast", "Const", "Dim", "Expr", "For",
    "Function", "INT64", "Init", "Let", "Load", "Param", "Select", "Seq", "Stmt", "Store", "UNARY", "Unary", "Var",
    "viewed",
]  # fmt: skip

BOOL, INT64 = np.dtype(bool), np.dtype(np.int64)
#: dtypes that arrays have, but arithmetic has not
STORAGE_ONLY = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def _refuse(what: str) -> NoReturn:
    raise TypeError(f"loop IR: {what}")


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f"            # (float16 is, bfloat16 has kind "V": both are refused as storage only)


def _indices(what: str, index: tuple[Expr, ...]) -> None:
    for e in index:
        if e.dtype.kind not in "iu":
            _refuse(f"{what}: expected ints, got {e.dtype}: {e}")


# ------------------------------------------------------------------------------------------------- expressions
@dataclass(frozen=True, slots=True)
class Const:
    """A number; `value` is a Python bool, int or float (inf and nan included) that `dtype` holds."""

    value: bool | int | float
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class Var:
    """A loop variable, a Let or an accumulator."""

    name: str
    dtype: np.dtype = INT64


@dataclass(frozen=True, slots=True)
class Load:
    """One element of a parameter or of a local array; `index` is () for a 0-D array."""

    buffer: str
    index: tuple[Expr, ...]
    dtype: np.dtype

    def __post_init__(self) -> None:
        _indices(f"index of {self.buffer}", self.index)


@dataclass(frozen=True, slots=True)
class Dim:
    """The extent of an axis of a parameter (as the buffer that its `view` makes it), int64."""

    param: str
    axis: int

    @property
    def dtype(self) -> np.dtype:
        return INT64


@dataclass(frozen=True, slots=True)
class Unary:
    """op in UNARY.  `isfinite` and `not` give bool; rsqrt is 1 / sqrt."""

    op: str
    x: Expr
    dtype: np.dtype

    def __post_init__(self) -> None:
        op, x = self.op, self.x.dtype
        if op not in UNARY:
            _refuse(f"no unary operator {op!r}; there are {', '.join(UNARY)}")
        if x in STORAGE_ONLY:
            _refuse(f"{op} of {x}: cast it to float32 first")
        if UNARY[op].floats and not _is_float(x):
            _refuse(f"{op}: expected a float, got {x}")
        if (op == "not") != (x == BOOL):
            _refuse(f"{op} of {x}")
        result = BOOL if op == "isfinite" else x
        if self.dtype != result:
            _refuse(f"{op} of {x} gives {result}, not {self.dtype}")


@dataclass(frozen=True, slots=True)
class Binary:
    """op in BINARY."""

    op: str
    x: Expr
    y: Expr
    dtype: np.dtype

    def __post_init__(self) -> None:
        op, x, y = self.op, self.x.dtype, self.y.dtype
        if op not in BINARY:
            _refuse(f"no binary operator {op!r}; there are {', '.join(BINARY)}")
        if x != y:
            _refuse(f"{op}: expected two operands of one dtype, got {x} and {y}")
        if x in STORAGE_ONLY:
            _refuse(f"{op} of {x}: cast it to float32 first")
        if op in ("and", "or") and x != BOOL:
            _refuse(f"{op}: expected bools, got {x}")
        if op not in ("and", "or", "eq", "ne") and x == BOOL:
            _refuse(f"{op} of bools")
        if BINARY[op].floats and not _is_float(x):
            _refuse(f"{op}: expected floats, got {x}; ints have floordiv")
        result = BOOL if op in COMPARISONS else x
        if self.dtype != result:
            _refuse(f"{op} of {x} gives {result}, not {self.dtype}")


@dataclass(frozen=True, slots=True)
class Select:
    """x where the condition holds, else y."""

    cond: Expr
    x: Expr
    y: Expr
    dtype: np.dtype

    def __post_init__(self) -> None:
        if self.cond.dtype != BOOL:
            _refuse(f"select: expected a bool condition, got {self.cond.dtype}")
        if not self.x.dtype == self.y.dtype == self.dtype:
            _refuse(f"select of {self.x.dtype} and {self.y.dtype} as {self.dtype}: expected one dtype")


@dataclass(frozen=True, slots=True)
class Cast:
    """x in another dtype, as numpy's astype: floats round to nearest even, to int they are cut off, to bool: != 0."""

    x: Expr
    dtype: np.dtype


Expr = Const | Var | Load | Dim | Unary | Binary | Select | Cast


# -------------------------------------------------------------------------------------------------- statements
@dataclass(frozen=True, slots=True)
class Seq:
    """One after the other; the scope of what Let, Init and Alloc in it declare."""

    stmts: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class For:
    """The body for var = 0 .. extent - 1; var is an int64."""

    var: str
    extent: Expr
    body: Stmt
    kind: Literal["serial", "parallel", "vector"] = "serial"

    def __post_init__(self) -> None:
        _indices(f"extent of {self.var}", (self.extent,))
        if self.kind not in ("serial", "parallel", "vector"):
            _refuse(f"no loop kind {self.kind!r}")


@dataclass(frozen=True, slots=True)
class Store:
    """buffer[index] = value; the value has the buffer's dtype."""

    buffer: str
    index: tuple[Expr, ...]
    value: Expr

    def __post_init__(self) -> None:
        _indices(f"index of {self.buffer}", self.index)


@dataclass(frozen=True, slots=True)
class Let:
    """A name for a scalar, from here to the end of the enclosing Seq."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Init:
    """A scalar accumulator of the value's dtype, from here to the end of the enclosing Seq."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Accumulate:
    """name = name op value, for a name that Init declares."""

    name: str
    op: Literal["add", "max", "min"]
    value: Expr

    def __post_init__(self) -> None:
        if self.op not in ("add", "max", "min"):
            _refuse(f"no accumulation {self.op!r}")
        if self.value.dtype in STORAGE_ONLY:
            _refuse(f"accumulation in {self.value.dtype}: cast it to float32 first")


@dataclass(frozen=True, slots=True)
class Alloc:
    """A local array, from here to the end of the enclosing Seq; inside a loop, a new one in every iteration."""

    buffer: str
    shape: tuple[Expr, ...]
    dtype: np.dtype

    def __post_init__(self) -> None:
        _indices(f"shape of {self.buffer}", self.shape)


Stmt = Seq | For | Store | Let | Init | Accumulate | Alloc


# --------------------------------------------------------------------------------------------------- functions
@dataclass(frozen=True, slots=True)
class Param:
    """An array of the caller.  An output is written in full, and not read before it is."""

    name: str
    dtype: np.dtype
    ndim: int
    output: bool = False
    view: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        if self.view is not None and len(self.view) != self.ndim:
            _refuse(f"parameter {self.name}: a view of {len(self.view)} axes, {self.ndim} dimensions")


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
    return array.reshape([math.prod(array.shape[a] for a in axes) for axes in param.view])
