"""Running a program by its definition: evaluated operator by operator with the library's kernels, groups included."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from minipd.cinn.frontend.interpret import run_group
from minipd.framework.context import Kernels
from minipd.framework.dim import bind_shape, substitute_all
from minipd.framework.row import Row
from minipd.ir.evaluate import evaluate
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.value import Value


def run(program: Program, feed: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray] | None = None) -> dict:
    """The outputs by name, and the written state as `name'`."""
    found: dict[str, np.ndarray] = {}
    sizes: dict[str, int] = {}
    for op in program.global_block():
        if op.name() == "pd_op.data":
            bind_shape(op.result(0).shape, feed[op.attributes["name"].value].shape, sizes, "feed")

    def call(row: Row, arrays: list, attrs: dict) -> np.ndarray:
        return Kernels().run(row, arrays, substitute_all(attrs, sizes))

    def read(op: Operation) -> np.ndarray:
        if op.name() == "pd_op.data":
            return feed[op.attributes["name"].value]
        return (state or {})[op.attributes["parameter_name"].value]

    def write(op: Operation, array: np.ndarray) -> None:
        if op.name() == "builtin.set_parameter":
            found[f"{op.attributes['parameter_name'].value}'"] = array
        else:
            found[op.attributes["output_name"].value] = array

    def control(op: Operation, env: dict[Value, np.ndarray], walk: Callable) -> None:
        if op.name() == "cinn_op.fusion":
            arrays = run_group(op, [env[v] for v in op.operands_source()])
            env.update(zip(op.results(), arrays, strict=True))
            return
        assert op.name() == "pd_op.if"
        arrays = walk(op.regions[0 if env[op.operand_source(0)] else 1].front())
        env.update(zip(op.results(), arrays, strict=True))

    evaluate(program, call, read, write, control)
    return found
