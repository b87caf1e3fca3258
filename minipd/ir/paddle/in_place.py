"""Paddle's operators that write an operand: whoever reads it afterwards reads the result.

    (%4) = "pd_op.set_value_" (%2, ...) ...         from here on %2 is %4
    (%5) = "pd_op.sum" (%2, ...) ...

Parameters are written so, too, and other state by name (moments of an optimizer, the learning rate): our programs write
state at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from minipd.ir.attributes import StrAttribute
from minipd.ir.operation import Operation
from minipd.ir.paddle.signatures import signature
from minipd.ir.types import NullType
from minipd.ir.value import Value

if TYPE_CHECKING:
    from minipd.ir.paddle.load import Loader
    from minipd.ir.program import Program

__all__ = ["state_name", "write_operands", "write_state", "writes_outside"]

#: their result is new; the statistics are written, those of a batch
NEW_RESULT = frozenset({"batch_norm_", "fused_batch_norm_act_", "fused_bn_add_activation_"})
#: result -> the operand that it is written into, where their names do not say so
WRITES = {"assign_out_": {"out": "output"},
          "adadelta_": {"moment_out": "avg_squared_grad", "inf_norm_out": "avg_squared_update"}}


def written_operands(op: Operation) -> Iterator[tuple[Value, Value]]:
    """(operand, the result that is written into it) for each."""
    dialect, _, name = op.name().partition(".")
    found = signature(name) if dialect == "pd_op" and name.endswith("_") else None
    if found is None or name == "share_data_" or name.endswith("_grad_") or name in NEW_RESULT and any(
            op.attributes[n].value for n in ("is_test", "use_global_stats") if n in op.attributes):
        return
    places = {o.name: i for i, o in enumerate(found.operands)}
    for i, result in enumerate(found.results):
        first = found.operands[0].name if result == "out" and name not in NEW_RESULT else ""
        source = WRITES.get(name, {}).get(result, first or result.removesuffix("_out"))
        if source not in places:
            continue
        old, new = op.operand_source(places[source]), op.result(i)
        if old is not None and old is not new and not isinstance(new.type(), NullType):
            yield old, new


def writes_outside(op: Operation) -> bool:
    """Whether a branch or a loop writes a value from around it, which ours cannot."""
    return any(old.parent_block() is not op.parent for old, _ in written_operands(op))


def write_operands(at: Loader, op: Operation) -> None:
    """Let what `op` writes be read as its results, by everything behind it."""
    for old, new in written_operands(op):
        if new not in at.values or old.type() != new.type() or at.values[new] is at.values[old]:
            continue
        at.values[old] = at.values[new]
        at.numbers.pop(old, None)
        if new in at.numbers:
            at.numbers[old] = at.numbers[new]


def state_name(op: Operation) -> str | None:
    """The name of the state that an operation reads; None if it reads none."""
    if op.name() == "builtin.parameter":
        name = op.attributes.get("parameter_name")
    elif op.name() == "pd_op.data" and op.result(0).persistable:
        name = op.attributes.get("name")
    else:
        return None
    return name.value if isinstance(name, StrAttribute) else None


def write_state(at: Loader, source: Program) -> None:
    """State that was written in place is written by name, after everything else."""
    for op in source.global_block().ops:
        name = state_name(op)
        if name is not None and at.values[op.result(0)].get_defining_op() is not at.readers[op]:
            at.build.set_parameter(name, at.values[op.result(0)])
