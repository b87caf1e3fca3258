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

from minipd.autograd.tape import record_call
from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.backward import Place, Walk, spread
from minipd.ir.operation import Operation, captured
from minipd.ir.structure import Structure, flatten
from minipd.ir.trace import Trace
from minipd.ir.value import Value
from minipd.ops.creation import full

__all__ = ["cond"]


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
    if pred.payload.dtype.name != "bool" or tuple(pred.shape) not in ((), (1,)):
        raise TypeError(f"cond: expected a bool tensor of one element, got {describe(pred.payload)}; compare it with "
                        "something, or reduce it")
    return _traced(ground, pred, true_fn, false_fn)


def _traced(trace: Trace, pred: Tensor, true_fn: Callable | None, false_fn: Callable | None) -> Any:
    """Write the `pd_op.if`."""
    op = trace.build.build("pd_op.if", [trace.value(pred.payload)], num_regions=2)
    handles: dict[Value, Tensor] = {}
    results: list[tuple[list[Value], Structure]] = []
    for region, fn in zip(op.regions, (true_fn, false_fn), strict=True):
        with trace.inside(region.add_block()) as scope:
            leaves, structure = flatten(_as_tensors(None if fn is None else fn()))
            for leaf in leaves:
                if isinstance(leaf.payload, Value):
                    trace.meet(leaf)            # a branch may return what it found outside
            values = [trace.value(trace.stopped(leaf).payload) for leaf in leaves]
            trace.build.build("cf.yield", values)
            results.append((values, structure))
        handles.update(scope.handles)
    _check_alike(*results)
    outs = []
    for left, right in zip(results[0][0], results[1][0], strict=True):
        result = op.add_result(left.type())
        result.stop_gradient = left.stop_gradient and right.stop_gradient or not current().grad_enabled
        outs.append(Tensor(result))
        outs[-1].stop_gradient = result.stop_gradient
    if not all(o.stop_gradient for o in outs):
        _record(trace, op, handles, outs)
    return results[0][1].rebuild(outs)


def _as_tensors(tree: Any) -> Any:
    """Numbers that a branch returns become tensors: which branch runs is not known yet."""
    if isinstance(tree, (bool, int, float)):
        return full([], tree)
    if isinstance(tree, (list, tuple)) and not hasattr(tree, "_fields"):
        return type(tree)(map(_as_tensors, tree))
    if isinstance(tree, dict):
        return {k: _as_tensors(v) for k, v in tree.items()}
    return tree


def _check_alike(true: tuple[list[Value], Structure], false: tuple[list[Value], Structure]) -> None:
    """Both branches give the same kinds of results."""
    if true[1] != false[1]:
        raise TypeError(f"cond: expected both branches to return the same structure, got {true[1]} from true_fn and "
                        f"{false[1]} from false_fn; let both return the same number of tensors in the same nesting")
    for i, (left, right) in enumerate(zip(true[0], false[0], strict=True)):
        if left.type() != right.type():
            raise TypeError(f"cond: expected both branches to return the same types, got {left.type()} from true_fn "
                            f"and {right.type()} from false_fn for result {i}; reshape or cast one of them")


class _Branch:
    """What the tape wants to know of a recorded call, for a whole `pd_op.if`."""

    name, multi, raw_gradient = "if", True, True


def _record(trace: Trace, op: Operation, handles: dict[Value, Tensor], outs: list[Tensor]) -> None:
    """Put the branch on the tape: its inputs are what its regions read from around it."""
    outer = [v for v in captured(op) if v in handles and not handles[v].stop_gradient and v.dtype in dtypes.INEXACT]

    def vjp(gs: list[Tensor | None]) -> list[Tensor | None]:
        if current().grad_enabled:
            raise NotImplementedError(
                "cond: expected a first derivative, got create_graph=True on the tape while tracing; for second "
                "derivatives through cond use ir.backward.append_backward(..., create_graph=True) on the program")
        reached = set(outer)
        for block in op.blocks():
            spread(block, reached)
        found = Walk(trace, reached, False, Place()).branch_gradient(op, gs, {})
        return [found.get(v) for v in outer]

    record_call(_Branch, [handles[v] for v in outer], outs, vjp)
