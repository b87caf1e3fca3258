"""Views and in-place writes (decision 2: mutation lives in bindings).

*Eager.*  A view aliases the memory of its base; the two share a `Storage` with a version counter.  An in-place write
overwrites the memory and raises the version, so that a value saved for a gradient before the write is found out, and so
is a view whose gradient history misses a write through another handle.

*Tracing* (payloads whose class says `traced`).  A program is functional.  A write appends an operation and *rebinds*
the handle.  A view remembers its base and the view operation; writing a view puts it back into its base, and every view
of a rewritten base is taken anew.

A reshape is a view, or a copy that nothing ties to what it was made of; see `layout`.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from minipd.framework.layout import reshape_shares
from minipd.framework.meta import Meta, describe, is_pending
from minipd.framework.rank import current, dispatch
from minipd.framework.row import ROWS, Row
from minipd.framework.tensor import Tensor, aliased, hold, settled, shared

__all__: list[str] = []


def share_view(base: Any, view: Tensor, row: Any, attrs: dict) -> None:
    """`view` is the result of the view operation `row` on `base`: tie the two together."""
    if not isinstance(base, Tensor):
        return
    if type(base.payload) is np.ndarray:
        if base.payload.flags.c_contiguous or np.may_share_memory(base.payload, view.payload) or (
                row.name == "reshape" and _relaid(base, view, row, attrs)):     # else a view of no elements
            storage = base.storage
            if storage is None or storage.root is None:
                storage = aliased(base)
            view.storage = storage
            view.seen = storage.version         # base was found fresh, or no gradient is wanted of the view
            if not base.stop_gradient and base.is_leaf:
                storage.leaf = weakref.ref(base)
    elif not isinstance(base.payload, Meta):
        shares = row.name != "reshape" or reshape_shares(base, attrs["shape"])
        if shares is False:
            return
        if row.name == "expand_as":             # it is taken anew from its base alone
            row, attrs = ROWS["expand"], {"shape": tuple(view.payload.shape)}
        view.view_of = (base, row, attrs, current().grad_enabled)
        if shares is None:
            view.undecided = True
        if base.views is None:
            base.views = []
        base.views.append(weakref.ref(view))


def _relaid(base: Tensor, view: Tensor, row: Any, attrs: dict) -> bool:
    """numpy has copied, because the array of `base` is not row-major.  Whether they are tied all the same.

    Not if base is a view.  If it is a result whose array numpy happened to make in another order, it becomes
    row-major now; unless others share the array, and then writes to either are refused, for one of them would be wrong.
    """
    storage = base.storage
    if storage is None or storage.root is None:
        base.payload = np.ascontiguousarray(base.payload)
        view.payload = row.kernel(base.payload, **attrs)
        return True
    if storage.root is base.payload:
        storage.torn = shared(view).torn = True
    return False


def check_fresh(x: Tensor, what: str) -> None:
    """Raise if the gradient history of `x` misses a write to its memory.  Called where x has not seen the last write.

    It misses a write that has history itself, and, if x is the result of a recorded call, every write that was made
    while operators were recorded.  A write under no_grad changes values only, by intention; and a leaf's gradient
    belongs to whatever its value is.
    """
    s = x.storage
    if s is None or type(x.payload) is not np.ndarray:
        return
    if x.seen < s.tracked or x.seen < s.recorded and not x.stop_gradient and not x.is_leaf:
        raise RuntimeError(
            f"{what}: tensor {x.name} {describe(x.payload)} shares memory with a tensor that was written in place "
            f"afterwards (this handle saw version {x.seen}, the memory is at version {s.version}), so its gradient "
            "history misses that write: take the view again after the write, or read it under no_grad()")


def write(x: Tensor, function: Any, *others: Any, **attrs: Any) -> Tensor:
    """`x.f_(...)`: compute `function(x, *others)`, of a row or a public function, and let x be its result.  Returns x.

    Raises: RuntimeError on a leaf that wants a gradient, and where the write cannot be seen by everyone it must reach;
    ValueError if the result has another shape or dtype than x.
    """
    if isinstance(function, Row) and _only_values_change(x, function, others):
        _write_part(x, function, others, attrs)
        return x
    what, out = _in_place(x, x if x.node is None else _old_value(x, function), function, others, attrs)
    if not _alike(x, out):
        raise ValueError(f"{what}: expected a result like the tensor written, {describe(x.payload)}, got "
                         f"{describe(out.payload)}; use the operation that returns a new tensor")
    rebind(x, out, what)
    return x


def _only_values_change(x: Tensor, row: Row, others: tuple) -> bool:
    """Whether a write of a part of x can be done in its array: by a row whose result may stand over its first operand,
    computed eagerly with no layer in between, and with no history to record."""
    context = current()
    recorded = context.grad_enabled and any(isinstance(t, Tensor) and not t.stop_gradient for t in (x, *others))
    return (row.inplace.get(0) == 0 and not row.multi and not recorded and context.is_plain
            and all(type(t.payload) is np.ndarray for t in (x, *others) if isinstance(t, Tensor)))


def _write_part(x: Tensor, row: Row, others: tuple, attrs: dict) -> None:
    """`write` in the array of x: what is not written is not touched."""
    what = f"in-place {row.name}_"
    if x.storage is not None and x.storage.version != x.seen and current().grad_enabled:
        check_fresh(x, row.name)
    _check_memory(x, what)
    payloads = [x.payload, *(t.payload if isinstance(t, Tensor) else t for t in others)]
    row.infer_meta(*payloads, **attrs)              # what does not fit is refused before anything is written
    into = row.kernel_out_for(payloads)
    assert into is not None, f"{row.name} says that it writes in place, and has no kernel_out"
    into(x.payload, *payloads, **attrs)
    _overwrite(x, Tensor(x.payload), what)


def write_anew(x: Tensor, function: Any, *others: Any, **attrs: Any) -> Tensor:
    """The same where the result may have another shape or dtype: then the handle x leaves its memory and holds the
    result, as in Paddle.  Others that share the old memory keep it.

    Raises: RuntimeError as `write`, and where the shape or dtype changes of a traced tensor with views.
    """
    what, out = _in_place(x, _old_value(x, function), function, others, attrs)     # a view, say, is of another handle
    if _alike(x, out):
        rebind(x, out, what)
        return x
    if x.view_of is not None or live_views(x):
        raise RuntimeError(f"{what} on {x.name}, which is a view or has views: while tracing they are taken anew after "
                           "each write, and could not be; use the operation that returns a new tensor")
    x.storage, x.seen, x.view_of = out.storage, out.seen, out.view_of
    _take(x, out)
    return x


def _in_place(x: Tensor, old: Tensor, function: Any, others: tuple, attrs: dict) -> tuple[str, Tensor]:
    """What to call the write, and its result, reckoned from the handle `old` before anything is written."""
    name = function.name if isinstance(function, Row) else function.__name__
    what = f"in-place {name}_"
    check_writable(x, what)
    if x.storage is not None and x.storage.version != x.seen and current().grad_enabled:
        check_fresh(x, name)
    return what, function(old, *(old if other is x else other for other in others), **attrs)


def _alike(x: Tensor, out: Tensor) -> bool:
    return out.payload.shape == x.payload.shape and out.payload.dtype == x.payload.dtype


def check_writable(x: Tensor, what: str) -> None:
    """Raise RuntimeError where a write would take away the value that the gradient of a leaf belongs to."""
    if not current().grad_enabled or x.stop_gradient:
        return
    leaf: Tensor | None = x
    while leaf is not None and leaf.view_of is not None:
        leaf = leaf.view_of[0]
    if leaf is x and not x.is_leaf:
        leaf = None if x.storage is None or x.storage.leaf is None else x.storage.leaf()
    if leaf is not None and leaf.is_leaf and not leaf.stop_gradient:
        view = "" if leaf is x else "a view of "
        raise RuntimeError(f"{what} on {view}leaf {leaf.name} {describe(leaf.payload)}, which wants a gradient: the "
                           "value that the gradient belongs to would be lost; write it under no_grad(), or work on a "
                           "copy")


def _old_value(x: Tensor, function: Any) -> Tensor:
    """A handle on the value that `x` has before it is written.  Were x itself the operand, the node that x gets would
    hold x: a cycle.  A rule that needs the old value (of y in `y.multiply_(x)`) gets a copy, for the memory is written;
    so does a public function that is not the call of one `row`: what its rows keep is not known beforehand.
    """
    old = Tensor(x.payload)
    old.node, old.index, old.stop_gradient = x.node, x.index, x.stop_gradient
    old.storage, old.seen = x.storage, x.seen
    row = function if isinstance(function, Row) else getattr(function, "row", None)
    if type(x.payload) is np.ndarray and current().grad_enabled and (row is None or row.saves_first):
        old.payload, old.storage = x.payload.copy(), None
    return old


def rebind(x: Tensor, out: Tensor, what: str) -> None:
    """Let the handle `x` hold what `out` holds, for everyone who shares its memory.

    Under no_grad only values change: x keeps its history, and a leaf that wants a gradient still does.
    """
    if type(x.payload) is np.ndarray and type(out.payload) is np.ndarray:
        _overwrite(x, out, what)
        return
    if is_pending(out.payload) or is_pending(x.payload):
        ground = current().ground
        if not (ground.lazy and ground.may_rebind(x, out)):
            for t in (x, out):
                settled(t)
            _overwrite(x, out, what)
            return
    if type(x.payload) is np.ndarray and hasattr(out.payload, "share") and not current().grad_enabled:
        out = ROWS["match"](out, x)         # what every rank has stays whole
        if x.storage is not None and (array := out.payload.on_all_ranks(f"{what} on {x.name}")) is not None:
            _overwrite(x, Tensor(array), what)
            return
    if type(x.payload) is np.ndarray and x.storage is not None:
        kind = "distributed" if hasattr(out.payload, "share") else "traced"
        raise RuntimeError(f"{what} of a {kind} value on {x.name}, whose memory other eager tensors share: "
                           "write a copy (x.clone()) instead")
    base = x.view_of
    if base is not None and base[1].put_back is None:
        raise RuntimeError(f"{what} on a view made by {base[1].name}: several of its elements are one element of the "
                           "base; write a copy (x.clone()) instead")
    if not (current().grad_enabled or x.stop_gradient or x.is_leaf):
        raise RuntimeError(f"{what} under no_grad() on {x.name}, which has a gradient history: a program cannot change "
                           "a value and keep its history; write a copy (x.clone()), or write with gradients on")
    if hasattr(x.payload, "share"):
        _rebind_distributed(x, out, what)
        return
    _check_decided(x, what)
    current().ground.rebinding(x)
    _take(x, out)
    if base is not None:
        parent, row, attrs, _ = base
        rebind(parent, row.put_back(parent, x, **attrs), what)      # which takes x and its siblings anew
    else:
        _retake(x)


def _check_decided(x: Tensor, what: str) -> None:
    """Raise where it is not known whether a reshape sees the write."""
    root = x
    while root.view_of is not None:
        root = root.view_of[0]
    todo = [root]
    while todo:
        t = todo.pop()
        if t.undecided:
            raise RuntimeError(
                f"{what} on {x.name} {describe(x.payload)}: the reshape {t.name} {describe(t.payload)} of a view is a "
                "view or a copy, depending on sizes that this trace does not know; reshape a clone(), or write first")
        todo += live_views(t)


def _rebind_distributed(x: Tensor, out: Tensor, what: str) -> None:
    """A distributed value has no memory that its handles share, so each of them is rebound."""
    if x.view_of is not None or live_views(x):
        raise RuntimeError(f"{what} on {x.name}, a distributed tensor with views: the views would keep the old "
                           "values; use the operation that returns a new tensor")
    others = [h for h in x.payload.sharing() if h is not x]
    for h in others:
        if not h.stop_gradient and not h.is_leaf:
            raise RuntimeError(f"{what} on {x.name}, a distributed tensor that {h.name} shares: its gradient history "
                               "would miss that write; write a copy (x.clone()) instead")
    _take(x, out)
    for h in others:
        h.payload = x.payload
    if others:
        x.payload.share(x, *others)


def _check_memory(x: Tensor, what: str) -> None:
    """Raise where a write into the array of x would be seen by too many, or too few."""
    if not x.payload.flags.writeable:
        raise RuntimeError(f"{what} on {x.name} {describe(x.payload)}, a view in which several elements share one "
                           "memory cell (expand), or read-only memory; write a copy (x.clone()) instead")
    if shared(x).torn:
        raise RuntimeError(f"{what} on {x.name} {describe(x.payload)}, whose array is not row-major and is shared, so "
                           "that a reshape of it had to be a copy, where it should be a view; write a copy (x.clone())")


def _overwrite(x: Tensor, out: Tensor, what: str) -> None:
    _check_memory(x, what)
    current().ground.settle(what)       # what has been noted reads the old values
    s = shared(x)
    if x.payload is not out.payload:
        x.payload[...] = out.payload
    if current().grad_enabled:
        x.seen = s.version = s.recorded = s.version + 1
        if not out.stop_gradient:
            s.tracked = s.version
        _take_history(x, out)
    else:                               # new values, the old history; and x still lacks what it had not seen before
        x.seen += x.seen == s.version
        s.version += 1


def _take(x: Tensor, out: Tensor) -> None:
    hold(x, out.payload)
    _take_history(x, out)


def _take_history(x: Tensor, out: Tensor) -> None:
    """x has the history of what was written into it.  A leaf that wants a gradient, a parameter say, still wants it
    after new values without history."""
    if out.node is None and not x.stop_gradient and x.is_leaf:
        return
    x.node, x.index, x.stop_gradient = out.node, out.index, out.stop_gradient


def live_views(base: Tensor) -> list[Tensor]:
    """The views of `base` that somebody still holds; the others are forgotten."""
    alive = [v for v in (ref() for ref in base.views or ()) if v is not None and v.view_of[0] is base]
    base.views = [weakref.ref(v) for v in alive] or None
    return alive


def _retake(base: Tensor) -> None:
    """Views of a rewritten base, and theirs, are computed from its new value: recorded if they were when they were
    first taken, whether or not the write is."""
    context = current()
    recording = context.grad_enabled
    todo = [base]
    try:
        while todo:
            b = todo.pop()
            for v in live_views(b):
                _, row, attrs, recorded = v.view_of                         # type: ignore[misc]
                context.set_grad_enabled(recorded)
                fresh = dispatch(row, (b,), attrs)
                del b.views[-1]                         # the entry that this call made for `fresh`
                hold(v, fresh.payload)
                v.node, v.index, v.stop_gradient = fresh.node, fresh.index, fresh.stop_gradient
                todo.append(v)
    finally:
        context.set_grad_enabled(recording)
