"""`minipd ops --stubs`: write `.pyi` files, so that editors and type checkers see the names that tables make.

Three kinds of names are in no source file under their own name: those of the root (`minipd/__init__.py` wires them),
public functions made by a helper (`exp = unary(Exp)`), and the methods of Tensor.  For each namespace that has such
names a stub says what there is: a name that a module defines is imported from it, a made one is written out with its
signature.  A test compares the stubs with what would be written.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import inspect
import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from minipd.framework.files import replacing
from minipd.framework.tensor import Tensor

__all__: list[str] = []

HEAD = '"""Written by `minipd ops --stubs`: names that tables make, for editors and type checkers."""\n'
#: The namespaces that get a stub, and where the methods of Tensor go.
NAMESPACES = ("minipd", "minipd.nn.functional")
METHODS = "minipd.framework.tensor_methods"


def stubs() -> dict[Path, str]:
    """The stub files, as they should be: path -> text."""
    root = Path(sys.modules["minipd"].__file__ or "").parent
    found = {}
    for name in NAMESPACES:
        module = importlib.import_module(name)
        found[root.joinpath(*name.split(".")[1:], "__init__.pyi")] = _Stub().of_namespace(module)
    found[root.joinpath(*METHODS.split(".")[1:]).with_suffix(".pyi")] = _Stub().of_methods()
    return found


def write() -> list[Path]:
    """Write the stubs that differ from what is there; returns their paths."""
    changed = []
    for path, text in stubs().items():
        if not path.is_file() or path.read_text() != text:
            with replacing(path) as file:
                file.write_text(text)
            changed.append(path)
    return changed


class _Stub:
    """One file: lines, and the imports that their annotations need."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.imports: set[str] = set()
        self.shadowed: frozenset[str] = frozenset()

    def of_namespace(self, module: types.ModuleType) -> str:
        names = sorted(module.__all__)
        self.shadowed = frozenset(names) & frozenset(vars(builtins))
        for name in names:
            self.name(name, getattr(module, name))
        floors = getattr(module, "FLOORS", ())
        packages = {part.partition(".")[0] for floor in floors for part in (*floor.exports, *floor.imports)}
        for name in sorted({*packages, "FLOORS", "__version__"} - set(names) if floors else ()):
            self.name(name, getattr(module, name))      # what importing the root brings along, and its own
        public = "".join(f"    {name!r},\n" for name in names).replace("'", '"')
        return self.text() + f"\n__all__ = [\n{public}]\n"

    def of_methods(self) -> str:
        """The class that Tensor inherits from, for type checkers: what floors attach to Tensor."""
        own = _defined("minipd.framework.tensor", "Tensor")
        self.lines += ["class TensorMethods:"]
        attached = {name: value for name, value in vars(Tensor).items()
                    if name not in own and (callable(value) or isinstance(value, property))}
        self.shadowed = frozenset(attached) & frozenset(vars(builtins))
        for name, value in sorted(attached.items()):
            if name in ("__doc__", "__module__", "__weakref__", "__dict__"):
                continue
            if isinstance(value, property):
                self.lines += ["    @property", f"    def {name}(self) -> {self.annotation(value.fget, 'return')}: ..."]
            else:
                self.lines.append(f"    def {name}{self.signature(value, method=True)}: ...")
        return self.text()

    def name(self, name: str, value: Any) -> None:
        """One public name: imported from where it is defined, or written out."""
        if isinstance(value, types.ModuleType):
            parent, _, last = value.__name__.rpartition(".")
            self.imports.add(f"from {parent} import {last} as {name}")
        elif inspect.isclass(value) and name in _defined(value.__module__):
            self.imports.add(f"from {value.__module__} import {value.__name__} as {name}")
        elif isinstance(value, types.FunctionType):
            source = value.__module__
            if value.__name__ in _defined(source) and not hasattr(value, "__wrapped__"):
                self.imports.add(f"from {source} import {value.__name__} as {name}")
            else:
                self.lines.append(f"def {name}{self.signature(value)}: ...")
        else:
            self.lines.append(f"{name}: {self.type_of(type(value))}")

    # ---------------------------------------------------------------------------------------------- signatures
    def signature(self, function: Any, method: bool = False) -> str:
        """`(x: Tensor, axis: int = -1) -> Tensor`, with names that this file can resolve."""
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return "(self, *args: Any, **kwargs: Any) -> Any" if method else "(*args: Any, **kwargs: Any) -> Any"
        parts, seen_star, positional = [], False, False
        for i, p in enumerate(parameters):
            if p.kind is p.POSITIONAL_ONLY:
                positional = True
            elif positional:
                parts.append("/")
                positional = False
            if p.kind is p.KEYWORD_ONLY and not seen_star:
                parts.append("*")
                seen_star = True
            seen_star = seen_star or p.kind is p.VAR_POSITIONAL
            star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
            if method and i == 0:
                parts.append("self")
                continue
            default = "" if p.default is p.empty else " = ..." if not _plain(p.default) else f" = {p.default!r}"
            parts.append(f"{star}{p.name}: {self.resolved(p.annotation, function)}{default}")
        if positional:
            parts.append("/")
        if any("Any" in part for part in parts):
            self.imports.add("from typing import Any")
        return f"({', '.join(parts)}) -> {self.annotation(function, 'return')}"

    def annotation(self, function: Any, name: str) -> str:
        return self.resolved(getattr(function, "__annotations__", {}).get(name, inspect.Parameter.empty), function)

    def resolved(self, annotation: Any, function: Any) -> str:
        """An annotation in which every name is imported, or a builtin; `Any` where one cannot be found."""
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
        if annotation is inspect.Parameter.empty:
            text = "Any"
        scope = inspect.unwrap(function).__globals__ if callable(function) else {}
        try:
            tree = ast.parse(text, mode="eval")
        except SyntaxError:
            tree = ast.parse("Any", mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                node.id = self.imported(node.id, scope)
        return ast.unparse(tree)

    def imported(self, name: str, scope: dict) -> str:
        """What the file calls the thing that is `name` in a function's module."""
        if name == "Any":
            self.imports.add("from typing import Any")
            return name
        thing = scope.get(name, getattr(builtins, name, None))
        if isinstance(thing, types.ModuleType):
            self.imports.add(f"import {thing.__name__} as {name}")
            return name
        return self.type_of(thing) if inspect.isclass(thing) or hasattr(thing, "__qualname__") else self.imported(
            "Any", scope)

    def type_of(self, thing: Any) -> str:
        if thing is type(None):
            return "None"
        module, name = thing.__module__, thing.__name__
        if module == "builtins":
            if name in self.shadowed:
                self.imports.add("import builtins")
                return f"builtins.{name}"
            return name
        self.imports.add(f"from {module} import {name}" + (f" as {name}" if name not in self.shadowed else ""))
        return name

    def text(self) -> str:
        return "\n".join([HEAD, *sorted(self.imports), "", *self.lines, ""])


@functools.cache
def _defined(module: str, within: str | None = None) -> frozenset[str]:
    """The functions and classes that a module (or a class in it) defines by name."""
    source = inspect.getsource(importlib.import_module(module))
    body: Iterable[ast.stmt] = ast.parse(source).body
    if within is not None:
        body = next(n.body for n in body if isinstance(n, ast.ClassDef) and n.name == within)
        targets = {t.id for n in body if isinstance(n, ast.AnnAssign) and isinstance(t := n.target, ast.Name)}
        targets |= {t.id for n in body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    else:
        targets = set()
    return frozenset(targets | {n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))})


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str)) and repr(value) not in ("inf", "-inf", "nan")
