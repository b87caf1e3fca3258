"""Dimensions: `int`, or `DimExpr` where the size is not known while a program is traced.

Three rules make shape code that is written for ints right for symbols too:

* `==` is structural: a symbol is not 1 and not 8, though it may be bound to either.  Shape rules that need an
  equality ask `require_equal`, which compares ints and records an assumption about symbols.
* Order and truth are unknown: `S0 < 8` and `bool(S0)` raise.
* `//` is exact division and `%` is 0 by assumption; both record that assumption (see `constraints`).

Functions here are on the eager path: on ints they do nothing but the int operation.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minipd.framework.constraints import Constraint, Constraints, current_constraints
from minipd.framework.dim_expr import HINT, DimExpr, Size, quotient, recorder, remainder, symbol, whole_quotient

__all__ = [
    "HINT", "Constraint", "Constraints", "Dim", "DimExpr", "Size", "bind_shape", "current_constraints", "exact_div",
    "fresh_symbols", "is_symbolic", "parse_dim", "prod", "require_at_least", "require_divisible", "require_equal",
    "same", "size_hint", "substitute_all", "symbol",
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


def parse_dim(text: str) -> Size:
    """The dimension that prints as `text`; any arithmetic in + - * / and parentheses is read.

    >>> parse_dim("2*S0+1"), parse_dim("S0*S1/4"), parse_dim("16")
    (2*S0+1, S0*S1/4, 16)
    """

    def read(node: ast.AST) -> Size:
        match node:
            case ast.Expression(body=body):
                return read(body)
            case ast.Constant(value=int(value)):
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
                return read(left) * read(right)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return quotient(read(left), read(right))
        raise ValueError(f"{ast.unparse(node)!r} is no integer, symbol, sum, product or quotient")

    try:
        return read(ast.parse(text.strip(), mode="eval"))
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"parse_dim: expected a dimension such as 16, S0 or 2*S0+1, got {text!r}: {error}") from None


def require_equal(got: Size, expected: Size, what: str) -> Size:
    """States that two dimensions are equal and returns the one to go on with (the int if there is one).

    Ints are compared at once.  Different symbolic dimensions are recorded as equal in the current `Constraints`; with
    none in force, or where the two can never be equal (S0 and S0+1), ValueError.
    """
    if got is expected or got == expected:
        return got
    if type(got) is not DimExpr and type(expected) is not DimExpr:
        raise ValueError(f"{what}: expected {expected}, got {got}")
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
    if type(spare) is DimExpr and all(c > 0 for _, c in spare.terms):
        return                                  # sizes are never negative, so neither is this sum of their products
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


def same(a: Any, b: Any) -> bool:
    """Whether two dimensions, or two shapes, are structurally the same."""
    return a is b or a == b


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
