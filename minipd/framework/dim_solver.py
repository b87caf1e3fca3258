"""What follows from assumptions about symbolic dimensions.

*Equalities* are solved for a symbol that stands in them linearly, and that symbol is replaced everywhere (S1 == S0: S1
is S0 from then on; S0 == 8: S0 is 8), so that all other questions are asked about the least symbols.  *Orders* give
ranges of symbols (S0 >= 2), and sums that are at least 0; bounds of an expression follow from both.  *Divisibility* is
looked up.  A question is answered True or False only if the answer holds for all sizes that fulfil the assumptions.
"""

from __future__ import annotations

from typing import Any

from minipd.framework.constraints import Constraint
from minipd.framework.dim_atoms import INFINITE, SIZES, Range, always_equal, bounds
from minipd.framework.dim_division import known_remainder, quotient
from minipd.framework.dim_expr import Atom, DimExpr, Size, lift, normal

__all__: list[str] = []


class Facts:
    """What is assumed.  Immutable; `and_also` makes the next.

    known: symbol -> what it equals.  ranges: symbol -> its smallest and largest value.  least: sizes that are at least
    0.  multiples: (size, divisor) that leave no rest.  fitting: pairs that broadcast.  apart: sizes that are not 0.
    """

    def __init__(self) -> None:
        self.known: dict[str, Size] = {}
        self.ranges: dict[str, Range] = {}
        self.least: list[DimExpr] = []
        self.multiples: list[tuple[Size, Size]] = []
        self.fitting: list[frozenset[Size]] = []
        self.apart: list[DimExpr] = []

    def simplified(self, dim: Size) -> Size:
        """The size without the symbols that equal something else, and without roundings that change nothing."""
        if isinstance(dim, DimExpr) and self.known and dim.symbols & self.known.keys():
            try:
                dim = dim.substitute(self.known)
            except ValueError:                  # S0/2 with S0 == 3: no size at all, which its own assumption tells
                return dim
        if self.multiples and isinstance(dim, DimExpr) and dim.atoms:
            exact = {atom: found for atom in dim.atoms if (found := self._exact(atom)) is not None}
            if exact:
                return _replaced(dim, exact)
        return dim

    def _exact(self, atom: Atom) -> Size | None:
        """A rounded quotient as the exact one, if it is known to be whole."""
        if atom.function == "//" and self._divisible(*map(self.simplified, atom.args)):
            try:
                return quotient(*atom.args)
            except ValueError:
                return None
        return None

    # ------------------------------------------------------------------------------------------------ questions
    def judge(self, c: Constraint) -> bool | None:
        """True if `c` follows, False if it cannot hold, None if that depends on the sizes."""
        left, right = self.simplified(c.left), self.simplified(c.right)
        match c.kind:
            case "equal":
                return self._equal(left, right)
            case "unequal":
                equal = self._equal(left, right)
                return None if equal is None else not equal
            case "at least":
                return self._at_least_0(left - right)
            case "divisible":
                return self._divisible(left, right)
        if left == 1 or right == 1 or frozenset((left, right)) in self.fitting:
            return True
        equal = self._equal(left, right)
        if equal is False and all(self._equal(d, 1) is False for d in (left, right)):
            return False
        return equal or None

    def _equal(self, left: Size, right: Size) -> bool | None:
        difference = left - right
        low, high = bounds(difference, self.ranges)
        if low > 0 or high < 0 or difference in self.apart or -difference in self.apart:
            return False
        return True if low == high == 0 or always_equal(left, right) else None

    def _at_least_0(self, dim: Size) -> bool | None:
        low, high = bounds(dim, self.ranges)
        if low >= 0:
            return True
        if high < 0:
            return False
        return True if any(bounds(dim - other, self.ranges)[0] >= 0 for other in self.least) else None

    def _divisible(self, left: Size, right: Size) -> bool | None:
        if right == 0:
            return False
        rest = known_remainder(lift(left), lift(right))
        if rest is not None:
            return rest == 0
        for dim, divisor in self.multiples:     # left = dim * (whole) and divisor = right * (whole)
            if divided(left, dim) and divided(divisor, right):
                return True
        return None

    # ------------------------------------------------------------------------------------------------- learning
    def and_also(self, c: Constraint) -> Facts:
        """These facts and `c`, of which they do not tell whether it holds."""
        new = Facts()
        new.known, new.ranges, new.least = dict(self.known), dict(self.ranges), list(self.least)
        new.multiples, new.fitting, new.apart = list(self.multiples), list(self.fitting), list(self.apart)
        new._learn(c)
        return new

    def only(self, c: Constraint) -> Facts:
        """The equalities of these facts and `c`, nothing else."""
        new = Facts()
        new.known = self.known
        return new if c.kind == "equal" else new.and_also(c)

    def _learn(self, c: Constraint) -> None:
        left, right = self.simplified(c.left), self.simplified(c.right)
        match c.kind:
            case "equal":
                self._solve(left - right)
            case "unequal":
                self._separate(left - right)
            case "at least":
                self._order(left - right)
            case "divisible":
                self.multiples.append((left, right))
            case _:
                self.fitting.append(frozenset((left, right)))

    def _solve(self, difference: Size) -> None:
        """`difference` is 0: replace a symbol of it, the last one that can be."""
        if not isinstance(difference, DimExpr):
            return
        inside = frozenset().union(*(a.symbols for a in difference.atoms))
        for monomial, coefficient in sorted(difference.terms, key=lambda term: _by_number(term[0]), reverse=True):
            if len(monomial) != 1 or isinstance(monomial[0], Atom):
                continue
            name = monomial[0]
            rest = normal({m: c for m, c in difference.terms if m != monomial}, 1)
            value = lift(rest) / -coefficient
            if name in inside or isinstance(value, DimExpr) and (value.denominator != 1 or name in value.symbols):
                continue
            low, high = self.ranges.pop(name, SIZES)
            self.known = {other: _with(size, name, value) for other, size in self.known.items()} | {name: value}
            self.least = [d for d in map(self.simplified, self.least) if isinstance(d, DimExpr)]
            self.multiples = [(self.simplified(a), self.simplified(b)) for a, b in self.multiples]
            self.fitting = [frozenset(map(self.simplified, pair)) for pair in self.fitting]
            self._order(value - int(low))
            if high != INFINITE:
                self._order(int(high) - value)
            apart, self.apart = self.apart, []
            for other in apart:
                self._separate(self.simplified(other))
            return

    def _separate(self, difference: Size) -> None:
        """`difference` is not 0."""
        if not isinstance(difference, DimExpr):
            return
        self.apart.append(difference)
        low, high = bounds(difference, self.ranges)
        if low == 0:
            self._order(difference - 1)
        if high == 0:
            self._order(-difference - 1)

    def _order(self, spare: Size) -> None:
        """`spare` is at least 0."""
        if not isinstance(spare, DimExpr):
            return
        linear = [(m, c) for m, c in spare.terms if m]
        (monomial, coefficient), constant = linear[0], sum(c for m, c in spare.terms if not m)
        if len(linear) != 1 or len(monomial) != 1 or isinstance(monomial[0], Atom):
            self.least.append(spare)
            return
        low, high = self.ranges.get(monomial[0], SIZES)
        if coefficient > 0:
            low = max(low, -(constant // coefficient))          # a n + b >= 0: n >= ceil(-b / a)
        else:
            high = min(high, constant // -coefficient)
        self.ranges[monomial[0]] = low, high


def divided(dim: Size, divisor: Size) -> bool:
    """Whether `dim` is `divisor` times a polynomial of whole coefficients."""
    try:
        found = quotient(dim, divisor)
    except (ValueError, ZeroDivisionError):
        return False
    return not isinstance(found, DimExpr) or found.denominator == 1


def _replaced(dim: DimExpr, atoms: dict[Atom, Size]) -> Size:
    """`dim` with other sizes in the place of atoms."""
    result: Size = 0
    for monomial, coefficient in dim.terms:
        term = normal({(): coefficient}, dim.denominator)
        for name in monomial:
            found = atoms.get(name) if isinstance(name, Atom) else None
            term = term * (normal({(name,): 1}, 1) if found is None else found)
        result = result + term
    return result


def _by_number(monomial: tuple[str, ...]) -> tuple[Any, ...]:
    """An order in which S10 comes after S9."""
    return len(monomial) == 1, len(monomial[0]) if monomial else 0, monomial


def _with(size: Size, name: str, value: Size) -> Size:
    return size.substitute({name: value}) if isinstance(size, DimExpr) else size
