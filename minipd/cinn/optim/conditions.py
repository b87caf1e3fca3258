"""`entail_loop_condition`: conditions on loop variables become bounds of loops.

    for (i_1, 0, 4)                     for (i_1, 0, min(4, 10 - i_0 * 4))
    {                                   {
      if (i_0 * 4 + i_1 < 10)             y[i_0 * 4 + i_1] = 0.0f
      {                                 }
        y[i_0 * 4 + i_1] = 0.0f
      }
    }

    for (j, 0, 48)                      for (j, 0, 24)
    {                                   {
      if (j < 24)                         y[j] = -x[j + 24]
      {                                 }
        y[j] = -x[j + 24]               for (j, 0, 24)
      }                                 {
      else                                y[j + 24] = x[j]
      {                                 }
        y[j] = x[j - 24]
      }
    }

`if_fusion` is the first step: neighbours with one condition are one statement, and what does not depend on a loop is
asked in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from minipd.cinn.ir.ast import BOOL, INT64, Binary, Const, Expr, For, Function, IfThenElse, Seq, Stmt, Unary, Var
from minipd.cinn.ir.build import binary, conjunction, seq
from minipd.cinn.ir.linear import coefficient, constant_of, difference, from_polynomial, polynomial
from minipd.cinn.ir.ranges import Ranges
from minipd.cinn.ir.simplify import simplify_expression
from minipd.cinn.ir.walk import (
    conjuncts,
    loads,
    loops,
    map_bodies,
    map_children,
    map_expressions,
    map_statements,
    names,
    rename,
    statements,
    substitute,
    walk,
)
from minipd.cinn.optim.tree import Names, declared

__all__ = ["entail_loop_condition", "if_fusion"]

#: a loop is cut in parts only so often
MOST_CUTS = 6


# -------------------------------------------------------------------------------------------------- if_fusion
def if_fusion(function: Function) -> Function:
    """Neighbouring statements with one condition share it; conditions move out of loops that they don't depend on."""
    return replace(function, body=_fused(function.body, Ranges({})))


def _fused(s: Stmt, ranges: Ranges) -> Stmt:
    match s:
        case For(var=var, extent=extent):
            inner = _fused(s.body, ranges.inside(var, extent))
            here = set().union(*(names(c) for c in conjuncts(inner.cond))) if isinstance(inner, IfThenElse) else set()
            if isinstance(inner, IfThenElse) and inner.orelse is None and not here & (declared(inner.then) - {var}):
                fixed = [c for c in conjuncts(inner.cond) if var not in names(c)]
                rest = [c for c in conjuncts(inner.cond) if var in names(c)]
                return _guarded(fixed, replace(s, body=_guarded(rest, inner.then)))
            return replace(s, body=inner)
        case IfThenElse(cond=cond, then=then, orelse=orelse):
            asked = [c for c in conjuncts(simplify_expression(cond)) if not ranges.always(c)]
            if any(map(ranges.never, asked)):
                return Seq(()) if orelse is None else _fused(orelse, ranges)
            then = _fused(then, ranges)
            if orelse is not None:
                known = conjunction(asked)
                return then if known == Const(True, BOOL) else IfThenElse(known, then, _fused(orelse, ranges))
            if isinstance(then, IfThenElse) and then.orelse is None:
                return _guarded([*asked, *conjuncts(then.cond)], then.then)
            return _guarded(asked, then)
        case Seq(stmts=stmts):
            return _fused_sequence([_fused(x, ranges) for x in stmts])
    return map_bodies(lambda x: _fused(x, ranges), s)


def _fused_sequence(stmts: list[Stmt]) -> Stmt:
    out: list[Stmt] = []
    for x in stmts:
        last = out[-1] if out else None
        if isinstance(x, IfThenElse) and isinstance(last, IfThenElse) and x.cond == last.cond and not loads(x.cond) \
                and not names(x.cond) & declared(last):
            orelse = [Seq((arm,)) for arm in (last.orelse, x.orelse) if arm is not None]
            out[-1] = IfThenElse(x.cond, Seq((_scope(last.then), _scope(x.then))), seq(orelse) if orelse else None)
        else:
            out.append(x)
    return seq(out)


def _scope(s: Stmt) -> Stmt:
    return s if isinstance(s, Seq) else Seq((s,))


def _guarded(asked: list[Expr], s: Stmt) -> Stmt:
    return IfThenElse(conjunction(asked), s) if asked else s


# ------------------------------------------------------------------------------------------------------ bounds
@dataclass(frozen=True)
class _Bound:
    """What a condition says about a loop variable: var < at (upper), or var >= at."""

    upper: bool
    at: Expr


def _bound(cond: Expr, var: str) -> _Bound | None:
    """cond as a bound of `var`, if it is one; `at` does not depend on it."""
    if not isinstance(cond, Binary) or cond.op not in ("lt", "le", "gt", "ge") or cond.x.dtype != INT64:
        return None
    x, y = (cond.x, cond.y) if cond.op in ("lt", "le") else (cond.y, cond.x)
    below = difference(polynomial(x), polynomial(y))                # cond is below < 0
    if cond.op in ("le", "ge"):
        below = difference(below, {(): 1})
    found = coefficient(below, var)
    c = None if found is None else constant_of(found[0])
    if found is None or not c:
        return None
    rest = found[1]
    if c > 0:                                                       # c * var + rest < 0
        top = difference({(): c - 1}, rest)                         # var * c <= top
        return _Bound(True, simplify_expression(binary("floordiv", from_polynomial(top), c)))
    bottom = difference(rest, {(): c})                              # rest - c <= -c * var
    return _Bound(False, simplify_expression(binary("floordiv", from_polynomial(bottom), -c)))


def entail_loop_condition(function: Function) -> Function:
    """Loops run only over the iterations in which their bodies do something, and in parts where a body does one thing
    up to some iteration and something else from there on."""
    return replace(function, body=_Entail(Names(function)).statement(function.body, Ranges({})))


class _Entail:
    def __init__(self, names: Names) -> None:
        self.names = names

    def statement(self, s: Stmt, ranges: Ranges) -> Stmt:
        if isinstance(s, For):
            return self.loop(s, ranges, MOST_CUTS)
        return map_bodies(lambda x: self.statement(x, ranges), s)

    def loop(self, s: For, ranges: Ranges, cuts: int) -> Stmt:
        if isinstance(s.body, IfThenElse) and s.body.orelse is None and not s.kind.startswith(("thread", "block")):
            for cond in conjuncts(s.body.cond):
                bound = _bound(cond, s.var)
                if bound is not None and not names(bound.at) & declared(s.body):
                    rest = [c for c in conjuncts(s.body.cond) if c != cond]
                    return self.loop(self._shortened(s, _guarded(rest, s.body.then), bound, ranges), ranges, cuts)
        if cuts:
            s = replace(s, body=_without_equations(s.body, s.var))
            for cond in [c for x in statements(s.body) if isinstance(x, IfThenElse) for c in walk(x.cond)]:
                bound = _bound(cond, s.var)
                if bound is not None and not names(bound.at) & declared(s.body):
                    return self._cut(s, cond, bound, ranges, cuts - 1)
        return map_bodies(lambda x: self.statement(x, ranges.inside(s.var, s.extent)), s)

    def _shortened(self, s: For, body: Stmt, bound: _Bound, ranges: Ranges) -> For:
        """The loop with what its condition says in its bounds."""
        if bound.upper:
            return replace(s, extent=ranges.clipped(binary("min", s.extent, bound.at), s.kind != "parallel"), body=body)
        first = ranges.clipped(bound.at, False)
        extent = ranges.clipped(binary("sub", s.extent, first), s.kind != "parallel")
        return replace(s, extent=extent, body=_shifted(body, s.var, first))

    def _cut(self, s: For, cond: Expr, bound: _Bound, ranges: Ranges, cuts: int) -> Stmt:
        """Two loops: in front of the bound, and from there on."""
        at = ranges.clipped(binary("min", bound.at, s.extent), False)
        front, back = _decided(s.body, cond, bound.upper), _decided(s.body, cond, not bound.upper)
        again = {x.var: self.names.unused(x.var) for x in [s, *loops(back)]}
        second = replace(s, extent=simplify_expression(from_polynomial(difference(
            polynomial(s.extent), polynomial(at)))), body=_shifted(back, s.var, at))
        parts = [replace(s, extent=at, body=front), rename(second, again)]
        kept = [self.loop(x, ranges, cuts) for x in parts if isinstance(x, For) and x.extent != Const(0, INT64)]
        return seq(kept)


def _decided(s: Stmt, cond: Expr, holds: bool) -> Stmt:
    """s where a condition, or a part of one, is known."""
    if isinstance(s, IfThenElse):
        left = _conditions(lambda c: Const(holds, BOOL) if c == cond else c, s.cond)
        if isinstance(left, Const):
            arm = s.then if left.value else s.orelse
            return Seq(()) if arm is None else _decided(_scope(arm), cond, holds)
        s = replace(s, cond=left)
    return map_bodies(lambda x: _decided(x, cond, holds), s)


def _without_equations(s: Stmt, var: str) -> Stmt:
    """s with x <= y and x >= y for x == y where the loop variable can be cut at."""
    def split(c: Expr) -> Expr:
        if isinstance(c, Binary) and c.op in ("eq", "ne"):
            below, above = (binary(op, c.x, c.y) for op in (("le", "ge") if c.op == "eq" else ("lt", "gt")))
            if _bound(below, var) is not None:
                return binary("and" if c.op == "eq" else "or", below, above)
        return c

    def statement(x: Stmt) -> Stmt:
        return replace(x, cond=_conditions(split, x.cond)) if isinstance(x, IfThenElse) else x
    return map_statements(statement, s)


def _conditions(f: Callable[[Expr], Expr], cond: Expr) -> Expr:
    """cond with f(c) for each c that is connected by and, or, not."""
    if isinstance(cond, Binary) and cond.op in ("and", "or") or isinstance(cond, Unary) and cond.op == "not":
        return simplify_expression(map_children(lambda c: _conditions(f, c), cond))
    return f(cond)


def _shifted(s: Stmt, var: str, by: Expr) -> Stmt:
    """s for var + by instead of var."""
    at: Mapping[str, Expr] = {var: binary("add", Var(var), by)}
    return map_expressions(lambda e: simplify_expression(substitute(e, at)), s)
