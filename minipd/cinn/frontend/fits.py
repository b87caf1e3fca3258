"""Whether operations would make one kernel, without lowering them.

This is asked for every union that grouping tries, so it is kept cheap: the same analysis of axes that lowering begins
with, and the conditions under which the rest of it succeeds.  Beyond what can be lowered, a group must have one
*domain*, a value that has every axis of the group: two loop nests that share nothing but a number are two kernels.  And
what others read of it must be as large as the domain, or come out of a reduction: a small value that an element-wise
kernel computes beside its own is a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from minipd.cinn.compute.table import Compute, Reduction, compute_of
from minipd.cinn.lower import CannotLower
from minipd.cinn.lower.axes import NO_CALLS, Axes, Call, analyse
from minipd.cinn.lower.kinds import Split, splits
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.ir.value import Value

__all__ = ["Calls", "fits"]


class Calls:
    """Operations as calls of rows; what is read off an operation is kept."""

    def __init__(self) -> None:
        self._read: dict[Operation, tuple[Compute, list[Value], list[Value], dict[str, Any]]] = {}

    def of(self, ops: Iterable[Operation]) -> list[Call]:
        calls: list[Call] = []
        for op in ops:
            if op.name() not in NO_CALLS:
                found = self._read.get(op)
                if found is None:
                    assert op.row is not None
                    compute = compute_of(op.row)
                    assert compute is not None
                    found = self._read[op] = compute, tensor_operands(op), result_values(op), op_attrs(op)
                calls.append(Call(op, *found, len(calls)))
        return calls


def fits(calls: Sequence[Call], operands: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether the calls, in order, are one kernel; results: what others read of them."""
    try:
        axes = analyse(calls, operands)
        return _one_domain(axes, calls, results) and any(_computable(axes, s, calls, results)
                                                         for s in splits(axes, calls))
    except CannotLower:
        return False


def _one_domain(axes: Axes, calls: Sequence[Call], results: Sequence[Value]) -> bool:
    chains = set(axes.along.values())
    everything = frozenset().union(*chains)
    if not any(len(chain) == len(everything) for chain in chains):
        return False
    reduced: set[Value] = set()
    for call in calls:
        if isinstance(call.compute, Reduction) and axes.folded[call.number] or not reduced.isdisjoint(call.operands):
            reduced.update(call.results)
    return all(len(axes.present(v)) == len(everything) or v in reduced for v in results)


def _computable(axes: Axes, split: Split, calls: Sequence[Call], results: Sequence[Value]) -> bool:
    """What lowering demands of this split: what depends on a sum over all rows has no row, and nobody reduces it; what
    depends on sums along rows has all of the rows' axes."""
    outer = frozenset(split.outer)
    everything = outer | frozenset(split.inner)
    late: set[Value] = set()            # depends on a reduction over rows
    along: set[Value] = set()           # depends on one along rows
    for call in calls:
        reduces = call.number in split.rows or call.number in split.columns
        if not late.isdisjoint(call.operands):
            if reduces:
                return False
            late.update(call.results)
        if call.number in split.columns:
            late.update(call.results)
        if call.number in split.rows or not along.isdisjoint(call.operands):
            along.update(call.results)
    for value in late:
        if not outer.isdisjoint(axes.present(value)):
            return False
    return all(v in late or v not in along or frozenset(axes.present(v)) in (everything, outer) for v in results)
