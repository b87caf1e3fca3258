"""What the blocks of a branch or a loop may change, as places that can be read, written and left empty.

    y           a variable: the cell in which functions share it, or a global
    self.h      an attribute
    xs[]        the contents of a list, dict, set or array

(What is written into tensors, the trace tells: see `written`.)
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__: list[str] = []


#: what `early_return` calls the functions that follow an `if`
REST = "rest_of_"


class Missing:
    """Stands for the value of a variable that has none."""

    def __repr__(self) -> str:
        return "undefined"


MISSING = Missing()


class Place(NamedTuple):
    """name: as the user writes it."""

    name: str
    get: Callable[[], Any]
    set: Callable[[Any], None]
    unset: Callable[[], None]

    def put(self, value: Any) -> None:
        if value is MISSING:
            if self.get() is not MISSING:
                self.unset()
        else:
            self.set(value)

    @property
    def is_variable(self) -> bool:
        """A place that may be left empty: Python itself says then that it has no value."""
        return self.name.isidentifier()


def places(names: Sequence[str], functions: Sequence[types.FunctionType]) -> list[Place]:
    """The places of these names, as functions see them; of one container with two names, one place."""
    functions = _with_rests(functions)
    found, seen = [], set()
    for name in names:
        root, *path = name.removesuffix("[]").split(".")
        start = _variable(root, functions)
        if start is None:
            continue
        if name.isidentifier():
            found.append(start)
            continue
        try:
            owner = start.get()
            for step in path if name.endswith("[]") else path[:-1]:
                owner = getattr(owner, step)
        except AttributeError:
            continue                    # it is made inside
        place = _contents(name, owner) if name.endswith("[]") else _attribute(name, owner, path[-1])
        key = (id(owner), name.endswith("[]") or path[-1])
        if place is not None and key not in seen:
            seen.add(key)
            found.append(place)
    return found


def _with_rests(functions: Sequence[types.FunctionType]) -> list[types.FunctionType]:
    """These functions, and those that they go on with (see `early_return`): the variables may be known to them only."""
    found = list(functions)
    for f in found:
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            if name.startswith(REST) and isinstance(cell.cell_contents, types.FunctionType) and (
                    cell.cell_contents not in found):
                found.append(cell.cell_contents)
    return found


def _variable(name: str, functions: Sequence[types.FunctionType]) -> Place | None:
    for f in functions:
        if name in f.__code__.co_freevars:
            return _cell(name, f.__closure__[f.__code__.co_freevars.index(name)])      # type: ignore[index]
    for f in functions:
        if name in f.__globals__ or name in f.__code__.co_names:
            return _global(name, f.__globals__)
    return None


def _cell(name: str, cell: types.CellType) -> Place:
    def get() -> Any:
        try:
            return cell.cell_contents
        except ValueError:
            return MISSING

    def put(value: Any) -> None:
        cell.cell_contents = value

    def unset() -> None:
        del cell.cell_contents
    return Place(name, get, put, unset)


def _global(name: str, values: dict[str, Any]) -> Place:
    return Place(name, lambda: values.get(name, MISSING), lambda value: values.__setitem__(name, value),
                 lambda: values.__delitem__(name))


def _attribute(name: str, owner: Any, attribute: str) -> Place | None:
    if owner is MISSING:
        return None
    return Place(name, lambda: getattr(owner, attribute, MISSING), lambda value: setattr(owner, attribute, value),
                 lambda: delattr(owner, attribute))


def _contents(name: str, owner: Any) -> Place | None:
    """A copy of what a container holds, and the way to put it back into the same container."""
    if not isinstance(owner, (list, dict, set, np.ndarray)):
        return None

    def put(value: Any) -> None:
        if isinstance(owner, np.ndarray):
            owner[...] = value
        elif isinstance(owner, list):
            owner[:] = value
        else:
            owner.clear()
            owner.update(value)
    return Place(name, owner.copy, put, lambda: None)
