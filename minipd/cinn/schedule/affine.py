"""Index expressions as polynomials, and what it tells when two of them are equal.

A loop variable i that runs to n lies in 0 .. n - 1.  So from i_0 * 64 + i_1 == k_0 * 64 + k_1 follows i_0 == k_0 and
i_1 == k_1 where i_1 and k_1 stay below 64; from i == k + 3 that the second is three iterations behind; and from i // n
== k // n and i % n == k % n that i == k.  `meeting` draws such conclusions for all axes of two accesses to one buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from minipd.cinn.ir.ast import INT64, Binary, Const, Dim, Expr, Load, Select, Var
from minipd.cinn.ir.build import binary, const
from minipd.cinn.ir.walk import names, walk

__all__ = ["Meeting", "Poly", "bounds_of", "meeting", "normal", "poly"]

Monomial = tuple[Expr, ...]
#: values of iter vars, or extents of loops
Env = Mapping[str, "Poly"]


class Poly:
    """A sum of products of *atoms* with int coefficients: {(i,): 64, (j,): 1, (): 3} is i * 64 + j + 3.

    An atom is a variable, a Dim, or a quotient, remainder or the like that is no sum.  No atom is ever negative.
    """

    __slots__ = ("__dict__", "terms")

    def __init__(self, terms: Mapping[Monomial, int]):
        self.terms = {m: c for m, c in terms.items() if c}

    @staticmethod
    def number(value: int) -> Poly:
        return Poly({(): value})

    @staticmethod
    def atom(e: Expr) -> Poly:
        return Poly({(e,): 1})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __add__(self, other: Poly) -> Poly:
        terms = dict(self.terms)
        for m, c in other.terms.items():
            terms[m] = terms.get(m, 0) + c
        return Poly(terms)

    def __sub__(self, other: Poly) -> Poly:
        return self + other * -1

    def __mul__(self, other: Poly | int) -> Poly:
        if isinstance(other, int):
            return Poly({m: c * other for m, c in self.terms.items()})
        terms: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                product = m + n if not (m and n) else tuple(sorted(m + n, key=repr))
                terms[product] = terms.get(product, 0) + c * d
        return Poly(terms)

    @property
    def constant(self) -> int | None:
        """Its value, if it is a number."""
        if not self.terms:
            return 0
        return self.terms[()] if len(self.terms) == 1 and () in self.terms else None

    @property
    def is_natural(self) -> bool:
        """Whether it is seen not to be negative."""
        return all(c > 0 for c in self.terms.values())

    @cached_property
    def variable(self) -> str | None:
        """The name, if it is a variable and nothing else."""
        if len(self.terms) == 1:
            (m, c), = self.terms.items()
            if c == 1 and len(m) == 1 and isinstance(m[0], Var):
                return m[0].name
        return None

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables in it."""
        return frozenset(n for m in self.terms for atom in m for n in names(atom))

    @cached_property
    def expr(self) -> Expr:
        """The expression, larger coefficients first."""
        total: Expr | None = None
        for m, c in sorted(self.terms.items(), key=lambda term: (not term[0], -len(term[0]), -abs(term[1]))):
            minus = c < 0 and total is not None
            size = -c if minus else c
            term: Expr = const(size, INT64) if not m else m[0]
            for atom in m[1:]:
                term = binary("mul", term, atom)
            if m and size != 1:
                term = binary("mul", term, size)
            total = term if total is None else binary("sub" if minus else "add", total, term)
        return const(0, INT64) if total is None else total


# ----------------------------------------------------------------------------------------------- from expressions
def poly(e: Expr, env: Env, extents: Env) -> Poly | None:
    """An int64 expression as a polynomial; None where it depends on data.

    env: what variables stand for.  extents: of loop variables, for quotients that these make simple.

    >>> i, j = Var("i"), Var("j")
    >>> value = binary("floordiv", binary("add", binary("mul", i, 8), j), 4)
    >>> from minipd.cinn.ir.printer import text
    >>> text(poly(value, {}, {"j": Poly.number(4)}).expr), text(poly(value, {}, {}).expr)
    ('i * 2', 'i * 2 + j // 4')
    """
    match e:
        case Const(value=value):
            return Poly.number(int(value))
        case Var(name=name):
            return env[name] if name in env else Poly.atom(e)
        case Dim():
            return Poly.atom(e)
        case Load() | Select():
            return None
        case Binary(op=op, x=x, y=y) if e.dtype == INT64:
            a, b = poly(x, env, extents), poly(y, env, extents)
            if a is None or b is None:
                return None
            match op:
                case "add":
                    return _joined(a + b)
                case "sub":
                    return _joined(a - b)
                case "mul":
                    return a * b
                case "floordiv":
                    return _quotient(a, b, extents)[0]
                case "mod":
                    return _quotient(a, b, extents)[1]
            return Poly.atom(Binary(op, a.expr, b.expr, INT64))
    if any(isinstance(x, Load) for x in walk(e)) or names(e) & env.keys():
        return None
    return Poly.atom(e)


def normal(e: Expr, extents: Env) -> Expr:
    """The same expression, collected."""
    found = poly(e, {}, extents)
    return e if found is None else found.expr


def _quotient(a: Poly, b: Poly, extents: Env) -> tuple[Poly, Poly]:
    """a // b and a % b."""
    if b.constant == 1:
        return a, Poly.number(0)
    if b.constant == 0:
        return Poly.atom(binary("floordiv", a.expr, b.expr)), Poly.atom(binary("mod", a.expr, b.expr))
    whole, rest = Poly({}), Poly({})
    for m, c in a.terms.items():
        over = _divided(m, c, b)
        if over is None:
            rest = rest + Poly({m: c})
        else:
            whole = whole + over
    bounds = bounds_of(rest, extents)
    if bounds is not None and bounds[0].is_natural and (b - Poly.number(1) - bounds[1]).is_natural:
        return whole, rest
    return (whole + Poly.atom(binary("floordiv", rest.expr, b.expr)), Poly.atom(binary("mod", rest.expr, b.expr)))


def _divided(m: Monomial, c: int, b: Poly) -> Poly | None:
    """A term over b, if that comes out even."""
    if len(b.terms) != 1:
        return None
    (n, d), = b.terms.items()
    left = list(m)
    for atom in n:
        if atom not in left:
            return None
        left.remove(atom)
    return Poly({tuple(left): c // d}) if c % d == 0 else None


def _joined(p: Poly) -> Poly:
    """a // n * n + a % n is a."""
    for m, c in p.terms.items():
        if len(m) == 1 and isinstance(m[0], Binary) and m[0].op == "mod":
            a, n = poly(m[0].x, {}, {}), poly(m[0].y, {}, {})
            assert a is not None and n is not None
            quotients = Poly.atom(binary("floordiv", m[0].x, m[0].y)) * n * c
            if all(p.terms.get(k) == v for k, v in quotients.terms.items()):
                return _joined(p - quotients - Poly({m: c}) + a * c)
    return p


def bounds_of(p: Poly, extents: Env) -> tuple[Poly, Poly] | None:
    """The least and the largest value, or None if they are not known."""
    low, high = Poly({}), Poly({})
    for m, c in p.terms.items():
        if not m:
            low, high = low + Poly.number(c), high + Poly.number(c)
            continue
        moving = [atom for atom in m if names(atom) & extents.keys()]
        if not moving:
            low, high = low + Poly({m: c}), high + Poly({m: c})
            continue
        last = _last(moving[0], extents) if len(moving) == 1 else None
        if last is None:
            return None
        others = list(m)
        others.remove(moving[0])
        reach = last * Poly({tuple(others): c})
        if c > 0:
            high = high + reach
        else:
            low = low + reach
    return low, high


def _last(atom: Expr, extents: Env) -> Poly | None:
    """The largest value of an atom."""
    match atom:
        case Var(name=name) if name in extents:
            return extents[name] - Poly.number(1)
        case Binary(op="mod", y=n) if not names(n) & extents.keys():
            size = poly(n, {}, {})
            return None if size is None else size - Poly.number(1)
        case Binary(op="floordiv", x=x, y=Const(value=n)):
            inner = poly(x, {}, extents)
            bounds = None if inner is None else bounds_of(inner, extents)
            top = None if bounds is None else bounds[1].constant
            return None if top is None else Poly.number(top // int(n))
    return None


# ------------------------------------------------------------------------------------------------------- meetings
@dataclass
class Meeting:
    """What holds whenever two instances touch one element.

    never: they never do.   apart: for loop variables that both have, by how many iterations the second is behind the
    first (0: it is the same iteration); a variable that is missing may differ in any way.
    """

    never: bool = False
    apart: dict[str, int] = field(default_factory=dict)


def meeting(a: Iterable[Poly | None], b: Iterable[Poly | None], fixed: frozenset[str], extents: Env) -> Meeting:
    """Compare the indices of two accesses to one buffer.

    fixed: variables that have one value for both.  extents: those of all loops.
    """
    a, b = tuple(a), tuple(b)
    if all(p is not None and p.variable and q is not None and q.variable for p, q in zip(a, b, strict=True)):
        return Meeting(apart={p.variable: 0 for p, q in zip(a, b, strict=True)      # type: ignore[union-attr, misc]
                              if p.variable == q.variable})                         # type: ignore[union-attr]
    solver = _Solver(fixed, extents)
    pairs = [(p, q) for p, q in zip(a, b, strict=True) if p is not None and q is not None]
    while True:
        before = len(solver.equal)
        if not all([solver.equate(p, q) for p, q in pairs]):
            return Meeting(never=True)
        pairs += solver.whole_numbers()
        if len(solver.equal) == before:
            break
    apart = {}
    for (u, w), distance in solver.equal.items():
        if isinstance(u, Var) and u == w:
            apart[u.name] = distance
    return Meeting(apart=apart)


class _Solver:
    """equal: atoms of the first and the second instance, and by how much the second is larger."""

    def __init__(self, fixed: frozenset[str], extents: Env):
        self.extents = extents
        self.loops = {v for v in extents if v not in fixed and extents[v].constant != 1}
        self.equal: dict[tuple[Expr, Expr], int] = {}
        self.joined: set[tuple[Expr, Expr]] = set()

    def equate(self, p: Poly, q: Poly) -> bool:
        """Learn from p == q; False if that cannot be."""
        left, right = self._split(p), self._split(q)
        if left is None or right is None:
            return True
        (fixed_p, u), (fixed_q, w) = left, right
        offset = fixed_p - fixed_q              # sum of u + offset == sum of w
        for (x, y), distance in self.equal.items():
            if x in u and y in w and u[x] == w[y]:
                offset = offset - u.pop(x) * distance
                del w[y]
        while u or w:
            if len(u) == len(w) == 1:
                (x, c), (y, d) = *u.items(), *w.items()
                step, off = c.constant, offset.constant
                if c == d and (off == 0 or (step and off is not None)):
                    if off and off % step:      # type: ignore[operator]
                        return False
                    self.equal[x, y] = off // step if off else 0  # type: ignore[operator]
                    return True
            found = self._top(u, w, offset)
            if found is None:
                return True
            self.equal[found] = 0
            del u[found[0]], w[found[1]]
        return offset.constant in (0, None)

    def _split(self, p: Poly) -> tuple[Poly, dict[Expr, Poly]] | None:
        """The part that is fixed, and each varying atom with its coefficient; None if two are multiplied."""
        fixed: dict[Monomial, int] = {}
        varying: dict[Expr, Poly] = {}
        for m, c in p.terms.items():
            moving = [atom for atom in m if not self.loops.isdisjoint(names(atom))]
            if not moving:
                fixed[m] = c
            elif len(moving) == 1:
                others = list(m)
                others.remove(moving[0])
                varying[moving[0]] = varying.get(moving[0], Poly({})) + Poly({tuple(others): c})
            else:
                return None
        return Poly(fixed), varying

    def _top(self, u: dict[Expr, Poly], w: dict[Expr, Poly], offset: Poly) -> tuple[Expr, Expr] | None:
        """Two atoms with one coefficient, which is larger than the others can differ together."""
        for x, c in u.items():
            partners = [y for y, d in w.items() if d == c]
            if len(partners) != 1:
                continue
            y = partners[0]
            first = self._range({k: v for k, v in u.items() if k != x})
            second = self._range({k: v for k, v in w.items() if k != y})
            if first is None or second is None:
                continue
            most, least = first[1] + offset - second[0], first[0] + offset - second[1]
            size = c if c.is_natural else c * -1
            if (size - Poly.number(1) - most).is_natural and (size - Poly.number(1) + least).is_natural:
                return x, y
        return None

    def _range(self, sum_of: dict[Expr, Poly]) -> tuple[Poly, Poly] | None:
        total = Poly({})
        for atom, c in sum_of.items():
            total = total + Poly.atom(atom) * c
        return bounds_of(total, {v: n for v, n in self.extents.items() if v in self.loops})

    def whole_numbers(self) -> list[tuple[Poly, Poly]]:
        """Pairs that are equal since their quotients and their remainders are."""
        found = []
        for (x, y), distance in list(self.equal.items()):
            if distance or not (isinstance(x, Binary) and isinstance(y, Binary) and x.op == y.op == "floordiv"):
                continue
            rest = binary("mod", x.x, x.y), binary("mod", y.x, y.y)
            if x.y == y.y and self.equal.get(rest) == 0 and (x.x, y.x) not in self.joined:
                self.joined.add((x.x, y.x))
                p, q = poly(x.x, {}, self.extents), poly(y.x, {}, self.extents)
                if p is not None and q is not None:
                    found.append((p, q))
        return found
