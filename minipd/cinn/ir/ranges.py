"""What is known of ints: which are never negative, and how large they get."""

from __future__ import annotations

from collections.abc import Mapping

from minipd.cinn.ir.ast import BOOL, INT64, Binary, Const, Dim, Expr, Var
from minipd.cinn.ir.build import binary
from minipd.cinn.ir.linear import Polynomial, coefficient, constant_of, difference, from_polynomial, polynomial
from minipd.cinn.ir.simplify import simplify_expression
from minipd.cinn.ir.walk import map_children, names

__all__ = ["Ranges", "simplify_in_ranges", "upper_bounds"]


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

    def positive(self, e: Expr) -> bool:
        """Whether e is no zero: a number, or the size of an array, in whose loops one is, or what one divides by."""
        return e.value > 0 if isinstance(e, Const) else isinstance(e, Dim | Var) and e != Const(0, INT64)

    def below(self, p: Polynomial, bound: Polynomial) -> bool:
        """Whether p < bound: by numbers, or because p is one loop variable and the bound its extent."""
        most = self.most(difference(p, bound))
        if most is not None and most < 0:
            return True
        (monomial, c), *more = p.items() if p else [((), 0)]
        if more or c != 1 or len(monomial) != 1 or not isinstance(monomial[0], Var):
            return False
        return any(polynomial(b) == bound for b in upper_bounds(self.extents.get(monomial[0].name, Const(0, INT64))))

    def _least(self, e: Expr) -> bool:
        most = self.most(difference({}, polynomial(e)))
        return most is not None and most <= 0

    def resolved(self, e: Expr) -> Expr:
        """e without the sides of min and max that are known not to count."""
        if not isinstance(e, Binary) or e.op not in ("min", "max") or e.dtype != INT64:
            return e
        x, y = self.resolved(e.x), self.resolved(e.y)
        for small, large in ((x, y), (y, x)):
            if self.never_negative(from_polynomial(difference(polynomial(large), polynomial(small)))):
                return small if e.op == "min" else large
        return simplify_expression(binary(e.op, x, y))

    def clipped(self, e: Expr, negative_is_none: bool) -> Expr:
        """e as an extent or a first iteration: at least 0; `negative_is_none` where that makes no difference."""
        e = self.resolved(simplify_expression(e))
        if not isinstance(e, Binary) or e.op in ("add", "sub"):
            e = from_polynomial(polynomial(e))
        if negative_is_none or self.never_negative(e):
            return e
        return simplify_expression(binary("max", e, 0))


def _plus(p: Polynomial, n: int) -> Polynomial:
    return difference(p, {(): -n} if n else {})


def simplify_in_ranges(e: Expr, ranges: Ranges) -> Expr:
    """e with quotients and remainders resolved, where the ranges of loops tell.

    >>> from minipd.cinn.ir.printer import text
    >>> i, j = Var("i"), Var("j")
    >>> position = binary("add", binary("mul", i, 64), j)
    >>> inside = Ranges({"i": Const(10, INT64), "j": Const(64, INT64)})
    >>> for op in ("floordiv", "mod"):
    ...     print(text(simplify_in_ranges(binary(op, position, 64), inside)))
    i
    j
    """
    e = map_children(lambda x: simplify_in_ranges(x, ranges), e)
    match e:
        case Binary(op="floordiv" | "mod" as op, x=x, y=y) if e.dtype == INT64:
            found = _divided(polynomial(x), y, ranges)
            if found is not None:
                return from_polynomial(found[op == "mod"])
            if op == "floordiv" and isinstance(x, Binary) and x.op == "floordiv":
                inner, outer = x.y, y                       # (a // b) // c
                if ranges.positive(inner) and ranges.positive(outer):
                    return simplify_in_ranges(binary("floordiv", x.x, from_polynomial(polynomial(
                        binary("mul", inner, outer)))), ranges)
    return simplify_expression(e)


def _divided(p: Polynomial, divisor: Expr, ranges: Ranges) -> tuple[Polynomial, Polynomial] | None:
    """(quotient, remainder), where it is known that the remainder is one."""
    if not ranges.positive(divisor):
        return None
    number = divisor.value if isinstance(divisor, Const) else None
    quotient: Polynomial = {}
    remainder: Polynomial = {}
    for monomial, c in p.items():
        if number is not None:
            if c // number:
                quotient[monomial] = int(c // number)
            if c % number:
                remainder[monomial] = int(c % number)
        elif divisor in monomial:
            k = monomial.index(divisor)
            quotient[monomial[:k] + monomial[k + 1:]] = c
        else:
            remainder[monomial] = c
    e = from_polynomial(remainder)
    if ranges.never_negative(e) and ranges.below(remainder, polynomial(divisor)):
        return quotient, remainder
    return None
