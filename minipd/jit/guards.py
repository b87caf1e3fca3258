"""Guards: what a trace has read around the function, and whether it still is as it was.

A trace asks Python once, and the program answers from then on.  So everything that Python was asked is noted: globals,
cells of closures and attributes of plain objects from the code of the functions (`reads`), attributes of layers and
values of tensors from outside as they are read.  Before a program is used again, they are compared: numbers, strings
and containers of them by value, everything else by identity.  (A tensor is bound by its handle: that its *values*
change is no reason to trace again, unless Python has looked at them.)

Attributes of layers, of which a model reads thousands, are compared only when an attribute of some layer has been set
since.
"""

from __future__ import annotations

import os
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from operator import is_
from typing import Any
from weakref import ref

import numpy as np

from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.jit.dy2static.inside import HEAP_TYPE, behind, from_around, given_to
from minipd.jit.dy2static.reading import KEPT, READERS
from minipd.jit.effects import Effect
from minipd.jit.objects import environment_watched, is_absent, watched
from minipd.jit.reads import MISSING, Reads, is_of_library
from minipd.nn.hooks import Hooks
from minipd.nn.layer import Layer
from minipd.nn.tree import CHANGES

__all__: list[str] = []

PLAIN = (bool, int, float, complex, str, bytes, type(None))
#: what may be another in the same place without being another object
CHANGING = (list, tuple, dict, set, deque, np.ndarray, Hooks, partial)
#: deeper inside of containers, identity decides
DEPTH = 4
ROOT = __name__.partition(".")[0]



class Guard:
    """One place that was read.  expected: what stood there, as `frozen` makes it.  plain: it cannot change in place."""

    __slots__ = ("expected", "inside", "kind", "name", "owner", "plain", "value", "whole")

    def __init__(self, owner: Any, kind: str, name: str, value: Any, whole: bool = True):
        self.owner, self.kind, self.name, self.value = owner, kind, name, value
        self.whole = whole
        self.expected = frozen(value, 0 if whole else DEPTH)
        # a flat list of objects, of tensors say, is compared without making anything
        flat = type(value) is list and not any(type(v) in CHANGING or is_plain_object(v) for v in value)
        self.inside = tuple(value) if flat and whole else None
        self.plain = not (isinstance(self.expected, tuple) and self.expected[0] == "in")

    def now(self) -> Any:
        """What stands there now; MISSING if nothing."""
        if self.kind == "item":
            return self.owner.get(self.name, MISSING)
        if self.kind == "attribute":
            return getattr(self.owner, self.name, MISSING)
        if self.kind == "values":
            return self.owner.payload
        if self.kind == "names":
            return names_in(self.owner)
        if self.kind == "method":
            return text_of_method(getattr(self.owner, self.name, MISSING))
        if self.kind == "itself":
            return self.owner
        try:
            return self.owner.cell_contents
        except ValueError:
            return MISSING

    def holds(self) -> bool:
        """Whether it is what it was."""
        value = self.now()
        if self.inside is not None and value is self.value and len(value) == len(self.inside) and all(
                map(is_, value, self.inside)):
            return True
        return self.plain and value is self.value or frozen(value, 0 if self.whole else DEPTH) == self.expected

    def mentions(self, x: Any) -> bool:
        """Whether it is about an object, or a container of it."""
        todo = [self.expected]
        while todo:
            one = todo.pop()
            if one == ("is", id(x)):
                return True
            if isinstance(one, (tuple, frozenset)):
                todo += one
        return False

    def renew(self, value: Any) -> None:
        """Expect another value from now on."""
        self.value, self.expected = value, frozen(value, 0 if self.whole else DEPTH)

    def __str__(self) -> str:
        if self.kind == "attribute":
            owner = self.owner
            whose = owner._full_name if isinstance(owner, Layer) else getattr(owner, "__name__", type(owner).__name__)
            return f"attribute {whose}.{self.name}"
        if self.kind == "names":
            return f"what {self.owner._full_name} holds"
        if self.kind == "method":
            return f"method {self.owner._full_name}.{self.name}"
        if self.kind == "values":
            return f"the values of tensor {self.owner.name}"
        if self.kind == "itself":
            return f"what is in {self.name.removesuffix('[]')}"
        if self.kind == "item" and self.owner is os.environ:
            return f"environment variable {self.name}"
        if self.kind == "item" and "__name__" not in self.owner:
            return f"item {self.name!r}"
        return f"global {self.name}" if self.kind == "item" else f"variable {self.name} of the closure"


def text_of_method(value: Any) -> tuple[str, int, str] | None:
    """Which text of the user's a method computes with, rewritten for the trace or not; None if that is no method."""
    code = getattr(getattr(value, "__func__", None), "__code__", None)
    return None if code is None else (code.co_filename, code.co_firstlineno, code.co_qualname)


def held_by(layer: Layer) -> dict[str, Any]:
    """What the layer itself has, and not its class."""
    return object.__getattribute__(layer, "__dict__")       # not `vars`, which would be watched


def is_of_users_class(layer: Layer, name: str) -> bool:
    """Whether a layer has an attribute from a class that the user has written."""
    return name not in held_by(layer) and any(
        name in c.__dict__ and c.__module__.partition(".")[0] != ROOT for c in type(layer).__mro__)


def names_in(layer: Layer) -> tuple[str, ...]:
    """The names of the parameters and sublayers of a layer, for who has walked over them."""
    return tuple([name for name, value in held_by(layer).items() if isinstance(value, (Parameter, Layer))])


def is_plain_object(value: Any) -> bool:
    """Whether a value is an object of a class of the user's, with attributes.  In a container it counts by these: code
    reaches them by an index, or a loop, which `reads` does not follow."""
    kind = type(value)
    if kind is types.SimpleNamespace:
        return True
    return bool(kind.__flags__ & HEAP_TYPE) and not issubclass(kind, (Tensor, Layer, type)) and hasattr(
        value, "__dict__") and not is_of_library(kind)


def frozen(value: Any, depth: int = 0) -> Any:
    """A stand-in for a value that is equal only to that of one like it, does not change when the value does, and can be
    hashed.

    Numbers, strings and None (`PLAIN`) count by type and value; nan is like nan, 0.0 not like -0.0.  Lists, tuples,
    dicts and sets count by type and by what they hold, a dict also by its order, `Hooks` by their `entries`, a
    `partial` by its function and arguments, down to `DEPTH` levels; an array by shape, dtype and bytes.  Everything
    else, and containers deeper down, by identity.
    (So do deques, and containers of a class of their own.  In a container, a plain object of a user's class counts by
    its attributes as well.)

    ("in", ...) stands for containers and arrays, which may change in place; no other stand-in begins with "in".
    depth: how many containers there are around it.

    >>> frozen([1, float("nan")]) == frozen([1, float("nan")]), frozen([1]) == frozen([True])
    (True, False)
    """
    kind = type(value)
    if kind in PLAIN:
        return kind, repr(value) if kind is float or kind is complex else value
    if depth < DEPTH:
        if kind is list or kind is tuple:
            inner = tuple([frozen(v, depth + 1) for v in value])
            return ("in", kind, inner)
        if kind is dict:
            return ("in", kind, tuple([(frozen(k, depth + 1), frozen(v, depth + 1)) for k, v in value.items()]))
        if kind is set or kind is frozenset:
            return ("in", kind, frozenset([frozen(v, depth + 1) for v in value]))
        if kind is Hooks:
            return ("in", kind, frozen(value.entries, depth + 1))
        if kind is partial:
            return ("in", kind, frozen((value.func, value.args, value.keywords), depth + 1))
        if issubclass(kind, (dict, list, set, deque)):          # of a class of their own: a Counter, say
            plain: Any = dict(value) if isinstance(value, dict) else list(value) if not isinstance(value, set) else set(
                value)
            return ("in", kind, frozen(plain, depth))
        if depth and is_plain_object(value):
            return ("in", id(value), frozen(vars(value), depth + 1))
    if kind is np.ndarray:
        return ("in", value.shape, value.dtype.str, value.tobytes())
    return "is", id(value)


class Guards:
    """The guards of one trace.

    quick: compared at every call.  layers: compared when an attribute of some layer has been set since they were last;
    not what a layer has from a class of the user's, which may be set there.
    """

    def __init__(self, guards: list[Guard]):
        self.layers = [g for g in guards if g.kind in ("names", "method") or g.plain and g.kind == "attribute" and (
            isinstance(g.owner, Layer) and not is_of_users_class(g.owner, g.name))]
        at_layers = set(map(id, self.layers))
        self.quick = [g for g in guards if id(g) not in at_layers]
        self.seen = CHANGES[0]

    def changed(self) -> str | None:
        """What has changed, as text; None if nothing has."""
        for guard in self.quick:
            if not guard.holds():
                return self.tell(guard)
        if self.seen != CHANGES[0]:
            seen = CHANGES[0]
            for guard in self.layers:
                if not guard.holds():
                    return self.tell(guard)
            self.seen = seen
        return None

    @staticmethod
    def tell(guard: Guard) -> str:
        now = guard.now()
        if isinstance(guard.value, PLAIN) and isinstance(now, PLAIN):
            return f"{guard} is {now!r}, was {guard.value!r}"
        return f"{guard} is gone" if now is MISSING else f"{guard} has changed"

    def __iter__(self) -> Any:
        return iter((*self.quick, *self.layers))

    def __len__(self) -> int:
        return len(self.quick) + len(self.layers)


class Watch:
    """`with Watch(function, given) as watch:` notes what is read inside; `watch.guards()` are the guards.

    given: the arguments of the call that are no tensors, by name.
    """

    running: list[Watch] = []       # those that are, innermost last; a trace may begin another, and so may a thread
    watching: Any = None            # what `watched` has begun for the first of them

    def __init__(self, function: Callable, given: dict[str, Any] | None = None):
        self.function, self.given = function, given
        self.found: dict[tuple, Guard] = {}
        self.reads = Reads(self._note)
        # what was read of plain objects, which are not kept alive if they know weak references: (the object's id, kind,
        # name) -> the object, what was read
        self.objects: dict[tuple[int, str, Any], tuple[Callable[[], Any], Any]] = {}
        self.kept: list[Any] = []

    def _note(self, owner: Any, kind: str, name: str, value: Any, whole: bool = True) -> None:
        at = id(owner), kind, name
        found = self.found.get(at)
        if found is None or whole and found.value is value and not found.whole:
            self.found[at] = Guard(owner, kind, name, value, whole)

    def note_layer(self, layer: Layer, name: str, value: Any) -> None:
        """An attribute of a layer is read.  (What a property computes, it reads too.)"""
        if isinstance(getattr(type(layer), name, None), property):
            return
        if type(value) is types.MethodType:
            if getattr(value, "__self__", None) is layer:
                self._note(layer, "method", name, text_of_method(value))    # a method of its class may get hidden
                self.reads.follow(value)
            return
        if name == "__dict__":              # somebody walks over what it holds
            value = {k: v for k, v in value.items() if isinstance(v, (Tensor, Layer))}
            for k, v in value.items():
                self._note(layer, "attribute", k, v)
            self._note(layer, "names", "", names_in(layer))
            return
        # a user's list counts by what is in it where the code reads that, and not where it only appends
        whole = type(value) not in (list, dict, set) or type(layer).__module__.partition(".")[0] == ROOT
        self._note(layer, "attribute", name, value, whole)
        if type(value) is types.FunctionType:
            self.reads.follow(value)

    def note_object(self, owner: Any, name: Any, value: Any, kind: str = "attribute") -> None:
        """An attribute of a plain object, or an item of a namespace, is read."""
        at = id(owner), kind, name
        held = self.objects.get(at)
        if held is None or held[0]() is not owner:
            self.objects[at] = self._hold(owner), frozen(value)
            if type(value) is types.FunctionType:
                self.reads.follow(value)

    def _hold(self, owner: Any) -> Callable[[], Any]:
        try:
            return ref(owner)
        except TypeError:
            self.kept.append(owner)
            return partial(self.kept.__getitem__, len(self.kept) - 1)

    def note_named(self, owner: Any, kind: str, name: Any, value: Any) -> None:
        """Rewritten code reads something by a name that only it knows."""
        if isinstance(owner, Layer):
            self.note_layer(owner, name, value)
        elif type(owner) is types.MappingProxyType:         # of a class; it is another each time
            self._note(owner, kind, name, value)
        else:
            self.note_object(owner, name, value, kind)

    def _object_guards(self, effects: Sequence[Effect]) -> Iterator[Guard]:
        """The guards of plain objects that were there before the function ran, and are as they were then."""
        owners = [found() for found, _ in self.objects.values()]
        there = behind(given_to(self.function, (self.given or {}).values()))
        around = from_around([owners, self.kept], there)
        for (_, kind, name), (_, expected), owner in zip(self.objects, self.objects.values(), owners, strict=True):
            if owner is None or id(owner) not in around:
                continue
            effect = next((e for e in effects if e.is_place(owner, kind, name)), None)
            if effect is not None and frozen(effect.before) != expected:
                continue                        # the function wrote it before it read it
            guard = Guard(owner, kind, name, Guard(owner, kind, name, MISSING).now())
            guard.expected = expected
            yield guard

    def __enter__(self) -> Watch:
        self.reads.follow(self.function, self.given)
        self.running.append(self)
        if len(self.running) == 1:
            Layer.__getattribute__ = _read          # type: ignore[method-assign, assignment]
            Tensor.values = _looked                 # type: ignore[method-assign]
            Watch.watching = ExitStack()
            Watch.watching.enter_context(watched(_read_object))
            Watch.watching.enter_context(environment_watched(_read_environment))
        flags = current().flags
        flags[READERS] = [*flags.get(READERS, ()), self.note_named]
        flags[KEPT] = [*flags.get(KEPT, ()), self.kept]
        return self

    def __exit__(self, *exc: object) -> None:
        self.running.remove(self)
        for flag in (READERS, KEPT):
            current().flags[flag].pop()
            if not current().flags[flag]:
                del current().flags[flag]
        if not self.running:
            Watch.watching.close()
            del Layer.__getattribute__
            Tensor.values = VALUES                  # type: ignore[method-assign]

    def guards(self, effects: Sequence[Effect] = ()) -> Guards:
        """The guards; a place that the function wrote before it read it is none.  effects: what it changes."""
        found = [g for g in self.found.values() if not any(
            e.is_place(g.owner, g.kind, g.name) and e.before is not g.value for e in effects)]
        known = {(id(g.owner), g.kind, g.name) for g in found}
        found += [g for g in self._object_guards(effects) if (id(g.owner), g.kind, g.name) not in known]
        known = {(id(g.owner), g.kind, g.name) for g in found}
        for e in effects:
            if e.guard is not None and (id(e.owner), *e.guard[1:]) not in known:
                found.append(Guard(*e.guard, e.owner if e.guard[1] == "itself" else e.before))
        return Guards(found)


VALUES = Tensor.values


def _read(self: Layer, name: str) -> Any:
    """An attribute of a layer, while somebody watches."""
    try:
        value = object.__getattribute__(self, name)
    except AttributeError:
        if is_absent(self, name):
            for watch in Watch.running:
                watch._note(self, "attribute", name, MISSING)
        raise
    if name[:2] != "__" or name == "__dict__":
        for watch in Watch.running:
            watch.note_layer(self, name, value)
    return value


def _read_object(owner: Any, name: str, value: Any) -> None:
    for watch in Watch.running:
        watch.note_object(owner, name, value)


def _read_environment(name: str, value: Any) -> None:
    for watch in Watch.running:
        watch._note(os.environ, "item", name, value)


def _looked(self: Tensor, asked: str) -> np.ndarray:
    """The values of a tensor, while somebody watches."""
    p = self.payload
    if type(p) is np.ndarray:
        for watch in Watch.running:
            watch._note(self, "values", "", p)
    return VALUES(self, asked)
