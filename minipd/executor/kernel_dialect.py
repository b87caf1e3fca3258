"""The kernel dialect: a program as the executor sees it, each operation with the kernel that was selected for it.

As Paddle prints it ("IR after lowering", `pd_op_to_kernel_pass`): the key says backend, layout and dtype, the types of
values say where they live.  Ours adds how the kernel gets its result's memory, `memory`: "arena" (`kernel_out` writes
into a buffer that the plan gives it), "view" (of an operand), "state" (over the state that it reads), "constant", or
"own" (the kernel allocates, or the result leaves the run).  What Paddle numbers (`origin_id`) is left out.
"""

from __future__ import annotations

from typing import NamedTuple

from minipd.executor.preparation import Item, Preparation
from minipd.framework import dtype as dtypes
from minipd.ir.operation import Operation
from minipd.ir.printer import INDENT, ProgramPrinter
from minipd.ir.program import Program
from minipd.ir.types import TensorType
from minipd.ir.value import Value

__all__ = ["KernelKey", "kernel_key", "kernel_text"]


class KernelKey(NamedTuple):
    """Which of an operator's kernels."""

    backend: str
    layout: str
    dtype: str

    def __str__(self) -> str:
        return f"<backend:{self.backend}|layout:{self.layout}|dtype:{self.dtype}>"


def kernel_key(op: Operation) -> KernelKey:
    """The key of an operation's kernel; inputs have no place of their own yet."""
    row, operands = op.row, op.operands_source()
    value = operands[row.key] if row is not None and len(operands) > row.key else op.result(0)
    if not isinstance(value.type(), TensorType):
        value = op.result(0) if isinstance(op.result(0).type(), TensorType) else value
    name = dtypes.of(value.dtype).name if isinstance(value.type(), TensorType) else "Undefined"
    if op.name() == "pd_op.data":
        return KernelKey("Undefined", "Undefined(AnyLayout)", name)
    return KernelKey("CPU", "NCHW", name)


def kernel_text(program: Program) -> str:
    """The program in the kernel dialect.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.ir.traced import trace
    >>> print(kernel_text(trace(lambda x: (x + x).tanh(), Meta((2, 3), dtypes.float32.np)).program))
    {
        (%0) = "data(phi_kernel)" () {dtype:float32,kernel_key:<backend:Undefined|layout:Undefined(AnyLayout)|\
dtype:float32>,kernel_name:"data",name:"input_0",op_name:"pd_op.data",place:Place(undefined:0),shape:[2,3],\
stop_gradient:[true]} : () -> undefined_tensor<2x3xf32>
        (%1) = "add(phi_kernel)" (%0, %0) {kernel_key:<backend:CPU|layout:NCHW|dtype:float32>,kernel_name:"add",\
memory:"arena",op_name:"pd_op.add",stop_gradient:[true]} : (undefined_tensor<2x3xf32>, undefined_tensor<2x3xf32>) -> \
cpu_tensor<2x3xf32>
        (%2) = "tanh(phi_kernel)" (%1) {kernel_key:<backend:CPU|layout:NCHW|dtype:float32>,kernel_name:"tanh",\
memory:"own",op_name:"pd_op.tanh",stop_gradient:[true]} : (cpu_tensor<2x3xf32>) -> cpu_tensor<2x3xf32>
        () = "builtin.shadow_output" (%2) {output_name:"output_0"} : (cpu_tensor<2x3xf32>) -> 
    }
    <BLANKLINE>
    """  # noqa: W291
    return "{\n" + _Printer(program).block(program.global_block(), INDENT) + "}\n"


class _Printer(ProgramPrinter):
    def __init__(self, program: Program):
        super().__init__("paddle")
        self.prepared = Preparation(program)
        self.items = {item.op: item for item in self.prepared.items}

    def named(self, op: Operation) -> str:
        return f'"{op.name().partition(".")[2]}(phi_kernel)"' if self.is_kernel(op) else super().named(op)

    def fields(self, op: Operation) -> dict[str, str]:
        found = super().fields(op)
        if self.is_kernel(op):
            found |= {"kernel_key": str(kernel_key(op)), "kernel_name": f'"{op.name().partition(".")[2]}"',
                      "op_name": f'"{op.name()}"'}
            item = self.items.get(op)
            if item is not None and item.call is not None:
                found["memory"] = f'"{self.memory(item)}"'
        return found

    def is_kernel(self, op: Operation) -> bool:
        return op.row is not None or op.name() in ("pd_op.data", "pd_op.fetch")

    def memory(self, item: Item) -> str:
        call = item.call
        assert call is not None
        if call.view:
            return "view"
        if call.inplace_state:
            return "state"
        if any(r in self.prepared.dynamic for r in call.results):
            return "own"
        return "arena" if call.kernel_out is not None and not call.constant else "constant"

    def type(self, value: Value) -> str:
        op = value.get_defining_op()
        place = "undefined" if op is not None and op.name() == "pd_op.data" else "cpu"
        return f"{place}_{super().type(value)}" if isinstance(value.type(), TensorType) else super().type(value)
