"""How much memory a program needs at least, whatever runs it.

Reckoned from the program alone, operation by operation in its order, without regard to how the executor lays values
out: a value is there from the operation that makes it to the last one that reads it, a view as long as its base, what
leaves the run to its end.  State and inputs are the caller's and do not count, nor does new state that an update may
write over the old.  A plan can do with less only where a result takes the place of an operand that ends with it, which
needs no second place for a moment (`overwriting`); so the bound counts a value that such an operation may be written
over as ending just before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from minipd.executor.overwriting import overwritable
from minipd.framework.dim import substitute_all
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import is_attribute_only, result_values, tensor_operands
from minipd.ir.traits import IrTrait
from minipd.ir.value import Value

__all__ = ["Liveness", "liveness"]

LEAVES = ("builtin.shadow_output", "pd_op.fetch", "builtin.set_parameter")
SMALL = 1024                # bytes: constants up to here are part of the program


class Liveness(NamedTuple):
    """alive: the bytes that are alive at each operation.  spans: value -> (first, last position, bytes)."""

    alive: np.ndarray
    spans: dict[Value, tuple[int, int, int]]

    @property
    def peak(self) -> int:
        """The most bytes that are alive at once."""
        return int(self.alive.max(initial=0))


def liveness(program: Program, sizes: Mapping[str, int] | None = None) -> Liveness:
    """The lifetimes of the values of a program without regions.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> found = liveness(trace(lambda x: x.matmul(x).exp().sum(), Meta((8, 8), dtypes.float32.np)).program)
    >>> found.peak, found.alive.tolist()
    (260, [0, 256, 256, 256, 260, 4])

    sizes: of symbolic dimensions.
    Raises: NotImplementedError for a program with branches or loops, in which lifetimes depend on the way.
    """
    ops = program.global_block().ops
    base: dict[Value, Value] = {}
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for at, op in enumerate(ops):
        if op.regions:
            raise NotImplementedError(f"liveness: expected a program without regions, got {op.name()}")
        if op.name() in LEAVES and op.operand_source(0) in base:
            last[base[op.operand_source(0)]] = len(ops) - 1
        if op.row is None or IrTrait.CONSTANT in op.info.traits and is_attribute_only(op):
            continue
        tensors = tensor_operands(op)
        for i, value in enumerate(tensors):
            if i not in op.row.shape_only and value in base:
                last[base[value]] = max(last[base[value]], at)
        for value in result_values(op):
            over = tensors[0] if op.row.view and tensors else value
            if over is not value and over not in base:
                continue                                # a view of what is the caller's
            base[value] = base.get(over, value)
            first.setdefault(base[value], at)
            last.setdefault(base[value], at)
    sizes = sizes or {}
    written = {op.operand_source(0) for op in ops if op.name() == "builtin.set_parameter" and _updates(op)}
    spans = {}
    for value, at in first.items():
        nbytes = math.prod(substitute_all(value.shape, sizes)) * value.dtype.itemsize
        maker = value.get_defining_op()
        constant = maker is not None and IrTrait.CONSTANT in maker.info.traits
        if value not in written and not (constant and nbytes <= SMALL):
            spans[value] = at, last[value], nbytes
    return Liveness(_alive(spans, ops, base), spans)


def _updates(write: Operation) -> bool:
    """Whether what is stored is an update of state, which may be written over the state."""
    op = write.operand_source(0).get_defining_op()
    return op is not None and op.row is not None and bool(op.row.inplace)


def _alive(spans: dict[Value, tuple[int, int, int]], ops: list[Operation], base: dict[Value, Value]) -> np.ndarray:
    change = np.zeros(len(ops) + 1, np.int64)
    for start, end, nbytes in spans.values():
        change[start] += nbytes
        change[end + 1] -= nbytes
    alive = np.cumsum(change)[:-1]
    for at, op in enumerate(ops):                       # where a result takes the place of an operand
        if op.row is None or op.row.view:
            continue
        tensors, taken = tensor_operands(op), set()
        for result, value in enumerate(result_values(op)):
            for i in overwritable(op.row).get(result, ()):
                old = base.get(tensors[i]) if i < len(tensors) else None
                if old in spans and value in spans and old not in taken and spans[old][1:] == (at, spans[value][2]):
                    taken.add(old)
                    alive[at] -= spans[value][2]
                    break
    return alive
