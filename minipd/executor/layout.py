"""How the values of a program lie in memory, for given sizes.

Found without touching memory that matters: every value gets a *stand-in*, an array of its shape and strides over one
scratch buffer whose pages nobody writes.  Views are taken of stand-ins, which tells whether they are views: a reshape
of a transposed array is not, and becomes a copy with memory of its own.

Then every static value has its *buffers*, normally one: that of the operation that made the memory.  A buffer lives
from there to the last item that reads a value on it.  Where a kernel may write over an operand that ends with it, the
two become one buffer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minipd.executor.calls import Call
from minipd.executor.memory import root
from minipd.executor.plan import Interval, Plan, make_plan
from minipd.executor.preparation import Item, Preparation, results_of
from minipd.framework.dim import substitute_all
from minipd.framework.dtype import to_np
from minipd.ir.operation import user_error
from minipd.ir.types import TensorType
from minipd.ir.value import Value

__all__: list[str] = []

SMALL = 1024        # bytes: up to here, a constant is computed once instead of by every run


@dataclass(eq=False)
class Buffer:
    """Memory of the arena.  merged: the buffer that it became one with."""

    start: int
    end: int
    size: int
    merged: Buffer | None = None
    offset: int = 0

    def whole(self) -> Buffer:
        """The buffer that this one is a part of by now."""
        found = self
        while found.merged is not None:
            found = found.merged
        return found


class Layout:
    """The layout of a prepared program under `bindings`, the sizes of its symbolic dimensions.

    attrs: item -> the attributes of its call, sizes filled in.  arrays: value -> its stand-in.
    own: value -> the buffer it is the first to lie in.  copies: views that are copies.  constants: value -> its array.
    over: value -> the operand that it is written over.
    """

    def __init__(self, prepared: Preparation, bindings: Mapping[str, int]):
        self.prepared, self.bindings = prepared, bindings
        self.attrs: dict[Item, dict[str, Any]] = {}
        self.arrays: dict[Value, Any] = {}
        self.own: dict[Value, Buffer] = {}
        self.copies: set[Value] = set()
        self.constants: dict[Value, np.ndarray] = {}
        self.over: dict[Value, Value] = {}
        self._buffers: dict[Value, tuple[Buffer, ...]] = {}
        values = [v for item in prepared.items for v in results_of(item) if isinstance(v.type(), TensorType)]
        self.scratch = np.empty(max((self.nbytes(v) for v in values), default=0), np.uint8)
        for item in prepared.items:
            try:
                self._lay_out(item)
            except Exception as error:
                error.add_note(user_error(item.origin, "while the executor laid out its result"))
                raise
        self._live()
        self._merge()
        self.plan = self._place()

    # ------------------------------------------------------------------------------------------------ stand-ins
    def shape(self, value: Value) -> tuple[int, ...]:
        return substitute_all(value.shape, self.bindings)

    def nbytes(self, value: Value) -> int:
        return math.prod(self.shape(value)) * value.dtype.itemsize

    def stand_in(self, value: Value, strides: tuple[int, ...] | None = None) -> Any:
        """An array like the value, over the scratch buffer."""
        if not isinstance(value.type(), TensorType):
            return None
        return np.ndarray(self.shape(value), to_np(value.dtype), self.scratch, 0, strides)

    def _lay_out(self, item: Item) -> None:
        value: Value
        call, dynamic = item.call, self.prepared.dynamic
        if call is None:
            for value in results_of(item):
                self.arrays[value] = self.stand_in(value)
                if value not in dynamic:                # one of a bundle of static values
                    source, = self.prepared.sources[value]
                    self.arrays[value], self._buffers[value] = self.arrays[source], self._buffers[source]
                    if source in self.constants:
                        self.constants[value] = self.constants[source]
            return
        self.attrs[item] = attrs = substitute_all(call.attrs, self.bindings)
        if call.view:
            self._lay_out_view(item, call, attrs)
            return
        for value in call.results:
            self.arrays[value] = self.stand_in(value, self._strides(call, value))
            if value in dynamic:
                continue
            if call.constant and (self.nbytes(value) <= SMALL or call.kernel_out is None):
                assert call.kernel is not None
                self.constants[value] = np.asarray(call.kernel(**attrs))
                self._buffers[value] = ()
            else:
                self._give_buffer(item, value)

    def _give_buffer(self, item: Item, value: Value) -> None:
        self.own[value] = Buffer(item.at, item.at, self.arrays[value].nbytes)
        self._buffers[value] = (self.own[value],)

    def _lay_out_view(self, item: Item, call: Call, attrs: dict[str, Any]) -> None:
        value, base = call.results[0], call.operands[0]
        assert call.kernel is not None
        seen = call.kernel(*(self.arrays[v] for v in call.operands), **attrs)
        self.arrays[value] = seen
        if value in self.prepared.dynamic:
            return
        if base in self.constants:
            self.constants[value] = call.kernel(self.constants[base], *(self.arrays[v] for v in call.operands[1:]),
                                                **attrs)
            self._buffers[value] = ()
        elif root(seen) is self.scratch:
            self._buffers[value] = self._buffers[base]
        else:
            self.arrays[value] = self.stand_in(value)
            self.copies.add(value)
            self._give_buffer(item, value)

    def _strides(self, call: Call, value: Value) -> tuple[int, ...] | None:
        """The strides that numpy itself would choose for an element-wise result; None for row-major order."""
        operands = [self.arrays[v] for v in call.operands]
        if not call.keeps_order or len(call.results) > 1 or all(
                isinstance(a, np.ndarray) and (a.flags.c_contiguous or a.ndim == 0) for a in operands):
            return None
        if len(operands) > 8:               # numpy has a limit, and sums lie as their first summand does
            operands = operands[:1]
        walk = np.nditer([*operands, None], flags=["zerosize_ok", "refs_ok"], order="K",
                         op_dtypes=[a.dtype for a in operands] + [to_np(value.dtype)])
        made = walk.operands[-1]
        return made.strides if made.shape == self.shape(value) else None

    def runs(self, item: Item) -> bool:
        """Whether a run has anything to do for an item: a view of an array that stays where it is, and a constant that
        is there already, are no instructions."""
        call, dynamic = item.call, self.prepared.dynamic
        if call is None:
            results = item.op.results()
            return item.op.name() != "builtin.split" or not results or results[0] in dynamic
        if not call.results or any(r in dynamic for r in call.results):     # one without results has an effect
            return True
        return call.results[0] in self.copies if call.view else not all(r in self.constants for r in call.results)

    # ----------------------------------------------------------------------------------------------- lifetimes
    def buffers(self, value: Value) -> Sequence[Buffer]:
        """The buffers that a value may lie in."""
        found = self._buffers.get(value)
        if found is None:                   # dynamic: it may still be an operand, handed on
            pending, seen = [value], {value}
            buffers: dict[Buffer, None] = {}
            while pending:                  # a walk, for what a loop carries comes from itself
                for source in self.prepared.sources.get(pending.pop(), ()):
                    if source in self._buffers:
                        buffers.update(dict.fromkeys(self._buffers[source]))
                    elif source not in seen:
                        seen.add(source)
                        pending.append(source)
            found = self._buffers[value] = tuple(buffers)
        return found

    def _live(self) -> None:
        """A buffer lives until it is read last; one from around a loop whose body reads it, until the loop ends."""
        for item in self.prepared.items:
            for value in item.reads():
                for buffer in self.buffers(value):
                    buffer.end = max(buffer.end, item.at)
                    for loop in item.loops:
                        assert loop.entry is not None
                        if buffer.start < loop.entry.at:
                            buffer.end = max(buffer.end, loop.at)

    def _merge(self) -> None:
        for item in self.prepared.items:
            call = item.call
            for result, operands in (call.overwrites.items() if call is not None else ()):
                assert call is not None
                if call.results[result] in self.own and not call.view:
                    over = next((i for i in operands if i < len(call.operands) and self._may_write(item, result, i)),
                                None)
                    if over is not None:
                        target = self.buffers(call.operands[over])[0].whole()
                        mine = self.own[call.results[result]]
                        mine.merged, target.end = target, max(target.end, mine.end)
                        self.over[call.results[result]] = call.operands[over]

    def _may_write(self, item: Item, result: int, operand: int) -> bool:
        """Whether the result may take the operand's place: exactly the same bytes, read here for the last time.

        Single elements are left apart: there numpy takes longer to see that it may than it takes to compute.
        """
        call = item.call
        assert call is not None
        value, new = call.operands[operand], call.results[result]
        held = self.buffers(value)
        if value in self.prepared.dynamic or len(held) != 1 or operand in call.shape_only:
            return False
        buffer = held[0].whole()
        a, b = self.arrays[value], self.arrays[new]
        same = (a.size != 1 and a.flags.writeable and a.dtype == b.dtype and a.shape == b.shape
                and a.nbytes == buffer.size and a.ctypes.data == self.scratch.ctypes.data
                and all(s == t for s, t, n in zip(a.strides, b.strides, a.shape, strict=True) if n > 1))
        if not same or buffer.end != item.at:
            return False
        return not any(buffer in [x.whole() for x in self.buffers(v)] and not (v is value and call.ufunc is not None)
                       for i, v in enumerate(call.operands) if i != operand and i not in call.shape_only)

    def _place(self) -> Plan:
        buffers = [b for b in self.own.values() if b.merged is None]
        plan = make_plan([Interval(b.start, b.end, b.size) for b in buffers])
        for buffer, offset in zip(buffers, plan.offsets, strict=True):
            buffer.offset = offset
        return plan
