"""The expressions of the loop IR; `ast` has the grammar and the rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import ml_dtypes
import numpy as np

from minipd.cinn.ir.operators import BINARY, CALLS, COMPARISONS, UNARY

__all__ = ["BOOL", "INT64", "STORAGE_ONLY", "Binary", "Call", "Cast", "Const", "Dim", "Expr", "Load", "Select",
           "Unary", "Var", "check_indices", "refuse"]

BOOL, INT64 = np.dtype(bool), np.dtype(np.int64)
#: dtypes that arrays have, but arithmetic has not
STORAGE_ONLY = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def refuse(what: str) -> NoReturn:
    raise TypeError(f"loop IR: {what}")


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f"            # (float16 is, bfloat16 has kind "V": both are refused as storage only)


def check_indices(what: str, index: tuple[Expr, ...]) -> None:
    for e in index:
        if e.dtype.kind not in "iu":
            refuse(f"{what}: expected ints, got {e.dtype}: {e}")


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
        check_indices(f"index of {self.buffer}", self.index)


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
            refuse(f"no unary operator {op!r}; there are {', '.join(UNARY)}")
        if x in STORAGE_ONLY:
            refuse(f"{op} of {x}: cast it to float32 first")
        if UNARY[op].floats and not _is_float(x):
            refuse(f"{op}: expected a float, got {x}")
        if (op == "not") != (x == BOOL):
            refuse(f"{op} of {x}")
        result = BOOL if op == "isfinite" else x
        if self.dtype != result:
            refuse(f"{op} of {x} gives {result}, not {self.dtype}")


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
            refuse(f"no binary operator {op!r}; there are {', '.join(BINARY)}")
        if x != y:
            refuse(f"{op}: expected two operands of one dtype, got {x} and {y}")
        if x in STORAGE_ONLY:
            refuse(f"{op} of {x}: cast it to float32 first")
        if op in ("and", "or") and x != BOOL:
            refuse(f"{op}: expected bools, got {x}")
        if op not in ("and", "or", "eq", "ne") and x == BOOL:
            refuse(f"{op} of bools")
        if BINARY[op].floats and not _is_float(x):
            refuse(f"{op}: expected floats, got {x}; ints have floordiv")
        result = BOOL if op in COMPARISONS else x
        if self.dtype != result:
            refuse(f"{op} of {x} gives {result}, not {self.dtype}")


@dataclass(frozen=True, slots=True)
class Select:
    """x where the condition holds, else y."""

    cond: Expr
    x: Expr
    y: Expr
    dtype: np.dtype

    def __post_init__(self) -> None:
        if self.cond.dtype != BOOL:
            refuse(f"select: expected a bool condition, got {self.cond.dtype}")
        if not self.x.dtype == self.y.dtype == self.dtype:
            refuse(f"select of {self.x.dtype} and {self.y.dtype} as {self.dtype}: expected one dtype")


@dataclass(frozen=True, slots=True)
class Cast:
    """x in another dtype, as numpy's astype: floats round to nearest even, to int they are cut off, to bool: != 0."""

    x: Expr
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class Call:
    """name in CALLS: a function of the back end's library, for which there is no operator; floats of one dtype."""

    name: str
    args: tuple[Expr, ...]
    dtype: np.dtype

    def __post_init__(self) -> None:
        if self.name not in CALLS:
            refuse(f"no function {self.name!r}; there are {', '.join(CALLS)}")
        if any(x.dtype != self.dtype for x in self.args) or not _is_float(self.dtype) or self.dtype in STORAGE_ONLY:
            refuse(f"{self.name} of {', '.join(str(x.dtype) for x in self.args)} as {self.dtype}: expected one dtype, "
                   "float32 or float64")


Expr = Const | Var | Load | Dim | Unary | Binary | Select | Cast | Call
