"""`cond`: a branch that the program decides.

Eagerly a branch is Python's own: only the taken function runs.  While tracing, both functions run once, each into a
region of a `pd_op.if`; a region reads what it needs of the blocks around it and yields its results (decision 6):

    (%3) = "pd_op.if" (%2) {stop_gradient:[false]} -> tensor<2x3xf32> {
        (%4) = "pd_op.tanh" (%0) ...
        () = "cf.yield" (%4) {} ...
    } else {
        () = "cf.yield" (%1) {} ...
    }

Its gradient is a second `pd_op.if` (see `ir.backward`), whoever asks: a backward pass of the program, or the tape, for
which the whole branch is one recorded call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.autograd.tape import record_call
from minipd.framework import dtype as dtypes
from minipd.framework.constraints import user_line
from minipd.framework.meta import describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.framework.views import rebind
from minipd.ir.backward import Walk
from minipd.ir.block import Block
from minipd.ir.carried import Place
from minipd.ir.operation import Operation, captured, user_error
from minipd.ir.reach import enter
from minipd.ir.structure import Structure, flatten
from minipd.ir.trace import Trace, handle
from minipd.ir.value import Value
from minipd.ops.creation import full

__all__ = ["cond"]

NUMBERS = (bool, int, float, complex, np.generic)


def cond(pred: Any, true_fn: Callable[[], Any] | None = None, false_fn: Callable[[], Any] | None = None,
         name: str | None = None, return_names: Any = None) -> Any:
    """Paddle's `paddle.static.nn.cond`: the result of `true_fn()` if `pred` is true, else that of `false_fn()`.

    pred: a bool, or a bool tensor of one element.  The functions take no arguments; they read tensors around them, and
    return nested lists, tuples or dicts of tensors, alike in both (None for nothing).
    Raises while tracing: TypeError where the two results differ in structure, shape or dtype.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor(3.0)
    >>> cond(x > 2.0, lambda: x * 2.0, lambda: x).item()
    6.0
    """
    ground = current().ground
    if not isinstance(pred, Tensor) or not isinstance(ground, Trace):
        taken = true_fn if bool(pred) else false_fn
        return None if taken is None else taken()
    check_condition("cond", pred)
    return _traced(ground, pred, true_fn, false_fn)


def check_condition(who: str, pred: Tensor) -> None:
    """Raises: TypeError unless a condition is one bool."""
    if pred.payload.dtype.name != "bool" or tuple(pred.shape) not in ((), (1,)):
        raise TypeError(f"{who}: expected a bool tensor of one element, got {describe(pred.payload)}; compare it with "
                        "something, or reduce it")


def _traced(trace: Trace, pred: Tensor, true_fn: Callable | None, false_fn: Callable | None) -> Any:
    """Write the `pd_op.if`."""
    op = trace.build.build("pd_op.if", [trace.value(pred.payload)], {"op_callstack": (user_line(),)}, num_regions=2)
    handles: dict[Value, Tensor] = {}
    results: list[tuple[list[Value], Structure]] = []
    written: list[dict[int, tuple[Tensor, Tensor]]] = []        # of each branch: id -> (a tensor, what it holds then)
    for region, fn in zip(op.regions, (true_fn, false_fn), strict=True):
        with trace.inside(region.add_block()) as scope:
            try:
                leaves, structure = flatten(as_tensors(None if fn is None else fn()))
                results.append(([value_of(trace, leaf) for leaf in leaves], structure))
            finally:
                written.append(scope.take_back())
        handles.update(scope.handles)
    _check_alike(*results)
    every = {key: x for found in written for key, (x, _) in found.items()}
    for region, (values, _), found in zip(op.regions, results, written, strict=True):
        with trace.inside(region.front()) as scope:
            values += [value_of(trace, found[key][1] if key in found else x) for key, x in every.items()]
            trace.build.build("cf.yield", values)
        handles.update(scope.handles)
    outs = []
    for left, right in zip(results[0][0], results[1][0], strict=True):
        result = op.add_result(left.type())
        result.stop_gradient = left.stop_gradient and right.stop_gradient or not current().grad_enabled
        outs.append(handle(result))
    record(trace, op, [], handles, outs)
    for x, now in zip(every.values(), outs[len(outs) - len(every):], strict=True):
        if x.view_of is None or id(x.view_of[0]) not in every:              # views follow their base
            rebind(x, now, "an in-place write in a branch")
    return results[0][1].rebuild(outs)


def as_tensors(tree: Any) -> Any:
    """Numbers in a nested structure become tensors: which of them it is, is known only when the program runs."""
    if isinstance(tree, NUMBERS):
        return full([], tree.item() if isinstance(tree, np.generic) else tree)
    if isinstance(tree, (list, tuple)) and not hasattr(tree, "_fields"):
        return type(tree)(map(as_tensors, tree))
    if isinstance(tree, dict):
        return {k: as_tensors(v) for k, v in tree.items()}
    return tree


def value_of(trace: Trace, leaf: Tensor) -> Value:
    """The value of a tensor that is yielded, or that a loop starts with: it may be one from around, or from outside."""
    if isinstance(leaf.payload, Value):
        trace.meet(leaf)
    return trace.value(trace.stopped(leaf).payload)


def _check_alike(true: tuple[list[Value], Structure], false: tuple[list[Value], Structure]) -> None:
    """Both branches give the same kinds of results."""
    if true[1] != false[1]:
        raise TypeError(f"cond: expected both branches to return the same structure, got {true[1]} from true_fn and "
                        f"{false[1]} from false_fn; let both return the same number of tensors in the same nesting")
    for i, (left, right) in enumerate(zip(true[0], false[0], strict=True)):
        if (left.shape, left.dtype) != (right.shape, right.dtype):
            raise TypeError(f"cond: expected both branches to return the same types, got {left.type()} from true_fn "
                            f"and {right.type()} from false_fn for result {i}; reshape or cast one of them")


class Recorded:
    """What the tape wants to know of a recorded call, for a whole operation with regions."""

    multi = raw_gradient = True

    def __init__(self, name: str):
        self.name = name


def record(trace: Trace, op: Operation, start: list[Tensor], handles: dict[Value, Tensor], outs: list[Tensor]) -> None:
    """Put an operation with regions on the tape, if a gradient flows through it.

    Its inputs are what a loop starts with (`start`), and what the regions read from around them (`handles`).
    """
    if all(o.stop_gradient for o in outs):
        return
    seen = {v: handles[v] for v in captured(op) if v in handles}
    seen |= {x.payload: x for x in start if isinstance(x.payload, Value)}
    inputs = {v: x for v, x in seen.items() if not x.stop_gradient and v.dtype in dtypes.INEXACT}

    _on_tape(trace, [op], inputs, outs)


def _on_tape(trace: Trace, ops: list[Operation], inputs: dict[Value, Tensor], outs: list[Tensor]) -> None:
    """Record the last of `ops`, whose results are `outs`.

    ops: an operation, and then its gradient: that reads what the operation has pushed, so going back through it goes
    back through both.  inputs: of both.
    """
    last = ops[-1]

    def vjp(gs: list[Tensor | None]) -> list[Tensor | None]:
        reached = set(inputs)
        for op in ops:
            _check_not_repeated(trace, op)
            enter(op, reached)
        walk = Walk(trace, reached, False, Place())
        for result, g in zip(last.results(), gs, strict=True):
            if g is not None and result in reached:
                walk.give(result, g)
        if current().grad_enabled:
            if len(ops) > 1:
                raise NotImplementedError(user_error(
                    ops[0], "expected a first or second derivative, got create_graph=True for a third; for more, "
                            "differentiate the program (ir.backward.append_backward)"))
            seeds = {g.payload: g for g in gs if g is not None and not g.stop_gradient}
            walk.notice = lambda grad_op, results: _on_tape(trace, [*ops, grad_op], inputs | seeds, results)
        for op in reversed(ops):
            (walk.loop if op.name() == "pd_op.while" else walk.branch)(op)
        return [walk.total(v) for v in inputs]

    record_call(Recorded(last.name()), list(inputs.values()), outs, vjp)


def _check_not_repeated(trace: Trace, op: Operation) -> None:
    """What the operation pushes once, a loop that is written now would pop once per iteration."""
    block: Block | None = trace.build.block
    while block is not None and block is not op.parent:
        if block.parent_op is not None and block.parent_op.name() == "pd_op.while":
            raise NotImplementedError(user_error(
                op, "expected its gradient to be asked for where it stands, got a call of grad inside of a loop behind "
                    "it; call grad before the loop, or compute this inside of the loop too"))
        block = block.parent_block
