"""What a function reads around itself, from its code: `SCALE`, `config.width`, `self.block.scale`, a cell of a closure.

A *chain* is a name that is not local, or an argument, and the attributes taken of it one after the other.  The code
says which chains there are; they are followed from the values that the names have when the function is about to run.
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import sysconfig
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from minipd.framework.constraints import PACKAGE

__all__: list[str] = []

STDLIB = str(Path(sysconfig.get_paths()["stdlib"]))
#: where code does not change between two calls: nothing in there is followed
SETTLED = (PACKAGE, str(Path(np.__file__).parent))
#: ... and of which nothing is looked at
LIBRARY = {__name__.partition(".")[0], "numpy", *sys.stdlib_module_names} - {"__main__"}
MISSING = object()
FUNCTIONS = (types.FunctionType, types.MethodType)
CONTAINERS = (list, tuple, dict, set, deque, np.ndarray)
#: methods that write a container and read nothing of it
WRITING = frozenset("add append appendleft extend insert update".split())

#: ("global", name), ("cell", name) or ("local", name), and the attributes behind it
Chain = tuple[tuple[str, str], tuple[str, ...]]


def is_settled(path: str) -> bool:
    """Whether a file belongs to minipd, numpy or Python itself."""
    return path.startswith(SETTLED) or path.startswith("<frozen") or (
        path.startswith(STDLIB) and "site-packages" not in path)


def is_of_library(kind: type) -> bool:
    """Whether a class belongs to minipd, numpy or Python itself."""
    return kind.__module__.partition(".")[0] in LIBRARY


def is_fixed(owner: types.ModuleType | type) -> bool:
    """Whether a module or a class belongs to minipd, numpy or Python itself.  (A module without a file may be built in,
    or made by the user.)"""
    if isinstance(owner, type):
        return is_of_library(owner)
    file = getattr(owner, "__file__", None)
    return is_settled(file) if file else owner.__name__.partition(".")[0] in LIBRARY


def is_steady(owner: Any, name: str, value: Any) -> bool:
    """Whether an attribute is what was stored: not a method that is made anew each time, nor what is computed."""
    kept = getattr(type(owner), name, None)
    if isinstance(kept, property) or isinstance(kept, types.MemberDescriptorType) and name not in slots_of(type(owner)):
        return False
    if getattr(value, "__self__", MISSING) is owner:
        return False
    return not isinstance(owner, type) or type(value) in (int, float) or getattr(owner, name, MISSING) is value


def chains(code: types.CodeType, aliases: Mapping[str, Chain] | None = None) -> Iterator[Chain]:
    """The chains of a function's code, those of functions inside of it too.

    A local name that is a chain's only stands for the chain: `c = self.config; c.width`.
    """
    known: dict[str, Chain | None] = dict(aliases or {})
    instructions = list(dis.get_instructions(code))
    stored: dict[str, int] = {}
    for i in instructions:
        if i.opname.startswith("STORE_"):
            for name in _names(i.argval):
                stored[name] = stored.get(name, 0) + 1
    now: Chain | None = None
    for i in instructions:
        kind = i.opname
        if kind in ("LOAD_ATTR", "LOAD_METHOD") and now is not None:
            now = now[0], (*now[1], i.argval)
            continue
        if kind in ("CACHE", "PUSH_NULL", "NOP"):
            continue
        if now is not None:
            if kind in ("STORE_FAST", "STORE_DEREF") and stored.get(i.argval) == 1:
                known[i.argval] = now
            yield now
            now = None
        if kind in ("LOAD_GLOBAL", "LOAD_NAME"):
            now = ("global", i.argval), ()
        elif kind in ("LOAD_DEREF", "LOAD_CLASSDEREF") and i.argval in code.co_freevars:
            now = known.get(i.argval) or (("cell", i.argval), ())
        elif kind.startswith(("LOAD_FAST", "LOAD_DEREF")):
            name = _names(i.argval)[-1]
            now = known.get(name) or (("local", name), ())
        elif kind == "LOAD_CONST" and isinstance(i.argval, types.CodeType):
            yield from chains(i.argval, {n: c for n, c in known.items() if c is not None and n in i.argval.co_freevars})
    if now is not None:
        yield now


def slots_of(kind: type) -> set[str]:
    """The attributes that the class statements of a class, and of those that it inherits from, give a slot."""
    found = [vars(c).get("__slots__", ()) for c in kind.__mro__]
    return {name for slots in found for name in ([slots] if isinstance(slots, str) else slots)}


def _names(argval: Any) -> tuple[str, ...]:
    """The names of an instruction; some handle two at once."""
    return argval if isinstance(argval, tuple) else (argval,) if isinstance(argval, str) else ("",)


def end_of(function: Any, near: str = "") -> str:
    """The place where a function ends, for people: that of its `return`.  Of several, it is `near`, where the last
    operator was called, if that is one, else the last."""
    function = function if hasattr(function, "__code__") else type(function).__call__
    code = getattr(function, "__code__", None)
    if code is None:
        return near
    places = _returns(code)
    return near if near in places or not places else places[-1]


@functools.lru_cache(maxsize=64)
def _returns(code: types.CodeType) -> list[str]:
    """The places of the `return`s of a function, in the order of their lines."""
    lines = {i.positions.lineno for i in dis.get_instructions(code) if i.opname.startswith("RETURN_") and i.positions}
    return [f"{code.co_filename}:{line}" for line in sorted(line for line in lines if line is not None)]


class Reads:
    """Collects what functions read: `note(owner, kind, name, value, whole)` is called once for each place.

    kind, owner: "item" of a dict of globals, "cell", or "attribute" of an object.  whole: whether what is in the value
    counts; False for a list to which the function only appends.
    """

    def __init__(self, note: Callable[[Any, str, str, Any, bool], None]):
        self.note = note
        self.followed: set[tuple[int, int]] = set()

    def follow(self, function: Any, given: Mapping[str, Any] | None = None) -> None:
        """Note what a function reads now, and what those read that it names.  given: its arguments by name."""
        given = dict(given or {})
        if isinstance(function, types.MethodType):
            own, function = function.__self__, function.__func__
            function = getattr(function, "__wrapped__", function) if not hasattr(function, "__code__") else function
            names = getattr(getattr(function, "__code__", None), "co_varnames", ("",))
            given.setdefault(names[0] if names else "", own)
        wrapped = getattr(function, "__wrapped__", None)
        if not isinstance(function, types.FunctionType):
            inner = getattr(function, "dygraph_function", wrapped)
            if inner is not None and inner is not function:
                self.follow(inner, given)
            return
        code = function.__code__
        at = id(code), id(next(iter(given.values()), None))
        if at in self.followed or is_settled(code.co_filename):
            return
        self.followed.add(at)
        positional = code.co_varnames[:code.co_argcount]
        defaults = dict(zip(positional[::-1], (function.__defaults__ or ())[::-1], strict=False))
        defaults = {n: v for n, v in (*defaults.items(), *(function.__kwdefaults__ or {}).items()) if n not in given}
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        for root, attributes in dict.fromkeys(chains(code)):
            self._resolve(function, root, attributes, cells, given, defaults)

    def _resolve(self, function: types.FunctionType, root: tuple[str, str], attributes: tuple[str, ...],
                 cells: Mapping[str, Any], given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        kind, name = root
        whole = [attribute not in WRITING for attribute in attributes] + [True]
        if kind == "global":
            value = function.__globals__.get(name, MISSING)
            if value is MISSING:                # a builtin, or nothing yet
                if not hasattr(builtins, name):
                    self.note(function.__globals__, "item", name, MISSING, True)
                return
            self.note(function.__globals__, "item", name, value, whole[0])
        elif kind == "cell":
            try:
                value = cells[name].cell_contents
            except (KeyError, ValueError):      # a variable of a function around, or one without a value yet
                return
            self.note(cells[name], "cell", name, value, whole[0])
        elif name in given:
            value = given[name]
        elif name in defaults:
            value = defaults[name]
            by_name = function.__kwdefaults__
            self.note(function, "attribute", "__defaults__", function.__defaults__, False)
            if by_name is not None and name in by_name:
                self.note(by_name, "item", name, value, whole[0])
            elif isinstance(value, CONTAINERS) and whole[0]:
                self.note(value, "itself", name, value, True)
        else:
            return
        self._into(value)
        for attribute, counts in zip(attributes, whole[1:], strict=True):
            if isinstance(value, np.ndarray) or isinstance(value, (types.ModuleType, type)) and (
                    is_fixed(value) or attribute == "__dict__"):
                return
            if isinstance(getattr(type(value), attribute, None), property):
                return                          # computed, not kept
            owner, value = value, getattr(value, attribute, MISSING)
            if value is MISSING:
                if isinstance(owner, (types.ModuleType, type)):
                    self.note(owner, "attribute", attribute, MISSING, True)
                return
            if getattr(value, "__self__", MISSING) is not owner:            # a method is made anew each time
                if not is_steady(owner, attribute, value):
                    return
                self.note(owner, "attribute", attribute, value, counts)
            self._into(value)

    def _into(self, value: Any) -> None:
        """Follow a function that is read, for it may be called."""
        kind = type(value)                      # not `isinstance`, which asks a proxy for what it stands for
        if issubclass(kind, FUNCTIONS) or hasattr(kind, "dygraph_function"):
            self.follow(value)
        elif kind is functools.partial:
            self._into(value.func)
        elif issubclass(kind, (list, tuple)):
            for each in value:
                if issubclass(type(each), FUNCTIONS):
                    self.follow(each)


