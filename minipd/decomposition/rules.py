"""Whether an operator can be taken apart, and doing so to one: Paddle's `has_decomp_rule`, `call_decomp_rule`.

There is one rule for an operator, whoever asks: a row's is in its column `decompose`; an operator of Paddle's that is a
function here has that function (`functions`).  Called with tensors, a rule computes; with values of a program, it
writes.  Gradients need no rules of their own: what a row says of its gradient (`vjp`) is said in operators, so the
gradient of an operator is in parts from the start (`has_vjp`, `call_vjp`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.decomposition.decompose_pass import write_rule
from minipd.decomposition.functions import FUNCTION_RULES, function_rule
from minipd.decomposition.table import COLUMN
from minipd.framework.context import using
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.backward import Walk
from minipd.ir.carried import Place
from minipd.ir.operation import Operation, user_error
from minipd.ir.paddle.functions import FUNCTIONS
from minipd.ir.program import Program
from minipd.ir.schema import result_values, tensor_operands
from minipd.ir.trace import Trace
from minipd.ir.value import Value

__all__ = ["call_decomp_rule", "call_vjp", "has_decomp_rule", "has_vjp", "rule_names", "rule_of"]


def rule_of(op: Operation | str) -> Callable[..., Any] | None:
    """The rule of an operator, None if it has none; of an operation, or by Paddle's name ("pd_op.elu", or "elu").

    It takes what Paddle's operator takes, or our row of that name: tensors in order, attributes by name.

    >>> from minipd.ops.creation import to_tensor
    >>> rule = rule_of("pd_op.huber_loss")
    >>> loss, rest = rule(to_tensor([0.0, 3.0]), to_tensor([1.0, 0.0]), delta=1.0)
    >>> loss.tolist(), rest.tolist()
    ([0.5, 2.5], [1.0, -3.0])
    """
    name = op if isinstance(op, str) else op.name()
    dialect, _, short = name.rpartition(".")
    if dialect not in ("", "pd_op"):
        return None
    row = ROWS.get(short)
    if row is not None and COLUMN in row.columns:
        return row.columns[COLUMN]                                               # type: ignore[no-any-return]
    return function_rule(short)


def rule_names() -> list[str]:
    """The operators that have a rule, by Paddle's names.

    >>> {"softmax", "elu", "batch_norm_"} <= set(rule_names())
    True
    """
    rows = [name for name, row in ROWS.items() if COLUMN in row.columns and row.dialect == "pd_op"]
    return sorted({*rows, *FUNCTION_RULES, *FUNCTIONS})


def has_decomp_rule(op: Operation | str) -> bool:
    """Whether an operator, given by an operation or by name, can be taken apart.

    >>> has_decomp_rule("pd_op.layer_norm"), has_decomp_rule("pd_op.elu"), has_decomp_rule("pd_op.exp")
    (True, True, False)
    """
    return rule_of(op) is not None


def call_decomp_rule(op: Operation | str, *tensors: Any, **attrs: Any) -> Any:
    """Write an operation's rule in front of it, which stays; returns the new values of each of its results, in lists.

    By name: the rule's answer for these tensors and attributes.

    Raises: ValueError if there is no rule; of a program in Paddle's form, whose operations are no calls of our rows,
    only those can be written that are.

    >>> from minipd.ops.creation import to_tensor
    >>> call_decomp_rule("pd_op.softmax", to_tensor([[0.0, 0.0]]), axis=1).tolist()
    [[0.5, 0.5]]
    """
    if isinstance(op, str):
        rule = rule_of(op)
        if rule is None:
            raise ValueError(f"call_decomp_rule: expected an operator with a rule, got {op!r}; those that have one are "
                             f"{', '.join(rule_names())}")
        return rule(*tensors, **attrs)
    if op.row is None or COLUMN not in op.row.columns:
        raise ValueError(user_error(op, f"call_decomp_rule: expected an operation with a rule, got {op.name()}"))
    trace = _trace_at(op)
    return [[value] for value in write_rule(trace.program, trace, op)]


def _trace_at(op: Operation) -> Trace:
    """A trace to write beside `op`.  (An operation does not know its program; what a rule asks of its sizes, which a
    program would keep, the operation has asked already.)"""
    trace = Trace(Program())
    trace.build.set_insertion_point(op)
    return trace


def has_vjp(op: Operation | str) -> bool:
    """Whether an operator has a gradient.

    >>> has_vjp("pd_op.gelu"), has_vjp("pd_op.argmax")
    (True, False)
    """
    row = ROWS.get(op.rpartition(".")[2]) if isinstance(op, str) else op.row
    return row is not None and row.has_vjp


def call_vjp(op: Operation, inputs: Sequence[Sequence[Value]], outputs: Sequence[Sequence[Value]],
             out_grads: Sequence[Sequence[Value | None]],
             stop_gradients: Sequence[Sequence[bool]]) -> list[list[Value | None]]:
    """Write the gradient of one operation at the end of its block, as the tape of a program would.

    inputs, outputs: of the operation, one list each; out_grads: for each output.  Returns a gradient for each input;
    None where `stop_gradients` says so, or none flows.
    Raises: ValueError if these are not the operation's own values.
    """
    own, made = [v for one in inputs for v in one], [v for one in outputs for v in one]
    if own != tensor_operands(op) or made != result_values(op):
        raise ValueError(user_error(op, f"call_vjp: expected the operands and results of {op.name()}, got others"))
    trace = _trace_at(op)
    assert op.parent is not None
    trace.build.set_insertion_point_to_block_end(op.parent)
    stops = [stop for one in stop_gradients for stop in one]
    reached = {v for v, stop in zip(own, stops, strict=True) if not stop} | set(made)
    walk = Walk(trace, reached, False, Place())
    with using(ground=trace, middle=None, amp=None, grad=False), trace.program.constraints.collect():
        for value, g in zip(made, [g for one in out_grads for g in one], strict=True):
            if g is not None:
                walk.give(value, Tensor(g))
        if op.row is not None and op.row.has_vjp:
            walk.operation(op)
        totals = [None if stop else walk.total(v) for v, stop in zip(own, stops, strict=True)]
    found = iter(None if g is None else g.payload for g in totals)
    return [[next(found) for _ in one] for one in inputs]
