"""What is known of ints: which are never negative, and how large they get."""

from __future__ import annotations

from collections.abc import Mapping

from minipd.cinn.ir.ast import BOOL, INT64, Binary, Const, Dim, Expr, Var
from minipd.cinn.ir.build import binary
from minipd.cinn.ir.linear import Polynomial, coefficient, constant_of, difference, from_polynomial, polynomial
from minipd.cinn.ir.simplify import simplify_expression
from minipd.cinn.ir.walk import names

__all__ = ["Ranges", "upper_bounds"]


OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


def upper_bounds(extent: Expr) -> list[Expr]:
    """Expressions that an extent is at most."""
    if isinstance(extent, Binary) and extent.op == "min":
        return [*upper_bounds(extent.x), *upper_bounds(extent.y)]
    return [extent]


class Ranges:
    """The extents of the loops around a place."""

    def __init__(self, extents: Mapping[str, Expr]) -> None:
        self.extents = dict(extents)

    def inside(self, var: str, extent: Expr) -> Ranges:
        return Ranges({**self.extents, var: extent})

    def most(self, p: Polynomial) -> int | None:
        """The largest value that a polynomial may have, where a number is known."""
        for var in [v for v in self.extents if any(v in names(a) for m in p for a in m)]:
            found = coefficient(p, var)
            c = None if found is None else constant_of(found[0])
            last = [b.value for b in upper_bounds(self.extents[var]) if isinstance(b, Const)]
            if found is None or c is None or c > 0 and not last:
                return None
            p = found[1] if c < 0 else _plus(found[1], c * (int(min(last)) - 1))
        return constant_of(p)

    def always(self, cond: Expr) -> bool:
        """Whether a condition is known to hold."""
        if cond == Const(True, BOOL):
            return True
        if not isinstance(cond, Binary) or cond.op not in ("lt", "le", "gt", "ge") or cond.x.dtype != INT64:
            return False
        x, y = (cond.x, cond.y) if cond.op in ("lt", "le") else (cond.y, cond.x)
        most = self.most(difference(polynomial(x), polynomial(y)))
        return most is not None and most < (1 if cond.op in ("le", "ge") else 0)

    def never(self, cond: Expr) -> bool:
        """Whether a condition is known not to hold."""
        if isinstance(cond, Binary) and cond.op in OPPOSITE:
            return self.always(binary(OPPOSITE[cond.op], cond.x, cond.y))
        return cond == Const(False, BOOL)

    def never_negative(self, e: Expr) -> bool:
        match e:
            case Const(value=value):
                return value >= 0
            case Dim() | Var():                 # sizes, and variables of loops
                return True
            case Binary(op="add" | "mul" | "min" | "floordiv", x=x, y=y):
                return self.never_negative(x) and self.never_negative(y) or self._least(e)
            case Binary(op="max", x=x, y=y):
                return self.never_negative(x) or self.never_negative(y)
        return self._least(e)

    def _least(self, e: Expr) -> bool:
        most = self.most(difference({}, polynomial(e)))
        return most is not None and most <= 0

    def clipped(self, e: Expr, negative_is_none: bool) -> Expr:
        """e as an extent or a first iteration: at least 0; `negative_is_none` where that makes no difference."""
        e = simplify_expression(e)
        if not isinstance(e, Binary) or e.op in ("add", "sub"):
            e = from_polynomial(polynomial(e))
        if negative_is_none or self.never_negative(e):
            return e
        return simplify_expression(binary("max", e, 0))


def _plus(p: Polynomial, n: int) -> Polynomial:
    return difference(p, {(): -n} if n else {})
