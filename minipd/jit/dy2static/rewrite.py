"""The pipeline: from a function to the same function with its control flow open to tensors.

    source          the definition in the user's file
    expressions     calls, truth values, comparisons
    loop_exits      break, continue, return inside of loops
    early_return    return inside of branches
    to_functions    if, while, for

Every stage is a plain pass over statements; inner functions come first, each with its own turn.  The result is compiled
under the user's file name and line numbers, so what a traceback shows is the user's own line.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import operator
import types
from typing import Any

from minipd.jit.dy2static.early_return import EarlyReturn
from minipd.jit.dy2static.expressions import Expressions
from minipd.jit.dy2static.levels import tell_rewritten
from minipd.jit.dy2static.loop_exits import LoopExits
from minipd.jit.dy2static.nodes import JST, at, call, thunk
from minipd.jit.dy2static.scopes import INNER, Fresh, bound, declared, is_generator, is_part, reads_frame
from minipd.jit.dy2static.source import Function, Source, source_of
from minipd.jit.dy2static.to_functions import ToFunctions

__all__: list[str] = []

#: the flags by which code says which future it comes from
FUTURE = functools.reduce(operator.or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))
OUTER, NAME = "_jst_around", "_jst_function"
#: (file, code) -> the rewritten code and its text, None where there is nothing to rewrite
_cache: dict[tuple[str, types.CodeType], tuple[types.CodeType, str] | None] = {}


def rewritten(function: types.FunctionType) -> types.FunctionType:
    """The rewritten function: same globals, closure cells, defaults and attributes.  Itself where there is no source,
    where it is a generator, looks at its own frame, or is a rewritten function already."""
    found = compiled(function)
    if found is None:
        return function
    from minipd.jit.dy2static import operators  # here, for they rewrite the functions that rewritten code calls

    code = found[0]
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[JST] = types.CellType(operators)
    new = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                             tuple(cells[n] for n in code.co_freevars))
    new.__kwdefaults__ = function.__kwdefaults__
    new.__dict__.update(function.__dict__)
    for name in ("__qualname__", "__module__", "__doc__", "__annotations__"):
        setattr(new, name, getattr(function, name))
    return new


def text_of(function: types.FunctionType) -> str:
    """The rewritten function as source text.

    Raises: ValueError where there is none.
    """
    found = compiled(function)
    if found is None:
        raise ValueError(f"code: expected a function whose source can be read and rewritten, got {function!r}")
    return found[1]


def compiled(function: types.FunctionType) -> tuple[types.CodeType, str] | None:
    code = function.__code__
    key = (code.co_filename, code)
    if key not in _cache:
        if JST in code.co_freevars:
            return None
        found = _cache[key] = _compile(function)
        tell_rewritten(code.co_qualname, f"{code.co_filename}:{code.co_firstlineno}", found and found[1])
    return _cache[key]


def _compile(function: types.FunctionType) -> tuple[types.CodeType, str] | None:
    source = source_of(function)
    if source is None or isinstance(source.node, ast.FunctionDef) and is_generator(source.node) or (
            reads_frame([source.node.body] if isinstance(source.node, ast.Lambda) else source.node.body)):
        return None
    node = copy.deepcopy(source.node)
    if isinstance(node, ast.Lambda):
        node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
        Expressions(None, source.owner).visit_Lambda(node)
    else:
        bare(node)
        rewrite(node, source.owner)
    text = ast.unparse(node)
    code = function.__code__
    return _extract(node, source, code), text


def bare(node: ast.FunctionDef) -> None:
    """Take off what was evaluated where the function was defined: it is set on the new function."""
    node.decorator_list, node.returns = [], None
    node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
    for n in ast.walk(node.args):
        if isinstance(n, ast.arg):
            n.annotation = None


def rewrite(node: ast.FunctionDef, owner: str | None) -> None:
    """Rewrite a definition in place, and those inside of it."""
    for inner in inner_functions(node.body):
        if not is_generator(inner) and not reads_frame(inner.body):
            rewrite(inner, owner)
    a = node.args
    parameters = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg)))]
    first = [p.arg for p in (*a.posonlyargs, *a.args)][:1]
    scope, fresh = list(node.body), Fresh(node)
    expressions = Expressions(first[0] if first else None, owner)
    body = expressions.statements(node.body)
    body = LoopExits(fresh).block(body)
    names = [n for n in bound([*scope, *body]) if n not in declared(scope, ast.Global) | declared(scope, ast.Nonlocal)]
    body = EarlyReturn(fresh).block(body)
    functions = ToFunctions(fresh, scope, parameters, owner)
    functions.shared = dict.fromkeys(n for n in names if n not in bound(body))        # bound in code never reached
    node.body = functions.function(body)
    outside = [n for n in bound(scope) if n in functions.globals | functions.nonlocals]
    if outside:
        read = thunk(at(ast.Tuple([ast.Name(n, ast.Load()) for n in outside], ast.Load()), scope[0]))
        note = call("Rebind", at(ast.Tuple([ast.Constant(n) for n in outside], ast.Load()), scope[0]), read)
        last = max(i for i, s in enumerate(node.body) if isinstance(s, (ast.Global, ast.Nonlocal)))
        node.body.insert(last + 1, at(ast.Expr(note), scope[0]))


def inner_functions(stmts: list[ast.stmt]) -> list[ast.FunctionDef]:
    """The functions that are defined right inside of a function."""
    found, todo = [], list[Any](stmts)
    while todo:
        n = todo.pop()
        if isinstance(n, ast.FunctionDef):
            found.append(n)
        elif not isinstance(n, INNER):
            todo += ast.iter_child_nodes(n)
    return found


def _extract(node: Function, source: Source, original: types.CodeType) -> types.CodeType:
    """Compile the definition between functions that bind its free variables, and take its code out again."""
    if isinstance(node, ast.FunctionDef):
        node.name = NAME
        node.lineno = original.co_firstlineno       # that of its decorators; code counts its lines from there
        inside: Any = node
    else:
        inside = at(ast.Assign([ast.Name(NAME, ast.Store())], node), node)
    if source.owner is not None:
        inside = at(ast.ClassDef(source.owner, [], [], [inside], []), node)
    free = [n for n in dict.fromkeys([*original.co_freevars, JST]) if n != "__class__" or source.owner is None]
    targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in free]
    binding = at(ast.Assign(targets, ast.Constant(None)), node)
    of_module: list[ast.stmt] = []      # the class around the method would hide a global of its own name from it
    if source.owner is not None and source.owner not in free:
        of_module = [at(ast.Global([source.owner]), node)]
    outer = at(ast.FunctionDef(OUTER, ast.arguments([], [], None, [], [], None, []), [*of_module, binding, inside], []),
               node)
    code = compile(ast.fix_missing_locations(ast.Module([outer], [])), original.co_filename, "exec",
                   original.co_flags & FUTURE, dont_inherit=True)
    path = [OUTER, *([source.owner] if source.owner else []), NAME if isinstance(node, ast.FunctionDef) else "<lambda>"]
    for name in path:
        code = next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
    code = code.replace(co_name=original.co_name)
    parts = {n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef) and is_part(n)}
    return _renamed(code, code.co_qualname, original.co_qualname, parts)


def _renamed(code: types.CodeType, old: str, new: str, parts: set[str]) -> types.CodeType:
    """The code, and that of functions inside, with the qualified names that the user's function gives them, as if no
    part of it had been moved."""
    def renamed(c: types.CodeType) -> types.CodeType:
        return _renamed(c, code.co_qualname, new if code.co_name in parts else qualname, parts)
    qualname = new + code.co_qualname.removeprefix(old)
    constants = tuple(renamed(c) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    return code.replace(co_consts=constants, co_qualname=qualname)
