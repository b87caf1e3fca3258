"""Chapters are floors: each chapter opens some modules, and `MINIPD_FLOOR=N` keeps those of later chapters closed.

The list of floors itself is in `minipd/__init__.py`.  That a module imports only from its own floor or below is the
import-linter contract in `pyproject.toml`; what is here proves it at run time: with later floors closed, the system
that the chapters have built so far still works.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

__all__: list[str] = []


class Floor(NamedTuple):
    """One chapter's share of the package.

    Modules are named below `minipd`.

    opens:   the modules that are built in this chapter; a package stands for everything in it.
    exports: imported with minipd, in this order; the names in a module's `__all__` become names of minipd.
    imports: imported with minipd after those, for what they register (rows, columns of rows, methods of Tensor) or
             because Paddle has them as a name of the root (`paddle.nn`).
    """

    number: int
    opens: tuple[str, ...]
    exports: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


class ClosedFloorError(ImportError):
    """A module of a later chapter, imported under `MINIPD_FLOOR`."""


def highest_floor(floors: tuple[Floor, ...], environ: Mapping[str, str]) -> int:
    """The last floor that is open: `MINIPD_FLOOR`, or all of them.

    Raises: ImportError if `MINIPD_FLOOR` is not the number of a floor.
    """
    top = floors[-1].number
    text = environ.get("MINIPD_FLOOR", "")
    if not text:
        return top
    if not text.isdecimal() or not 1 <= int(text) <= top:
        raise ImportError(f"MINIPD_FLOOR: expected a chapter number from 1 to {top}, got {text!r}; "
                          f"unset it to open every floor")
    return int(text)


class ClosedFloors:
    """A finder for `sys.meta_path` that finds nothing, and refuses to import what a later chapter opens."""

    def __init__(self, package: str, floors: tuple[Floor, ...], chapter: int):
        self.chapter = chapter
        self.closed = {f"{package}.{module}": floor.number
                       for floor in floors if floor.number > chapter for module in floor.opens}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        for module in _and_parents(fullname):
            if module in self.closed:
                floor = self.closed[module]
                raise ClosedFloorError(
                    f"floor {floor} is closed in chapter {self.chapter}: {fullname} is built in chapter "
                    f"{floor}; set MINIPD_FLOOR={floor} or unset it", name=fullname)


def _and_parents(fullname: str) -> Iterator[str]:
    """`a.b.c`, `a.b`, `a`."""
    while fullname:
        yield fullname
        fullname = fullname.rpartition(".")[0]


def wire(package: str, floors: tuple[Floor, ...], environ: Mapping[str, str]) -> dict[str, Any]:
    """Import the open floors from the bottom up, close the others, and return the public names.

    Raises: ImportError if two modules export different things under one name.
    """
    chapter = highest_floor(floors, environ)
    if chapter < floors[-1].number:
        sys.meta_path.insert(0, ClosedFloors(package, floors, chapter))
    names: dict[str, Any] = {}
    for floor in floors[:chapter]:
        for name in floor.exports:
            module = importlib.import_module(f"{package}.{name}")
            for public in module.__all__:
                value = getattr(module, public)
                if names.setdefault(public, value) is not value:
                    raise ImportError(f"{module.__name__} exports {public!r}, but an earlier module does too: "
                                      f"{names[public]!r} and {value!r}; one of them needs another name")
        for name in floor.imports:
            importlib.import_module(f"{package}.{name}")
    return names
