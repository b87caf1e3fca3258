"""Index arithmetic as polynomials: i * 4 + j - (i * 4 - 1) is j + 1.

A polynomial is a dict from monomials to int coefficients; a monomial is a tuple of atoms (variables, sizes, and what is
neither sum nor product, such as a quotient), in an order that depends on the atoms alone.  Holds for the sizes and
positions that int64 is used for: they do not overflow.
"""

from __future__ import annotations

from collections.abc import Iterable

from minipd.cinn.ir.ast import INT64, Binary, Const, Expr, Var
from minipd.cinn.ir.build import binary, const
from minipd.cinn.ir.walk import names

__all__ = ["Polynomial", "coefficient", "constant_of", "difference", "from_polynomial", "polynomial"]

Monomial = tuple[Expr, ...]
Polynomial = dict[Monomial, int]


def polynomial(e: Expr) -> Polynomial:
    """e as a sum of products.

    >>> i, j = Var("i"), Var("j")
    >>> polynomial(binary("sub", binary("mul", binary("add", i, 2), 3), j))
    {(Var(name='i', dtype=dtype('int64')),): 3, (): 6, (Var(name='j', dtype=dtype('int64')),): -1}
    """
    match e:
        case Const(value=value):
            return {(): int(value)} if value else {}
        case Binary(op="add", x=x, y=y):
            return _sum([polynomial(x), polynomial(y)])
        case Binary(op="sub", x=x, y=y):
            return difference(polynomial(x), polynomial(y))
        case Binary(op="mul", x=x, y=y):
            a, b = polynomial(x), polynomial(y)
            return _sum({tuple(sorted((*m, *n), key=_order)): c * d} for m, c in a.items() for n, d in b.items())
    return {(e,): 1}


def _order(atom: Expr) -> str:
    return atom.name if isinstance(atom, Var) else repr(atom)


def _sum(parts: Iterable[Polynomial]) -> Polynomial:
    total: Polynomial = {}
    for part in parts:
        for monomial, c in part.items():
            total[monomial] = total.get(monomial, 0) + c
    return {monomial: c for monomial, c in total.items() if c}


def difference(a: Polynomial, b: Polynomial) -> Polynomial:
    return _sum([a, {monomial: -c for monomial, c in b.items()}])


def constant_of(p: Polynomial) -> int | None:
    """The number that p is; None if it depends on something."""
    return p.get((), 0) if all(m == () for m in p) else None


def coefficient(p: Polynomial, var: str) -> tuple[Polynomial, Polynomial] | None:
    """(c, rest) so that p is c * var + rest, and neither has var; None if p is no such thing.

    >>> c, rest = coefficient(polynomial(binary("add", binary("mul", Var("i"), Var("n")), 3)), "i")
    >>> c, rest
    ({(Var(name='n', dtype=dtype('int64')),): 1}, {(): 3})
    """
    c: Polynomial = {}
    rest: Polynomial = {}
    for monomial, factor in p.items():
        others = tuple(a for a in monomial if not (isinstance(a, Var) and a.name == var))
        if any(var in names(a) for a in others) or len(monomial) - len(others) > 1:
            return None
        (rest if len(others) == len(monomial) else c)[others] = factor
    return c, rest


def from_polynomial(p: Polynomial) -> Expr:
    """The expression, with what is added in front of what is subtracted, and the number last.

    >>> from minipd.cinn.ir.printer import text
    >>> text(from_polynomial(polynomial(binary("sub", 3, binary("mul", Var("j"), 2)))))
    '3 - j * 2'
    """
    total: Expr | None = None
    for monomial, c in sorted(p.items(), key=lambda item: (item[1] < 0, item[0] == ())):
        term: Expr | None = None
        for atom in monomial:
            term = atom if term is None else binary("mul", term, atom)
        if term is None:
            term = const(abs(c), INT64)
        elif abs(c) != 1:
            term = binary("mul", term, abs(c))
        if total is None:
            total = term if c > 0 else binary("sub", 0, term) if monomial else const(c, INT64)
        else:
            total = binary("add" if c > 0 else "sub", total, term)
    return const(0, INT64) if total is None else total
