"""The kind of a group: which axes are rows, which lie inside a row, and what each reduction is then.

All axes of a group, in order, are split in two: the outer ones count *rows*, the inner ones lie inside a row.  Each
reduction must be one of

* a row reduction: it folds exactly the inner axes;
* a column reduction: it folds all outer axes, and of the inner ones all (then it gives a scalar) or none.

Kinds: E (element-wise: no reduction), R (row reductions only), C (column reductions only), RC (both, as the gradient of
a norm has them: dx needs sums along rows, dw sums over them).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from minipd.cinn.compute.table import Reduction
from minipd.cinn.lower.axes import Axes, Axis, Call

__all__ = ["Split", "splits"]


@dataclass(frozen=True)
class Split:
    """outer + inner are all axes of the group in order; rows, columns: the numbers of the calls that reduce so."""

    kind: Literal["E", "R", "C", "RC"]
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    rows: frozenset[int]
    columns: frozenset[int]


def splits(axes: Axes, calls: Sequence[Call]) -> Iterator[Split]:
    """The splits that suit every reduction, those with few axes inside a row first.

    There may be two: the sum of a whole tensor is a column reduction of rows with one element, or a reduction of one
    long row.  Only in the second case may what follows go over all elements again.
    """
    # a reduction over dimensions of size 1 folds nothing: it is element-wise
    reductions = [c for c in calls if isinstance(c.compute, Reduction) and axes.folded[c.number]]
    order = axes.order(frozenset())
    if not reductions:
        yield Split("E", tuple(order), (), frozenset(), frozenset())
        return
    candidates: list[frozenset[Axis]] = []
    for call in reductions:
        folded = axes.folded[call.number]
        candidates += [folded, frozenset(order) - folded]
    for inner in sorted(dict.fromkeys(candidates), key=len):
        found = _fits(axes, reductions, frozenset(order), inner)
        if found is not None:
            yield found


def _fits(axes: Axes, reductions: Sequence[Call], everything: frozenset[Axis], inner: frozenset[Axis]) -> Split | None:
    order = axes.order(inner)
    at = len(order) - len(inner)
    if frozenset(order[at:]) != inner:
        return None
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
    kind: Literal["R", "C", "RC"] = "R" if not columns else "C" if not rows else "RC"
    return Split(kind, tuple(order[:at]), tuple(order[at:]), frozenset(rows), frozenset(columns))
