"""Gradients of programs: the rows' own gradient rules, run under trace over the operations in reverse.

What eager mode does with the tape, done on a program: only what lies between the losses and the values asked for, only
the rules whose input wants a gradient.  A value that is read several times gets its contributions summed once, before
the gradient goes on (`builtin.combine` and `pd_op.add_n`, as in Paddle).

A branch (`pd_op.if`) has a branch as its gradient, a loop (`pd_op.while`) a loop.  What their regions need of the
forward regions is pushed on a stack there and popped here; see `builtin`.  Values of the blocks around are simply read,
constants are written again.

With `pin`, a gradient enters a rule with the placements of its primal (a `match` operation): the program is a global
one that will be distributed (decision 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.framework.context import using
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import ROWS, VjpCall
from minipd.framework.tensor import Tensor
from minipd.ir.block import Block
from minipd.ir.builder import Builder
from minipd.ir.builtin import pushed_values
from minipd.ir.carried import Carried, Place, Returned, create_stack
from minipd.ir.loop_gradient import ONCE, from_line, is_inside, loop_gradient, zeros
from minipd.ir.operation import Operation, captured, user_error
from minipd.ir.program import Program
from minipd.ir.reach import spread
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.ir.trace import Trace, handle
from minipd.ir.value import Value, describe
from minipd.ops.creation import full_like
from minipd.ops.math import AddN

__all__ = ["append_backward"]


def append_backward(program: Program, losses: Sequence[Value], wrt: Sequence[Value],
                    grad_outputs: Sequence[Value | None] | None = None, *, pin: bool = False,
                    create_graph: bool = False, trace: Trace | None = None) -> list[Value | None]:
    """Append the gradients of `losses` with respect to `wrt`; returns one value per entry of `wrt`, None where the
    losses do not depend on it.

    losses, wrt: values of the global block.  grad_outputs: the gradients of the losses (None: ones).  pin: match every
    gradient's placements to its primal's.  create_graph: let the gradients be differentiated again.  trace: the trace
    that wrote the program, where gradient rules may capture outside tensors; its captures grow then.
    Complex gradients, those given too, are what rules make of them, and not yet conjugated (`autograd.engine`).

    Raises: ValueError for a value with `stop_gradient`.
    """
    for value in (*losses, *wrt):
        if value.stop_gradient:
            raise ValueError(f"append_backward: expected values through which gradients flow, got {describe(value)} "
                             "with stop_gradient=True; set stop_gradient=False on the inputs before they are traced")
    trace = Trace(program) if trace is None else trace
    block = program.global_block()
    seeds = [None] * len(losses) if grad_outputs is None else grad_outputs
    with using(ground=trace, middle=None, amp=None, grad=create_graph), program.constraints.collect():
        reached = set(wrt)
        spread(block, reached)
        walk = Walk(trace, reached, pin, Place())
        for loss, seed in zip(losses, seeds, strict=True):
            walk.give(loss, full_like(handle(loss), 1.0) if seed is None else handle(seed))
        walk.block(block)
        found = [walk.total(v) for v in wrt]
    return [None if g is None else g.payload for g in found]


class Walk:
    """A block in reverse.  `grads` holds the contributions to each value's gradient that are not summed yet.

    returned: gradients of values in other regions, which stand on stacks.  notice(grad_op, results), if there is one,
    is told of the gradient of each operation with regions, before it is used.
    """

    def __init__(self, trace: Trace, reached: set[Value], pin: bool, place: Place):
        self.trace, self.reached, self.pin, self.place = trace, reached, pin, place
        self.grads: dict[Value, list[Tensor]] = {}
        self.done: dict[Value, Tensor] = {}
        self.handles: dict[Value, Tensor] = {}
        self.returned: list[Returned] = []
        self.notice: Callable[[Operation, list[Tensor]], None] | None = None

    def within(self, place: Place) -> Walk:
        """A walk of a region inside of what this one walks."""
        return Walk(self.trace, self.reached, self.pin, place)

    # --------------------------------------------------------------------------------------- contributions
    def give(self, value: Value, g: Tensor) -> None:
        """One more contribution to the gradient of `value`.

        Of a program that will be distributed they are added up as they come, as the tape does, so that communication
        has the order that it has eagerly.
        """
        parts = self.grads.setdefault(value, [])
        parts.append(g)
        if self.pin and len(parts) > 1:
            parts[:] = [AddN(*parts)]

    def total(self, value: Value) -> Tensor | None:
        """The gradient of `value`; None if there is none.  Asked when all contributions are there."""
        if value in self.grads:
            parts = self.grads.pop(value)
            self.done[value] = parts[0] if len(parts) == 1 else AddN(*parts)
        return self.done.get(value)

    def pinned(self, value: Value, g: Tensor) -> Tensor:
        """The gradient of a result, with its placements, before it enters a rule."""
        if self.pin:
            self.done[value] = g = ROWS["match"](g, self.tensor(value))
        return g

    # ------------------------------------------------------------------------------------------------ the walk
    def block(self, block: Block) -> None:
        """Everything in `block` that is there now, last first."""
        for op in reversed(block.ops):
            if op.name() == "pd_op.if":
                self.branch(op)
            elif op.name() == "pd_op.while":
                self.loop(op)
            elif op.name() == "cf.tuple_pop":
                self.pop(op)
            elif op.row is not None and op.row.has_vjp:
                self.operation(op)

    def operation(self, op: Operation) -> None:
        """Call the gradient rules of the inputs that want a gradient, and give each of them its contribution.

        Nothing is done if no gradient has come to a result.  The gradient of a result is the total of what has come to
        it, None for a result that is not reached; unless the row takes raw gradients, it is pinned before it enters a
        rule.  A row with several results (`multi`) takes the list of their gradients.  A rule with a `target` returns
        the gradient of that input, one without returns one for each input; None is no contribution.
        """
        row = op.row
        assert row is not None
        outputs = result_values(op)
        if not any(r in self.grads for r in outputs):
            return
        inputs = tensor_operands(op)
        wanted = sum(1 << i for i, v in enumerate(inputs) if v in self.reached)
        gs = [self.total(r) if r in self.reached else None for r in outputs]
        if not wanted or all(g is None for g in gs):
            return
        if not row.raw_gradient:
            gs = [g if g is None else self.pinned(r, g) for r, g in zip(outputs, gs, strict=True)]
        attrs = op_attrs(op)
        for call in row.calls(wanted):
            got = call.fn(gs if row.multi else gs[0], *self.saved(call, inputs, outputs, attrs))
            pairs = [(call.target, got)] if call.target is not None else list(enumerate(got))
            for i, g in pairs:
                if g is not None and inputs[i] in self.reached:
                    self.give(inputs[i], g)

    def pop(self, op: Operation) -> None:
        """What was popped was pushed: the gradient belongs to that value."""
        for value, pushed in zip(op.results(), pushed_values(op) or (), strict=True):
            if value in self.grads:
                g = self.total(value)
                assert g is not None
                self.give(pushed, g)

    def saved(self, call: VjpCall, inputs: list[Value], outputs: list[Value], attrs: dict) -> list:
        """The arguments of a gradient rule, by its save list."""
        args: list[Any] = []
        for kind, i, only_meta in call.plan:
            if kind == "attr":
                args.append(attrs[i])
            elif kind == "all":
                args.append([self.argument(v, only_meta) for v in inputs])
            else:
                args.append(self.argument(inputs[i] if kind == "in" else outputs[i], only_meta))
        return args

    def argument(self, value: Value, only_meta: bool) -> Any:
        """A saved value as a rule takes it.  One whose values are not read need not be carried into a region."""
        if not only_meta:
            return self.tensor(value)
        if self.pin or self.place.is_free(value):
            return self.place.see(value)
        return Meta(value.shape, value.dtype)

    def tensor(self, value: Value) -> Tensor:
        """The handle on a value, as seen from where gradients are written."""
        if value not in self.handles:
            seen = handle(self.place.see(value))
            seen.stop_gradient = value.stop_gradient
            self.handles[value] = seen
        return self.handles[value]

    # ------------------------------------------------------------------------------------------------- loops
    def loop(self, op: Operation) -> None:
        """The gradient of a `pd_op.while`, given to what it starts with and to what its body reads from around it."""
        if any(is_inside(v, op) for v in self.grads):
            raise NotImplementedError(user_error(op, ONCE))
        returned = self.taken_back(op)
        gs = [self.total(r) if r in self.reached and r in self.grads else None for r in op.results()]
        if returned or any(g is not None for g in gs):
            self.distribute(loop_gradient(self, op, gs, returned))

    def distribute(self, gradients: list[tuple[Value, Tensor]]) -> None:
        """Give what the gradient of an operation with regions has found."""
        if self.notice is not None and gradients:
            self.notice(gradients[0][1].payload.get_defining_op(), [g for _, g in gradients])
        for value, g in gradients:
            if value in self.reached:           # a loop may start with something that wants none
                self.give(value, g)

    # ------------------------------------------------------------------- gradients of what was popped elsewhere
    def taken_back(self, op: Operation, block: Block | None = None) -> list[Returned]:
        """What has come back for the regions of `op` (for one of its blocks)."""
        found = [r for r in self.returned if is_inside(r.anchor(), op, block)]
        self.returned = [r for r in self.returned if r not in found]
        return found

    def receive(self, returned: list[Returned]) -> None:
        """In the gradient of the region: pop, and give."""
        for each in returned:
            pop = self.trace.build.build("cf.tuple_pop", [each.outlet], {}, each.types())
            for item, result in zip(each.items, pop.results(), strict=True):
                if isinstance(item, Returned):
                    self.returned.append(Returned(item.items, result))
                else:
                    result.stop_gradient = not current().grad_enabled
                    self.give(item, handle(result))

    def send_back(self, grad_op: Operation, values: list[Value], outside: Walk) -> None:
        """At the end of a region of `grad_op`: push the gradients of `values`, which lie in other regions, and the
        stacks that came back here for such; the walk around knows of them then."""
        regions: dict[Any, list[Value | Returned]] = {}        # each has its own gradient, hence its own stack
        for value in values:
            regions.setdefault(value.parent_block(), []).append(value)
        regions |= {each: [each] for each in self.returned}
        for items in regions.values():
            assert grad_op.parent is not None
            _, inlet, outlet = create_stack(Builder(grad_op.parent, grad_op))
            pushed = [x.outlet if isinstance(x, Returned) else self.trace.value(self.total(x).payload)  # type: ignore
                      for x in items]
            self.trace.build.build("cf.tuple_push", [inlet, *pushed])
            outside.returned.append(Returned(items, outlet))

    # ---------------------------------------------------------------------------------------------- branches
    def branch(self, op: Operation) -> None:
        """The gradient of a `pd_op.if`, given to what its regions read from around it."""
        popped = {v: self.total(v) for v in list(self.grads) if is_inside(v, op)}
        gs = [self.total(r) if r in self.reached and r in self.grads else None for r in op.results()]
        if popped or any(g is not None for g in gs) or any(is_inside(r.anchor(), op) for r in self.returned):
            self.distribute(self.branch_gradient(op, gs, popped))

    def branch_gradient(self, op: Operation, gs: list[Tensor | None], popped: dict[Value, Any],
                        ) -> list[tuple[Value, Tensor]]:
        """Append the `pd_op.if` that is the gradient of `op`; returns what it yields, by the value it belongs to.

        gs: the gradients of the results.  popped: the gradients of values inside of the regions, which were popped
        elsewhere (second derivatives: the first gradient popped them, and was differentiated before this).
        """
        build = self.trace.build
        grad_op = build.build("pd_op.if", [self.place.see(op.operand_source(0))], from_line(op), num_regions=2)
        walks: list[tuple[Block, Walk, Carried]] = []
        for forward, region in zip(op.regions, grad_op.regions, strict=True):
            block, target = forward.front(), region.add_block()
            with self.trace.inside(target):
                carried = Carried(self.trace.program, block, target, self.place)
                walk = self.within(carried)
                end = block.back()
                for value, g in zip([] if end is None else end.operands_source(), gs, strict=False):
                    if g is not None and value in self.reached:
                        walk.give(value, g)
                for value, g in popped.items():
                    if is_inside(value, op, block):
                        walk.give(value, g)
                walk.receive(self.taken_back(op, block))
                walk.block(block)
            walks.append((target, walk, carried))
        # what is left belongs to values from around the regions, and to values pushed in other regions
        owners = list(dict.fromkeys(v for _, walk, _ in walks for v in walk.grads))
        around = set(captured(op))
        yields: list[list[Value]] = []
        for target, walk, carried in walks:
            with self.trace.inside(target):
                totals = [(v, walk.total(v)) for v in owners]
                yields.append([(zeros(walk.tensor(v) if v in around else v) if g is None else g).payload
                               for v, g in totals])
                walk.send_back(grad_op, [], self)
                build.build("cf.yield", yields[-1])
            carried.push()
        for value, *both in zip(owners, *yields, strict=True):
            result = grad_op.add_result(value.type())
            result.stop_gradient = all(y.stop_gradient for y in both)
        return [(v, handle(r)) for v, r in zip(owners, grad_op.results(), strict=True)]
