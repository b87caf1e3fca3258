"""`short_names`: loops are called i and j again where nothing is in the way.

    for (i_exp_2, 0, 8)                 for (i, 0, 8)
    {                                   {
      for (j_exp_2_0, 0, 4)               for (j_0, 0, 4)

Also arrays that are called like a scalar get another name: in a kernel's text there is one sort of names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from minipd.cinn.ir.ast import Alloc, For, Function, Init, Let, Stmt
from minipd.cinn.ir.walk import map_bodies, rename, statements
from minipd.cinn.optim.tree import Names

__all__ = ["short_names"]


def short_names(function: Function) -> Function:
    """The function with short names of loops, and with every array called otherwise than every scalar."""
    scalars = {x.name for x in statements(function.body) if isinstance(x, Let | Init)}
    arrays = [x.buffer for x in statements(function.body) if isinstance(x, Alloc)]
    taken = Names(function)
    clash = {a: taken.unused(f"{a}_kept") for a in dict.fromkeys(arrays) if a in scalars}
    body = rename(function.body, buffers=clash) if clash else function.body
    others = {p.name for p in function.params} | scalars | {clash.get(a, a) for a in arrays}
    return replace(function, body=_shortened(body, others))


def _shortened(s: Stmt, around: set[str]) -> Stmt:
    if isinstance(s, For):
        inside = around | {x.var for x in _loops_in(s.body)}
        short = next((n for n in _candidates(s.var) if n not in inside), s.var)
        if short != s.var:
            body = rename(s.body, {s.var: short})
            s = replace(s, var=short, body=body)
        return replace(s, body=_shortened(s.body, around | {short}))
    return map_bodies(lambda x: _shortened(x, around), s)


def _loops_in(s: Stmt) -> Iterator[For]:
    return (x for x in statements(s) if isinstance(x, For))


def _candidates(var: str) -> Iterator[str]:
    """i for i_exp_2; what a split or a chunk has behind it stays: i_0 for i_exp_2_0, i_chunk."""
    letter, *rest = var.split("_")
    if rest and rest[-1] in ("chunk", "step", "block", "inner", "outer"):
        yield f"{letter}_{rest[-1]}"
        return
    if re.fullmatch(r"[a-z]\d*", letter):
        yield letter
        yield from (f"{letter}{n}" for n in range(2, 10))
