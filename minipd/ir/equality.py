"""Whether two programs say the same, and where they first differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.value import Value

if TYPE_CHECKING:
    from minipd.ir.program import Program

__all__ = ["difference"]

NOWHERE = object()


def difference(a: Program, b: Program) -> str | None:
    """A sentence about the first difference of two programs, None if they are equal up to the names of values."""
    if a.form != b.form:
        return f"form: {a.form} against {b.form}"
    if list(a.constraints) != list(b.constraints):
        return f"constraints: {a.constraints} against {b.constraints}"
    # a's value -> b's value that stands in the same place; an operand that is left out is the same as another
    same: dict[Value | None, Value | None] = {None: None}
    pending: list[tuple[str, Block, Block]] = [("", a.global_block(), b.global_block())]
    while pending:
        where, left, right = pending.pop()
        if [(v.type(), v.attributes) for v in left.args()] != [(v.type(), v.attributes) for v in right.args()]:
            return f"{where}block arguments: {left.args()} against {right.args()}"
        same.update(zip(left.args(), right.args(), strict=True))
        if len(left) != len(right):
            return f"{where}{len(left)} operations against {len(right)}"
        for i, (x, y) in enumerate(zip(left, right, strict=True)):
            here = f"{where}operation {i} ({x.name()})"
            found = _difference(x, y, same)
            if found is not None:
                return f"{here}: {found}"
            same.update(zip(x.results(), y.results(), strict=True))
            for r, (p, q) in enumerate(zip(x.regions, y.regions, strict=True)):
                if len(p.blocks) != len(q.blocks):
                    return f"{here}, region {r}: {len(p.blocks)} blocks against {len(q.blocks)}"
                pending += [(f"{here}, region {r}: ", *pair) for pair in zip(p.blocks, q.blocks, strict=True)]
    return None


def _difference(x: Operation, y: Operation, same: dict[Value | None, Value | None]) -> str | None:
    """The first difference of two operations, apart from what is in their regions."""
    if x.name() != y.name():
        return f"against {y.name()}"
    if x.attributes != y.attributes:
        names = sorted(k for k in x.attributes.keys() | y.attributes.keys()
                       if x.attributes.get(k) != y.attributes.get(k))
        return f"attribute {names[0]}: {x.attributes.get(names[0])} against {y.attributes.get(names[0])}"
    if [same.get(v, NOWHERE) for v in x.operands_source()] != y.operands_source():
        return "other operands"
    if [v.type() for v in x.results()] != [v.type() for v in y.results()]:
        return f"results {x.results()} against {y.results()}"
    if len(x.regions) != len(y.regions):
        return f"{len(x.regions)} regions against {len(y.regions)}"
    return None
