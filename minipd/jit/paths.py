"""What segments have in common: the calls that led to them, as a tree.

A segment is a run of operator calls that nobody has looked into: recorded, not computed.  The calls of all segments of
a function make a tree, with one `Step` per call.  A step is found again under a key that says everything the program
depends on: the operator, its attributes, and where its operands come from.  So the second time that a function does the
same, no shape is reckoned and no program written; and the compiled program hangs at the step where the segment ended,
whoever led there: segments are cached by content.

    relu (input 0: f32[2, 3])
        sum (result 0)              here ended a segment, of which results {1} were wanted: a program
            scale (result 1)

Operands in a key:
    2 * n + stop                    result n of the segment; stop: the handle stops the gradient
    -1 - n                          input n, which was read before
    (n, stop, shape, dtype)         input n, which is read for the first time
    (type, value)                   a Python number: 1, 1.0 and True are different, and so are 0.0 and -0.0
    Meta                            an operand of which only the shape is read
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minipd.framework.row import Row

__all__: list[str] = []


class Step:
    """One call of an operator, after those on the way from the root.

    operands: as in its key.  metas, flows: per result, what it looks like, and whether it takes part in
    differentiation.  first: the number of its first result in the segment.  line, scope: the user's line, and the path
    of the layer, where the call was first made.
    programs: numbers of the results that are wanted -> the compiled program of the calls up to here.
    loose: calls that follow, numbers left out -> how many different ones there were.
    """

    __slots__ = ("attrs", "first", "flows", "grad", "line", "loose", "metas", "next", "operands", "parent", "programs",
                 "row", "scope")

    first: int
    attrs: dict[str, Any]
    operands: tuple
    row: Row
    line: str
    scope: str
    grad: bool

    def __init__(self, parent: Step | None):
        self.parent = parent
        self.next: dict[Any, Step] = {}
        self.loose: dict[Any, int] = {}
        self.programs: dict[tuple[int, ...], Any] = {}
        self.first = 0 if parent is None else parent.first + len(parent.metas)
        self.metas: tuple = ()
        self.flows: tuple[bool, ...] = ()

    def path(self) -> list[Step]:
        """The steps from the root to here, without the root."""
        found, step = [], self
        while step.parent is not None:
            found.append(step)
            step = step.parent
        return found[::-1]

    def below(self) -> Iterator[Step]:
        """This step and all that follow."""
        todo = [self]
        while todo:
            step = todo.pop()
            yield step
            todo += step.next.values()


def frozen(attrs: dict[str, Any]) -> Any:
    """Attributes as a key."""
    return tuple([(k, number(v)) for k, v in attrs.items()]) if attrs else ()


def number(v: Any) -> Any:
    """A Python number as an operand in a key, and other values that attributes have."""
    kind = type(v)
    if kind is tuple or kind is list:
        return kind, tuple(map(number, v))
    return kind, v if v or kind is not float else v.hex()


def value_of(operand: tuple) -> Any:
    """The number that `number` has made this of."""
    kind, v = operand
    return float.fromhex(v) if type(v) is str else v
