"""Segments: eager code whose operators are recorded, compiled and run when somebody looks.

With `to_static(full_graph=False)` Python runs at every call, statement by statement.  An operator call computes
nothing: it is noted, and its result is a tensor that is *pending*.  What Python needs to know of it, shape and dtype,
is known.  Where a value is asked for (`x.numpy()`, `float(x)`, `if x > 0:`, a function of numpy), where the tape must
be exact (`backward()`, a hook, a PyLayer), where memory that others share is written, and at the end of the function,
the segment is *flushed*: the program of the calls so far is compiled, if it has not been before, and run, and the
pending tensors become real ones.  Then Python goes on, and the next call begins a new segment.

The invariant: nothing that Python can see differs from eager mode, except when kernels run (and so when they fail: an
exception of a kernel comes from the flush, with a note that names the line of the call).

Autograd: pending tensors whose gradient is wanted are results of *one* node, that of the segment, which is filled when
the segment is flushed.  Nothing else reaches the tape before that: `record_call` and the engine flush first.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from minipd.autograd.tape import INEXACT, Node, new_node, next_seq, node_of
from minipd.framework.constraints import user_line
from minipd.framework.context import Ground, Kernels, using
from minipd.framework.meta import Meta
from minipd.framework.rank import current, dispatch
from minipd.framework.row import Row, Trait
from minipd.framework.tensor import Tensor
from minipd.framework.views import check_fresh, share_view
from minipd.ir.trace import scalar_dtype
from minipd.jit.paths import Step, frozen, number
from minipd.jit.pending import Pending, is_unknown, place
from minipd.jit.runnable import Recorded, Sources, hand_over
from minipd.jit.segment_program import compiled, handle
from minipd.jit.stages import Options

__all__: list[str] = []

#: an operator that has had this many different Python numbers in one place gets them as inputs from then on
MANY = 3
new = object.__new__


class Flush:
    """What a flush was like, for `explain`: the last call, what was asked and where, how many results were wanted, and
    how they were got: a program was "found" or "compiled", the calls were run "eager", or "nothing wanted"."""

    __slots__ = ("asked", "how", "step", "wanted", "where")

    def __init__(self, step: Step, asked: str, where: str):
        self.step, self.asked, self.where = step, asked, where
        self.wanted, self.how = 0, "nothing wanted"


class Segments(Ground):
    """The ground floor of a call of a function that is compiled in segments.

    root: the tree of steps, which outlives the call.  flushes: what has been flushed, in order.
    """

    lazy = True

    def __init__(self, name: str, options: Options, store: Store):
        self.name, self.root, self.options, self.store = name, store.root(), options, store
        self.eager = Kernels()
        self.run, self.key = self.eager.run, self.eager.key         # type: ignore[method-assign]
        self.flushes: list[Flush] = []
        self._begin()

    def _begin(self) -> None:
        """A new segment."""
        self.step = self.root
        self.results: list[Any] = []                # weak references to pending payloads, by slot
        self.arrays: list[np.ndarray] = []          # the inputs
        self.sources = Sources([], [], [])          # ... and where they are from
        self.known: dict[tuple, int] = {}           # (id of an array, stop) -> which input it is
        self.node: Node | None = None

    # ------------------------------------------------------------------------------------------------ recording
    def around(self, handler: Callable) -> Callable:
        """The handler that notes calls; those that cannot be deferred go to `handler`, which computes them now."""
        context, now = current(), self._now(handler)
        if context.saved_hooks is not None:         # what each operator saves is somebody's affair
            return now
        deferred = self.store.deferred

        def noting(row: Row, inputs: Any, attrs: dict) -> Any:
            if not (deferred[row] if row in deferred else self.store.defers(row)):
                return now(row, inputs, attrs)
            recording = context.grad_enabled
            operands: list = []
            before = len(self.arrays)
            need, bit, outside, numbers = 0, 1, True, False
            for x in inputs:
                if isinstance(x, Tensor):
                    p, stop = x.payload, x.stop_gradient
                    if type(p) is Pending and p.array is None and p.ground is self:
                        if stop:
                            operands.append(2 * p.slot + 1)
                        elif x.node is None or x.node is not self.node:
                            # its history is not that of its value
                            self.settle("a tensor whose history was changed")
                            return noting(row, inputs, attrs)
                        else:
                            operands.append(2 * p.slot)
                            need |= bit
                        outside = False
                    else:
                        operand = self._input(x, row, recording)
                        if operand is None:
                            return now(row, inputs, attrs)
                        operands.append(operand)
                        if not stop:
                            need |= bit
                elif type(x) is float or type(x) is int or type(x) is bool:
                    operands.append(number(x))
                    numbers = True
                elif type(x) is Meta:
                    operands.append(x)
                else:
                    return now(row, inputs, attrs)
                bit += bit
            if outside and row.view:                # of a tensor from outside: its memory is there already
                self._forget(before)
                return handler(row, inputs, attrs)
            if not recording:
                need = 0
            step = self.step
            key = row, need, tuple(operands), frozen(attrs)
            try:
                following = step.next.get(key)
            except TypeError:                       # an attribute without a hash
                return now(row, inputs, attrs)
            if following is None:
                if numbers and step.loose:
                    fed = self._feed_numbers(key, inputs)
                    if fed is not None:
                        self._forget(before)
                        return noting(row, fed, attrs)
                try:
                    following = self._new_step(key, row, inputs, attrs, need)
                finally:
                    if following is None:       # its shape rule has raised
                        self._forget(before)
            self.step = following
            slot = following.first
            if row.multi:
                return tuple([self._result(slot + i, meta, flows, row, inputs, attrs)
                              for i, (meta, flows) in enumerate(zip(following.metas, following.flows, strict=True))])
            return self._result(slot, following.metas[0], following.flows[0], row, inputs, attrs)
        return noting

    def _now(self, handler: Callable) -> Callable:
        """A handler that computes at once, after all that has been noted."""
        def now(row: Row, inputs: Any, attrs: dict) -> Any:
            self.settle(row.name)
            self._forget(0)
            return handler(row, inputs, attrs)
        return now

    def _input(self, x: Tensor, row: Row, recording: bool) -> Any:
        """The operand that stands for a tensor from outside; None for what is no plain tensor."""
        p = x.payload
        if type(p) is Pending and p.array is not None:
            p = x.payload = p.array
        if type(p) is not np.ndarray:
            return None
        if recording and x.storage is not None and x.storage.version != x.seen:
            check_fresh(x, row.name)
        stop = x.stop_gradient
        slot = None if stop else (x.node or node_of(x), x.index)
        at = id(p), stop
        found = self.known.get(at)
        if found is not None and (stop or self.sources.slots[found] == slot):
            return -1 - found
        n = self.known[at] = len(self.arrays)
        self.arrays.append(p)
        self.sources.add(x, slot)
        return n, stop, p.shape, p.dtype

    def _forget(self, n: int) -> None:
        """Take back the inputs from number n on: the call that was to read them is not noted."""
        if len(self.arrays) > n:
            del self.arrays[n:]
            self.sources.forget(n)
            self.known = {at: i for at, i in self.known.items() if i < n}

    def _feed_numbers(self, key: tuple, inputs: Sequence[Any]) -> list | None:
        """The operands with tensors instead of numbers, if this call has had many different numbers."""
        loose = (*key[:2], tuple(o[0] if type(o) is tuple and len(o) == 2 else o for o in key[2]), key[3])
        if self.step.loose.get(loose, 0) < MANY:
            return None
        payloads = [x.payload if isinstance(x, Tensor) else x for x in inputs]
        return [x if isinstance(x, (Tensor, Meta)) else Tensor(np.array(x, scalar_dtype(x, payloads))) for x in inputs]

    def _new_step(self, key: tuple, row: Row, inputs: Sequence[Any], attrs: dict, need: int) -> Step:
        """A call that has not been made here before: reckon what it makes.

        Raises what the operator's shape rule raises, at the user's line.
        """
        metas = row.infer_meta(*[_meta(x) for x in inputs], **attrs)
        step = Step(self.step)
        step.row, step.operands, step.attrs, step.grad = row, key[2], attrs, bool(need)
        step.metas = tuple(metas) if row.multi else (metas,)
        rules = bool(need) and bool((row.recipes.get(need) or row.recipe(need)).rules)
        step.flows = tuple(rules and m.dtype in INEXACT for m in step.metas)
        step.line, step.scope = user_line(), current().rng.path
        self.step.next[key] = step
        if any(type(o) is tuple and len(o) == 2 for o in key[2]):
            loose = (*key[:2], tuple(o[0] if type(o) is tuple and len(o) == 2 else o for o in key[2]), key[3])
            self.step.loose[loose] = self.step.loose.get(loose, 0) + 1
        return step

    def _result(self, slot: int, meta: Any, flows: bool, row: Row, inputs: Any, attrs: dict) -> Tensor:
        """A tensor on a result of a call, which is pending."""
        t = new(Tensor)
        t.payload = p = new(Pending)
        p.ground, p.slot, p.shape, p.dtype, p.array, p.handles = self, slot, meta.shape, meta.dtype, None, [ref(t)]
        self.results.append(ref(p))
        if flows:
            if self.node is None:
                self.node = new_node(None, None, (), [], {}, 0)
            t.node, t.index, t.stop_gradient = self.node, slot, False
        if row.view:
            share_view(inputs[0], t, row, attrs)
        return t

    # ------------------------------------------------------------------------------------------------- flushing
    def settle(self, asked: str = "an operation on the tape", where: str = "") -> None:
        """Compute what has been noted; every pending tensor that somebody still holds becomes a real one.

        asked, where: what is told of it; for no place, the user's line.
        """
        step = self.step
        if step is self.root:
            return
        flush = Flush(step, asked, where or user_line())
        self.flushes.append(flush)
        results, arrays, sources, node = self.results, self.arrays, self.sources, self.node
        self._begin()
        live = [p for p in (found() for found in results) if p is not None]
        flush.wanted = len(live)
        if not live:
            return
        if step.parent is self.root or not self._compute(flush, live, arrays, sources, node):
            self._eagerly(flush, live, arrays, sources, node)
        place(live)

    def _compute(self, flush: Flush, live: list[Pending], arrays: list, sources: Sources, node: Node | None) -> bool:
        """Run the compiled program of a segment; False if there is none, nor room for one."""
        step, wanted = flush.step, tuple([p.slot for p in live])
        runnable = step.programs.get(wanted)
        flush.how = "found" if runnable is not None else "compiled"
        if runnable is None:
            if not self.store.has_room(self.name):
                return False
            runnable = step.programs[wanted] = compiled(self.name, step, wanted, self.options)
        found, sizes = runnable.run(arrays, {})
        if runnable.joint is not None and node is not None:
            Recorded(runnable, sources, arrays, found, sizes).fill(
                node, [int(n[len("output_"):]) for n in runnable.flows], step.first + len(step.metas))
            node.seq = next_seq()
        for p, i in zip(live, runnable.results, strict=True):
            p.array = found[i]
        return True

    def _eagerly(self, flush: Flush, live: list[Pending], arrays: list, sources: Sources, node: Node | None) -> None:
        """Compute a segment operator by operator, on the tape."""
        flush.how = "eager"
        given = [sources.again(i, array) for i, array in enumerate(arrays)]
        values: list[Tensor] = []
        context = current()
        with using(ground=self.eager, amp=None, saved_hooks=None, grad=True):
            for step in flush.step.path():
                operands = [handle(o, values, given) for o in step.operands]
                context.set_grad_enabled(step.grad)
                outs = dispatch(step.row, operands, step.attrs)
                values += outs if step.row.multi else [outs]
        for p in live:
            p.array = values[p.slot].payload
        if node is not None:
            hand_over(node, self.name, list(enumerate(values)), len(values))
            node.seq = next_seq()

    # --------------------------------------------------------------------------------------------------- writes
    def may_rebind(self, x: Tensor, out: Tensor) -> bool:
        """Whether the write of a pending value into x may let x hold that value: as in a program, where nobody sees
        memory.  Not where others share the memory of x, or where only the values of x should change, not its history.
        """
        recording = current().grad_enabled
        if not (is_unknown(out.payload) and (recording or x.is_leaf)):
            return False
        base = x
        while base.view_of is not None:
            base, row, _, _ = base.view_of
            # a detached tensor that is written takes the history of what is written, and its base does not
            if row.put_back is None or row.name == "share_data_" and not out.stop_gradient or not (
                    recording or base.is_leaf):
                return False
        if type(x.payload) is not np.ndarray:
            return is_unknown(x.payload)
        storage = x.storage
        if storage is not None:
            ours = sum(held is storage for held in self.sources.storages)
            if sys.getrefcount(storage) > 3 + ours:     # x's, the variable's, the argument's
                return False
            x.storage, x.seen = None, 0
        return x.payload.flags.writeable


def _meta(x: Any) -> Any:
    p = x.payload if isinstance(x, Tensor) else x
    return p if isinstance(p, (bool, int, float, Meta)) else Meta(tuple(p.shape), p.dtype)


class Store:
    """What a function's segments take: `programs` compiled, of at most `limit`; the trees of steps by default dtype."""

    def __init__(self, limit: int) -> None:
        self.limit, self.programs, self.full = limit, 0, False
        self.roots: dict[Any, Step] = {}
        self.deferred: dict[Row, bool] = {}

    def defers(self, row: Row) -> bool:
        """Whether calls of an operator can be computed later: not where others see when."""
        found = self.deferred[row] = not (row.comm or Trait.SIDE_EFFECT in row.traits)
        return found

    def root(self) -> Step:
        """The tree to begin in: a Python number takes the default dtype, which no key of a step has."""
        default = current().default_dtype
        found = self.roots.get(default)
        if found is None:
            found = self.roots[default] = Step(None)
        return found

    def has_room(self, name: str) -> bool:
        """Take room for one more program.  Where there is none, say so once."""
        if self.programs < self.limit:
            self.programs += 1
            return True
        if not self.full:
            self.full = True
            warnings.warn(f"{name}: {self.limit} different programs have been compiled for its segments; what is new "
                          "from now on runs eagerly. Something changes at every call, an attribute or a shape: see "
                          "paddle.jit.explain", RuntimeWarning, stacklevel=2)
        return False
