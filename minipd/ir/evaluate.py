"""Evaluating a program with any interpreter.

`evaluate(program, run, read, write)` walks the operations of a program once and gives each call of a row to
`run(row, payloads, attrs)`, the protocol that all interpreters below the tape share.  With kernels, this is the
definition of what a program means; under the dist interpreter over metas it is completion, over a trace partition.

`walk_program` is the same for who wants to see the operations themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from minipd.ir.block import Block
from minipd.ir.operation import Operation, user_error
from minipd.ir.program import Program
from minipd.ir.schema import is_attribute_only, op_attrs, result_values, tensor_operands
from minipd.ir.traits import IrTrait
from minipd.ir.value import Value

__all__ = ["decide", "evaluate", "walk_program"]

#: operations that only bundle values; calls of rows look through them
BUNDLES = ("builtin.combine", "builtin.split")
#: operations that an interpreter has a meaning for only if it enters regions
CONTROL = ("pd_op.if", "pd_op.while", "cf.stack_create", "cf.tuple_push", "cf.tuple_pop", "cf.has_elements")

Walk = Callable[[Block], list[Any]]
Control = Callable[[Operation, dict[Value, Any], Walk], None]


def evaluate(program: Program, run: Callable, read: Callable[[Operation], Any],
             write: Callable[[Operation, Any], None], control: Control | None = None,
             after: Callable[[Operation, dict[Value, Any]], None] | None = None) -> dict[Value, Any]:
    """Give every operation of the global block a meaning; returns the payload of every value.

    read(op): the payload of an input (`pd_op.data`) or of program state (`builtin.parameter`).
    write(op, payload): takes what `builtin.set_parameter` or `builtin.shadow_output` is given.
    control(op, env, walk): the meaning of control flow (CONTROL): it enters the results of `op` into `env`;
    `walk(block)` evaluates a region's block and returns the payloads that it yields.  `decide` is what it means where
    payloads are values.
    after(op, env): is told of every operation that has got its meaning (`interpret` looks at the results then).
    Raises: NotImplementedError for control flow without `control`, and, by name, for others that are no call of a row.
    """
    def call(op: Operation, payloads: list[Any]) -> Any:
        return run(op.row, payloads, op_attrs(op))

    def other(op: Operation, env: dict[Value, Any], walk: Walk) -> None:
        name = op.name()
        if control is not None and (name in (*CONTROL, "cf.stack_take") or op.regions and op.info.registered):
            control(op, env, walk)
        elif not op.info.registered:
            raise NotImplementedError(user_error(op, f"expected an operation that a dialect knows, got {name}: the "
                                                     "program can be kept, printed and drawn, not run"))
        else:
            raise NotImplementedError(user_error(op, "expected a call of an operator: this interpreter does not "
                                                     f"enter regions, so it has no meaning for {name}"))
    return walk_program(program, call, read, write, other, after)


def walk_program(program: Program, call: Callable[[Operation, list[Any]], Any], read: Callable[[Operation], Any],
                 write: Callable[[Operation, Any], None], other: Control,
                 after: Callable[[Operation, dict[Value, Any]], None] | None = None) -> dict[Value, Any]:
    """`evaluate`, with functions of operations.

    call(op, payloads): what a call of a row makes, a tuple if there are several.
    other(op, env, walk): the meaning of everything else, control flow or not, as `control` has it.
    """
    env: dict[Value, Any] = {}

    def inside(block: Block) -> list[Any]:
        for op in block:
            name = op.name()
            if name == "builtin.split" and (bundle := op.operand_source(0).get_defining_op()) is not None and \
                    bundle.name() == "builtin.combine":
                env.update(zip(op.results(), [env[v] for v in bundle.operands_source()], strict=True))
            if name in BUNDLES or IrTrait.CONSTANT in op.info.traits and is_attribute_only(op):
                continue
            if name in ("pd_op.data", "builtin.parameter"):
                env[op.result(0)] = read(op)
            elif name in ("builtin.set_parameter", "builtin.shadow_output"):
                write(op, env[op.operand_source(0)])
            elif op.row is not None:
                assign(env, result_values(op), call(op, [env[v] for v in tensor_operands(op)]))
            elif name == "cf.yield":
                return [env[v] for v in op.operands_source()]
            else:
                other(op, env, inside)
            if after is not None:
                after(op, env)
        return []

    inside(program.global_block())
    return env


def decide(op: Operation, env: dict[Value, Any], walk: Walk) -> None:
    """Control flow, where payloads are arrays: what a condition holds decides, and a stack is a list."""
    operands = [env[v] for v in op.operands_source()]
    match op.name():
        case "pd_op.if":
            env.update(zip(op.results(), walk(op.regions[0 if operands[0] else 1].front()), strict=True))
        case "pd_op.while":
            going, *carried = operands
            body = op.regions[0].front()
            while going:
                env.update(zip(body.args(), carried, strict=True))
                going, *carried = walk(body)
            env.update(zip(op.results(), carried, strict=True))
        case "cf.stack_create":
            env.update(dict.fromkeys(op.results(), []))         # the stack, and the stack as both of its ends
        case "cf.tuple_push":
            operands[0].append(operands[1:])
        case "cf.tuple_pop":
            env.update(zip(op.results(), operands[0].pop(), strict=True))
        case "cf.has_elements":
            env[op.result(0)] = np.array([bool(operands[0])])
        case _:
            raise NotImplementedError(user_error(op, f"expected {', '.join(CONTROL)}, which are all the operations "
                                                     "with regions that have a meaning"))


def assign(env: dict[Value, Any], values: Iterable[Value], out: Any) -> None:
    """Bind the results of a call."""
    env.update(zip(values, out if isinstance(out, tuple) else (out,), strict=False))
