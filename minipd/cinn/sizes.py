"""Kernels that serve many sizes.

Lowering writes known sizes as numbers.  For the loops at the top of a function (rows, or all elements of an
element-wise one) the number helps no one, and would make a kernel of its own of every batch size, shard and parameter:
such a loop runs as far as an array's axis does.

    for i in range(2048):                       for i in range(dim(x, 0)):
        for j in range(288):                        for j in range(288):
            y[i, j] = x[i, j] * 2.0                     y[i, j] = x[i, j] * 2.0

Loops inside keep their numbers, by which they are unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from minipd.cinn.ir.ast import Const, Dim, Expr, For, Function, Load, Stmt, Store, Var
from minipd.cinn.ir.build import seq
from minipd.cinn.ir.walk import own_expressions, statements, walk
from minipd.cinn.schedule.tree import stmts_of

__all__ = ["free_rows"]


def free_rows(function: Function) -> Function:
    """The function with every loop at the top as long as an axis that it runs through, if there is such an axis.

    >>> import numpy as np
    >>> from minipd.cinn.ir.ast import Param
    >>> from minipd.cinn.ir.build import const
    >>> from minipd.cinn.ir.printer import text
    >>> f64 = np.dtype("float64")
    >>> x, y = (Param(name, f64, 1, name == "y") for name in "xy")
    >>> copy = Store("y", (Var("i"),), Load("x", (Var("i"),), f64))
    >>> free_rows(Function("f", (x, y), For("i", const(4, np.dtype("int64")), copy), ())).body.extent
    Dim(param='y', axis=0)
    """
    params = {p.name for p in function.params}
    return replace(function, body=seq(_freed(s, params) if isinstance(s, For) else s for s in stmts_of(function.body)))


def _freed(loop: For, params: set[str]) -> For:
    if not isinstance(loop.extent, Const):
        return loop
    for buffer, index in _accesses(loop.body):
        if buffer in params and Var(loop.var) in index:
            return replace(loop, extent=Dim(buffer, index.index(Var(loop.var))))
    return loop


def _accesses(body: Stmt) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    for s in statements(body):
        if isinstance(s, Store):
            yield s.buffer, s.index
        for e in own_expressions(s):
            for x in walk(e):
                if isinstance(x, Load):
                    yield x.buffer, x.index
