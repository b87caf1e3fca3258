"""Short constructors of the loop IR: dtypes are filled in, integer indices come as Python ints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from minipd.cinn.ir.ast import BOOL, COMPARISONS, INT64, Binary, Cast, Const, Expr, Select, Seq, Stmt, Unary

__all__ = ["binary", "cast", "conjunction", "const", "identity", "index", "select", "seq", "unary"]


def const(value: Any, dtype: np.dtype) -> Const:
    """A number as `dtype` holds it: ints wrap around, floats round.

    >>> const(3, np.dtype("float32")), const(-1, np.dtype("uint8")).value
    (Const(value=3.0, dtype=dtype('float32')), 255)
    """
    held = np.asarray(value).astype(dtype)[()]
    return Const(held.item() if dtype.kind in "biuf" else float(held), dtype)


def index(value: int | Expr) -> Expr:
    """An int as an index expression."""
    return Const(int(value), INT64) if isinstance(value, int | np.integer) else value


def unary(op: str, x: Expr) -> Unary:
    return Unary(op, x, BOOL if op == "isfinite" else x.dtype)


def binary(op: str, x: Expr | int, y: Expr | int) -> Binary:
    """A Python int stands for an int64."""
    x, y = index(x), index(y)
    return Binary(op, x, y, BOOL if op in COMPARISONS else x.dtype)


def select(cond: Expr, x: Expr, y: Expr) -> Select:
    return Select(cond, x, y, x.dtype)


def cast(x: Expr, dtype: np.dtype) -> Expr:
    """x itself if it has that dtype."""
    return x if x.dtype == dtype else Cast(x, dtype)


def identity(op: str, dtype: np.dtype) -> Const:
    """What an accumulation starts from, and gives for no elements: 0 for add, 1 for mul, the lowest value for max, the
    highest for min, true for and, false for or.

    >>> identity("max", np.dtype("float32")).value, identity("min", np.dtype("int8")).value
    (-inf, 127)
    """
    if op in ("add", "mul", "and", "or"):
        return const({"add": 0, "mul": 1, "and": True, "or": False}[op], dtype)
    if dtype.kind == "f":
        return const(-np.inf if op == "max" else np.inf, dtype)
    return const(np.iinfo(dtype).min if op == "max" else np.iinfo(dtype).max, dtype)


def conjunction(conditions: Iterable[Expr]) -> Expr:
    """All of them, each once; true if there are none."""
    total: Expr = Const(True, BOOL)
    for c in dict.fromkeys(conditions):
        total = c if total == Const(True, BOOL) else binary("and", total, c)
    return total


def seq(stmts: Iterable[Stmt]) -> Stmt:
    """A Seq, without a Seq around a single statement."""
    stmts = tuple(stmts)
    return stmts[0] if len(stmts) == 1 else Seq(stmts)
