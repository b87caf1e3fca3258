"""The compiler's operations in programs.

`cinn_op.fusion` is a group that will be one kernel.  Its region reads the values around it directly; they are all
listed as operands too, each once, so that whoever looks at operands only (liveness, placement) sees everything:

    (%5) = "cinn_op.fusion" (%0, %1) {} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
        (%2) = "pd_op.multiply" (%0, %1) {} : ...
        (%3) = "pd_op.exp" (%2) {} : ...
        () = "cf.yield" (%3) {} : ...
    }

It means what evaluating the region with library kernels gives (`frontend.interpret.run_group`).

`cinn_runtime.jit_kernel` is a call of the compiled kernel that `kernel` names in the runtime's table.
"""

from __future__ import annotations

from minipd.ir.dialect import Dialect, register_dialect
from minipd.ir.operation import captured

__all__ = ["FUSION", "JIT_KERNEL"]

FUSION, JIT_KERNEL = "cinn_op.fusion", "cinn_runtime.jit_kernel"


cinn_op = register_dialect(Dialect("cinn_op"))
cinn_runtime = register_dialect(Dialect("cinn_runtime"))


@cinn_op.op("fusion")
class Fusion:
    """A group that will be one kernel: what its region yields, which reads what the operation lists."""

    operands = ("*inputs",)
    results = ("*outputs",)
    regions = ("group",)

    def verify(op):
        block = op.regions[0].front()
        if block.args():
            raise ValueError(f"expected a region that reads the values around it directly, got {len(block.args())} "
                             "block arguments")
        read, listed = captured(op), op.operands_source()
        if len(set(listed)) != len(listed):
            raise ValueError("operands: expected each value once")
        if set(read) != set(listed):
            missing = next((v for v in read if v not in listed), None)
            raise ValueError("operands: expected exactly the values that the region reads from around it; "
                             + (f"{missing} is missing" if missing is not None else "one is not read"))
        end = block.back()
        yielded = [v.type() for v in end.operands_source()] if end is not None and end.name() == "cf.yield" else []
        if yielded != [r.type() for r in op.results()]:
            raise ValueError(f"results: expected what the region yields, {list(map(str, yielded))}, got "
                             f"{[str(r.type()) for r in op.results()]}")
        for inner in block:
            if inner.regions:
                raise ValueError(f"expected operators without regions in a group, got {inner.name()}")


@cinn_runtime.op("jit_kernel")
class JitKernel:
    """A call of a compiled kernel."""

    operands = ("*inputs",)
    results = ("*outputs",)
    attributes = {"kernel": str}
