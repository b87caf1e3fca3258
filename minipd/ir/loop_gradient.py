"""The gradient of a loop is a loop, over its iterations from the last to the first.

    forward                                        gradient
    h_0 = x;  h_t+1 = body(h_t, w)                 g_n = dL/dh_n;  G = 0
                                                   (g_t, dw) = the body's gradient rules at h_t, of g_t+1;  G += dw
    pushes what the rules need of iteration t      pops it

What it carries: for every variable that a gradient reaches, the gradient by its value before the iteration at hand;
and for everything that the body reads from around it, the sum of its gradients over the iterations so far.  It runs as
often as there is something to pop, so a body that pushes nothing of use still pushes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.block import Block
from minipd.ir.builtin import yielded
from minipd.ir.carried import CarriedEach, Returned
from minipd.ir.operation import Operation, captured
from minipd.ir.trace import Trace, handle
from minipd.ir.types import DenseTensorType
from minipd.ir.value import Value
from minipd.ops.creation import full_like
from minipd.ops.math import AddN

if TYPE_CHECKING:
    from minipd.ir.backward import Walk

__all__: list[str] = []

ONCE = ("expected gradients of what is in this loop from the gradient of the loop, got one from outside, which is "
        "popped once and not in every iteration")
ONE_BOOL = DenseTensorType((1,), np.dtype(np.bool_))


def loop_gradient(walk: Walk, op: Operation, gs: list[Tensor | None], returned: list[Returned],
                  ) -> list[tuple[Value, Tensor]]:
    """Append the `pd_op.while` that is the gradient of `op`; returns the gradients, by the values they belong to: what
    the loop starts with (which need not want one), and what its body reads.  A value may come more than once.

    gs: the gradients of the results.  returned: those of values in the body.
    """
    trace, body = walk.trace, op.regions[0].front()
    # the variables that a gradient reaches, and the values around that it reaches
    carried = [(i, arg) for i, arg in enumerate(body.args()) if arg in walk.reached]
    around = [v for v in captured(op) if v in walk.reached and v.dtype in dtypes.INEXACT]
    inputs = op.operands_source()[1:]
    start = [g if (g := gs[i]) is not None else _none_yet(walk, inputs[i]) for i, _ in carried]
    start += [_none_yet(walk, v) for v in around]
    values = [trace.value(g.payload) for g in start]
    place = CarriedEach(op, walk.place)
    grad_op = trace.build.build("pd_op.while", [_more(trace, place), *values], from_line(op),
                                [v.type() for v in values], 1)
    target = grad_op.regions[0].add_block()
    place.enter(target)
    given = [_open(target.add_arg(v.type())) for v in values]
    with trace.inside(target):
        inner = walk.within(place)
        ends = yielded(body)[1:]
        for (i, _), g in zip(carried, given, strict=False):
            if ends[i] in walk.reached:
                inner.give(ends[i], g)
        inner.receive(returned)
        inner.block(body)
        found: list[Tensor] = []
        for (_, arg), g in zip(carried, given, strict=False):
            total = inner.total(arg)
            found.append(full_like(g, 0.0) if total is None else total)
        for value, g in zip(around, given[len(carried):], strict=True):
            total = inner.total(value)
            found.append(g if total is None else AddN(g, total))
        inner.send_back(grad_op, list(inner.grads), walk)
        trace.build.build("cf.yield", [_more(trace, place), *(trace.value(g.payload) for g in found)])
    place.push()
    owners = [*(inputs[i] for i, _ in carried), *around]
    return [(value, _open(result)) for value, result in zip(owners, grad_op.results(), strict=True)]


def _none_yet(walk: Walk, value: Value) -> Tensor:
    return zeros(walk.tensor(value) if walk.place.is_free(value) else value)


def _more(trace: Trace, place: CarriedEach) -> Value:
    """Whether an iteration is still to be undone."""
    attributes = {"stop_gradient": [True]}
    return trace.build.build("cf.has_elements", [place.stack], attributes, [ONE_BOOL]).result(0)


def _open(value: Value) -> Tensor:
    """A handle on a gradient, which can be differentiated again if gradients are recorded."""
    value.stop_gradient = not current().grad_enabled
    return handle(value)


def from_line(op: Operation) -> dict[str, Any]:
    """The user's line that a gradient belongs to: that of the operation it is the gradient of."""
    return {"op_callstack": op.attributes.get("op_callstack")}


def is_inside(value: Value, op: Operation, block: Block | None = None) -> bool:
    """Whether a value is defined in a region of `op` (in `block` or within it, if given), at any depth."""
    at = value.parent_block()
    while at is not None and at.parent_op is not op:
        at = at.parent_block
    return at is not None and (block is None or at is block)


def zeros(like: Any) -> Tensor:
    """Zeros in the shape of a tensor, or of a value that cannot be seen from here."""
    return full_like(like if isinstance(like, Tensor) else Tensor(Meta(like.shape, like.dtype)), 0.0)
