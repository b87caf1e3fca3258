"""Which objects were made inside of a block, and which come from around it.

Python does not tell when an object was made.  But what a block has made can be reached only through what the block has
left; so, as the cycle collector of CPython does it: count for each object the references that come from in there.  Who
has more is held by somebody outside, and so is everything that it leads to.
"""

from __future__ import annotations

import gc
import sys
import types
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn.layer import Layer

__all__: list[str] = []

CONTAINERS = (list, tuple, dict, set, frozenset, deque, types.CellType, types.MethodType)
HEAP_TYPE = 1 << 9                      # Py_TPFLAGS_HEAPTYPE: a class statement made it
#: by `sys.getrefcount` itself, and by `objects`
OWN = 2


def leads_on(x: Any) -> bool:
    """Whether what x refers to is looked at: that of containers and of objects of the user's classes.

    Its type is asked, never x itself: `isinstance` asks a proxy for its `__class__`, and raises if its object is gone.
    """
    kind = type(x)
    return issubclass(kind, CONTAINERS) or bool(kind.__flags__ & HEAP_TYPE) and not issubclass(
        kind, (Tensor, Layer, type))


def from_around(left: Sequence[list[Any]]) -> set[int]:
    """The ids of those objects in these lists, and behind what is in them, that somebody else holds too."""
    counts: Counter[int] = Counter()
    objects: dict[int, Any] = {}
    todo: list[Any] = []

    def refer(to: list[Any]) -> None:
        for x in to:
            counts[id(x)] += 1
            if id(x) not in objects:
                objects[id(x)] = x
                if leads_on(x):
                    todo.append(x)
    for each in left:
        refer(each)
    while todo:
        refer(gc.get_referents(todo.pop()))
    held = [key for key in list(objects) if sys.getrefcount(objects[key]) - OWN > counts[key]]
    found = set(held)
    while held:
        x = objects[held.pop()]
        for inner in gc.get_referents(x) if leads_on(x) else ():
            if id(inner) not in found:
                found.add(id(inner))
                held.append(id(inner))
    return found
