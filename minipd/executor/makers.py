"""Who makes the calls of operations that are no rows: a table that floors above add to.

    register_maker("cinn_runtime.jit_kernel", lambda op: Call(op, op.operands_source(), op.results(), kernel_out=f))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from minipd.ir.operation import Operation

if TYPE_CHECKING:
    from minipd.executor.calls import Call

__all__ = ["register_maker"]

Maker = Callable[[Operation], "Call"]
MAKERS: dict[str, Maker] = {}


def register_maker(op_name: str, maker: Maker) -> None:
    """Let the executor run operations called `op_name`, of a dialect of a floor above.

    Raises: ValueError if there is a maker for them already.
    """
    if op_name in MAKERS:
        raise ValueError(f"register_maker: {op_name} has a maker already, {MAKERS[op_name]}")
    MAKERS[op_name] = maker
