"""A program bound to sizes and to an arena: the list of functions that a run calls.

Made once per size and used by every run after that: a kernel on static values is one call of a function that holds its
arrays already, and views of static values are no instruction at all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any
from weakref import ref

import numpy as np

from minipd.executor.calls import Call
from minipd.executor.control import CONTROL, unknown
from minipd.executor.direct import writer
from minipd.executor.frame import Frame, Part, Steps
from minipd.executor.late import late
from minipd.executor.layout import Layout
from minipd.executor.memory import root
from minipd.executor.preparation import STATE, Item, Preparation
from minipd.framework.dtype import to_np
from minipd.framework.meta import describe
from minipd.ir.value import Value

__all__: list[str] = []


class Binding:
    """`layout`, with its arrays taken of `memory` (bytes, as many as its plan asks for).

    frame: the state of the run that is going on.  program: the functions, in order, once they are linked.
    """

    program: Steps
    #: the program with collectives in a thread; False if that is of no use, None as long as nobody has asked
    overlap: Any = None
    #: the program on the streams of a device, once it has run there
    on_device: Steps | None = None

    def __init__(self, prepared: Preparation, layout: Layout, memory: np.ndarray, owned: dict[str, ref]):
        self.prepared, self.layout, self.memory = prepared, layout, memory
        n_inputs = len(prepared.inputs)
        state = [item.op.result(0) for item in prepared.items if item.op.name() in STATE]
        self._state = [(name, layout.shape(v), v.dtype, v) for name, v in zip(prepared.state, state, strict=True)]
        self.frame = Frame(prepared.n_slots, prepared.n_given,
                           [(n_inputs + i, name) for i, (name, _, _, v) in enumerate(self._state)
                            if prepared.inplace.get(name) is v], owned)
        for value, array in layout.constants.items():
            self.frame.slots[self.slot(value)] = array
        for item in prepared.items:
            self._fill(item)
        self._emptied: set[int] = set()
        self.passing = [self.slot(v) for v in prepared.dynamic]
        #: the memory that is not a run's own, whatever it is fed
        self.outside = {id(root(a)) for a in (memory, *layout.constants.values())}

    def link(self) -> Binding:
        """Choose the functions; returns self."""
        self.program = self.steps(self.prepared.top)
        self.outputs = [self.slot(v) for v in self.prepared.outputs.values()]
        #: the slots that a run leaves filled
        self.left = [i for i in self.passing if i not in self._emptied and i >= self.prepared.n_given]
        self.layout.arrays.clear()          # the stand-ins have done their work
        return self

    def finish(self, succeeded: bool) -> None:
        """The run is over: let go of everything that is not the binding's own."""
        slots = self.frame.slots
        for i in self.left if succeeded else self.passing:
            slots[i] = None
        self.frame.end()

    def state_in(self, scope: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The state that a run reads.

        Raises: KeyError for what is not there; ValueError for what does not fit.
        """
        found = []
        for name, shape, dtype, value in self._state:
            try:
                array = scope[name]
            except KeyError:
                raise KeyError(f"state {name!r}: expected it in the scope, which has {', '.join(scope) or 'nothing'}"
                               ) from None
            if array.shape != shape or array.dtype != dtype:
                raise ValueError(f"state {name!r}: expected {describe(value)}, got {describe(array)}")
            found.append(array)
        return found

    def slot(self, value: Value) -> int:
        return self.prepared.slots[value]

    # --------------------------------------------------------------------------------------- the static arrays
    def _fill(self, item: Item) -> None:
        """Put the arrays of static results into their slots."""
        call, layout, slots = item.call, self.layout, self.frame.slots
        if call is None:
            if item.op.name() == "builtin.split" and item.op.result(0) not in self.prepared.dynamic:
                CONTROL["builtin.split"](self, item)()
            return
        for value in call.results:
            if value in self.prepared.dynamic or value in layout.constants:
                continue
            if value in layout.over:            # the operand's very array: numpy need not ask how the two overlap
                slots[self.slot(value)] = slots[self.slot(layout.over[value])]
            elif value in layout.own:
                slots[self.slot(value)] = self._array(value)
            else:
                assert call.kernel is not None
                slots[self.slot(value)] = call.kernel(*self._view_operands(call), **layout.attrs[item])

    def _array(self, value: Value) -> np.ndarray:
        like = self.layout.arrays[value]
        return np.ndarray(like.shape, like.dtype, self.memory, self.layout.own[value].whole().offset, like.strides)

    def _view_operands(self, call: Call) -> list[Any]:
        base, *others = call.operands
        return [self.frame.slots[self.slot(base)], *(self._shape_alone(v) for v in others)]

    def _shape_alone(self, value: Value) -> np.ndarray:
        """What stands for an operand of which only the shape is read."""
        return np.broadcast_to(np.zeros((), to_np(value.dtype)), self.layout.shape(value))

    def arrays(self, item: Item) -> tuple[list[Any], list[Any]]:
        """What a call will be given, before it is linked: its operands, and the buffers for its results.

        Arrays that a run will bring have stand-ins; they are contiguous where the run's will be, and overlap others
        where the run's will.
        """
        call, layout, slots = item.call, self.layout, self.frame.slots
        assert call is not None
        operands = [layout.arrays[v] if v in self.prepared.dynamic else slots[self.slot(v)] for v in call.operands]
        if call.inplace_state:
            for i in call.updates.values():
                operands[i] = np.empty_like(operands[i])
            return operands, [operands[call.updates[i]] for i in range(len(call.results))]
        passed = {r: operands[call.operands.index(v)] for r in call.results
                  if (v := self.prepared.passed.get(r)) is not None}
        outs = [passed[r] if r in passed else np.empty(layout.shape(r), to_np(r.dtype)) if r in self.prepared.dynamic
                else slots[self.slot(r)] for r in call.results]
        return operands, outs

    # -------------------------------------------------------------------------------------------------- steps
    def steps(self, items: list[Item]) -> Steps:
        """The functions for the items of a block."""
        steps = Steps()
        for item in items:
            if self.layout.runs(item):
                function = (CONTROL.get(item.op.name(), unknown)(self, item) if item.call is None else
                            self._call(item, item.call))
                dead = tuple(self.slot(v) for v in item.dead)
                steps.add(Part(item, function, dead), self.frame)
                self._emptied.update(dead)
        return steps

    def _call(self, item: Item, call: Call) -> Callable[[], Any]:
        dynamic, layout, slots = self.prepared.dynamic, self.layout, self.frame.slots
        attrs = layout.attrs[item]
        static = bool(call.results) and not any(r in dynamic for r in call.results)
        if static and call.view:
            return self._copy(call, call.results[0], attrs)
        arrays = [self._shape_alone(v) if i in call.shape_only else None if v in dynamic else slots[self.slot(v)]
                  for i, v in enumerate(call.operands)]
        waiting = [(i, self.slot(v)) for i, v in enumerate(call.operands)
                   if i not in call.shape_only and v in dynamic]
        if static:
            outs = tuple(slots[self.slot(r)] for r in call.results)
            if call.bind is not None and not waiting:
                return call.bind(outs, arrays)
            return self._writing(item, call, outs, arrays, waiting)
        if call.inplace_state:
            return self._over_state(call, arrays, waiting, attrs)
        return self._allocating(item, call, arrays, waiting)

    def _copy(self, call: Call, value: Value, attrs: dict[str, Any]) -> Callable[[], Any]:
        """A view that cannot be one: what is seen of the base goes into a buffer."""
        base, buffer = self.frame.slots[self.slot(call.operands[0])], self.frame.slots[self.slot(value)]
        if call.op.name() == "kernel.reshape":           # the same elements in the same order: none in between
            return functools.partial(np.copyto, buffer.reshape(base.shape), base)
        assert call.kernel is not None
        kernel = functools.partial(call.kernel, *self._view_operands(call), **attrs)
        return lambda: np.copyto(buffer, kernel())

    def _writing(self, item: Item, call: Call, outs: tuple, arrays: list, waiting: list) -> Callable[[], Any]:
        """The call into buffers that stay."""
        slots, attrs = self.frame.slots, self.layout.attrs[item]
        write = writer(call, attrs, [self.layout.shape(v) for v in call.operands], outs[0])
        if write is not None:
            return late(write, [*arrays, outs[0]], waiting, slots)
        if call.ufunc is not None:
            return late(functools.partial(call.ufunc, out=outs[0]), arrays, waiting, slots)
        assert call.kernel_out is not None
        return late(functools.partial(call.kernel_out, outs if call.multi else outs[0], **attrs), arrays, waiting,
                    slots)

    def _allocating(self, item: Item, call: Call, arrays: list, waiting: list) -> Callable[[], Any]:
        frame, slots, attrs = self.frame, self.frame.slots, self.layout.attrs[item]
        if call.kernel_out is not None and not call.multi and not call.comm:
            return self._into_new(item, call, arrays, waiting)
        results = [self.slot(r) for r in call.results]
        if call.kernel_out is not None:
            kernel = _new_buffers(call, [(self.layout.shape(r), to_np(r.dtype)) for r in call.results])
        else:
            assert call.kernel is not None
            kernel = call.kernel
        kernel = functools.partial(kernel, **attrs) if attrs else kernel
        if call.comm:
            kernel = _with_communicator(kernel, frame, call.op.name())
        made_of = late(kernel, arrays, waiting, slots)
        if call.multi:
            def several() -> None:
                made = made_of()
                for i, array in zip(results, made, strict=True):
                    slots[i] = array
                if frame.memory is not None:
                    frame.keep(made)
            return several
        result, = results

        def step() -> None:
            made = made_of()
            if type(made) is not np.ndarray and (isinstance(made, np.generic) or not hasattr(made, "dtype")):
                made = np.asarray(made)             # a scalar of numpy's; a device's arrays stay what they are
            slots[result] = made
            if frame.memory is not None:
                frame.keep((slots[result],))
        return step

    def _into_new(self, item: Item, call: Call, arrays: list, waiting: list) -> Callable[[], Any]:
        """The call into a buffer that is made for it, or taken over from an operand, in the slot of its result."""
        frame, slots, attrs = self.frame, self.frame.slots, self.layout.attrs[item]
        value, = call.results
        result, shape, dtype, empty = self.slot(value), self.layout.shape(value), to_np(value.dtype), np.empty
        function = writer(call, attrs, [self.layout.shape(v) for v in call.operands], empty(shape, dtype))
        assert call.kernel_out is not None
        if function is not None:
            write = late(function, [*arrays, None], [*waiting, (len(arrays), result)], slots)
        else:
            kernel_out = functools.partial(call.kernel_out, **attrs) if attrs else call.kernel_out
            write = late(kernel_out, [None, *arrays], [(0, result), *((i + 1, slot) for i, slot in waiting)], slots)

        def step() -> None:
            slots[result] = empty(shape, dtype)
            write()
            if frame.memory is not None:
                frame.keep((slots[result],))

        def step_over() -> None:
            slots[result] = slots[over]
            write()
            if frame.memory is not None:
                frame.keep((slots[result],))
        operand = self.prepared.passed.get(value)
        over = result if operand is None else self.slot(operand)
        return step if operand is None else step_over

    def _over_state(self, call: Call, arrays: list, waiting: list, attrs: dict) -> Callable[[], Any]:
        """An optimizer's update: the buffers for the results are the state that it reads."""
        frame, slots = self.frame, self.frame.slots
        assert call.kernel_out is not None
        overwritten = [call.updates[i] for i in range(len(call.results))]
        results, kernel_out, multi = [self.slot(r) for r in call.results], call.kernel_out, call.multi
        # Numbers that come anew with each run (a learning rate) get a place, so that the rest can stay bound.
        numbers = {i: np.empty((), to_np(call.operands[i].dtype)) for i, _ in waiting
                   if call.bind is not None and call.operands[i].shape == () and i not in overwritten}
        held: list[Any] = []
        bound: Callable[[], Any] | None = None

        def step() -> None:
            nonlocal held, bound
            operands = arrays.copy()
            for i, slot in waiting:
                operands[i] = slots[slot]
                if i in numbers:
                    numbers[i][()] = operands[i]
                    operands[i] = numbers[i]
            outs = tuple(operands[i] for i in overwritten)
            if call.bind is None:
                kernel_out(outs if multi else outs[0], *operands, **attrs)
            else:
                if bound is None or any(a is not b for a, b in zip(operands, held, strict=True)):
                    bound, held = call.bind(outs, operands), operands
                bound()
            for i, array in zip(results, outs, strict=True):
                slots[i] = array
            frame.keep(outs)
        return step


def _with_communicator(kernel: Callable, frame: Frame, name: str) -> Callable:
    """The kernel of a collective, called with this rank's communicator first."""
    def communicating(*operands: Any) -> Any:
        return kernel(frame.communicator(name), *operands)
    return communicating


def _new_buffers(call: Call, like: list[tuple[tuple, np.dtype]]) -> Callable[..., Any]:
    """`kernel`, by way of `kernel_out`: the results surely are memory of their own."""
    kernel_out, multi = call.kernel_out, call.multi
    assert kernel_out is not None

    def kernel(*operands: Any, **attrs: Any) -> Any:
        outs = tuple(np.empty(shape, dtype) for shape, dtype in like)
        kernel_out(outs if multi else outs[0], *operands, **attrs)
        return outs if multi else outs[0]
    return kernel
