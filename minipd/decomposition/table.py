"""The column `decompose`: how an operator is computed by other operators.

A rule takes the row's operands as Tensors and its attributes, and computes the same with other operators.  It runs
below the tape, under whatever interpreter asked for it: over a trace it writes operations into a program, over the dist
interpreter each reduction in it becomes one all-reduce.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.row import ROWS, Row, Trait, add_column
from minipd.framework.tensor import Tensor
from minipd.ir.interfaces import Interface, interface
from minipd.ops.cast import cast

__all__ = ["Decomp", "decompose_rule", "stands_for_several"]

COLUMN = "decompose"
#: rows whose rule gains nothing for a single call
SMALL: set[str] = set()


@interface
class Decomp(Interface):
    """It can be computed by other operators: `entry(*tensors, **attributes)` does."""

    name, column = "Decomp", COLUMN

    @classmethod
    def declare(cls, row: Row, entry: Callable) -> None:
        decompose_rule(row.name)(entry)


def stands_for_several(row: Row) -> bool:
    """Whether the row's kernel goes over its arrays several times, and loops of its parts over them once."""
    return COLUMN in row.columns and row.name not in SMALL


def decompose_rule(name: str, small: bool = False) -> Callable[[Callable], Callable]:
    """Decorator: the function is how the row `name` decomposes.  small: its kernel goes over memory once, anyhow.

    The rule need not think of low precision: as for kernels, float16 and bfloat16 operands arrive in float32, and the
    results are rounded once (rows that only move data are left as they are).
    """
    def register(rule: Callable) -> Callable:
        row = ROWS[name]
        if small:
            SMALL.add(name)
        add_column(name, COLUMN, rule if Trait.EXACT in row.traits else functools.partial(_in_float32, row, rule))
        return rule
    return register


def _in_float32(row: Row, rule: Callable, *xs: Any, **attrs: Any) -> Any:
    low = next((x.payload.dtype for x in xs if isinstance(x, Tensor) and x.payload.dtype in dtypes.LOW_PRECISION), None)
    if low is None:
        return rule(*xs, **attrs)
    wide = [cast(x, dtypes.float32) if isinstance(x, Tensor) and x.payload.dtype == low and i not in row.shape_only
            else x for i, x in enumerate(xs)]
    out = rule(*wide, **attrs)
    return tuple(_rounded(o, low) for o in out) if row.multi else _rounded(out, low)


def _rounded(x: Tensor, dtype: Any) -> Tensor:
    return cast(x, dtype) if x.payload.dtype == dtypes.float32.np else x
