"""The backward engine: iterative, largest sequence number first, one call per recorded gradient rule.

Invariant: a gradient that enters a rule, or a leaf, has the shape, dtype and placements of its primal, where a Partial
placement of the primal reads as Replicate.  (`match` sees to the placements; it is the identity on one rank.)  Only
leaves keep a Partial gradient, so that several backward passes are summed before anything is communicated.

Complex numbers: a rule returns J^T g, the transpose of the derivative times g, whether the numbers are real or complex;
so the rules of real functions hold as they are.  What users see (`.grad`, hooks, `PyLayer`) is Paddle's gradient, its
conjugate: the direction in which a real loss L grows fastest, dL = Re(sum of conj(grad) dx).  `conj` stands wherever
one becomes the other; of a real gradient it is the gradient itself.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any
from weakref import ref

import numpy as np

from minipd.autograd.hooks import through_hooks
from minipd.autograd.saved_hooks import Packed
from minipd.autograd.tape import Node, meta_of, node_of, open_call
from minipd.framework.context import Kernels, using
from minipd.framework.meta import Meta, describe, is_traced
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Storage, Tensor
from minipd.ops.cast import cast
from minipd.ops.complex import conj
from minipd.ops.creation import Assign, full_like

__all__ = ["backward", "grad"]

new = object.__new__
Slot = tuple[Node, int]         # one result of one node: what a gradient belongs to


class Pass:
    """One backward pass.

    retain_graph: keep saved values for another pass.  create_graph: record the rules' own operators, so that the
    gradients can be differentiated.  want: slots whose gradient is asked for; with none, gradients are added to the
    leaves' `.grad`.  within: the only nodes to visit (None: all).  blocked: slots at which gradients end.
    """

    def __init__(self, retain_graph: bool, create_graph: bool, want: frozenset[Slot] = frozenset(),
                 within: set[Node] | None = None, blocked: frozenset[Slot] = frozenset()):
        self.free = not (retain_graph or create_graph)
        self.create_graph, self.want, self.within, self.blocked = create_graph, want, within, blocked
        self.pending: dict[Node, list[Tensor | None]] = {}      # node -> its gradients so far, one per result
        self.heap: list[tuple[int, Node]] = []                  # the keys of `pending`, newest first
        self.found: dict[Slot, Tensor] = {}
        self.lent: dict[int, ref] = {}                          # arrays that somebody else may hold, by id: `owned`

    def run(self, roots: list[tuple[Tensor, Tensor]]) -> None:
        """From the roots, with their gradients, until nothing is pending.

        All users of a node are newer than it, so when it is the newest node left, its gradient is complete.
        """
        context = current()
        if context.ground.lazy:             # hooks and rules of the user's see everything happen in its order
            context.ground.settle("a backward pass")
            with using(ground=Kernels(), amp=None):
                return self.run(roots)
        if context.amp is not None:         # a gradient has its primal's dtype, whatever surrounds `backward()`
            with using(amp=None):
                return self.run(roots)
        recording = context.grad_enabled
        context.set_grad_enabled(self.create_graph)
        heap, pending, pop = self.heap, self.pending, heappop
        try:
            for y, g in roots:
                self.give((y.node or node_of(y), y.index), g, [g])
            while heap:
                node = pop(heap)[1]
                gs = pending.pop(node)
                if node.metas is not None or node.hooks is not None or self.want:
                    self.complete(node, gs)
                if node.row is not None:
                    self.call_rules(node, gs)
                elif not self.want:
                    self.arrive(node.leaf(), gs[0])
        finally:
            context.set_grad_enabled(recording)

    def give(self, slot: Slot | None, g: Tensor | None, given: list) -> None:
        """One more contribution to the gradient of `slot`, made from the gradients `given`.

        The contributions to one slot are added up in `pending`; a node goes on the heap once, with the first of them.
        A sum is a new tensor: `g` may be another slot's gradient as well.  For that reason it is `lent` if it
        is one of `given`, passed on as it is.  Nothing is done for a slot that is None or leads nowhere, or if g is
        None.
        """
        if slot is None or g is None or self.within is not None and not self.leads(slot):
            return
        for x in given:
            if x is g:                      # passed on as it is: somebody else may hold it too
                self.lend(g.payload)
        node, index = slot
        gs = self.pending.get(node)
        if gs is not None:
            gs[index] = g if gs[index] is None else added(gs[index], g)
        else:
            gs = self.pending[node] = [None] * node.n_out
            gs[index] = g
            heappush(self.heap, (-node.seq, node))

    def arrive(self, leaf: Tensor | None, g: Tensor) -> None:
        """A leaf's gradient is complete (if the leaf is still there).  As in Paddle, it is a tensor that takes part in
        differentiation."""
        if leaf is not None:
            g = at_home(conj(g), leaf)
            leaf.grad = Tensor(self.owned(g).payload) if leaf.grad is None else added(leaf.grad, g)
            leaf.grad.stop_gradient = False

    def call_rules(self, node: Node, gs: list) -> None:
        """Call the gradient rules that were recorded, and send each result where its input came from."""
        row, edges, within = node.row, node.edges, self.within
        if within is not None and not any(map(self.leads, edges)):
            return                          # the gradient of this node was asked for, nothing behind it
        if node.saved is None:
            raise RuntimeError(f"backward through {row.name} a second time, but what it had saved was freed by the "
                               "first: call the first backward(retain_graph=True)")
        for call, wanted in node.recipe.rules:
            target = call.target
            if target is not None and within is not None and not self.leads(edges[target]):
                continue
            arguments = [gs if row.multi else gs[0]]
            for which in wanted:
                arguments.append(argument(node, which, self.create_graph))
            got = call.fn(*arguments)
            if target is not None:
                self.give(edges[target], got, gs)
                continue
            if len(got) != len(edges):
                raise RuntimeError(f"gradient of {row.name}: expected {len(edges)} gradients, one per input (None "
                                   f"where there is none), got {len(got)}")
            for slot, g in zip(edges, got, strict=True):
                self.give(slot, g, gs)
        exhausts = None if not self.free else getattr(row, "exhausts", None)
        if self.free and (exhausts is None or exhausts(node, gs)):
            node.saved = None

    def leads(self, slot: Slot | None) -> bool:
        """Whether a gradient of `slot` is of use, where only some nodes are visited."""
        return slot is not None and slot[0] in self.within and slot not in self.blocked         # type: ignore[operator]

    def complete(self, node: Node, gs: list) -> None:
        """The gradients with the placements of their primals, after the hooks; those that are asked for are found."""
        for i, g in enumerate(gs):
            if g is None:
                continue
            if node.metas is not None and node.metas[i] is not None and node.row is not None \
                    and not node.row.raw_gradient:
                g = match(g, node.metas[i])
            if node.hooks is not None and i in node.hooks:
                g = conj(through_hooks(node, i, self.owned(conj(g)), not self.want))        # who may write it in place
                self.lend(g.payload)
            if (node, i) in self.want:
                self.found[node, i] = self.owned(conj(g))
            gs[i] = g

    def lend(self, payload: Any) -> None:
        """Somebody else may hold this array.  (It is not kept alive for that, and when it is gone, another may have its
        id.)"""
        if type(payload) is np.ndarray:
            self.lent[id(payload)] = ref(payload)

    def owned(self, g: Tensor) -> Tensor:
        """The gradient in memory of its own.  Rules pass on what they are given where they can (both operands of `+`
        get the very same array) or a view of it; whoever then scales one gradient in place must not change the others.
        """
        p = g.payload
        if type(p) is not np.ndarray:
            return g
        lent = self.lent.get(id(p))
        if p.base is None and (lent is None or lent() is not p):
            return g
        return Assign(g) if self.create_graph else Tensor(p.copy())


def argument(node: Node, which: int | str, track: bool) -> Any:
    """An argument of a gradient rule, as the recipe names it; with its history if `track`."""
    if type(which) is str:
        return node.row.attr(node.attrs, which)
    if which >= 0:                                                          # type: ignore[operator]
        value = node.saved[which]
        if type(value) is list:                                             # the operands of a variadic row
            return [again(node, v, edge if track else None) for v, edge in zip(value, node.edges, strict=True)]
        return again(node, value, node.recipe.source(which, node) if track else None)
    value = node.saved[~which]                                              # type: ignore[operator]
    if type(value) is not tuple:
        return value
    return value[0] if type(value[0]) is np.ndarray else meta_of(Tensor(value[0]))      # an array serves as a meta


def again(node: Node, value: Any, history: Slot | None) -> Any:
    """What was saved, as a Tensor again if it was kept whole, else as a Meta; a Python number is itself.

    value: an entry of `node.saved`: a number, (shape, dtype), (payload, owner, version) or Packed; see `tape.Node`.
    history: the slot that the gradient of a value kept whole goes to, which the Tensor carries; None: nobody will ask
    for it.
    Raises: RuntimeError for a value that was modified in place since, with the tensor's name and both versions.
    """
    if type(value) is Packed:
        return _with_history(value.tensor(), history)
    if type(value) is not tuple:
        return value
    if len(value) == 2:
        return Meta(*value)
    payload, owner, version = value
    storage = owner if type(owner) is Storage else owner.storage
    if storage is not None and storage.version != version and not is_traced(payload):
        name = owner.name if isinstance(owner, Tensor) else f"(the result of {node.row.name})"
        raise RuntimeError(
            f"tensor {name} {describe(payload)} was saved for the gradient of {node.row.name} and modified in place "
            f"afterwards: expected version {version}, found {storage.version}. Compute the in-place result out of "
            "place, or write before the value is used, or give the operator a clone()")
    t = new(Tensor)                         # Tensor(payload), without the frame of its __init__
    t.payload = payload
    return t if history is None else _with_history(t, history)


def _with_history(t: Tensor, history: Slot | None) -> Tensor:
    if history is not None:
        t.node, t.index = history
        t.stop_gradient = False
    return t


def match(g: Tensor, like: Any) -> Tensor:
    """`g` with the placements of its primal."""
    return ROWS["match"](g, Tensor(like)) if hasattr(like, "placements") else g


def added(a: Tensor, b: Tensor) -> Tensor:
    """Two contributions to one gradient.  Distributed ones may be on different meshes, where parts of a model that are
    on different meshes use the same value, or Partial, to be reduced once, when all are there: only `add_n` takes such
    operands as they are."""
    if type(a.payload) is np.ndarray or not (hasattr(a.payload, "placements") or hasattr(b.payload, "placements")):
        return a + b
    return ROWS["add_n"](a, b)


def at_home(g: Tensor, leaf: Tensor) -> Tensor:
    """A leaf's gradient, on the leaf's mesh: it was used on a part of it, perhaps."""
    mesh = getattr(leaf.payload, "mesh", None)
    return g if mesh is None or getattr(g.payload, "mesh", mesh) == mesh else match(g, leaf.payload)


def _roots(outputs: Any, given: Any, who: str) -> list[tuple[Tensor, Tensor]]:
    """Outputs and their gradients, which are ones where none is given."""
    ys = as_list(outputs)
    gs = [None] * len(ys) if given is None else as_list(given)
    if len(gs) != len(ys):
        raise ValueError(f"{who}: expected {len(ys)} gradients, one per output (None for ones), got {len(gs)}")
    return [root_of(y, g, who) for y, g in zip(ys, gs, strict=True)]


def root_of(y: Tensor, g: Any, who: str) -> tuple[Tensor, Tensor]:
    """What a pass starts from: an output and its gradient, ones if g is None."""
    if y.stop_gradient:
        raise RuntimeError(f"{who}: tensor {y.name} {describe(y.payload)} has stop_gradient=True: nothing that "
                           "made it wants a gradient; set stop_gradient=False on the inputs before computing it")
    return y, _ones(y.payload) if g is None else _fitting(y, g, who)


def _ones(like: Any) -> Tensor:
    if type(like) is not np.ndarray:
        return full_like(Tensor(like), 1.0)
    ones = np.empty(like.shape, like.dtype)
    ones.fill(1)
    return Tensor(ones)


def _fitting(y: Tensor, g: Any, who: str) -> Tensor:
    if not isinstance(g, Tensor):
        raise TypeError(f"{who}: expected a Tensor as the gradient of {y.name}, got {type(g).__name__}")
    if tuple(g.payload.shape) != tuple(y.payload.shape):
        raise ValueError(f"{who}: the gradient given for {y.name} has shape {list(g.shape)}, expected "
                         f"{list(y.shape)}, the shape of the tensor")
    return conj(cast(g, y.payload.dtype))


def as_list(x: Any) -> list:
    """A list or tuple as a list, one thing as a list of it."""
    return list(x) if isinstance(x, (list, tuple)) else [x]


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool = False) -> None:
    """Paddle's `paddle.autograd.backward`: add the gradients of `tensors` to `.grad` of the leaves they depend on.

    tensors: a Tensor or a list.  grad_tensors: the gradients of these (None: ones).  The graph is freed unless
    `retain_graph`.

    Raises: RuntimeError where the graph was freed by an earlier pass, or a saved value was modified in place.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([1.0, 2.0], stop_gradient=False)
    >>> backward([(x * x).sum()])
    >>> x.grad.tolist()
    [2.0, 4.0]
    """
    Pass(retain_graph, create_graph=False).run(_roots(tensors, grad_tensors, "backward"))


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool = False,
         no_grad_vars: Any = None) -> list[Tensor | None]:
    """Paddle's `paddle.grad`: the gradients of `outputs` with respect to `inputs`, leaving `.grad` alone.

    Only what lies between outputs and inputs is visited, and freed unless `retain_graph` (default: `create_graph`).
    create_graph: record the computation of the gradients, so that they can be differentiated again.
    no_grad_vars: tensors through which no gradient flows, as if they were constants.
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
    roots, xs = _roots(outputs, grad_outputs, "grad"), as_list(inputs)
    for x in xs:
        if x.stop_gradient and x.node is None:
            raise RuntimeError(f"grad: input {x.name} has stop_gradient=True; set it to False before computing")
    current().ground.settle("paddle.grad")
    for x in xs:
        open_call(x)
    wanted = [(node_of(x), x.index) for x in xs]
    blocked = frozenset((node_of(v), v.index) for v in as_list([] if no_grad_vars is None else no_grad_vars))
    within = between([node_of(y) for y, _ in roots], {node for node, _ in wanted}, blocked, create_graph)
    run = Pass(create_graph if retain_graph is None else retain_graph, create_graph, frozenset(wanted), within, blocked)
    if all(node in within for node, _ in wanted) or allow_unused:       # else nothing is freed in vain
        run.run(roots)
    for x, slot in zip(xs, wanted, strict=True):
        if slot not in run.found and not allow_unused:
            raise ValueError(f"grad: the outputs do not depend on input {x.name} {describe(x.payload)}; pass "
                             "allow_unused=True to get None for it")
    return [run.found.get(slot) for slot in wanted]


def between(roots: list[Node], targets: set[Node], blocked: frozenset[Slot], expand: bool = False) -> set[Node]:
    """The nodes on the ways from `roots` to `targets`, both included; no way leads through a blocked slot.

    expand: nodes of whole programs, on the way, hand over to those of their operators, which can be differentiated.
    """
    oldest = min((node.seq for node in targets), default=0)
    users: dict[Node, list[Node]] = {}                  # what can be reached -> from where
    todo = list(roots)
    seen = set(roots)
    while todo:
        node = todo.pop()
        if expand and getattr(node.row, "expand", None) is not None:
            node.row.expand(node)
        for edge in node.edges:
            if edge is not None and edge not in blocked and edge[0].seq >= oldest:
                users.setdefault(edge[0], []).append(node)
                if edge[0] not in seen:
                    seen.add(edge[0])
                    todo.append(edge[0])
    found = {node for node in targets if node in seen}
    todo = list(found)
    while todo:
        for node in users.get(todo.pop(), ()):
            if node not in found:
                found.add(node)
                todo.append(node)
    return found
