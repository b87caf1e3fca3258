"""What of a student's file goes into the library: the function, and the helpers and imports that come along with it.

Statements that neither import nor define what the function needs stay out: they are experiments, which would run while
minipd is only half loaded.  A name of the library stays the library's.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import dis
from collections.abc import Sequence
from importlib.util import decode_source
from pathlib import Path
from types import CodeType

from tools.course.errors import CourseError
from tools.course.source import Found, Function, Target

Statements = Sequence[ast.stmt]

#: What the module's other functions may use as well.
BUILTINS = {name: f"builtins.{name}" for name in dir(builtins)}

#: The instructions that name something of the module.
GLOBALS = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL"}


class Student:
    """The statements of a student's file.

    Raises: SyntaxError if it is not Python.
    """

    def __init__(self, path: Path, target: Target):
        self.path, self.target = path, target
        try:
            tree = ast.parse(decode_source(path.read_bytes()), str(path))
            compile(tree, str(path), "exec", dont_inherit=True)     # finds `return` outside of a function and the like
        except (ValueError, RecursionError) as error:       # not UTF-8; a null byte; a hundred brackets in each other
            raise SyntaxError(str(error)) from None
        self.body = [node for node in tree.body
                     if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]

    def parts(self, found: Found) -> tuple[Statements, Statements, Statements]:
        """What goes before, in the place of, and after the library's statement; for a method, the middle is what takes
        its place in the class.

        Raises: CourseError if the function is not there, or if a name of the library gets another meaning.
        """
        name, method = self.target.cls or self.target.function, self.target.function
        what = f"class {name} with the method {method} in it" if found.cls else f"a function {name}"
        at = self._place(self.body, name, what)
        needed = self._needed(self.body[at])
        mine = [node for node in self.body if node is self.body[at] or bound(node).keys() & needed or _imports(node)]
        kept = self._without_clashes(mine, bound_in(found.module.body, self.target.module, BUILTINS), name, needed)
        at = kept.index(self.body[at])
        here = kept[at]
        if found.cls is None:
            self._register(here, found)
            return kept[:at], [here], kept[at + 1:]
        if not isinstance(here, ast.ClassDef):
            raise CourseError(f"{self.path.name}, line {here.lineno}", what, f"a {name} that is no class")
        self._register(here.body[self._place(here.body, method, what)], found)
        inside = [node for node in here.body if not isinstance(node, ast.Expr)]      # without its docstring
        members = bound_in(found.cls.body, self.target.module, {})
        return kept[:at], self._without_clashes(inside, members, method, set(members)), kept[at + 1:]

    def _place(self, body: Statements, name: str, what: str) -> int:
        """The last statement that binds the name: that is the one that counts in Python."""
        at = [i for i, node in enumerate(body) if name in bound(node)]
        if at:
            return at[-1]
        there = [node.name for node in body if isinstance(node, (Function, ast.ClassDef))]
        near = difflib.get_close_matches(name, there, n=1)
        raise CourseError(self.path.name, what, f"only {', '.join(there)}" if there else "none",
                          f"if {near[0]} is it, give it back its name" if near else
                          "to start over, move the file away and make a new one with `make exercise-N`")

    def _register(self, function: ast.stmt, found: Found) -> None:
        """Give the function the library's decorators that take it up into a table, unless they are there."""
        if not found.registering:
            return
        if not isinstance(function, Function):
            raise CourseError(f"{self.path.name}, line {function.lineno}", f"def {found.function.name}(...)",
                              f"{found.function.name} defined otherwise", "the library registers it by a decorator")
        there = {ast.dump(decorator) for decorator in function.decorator_list}
        missing = [decorator for decorator in found.registering if ast.dump(decorator) not in there]
        for node in (node for decorator in missing for node in ast.walk(decorator) if isinstance(node, ast.expr)):
            node.lineno = node.end_lineno = function.lineno         # of the student's file, for tracebacks
        function.decorator_list[:0] = missing

    def _needed(self, function: ast.stmt) -> set[str]:
        """The names that the function uses, and those that their definitions in the file use."""
        needed: set[str] = set()
        new = _names(function)
        while new:
            needed |= new
            new = {name for node in self.body if bound(node).keys() & new for name in _names(node)} - needed
        return needed

    def _without_clashes(self, mine: Statements, names: dict[str, str], target: str,
                         needed: set[str]) -> list[ast.stmt]:
        """`mine` without the imports that the library has as well.  names: the library's, and where each comes from."""
        kept = []
        for node in mine:
            where = f"{self.path.name}, line {node.lineno}"
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                origins = bound(node)
                if "*" in origins:
                    raise CourseError(where, "an import of names one by one", "import *",
                                      f"it would hide names of {self.target.module}")
                node.names = [alias for alias in node.names if _as(alias) not in names
                              or _as(alias) in needed and origins[_as(alias)] != names[_as(alias)]]
                if not node.names:
                    continue
            for name, origin in bound(node).items():
                if name != target and names.get(name, origin) != origin:
                    owner = "Python" if names[name] == BUILTINS.get(name) else self.target.module
                    raise CourseError(where, f"names of your own besides {target}",
                                      f"{name}, which {owner} has already", "give yours another name")
            kept.append(node)
        return kept


def bound_in(body: Statements, module: str, before: dict[str, str]) -> dict[str, str]:
    """`before`, and the names that the statements bind."""
    return before | {name: origin for node in body for name, origin in bound(node, module).items()}


def bound(node: ast.AST, module: str = "") -> dict[str, str]:
    """The names that a statement binds or stores into, and where each comes from (`module`, if it is not imported).

    >>> bound(ast.parse("from numpy import ones as o, zeros").body[0])
    {'o': 'numpy.ones', 'zeros': 'numpy.zeros'}
    >>> sorted(bound(ast.parse("if x:\\n  def f(a): b = 1\\nelse: t[0], (c, d) = 1, e").body[0]))
    ['c', 'd', 'f', 't']
    """
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name: f"{module}.{name}"}
        case ast.Import(names=names):
            return {_as(alias): alias.name if alias.asname else _as(alias) for alias in names}
        case ast.ImportFrom(names=names):
            return {_as(alias): f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in names}
        case ast.Name(id=name, ctx=ast.Store()):
            return {name: f"{module}.{name}"}
        case ast.Subscript(ctx=ast.Store(), value=value) | ast.Attribute(ctx=ast.Store(), value=value):
            return {name.id: f"{module}.{name.id}" for name in ast.walk(value) if isinstance(name, ast.Name)}
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return {}                   # their names are their own
        case _:
            parts = [bound(inner, module) for inner in ast.iter_child_nodes(node)]
            return {name: origin for part in parts for name, origin in part.items()}


def _names(node: ast.stmt) -> set[str]:
    """The names of the module that a statement reads, or its functions will.

    >>> sorted(_names(ast.parse("def f(x: T, y=Y): global g; g = lambda z: x + z + h(y)").body[0]))
    ['T', 'Y', 'g', 'h']
    """
    def used(code: CodeType) -> set[str]:
        inner = [used(const) for const in code.co_consts if isinstance(const, CodeType)]
        return {i.argval for i in dis.get_instructions(code) if i.opname in GLOBALS}.union(*inner)

    return used(compile(ast.Module([node], type_ignores=[]), "", "exec", dont_inherit=True))


def _imports(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom))


def _as(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]
