"""What depends on constants alone is computed now, by the kernel that would compute it later.

The result is a constant if the program has a constant for it: a `pd_op.full` where all elements are the same to the
bit, a `pd_op.full_int_array` for a list of int64.  Other results stay as they are.

Not folded: draws of random numbers, collectives and other effects, what a gradient flows through, what is symbolic, and
calls with more than `max_elements` in an operand or a result, so that compiling costs no more than a run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.context import Kernels
from minipd.framework.dim import is_symbolic
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS, Trait
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import is_pure, op_attrs, tensor_operands, vector_result
from minipd.ir.traits import IrTrait
from minipd.ir.value import Value
from minipd.passes.table import register_pass

__all__ = ["ConstantFolding"]

#: as many numbers may stand in a full_int_array
MAX_LISTED = 64


@register_pass("constant_folding_pass")
class ConstantFolding:
    """The number of changes is the number of operations that have become constants.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> from minipd.ops.creation import full
    >>> program = trace(lambda x: x + full([2], 3.0) * 0.5, Meta((2,), dtypes.float32.np)).program
    >>> ConstantFolding().run(program)
    1
    >>> [op.attributes["value"].value for op in program.global_block() if op.name() == "pd_op.full"]
    [1.5]
    """

    name = "constant_folding_pass"

    def __init__(self, max_elements: int = 1 << 16):
        self.max_elements = max_elements

    def run(self, program: Program) -> int:
        return sum(self._fold(op) for op in list(program.walk()))

    def _fold(self, op: Operation) -> bool:
        if not self._foldable(op):
            return False
        arrays = self._computed(op)
        if arrays is None:
            return False
        build = Builder(op.parent, op)      # type: ignore[arg-type]
        made = [constant_holding(a) for a in arrays]
        if any(m is None for m in made):
            return False
        sources = [v.get_defining_op() for v in op.operands_source()]
        for result, constant in zip(op.results(), made, strict=True):
            new = _write(build, constant)
            result.replace_all_uses_with(new)
        op.erase()
        for source in dict.fromkeys(sources):
            if source is not None and source.parent is not None and IrTrait.CONSTANT in source.info.traits and (
                    source.result(0).use_empty()):
                source.erase()
        return True

    def _foldable(self, op: Operation) -> bool:
        row = op.row
        if row is None or row.kernel is None or vector_result(row) or not is_pure(op):
            return False
        if op.info.traits & {Trait.RANDOM, Trait.COMM, IrTrait.CONSTANT} or row.dialect != "pd_op":
            return False
        return all(r.stop_gradient and self._small(r) for r in op.results())

    def _small(self, value: Value) -> bool:
        return not is_symbolic(value.shape) and int(np.prod(value.shape)) <= self.max_elements

    def _computed(self, op: Operation) -> list[np.ndarray] | None:
        """What the kernel gives; None if an operand is no constant or an attribute is not known."""
        row = op.row
        assert row is not None
        try:
            values, attrs = tensor_operands(op), op_attrs(op)
        except ValueError:
            return None
        if is_symbolic(attrs) or not values:
            return None
        payloads: list[Any] = []
        for i, value in enumerate(values):
            if is_symbolic(value.shape):
                return None
            if i in row.shape_only:
                payloads.append(Meta(value.shape, value.dtype))
                continue
            source = value.get_defining_op()
            if source is None or IrTrait.CONSTANT not in source.info.traits or not value.stop_gradient or (
                    not self._small(value)) or is_symbolic(op_attrs(source)):
                return None             # a `full` may hold a size that only the run knows
            payloads.append(_array(source))
        with np.errstate(all="ignore"):
            out = Kernels().run(row, payloads, attrs)
        return list(out) if row.multi else [out]


def _array(op: Operation) -> np.ndarray:
    """What a constant holds."""
    row = op.row
    assert row is not None
    return Kernels().run(row, [], op_attrs(op))


def constant_holding(array: np.ndarray) -> tuple[str, dict[str, Any]] | None:
    """Name and attributes of the constant that holds exactly `array`; None if there is none.

    Exactly: shape, dtype and every bit, so that 0.0 is not -0.0, and a NaN is itself.  There are

        "full"              {"shape": ..., "value": a Python number, "dtype": ...}, one number everywhere
        "full_int_array"    {"value": a tuple of ints, "dtype": int64}, a list of at most MAX_LISTED numbers

    `Kernels().run(ROWS[name], [], attrs)` makes the array of a constant.
    """
    attempts: list[tuple[str, dict[str, Any]]] = []
    if array.size:
        attempts.append(("full", {"shape": array.shape, "value": array.reshape(-1)[0].item(), "dtype": array.dtype}))
    else:
        attempts.append(("full", {"shape": array.shape, "value": 0, "dtype": array.dtype}))
    if array.ndim == 1 and array.dtype == np.int64 and array.size <= MAX_LISTED:
        attempts.append(("full_int_array", {"value": tuple(array.tolist()), "dtype": array.dtype}))
    for name, attrs in attempts:
        again = Kernels().run(ROWS[name], [], attrs)
        if again.shape == array.shape and again.dtype == array.dtype and (
                np.ascontiguousarray(again).tobytes() == np.ascontiguousarray(array).tobytes()):
            return name, attrs
    return None


def _write(build: Builder, constant: Any) -> Value:
    name, attrs = constant
    if name == "full":
        return build.full(attrs["shape"], attrs["value"], attrs["dtype"])
    return build.constant(attrs["value"])
