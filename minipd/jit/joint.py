"""A program and its gradient, as two programs that run at different times.

The gradient is appended to the forward program first, so that both come from the same rules as in eager mode.  Then
the two are cut apart: what the backward part reads of the forward part is *saved*, or computed again (`saving`).
Inputs and state need not be (the caller has them), constants are written again, and a value of which only the shape is
read leaves nothing but its shape.

What the gradients of branches and loops need stands on stacks: a stack is one of the values that are saved.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.dce import remove_dead_ops
from minipd.ir.mapping import IrMapping, clone_operation
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import constant_of
from minipd.ir.trace import Trace
from minipd.ir.value import Value
from minipd.jit.saving import run_again, values_read

__all__: list[str] = []


@dataclass
class Joint:
    """The two programs.

    forward: also gives the outputs `saved`.  backward: inputs are those, the gradients `grad_i` of the outputs, the
    forward program's inputs `feeds` and its state `state`; outputs are `wrt`'s gradients, by the same names.
    """

    forward: Program
    backward: Program
    saved: list[str] = field(default_factory=list)
    feeds: list[str] = field(default_factory=list)
    state: list[str] = field(default_factory=list)
    wrt: list[str] = field(default_factory=list)


def with_backward(program: Program, outputs: list[str], wrt: dict[str, Value], fuses: bool = False,
                  pin: bool = False) -> Joint:
    """Differentiate the named outputs with respect to `wrt`, values of the program by name.

    fuses: whether the programs will be compiled by a backend that fuses operators; then fewer values are saved.
    pin: as in `append_backward`.
    """
    mapping = IrMapping()
    whole = program.clone(mapping)
    trace = Trace(whole)
    ahead = list(whole.global_block())
    losses = [whole.get_output_value_by_name(name) for name in outputs]
    seeds = [trace.input(f"grad_{i}", Meta(v.shape, v.dtype)) for i, v in enumerate(losses)]
    grads = append_backward(whole, losses, [mapping.look_up(v) for v in wrt.values()], seeds, pin=pin, trace=trace)
    found = {name: g for name, g in zip(wrt, grads, strict=True) if g is not None}
    joint = split_backward(whole, ahead, found, fuses)
    joint.wrt = list(found)
    return joint


def split_backward(whole: Program, ahead: list[Operation], grads: dict[str, Value], fuses: bool = False) -> Joint:
    """Split a program in which a backward part follows a forward part; `whole` is used up, it becomes one of the two.

    ahead: the operations of the forward part; inputs of both parts are among them.  grads: values that become outputs
    of the backward program, by name, beside those that it has.  fuses: as in `with_backward`.
    """
    stacks = [op for op in whole.global_block() if op.name() == "cf.stack_create"]      # the forward part pushes there
    joint = _cut(whole, list(dict.fromkeys((*ahead, *stacks))), grads, fuses)
    for part in (joint.forward, joint.backward):
        remove_dead_ops(part)
    inputs = {op.attributes["name"].value for op in joint.backward.walk() if op.name() == "pd_op.data"}
    joint.feeds = [name for name in joint.feeds if name in inputs]
    return joint


def _cut(whole: Program, ahead: list[Operation], grads: dict[str, Value], fuses: bool) -> Joint:
    before = set(ahead)
    behind = [op for op in whole.global_block() if op not in before]
    backward, mapping = Program(), IrMapping()
    for constraint in whole.constraints:
        backward.constraints.add(constraint)
    build = Builder(backward.global_block())
    joint = Joint(whole, backward)
    saved: list[Value] = []
    read = values_read(behind, before, grads)
    again: list[Operation] = []
    if fuses:
        read, again = run_again(read, ahead)
    for value, whole_value in read.items():
        op = value.get_defining_op()
        assert op is not None
        if op.name() == "cf.stack_create":
            if not mapping.has(value):
                name = f"saved_{len(saved)}"
                saved.append(op.result(0))
                joint.saved.append(name)
                taken = build.build("cf.stack_take", (), {"name": name}, [op.result(0).type(), op.result(2).type()])
                mapping.add(op.result(0), taken.result(0))
                mapping.add(op.result(2), taken.result(1))
        elif constant_of(value) is not None:
            backward.global_block().append(clone_operation(op, mapping))
        elif not whole_value:
            shape, = build.call(ROWS["shape_only"], (), {"shape": value.shape, "dtype": value.dtype})
            shape.set_type(value.type())                # which may say where the value is
            mapping.add(value, shape)
        elif op.name() == "builtin.parameter":
            joint.state.append(op.attributes["parameter_name"].value)
            backward.global_block().append(clone_operation(op, mapping))
        else:
            if op.name() == "pd_op.data":
                name = op.attributes["name"].value
                joint.feeds.append(name)
            else:
                name = f"saved_{len(saved)}"
                saved.append(value)
                joint.saved.append(name)
            mapping.add(value, build.data(name, value.shape, value.dtype))
    for op in (*again, *behind):
        backward.global_block().append(clone_operation(op, mapping))
    for name, g in grads.items():
        build.output(name, mapping.look_up(g))
    for op in reversed(behind):
        op.erase()
    build = Builder(whole.global_block())
    for name, value in zip(joint.saved, saved, strict=True):
        build.output(name, value)
    return joint
