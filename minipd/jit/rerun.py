"""A program as a function of tensors: every operator is called again, whoever interprets the calls.

Eagerly the operators run, with a tape; under a trace they become part of the program that is traced; so a loaded model
is a function like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.dim import DimExpr, Size, substitute_all
from minipd.framework.rank import current, dispatch
from minipd.framework.tensor import Tensor
from minipd.ir.evaluate import Walk, walk_program
from minipd.ir.operation import Operation, user_error
from minipd.ir.paddle.reasons import paddles_name
from minipd.ir.program import Program
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.ir.value import Value
from minipd.static.control_flow import cond
from minipd.static.loops import while_loop

__all__: list[str] = []


def rerun(program: Program, given: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The outputs by name.

    given, state: tensors by the names of inputs and parameters.
    Raises: NotImplementedError, by name, for an operator that minipd does not have; ValueError for shapes that do not
    fit.
    """
    run = _Rerun(given, state)
    walk_program(program, run.call, run.read, run.write, run.other)
    return run.outputs


class _Rerun:
    """sizes: what the symbols of the program are this time, numbers or symbols of a trace."""

    def __init__(self, given: Mapping[str, Tensor], state: Mapping[str, Tensor]):
        self.given, self.state = given, state
        self.sizes, self.outputs = dict[str, Size](), dict[str, Tensor]()

    def read(self, op: Operation) -> Tensor | None:
        """The tensor of that name; None for a parameter without values, which only an unknown operator reads."""
        is_input = op.name() == "pd_op.data"
        name = op.attributes["name" if is_input else "parameter_name"].value
        x = self.given[name] if is_input else self.state.get(name)
        if x is None:
            return None
        declared, actual = op.result(0).shape, tuple(x.payload.shape)
        fits = len(declared) == len(actual) and x.payload.dtype == op.result(0).dtype
        for dim, size in zip(declared, actual, strict=False):       # of a size that is fixed, operators say what fits
            if isinstance(dim, DimExpr) and dim.is_symbol:
                fits = fits and self.sizes.setdefault(str(dim), size) == size
        if not fits:
            raise ValueError(f"input {name}: expected {op.result(0).type()}, got {x.payload.dtype}{list(actual)}")
        return x

    def write(self, op: Operation, x: Tensor) -> None:
        if op.name() == "builtin.shadow_output":
            self.outputs[op.attributes["output_name"].value] = x
            return
        with using(grad=False):
            self.state[op.attributes["parameter_name"].value].set_value(x.detach())

    def call(self, op: Operation, operands: list[Tensor]) -> tuple[Tensor, ...]:
        """Call the row as the user did.  What the program says no gradient flows through gets none, if the operands
        would have given it one."""
        row, results = op.row, result_values(op)
        assert row is not None
        stops = any(not v.stop_gradient for v in tensor_operands(op)) and [v.stop_gradient for v in results]
        with using(grad=current().grad_enabled and not (stops and all(stops))):
            made = dispatch(row, operands, substitute_all(op_attrs(op), self.sizes))
        outs = list(made) if row.multi else [made]
        for i, (value, out) in enumerate(zip(results, outs, strict=False)):
            if stops and stops[i] and not out.stop_gradient and value.dtype in dtypes.INEXACT:
                outs[i] = out.detach()
        return tuple(outs)

    def other(self, op: Operation, env: dict[Value, Any], walk: Walk) -> None:
        name = op.name()
        if name == "pd_op.if":
            true, false = (region.front() for region in op.regions)
            made = cond(env[op.operand_source(0)], partial(walk, true), partial(walk, false))
        elif name == "pd_op.while":
            body = op.regions[0].front()

            def again(_: Tensor, *carried: Tensor) -> list[Tensor]:
                env.update(zip(body.args(), carried, strict=True))
                return walk(body)
            _, *made = while_loop(lambda going, *_: going, again, [env[v] for v in op.operands_source()])
        else:
            paddles = paddles_name(name)
            what = "an operator that minipd has" if paddles == name else "attributes that are known before"
            raise NotImplementedError(user_error(op, f"expected {what}, got {paddles}: the program can be kept, "
                                                     "printed, drawn and saved, not run"))
        outs: Sequence[Tensor] = made if isinstance(made, (list, tuple)) else () if made is None else (made,)
        env.update(zip(op.results(), outs, strict=True))
