"""`simplify_indices`: quotients and remainders of loop variables, where the extents of the loops say what they are.

    for (i_0, 0, 8)                                 for (i_0, 0, 8)
    {                                               {
      for (i_1, 0, 64)                                for (i_1, 0, 64)
      {                                               {
        y[(i_0 * 64 + i_1) // 64] = 0.0f                y[i_0] = 0.0f
      }                                               }
    }                                               }
"""

from __future__ import annotations

from dataclasses import replace

from minipd.cinn.ir.ast import For, Function, IfThenElse, Stmt
from minipd.cinn.ir.ranges import Ranges, simplify_in_ranges
from minipd.cinn.ir.walk import bodies, map_bodies, map_expressions

__all__ = ["simplify_indices"]


def simplify_indices(function: Function) -> Function:
    """The function with simpler indices."""
    return replace(function, body=_simpler(function.body, Ranges({})))


def _simpler(s: Stmt, ranges: Ranges) -> Stmt:
    if isinstance(s, For):
        extent = simplify_in_ranges(s.extent, ranges)
        return replace(s, extent=extent, body=_simpler(s.body, ranges.inside(s.var, s.extent)))
    if bodies(s):
        s = map_bodies(lambda x: _simpler(x, ranges), s)
        return replace(s, cond=simplify_in_ranges(s.cond, ranges)) if isinstance(s, IfThenElse) else s
    return map_expressions(lambda e: simplify_in_ranges(e, ranges), s)
