"""Puts a student's function in the place of the library's, with everything around it intact.

The module's statements run in their order, and where the function was, the student's statements run: so it sees the
module's names, the module's other functions see it, and decorators and tables that take it up while the module is
loaded take up the student's.  Helpers and imports of the student come along; names of the library stay the library's.

Nothing here may import minipd: the overlay is in place before minipd is loaded.
"""

from __future__ import annotations
import __future__

import ast
import difflib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tools.course.errors import CourseError
from tools.course.source import Found, Function, Target, find


class Overlay:
    """A finder for `sys.meta_path` that loads one module with one function replaced, and leaves all others alone."""

    def __init__(self, target: Target, student: Path):
        self.target = target
        self.pieces = pieces(target, student)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != self.target.module:
            return None
        file = self.target.path
        folder = [str(file.parent)] if file.name == "__init__.py" else None
        return spec_from_file_location(fullname, file, loader=_Loader(fullname, str(file), self.pieces),
                                       submodule_search_locations=folder)

    def install(self) -> None:
        sys.meta_path.insert(0, self)           # type: ignore[arg-type]  # a finder by its one method


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, codes: Sequence[CodeType]):
        super().__init__(fullname, path)
        self.codes = codes

    def exec_module(self, module: ModuleType) -> None:
        for code in self.codes:
            exec(code, module.__dict__)


def pieces(target: Target, student: Path) -> list[CodeType]:
    """The module with the student's function in it, as code to run in this order.

    Code of the student keeps the name of the student's file and its line numbers, so that tracebacks point there.

    Raises: SyntaxError if the student's file is not Python; CourseError if it lacks the function, or gives another
    meaning to a name of the library.
    """
    found = find(target, str(student))
    tree = ast.parse(student.read_bytes(), str(student))
    compile(tree, str(student), "exec", dont_inherit=True)      # `return` outside of a function and the like
    own = _Student(tree, student, target)
    at = found.module.body.index(found.statement)
    flags = __future__.annotations.compiler_flag if _has_future_annotations(found) else 0

    def code(statements: list[ast.stmt], path: Path) -> CodeType:
        module = ast.Module(statements, type_ignores=[])
        return compile(module, str(path), "exec", flags=flags, dont_inherit=True)

    before, function, after = own.parts(found)
    if found.cls is None:
        middle = code(function, student)
    else:
        _replace(found.cls.body, found.function, function)
        names = {node.name for node in function if isinstance(node, (Function, ast.ClassDef))}
        middle = _renamed(code([found.cls], target.path), names, str(student))
    return [code(found.module.body[:at], target.path), code(before, student), middle, code(after, student),
            code(found.module.body[at + 1:], target.path)]


class _Student:
    """The statements of a student's file."""

    def __init__(self, tree: ast.Module, path: Path, target: Target):
        self.path, self.target = path, target
        self.body = [node for node in tree.body if not _is_docstring(node) and not _is_future(node)]

    def parts(self, found: Found) -> tuple[list[ast.stmt], list[ast.stmt], list[ast.stmt]]:
        """The statements before, in the place of, and after what the library has there."""
        name = self.target.cls or self.target.function
        at = self._place(self.body, name, f"{'class' if self.target.cls else 'function'} {name}")
        before = self._without_clashes(self.body[:at], found.module.body, name)
        after = self._without_clashes(self.body[at + 1:], found.module.body, name)
        if found.cls is None:
            return before, [self.body[at]], after
        cls = self.body[at]
        if not isinstance(cls, ast.ClassDef):
            raise CourseError(f"{self.path.name}, line {cls.lineno}", f"class {name} with the method "
                              f"{self.target.function}", "something else of that name")
        self._place(cls.body, self.target.function, f"method {self.target.function} in class {name}")
        inside = [node for node in cls.body if not _is_docstring(node)]
        return before, self._without_clashes(inside, found.cls.body, self.target.function), after

    def _place(self, body: list[ast.stmt], name: str, what: str) -> int:
        """The last statement that binds the name: that is the one that counts in Python."""
        at = [i for i, node in enumerate(body) if name in bound(node)]
        if at:
            return at[-1]
        there = [other for node in body if isinstance(node, (Function, ast.ClassDef)) for other in bound(node)]
        near = difflib.get_close_matches(name, there, n=1)
        raise CourseError(self.path.name, f"a {what}", f"only {', '.join(there)}" if there else "nothing of that name",
                          f"is {near[0]} a new name for it? give it back the old one" if near else
                          "`make exercise-N` writes a new file once this one is moved away")

    def _without_clashes(self, mine: list[ast.stmt], library: list[ast.stmt], target: str) -> list[ast.stmt]:
        """`mine` without the imports that the library has as well.

        Raises: CourseError if a statement gives another meaning to a name of the library.
        """
        names = {name: origin for node in library for name, origin in bound(node, self.target.module).items()}
        kept = []
        for node in mine:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                origins = bound(node)
                node.names = [alias for alias in node.names
                              if origins[_bound_as(alias)] != names.get(_bound_as(alias), "")]
                if not node.names:
                    continue
            for name in bound(node):
                if name in names and name != target:
                    raise CourseError(f"{self.path.name}, line {node.lineno}", "names of your own besides "
                                      f"{target}", f"{name}, which {self.target.module} has already",
                                      "give yours another name")
            kept.append(node)
        return kept


def bound(node: ast.stmt, module: str = "") -> dict[str, str]:
    """The names that a statement binds, and where each comes from (in `module`, if it is not imported)."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name: f"{module}.{name}"}
        case ast.Import(names=names):
            return {_bound_as(alias): alias.name if alias.asname else alias.name.split(".")[0] for alias in names}
        case ast.ImportFrom(names=names):
            return {_bound_as(alias): f"{'.' * node.level}{node.module}.{alias.name}" for alias in names}
        case _:
            stored = {name.id: f"{module}.{name.id}" for name in ast.walk(node)
                      if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
            for inner in ast.walk(node):
                if isinstance(inner, (ast.Import, ast.ImportFrom)):
                    stored |= bound(inner)
            return stored


def _bound_as(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]


def _replace(body: list[ast.stmt], old: ast.stmt, new: list[ast.stmt]) -> None:
    at = body.index(old)
    body[at:at + 1] = new


def _renamed(code: CodeType, names: set[str], path: str) -> CodeType:
    """The code of a class, in which the functions of these names come from the student's file."""
    def every(code: CodeType) -> CodeType:
        return code.replace(co_filename=path, co_consts=tuple(
            every(const) if isinstance(const, CodeType) else const for const in code.co_consts))

    def of_class(code: CodeType) -> CodeType:
        return code.replace(co_consts=tuple(
            every(const) if isinstance(const, CodeType) and const.co_name in names else const
            for const in code.co_consts))

    return code.replace(co_consts=tuple(
        of_class(const) if isinstance(const, CodeType) else const for const in code.co_consts))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _has_future_annotations(found: Found) -> bool:
    return any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in found.module.body)
