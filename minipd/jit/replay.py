"""A program computed again on tensors, operator by operator, on the tape.

A compiled call is one node, whose gradient is a program: it cannot be differentiated once more, and it says nothing of
what one of its results owes to another.  Where somebody asks for that, the program is computed as eager code would be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minipd.autograd.tape import Node
from minipd.framework.context import Kernels, using
from minipd.framework.dim import bind_shape, substitute_all
from minipd.framework.rank import dispatch
from minipd.framework.tensor import Tensor
from minipd.ir.evaluate import Walk, decide, walk_program
from minipd.ir.operation import Operation, user_error
from minipd.ir.program import Program
from minipd.ir.schema import op_attrs, result_values
from minipd.ir.value import Value

__all__: list[str] = []

STATE = "state "                # before the names of program state, where they stand beside names of inputs


def replay(program: Program, given: Mapping[str, Any]) -> tuple[dict[str, Tensor], list[Node]]:
    """The outputs by name, and the nodes that were recorded, oldest first.

    given: tensors (or arrays) by the names of inputs; those of program state have `STATE` before theirs.
    A value that the program says no gradient flows through gets no history.  State is read and not written.
    Raises: NotImplementedError for operations that have no meaning on tensors.
    """
    run = _Replay(given)
    with using(ground=Kernels(), amp=None, saved_hooks=None, grad=True):
        walk_program(program, run.call, run.read, run.write, run.other)
    return run.outputs, run.nodes


class _Replay:
    """sizes: of symbolic dimensions."""

    def __init__(self, given: Mapping[str, Any]):
        self.given, self.sizes = given, dict[str, int]()
        self.outputs, self.nodes = dict[str, Tensor](), list[Node]()

    def read(self, op: Operation) -> Tensor:
        name = (op.attributes["name"].value if op.name() == "pd_op.data"
                else STATE + op.attributes["parameter_name"].value)
        x = self.given[name]
        x = x if isinstance(x, Tensor) else Tensor(x)
        bind_shape(op.result(0).shape, x.payload.shape, self.sizes, name)
        return x

    def write(self, op: Operation, x: Tensor) -> None:
        if op.name() == "builtin.shadow_output":
            self.outputs[op.attributes["output_name"].value] = x

    def call(self, op: Operation, operands: list[Tensor]) -> tuple[Tensor, ...]:
        """Call the row as the user did."""
        results, row = result_values(op), op.row
        assert row is not None
        quiet = all(v.stop_gradient for v in results)
        with using(grad=not quiet):
            made = dispatch(row, operands, substitute_all(op_attrs(op), self.sizes))
        outs = tuple(out.detach() if value.stop_gradient and not quiet else out
                     for value, out in zip(results, made if row.multi else (made,), strict=True))
        node = next((out.node for out in outs if out.node is not None), None)
        if node is not None:
            self.nodes.append(node)
        return outs

    def other(self, op: Operation, env: dict[Value, Any], walk: Walk) -> None:
        if op.name() not in ("pd_op.if", "pd_op.while"):
            raise NotImplementedError(user_error(op, "expected a call of an operator, a branch or a loop, got "
                                                     f"{op.name()}, which cannot be differentiated twice"))
        decide(op, env, walk)
