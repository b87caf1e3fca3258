"""The compiler's operations in programs.

`cinn_op.group` is a part of the program that the compiler looks at as a whole; `cinn_op.fusion`, made of parts of it,
will be one kernel.  Their regions read the values around them directly; these are all listed as operands too, each
once, so that whoever looks at operands only (liveness, placement) sees everything:

    (%5) = "cinn_op.fusion" (%0, %1) {pattern:"Trivial"} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
        (%2) = "pd_op.multiply" (%0, %1) {} : ...
        (%3) = "pd_op.exp" (%2) {} : ...
        () = "cf.yield" (%3) {} : ...
    }

Both mean what evaluating the region with library kernels gives (`frontend.interpret.run_group`).

`cinn_runtime.jit_kernel` is a call of the compiled kernel that `kernel` names in the runtime's table.
"""

from __future__ import annotations

from minipd.ir.dialect import Dialect, register_dialect
from minipd.ir.operation import Operation, captured

__all__ = ["FUSION", "GROUP", "JIT_KERNEL"]

GROUP, FUSION, JIT_KERNEL = "cinn_op.group", "cinn_op.fusion", "cinn_runtime.jit_kernel"


cinn_op = register_dialect(Dialect("cinn_op"))
cinn_runtime = register_dialect(Dialect("cinn_runtime"))


@cinn_op.op("group")
class Group:
    """A part of a program for the compiler: what its region yields, which reads what the operation lists."""

    operands = ("*inputs",)
    results = ("*outputs",)
    regions = ("group",)

    def verify(op):
        verify_region(op)


@cinn_op.op("fusion")
class Fusion:
    """A group that will be one kernel.  pattern: its kind (`frontend.pattern`).  anchor: the operation in front of it
    over whose result it works."""

    operands = ("*inputs",)
    results = ("*outputs",)
    attributes = {"pattern?": str, "anchor?": str}
    regions = ("group",)

    def verify(op):
        verify_region(op)
        for inner in op.regions[0].front():
            if inner.regions:
                raise ValueError(f"expected operators without regions in a fusion, got {inner.name()}")


def verify_region(op: Operation) -> None:
    """The region reads exactly what the operation lists, and yields its results.

    Raises: ValueError if not.
    """
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


@cinn_runtime.op("jit_kernel")
class JitKernel:
    """A call of a compiled kernel."""

    operands = ("*inputs",)
    results = ("*outputs",)
    attributes = {"kernel": str}
