"""`remove_schedule_block`: iter vars become what the loops around give them.

    ScheduleBlock(y0)
    {
      vi = axis.bind(i_0 * 4 + i_1)         if (i_0 * 4 + i_1 < 10)
      where (i_0 * 4 + i_1 < 10)            {
      e = exp(x0[vi])                         e = exp(x0[i_0 * 4 + i_1])
      y0[vi] = e * e                          y0[i_0 * 4 + i_1] = e * e
    }                                       }

A block that is named otherwise than the buffer that it writes computes something with a name of its own (that is kept
there for the time being): its value gets that name.
"""

from __future__ import annotations

from dataclasses import replace

from minipd.cinn.ir.ast import Cast, Const, Function, IfThenElse, Let, Load, ScheduleBlock, Seq, Stmt, Store, Var
from minipd.cinn.ir.simplify import simplify_expression
from minipd.cinn.ir.walk import map_expressions, map_statements, stmts_of, substitute

__all__ = ["remove_schedule_block"]


def remove_schedule_block(function: Function) -> Function:
    """The function without blocks."""
    buffers = {p.name for p in function.params}

    def removed(s: Stmt) -> Stmt:
        if not isinstance(s, ScheduleBlock):
            return s
        values = {v.name: simplify_expression(e) for v, e in zip(s.iter_vars, s.iter_values, strict=True)}
        body = map_expressions(lambda e: simplify_expression(substitute(e, values)), _named(s, buffers))
        return body if s.predicate is None else IfThenElse(simplify_expression(s.predicate), body)
    return replace(function, body=map_statements(removed, function.body))


def _named(block: ScheduleBlock, params: set[str]) -> Stmt:
    """The block's body with the value that it stores under the block's name."""
    *lets, last = stmts_of(block.body)
    if not isinstance(last, Store) or block.name in (last.buffer, *params):
        return block.body
    value = last.value
    while isinstance(value, Cast):
        value = value.x
    if isinstance(value, Const | Var | Load) or any(isinstance(x, Let) and x.name == block.name for x in lets):
        return block.body
    name = Var(block.name, value.dtype)
    e = last.value
    casts = []
    while isinstance(e, Cast):
        casts.append(e)
        e = e.x
    stored: Var | Cast = name
    for cast in reversed(casts):
        stored = replace(cast, x=stored)
    return Seq((*lets, Let(block.name, value), replace(last, value=stored)))
