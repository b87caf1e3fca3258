"""Which names a piece of code binds, and other questions about the scope of one function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

__all__: list[str] = []

#: nodes that begin a scope of their own
INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

#: methods of Python's containers that change them
MUTATORS = frozenset(("append extend insert pop remove clear sort reverse update setdefault popitem add discard "
                      "appendleft extendleft popleft rotate move_to_end intersection_update difference_update "
                      "symmetric_difference_update subtract fill").split())


def is_part(node: ast.AST) -> bool:
    """Whether a function is a piece of the user's function that was moved into one of its own: they share variables."""
    return getattr(node, "part", False)


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes below that belong to the same scope; of inner functions and classes only the node itself, and what is
    evaluated outside of them."""
    todo = list(nodes)[::-1]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, INNER) and not is_part(node):
            todo += outside_of(node)[::-1]
        else:
            todo += list(ast.iter_child_nodes(node))[::-1]


def outside_of(node: ast.AST) -> list[ast.AST]:
    """What of an inner function or class is evaluated in the scope around it: decorators, defaults, bases."""
    found: list[ast.AST] = list(getattr(node, "decorator_list", ()))
    if isinstance(node, ast.ClassDef):
        return [*found, *node.bases, *node.keywords]
    arguments = node.args       # type: ignore[attr-defined]
    return [*found, *arguments.defaults, *filter(None, arguments.kw_defaults)]


def bound(nodes: Iterable[ast.AST]) -> list[str]:
    """The names that these statements bind or delete in their scope, each once, in order.  Of a part (`is_part`), what
    it binds counts, and not its name.

    >>> bound(ast.parse("for i in xs: y = z[i]; z[0] = [k for k in y]").body)
    ['i', 'y']
    """
    found: dict[str, None] = {}
    hidden = set()              # targets of comprehensions, which are theirs alone
    for node in own_nodes(nodes):
        if isinstance(node, ast.comprehension):
            hidden |= {id(n) for n in ast.walk(node.target)}
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in hidden:
            found[node.id] = None
        elif isinstance(node, INNER) and not isinstance(node, ast.Lambda) and not is_part(node):
            found[node.name] = None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = None
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found[node.name] = None
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found[node.rest] = None
    return list(found)


def stored(nodes: Iterable[ast.AST]) -> list[str]:
    """What else these statements may change: attributes `a.b`, and the contents `a[]` of containers and tensors.

    Only chains of names are told; what a longer expression leads to has no name here.
    """
    found: dict[str, None] = {}
    for node in own_nodes(nodes):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            if path := dotted(node):
                found[path] = None
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if path := dotted(node.value):
                found[f"{path}[]"] = None
        elif (isinstance(node, ast.Attribute) and node.attr in MUTATORS and (path := dotted(node.value))):
            found[f"{path}[]"] = None
    return list(found)


def surely_read(stmts: Iterable[ast.stmt]) -> set[str]:
    """The names whose values these statements read, whatever else happens, before they give them others."""
    read: set[str] = set()
    written: set[str] = set()
    for s in stmts:
        first: ast.AST | None = s
        if isinstance(s, (ast.If, ast.For, ast.While)):
            first = s.test if isinstance(s, ast.If) else s.iter if isinstance(s, ast.For) else None
        elif is_part(s):
            continue
        elif not isinstance(s, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)):
            break
        todo = [first] if first is not None else []
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Name) and (isinstance(node.ctx, ast.Load) or isinstance(s, ast.AugAssign)):
                read |= {node.id} - written
            elif not isinstance(node, (*INNER, *COMPREHENSIONS, ast.IfExp, ast.BoolOp)):
                todo += ast.iter_child_nodes(node)
        if first is not s:
            break
        written |= set(bound([s]))
    return read


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` for a chain of names, None for everything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (inner := dotted(node.value)):
        return f"{inner}.{node.attr}"
    return None


def declared(nodes: Iterable[ast.AST], kind: Any) -> set[str]:
    """The names in `global` or `nonlocal` statements."""
    found = [n for n in own_nodes(nodes) if isinstance(n, kind)]
    return {name for node in found for name in node.names}


def is_generator(node: ast.FunctionDef) -> bool:
    return any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for n in own_nodes(node.body))


def reads_frame(nodes: Iterable[ast.AST]) -> bool:
    """Whether a function looks at its own frame, where moved code would be seen to be somewhere else."""
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
               and (n.func.id in ("locals", "eval", "exec") or n.func.id in ("vars", "dir") and not n.args)
               for n in own_nodes(nodes))


class Fresh:
    """Names that the function does not use yet: `if_true_0`, `if_true_1`, ..."""

    def __init__(self, node: ast.AST):
        self.taken = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
            n.arg for n in ast.walk(node) if isinstance(n, ast.arg)} | {
            n.name for n in ast.walk(node) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}

    def __call__(self, stem: str) -> str:
        i = 0
        while f"{stem}_{i}" in self.taken:
            i += 1
        self.taken.add(f"{stem}_{i}")
        return f"{stem}_{i}"
