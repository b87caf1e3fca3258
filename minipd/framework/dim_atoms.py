"""What sizes need besides polynomials: quotients rounded down, maxima, minima, broadcast sizes; and bounds of all.

Each function computes on ints, and gives symbolic arguments a normal form, so that sizes that are equal mostly print
equal too: `(S0+3)//2` is `(S0+1)//2+1`, `S0//2//2` is `S0//4`, `Max(S0,0)` is `S0`.  (Not always: `S0-S0//2` and
`(S0+1)//2` are two forms of one size.  `always_equal` finds that.)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from minipd.framework.dim_division import quotient
from minipd.framework.dim_expr import FUNCTIONS, Atom, DimExpr, Size, lift, normal

__all__: list[str] = []

INFINITE = math.inf
Range = tuple[float, float]     # smallest and largest value, ints or infinite
SIZES: Range = (0, INFINITE)


def _function(name: str) -> Callable:
    def register(compute: Callable) -> Callable:
        FUNCTIONS[name] = compute
        return compute
    return register


def _atom(text: str, function: str, args: tuple[Size, ...]) -> DimExpr:
    return DimExpr((((Atom(text, function, args),), 1),), 1)


def _call(function: str, args: tuple[Size, ...]) -> DimExpr:
    return _atom(f"{function}({','.join(map(str, args))})", function, args)


def _factor(dim: Size) -> str:
    """The text of one side of a quotient."""
    simple = isinstance(dim, int) and dim >= 0 or isinstance(dim, DimExpr) and (
        (lone := dim.lone) is not None and getattr(lone, "function", "") != "//")
    return str(dim) if simple else f"({dim})"


# ------------------------------------------------------------------------------------------------------ quotients
@_function("//")
def floor_div(dim: Size, divisor: Size) -> Size:
    """`dim // divisor`.

    >>> from minipd.framework.dim_expr import symbol
    >>> s = symbol("S0")
    >>> floor_div(7, 2), floor_div(4 * s + 3, 2), floor_div(s + 3, 2), floor_div(floor_div(s, 2) + 1, 2)
    (3, 2*S0+1, (S0+1)//2+1, (S0+2)//4)
    """
    if isinstance(dim, int) and isinstance(divisor, int):
        return dim // divisor
    try:
        whole = quotient(dim, divisor)
    except ValueError:
        pass
    else:
        if not isinstance(whole, DimExpr) or whole.denominator == 1:
            return whole
        return _floor(normal(dict(whole.terms), 1), whole.denominator)
    dividend, by = lift(dim), lift(divisor)
    above, below = normal(dict(dividend.terms), 1) * by.denominator, normal(dict(by.terms), 1) * dividend.denominator
    return _floor(above, below) if isinstance(below, int) else _atom(f"{_factor(above)}//{_factor(below)}", "//",
                                                                    (above, below))


def ceil_div(dim: Size, divisor: Size) -> Size:
    """`dim / divisor` rounded up.

    >>> from minipd.framework.dim_expr import symbol
    >>> ceil_div(7, 2), ceil_div(symbol("S0"), 3)
    (4, (S0+2)//3)
    """
    return -floor_div(-dim, divisor)


def modulo(dim: Size, divisor: Size) -> Size:
    """The remainder, for every size (`%` of a symbolic one is 0 by assumption).

    >>> from minipd.framework.dim_expr import symbol
    >>> modulo(7, 2), modulo(4 * symbol("S0") + 3, 2), modulo(symbol("S0"), 2)
    (1, 1, S0-2*(S0//2))
    """
    return dim - floor_div(dim, divisor) * divisor


def _floor(dim: Size, divisor: int) -> Size:
    """The quotient of a polynomial of whole coefficients: what divides leaves the rounding, what is left is reduced to
    lowest terms, and of an expression and its negative the one that begins with a positive term is rounded."""
    if divisor < 0:
        dim, divisor = -dim, -divisor
    if isinstance(dim, int):
        return dim // divisor
    if dim.terms[0][1] < 0:
        return -_floor(-dim + (divisor - 1), divisor)
    whole = normal({m: c // divisor for m, c in dim.terms}, 1)
    rest = {m: c % divisor for m, c in dim.terms if c % divisor}
    factors = [c for m, c in rest.items() if m]
    if not factors:
        return whole
    shared = math.gcd(divisor, *factors)
    part = normal({m: c // shared for m, c in rest.items()}, 1)     # the constant is rounded, which changes nothing
    return whole + _irreducible(part, divisor // shared)


def _irreducible(dim: Size, divisor: int) -> Size:
    if divisor == 1 or isinstance(dim, int):
        return dim if divisor == 1 else dim // divisor
    inner = [(m, c) for m, c in dim.terms if m]
    (monomial, coefficient), shift = inner[0], sum(c for m, c in dim.terms if not m)
    if len(inner) == 1 and coefficient == 1 and len(monomial) == 1 and isinstance(atom := monomial[0], Atom) and \
            atom.function == "//" and isinstance(atom.args[1], int):
        dividend, by = atom.args            # (a // b + c) // d is (a + b c) // (b d)
        return floor_div(dividend + by * shift, by * divisor)
    return _atom(f"{_factor(dim)}//{divisor}", "//", (dim, divisor))


# ---------------------------------------------------------------------------------------- maxima, minima, broadcasts
@_function("Max")
def maximum(*sizes: Size) -> Size:
    """The largest.

    >>> from minipd.framework.dim_expr import symbol
    >>> maximum(symbol("S0"), 0), maximum(symbol("S1"), 4, symbol("S0"), 3), maximum(symbol("S0") + 1, symbol("S0"))
    (S0, Max(S0,S1,4), S0+1)
    """
    return _extreme("Max", sizes, max, lambda a, b: bounds(a - b)[0] >= 0)


@_function("Min")
def minimum(*sizes: Size) -> Size:
    """The smallest.

    >>> from minipd.framework.dim_expr import symbol
    >>> minimum(symbol("S0"), 0), minimum(symbol("S0"), 8)
    (0, Min(S0,8))
    """
    return _extreme("Min", sizes, min, lambda a, b: bounds(a - b)[1] <= 0)


def _flat(function: str, sizes: tuple[Size, ...]) -> tuple[list[int], list[DimExpr]]:
    """The ints among the arguments, and the symbolic ones, each once, sorted, those of nested calls among them."""
    ints: list[int] = []
    symbolic: dict[DimExpr, None] = {}
    pending = list(sizes)
    while pending:
        x = pending.pop()
        if not isinstance(x, DimExpr):
            ints.append(x)
        elif isinstance(lone := x.lone, Atom) and lone.function == function:
            pending += lone.args
        else:
            symbolic[x] = None
    return ints, sorted(symbolic, key=str)


def _extreme(function: str, sizes: tuple[Size, ...], of_ints: Callable, beats: Callable[[Size, Size], bool]) -> Size:
    ints, symbolic = _flat(function, sizes)
    if not symbolic:
        return of_ints(ints)
    args: list[Size] = [*symbolic, *([of_ints(ints)] if ints else [])]
    for a in tuple(args):
        if any(b is not a and beats(b, a) for b in args):
            args.remove(a)
    return args[0] if len(args) == 1 else _call(function, tuple(args))


@_function("Broadcast")
def broadcast(*sizes: Size) -> Size:
    """The common size of dimensions that broadcast: those that are not 1 are equal.

    Raises: ValueError for ints that do not broadcast.

    >>> from minipd.framework.dim_expr import symbol
    >>> broadcast(symbol("S0"), 1), broadcast(symbol("S1"), symbol("S0")), broadcast(symbol("S0"), 8)
    (S0, Broadcast(S0,S1), 8)
    """
    ints, symbolic = _flat("Broadcast", sizes)
    known = {n for n in ints if n != 1}
    if len(known) > 1:
        raise ValueError(f"broadcast: expected sizes that are equal or 1, got {', '.join(map(str, sizes))}")
    if known or not symbolic:
        return known.pop() if known else 1
    return symbolic[0] if len(symbolic) == 1 else _call("Broadcast", tuple(symbolic))


# --------------------------------------------------------------------------------------------------------- bounds
def bounds(dim: Size, ranges: Mapping[str, Range] = {}) -> Range:
    """The smallest and the largest value that a whole size may have; `ranges`: of symbols, by default 0 and up.

    >>> from minipd.framework.dim_expr import symbol
    >>> s = symbol("S0")
    >>> bounds(2 * s + 1), bounds(s - s // 2), bounds(minimum(s, 8) - 9)
    ((1, inf), (0, inf), (-9, -1))
    """
    if not isinstance(dim, DimExpr):
        return dim, dim
    low, high = _of_terms(dim, ranges)
    for sign in (1, -1):                    # a quotient lies within 1 of the fraction, which may cancel against others
        relaxed = _fractions_for_quotients(dim, sign)
        if relaxed is not None:
            near = _of_terms(relaxed, ranges)
            low, high = (max(low, near[0]), high) if sign > 0 else (low, min(high, near[1]))
    return (math.ceil(low) if low != -INFINITE else low), (math.floor(high) if high != INFINITE else high)


def _of_terms(dim: DimExpr, ranges: Mapping[str, Range]) -> Range:
    low: float | Fraction = 0
    high: float | Fraction = 0
    for monomial, coefficient in dim.terms:
        ends: Range = (1, 1)
        for power in (len(list(same)) for _, same in itertools.groupby(monomial)):
            name = monomial[0]
            monomial = monomial[power:]
            ends = _times(ends, _power(_of_name(name, ranges), power))
        a, b = _times(ends, (coefficient, coefficient))
        low, high = low + _over(a, dim.denominator), high + _over(b, dim.denominator)
    return low, high            # type: ignore[return-value]


def _over(value: float, denominator: int) -> float | Fraction:
    return value if value in (INFINITE, -INFINITE) or denominator == 1 else Fraction(int(value), denominator)


def _times(a: Range, b: Range) -> Range:
    products = [0 if 0 in (x, y) else x * y for x in a for y in b]
    return min(products), max(products)


def _power(a: Range, n: int) -> Range:
    result = a
    for _ in range(n - 1):
        result = _times(result, a)
    return (max(result[0], 0), result[1]) if n % 2 == 0 else result


def _of_name(name: str, ranges: Mapping[str, Range]) -> Range:
    if not isinstance(name, Atom):
        return ranges.get(name, SIZES)
    args = [bounds(a, ranges) for a in name.args]
    match name.function:
        case "Max":
            return max(a for a, _ in args), max(b for _, b in args)
        case "Min":
            return min(a for a, _ in args), min(b for _, b in args)
        case "//":
            (low, high), (least, most) = args
            if least < 1:
                return -INFINITE, INFINITE
            ends = [_rounded(x, y) for x in (low, high) for y in (least, most)]
            return min(ends), max(ends)
    return 0, max(b for _, b in args)       # a broadcast size is one of them


def _rounded(dim: float, divisor: float) -> float:
    if divisor == INFINITE:
        return 0 if dim >= 0 else -1 if dim != -INFINITE else -INFINITE
    return dim // divisor if dim not in (INFINITE, -INFINITE) else dim


def _fractions_for_quotients(dim: DimExpr, sign: int) -> DimExpr | None:
    """`dim` with a fraction that is no larger (sign > 0) or no smaller in place of each quotient by an int that stands
    alone in a term; None if there is none."""
    total: Size = 0
    found = False
    for monomial, coefficient in dim.terms:
        if len(monomial) == 1 and isinstance(atom := monomial[0], Atom) and atom.function == "//" and \
                isinstance(atom.args[1], int):
            found, by = True, atom.args[1]
            slack = by - 1 if coefficient * sign > 0 else 0
            total = total + quotient(quotient(lift(atom.args[0]) - slack, by) * coefficient, dim.denominator)
        else:
            total = total + normal({monomial: coefficient}, dim.denominator)
    return lift(total) if found else None


# ------------------------------------------------------------------------------------------------------- equality
def always_equal(a: Size, b: Size, points: int = 4096) -> bool:
    """Whether two sizes are equal for all values of their symbols, as far as that can be told.

    Polynomials are, exactly when they are one.  A size with quotients by ints repeats itself as a polynomial does, with
    the period of the quotients; so it is enough to try as many periods as its degree asks for (at most `points`).

    >>> from minipd.framework.dim_expr import symbol
    >>> s = symbol("S0")
    >>> always_equal((s + 1) // 2, s - s // 2), always_equal((s + 1) // 2, s // 2)
    (True, False)
    """
    difference = a - b
    if not isinstance(difference, DimExpr):
        return difference == 0
    difference = lift(normal(dict(difference.terms), 1))        # whole everywhere
    names = sorted(difference.symbols)
    periodic = _period(difference)
    if periodic is None or not difference.atoms:
        return False
    period, degree = periodic
    count = period * (degree + 1)
    if count ** len(names) > points:
        return False
    return all(difference.substitute(dict(zip(names, at, strict=True))) == 0
               for at in itertools.product(range(count), repeat=len(names)))


def _period(dim: Size) -> tuple[int, int] | None:
    """(period, degree) of a size with quotients by ints only, None for others."""
    period, degree = 1, 0
    for monomial, _ in lift(dim).terms:
        of_term = 0
        for name in monomial:
            inner: tuple[int, int] | None = (1, 1)
            if isinstance(name, Atom):
                inner = _period(name.args[0]) if name.function == "//" and isinstance(name.args[1], int) else None
                if inner is None:
                    return None
                inner = inner[0] * name.args[1], inner[1]       # type: ignore[assignment,operator]
            period, of_term = math.lcm(period, inner[0]), of_term + inner[1]    # type: ignore[index]
        degree = max(degree, of_term)
    return (period, degree) if period <= 4096 else None
