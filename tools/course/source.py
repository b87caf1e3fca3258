"""Finding a function in the text of a module, without importing it."""

from __future__ import annotations

import ast
import difflib
from pathlib import Path
from typing import NamedTuple

from tools.course.errors import CourseError

ROOT = Path(__file__).resolve().parents[2]

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Target(NamedTuple):
    """A function of the library that a student is to write: "minipd.ops.broadcast:axes_to_sum", or "...:Class.method".

    >>> target = Target.parse("minipd.ops.broadcast:ReduceAs.vjp_x", "an example")
    >>> target.module, target.cls, target.function
    ('minipd.ops.broadcast', 'ReduceAs', 'vjp_x')
    >>> str(target)
    'minipd.ops.broadcast:ReduceAs.vjp_x'
    """

    module: str
    cls: str            # "" for a function of the module
    function: str

    @classmethod
    def parse(cls, text: str, where: str) -> Target:
        module, colon, name = text.partition(":")
        parts = name.split(".")
        words = [*module.split("."), *parts]
        if not colon or len(parts) > 2 or not all(word.isidentifier() for word in words) or words[0] != "minipd":
            raise CourseError(where, 'a target like "minipd.ops.broadcast:axes_to_sum" or "minipd.ops.math:Pow.vjp_x"',
                              repr(text))
        return cls(module, parts[0] if len(parts) == 2 else "", parts[-1])

    def __str__(self) -> str:
        return f"{self.module}:{self.qualname}"

    @property
    def qualname(self) -> str:
        return f"{self.cls}.{self.function}" if self.cls else self.function

    @property
    def path(self) -> Path:
        """The file of the module; it need not exist."""
        base = ROOT.joinpath(*self.module.split("."))
        return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


class Found(NamedTuple):
    """Where a target is."""

    text: str                       # of the whole module
    module: ast.Module
    cls: ast.ClassDef | None
    function: Function

    @property
    def statement(self) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef:
        """The statement of the module that holds the function."""
        return self.cls or self.function

    @property
    def registering(self) -> list[ast.expr]:
        """The decorators that take the function up into a table, `@spmd("matmul")`: those that are calls.  They belong
        to what is around the function, and no student writes them; others (`@property`) say of what kind it is.
        """
        return [decorator for decorator in self.function.decorator_list if isinstance(decorator, ast.Call)]


def find(target: Target, where: str) -> Found:
    """Raises: CourseError if there is no such function, or more than one."""
    if not target.path.is_file():
        raise CourseError(where, f"a module minipd/....py for the target {target}",
                          f"no file {target.path.relative_to(ROOT)}")
    text = target.path.read_text(encoding="utf-8")
    module = ast.parse(text)
    cls = None
    body = module.body
    if target.cls:
        cls = _only(body, target.cls, ast.ClassDef, where, target)
        body = cls.body
    return Found(text, module, cls, _only(body, target.function, Function, where, target))


def _only(body, name, kind, where, target):
    named = {}
    for node in body:
        if isinstance(node, kind):
            named.setdefault(node.name, []).append(node)
    found = named.get(name, [])
    if len(found) != 1:
        what = "class" if kind is ast.ClassDef else "function"
        near = difflib.get_close_matches(name, named, n=1)
        raise CourseError(where, f"one {what} {name} for the target {target}", f"{len(found)} of that name",
                          f"did you mean {near[0]}?" if near and not found else "")
    return found[0]
