"""The policy of one iteration space: whether operators would make one good nest of loops.

This is asked for every union that a step tries, so it is kept cheap: the analysis of axes that lowering begins with,
and a few conditions on it.

* No value has two dimensions that must be one loop (hard case C1), and there is an anchor, a value that has every axis:
  two loop nests that share nothing but a number are two kernels.
* The axes are split in two, those that count *rows* and those that lie inside a row.  A reduction folds a row (a row
  reduction), or it folds all rows (a column reduction: then of what lies inside, all or none).
* What a column reduction gives is known after the last row only, so nothing that has rows may need it.
* What others read is as large as the anchor, or comes out of a reduction: a small value that an element-wise kernel
  computes beside its own is a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from minipd.cinn.compute.table import Compute, Reduction, compute_of
from minipd.cinn.lower import CannotLower
from minipd.cinn.lower.axes import NO_CALLS, Axes, Axis, Call, analyse
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.ir.value import Value

__all__ = ["Calls", "why_no_space"]


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


class Split(NamedTuple):
    """Axes in two.  rows, columns: the numbers of the calls that fold a row, and of those that fold all rows."""

    outer: frozenset[Axis]
    inner: frozenset[Axis]
    rows: frozenset[int]
    columns: frozenset[int]


def why_no_space(calls: Sequence[Call], operands: Sequence[Value], results: Sequence[Value]) -> str | None:
    """Why the calls, in order, are no single iteration space; None if they are.  results: what others read of them."""
    try:
        axes = analyse(calls, operands)
        problem = _no_anchor(axes, calls, results)
        if problem is not None:
            return problem
        problem = None
        for split in _splits(axes, calls):
            problem = _not_computable(axes, split, calls, results)
            if problem is None:
                return None
    except CannotLower as refusal:
        return str(refusal)
    return problem or f"no loop nest has as its rows, or as its columns, what {_reductions(axes, calls)} fold"


# ------------------------------------------------------------------------------------------------------ the anchor
def _no_anchor(axes: Axes, calls: Sequence[Call], results: Sequence[Value]) -> str | None:
    chains = set(axes.along.values())
    everything = frozenset().union(*chains)
    if not any(len(chain) == len(everything) for chain in chains):
        return "no value has all of their loops; side by side in one kernel, they would share nothing"
    reduced: set[Value] = set()
    for call in calls:
        if isinstance(call.compute, Reduction) and axes.folded[call.number] or not reduced.isdisjoint(call.operands):
            reduced.update(call.results)
    for v in results:
        if len(axes.present(v)) != len(everything) and v not in reduced:
            return f"{v.type()}, which others read, is smaller than the loops in which it would be computed"
    return None


# -------------------------------------------------------------------------------------------------- rows and columns
def _splits(axes: Axes, calls: Sequence[Call]) -> Iterator[Split]:
    """The splits that suit every reduction."""
    # a reduction over dimensions of size 1 folds nothing: it is element-wise
    reductions = [c for c in calls if isinstance(c.compute, Reduction) and axes.folded[c.number]]
    order = axes.order(frozenset())
    if not reductions:
        yield Split(frozenset(order), frozenset(), frozenset(), frozenset())
        return
    candidates: list[frozenset[Axis]] = []
    for call in reductions:
        folded = axes.folded[call.number]
        candidates += [folded, frozenset(order) - folded]
    for inner in sorted(dict.fromkeys(candidates), key=len):
        at = len(order) - len(inner)
        if frozenset(axes.order(inner)[at:]) == inner:
            found = _suits(axes, reductions, frozenset(order), inner)
            if found is not None:
                yield found


def _suits(axes: Axes, reductions: Sequence[Call], everything: frozenset[Axis], inner: frozenset[Axis]) -> Split | None:
    outer = everything - inner
    rows, columns = set(), set()
    for call in reductions:
        folded = axes.folded[call.number]
        own = frozenset(axes.present(call.operands[0]))
        if folded == inner:
            rows.add(call.number)
        elif outer and outer <= folded and (own & inner) in (frozenset(), inner):
            columns.add(call.number)
        else:
            return None
    return Split(outer, inner, frozenset(rows), frozenset(columns))


def _not_computable(axes: Axes, split: Split, calls: Sequence[Call], results: Sequence[Value]) -> str | None:
    """What is wrong with this split, None if nothing is."""
    everything = split.outer | split.inner
    late: set[Value] = set()            # depends on a reduction over rows
    along: set[Value] = set()           # depends on one along rows
    for call in calls:
        reduces = call.number in split.rows or call.number in split.columns
        if not late.isdisjoint(call.operands):
            if reduces:
                return f"{call.name} folds what a reduction over all rows gives"
            late.update(call.results)
        if call.number in split.columns:
            late.update(call.results)
        if call.number in split.rows or not along.isdisjoint(call.operands):
            along.update(call.results)
    for value in late:
        if not split.outer.isdisjoint(axes.present(value)):
            return (f"{value.type()} has a row for each row that is summed before it: all rows would be gone over "
                    "again, which in one kernel saves nothing")
    for v in results:
        if v not in late and v in along and frozenset(axes.present(v)) not in (everything, split.outer):
            return f"{v.type()}, which others read, needs sums along rows, but lacks some of the rows' axes"
    return None


def _reductions(axes: Axes, calls: Sequence[Call]) -> str:
    return " and ".join(dict.fromkeys(f"{c.name} of {c.operands[0].type()} to {c.results[0].type()}" for c in calls
                                      if isinstance(c.compute, Reduction) and axes.folded[c.number]))
