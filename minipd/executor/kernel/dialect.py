"""The operations of dialect `kernel`.

`kernel.add` is one chosen kernel of `pd_op.add`; Paddle prints it as `"add(phi_kernel)"`.  It has the operands and
attributes of the operator, and says besides:

    op_name     what it computes, `pd_op.add`
    kernel_name of which kernel, `add`
    kernel_key  which one: backend, layout, dtype
    memory      how its result gets its memory: "arena" (a buffer that the plan gives it), "view" (of an operand),
                "state" (over the state that it reads), "constant", or "own" (allocated as it runs)

The last one is ours, and there once the executor has prepared the program.  There is an entry for every row, whatever
dialect it is of, for inputs and fetches, and for the two that move values between places.
"""

from __future__ import annotations

from dataclasses import replace

from minipd.executor.kernel.table import select
from minipd.executor.kernel.types import AllocatedTensorType
from minipd.framework.row import ROWS
from minipd.ir.dialect import Dialect, OpInfo, info_of_row, op_info, register_dialect
from minipd.ir.operation import Operation
from minipd.ir.types import Type, VectorType
from minipd.ir.value import describe

__all__: list[str] = []

NAMED, MEMORY = ("op_name", "kernel_name", "kernel_key"), "memory"
TO_DEVICE, TO_HOST = "memcpy_h2d", "memcpy_d2h"


def check_kernel(op: Operation) -> None:
    """There is such a kernel, and what it touches has a place."""
    key, row = op.attributes["kernel_key"].value, op.row
    if row is not None:
        select(row, key)
    for value in (*op.operands_source(), *op.results()):
        if not _has_place(value.type()):
            raise ValueError(f"expected values that have a place, got {describe(value)}; lower the whole program "
                             "(pd_op_to_kernel_pass)")


def _has_place(type: Type) -> bool:
    if isinstance(type, VectorType):
        return all(map(_has_place, type.types))
    return isinstance(type, AllocatedTensorType)


class KernelDialect(Dialect):
    """Entries are made when they are first asked for."""

    def find(self, name: str) -> OpInfo | None:
        if name in ROWS:
            found = info_of_row(ROWS[name])
        elif name in ("data", "fetch"):
            found = op_info(f"pd_op.{name}")
        elif name in (TO_DEVICE, TO_HOST):
            found = OpInfo("", ("x",), ("out",))
        else:
            return None
        return replace(
            found, name=f"kernel.{name}", attrs=(*found.attrs, *NAMED, MEMORY), required=(*found.required, *NAMED),
            check=check_kernel)


kernel = register_dialect(KernelDialect("kernel"))
