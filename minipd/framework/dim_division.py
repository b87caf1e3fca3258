"""Division of polynomials: quotients that are polynomials, and remainders that are known or assumed.

Exact quotients only: one that is rounded down is an atom (`dim_atoms`).
"""

from __future__ import annotations

import math
from fractions import Fraction

from minipd.framework.constraints import recorder
from minipd.framework.dim_expr import DimExpr, Monomial, Size, lift, normal

__all__: list[str] = []


def quotient(dim: Size, divisor: Size) -> Size:
    """Long division of polynomials over the rationals; ValueError if it leaves a rest.

    Needs an order of monomials that multiplication keeps: by degree, then as sorted tuples of names.
    """
    dim, divisor = lift(dim), lift(divisor)
    if not divisor.terms:
        raise ZeroDivisionError(f"dimension {dim} divided by 0")

    def order(monomial: Monomial) -> tuple:
        return len(monomial), monomial

    rest = {m: Fraction(c, dim.denominator) for m, c in dim.terms}
    by = {m: Fraction(c, divisor.denominator) for m, c in divisor.terms}
    lead = max(by, key=order)
    result: dict[Monomial, Fraction] = {}
    while rest:
        top = max(rest, key=order)
        factor = list(top)
        for name in lead:
            if name not in factor:
                raise ValueError(
                    f"{dim} / {divisor}: expected a quotient that is a polynomial, got a rest. A dimension "
                    "cannot be divided by a symbol that is no factor of it; give the size explicitly."
                )
            factor.remove(name)
        ratio = rest[top] / by[lead]
        result[tuple(factor)] = ratio
        for m, c in by.items():
            product = tuple(sorted(m + tuple(factor)))
            rest[product] = rest.get(product, Fraction(0)) - ratio * c
            if not rest[product]:
                del rest[product]
    denominator = math.lcm(*(q.denominator for q in result.values()))
    return normal({m: int(q * denominator) for m, q in result.items()}, denominator)


def whole_quotient(dim: Size, divisor: Size, what: str) -> Size:
    """`dim / divisor`, at least one of them symbolic, stated to be whole."""
    result = quotient(dim, divisor)
    if remainder(dim, divisor, what) != 0:
        raise ValueError(f"{what}: expected a multiple of {divisor}, got {dim}")
    return result


def remainder(dim: Size, divisor: Size, what: str) -> int:
    """`dim % divisor`, at least one of them symbolic: what is known of it, else 0 with the assumption recorded."""
    known = known_remainder(lift(dim), lift(divisor))
    if known is not None:
        return known
    recorder(f"{what}: expected {dim} to be a multiple of {divisor}, which the symbols do not tell").record(
        "divisible", dim, divisor, what)
    return 0


def known_remainder(dim: DimExpr, divisor: DimExpr) -> int | None:
    """The remainder that holds for all values of the symbols, None if it depends on them.

    A polynomial with integer coefficients is whole.  So `dim` leaves 0 if it is `divisor` times such a polynomial, and
    an int constant if all other coefficients are multiples of an int divisor: (4*S0+1) % 2 is 1.
    """
    if not divisor.symbols and divisor.denominator == 1 and dim.denominator == 1:
        modulus = sum(c for _, c in divisor.terms)
        if all(c % modulus == 0 for m, c in dim.terms if m):
            return sum(c for m, c in dim.terms if not m) % modulus
        return None
    try:
        whole = quotient(dim, divisor)
    except ValueError:
        return None
    return 0 if type(whole) is not DimExpr or whole.denominator == 1 else None
