"""What a group means: its operators, one by one, with library kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minipd.framework.context import Kernels
from minipd.framework.dim import bind_shape, substitute_all
from minipd.ir.evaluate import assign
from minipd.ir.operation import Operation
from minipd.ir.schema import is_attribute_only, op_attrs, result_values, tensor_operands
from minipd.ir.traits import IrTrait
from minipd.ir.value import Value

__all__ = ["run_group"]


def run_group(op: Operation, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of the group `op` (`cinn_op.fusion`) for arrays in the order of its operands.

    Raises: ValueError for arrays whose shapes or dtypes are not those of the operands.
    """
    env: dict[Value, np.ndarray] = {}
    sizes: dict[str, int] = {}
    for i, (value, array) in enumerate(zip(op.operands_source(), arrays, strict=True)):
        if array.dtype != value.dtype:
            raise ValueError(f"operand {i} of the group: expected {value.dtype}, got {array.dtype}")
        bind_shape(value.shape, array.shape, sizes, f"operand {i} of the group")
        env[value] = array
    kernels = Kernels()
    for inner in op.regions[0].front():
        if inner.name() == "cf.yield":
            return [env[v] for v in inner.operands_source()]
        if inner.name() == "builtin.combine" or IrTrait.CONSTANT in inner.info.traits and is_attribute_only(inner):
            continue
        out = kernels.run(inner.row, [env[v] for v in tensor_operands(inner)], substitute_all(op_attrs(inner), sizes))
        assign(env, result_values(inner), out)
    return []
