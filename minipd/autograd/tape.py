"""The tape: the interpreter that remembers.

A node per recorded operator call: where its inputs came from (edges), which gradient rules to call, and what those
rules need, taken from the rules' own signatures (`Row.recipe`).  The tape sees handles and global values, whatever
computes below.

Invariants:
* `seq` grows with time, so "largest seq first" is a reverse topological order of any part of the graph.
* Only the rules of inputs that want a gradient are recorded, and only they save.
* The graph has no reference cycles, so it is gone when its last handle is: a node never holds the handle of its own
  result (a saved result is its payload and storage), an in-place operator reads through a handle of its own
  (`views.write`), and a leaf's node refers to the leaf weakly.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.autograd.saved_hooks import packed
from minipd.framework import dtype as dtypes
from minipd.framework.context import install_tape
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import Recipe, Row, VjpCall
from minipd.framework.tensor import Tensor, shared
from minipd.framework.views import check_fresh, share_view

__all__: list[str] = []

next_seq = itertools.count().__next__
INEXACT = dtypes.INEXACT
ndarray, new = np.ndarray, object.__new__


class Node:
    """One recorded call.  A leaf's node has `leaf` set and no row; it only collects the gradient.

    edges: per input, (node, result index) that its gradient goes to, or None.
    saved: what the recipe keeps, in its order; None once a backward pass has freed it.  A value that is kept whole is
           (payload, owner, version): the owner, an input's handle or a result's storage, tells the version of that
           memory now; under `saved_tensors_hooks` it is Packed.  An array of which only (shape, dtype) are kept is
           these two; a Python number is itself.
    attrs: the attributes of the call.
    metas: per result, what a gradient must look like before it enters a rule (None for arrays: nothing to adjust).
    hooks: result index -> {number: function that sees, and may replace, the gradient of that result}.
    """

    __slots__ = ("__weakref__", "attrs", "edges", "hooks", "leaf", "metas", "n_out", "recipe", "row", "saved", "seq")

    attrs: dict
    edges: Sequence
    hooks: Any
    leaf: Any       # a weak reference
    metas: Any
    n_out: int
    recipe: Any
    row: Any
    saved: Any
    seq: int

    def __repr__(self) -> str:
        if self.row is not None:
            return f"node of {self.row.name}"
        leaf = self.leaf and self.leaf()
        return "node of a leaf that is gone" if leaf is None else f"node of leaf {leaf.name}"


def new_node(row: Any, recipe: Recipe | None, edges: Sequence, saved: list, attrs: dict, n_out: int) -> Node:
    """A node.  (A function that fills it: the class, called, would cost half as much again.)"""
    node = new(Node)
    node.row, node.recipe, node.edges, node.saved, node.attrs, node.n_out = row, recipe, edges, saved, attrs, n_out
    node.seq = next_seq()
    node.leaf = node.metas = node.hooks = None
    return node


def node_of(x: Tensor) -> Node:
    """The node that collects the gradient of `x`: the recorded call's, or, for a leaf, one made now."""
    if x.node is None:
        x.node = node = new_node(None, None, (), [], {}, 1)
        node.leaf = weakref.ref(x)
        if type(x.payload) is not np.ndarray:
            node.metas = metas_of((x,))
    return x.node


def metas_of(outs: Sequence[Tensor]) -> tuple | None:
    """What the gradients of `outs` must match: placements, for distributed payloads; None where there is nothing."""
    metas = tuple(o.payload.meta() if hasattr(o.payload, "placements") else None for o in outs)
    return None if all(m is None for m in metas) else metas


def tape(run: Callable, hooks: Any = None) -> Callable:
    """The handler that records, over the interpreter function `run`; what it saves goes through `hooks`, if any."""
    save = keep if hooks is None else lambda recipe, inputs, outs: packed(hooks, keep(recipe, inputs, outs))

    def handler(row: Row, inputs: Any, attrs: dict) -> Any:
        payloads: list = []
        edges: list = []
        need, bit = 0, 1
        for x in inputs:
            if isinstance(x, Tensor):
                payloads.append(x.payload)
                storage = x.storage
                if storage is not None and storage.version != x.seen:
                    check_fresh(x, row.name)
                if x.stop_gradient:
                    edges.append(None)
                else:
                    need |= bit
                    edges.append((x.node or node_of(x), x.index))
            else:
                payloads.append(x)
                edges.append(None)
            bit += bit
        out = run(row, payloads, attrs)
        if row.multi:
            result: Any = tuple(map(Tensor, out))
            outs = result
        else:
            result = new(Tensor)            # Tensor(out), without the frame of its __init__
            result.payload = out
            outs = (result,)
        if row.view:
            for o in outs:
                share_view(inputs[0], o, row, attrs)
        if need:
            recipe = row.recipes.get(need) or row.recipe(need)
            if recipe.rules:
                node = new_node(row, recipe, edges, save(recipe, inputs, outs), attrs, len(outs))
                index = 0
                for o in outs:
                    if o.payload.dtype in INEXACT:      # the rest (an argmax) has no gradient
                        o.node, o.index, o.stop_gradient = node, index, False
                    index += 1
                if type(outs[0].payload) is not ndarray:
                    node.metas = metas_of(outs)
        return result
    return handler


def keep(recipe: Recipe, inputs: Any, outs: Sequence[Tensor]) -> list:
    """What `recipe` says to keep of a call."""
    saved: list = []
    for i in recipe.whole:
        x = inputs[i]
        if isinstance(x, Tensor):
            storage = x.storage
            saved.append((x.payload, x, 0 if storage is None else storage.version))
        else:
            saved.append(x)
    for i in recipe.metas:
        x = inputs[i]
        p = x.payload if isinstance(x, Tensor) else x
        saved.append((p.shape, p.dtype) if type(p) is ndarray else meta_of(x))      # a Meta is made when it is read
    for i in recipe.results:
        storage = shared(outs[i])
        saved.append((outs[i].payload, storage, storage.version))
    if recipe.variadic:
        saved.append([meta_of(x) if recipe.variadic == "metas" or not isinstance(x, Tensor) else
                      (x.payload, x, x.inplace_version) for x in inputs])
    return saved


def meta_of(x: Any) -> Any:
    """Shape, dtype and placements of an operand; a Python number is its own."""
    if not isinstance(x, Tensor):
        return x
    p = x.payload
    return Meta(p.shape, p.dtype) if type(p) is ndarray or not hasattr(p, "placements") else p.meta()


def record_call(row: Any, inputs: Sequence[Tensor], outs: Sequence[Tensor], vjp: Callable, *kept: Any) -> Node:
    """Put on the tape what is no single operator: `vjp(gradients of outs, *kept)` returns one gradient (or None) per
    input.  `kept` is freed by a backward pass, as what operators save is.  Returns the node.

    row: anything with `name`, `multi` (True: gradients come as a list), `raw_gradient`.  outs: those without
    `stop_gradient` get a history.
    """
    current().ground.settle(row.name)
    edges = [None if x.stop_gradient else (node_of(x), x.index) for x in inputs]
    recipe = Recipe((), (), (), "", ((VjpCall(vjp, None, ()), tuple(range(len(kept)))),))
    node = new_node(row, recipe, edges, list(kept), {}, len(outs))
    node.metas = metas_of(outs)
    for i, o in enumerate(outs):
        if not o.stop_gradient:
            o.node, o.index = node, i
    return node


def open_call(x: Tensor) -> None:
    """Let `x` be a result of the operator that made it, where its node is that of a whole program: so that its gradient
    is complete, with what other results of the program owe to it."""
    node = x.node
    row = None if node is None else node.row
    if hasattr(row, "expand"):
        if row.expand is not None:          # else it has been
            row.expand(node)
        x.node, x.index = node.attrs.get(x.index, (node, x.index))


install_tape(tape)
