"""Dimensions: `int`, or `DimExpr` where the size is not known while a program is traced.

Three rules make shape code that is written for ints right for symbols too:

* `==` is structural: a symbol is not 1 and not 8, though it may be bound to either.  Shape rules that need an
  equality ask `require_equal`, which compares ints and records an assumption about symbols.  `same` is structural too,
  but knows what has been assumed.  (User code that is traced gets other answers: see `asked`.)
* Order and truth are known only where they are the same for all sizes (`S0 >= 0`); `S0 < 8` and `bool(S0)` raise.
  `maximum`, `minimum`, `ceil_div`, `modulo` and `//` compute for all sizes.
* `%` is 0 by assumption, which is recorded (see `constraints`); so is that `exact_div` leaves no rest.

Functions here are on the eager path: on ints they do nothing but the int operation.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minipd.framework.constraints import RELATIONS, Constraint, Constraints, current_constraints, recorder
from minipd.framework.dim_atoms import broadcast, ceil_div, floor_div, maximum, minimum, modulo
from minipd.framework.dim_division import quotient, remainder, whole_quotient
from minipd.framework.dim_expr import FUNCTIONS, HINT, DimExpr, Size, lift, symbol

__all__ = [
    "HINT", "Constraint", "Constraints", "Dim", "DimExpr", "Size", "bind_shape", "broadcast_dims", "ceil_div",
    "current_constraints", "exact_div", "floor_div", "fresh_symbols", "is_symbolic", "maximum", "minimum", "modulo",
    "parse_dim", "parse_relation", "prod", "require_at_least", "require_divisible", "require_equal", "same",
    "size_hint", "substitute_all", "symbol",
]  # fmt: skip

Dim = symbol


def fresh_symbols(shapes: Iterable[Iterable[Any]]) -> Iterator[DimExpr]:
    """S0, S1, ... without the symbols in these shapes.

    >>> fresh = fresh_symbols([(symbol("S0"), None), (4,)])
    >>> next(fresh), next(fresh)
    (S1, S2)
    """
    taken = {name for shape in shapes for d in shape if isinstance(d, DimExpr) for name in d.symbols}
    return (symbol(f"S{n}") for n in itertools.count() if f"S{n}" not in taken)


#: what a text may ask for: no program needs more, and polynomials of many sums multiplied out would have no end
MOST_NODES, MOST_TERMS = 512, 1024
_SIZE, _SYMBOL = re.compile("0|[1-9][0-9]{0,18}"), re.compile("[A-Z][A-Z0-9]{0,63}")


def parse_dim(text: str) -> Size:
    """The dimension that prints as `text`; any arithmetic in + - * / //, Max, Min, Broadcast and parentheses is read.

    >>> parse_dim("2*S0+1"), parse_dim("S0*S1/4"), parse_dim("(S0+1)//2"), parse_dim("Max(S0,4)"), parse_dim("16")
    (2*S0+1, S0*S1/4, (S0+1)//2, Max(S0,4), 16)
    """

    if _SIZE.fullmatch(text):               # most are no more than this
        return int(text)
    if _SYMBOL.fullmatch(text):
        return symbol(text)

    def read(node: ast.AST) -> Size:
        match node:
            case ast.Expression(body=body):
                return read(body)
            case ast.Constant(value=int(value)) if type(value) is int:
                return value
            case ast.Name(id=name):
                return symbol(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -read(operand)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return read(left) + read(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return read(left) - read(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                a, b = lift(read(left)), lift(read(right))
                if len(a.terms) * len(b.terms) > MOST_TERMS:
                    raise ValueError(f"multiplied out, it has more than {MOST_TERMS} terms")
                return a * b
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return quotient(read(left), read(right))
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                return floor_div(read(left), read(right))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS and args:
                return FUNCTIONS[name](*map(read, args))
        raise ValueError(f"{ast.unparse(node)!r} is no integer, symbol, sum, product, quotient, Max, Min or Broadcast")

    try:
        if len(text) > 16 * MOST_NODES:
            raise ValueError(f"it is {len(text)} characters long")
        tree = ast.parse(text.strip(), mode="eval")
        if sum(1 for _ in ast.walk(tree)) > MOST_NODES:
            raise ValueError(f"it has more than {MOST_NODES} parts")
        return read(tree)
    except (SyntaxError, ValueError, ZeroDivisionError, MemoryError, RecursionError) as error:
        shown = text if len(text) < 80 else f"{text[:76]}..."
        raise ValueError(f"parse_dim: expected a dimension such as 16, S0 or 2*S0+1, got {shown!r}: {error}") from None


def parse_relation(text: str) -> tuple[str, Size, Size]:
    """(kind, left, right) of the relation that prints as `text`.

    >>> parse_relation("S0 != 1"), parse_relation("S0 % 4 == 0"), parse_relation("Broadcastable(S0,S1)")
    (('unequal', S0, 1), ('divisible', S0, 4), ('broadcastable', S0, S1))

    Raises: ValueError for any other text.
    """
    text = text.strip()
    if text.startswith("Broadcastable(") and text.endswith(")"):
        both = parse_pair(text.removeprefix("Broadcastable(").removesuffix(")"))
        if both is not None:
            return "broadcastable", *both
    for kind, sign in (("divisible", "%"), ("at least", ">="), ("unequal", "!="), ("equal", "==")):
        left, found, right = text.partition(sign)
        if kind == "divisible" and found:
            right, found, zero = right.partition("==")
            found = found if zero.strip() == "0" else ""
        if found:
            return kind, parse_dim(left), parse_dim(right)
    raise ValueError(f"expected one of {', '.join(r.format('a', 'b') for r in RELATIONS.values())}, got {text!r:.80}")


def parse_pair(text: str) -> tuple[Size, Size] | None:
    """Two dimensions with a comma between them; None if there is no place where the text can be cut so."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            return parse_dim(text[:i]), parse_dim(text[i + 1:])
    return None


def require_equal(got: Size, expected: Size, what: str) -> Size:
    """States that two dimensions are equal and returns the one to go on with (the int if there is one).

    Ints are compared at once.  Different symbolic dimensions are recorded as equal in the current `Constraints`; with
    none in force, or where the two can never be equal (S0 and S0+1), ValueError.
    """
    if got is expected or got == expected:
        return got
    if type(got) is not DimExpr and type(expected) is not DimExpr:
        raise ValueError(f"{what}: expected {expected}, got {got}")
    if same(got, expected):
        return expected if type(got) is DimExpr else got
    difference = got - expected
    if type(difference) is not DimExpr or not difference.symbols:
        raise ValueError(f"{what}: expected {expected}, got {got}, which differ whatever the symbols are")
    collector = recorder(f"{what}: expected {expected}, got {got}: unequal as far as the symbols tell")
    collector.record("equal", got, expected, what)
    return expected if type(got) is DimExpr else got


def require_divisible(dim: Size, divisor: Size, what: str) -> None:
    """States that `dim` is a multiple of `divisor`: checked for ints, recorded for symbols.  ValueError as above."""
    symbolic = type(dim) is DimExpr or type(divisor) is DimExpr
    if remainder(dim, divisor, what) if symbolic else dim % divisor:
        raise ValueError(f"{what}: expected a multiple of {divisor}, got {dim}")


def require_at_least(dim: Size, bound: Size, what: str) -> None:
    """States that `dim >= bound`: checked for ints, recorded for symbols unless it holds for all their values."""
    if type(dim) is not DimExpr and type(bound) is not DimExpr:
        if dim < bound:
            raise ValueError(f"{what}: expected at least {bound}, got {dim}")
        return
    spare = dim - bound
    if type(spare) is DimExpr and spare.bounds()[0] >= 0:
        return
    if type(spare) is not DimExpr:
        require_at_least(spare, 0, f"{what}: {dim} against {bound}")
        return
    recorder(f"{what}: expected {dim} to be at least {bound}, which the symbols do not tell").record(
        "at least", dim, bound, what)


def exact_div(dim: Size, divisor: Size, what: str = "exact division") -> Size:
    """`dim / divisor`, stated to be whole: checked for ints, recorded for symbols.

    ValueError if it is not whole, or if no polynomial is the quotient of the two (S0 / S1).

    >>> exact_div(12, 4)
    3
    >>> exact_div(12, 5, "split of 12 columns")
    Traceback (most recent call last):
    ValueError: split of 12 columns: expected a multiple of 5, got 12
    """
    if type(dim) is not DimExpr and type(divisor) is not DimExpr:
        if dim % divisor:
            raise ValueError(f"{what}: expected a multiple of {divisor}, got {dim}")
        return dim // divisor
    return whole_quotient(dim, divisor, what)


def prod(dims: Iterable[Size]) -> Size:
    """The product of dimensions; 1 for none."""
    return math.prod(dims)


def broadcast_dims(what: str, a: Size, b: Size) -> Size:
    """The common size of two dimensions of which one stretches over the other if it is 1.

    Of symbols it is recorded that they fit, and `Broadcast(S0,S1)` comes back: the program serves both.  A symbol
    beside an int is recorded to be that int.
    Raises: ValueError for sizes that do not fit.
    """
    if same(a, 1) or same(b, 1):
        return b if same(a, 1) else a
    if type(a) is not DimExpr or type(b) is not DimExpr:
        return require_equal(a, b, what) if type(a) is DimExpr else require_equal(b, a, what)
    if same(a, b):
        return a
    if same(a, both := broadcast(a, b)) or same(b, both):       # one is a broadcast size that has the other among its
        return both
    recorder(f"{what}: {a} and {b} are not known to be equal or 1").record("broadcastable", a, b, what)
    return both


def same(a: Any, b: Any) -> bool:
    """Whether two dimensions, or two shapes, are the same, structurally or by what the trace has assumed."""
    if a is b or a == b:
        return True
    if type(a) is int or type(b) is int:
        if type(a) is not DimExpr and type(b) is not DimExpr:
            return False
    collector = current_constraints()
    return collector is not None and bool(collector.simplified(a) == collector.simplified(b))


def is_symbolic(x: Any) -> bool:
    """Whether a dimension is symbolic, or any dimension in a tuple, list or dict of them."""
    if type(x) is DimExpr:
        return True
    if type(x) in (tuple, list):
        return any(map(is_symbolic, x))
    return type(x) is dict and any(map(is_symbolic, x.values()))


def size_hint(dim: Size) -> int:
    """An int as it is, a symbolic dimension by its `hint`."""
    return dim.hint if isinstance(dim, DimExpr) else dim


def substitute_all(tree: Any, bindings: Mapping[str, Size]) -> Any:
    """`substitute` on every symbolic dimension in nested tuples, lists and dicts; anything else stays as it is."""
    if type(tree) is DimExpr:
        return tree.substitute(bindings)
    if type(tree) in (tuple, list):
        return type(tree)(substitute_all(x, bindings) for x in tree)
    if type(tree) is dict:
        return {key: substitute_all(x, bindings) for key, x in tree.items()}
    return tree


def bind_shape(declared: tuple[Size, ...], actual: tuple[int, ...], bindings: dict[str, int], what: str) -> None:
    """Reads the values of symbols off a real shape into `bindings`; ValueError if the shape does not fit.

    A lone symbol takes its size, or must agree with the one it has; so does the symbol of a linear dimension (a shard's
    S0/2) that is not bound by then.  Any other dimension is checked against the symbols that are bound.

    >>> bindings = {}
    >>> bind_shape((symbol("S0"), 2 * symbol("S0"), symbol("S1") / 2), (3, 6, 2), bindings, "input x")
    >>> bindings
    {'S0': 3, 'S1': 4}
    """
    if len(declared) != len(actual):
        raise ValueError(f"{what}: expected {len(declared)} dimensions {list(declared)}, got shape {list(actual)}")
    for dim, size in zip(declared, actual, strict=True):
        if type(dim) is DimExpr and dim.is_symbol:
            bindings.setdefault(str(dim), size)
    for dim, size in zip(declared, actual, strict=True):
        if type(dim) is DimExpr and (found := dim.solve(size)) is not None:
            bindings.setdefault(*found)
    for axis, (dim, size) in enumerate(zip(declared, actual, strict=True)):
        value = dim.evaluate(bindings) if type(dim) is DimExpr else dim
        if value != size:
            raise ValueError(
                f"{what}: expected {dim if dim == value else f'{dim} = {value}'} for dimension {axis} of "
                f"{list(declared)}, got shape {list(actual)}"
            )
