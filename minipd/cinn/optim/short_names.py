"""`short_names`: loops are called i and j again where nothing is in the way.

    for (i_exp_2_0, 0, 8)               for (i_0, 0, 8)
    {                                   {
      for (i_exp_2_1, 0, 16)              for (i_1, 0, 16)
      {                                   {
        for (j_exp_2, 0, 4)                 for (j, 0, 4)

Also arrays that are called like a scalar get another name: in a kernel's text there is one sort of names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from minipd.cinn.ir.ast import Alloc, For, Function, Init, Let, Seq, Stmt
from minipd.cinn.ir.walk import loops, map_bodies, rename, statements
from minipd.cinn.optim.tree import Names, declared

__all__ = ["short_names"]


def short_names(function: Function) -> Function:
    """The function with short names of loops, and with every array called otherwise than every scalar."""
    scalars = {x.name for x in statements(function.body) if isinstance(x, Let | Init)}
    arrays = [x.buffer for x in statements(function.body) if isinstance(x, Alloc)]
    taken = Names(function)
    clash = {a: taken.unused(f"{a}_kept") for a in dict.fromkeys(arrays) if a in scalars}
    body = rename(function.body, buffers=clash) if clash else function.body
    around = {p.name for p in function.params} | {clash.get(a, a) for a in arrays}
    return replace(function, body=_shortened(body, around, ""))


def _shortened(s: Stmt, around: set[str], letters: str) -> Stmt:
    """around: the names that are known here; letters: those of the loops around."""
    match s:
        case For(var=var, body=body):
            inside = {x.var[0] for x in loops(body)}
            short = next((n for n in _candidates(var, letters, inside) if n not in around | declared(body)), var)
            body = rename(body, {var: short}) if short != var else body
            return replace(s, var=short, body=_shortened(body, around | {short}, letters + var[0]))
        case Seq(stmts=stmts):
            around = around | {x.name for x in stmts if isinstance(x, Let | Init)}
    return map_bodies(lambda x: _shortened(x, around, letters), s)


def _candidates(var: str, around: str, inside: set[str]) -> Iterator[str]:
    """i; where there is another i around or inside, i_0, i_1; what a chunk has behind it stays: i_chunk."""
    letter, *rest = var.split("_")
    if rest and rest[-1] in ("chunk", "step", "block", "inner", "outer"):
        yield f"{letter}_{rest[-1]}"
    elif re.fullmatch(r"[a-z]\d*", letter):
        if letter[0] not in around and letter[0] not in inside:
            yield letter[0]
        yield from (f"{letter[0]}_{n}" for n in range(around.count(letter[0]), 100))
