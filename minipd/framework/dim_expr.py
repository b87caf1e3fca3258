"""DimExpr: a size that is not known while a program is traced, as a polynomial in named symbols.

Coefficients are rational.  There is one normal form (integer coefficients over one common denominator, in lowest terms,
monomials in a fixed order), so two expressions are equal exactly when they are the same polynomial.  A constant integer
polynomial never stays a `DimExpr`: it folds back to `int`.

What is no polynomial (a quotient rounded down, a maximum, a broadcast size) is an `Atom`: it stands in a monomial as a
symbol does, and has a normal form of its own (`dim_atoms`).  Exact division is in `dim_division`.

Shape rules import what they need from `dim`, the functions that treat ints and symbols alike.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, Union

from minipd.framework.constraints import UnknownSize, current_asking, current_constraints

__all__: list[str] = []

HINT = 64  # what a symbol counts as when only an ordering is wanted (a tile size, a cost), never a result

Monomial = tuple[str, ...]  # symbols and atoms, sorted, repeated for powers: S0*S0*S1 is ("S0", "S0", "S1")
Size = Union[int, "DimExpr"]

#: function of an atom -> what computes it, on ints and on symbolic sizes alike; filled by `dim_atoms`
FUNCTIONS: dict[str, Callable[..., Size]] = {}


class Atom(str):
    """`function(*args)` in a monomial.  It is its text, `S0//2` or `Max(S0,4)`: equal texts are equal sizes."""

    __slots__ = ("args", "function")
    function: str
    args: tuple[Size, ...]

    def __new__(cls, text: str, function: str, args: tuple[Size, ...]) -> Atom:
        atom = super().__new__(cls, text)
        atom.function, atom.args = function, args
        return atom

    def __getnewargs__(self) -> tuple:
        return str(self), self.function, self.args

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset().union(*(a.symbols for a in self.args if isinstance(a, DimExpr)))

    def substitute(self, bindings: Mapping[str, Size]) -> Size:
        return FUNCTIONS[self.function](
            *(a.substitute(bindings) if isinstance(a, DimExpr) else a for a in self.args))


class DimExpr:
    """A polynomial in symbols, `sum(coefficient * monomial) / denominator`.  Immutable; made by `symbol` and +-*.

    >>> s, t = symbol("S0"), symbol("S1")
    >>> 2 * s + 1, s * t / 4, s - s + 3
    (2*S0+1, S0*S1/4, 3)
    >>> (s + t) * (s - t) == s * s - t * t
    True
    >>> s * t // s
    S1
    """

    __slots__ = ("terms", "denominator")
    terms: tuple[tuple[Monomial, int], ...]
    denominator: int

    def __init__(self, terms: tuple[tuple[Monomial, int], ...], denominator: int):
        self.terms, self.denominator = terms, denominator

    # -- arithmetic: a DimExpr or an int comes back -----------------------------------------------------------------
    def __add__(self, other: Any) -> Size:
        other = _coerce(self, "+", other)
        if other is None:
            return NotImplemented
        total = {m: c * other.denominator for m, c in self.terms}
        for m, c in other.terms:
            total[m] = total.get(m, 0) + c * self.denominator
        return normal(total, self.denominator * other.denominator)

    def __mul__(self, other: Any) -> Size:
        other = _coerce(self, "*", other)
        if other is None:
            return NotImplemented
        total: dict[Monomial, int] = {}
        for m, c in self.terms:
            for n, d in other.terms:
                product = tuple(sorted(m + n))
                total[product] = total.get(product, 0) + c * d
        return normal(total, self.denominator * other.denominator)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Any) -> Size:
        other = _coerce(self, "-", other)
        return NotImplemented if other is None else self + other * -1

    def __rsub__(self, other: Any) -> Size:
        return self * -1 + other

    def __truediv__(self, other: Any) -> Size:
        """The rational quotient.  Whether it is whole is seen when it is evaluated; `//` records it as assumed."""
        other = _coerce(self, "/", other)
        return NotImplemented if other is None else _division().quotient(self, other)

    def __rtruediv__(self, other: Any) -> Size:
        other = _coerce(self, "/", other)
        return NotImplemented if other is None else _division().quotient(other, self)

    def __floordiv__(self, other: Any) -> Size:
        """The quotient rounded down, for every size; `exact_div` is the one that is whole by assumption."""
        return NotImplemented if _coerce(self, "//", other) is None else FUNCTIONS["//"](self, other)

    def __rfloordiv__(self, other: Any) -> Size:
        return NotImplemented if _coerce(self, "//", other) is None else FUNCTIONS["//"](other, self)

    def __mod__(self, other: Any) -> Size:
        """The remainder: known whatever the symbols are, or 0 by assumption."""
        if _coerce(self, "%", other) is None:
            return NotImplemented
        exact = None if current_asking() is None else _asked().exact_remainder(self, other)
        return _division().remainder(self, other, f"{self} % {other}") if exact is None else exact

    def __rmod__(self, other: Any) -> Size:
        if _coerce(self, "%", other) is None:
            return NotImplemented
        exact = None if current_asking() is None else _asked().exact_remainder(other, self)
        return _division().remainder(other, self, f"{other} % {self}") if exact is None else exact

    # -- equality is structural; order and truth are known only where all sizes have the same answer --------------
    # (for user code that is traced, `asked` knows more)
    def __eq__(self, other: object) -> bool:
        if isinstance(other, DimExpr) and self.terms == other.terms and self.denominator == other.denominator:
            return True
        return current_asking() is not None and _asked().equal(self, other)

    def __hash__(self) -> int:
        # a set or a dict looks no further where hashes differ; when Python ends, weak tables still hash: nobody asks
        if current_asking() is not None and not sys.is_finalizing() and _asked().by_user(2):
            value = _asked().value(self, f"hash({self})")
            if value is None:
                raise self._unknown(f"hash({self})")
            return hash(value)
        return hash((self.terms, self.denominator))

    def __bool__(self) -> bool:
        low, high = self.bounds()
        if low > 0 or high < 0:
            return True
        answer = None if current_asking() is None else _asked().truth(self)
        if answer is None:
            raise self._unknown(f"bool({self})")
        return answer

    def __lt__(self, other: Any) -> bool:
        return self._compare("<", other, -1, -1)

    def __le__(self, other: Any) -> bool:
        return self._compare("<=", other, -1, 0)

    def __gt__(self, other: Any) -> bool:
        return self._compare(">", other, 1, -1)

    def __ge__(self, other: Any) -> bool:
        return self._compare(">=", other, 1, 0)

    def _compare(self, sign: str, other: Any, direction: int, spare: int) -> bool:
        """Whether `direction * (self - other) + spare` is at least 0."""
        if _coerce(self, sign, other) is None:
            return NotImplemented
        difference = (self - other) * direction + spare
        low, high = difference.bounds() if isinstance(difference, DimExpr) else (difference, difference)
        if low >= 0 or high < 0:
            return low >= 0
        answer = None if current_asking() is None else _asked().at_least(lift(difference), f"{self} {sign} {other}")
        if answer is None:
            raise self._unknown(f"{self} {sign} {other}")
        return answer

    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value, as far as the assumptions of the trace tell; sizes are never negative."""
        from minipd.framework.dim_atoms import bounds
        collector = current_constraints()
        return bounds(self) if collector is None else bounds(collector.simplified(self), collector.ranges)

    def __index__(self) -> int:
        value = None if current_asking() is None else _asked().value(self, f"int({self})")
        if value is None:
            raise self._unknown(f"int({self})")
        return value

    __int__ = __index__

    def _unknown(self, question: str) -> UnknownSize:
        return UnknownSize(
            f"{question}: expected a size known while tracing, got the symbolic dimension {self}, whose value only the "
            "run knows. Compare with == (it is assumed to differ), state what must hold with require_equal or "
            "require_divisible, compute with paddle.shape(x), which the run knows, or trace with a fixed size for this "
            "dimension.",
            self.symbols)

    # -- values -------------------------------------------------------------------------------------------------------
    @property
    def symbols(self) -> frozenset[str]:
        """The names that occur, inside of atoms too."""
        return frozenset().union(*(name.symbols if isinstance(name, Atom) else (name,)
                                   for monomial, _ in self.terms for name in monomial))

    @property
    def atoms(self) -> frozenset[Atom]:
        """What occurs besides symbols."""
        return frozenset(name for monomial, _ in self.terms for name in monomial if isinstance(name, Atom))

    @property
    def lone(self) -> str | None:
        """The symbol or atom that this is, if it is one and nothing else."""
        if self.denominator == 1 and len(self.terms) == 1 and len(self.terms[0][0]) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0][0]
        return None

    @property
    def is_symbol(self) -> bool:
        """Whether this is a lone symbol, whose value can be read off a real shape."""
        lone = self.lone
        return lone is not None and not isinstance(lone, Atom)

    def solve(self, size: int) -> tuple[str, int] | None:
        """(symbol, its value) if one symbol's value can be read off the size: `(a * symbol + b) / c`.  Else None.

        >>> (symbol("S0") / 2).solve(3), (2 * symbol("S0") + 1).solve(4), (symbol("S0") * symbol("S1")).solve(6)
        (('S0', 6), None, None)
        """
        linear = [(m, c) for m, c in self.terms if m]
        if len(linear) != 1 or len(linear[0][0]) != 1 or isinstance(linear[0][0][0], Atom):
            return None
        (name,), factor = linear[0]
        value, rest = divmod(size * self.denominator - sum(c for m, c in self.terms if not m), factor)
        return None if rest else (name, value)

    @property
    def hint(self) -> int:
        """A stand-in size, every symbol counted as `HINT`: for orderings and costs only."""
        return max(0, round(_total(self, dict.fromkeys(self.symbols, HINT)) / self.denominator))

    def evaluate(self, bindings: Mapping[str, int]) -> int:
        """The size for the given values of all symbols.

        ValueError if a symbol has no value, or the size is no whole number, or negative.

        >>> (symbol("S0") / 4).evaluate({"S0": 12})
        3
        """
        value = self.substitute(bindings)
        if isinstance(value, DimExpr):
            raise ValueError(
                f"dimension {self}: expected a size for every symbol, got none for {', '.join(sorted(value.symbols))} "
                f"in {dict(bindings)}"
            )
        if value < 0:
            sizes = self._sizes(bindings)
            raise ValueError(f"dimension {self}: expected a size of at least 0, got {value} for {sizes}")
        return value

    def substitute(self, bindings: Mapping[str, Size]) -> Size:
        """Replaces symbols, each by an int or an expression; the rest stay.

        The result may be negative (an offset); ValueError if it is a number but not whole.

        >>> (symbol("S0") * symbol("S1")).substitute({"S1": 3})
        3*S0
        """
        result: Size
        if all(name in bindings and type(bindings[name]) is not DimExpr for name in self.symbols):
            result = normal({(): _total(self, bindings)}, self.denominator)
        else:
            result = 0
            for monomial, coefficient in self.terms:
                term: Size = normal({(): coefficient}, self.denominator)
                for name in monomial:
                    if isinstance(name, Atom):
                        term = term * name.substitute(bindings)
                    else:
                        term = term * bindings[name] if name in bindings else term * symbol(name)
                result = result + term
        if type(result) is DimExpr and not result.symbols:
            raise ValueError(
                f"dimension {self}: expected a whole number, got {result} for {self._sizes(bindings)}: "
                "the assumption that it divides evenly fails. Feed sizes that divide."
            )
        return result

    def _sizes(self, bindings: Mapping[str, Size]) -> str:
        return ", ".join(f"{name}={bindings[name]}" for name in sorted(self.symbols) if name in bindings)

    # -- text ---------------------------------------------------------------------------------------------------------
    def __repr__(self) -> str:
        text = ""
        for monomial, coefficient in self.terms:
            plain = coefficient == 1 and len(monomial) == 1 and (self.denominator == 1 or len(self.terms) > 1)
            factors = [f"({m})" if isinstance(m, Atom) and m.function == "//" and not plain else m for m in monomial]
            if abs(coefficient) != 1 or not monomial:
                factors.insert(0, str(abs(coefficient)))
            text += ("-" if coefficient < 0 else "+" if text else "") + "*".join(factors)
        if self.denominator == 1:
            return text
        return f"({text})/{self.denominator}" if len(self.terms) > 1 else f"{text}/{self.denominator}"


def _asked() -> Any:
    """What answers the questions of user code; it is above this module."""
    from minipd.framework import asked
    return asked


def _division() -> Any:
    """What divides polynomials; it is above this module."""
    from minipd.framework import dim_division
    return dim_division


def symbol(name: str) -> DimExpr:
    """The dimension called `name`: capital letters and digits, so that `S0x16` and `B_dp` can be read one way only."""
    if not re.fullmatch("[A-Z][A-Z0-9]*", name):
        raise ValueError(f"symbol: expected a name of capital letters and digits such as S0, got {name!r}")
    return DimExpr((((name,), 1),), 1)


# -- the polynomials themselves -----------------------------------------------------------------------------------
def normal(total: dict[Monomial, int], denominator: int) -> Size:
    """The normal form: no zero terms, lowest terms, highest degree first; an int if it is one."""
    total = {m: c for m, c in total.items() if c}
    if not total:
        return 0
    shared = math.gcd(denominator, *total.values())
    if denominator == shared and len(total) == 1 and () in total:
        return total[()] // shared
    ordered = sorted(total.items(), key=lambda term: (-len(term[0]), term[0]))
    return DimExpr(tuple((m, c // shared) for m, c in ordered), denominator // shared)


def lift(x: Size) -> DimExpr:
    """The polynomial of an int, to compute with: what comes of it must be made normal again."""
    if isinstance(x, DimExpr):
        return x
    return DimExpr((((), x),) if x else (), 1)


def _coerce(dim: DimExpr, operator: str, other: Any) -> DimExpr | None:
    """The other operand as a polynomial; None if it is for the other's type to say what the operation means."""
    if isinstance(other, DimExpr):
        return other
    if isinstance(other, Integral):
        return lift(int(other))
    if isinstance(other, float):
        raise TypeError(
            f"{dim} {operator} {other}: expected an int or a dimension, got a float. A dimension is a whole number; "
            "to compute with its size, make it a tensor."
        )
    return None


def _total(dim: DimExpr, bindings: Mapping[str, Any]) -> int:
    """The numerator's value when every symbol is bound to an int."""
    total = 0
    for monomial, coefficient in dim.terms:
        for name in monomial:
            value = name.substitute(bindings) if isinstance(name, Atom) else bindings[name]
            coefficient = coefficient * int(value)
        total += coefficient
    return total
