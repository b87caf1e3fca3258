"""Puts a student's function in the place of the library's, with everything around it intact.

The module's statements run in their order, and where the function was, the student's runs: so it sees the module's
names, the module's other functions see it, and decorators and tables that take it up while the module is loaded take up
the student's.

Nothing here may import minipd: the overlay is in place before minipd is loaded.
"""

from __future__ import annotations
import __future__

import ast
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tools.course.source import Function, Target, find
from tools.course.student import Student


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


def pieces(target: Target, file: Path) -> list[CodeType]:
    """The module with the student's function in it, as code to run in this order.

    Code of the student keeps the name of the student's file and its line numbers, so that tracebacks point there.

    Raises: SyntaxError if the student's file is not Python; CourseError if it lacks the function, or gives another
    meaning to a name of the library.
    """
    found = find(target, file.name)
    student = Student(file, target)
    before, here, after = student.parts(found)
    flags = __future__.annotations.compiler_flag if _has_future_annotations(found.module) else 0

    def code(statements: Sequence[ast.stmt], path: Path) -> CodeType:
        return compile(ast.Module(list(statements), type_ignores=[]), str(path), "exec", flags, dont_inherit=True)

    if found.cls is None:
        middle = code(here, file)
    else:
        at = found.cls.body.index(found.function)
        found.cls.body[at:at + 1] = here
        names = {node.name for node in here if isinstance(node, (Function, ast.ClassDef))}
        middle = _of_file(code([found.cls], target.path), names, str(file))
    at = found.module.body.index(found.statement)
    return [code(found.module.body[:at], target.path), code(before, file), middle, code(after, file),
            code(found.module.body[at + 1:], target.path)]


def _of_file(code: CodeType, names: set[str], path: str) -> CodeType:
    """The code of a class, in which the functions of these names are from `path`."""
    def whole(code: CodeType) -> CodeType:
        return _with_parts(code.replace(co_filename=path), whole)

    def member(code: CodeType) -> CodeType:
        return whole(code) if code.co_name in names else code

    return _with_parts(code, lambda cls: _with_parts(cls, member))


def _with_parts(code: CodeType, change: Any) -> CodeType:
    """The code, with the code of its functions and classes changed."""
    return code.replace(co_consts=tuple(change(c) if isinstance(c, CodeType) else c for c in code.co_consts))


def _has_future_annotations(module: ast.Module) -> bool:
    return any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in module.body)


