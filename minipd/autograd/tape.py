"""The tape: the interpreter that remembers.

A node per recorded operator call: where its inputs came from (edges), which gradient rules to call, and what those
rules need, taken from the rules' own signatures.  The tape sees handles and global values, whatever computes below.

Invariants:
* `seq` grows with time, so "largest seq first" is a reverse topological order of any part of the graph.
* A node never holds the handle of its own result (that would be a cycle): a saved result is its payload and version.
* Only the rules of inputs that want a gradient are recorded, and only they save.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.context import RankContext, explain, install_tape, kernel_of
from minipd.framework.meta import Meta
from minipd.framework.row import Row, VjpCall
from minipd.framework.tensor import Storage, Tensor, shared
from minipd.framework.views import check_fresh, share_view

__all__: list[str] = []

_next_seq = itertools.count().__next__


class Node:
    """One recorded call.  A leaf's node has `leaf` set and no row; it only collects the gradient.

    metas: per result, what a gradient must look like before it enters a rule (None for arrays: nothing to adjust).
    hooks: result index -> functions that see, and may replace, the gradient of that result.
    saved: one argument list per call; None once a backward pass has freed it.
    """

    __slots__ = ("calls", "edges", "hooks", "leaf", "metas", "n_out", "row", "saved", "seq")

    def __init__(self, row: Row | None, edges: list, calls: tuple[VjpCall, ...], saved: list | None, n_out: int):
        self.row, self.edges, self.calls, self.saved, self.n_out = row, edges, calls, saved, n_out
        self.seq = _next_seq()
        self.leaf: Tensor | None = None
        self.metas: tuple | None = None
        self.hooks: dict[int, list] | None = None

    def __lt__(self, other: Node) -> bool:      # only ever compared by heapq on equal seq, which does not happen
        return False

    def __repr__(self) -> str:
        return f"leaf {self.leaf.name}" if self.leaf is not None else f"node of {self.row.name}"  # type: ignore


def node_of(x: Tensor) -> Node:
    """The node that collects the gradient of `x`: the recorded call's, or, for a leaf, one made now."""
    if x.node is None:
        node = Node(None, [], (), [], 1)
        node.leaf = x
        node.metas = metas_of((x,))
        x.node = node
    return x.node


def metas_of(outs: tuple[Tensor, ...]) -> tuple | None:
    """What the gradients of `outs` must match: placements, for distributed payloads; None where there is nothing."""
    if type(outs[0].payload) is np.ndarray:
        return None
    metas = tuple(o.payload.meta() if hasattr(o.payload, "placements") else None for o in outs)
    return None if all(m is None for m in metas) else metas


# A saved value is a plain tuple, (payload, node, index, owner, version): the payload, where its own gradient goes
# (None: nowhere), and who tells the version of its memory: the input's handle, or the storage of an own result.


def version_of(owner: Tensor | Storage) -> int:
    """The current version of the memory that a saved value's `owner` stands for."""
    if isinstance(owner, Tensor):
        return 0 if owner.storage is None else owner.storage.version
    return owner.version


def tape(ctx: RankContext) -> Callable:
    """The handler of a context whose gradients are on."""
    run, direct = ctx.run, ctx.direct
    kernels_by_num = dtypes.CODE_OF_NUM
    ndarray = np.ndarray

    def handler(row: Row, inputs: Any, attrs: dict) -> Any:
        payloads = []
        need, bit, stale = 0, 1, False
        for x in inputs:
            if isinstance(x, Tensor):
                payloads.append(x.payload)
                if not x.stop_gradient:
                    need |= bit
                if x.storage is not None:
                    stale = True
            else:
                payloads.append(x)
            bit += bit
        if stale:
            for x in inputs:
                if isinstance(x, Tensor):
                    check_fresh(x, row)
        if direct and not row.comm:
            try:
                kernel = row.kernels[kernels_by_num[payloads[row.key].dtype.num]]
            except (AttributeError, IndexError):
                kernel = kernel_of(row, payloads)
            try:
                out = kernel(*payloads, **attrs)
            except Exception as error:
                explain(row, payloads, attrs, error)
                raise
            if type(out) is not ndarray and not row.multi:
                out = np.asarray(out)
        else:
            out = run(row, payloads, attrs)
        if row.multi:
            outs = tuple(map(Tensor, out))
            result: Any = outs
        else:
            result = Tensor(out)
            outs = (result,)
        if row.view:
            for o in outs:
                share_view(inputs[0], o, row, attrs)
        if need and row.has_vjp:
            record(row, inputs, attrs, outs, need)
        return result
    return handler


def record(row: Row, inputs: Any, attrs: dict, outs: tuple[Tensor, ...], need: int) -> None:
    """Put the call on the tape: `outs` now have a history."""
    calls = row.calls(need)
    if not calls:
        return
    edges: list[Any] = []
    for x in inputs:
        if isinstance(x, Tensor) and not x.stop_gradient:
            edges.append((x.node or node_of(x), x.index))
        else:
            edges.append(None)
    saved = []
    for _, _, plan in calls:
        args: list[Any] = []
        for kind, i, only_meta in plan:
            if kind == "in":
                x = inputs[i]
                args.append(_keep(x, only_meta))
            elif kind == "out":
                o = outs[i]
                if only_meta:
                    args.append(Meta(o.payload.shape, o.payload.dtype))
                else:
                    storage = shared(o)
                    args.append((o.payload, None, i, storage, storage.version))
            elif kind == "attr":
                args.append(attrs[i] if i in attrs else row.attrs[i])
            else:
                args.append([_keep(x, only_meta) for x in inputs])
        saved.append(args)
    node = Node(row, edges, calls, saved, len(outs))
    node.metas = metas_of(outs)
    for i, o in enumerate(outs):
        if o.payload.dtype in dtypes.FLOATS:
            o.node, o.index, o.stop_gradient = node, i, False


def _keep(x: Any, only_meta: bool) -> Any:
    if not isinstance(x, Tensor):
        return x
    if only_meta:
        p = x.payload
        return p.meta() if hasattr(p, "placements") else Meta(p.shape, p.dtype)
    s = x.storage
    return x.payload, None if x.stop_gradient else x.node, x.index, x, 0 if s is None else s.version


install_tape(tape)
