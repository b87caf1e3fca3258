"""What the backward part of a program takes over from the forward part: saved, or computed again.

Without fusion, what a gradient rule reads is saved.  A backend that fuses operators computes an element-wise value
again in the kernel that reads it, which costs less than to write it in one call and read it back in the next:

    forward     e = exp(x - max(x));  y = e / sum(e)        saved: max(x), sum(e), one number per row
    backward    e = exp(x - max(x));  ...                   instead of e and y, as large as x
"""

from __future__ import annotations

from collections.abc import Sequence

from minipd.framework.dim import DimExpr, prod
from minipd.framework.row import Trait
from minipd.ir.operation import Operation, captured
from minipd.ir.schema import constant_of, is_pure, number_of_tensors
from minipd.ir.value import Value

__all__: list[str] = []

#: how large an open dimension is taken to be, and how many operations are run again for one value
OPEN, MOST_OPS = 64, 32


def values_read(behind: Sequence[Operation], ahead: set[Operation], grads: dict[str, Value]) -> dict[Value, bool]:
    """What the backward part reads of the forward part -> whether it reads more than the shape."""
    read: dict[Value, bool] = {}

    def note(value: Value, whole: bool) -> None:
        if value.get_defining_op() in ahead:
            read[value] = read.get(value, False) or whole
    for op in behind:
        for value, whole in _operands(op):
            note(value, whole)
        for value in captured(op) if op.regions else ():
            note(value, True)
    for g in grads.values():
        note(g, True)
    return read


def run_again(read: dict[Value, bool], ahead: Sequence[Operation]) -> tuple[dict[Value, bool], list[Operation]]:
    """What to take over instead of `read`, and the operations of the forward part to run again on it, in order.

    A value is computed again if that takes fewer bytes than it has itself, beyond what is taken over anyhow.
    """
    taken = {v: whole for v, whole in read.items() if not whole or _given(v) or not _cheap(v)}
    again: set[Operation] = set()
    place = {op: n for n, op in enumerate(ahead)}
    for value in sorted((v for v in read if v not in taken), key=lambda v: place[v.get_defining_op()]):  # type: ignore[index]
        ops, leaves = _chain(value, taken, again)
        cost = sum(_bytes(v) for v, whole in leaves.items() if whole and not _given(v) and not taken.get(v))
        if len(ops) > MOST_OPS or cost >= _bytes(value):
            taken[value] = True
            continue
        again |= ops
        for v, whole in leaves.items():
            taken[v] = taken.get(v, False) or whole
    return taken, sorted(again, key=place.__getitem__)


def _chain(value: Value, taken: dict[Value, bool], again: set[Operation]) -> tuple[set[Operation], dict[Value, bool]]:
    """The operations from which `value` follows, and what these read from others -> whether more than the shape."""
    ops: set[Operation] = set()
    leaves: dict[Value, bool] = {}
    pending = [(value, True)]
    while pending:
        v, whole = pending.pop()
        op = v.get_defining_op()
        if op in ops or op in again:
            continue
        if not whole or taken.get(v) or _given(v) or not _cheap(v):
            leaves[v] = leaves.get(v, False) or whole
            continue
        assert op is not None
        ops.add(op)
        pending += _operands(op)
    return ops, leaves


def _operands(op: Operation) -> list[tuple[Value, bool]]:
    """What an operation reads, and whether it reads more than the shape."""
    row = op.row
    tensors = 0 if row is None else number_of_tensors(op, row) - row.variadic
    return [(v, row is None or i >= tensors or i not in row.shape_only) for i, v in enumerate(op.operands_source())]


def _given(value: Value) -> bool:
    """Whether the backward part has the value without saving it."""
    op = value.get_defining_op()
    return op is None or op.name() in ("pd_op.data", "builtin.parameter") or constant_of(value) is not None


def _cheap(value: Value) -> bool:
    """Whether the value is one of those that fuse into the kernel of who reads them: element-wise, a view, a bundle."""
    op = value.get_defining_op()
    if op is not None and op.name() == "builtin.combine":
        return True
    row = None if op is None else op.row
    if op is None or row is None or not is_pure(op) or row.traits & {Trait.RANDOM, Trait.COMM, Trait.MULTI}:
        return False
    return bool(row.traits & {Trait.ELEMENTWISE, Trait.VIEW}) or not row.inputs


def _bytes(value: Value) -> int:
    size = prod(value.shape)
    return value.dtype.itemsize * int(size.evaluate(dict.fromkeys(size.symbols, OPEN)) if isinstance(size, DimExpr)
                                      else size)
