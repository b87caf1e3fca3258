"""A kernel that overwrites its input: input and output become one parameter.

Passing one array twice would be right as well, but slow: the compiled code finds that the arrays overlap, and takes the
loop that is not vectorized.
"""

from __future__ import annotations

from dataclasses import replace

from minipd.cinn.ir.ast import Dim, Expr, Function, Load
from minipd.cinn.ir.walk import map_children, map_expressions

__all__ = ["in_place"]


def in_place(function: Function, shared: dict[int, int]) -> Function:
    """The function with input i read from output shared[i], for each i; these inputs are no parameters any more.

    Raises: ValueError where an input and its output differ in dtype, or in how they see the caller's array.
    """
    inputs = [p for p in function.params if not p.output]
    outputs = [p for p in function.params if p.output]
    names = {}
    for i, j in shared.items():
        x, y = inputs[i], outputs[j]
        if (x.dtype, x.ndim, x.view) != (y.dtype, y.ndim, y.view):
            raise ValueError(f"{function.name}: {x.name} and {y.name} cannot be one array: {x} and {y}")
        names[x.name] = y.name

    def renamed(e: Expr) -> Expr:
        e = map_children(renamed, e)
        if isinstance(e, Load) and e.buffer in names:
            return replace(e, buffer=names[e.buffer])
        if isinstance(e, Dim) and e.param in names:
            return replace(e, param=names[e.param])
        return e
    kept = tuple(p for p in function.params if p.name not in names)
    return replace(function, params=kept, body=map_expressions(renamed, function.body))
