"""What a compiled function does to Python's state: found in the trace, done again by every call.

    self.n = y; G = 1           the place gets the value
    log.append(y); d[k] = y     a container gets more
    xs.pop(); xs[0] = y         a container gets new contents, if it has those that the trace has seen (a guard)

Tensors in such values are results of the program, like those that the function returns.  An object that the function
has made, with tensors in its attributes, is made anew by every call; one that was there before is itself.
"""

from __future__ import annotations

import gc
import operator
import types
from collections import deque
from typing import Any, NamedTuple

from minipd.framework.meta import is_traced
from minipd.framework.tensor import Tensor
from minipd.jit.dy2static.changes import Left
from minipd.jit.dy2static.inside import leads_on
from minipd.jit.dy2static.variables import CELL, CONTENTS, GLOBAL, added, owned_place

__all__: list[str] = []

#: what runs code when it is asked
LATER = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, map, filter)
#: where in the arguments `(args, kwargs)` of a call something is
Path = tuple[Any, ...]


class Kept:
    """In a result: an object that is itself at every call."""

    def __init__(self, it: Any):
        self.it = it


class Given(NamedTuple):
    """In a result: a list, dict or object that the call was given."""

    path: Path


class Made(NamedTuple):
    """In a result: an object that the function has made, of a class of the user's."""

    kind: type
    attributes: dict[str, Any]


class Effect:
    """A place, and what a call does there with a value: what, as `owned_place` knows it.

    path: of an owner that is an argument.  more: the container gets the value too, and keeps what it has.  before: what
    was there when the function was traced.
    """

    def __init__(self, left: Left, path: Path | None):
        place, self.path = left.place, path
        self.name, self.owner, self.what = place.name, None if path is not None else place.owner, place.what
        self.before, self.value, self.more, self.read = left.before, left.after, False, left.read
        if self.what == CONTENTS:
            self._compare(place.owner)

    def _compare(self, owner: Any) -> None:
        """Whether the function has only put more into a container."""
        before, after = self.before, self.value
        if isinstance(before, dict):
            if before.keys() <= after.keys():
                self.more, self.value = True, {k: v for k, v in after.items() if k not in before or before[k] is not v}
        elif isinstance(before, set):
            if before <= after:
                self.more, self.value = True, after - before
        elif isinstance(before, list):
            limit = owner.maxlen if isinstance(owner, deque) else None
            least = max(0, len(after) - len(before))
            for n in range(least, least + 1 if limit is None else len(after) + 1):      # the last n are new
                kept = [*before, *after[len(after) - n:]]
                kept = kept if limit is None else kept[max(0, len(kept) - limit):]
                if len(kept) == len(after) and all(map(operator.is_, kept, after)):
                    self.more, self.value = True, after[len(after) - n:]
                    return

    @property
    def guard(self) -> tuple[Any, str, str] | None:
        """The place, as guards name it, if the effect is right only while that holds what it held in the trace."""
        if self.path is not None or not self.read and (self.what != CONTENTS or self.more):
            return None
        kind = {CELL: "cell", CONTENTS: "itself"}.get(self.what, "attribute")
        if self.what.startswith(GLOBAL):
            return self.owner, "item", self.what.removeprefix(GLOBAL)
        return self.owner, kind, self.what if kind == "attribute" else self.name

    def is_place(self, owner: Any, kind: str, name: str) -> bool:
        """Whether a guard is about this place."""
        what = {"attribute": name, "item": GLOBAL + name, "cell": CELL}.get(kind)
        return self.owner is owner and self.what == what

    def do(self, value: Any, given: Any) -> None:
        owner: Any = self.owner if self.path is None else at(self.path, given)
        if not self.more:
            owned_place(self.name, owner, self.what).put(value)
        elif isinstance(owner, (list, deque)):
            owner.extend(value)
        else:
            added(owner, value)


def at(path: Path, given: Any) -> Any:
    for step in path:
        given = given[step]
    return given


def paths_of(given: Any) -> dict[int, Path]:
    """The ids of the containers and objects in the arguments of a call, and where they are."""
    found: dict[int, Path] = {}

    def visit(x: Any, path: Path) -> None:
        if isinstance(x, (str, bytes, int, float, type(None), Tensor, type, types.FunctionType)):
            return
        if len(path) > 1:                       # `args` and `kwargs` themselves are nobody's
            found.setdefault(id(x), path)
        for k, v in x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, (list, tuple)) else ():
            visit(v, (*path, k))
    visit(given, ())
    return found


class Portable:
    """Values that a trace has left, as trees that `flatten` and `Structure` can carry from call to call.

    around: the ids of what was there before the trace.  paths: of what is in the arguments.
    """

    def __init__(self, around: set[int], paths: dict[int, Path]):
        self.around, self.paths = around, paths

    def of(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            return x if is_traced(x.payload) else Kept(x)
        if id(x) in self.paths and not (isinstance(x, tuple) and not hasattr(x, "_fields")):
            return Given(self.paths[id(x)])
        if isinstance(x, (list, dict)) and id(x) in self.around and not holds_traced(x):
            return Kept(x)
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*map(self.of, x))
        if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
            return type(x)(map(self.of, x))
        if type(x) is dict:
            return {k: self.of(v) for k, v in x.items()}
        if isinstance(x, LATER):
            raise TypeError("to_static: expected a result that is there when the function ends, got a "
                            f"{type(x).__name__}, which runs its code later, when there is no trace. Return a list, or "
                            "compile with full_graph=False")
        if not holds_traced(x):
            return x
        if isinstance(x, dict):
            return Made(type(x), {k: self.of(v) for k, v in x.items()})
        if leads_on(x) and hasattr(x, "__dict__") and id(x) not in self.around:
            return Made(type(x), {k: self.of(v) for k, v in vars(x).items()})
        raise TypeError(
            "to_static: expected what the function returns, or leaves behind, to be tensors, in lists, tuples, dicts "
            f"or objects that it has made, got {_told(x)}, which holds a tensor that exists only when the program "
            "runs. Return the tensor itself, or compile with full_graph=False")


def _told(x: Any) -> str:
    return f"the function {x.__qualname__}" if isinstance(x, types.FunctionType) else f"{type(x).__name__} object"


def holds_traced(x: Any) -> bool:
    """Whether somewhere in an object, or behind what it refers to, there is a traced tensor."""
    seen: set[int] = set()
    todo = [x]
    while todo:
        one = todo.pop()
        kind = type(one)
        if issubclass(kind, Tensor):
            if is_traced(one.payload):
                return True
        elif id(one) not in seen:
            seen.add(id(one))
            if kind is types.FunctionType:
                todo += one.__closure__ or ()
            elif kind is not types.MethodType and leads_on(one):
                todo += gc.get_referents(one)
    return False


def restored(tree: Any, given: Any) -> Any:
    """A portable tree with tensors, as what the function has left."""
    if isinstance(tree, Kept):
        return tree.it
    if isinstance(tree, Given):
        return at(tree.path, given)
    if isinstance(tree, Made):
        attributes = {k: restored(v, given) for k, v in tree.attributes.items()}
        made: Any = tree.kind.__new__(tree.kind)        # type: ignore[call-overload]
        added(made if isinstance(made, dict) else made.__dict__, attributes)
        return made
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(restored(x, given) for x in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(restored(x, given) for x in tree)
    if isinstance(tree, dict):
        return {k: restored(v, given) for k, v in tree.items()}
    return tree


def is_plain(tree: Any) -> bool:
    """Whether a portable tree is as `restored` would give it."""
    if isinstance(tree, (Kept, Given, Made)):
        return False
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (list, tuple)) else ()
    return all(map(is_plain, inner))
