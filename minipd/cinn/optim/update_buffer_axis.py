"""`update_buffer_axis`: a local array that one iteration of a loop uses alone lives in that iteration, without the axis
that the loop runs along.

    t := local f32[8, 48]               for (i, 0, 8)
    for (i, 0, 8)                       {
    {                                     t := local f32[48]
      for (j, 0, 48)                      for (j, 0, 48)
      {                                   {
        t[i, j] = x[i, j] * 2.0f            t[j] = x[i, j] * 2.0f
      }                                   }
      for (j_2, 0, 48)                    for (j_2, 0, 48)
      {                                   {
        y[i, j_2] = exp(t[i, 47 - j_2])     y[i, j_2] = exp(t[47 - j_2])
      }                                   }
    }                                   }
"""

from __future__ import annotations

from dataclasses import replace

from minipd.cinn.ir.ast import THREAD_AXES, Alloc, Expr, For, Function, IfThenElse, Load, Reduce, Seq, Stmt, Store
from minipd.cinn.ir.build import binary
from minipd.cinn.ir.linear import Polynomial, coefficient, constant_of, difference, from_polynomial, polynomial
from minipd.cinn.ir.ranges import upper_bounds
from minipd.cinn.ir.walk import (
    loops,
    map_bodies,
    map_children,
    map_expressions,
    map_statements,
    names,
    statements,
    stmts_of,
)
from minipd.cinn.optim.tree import declared, loads_in

__all__ = ["update_buffer_axis"]

Index = tuple[Expr, ...]


def update_buffer_axis(function: Function) -> Function:
    """The function with local arrays as far inside as they can be, and as small."""
    return replace(function, body=_placed(function.body))


def _placed(s: Stmt) -> Stmt:
    """s with each Alloc of its own moved in; then those of what stands inside."""
    if isinstance(s, Seq):
        stmts = list(s.stmts)
        used = [_indices_by_buffer(x) for x in stmts]
        for alloc in [x for x in reversed(stmts) if isinstance(x, Alloc) and x.memory != "global"]:
            using = [k for k, found in enumerate(used) if alloc.buffer in found]
            inside = _moved_in(alloc, stmts[using[0]]) if len(using) == 1 else None
            if inside is not None:
                stmts[using[0]] = inside
                stmts[stmts.index(alloc)] = Seq(())
        s = Seq(tuple(x for x in stmts if x != Seq(())))
    return map_bodies(_placed, s)


def _indices_by_buffer(s: Stmt) -> dict[str, list[Index]]:
    found: dict[str, list[Index]] = {}
    for x in statements(s):
        if isinstance(x, Store | Reduce):
            found.setdefault(x.buffer, []).append(x.index)
    for e in loads_in(s):
        found.setdefault(e.buffer, []).append(e.index)
    return found


def _moved_in(alloc: Alloc, s: Stmt) -> Stmt | None:
    """s, which alone uses the array, with the array inside; None if it cannot be inside."""
    match s:
        case For(kind=kind, body=body):
            if alloc.memory == "shared" and kind in THREAD_AXES:
                return None                     # all threads of the GPU block are to see it
            indices = _indices_by_buffer(body)[alloc.buffer]
            if not (_apart(s, indices) or _written_first(alloc, body, indices)):
                return None
            kept = [k for k in range(len(alloc.shape)) if not _same_within(s, [i[k] for i in indices])]
            if len(kept) < len(alloc.shape):
                body = _without_axes(body, alloc.buffer, kept)
            inner = replace(alloc, shape=tuple(alloc.shape[k] for k in kept))
            return replace(s, body=Seq((inner, *stmts_of(body))))
        case IfThenElse(then=then, orelse=orelse):
            in_then, in_else = (x is not None and alloc.buffer in _indices_by_buffer(x) for x in (then, orelse))
            if in_then and in_else:
                return None
            if in_then:
                return replace(s, then=Seq((alloc, *stmts_of(then))))
            assert orelse is not None
            return replace(s, orelse=Seq((alloc, *stmts_of(orelse))))
        case Seq(stmts=stmts):
            return Seq((alloc, *stmts))
    return None


# ---------------------------------------------------------------------------------------------- is it allowed?
def _apart(loop: For, indices: list[Index]) -> bool:
    """Whether no two iterations of the loop touch one element: along some axis all indices are written alike, and
    different in every iteration."""
    extents = {x.var: x.extent for x in loops(loop)}
    for k in range(len(indices[0])):
        e = indices[0][k]
        if all(i[k] == e for i in indices) and _injective(polynomial(e), loop.var, extents):
            return True
    return False


def _injective(p: Polynomial, var: str, extents: dict[str, Expr]) -> bool:
    """Whether p is different for different values of the loop variable, whatever loops inside (`extents`) do: what
    these add is less than one step of the variable."""
    found = coefficient(p, var)
    if found is None or not found[0]:
        return False
    step, rest = found
    inner = [v for v in extents if v != var and any(v in names(a) for m in rest for a in m)]
    if not inner:
        return _positive(step) or _positive(difference({}, step))
    # the largest steps first: i * 12 + j * 4 + k
    for v in inner:
        found = coefficient(rest, v)
        if found is None or not found[0]:
            return False
        reach = [_product(found[0], polynomial(bound)) for bound in upper_bounds(extents[v])]
        if any(_at_least(step, r) for r in reach):
            return _injective(rest, v, {w: n for w, n in extents.items() if w != var})
    return False


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    return polynomial(binary("mul", from_polynomial(a), from_polynomial(b)))


def _at_least(a: Polynomial, b: Polynomial) -> bool:
    number = constant_of(difference(a, b))
    return number is not None and number >= 0


def _positive(p: Polynomial) -> bool:
    """Whether p is known to be no zero: a positive number, or a size that somebody divides by."""
    number = constant_of(p)
    return number > 0 if number is not None else len(p) == 1 and all(c > 0 for c in p.values())


def _written_first(alloc: Alloc, body: Stmt, indices: list[Index]) -> bool:
    """Whether each iteration uses one element, which it sets before all else."""
    index = indices[0]
    if any(i != index for i in indices) or any(names(e) & declared(body) for e in index):
        return False
    first = next(x for x in stmts_of(body) if alloc.buffer in _indices_by_buffer(x))
    return isinstance(first, Store) and not any(e.buffer == alloc.buffer for e in loads_in(first))


# ------------------------------------------------------------------------------------------------------- axes
def _same_within(loop: For, along: list[Expr]) -> bool:
    """Whether all indices along an axis are one, which no iteration of the loop changes."""
    return all(e == along[0] for e in along) and not names(along[0]) & declared(loop.body)


def _without_axes(s: Stmt, buffer: str, kept: list[int]) -> Stmt:
    def load(e: Expr) -> Expr:
        e = map_children(load, e)
        return replace(e, index=tuple(e.index[k] for k in kept)) if isinstance(e, Load) and e.buffer == buffer else e

    def store(x: Stmt) -> Stmt:
        if isinstance(x, Store | Reduce) and x.buffer == buffer:
            return replace(x, index=tuple(x.index[k] for k in kept))
        return x
    return map_statements(store, map_expressions(load, s))
