"""Which objects were made inside of a block, and which come from around it.

Python does not tell when an object was made.  But what a block has made can be reached only through what the block has
left; so, as the cycle collector of CPython does it: count for each object the references that come from in there.  Who
has more is held by somebody outside, and so is everything that it leads to.

What is known to have been there before (`given_to`, `behind`) counts as outside, and is not looked into.  Without that,
an attribute of an object that leads to a data set, or a variable of a module, would mean a walk through all that is in
memory, for each block again.
"""

from __future__ import annotations

import gc
import sys
import types
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn.layer import Layer

__all__: list[str] = []

CONTAINERS = (list, tuple, dict, set, frozenset, deque, types.CellType, types.MethodType)
HEAP_TYPE = 1 << 9                      # Py_TPFLAGS_HEAPTYPE: a class statement made it
#: by `sys.getrefcount` itself, and by `objects`
OWN = 2
#: objects that `behind` looks into; who has more around a function pays for longer walks
FAR = 1000


def leads_on(x: Any) -> bool:
    """Whether what x refers to is looked at: that of containers and of objects of the user's classes.

    Its type is asked, never x itself: `isinstance` asks a proxy for its `__class__`, and raises if its object is gone.
    """
    kind = type(x)
    return issubclass(kind, CONTAINERS) or bool(kind.__flags__ & HEAP_TYPE) and not issubclass(
        kind, (Tensor, Layer, type, types.ModuleType))


def given_to(function: Callable, arguments: Iterable[Any]) -> list[Any]:
    """What was there when a function was called: its arguments and its object, the variables around it, and those of
    its module."""
    inner = getattr(function, "__func__", function)
    cells = [cell for cell in getattr(inner, "__closure__", None) or () if _is_set(cell)]
    return [*arguments, getattr(function, "__self__", None), *(cell.cell_contents for cell in cells),
            *getattr(inner, "__globals__", {}).values()]


def _is_set(cell: types.CellType) -> bool:
    try:
        cell.cell_contents              # noqa: B018
    except ValueError:
        return False
    return True


def behind(given: Iterable[Any]) -> set[int]:
    """The ids of these objects, and of those to which their attributes lead, and so on."""
    found: set[int] = set()
    todo = list(given)
    for x in todo:
        kind = type(x)
        if id(x) not in found and (leads_on(x) or issubclass(kind, Layer)):
            found.add(id(x))
            if kind not in CONTAINERS and len(found) < FAR:
                try:                    # past the class, which may note who reads
                    todo += object.__getattribute__(x, "__dict__").values()
                except AttributeError:
                    pass
    return found


def from_around(left: Sequence[list[Any]], known: Set[int] = frozenset()) -> set[int]:
    """The ids of those objects in these lists, and behind what is in them, that somebody else holds too.

    known: the ids of objects of which that is known.
    """
    counts: Counter[int] = Counter()
    objects: dict[int, Any] = {}
    todo: list[Any] = []

    def refer(to: list[Any]) -> None:
        for x in to:
            counts[id(x)] += 1
            if id(x) not in objects:
                objects[id(x)] = x
                if leads_on(x) and id(x) not in known:
                    todo.append(x)
    for each in left:
        refer(each)
    while todo:
        refer(gc.get_referents(todo.pop()))
    held = [key for key in list(objects) if key in known or sys.getrefcount(objects[key]) - OWN > counts[key]]
    found = set(held)
    while held:
        x = objects[held.pop()]
        for inner in gc.get_referents(x) if leads_on(x) and id(x) not in known else ():
            if id(inner) not in found:
                found.add(id(inner))
                held.append(id(inner))
    return found
