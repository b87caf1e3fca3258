"""Small pieces of syntax tree, at the place of the user's code that they stand for."""

from __future__ import annotations

import ast
from typing import Any

__all__: list[str] = []

#: under this name transformed code sees the converters (`operators`)
JST = "_jst"


def at(node: Any, place: ast.AST) -> Any:
    """`node` and everything new below it, where another one starts.  (Of a call over several lines Python would tell
    the last.)"""
    for n in ast.walk(node):
        if not hasattr(n, "lineno") and "lineno" in n._attributes:
            n.lineno = n.end_lineno = place.lineno                  # type: ignore[attr-defined]
            n.col_offset = n.end_col_offset = place.col_offset      # type: ignore[attr-defined]
    return node


def load(name: str, place: ast.AST) -> ast.Name:
    return at(ast.Name(name, ast.Load()), place)


def assign(name: str, value: Any, place: ast.AST) -> ast.stmt:
    """`name = value`, an expression or a constant."""
    node = value if isinstance(value, ast.expr) else ast.Constant(value)
    return at(ast.Assign([ast.Name(name, ast.Store())], node), place)


def call(converter: str, *args: ast.expr, keywords: dict[str, Any] | None = None, place: ast.AST | None = None) -> Any:
    """`_jst.converter(*args)`."""
    function = ast.Attribute(ast.Name(JST, ast.Load()), converter, ast.Load())
    extra = [ast.keyword(k, ast.Constant(v)) for k, v in (keywords or {}).items()]
    return at(ast.Call(function, list(args), extra), place or args[0])


def thunk(expr: ast.expr) -> ast.expr:
    """`lambda: expr`"""
    return at(ast.Lambda(ast.arguments([], [], None, [], [], None, []), expr), expr)
