"""What the blocks of a branch or a loop may change, as places that can be read, written and left empty.

    y           a variable: the cell in which functions share it, or a global
    self.h      an attribute
    xs[]        the contents of a list, dict, set or array

(What is written into tensors, the trace tells: see `written`.)
"""

from __future__ import annotations

import types
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minipd.framework.meta import is_traced
from minipd.framework.tensor import Tensor
from minipd.nn.layer import Layer

__all__: list[str] = []


#: what `early_return` calls the functions that follow an `if`
REST = "rest_of_"


class Missing:
    """Stands for the value of a variable that has none."""

    def __repr__(self) -> str:
        return "undefined"


MISSING = Missing()


#: what a place is of its owner, if it is no attribute: the variable that a cell holds, one of a module, or all inside
CELL, GLOBAL, CONTENTS = "cell", "global ", "[]"


class Place(NamedTuple):
    """name: as the user writes it.  owner, what: the object that holds it, and which part of that it is."""

    name: str
    get: Callable[[], Any]
    set: Callable[[Any], None]
    unset: Callable[[], None]
    owner: Any = None
    what: str = ""

    @property
    def key(self) -> tuple[int, str]:
        """Equal for the same place under two names."""
        return id(self.owner), self.what

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
        root, *path = name.removesuffix(CONTENTS).split(".")
        start = _variable(root, functions)
        if start is None:
            continue
        if name.isidentifier():
            found.append(start)
            continue
        try:
            owner = start.get()
            for step in path if name.endswith(CONTENTS) else path[:-1]:
                owner = getattr(owner, step)
        except AttributeError:
            continue                    # it is made inside
        place = contents(name, owner) if name.endswith(CONTENTS) else attribute(name, owner, path[-1])
        if place is not None and place.key not in seen:
            seen.add(place.key)
            found.append(place)
    return found


def owned_place(name: str, owner: Any, what: str) -> Place:
    """The place that is known by its owner and what it is of that."""
    if what == CELL:
        return _cell(name, owner)
    if what.startswith(GLOBAL):
        return _global(what.removeprefix(GLOBAL), owner)
    found = contents(name, owner) if what == CONTENTS else attribute(name, owner, what)
    assert found is not None
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
    return Place(name, get, put, unset, cell, CELL)


def _global(name: str, values: dict[str, Any]) -> Place:
    return Place(name, lambda: values.get(name, MISSING), lambda value: values.__setitem__(name, value),
                 lambda: values.__delitem__(name), values, GLOBAL + name)


def attribute(name: str, owner: Any, what: str) -> Place | None:
    if owner is MISSING:
        return None

    def put(value: Any) -> None:
        held = owner.__dict__.get(what) if isinstance(owner, Layer) else None
        if isinstance(held, Tensor) and is_traced(held.payload) and not isinstance(value, Tensor):
            delattr(owner, what)        # a layer would take what the trace has put there for a buffer of its own
        setattr(owner, what, value)
    return Place(name, lambda: getattr(owner, what, MISSING), put, lambda: delattr(owner, what), owner, what)


def added(owner: Any, value: Any) -> None:
    """Put more into a deque, dict or set."""
    if isinstance(owner, Counter):              # its own method would add the counts
        dict.update(owner, value)
    else:
        (owner.extend if isinstance(owner, deque) else owner.update)(value)


def contents(name: str, owner: Any) -> Place | None:
    """A copy of what a container holds, and the way to put it back into the same container."""
    if not isinstance(owner, (list, dict, set, deque, np.ndarray)):
        return None

    def put(value: Any) -> None:
        if isinstance(owner, np.ndarray):
            owner[...] = value
        elif isinstance(owner, list):
            owner[:] = value
        else:
            owner.clear()
            added(owner, value)
    copy = (lambda: list(owner)) if isinstance(owner, deque) else owner.copy
    return Place(name, copy, put, lambda: None, owner, CONTENTS)
