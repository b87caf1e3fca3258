"""Where a function is written: from a code object back to its piece of the syntax tree.

The whole file is parsed, once, so that every node keeps the line that the user sees, and a method knows its class.
"""

from __future__ import annotations

import ast
import functools
import linecache
import types
from typing import NamedTuple

__all__: list[str] = []

Function = ast.FunctionDef | ast.Lambda


class Source(NamedTuple):
    """node: the definition.  owner: the name of the class whose body it stands in, for private names."""

    node: Function
    owner: str | None


def source_of(function: types.FunctionType) -> Source | None:
    """The definition of a function; None where there is no source text (REPL, `exec`), or not that of this function."""
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    found = [s for s in _definitions(text).get((code.co_name, code.co_firstlineno), ()) if _fits(s.node, code)]
    return found[0] if len(found) == 1 else None


@functools.lru_cache(maxsize=64)
def _definitions(text: str) -> dict[tuple[str, int], list[Source]]:
    """(name, first line) -> the definitions that start there."""
    found: dict[tuple[str, int], list[Source]] = {}
    try:
        tree = ast.parse(text)
    except SyntaxError:                 # of another language: a template, a cell with magic
        return found
    todo: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while todo:
        node, owner = todo.pop()
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found.setdefault((node.name, first), []).append(Source(node, owner))
        elif isinstance(node, ast.Lambda):
            found.setdefault(("<lambda>", node.lineno), []).append(Source(node, owner))
        inside = node.name if isinstance(node, ast.ClassDef) else owner
        todo += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


def _fits(node: Function, code: types.CodeType) -> bool:
    """Whether a definition is that of the code: its parameters, and of several lambdas in a line the columns."""
    a = node.args
    names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg)))]
    count = len(names)
    if [_plain(n) for n in names] != [_plain(n) for n in code.co_varnames[:count]]:
        return False
    if isinstance(node, ast.FunctionDef):
        return True
    body = node.body
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    spans = [((p[0], p[2]), (p[1], p[3])) for p in code.co_positions()
             if None not in p and (p[0], p[2]) != (p[1], p[3])]
    return bool(spans) and min(s for s, _ in spans) >= start and max(e for _, e in spans) == end


def _plain(name: str) -> str:
    """A private name without what its class has put before it."""
    return name[name.index("__", 1):] if name[:1] == "_" and name[1:2] != "_" and "__" in name[2:] else name
