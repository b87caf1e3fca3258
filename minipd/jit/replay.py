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
from minipd.ir.block import Block
from minipd.ir.evaluate import BUNDLES
from minipd.ir.operation import Operation, user_error
from minipd.ir.program import Program
from minipd.ir.schema import is_attribute_only, op_attrs, result_values, tensor_operands
from minipd.ir.traits import IrTrait
from minipd.ir.value import Value

__all__: list[str] = []

STATE = "state "                # before the names of program state, where they stand beside names of inputs


def replay(program: Program, given: Mapping[str, Any]) -> tuple[dict[str, Tensor], list[Node]]:
    """The outputs by name, and the nodes that were recorded, oldest first.

    given: tensors (or arrays) by the names of inputs; those of program state have `STATE` before theirs.
    A value that the program says no gradient flows through gets no history.  State is read and not written.
    Raises: NotImplementedError for operations that have no meaning on tensors.
    """
    run = _Replay(program, given)
    with using(ground=Kernels(), middle=None, amp=None, saved_hooks=None, grad=True):
        run.walk(program.global_block())
    return run.outputs, run.nodes


class _Replay:
    """env: value -> tensor.  sizes: of symbolic dimensions."""

    def __init__(self, program: Program, given: Mapping[str, Any]):
        self.given, self.env, self.sizes = given, dict[Value, Tensor](), dict[str, int]()
        self.outputs, self.nodes = dict[str, Tensor](), list[Node]()

    def walk(self, block: Block) -> list[Tensor]:
        """Compute a block; returns what it yields."""
        env = self.env
        for op in block:
            name = op.name()
            if name in BUNDLES or IrTrait.CONSTANT in op.info.traits and is_attribute_only(op):
                continue
            if name in ("pd_op.data", "builtin.parameter"):
                env[op.result(0)] = self.read(op)
            elif name == "builtin.shadow_output":
                self.outputs[op.attributes["output_name"].value] = env[op.operand_source(0)]
            elif name == "cf.yield":
                return [env[v] for v in op.operands_source()]
            elif op.row is not None:
                self.call(op)
            elif name == "pd_op.if":
                taken = op.regions[0 if bool(env[op.operand_source(0)]) else 1]
                env.update(zip(op.results(), self.walk(taken.front()), strict=True))
            elif name == "pd_op.while":
                self.loop(op)
            elif name != "builtin.set_parameter":
                raise NotImplementedError(user_error(op, "expected a call of an operator, a branch or a loop, got "
                                                         f"{name}, which cannot be differentiated twice"))
        return []

    def read(self, op: Operation) -> Tensor:
        name = (op.attributes["name"].value if op.name() == "pd_op.data"
                else STATE + op.attributes["parameter_name"].value)
        x = self.given[name]
        x = x if isinstance(x, Tensor) else Tensor(x)
        bind_shape(op.result(0).shape, x.payload.shape, self.sizes, name)
        return x

    def call(self, op: Operation) -> None:
        """Call the row as the user did."""
        results, attrs = result_values(op), substitute_all(op_attrs(op), self.sizes)
        inputs = [self.env[v] for v in tensor_operands(op)]
        row = op.row
        assert row is not None
        quiet = all(v.stop_gradient for v in results)
        with using(grad=not quiet):
            made = dispatch(row, inputs, attrs)
        outs = made if row.multi else (made,)
        for value, out in zip(results, outs, strict=True):
            if value.stop_gradient and not quiet:
                out = out.detach()
            self.env[value] = out
        node = next((out.node for out in outs if out.node is not None), None)
        if node is not None:
            self.nodes.append(node)

    def loop(self, op: Operation) -> None:
        body = op.regions[0].front()
        going, *carried = [self.env[v] for v in op.operands_source()]
        while bool(going):
            self.env.update(zip(body.args(), carried, strict=True))
            going, *carried = self.walk(body)
        self.env.update(zip(op.results(), carried, strict=True))
