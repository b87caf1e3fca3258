"""The backward engine: iterative, largest sequence number first, one call per recorded gradient rule.

Invariant: a gradient that enters a rule, or a leaf, has the shape, dtype and placements of its primal, where a Partial
placement of the primal reads as Replicate.  (`match` sees to the placements; it is the identity on one rank.)  Only
leaves keep a Partial gradient, so that several backward passes are summed before anything is communicated.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.autograd.tape import Node, node_of, version_of
from minipd.framework.context import using
from minipd.framework.meta import describe
from minipd.framework.row import ROWS, VjpCall
from minipd.framework.tensor import Tensor
from minipd.ops.creation import Assign, full_like

__all__ = ["backward", "grad"]


def saved_arguments(call: VjpCall, args: list, node: Node, track: bool) -> list:
    """The arguments of a gradient rule: saved values become Tensors again, with their history if `track`."""
    return [_unpack(a, kind, only_meta, node, track) for (kind, _, only_meta), a in zip(call.plan, args, strict=True)]


def _unpack(arg: Any, kind: str, only_meta: bool, node: Node, track: bool) -> Any:
    if kind == "attr" or only_meta and kind != "all":
        return arg
    if kind == "all":
        return [_unpack(a, "in", only_meta, node, track) for a in arg]
    if type(arg) is not tuple:
        return arg                                  # a Python number
    payload, source, index, owner, version = arg
    found = version_of(owner)
    if found != version and not getattr(type(payload), "traced", False):
        name = owner.name if isinstance(owner, Tensor) else f"(the result of {node.row.name})"  # type: ignore[union-attr]
        raise RuntimeError(
            f"tensor {name} {describe(payload)} was saved for the gradient of {node.row.name} and "  # type: ignore
            f"modified in place afterwards: expected version {version}, found {found}. Compute the in-place result out "
            "of place, or write before the value is used, or give the operator a clone()")
    t = Tensor(payload)
    if track:
        t.node = node if kind == "out" else source
        t.index = index
        t.stop_gradient = t.node is None
    return t


def _rule_results(call: VjpCall, got: Any, node: Node) -> list[tuple[int, Any]]:
    if call.target is not None:
        return [(call.target, got)]
    got = got if isinstance(got, (tuple, list)) else (got,)
    if len(got) != len(node.edges):
        raise RuntimeError(f"vjp of {node.row.name}: expected {len(node.edges)} gradients, one per input (None where "  # type: ignore
                           f"there is none), got {len(got)}")
    return list(enumerate(got))


def run_backward(roots: Sequence[Tensor], grads: Sequence[Tensor], wanted: Sequence[Tensor] = (),
                 retain_graph: bool = False, create_graph: bool = False) -> list[Tensor | None]:
    """Push `grads` from `roots` to the leaves.  Gradients of `wanted` are returned; with none wanted, they are added
    to the leaves' `.grad`.

    Raises: RuntimeError where the graph was freed by an earlier pass, or a saved value was modified in place.
    """
    want = {(node_of(w), w.index): i for i, w in enumerate(wanted)}
    result: list[Tensor | None] = [None] * len(wanted)
    lent = {id(g.payload) for g in grads}       # arrays that somebody else holds too; see `_owned`
    pending: dict[Node, list] = {}
    heap: list[tuple[int, Node]] = []

    def give(node: Node, index: int, g: Tensor) -> None:
        slots = pending.get(node)
        if slots is None:
            slots = pending[node] = [None] * node.n_out
            heapq.heappush(heap, (-node.seq, node))
        slots[index] = g if slots[index] is None else slots[index] + g

    with using(grad=create_graph):
        for r, g in zip(roots, grads, strict=True):
            give(node_of(r), r.index, g)
        while heap:
            _, node = heapq.heappop(heap)
            gs = pending.pop(node)
            if node.metas is not None and node.row is not None and not node.row.raw_gradient:
                gs = [g if g is None or m is None else match(g, m) for g, m in zip(gs, node.metas, strict=True)]
            if node.hooks:
                for i, functions in node.hooks.items():
                    for hook in functions:
                        if gs[i] is not None:
                            replaced = hook(gs[i])
                            if replaced is not None:
                                gs[i] = replaced
                                lent.add(id(replaced.payload))
            for i, g in enumerate(gs):
                at = want.get((node, i))
                if at is not None:
                    result[at] = g if g is None else _owned(g, lent)
            if node.leaf is not None:
                if not wanted:
                    node.leaf.grad = _accumulated(node.leaf.grad, gs[0], lent)
                continue
            if node.saved is None:
                raise RuntimeError(f"backward through {node.row.name} a second time, but what it had saved was freed "  # type: ignore
                                   "by the first: call the first backward(retain_graph=True)")
            incoming = gs if node.row.multi else gs[0]                                           # type: ignore
            for call, args in zip(node.calls, node.saved, strict=True):
                got = call.fn(incoming, *saved_arguments(call, args, node, create_graph))
                for i, g in _rule_results(call, got, node):
                    edge = node.edges[i]
                    if edge is not None and g is not None:
                        if any(g is x for x in gs):
                            lent.add(id(g.payload))
                        give(edge[0], edge[1], g)
            if not (retain_graph or create_graph):
                node.saved = None
    return result


def match(g: Tensor, like: Any) -> Tensor:
    """`g` with the placements of its primal."""
    return ROWS["match"](g, Tensor(like)) if hasattr(like, "placements") else g


def _accumulated(old: Tensor | None, g: Tensor, lent: set[int]) -> Tensor:
    if old is None:
        g = _owned(g, lent)
        return g if not g.stop_gradient else Tensor(g.payload)
    return old + g


def _owned(g: Tensor, lent: set[int]) -> Tensor:
    """The gradient in memory of its own.  Rules pass on what they are given where they can (both operands of `+` get
    the very same array) or a view of it; whoever then scales one gradient in place must not change the others.
    """
    if type(g.payload) is not np.ndarray or g.payload.base is None and id(g.payload) not in lent:
        return g
    return Assign(g)


def _root_gradient(y: Tensor, g: Tensor | None, who: str) -> Tensor:
    if y.stop_gradient:
        raise RuntimeError(f"{who}: tensor {y.name} {describe(y.payload)} has stop_gradient=True: nothing that made it "
                           "wants a gradient; set stop_gradient=False on the inputs before computing it")
    if g is None:
        return full_like(Tensor(y.payload), 1.0)
    if tuple(g.shape) != tuple(y.shape):
        raise ValueError(f"{who}: the gradient given for {y.name} has shape {list(g.shape)}, expected "
                         f"{list(y.shape)}, the shape of the tensor")
    return g


def _as_list(x: Any) -> list:
    return list(x) if isinstance(x, (list, tuple)) else [x]


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool = False) -> None:
    """Paddle's `paddle.autograd.backward`: add the gradients of `tensors` to `.grad` of the leaves they depend on.

    tensors: a Tensor or a list.  grad_tensors: the gradients of these (None: ones).  The graph is freed unless
    `retain_graph`.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([1.0, 2.0], stop_gradient=False)
    >>> backward([(x * x).sum()])
    >>> x.grad.tolist()
    [2.0, 4.0]
    """
    ys = _as_list(tensors)
    given = _as_list(grad_tensors) if grad_tensors is not None else [None] * len(ys)
    if len(given) != len(ys):
        raise ValueError(f"backward: expected {len(ys)} gradients, one per tensor (None for ones), got {len(given)}")
    gs = [_root_gradient(y, g, "backward") for y, g in zip(ys, given, strict=True)]
    run_backward(ys, gs, retain_graph=retain_graph)


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool = False,
         no_grad_vars: Any = None) -> list[Tensor | None]:
    """Paddle's `paddle.grad`: the gradients of `outputs` with respect to `inputs`, leaving `.grad` alone.

    create_graph: record the computation of the gradients, so that they can be differentiated again.
    Raises: ValueError for an input that the outputs do not depend on, unless `allow_unused` (then None).

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor(3.0, stop_gradient=False)
    >>> (dx,) = grad(x * x * x, x, create_graph=True)
    >>> (ddx,) = grad(dx, x)
    >>> dx.item(), ddx.item()
    (27.0, 18.0)
    """
    if not only_inputs:
        raise ValueError("grad: only_inputs=False is not supported (nor in Paddle); use backward() to fill .grad")
    ys, xs = _as_list(outputs), _as_list(inputs)
    given = _as_list(grad_outputs) if grad_outputs is not None else [None] * len(ys)
    blocked = _as_list(no_grad_vars) if no_grad_vars is not None else []
    for x in xs:
        if x.stop_gradient:
            raise RuntimeError(f"grad: input {x.name} has stop_gradient=True; set it to False before computing")
    gs = [_root_gradient(y, g, "grad") for y, g in zip(ys, given, strict=True)]
    keep = create_graph if retain_graph is None else retain_graph
    with _blocked(blocked):
        result = run_backward(ys, gs, xs, keep, create_graph)
    for x, g in zip(xs, result, strict=True):
        if g is None and not allow_unused:
            raise ValueError(f"grad: the outputs do not depend on input {x.name} {describe(x.payload)}; pass "
                             "allow_unused=True to get None for it")
    return result


class _blocked:
    """Gradients do not flow through these tensors for a while: their edges lead nowhere."""

    def __init__(self, tensors: list[Tensor]):
        self.nodes = [(node_of(t), t.index) for t in tensors]

    def __enter__(self) -> None:
        self.hooked = []
        for node, index in self.nodes:
            hooks = node.hooks = node.hooks or {}
            hooks.setdefault(index, []).append(_zero)
            self.hooked.append(hooks[index])

    def __exit__(self, *exc: object) -> None:
        for hooks in self.hooked:
            hooks.remove(_zero)


def _zero(g: Tensor) -> Tensor:
    return full_like(g, 0.0)


class RemovableHandle:
    """What `register_hook` returns: `remove()` takes the hook off."""

    def __init__(self, hooks: list, hook: Any):
        self.hooks, self.hook = hooks, hook

    def remove(self) -> bool:
        """Take the hook off; False if it was off already."""
        if self.hook in self.hooks:
            self.hooks.remove(self.hook)
            return True
        return False


def register_hook(x: Tensor, hook: Any) -> RemovableHandle:
    """Call `hook(grad)` when the gradient of `x` is complete; what it returns, if not None, replaces the gradient.

    Raises: RuntimeError if `x` does not take part in differentiation.
    """
    if x.stop_gradient:
        raise RuntimeError(f"register_hook: tensor {x.name} has stop_gradient=True, so it gets no gradient; set "
                           "stop_gradient=False first")
    node = node_of(x)
    node.hooks = node.hooks or {}
    return RemovableHandle(node.hooks.setdefault(x.index, []), hook)


