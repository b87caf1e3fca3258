"""The policy of one iteration space: whether operators would make one good nest of loops.

This is asked for every union that a step tries, so it is kept cheap: the analysis of axes that lowering begins with,
and a few conditions on it.  Axes along which a value is read at other places (the halves of a rotation) run beside each
other in one *loop*; otherwise a loop is an axis.

* No value has two dimensions that must be one loop (hard case C1), and there is an anchor, a value that has every loop:
  two loop nests that share nothing but a number are two kernels.
* The loops are split in two, those that count *rows* and those that lie inside a row.  A reduction folds a row (a row
  reduction), or it folds all rows (a column reduction: then of what lies inside, all or none).
* What a column reduction gives is known after the last row only, so nothing that has rows may need it.
* Arrays are read and written along their last dimension: that of the anchor is the last of all that have it, and where
  the rows are not the outer dimensions, it lies inside a row; or rows are short, are gone over side by side, and again.
* What is kept, or needs a reduction, may be read at another place of its row only.
* What others read is as large as the anchor, or comes out of a reduction: a small value that an element-wise kernel
  computes beside its own is a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from minipd.cinn.compute.table import Compute, Indexed, compute_of
from minipd.cinn.lower import CannotLower
from minipd.cinn.lower.analysis import analyse
from minipd.cinn.lower.axes import Axis
from minipd.cinn.lower.calls import NO_CALLS, Call
from minipd.framework.dim import prod
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


Loops = frozenset[Axis]


#: Rows across memory of up to so many elements stay near while they are gone over side by side, and again.
SHORT = 512


def _is_short(row: Loops) -> bool:
    size = prod(axis.size for axis in row)
    return isinstance(size, int) and size <= SHORT


class Split(NamedTuple):
    """Loops in two.  rows, columns: the numbers of the calls that fold a row, and of those that fold all rows."""

    outer: Loops
    inner: Loops
    rows: frozenset[int]
    columns: frozenset[int]


def why_no_space(calls: Sequence[Call], operands: Sequence[Value], results: Sequence[Value]) -> str | None:
    """Why the calls, in order, are no single iteration space; None if they are.  results: what others read of them."""
    try:
        space = _Space(calls, operands, results)
        problem = space.no_anchor()
        if problem is not None:
            return problem
        for split in space.splits():
            wrong = space.not_computable(split)
            if wrong is None:
                return None
            problem = problem or wrong              # (the first split is the one to be expected)
    except CannotLower as refusal:
        return str(refusal)
    return problem or f"no loop nest has as its rows, or as its columns, what {space.reductions_in_words()} fold"


class _Space:
    """loops: those of each value, in the order of its dimensions.  moved: for each call, the loops along which it reads
    an operand at other places, by operand."""

    def __init__(self, calls: Sequence[Call], operands: Sequence[Value], results: Sequence[Value]):
        self.calls, self.operands, self.results = calls, operands, results
        self.axes = analyse(calls, operands)
        self.moved: dict[int, dict[Value, set[Axis]]] = {}
        self._root: dict[Axis, Axis] = {}
        for call in calls:
            if isinstance(call.compute, Indexed):
                self.moved[call.number] = self._moves(call)
        if self._root:
            self.moved = {n: {v: set(map(self._loop, along)) for v, along in moves.items()}
                          for n, moves in self.moved.items()}
            self.loops = {v: tuple(map(self._loop, along)) for v, along in self.axes.along.items()}
            for v, own in self.loops.items():
                if len(set(own)) < len(own):
                    raise CannotLower(f"two dimensions of a {v.type()} would be read along one loop")
        else:
            self.loops = self.axes.along
        self.folded = {n: frozenset(map(self._loop, along)) for n, along in self.axes.folded.items()}
        self.everything: Loops = frozenset().union(*(self.loops[v] for c in calls for v in (*c.read, *c.results)))

    def _moves(self, call: Call) -> dict[Value, set[Axis]]:
        moves: dict[Value, set[Axis]] = {}
        for k, result in enumerate(call.results):
            for piece in call.pieces(k):
                if piece.operand is None:
                    continue
                operand = call.operands[piece.operand]
                for dim, at in zip(self.axes.of[operand], piece.places, strict=True):
                    if isinstance(at, int):
                        continue
                    beside = [a for d in piece.counts for a in self.axes.of[result][d]]
                    moves.setdefault(operand, set()).update(dim)
                    for axis in (*dim, *beside):
                        self._join((*dim, *beside)[0], axis)
        return moves

    def _join(self, a: Axis, b: Axis) -> None:
        a, b = self._loop(a), self._loop(b)
        self._root[a] = a
        self._root[b] = a

    def _loop(self, axis: Axis) -> Axis:
        while self._root.get(axis, axis) is not axis:
            axis = self._root[axis]
        return axis

    # -------------------------------------------------------------------------------------------------- the anchor
    def no_anchor(self) -> str | None:
        anchor = next((own for own in self.loops.values() if len(own) == len(self.everything)
                       and self.everything.issuperset(own)), None)
        if anchor is None:
            return "no value has all of their loops; side by side in one kernel, they would share nothing"
        reduced: set[Value] = set()
        for call in self.calls:
            if self.folded.get(call.number) or not reduced.isdisjoint(call.operands):
                reduced.update(call.results)
        for v in self.results:
            if len(self.loops[v]) != len(self.everything) and v not in reduced:
                return f"{v.type()}, which others read, is smaller than the loops in which it would be computed"
        self.anchor = anchor
        for v in (*self.operands, *self.results):
            if anchor and anchor[-1] in self.loops[v][:-1]:
                return f"{v.type()} would be gone over across its rows, not along them"
        return None

    # ---------------------------------------------------------------------------------------------- rows and columns
    def splits(self) -> Iterator[Split]:
        """The splits that suit every reduction, those first whose rows are the outer dimensions."""
        # a reduction over dimensions of size 1 folds nothing: it is element-wise
        reductions = [c for c in self.calls if self.folded.get(c.number)]
        if not reductions:
            inner = frozenset(a for moves in self.moved.values() for along in moves.values() for a in along)
            yield Split(self.everything - inner, inner, frozenset(), frozenset())
            return
        candidates: list[Loops] = []
        for call in reductions:
            folded = self.folded[call.number]
            candidates += [folded, self.everything - folded]
        for inner in sorted(dict.fromkeys(candidates), key=lambda inner: (not self._is_inside(inner), len(inner))):
            if self._is_inside(inner) or self.anchor[-1] in inner or _is_short(inner):
                found = self._suits(reductions, inner)
                if found is not None:
                    yield found

    def _is_inside(self, inner: Loops) -> bool:
        return frozenset(self.anchor[len(self.anchor) - len(inner):]) == inner

    def _suits(self, reductions: Sequence[Call], inner: Loops) -> Split | None:
        outer = self.everything - inner
        rows, columns = set(), set()
        for call in reductions:
            folded = self.folded[call.number]
            own = frozenset(self.loops[call.operands[0]])
            if folded == inner:
                rows.add(call.number)
            elif outer and outer <= folded and (own & inner) in (frozenset(), inner):
                columns.add(call.number)
            else:
                return None
        return Split(outer, inner, frozenset(rows), frozenset(columns))

    def not_computable(self, split: Split) -> str | None:
        """What is wrong with this split, None if nothing is."""
        late: set[Value] = set()            # depends on a reduction over rows
        along: set[Value] = set()           # depends on one along rows
        for call in self.calls:
            reduces = call.number in split.rows or call.number in split.columns
            if not late.isdisjoint(call.operands):
                if reduces:
                    return f"{call.name} folds what a reduction over all rows gives"
                late.update(call.results)
            if call.number in split.columns:
                late.update(call.results)
            if call.number in split.rows or not along.isdisjoint(call.operands):
                along.update(call.results)
            for v, loops in self.moved.get(call.number, {}).items():
                if (v in along or v in late or v in self.results) and not loops <= split.inner:
                    return f"{call.name} reads {v.type()}, which is not known all at once, at other rows"
        for value in late:
            if not split.outer.isdisjoint(self.loops[value]):
                return (f"{value.type()} has a row for each row that is summed before it: all rows would be gone over "
                        "again, which in one kernel saves nothing")
        everything = split.outer | split.inner
        if split.inner and self.anchor[-1] in split.outer and not self._is_inside(split.inner) and not any(
                frozenset(self.loops[v]) == everything for v in along):
            return "columns are summed, and nothing goes over them again"
        for v in self.results:
            if v not in late and v in along and frozenset(self.loops[v]) not in (everything, split.outer):
                return f"{v.type()}, which others read, needs sums along rows, but lacks some of the rows' axes"
        return None

    def reductions_in_words(self) -> str:
        return " and ".join(dict.fromkeys(f"{c.name} of {c.operands[0].type()} to {c.results[0].type()}"
                                          for c in self.calls if self.folded.get(c.number)))
