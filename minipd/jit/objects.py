"""Attributes of plain objects, noted as they are read.

The code of a function tells which attributes it reads of a global, but not of what a helper is given, or a call
returns.  So while a function is traced, the classes of the user's tell themselves: a `__getattribute__` is put on them.
"""

from __future__ import annotations

import collections.abc
import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from minipd.framework.constraints import PACKAGE
from minipd.framework.tensor import Tensor
from minipd.jit.dy2static.inside import HEAP_TYPE
from minipd.jit.reads import MISSING, is_of_library, is_settled
from minipd.nn.layer import Layer

__all__: list[str] = []

IMMUTABLE = 1 << 8                      # Py_TPFLAGS_IMMUTABLETYPE: a class of an extension that takes no attributes
#: what stands between the user's code and a lookup in `os.environ`: methods of mappings, and rewritten `in`
BETWEEN = ("<frozen os>", "<frozen _collections_abc>", os.__file__, collections.abc.__file__,
           f"{PACKAGE}/jit/dy2static")


def is_users(kind: type) -> bool:
    """Whether a class comes from the user's own code."""
    if not kind.__flags__ & HEAP_TYPE or kind.__flags__ & IMMUTABLE or is_of_library(kind):
        return False
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "__main__" or file is not None and not is_settled(file) and "site-packages" not in file


def users_classes() -> list[type]:
    """The classes of the user's that no other one of them is a base of, for attributes that Python finds as usual."""
    found, todo, seen = [], [object], {object, Tensor, Layer, type, BaseException}
    while todo:
        for kind in type.__subclasses__(todo.pop()):
            if kind in seen:
                continue
            seen.add(kind)
            if not is_users(kind):
                todo.append(kind)
            elif kind.__getattribute__ is object.__getattribute__ and not issubclass(kind, type):
                found.append(kind)
    return found


def is_absent(owner: Any, name: str) -> bool:
    """Whether an object has no such attribute, though it could: `hasattr`, or `getattr` with a default, has asked."""
    return name[:2] != "__" and not hasattr(type(owner), name) and not hasattr(type(owner), "__getattr__")


@contextmanager
def watched(note: Callable[[Any, str, Any], None]) -> Iterator[None]:
    """`note(owner, name, value)` is called for each attribute that is read inside; value: MISSING where there is none.
    """
    def read(self: Any, name: str) -> Any:
        try:
            value = object.__getattribute__(self, name)
        except AttributeError:
            if is_absent(self, name):
                note(self, name, MISSING)
            raise
        if name[:2] != "__" and type(value) is not types.MethodType and not isinstance(
                getattr(type(self), name, None), property):         # what a property computes, it reads too
            note(self, name, value)
        return value
    classes = users_classes()
    for kind in classes:
        type.__setattr__(kind, "__getattribute__", read)
    try:
        yield
    finally:
        for kind in classes:
            type.__delattr__(kind, "__getattribute__")


@contextmanager
def environment_watched(note: Callable[[str, Any], None]) -> Iterator[None]:
    """`note(name, value)` is called for each variable of the environment that the user's code reads inside."""
    kind: Any = type(os.environ)
    inner = kind.__getitem__

    def read(self: Any, name: str) -> str:
        try:
            value = inner(self, name)
        except KeyError:
            _noted(name, MISSING)
            raise
        _noted(name, value)
        return value

    def _noted(name: str, value: Any) -> None:
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename.startswith(BETWEEN):
            frame = frame.f_back
        file = frame.f_code.co_filename if frame is not None else "<frozen"
        if not is_settled(file) and "site-packages" not in file:
            note(name, value)
    kind.__getitem__ = read
    try:
        yield
    finally:
        kind.__getitem__ = inner
