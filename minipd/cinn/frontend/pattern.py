"""Pattern kinds: what sort of computation a set of operators is, told from its reductions and its results.

    Trivial             element-wise, with one result                               gelu(x + bias)
    Reduce              one reduction, and what is computed for it                  sum(x * x)
    ReduceTree          reductions that need each other, nothing behind the last    sum(exp(x - max(x)))
    ReduceTree+Trivial  element-wise operators behind a reduction                   softmax
    Anchor              several results in the loops of one value, the anchor;      dx and dw of a norm
                        or a library call and its epilogue                          gelu(x @ w + bias)
    HorizontalFusion    parts that read the same, none of which needs the other     exp(x), tanh(x)
    Unsupport           what the compiler has no loops for                          embedding
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from minipd.cinn.compute.table import Reduction, compute_of
from minipd.ir.operation import Operation

__all__ = ["Kind", "kind_of", "reduces"]


class Kind(Enum):
    """A pattern kind; its value is Paddle's word for it."""

    TRIVIAL = "Trivial"
    REDUCE = "Reduce"
    REDUCE_TREE = "ReduceTree"
    REDUCE_TREE_TRIVIAL = "ReduceTree+Trivial"
    ANCHOR = "Anchor"
    HORIZONTAL = "HorizontalFusion"
    UNSUPPORT = "Unsupport"

    def __str__(self) -> str:
        return self.value


def reduces(op: Operation) -> bool:
    """Whether the operator folds dimensions."""
    return op.row is not None and isinstance(compute_of(op.row), Reduction)


def kind_of(ops: Sequence[Operation], readers: Mapping[Operation, Iterable[Operation]]) -> Kind:
    """The kind of a set of members; `readers` are those of each, inside and outside."""
    inside = set(ops)
    after = {op: [r for r in readers[op] if r in inside] for op in ops}
    if not _connected(ops, after):
        return Kind.HORIZONTAL
    ends = [op for op in ops if not after[op]]
    if len(ends) > 1 or sum(map(_several, ends)):
        return Kind.ANCHOR
    reductions = sum(map(reduces, ops))
    if not reductions:
        return Kind.TRIVIAL
    if not reduces(ends[0]):
        return Kind.REDUCE_TREE_TRIVIAL
    return Kind.REDUCE if reductions == 1 else Kind.REDUCE_TREE


def _several(op: Operation) -> bool:
    return op.num_results() > 1


def _connected(ops: Sequence[Operation], after: Mapping[Operation, Sequence[Operation]]) -> bool:
    beside: dict[Operation, list[Operation]] = {op: [] for op in ops}
    for op, found in after.items():
        for reader in found:
            beside[op].append(reader)
            beside[reader].append(op)
    seen, pending = {ops[0]}, [ops[0]]
    while pending:
        for other in beside[pending.pop()]:
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return len(seen) == len(ops)
