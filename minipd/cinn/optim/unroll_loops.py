"""`unroll_loops`: a loop that is to be unrolled becomes its iterations, one after the other.

    unroll for (k, 0, 2)            y[i * 2] = x[i * 2]
    {                               y[i * 2 + 1] = x[i * 2 + 1]
      y[i * 2 + k] = x[i * 2 + k]
    }
"""

from __future__ import annotations

from dataclasses import replace

from minipd.cinn.ir.ast import INT64, Const, For, Function, Seq, Stmt
from minipd.cinn.ir.simplify import simplify_expression
from minipd.cinn.ir.walk import loops, map_expressions, map_statements, rename, substitute
from minipd.cinn.optim.tree import Names

__all__ = ["MOST_COPIES", "unroll_loops"]

#: a loop with more iterations stays a loop: its text would fill the cache for instructions
MOST_COPIES = 64


def unroll_loops(function: Function) -> Function:
    """The function without unrolled loops; those whose extent is not known, or is large, become serial ones."""
    names = Names(function)

    def unrolled(s: Stmt) -> Stmt:
        if not isinstance(s, For) or s.kind != "unroll":
            return s
        if not isinstance(s.extent, Const) or s.extent.value > MOST_COPIES:
            return replace(s, kind="serial")
        copies = []
        for k in range(int(s.extent.value)):
            at = {s.var: Const(k, INT64)}
            body = map_expressions(lambda e: simplify_expression(substitute(e, at)), s.body)  # noqa: B023
            if k:
                body = rename(body, {x.var: names.unused(x.var) for x in loops(body)})
            copies.append(Seq((body,)))         # a scope of its own
        return Seq(tuple(copies))
    return replace(function, body=map_statements(unrolled, function.body))
