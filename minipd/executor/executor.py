"""The executor: one kernel per operation, in the order of the program, into one arena.

Prepared once, bound once per size, run often.  Program state is read from a scope and stored there when the run has
succeeded as a whole, so that a run that fails half way changes nothing.  (What an optimizer's update writes over is
written last; only a run that is interrupted between two updates leaves some parameters updated and others not.)
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import Any
from weakref import ref

import numpy as np

from minipd.executor.binding import Binding
from minipd.executor.device import STREAMS, on_streams
from minipd.executor.frame import Frame, Steps, arrays_in
from minipd.executor.kernel.lowering import pd_op_to_kernel_pass
from minipd.executor.layout import Layout
from minipd.executor.memory import Memory, root
from minipd.executor.overlap import overlapping
from minipd.executor.plan import ALIGNMENT, Plan
from minipd.executor.preparation import Preparation
from minipd.executor.schedule.dependencies import Dependencies
from minipd.executor.scope import Scope
from minipd.executor.watching import watcher
from minipd.framework.dim import bind_shape
from minipd.framework.flags import flag
from minipd.framework.meta import describe
from minipd.framework.place import CPU, Place
from minipd.framework.rank import current
from minipd.ir.program import Program
from minipd.ir.types import StackType
from minipd.ir.value import Value

__all__ = ["Executor"]

NO_SIZES: Mapping[str, int] = MappingProxyType({})


class Arena:
    """The memory of a run, and the bindings that were made on it, by sizes.  It grows, and then they are void."""

    def __init__(self) -> None:
        self.memory = np.empty(0, np.uint8)
        self.bindings: dict[tuple, Binding] = {}

    def take(self, size: int) -> np.ndarray:
        """At least `size` bytes, aligned, that all bindings share."""
        if size > self.memory.nbytes:
            self.bindings.clear()
            whole = np.empty(size + ALIGNMENT, np.uint8)
            start = -whole.ctypes.data % ALIGNMENT
            self.memory = whole[start:start + size]
        return self.memory


class Executor:
    """Runs one program.

    >>> from minipd.framework.row import ROWS
    >>> from minipd.ir.builder import Builder
    >>> program = Program()
    >>> build = Builder(program.global_block())
    >>> x, w = build.data("x", (2,), "float32"), build.parameter("w", (2,), "float32")
    >>> y, = build.call(ROWS["multiply"], (x, w), {})
    >>> _ = build.output("y", y), build.set_parameter("w", y)
    >>> scope = Scope(w=np.array([2, 3], np.float32))
    >>> executor = Executor(program)
    >>> executor.run({"x": np.array([1, 2], np.float32)}, scope)
    {'y': array([2., 6.], dtype=float32)}
    >>> scope
    {'w': array([2., 6.], dtype=float32)}

    program: is prepared as it is now; later changes of it are not seen.  place: whose kernels are chosen.
    runs, instructions: how often it has been run, and how many instructions that were.
    """

    def __init__(self, program: Program, place: Place = CPU):
        if program.form != "minipd":
            raise ValueError("executor: expected a program in minipd's form, got one in Paddle's; convert it with "
                             "minipd.ir.paddle.from_paddle")
        self.program, self.place, self._backend = program, place, place.kind.upper()
        printing = flag("FLAGS_print_ir")
        if printing:
            print(f"IR before lowering = {program}")
        self.lowered = pd_op_to_kernel_pass(program, place)
        self.prepared = Preparation(self.lowered)
        if printing:
            print(f"IR after lowering = {self.kernel_program}")
        self.inputs: dict[str, Value] = {op.attributes["name"].value: op.result(0) for op in program.global_block()
                                         if op.name() in ("pd_op.data", "cf.stack_take")}
        self._declared = {name: (v.shape, v.dtype, v) for name, v in self.inputs.items()
                          if not isinstance(v.type(), StackType)}
        self._stacks = [name for name in self.inputs if name not in self._declared]
        #: whether the inputs have one shape only: a run without open sizes
        self.fixed = all(type(d) is int for shape, _, _ in self._declared.values() for d in shape)
        self._shared_state, self._shared_outputs, self._rivals = self.prepared.shared_results()
        self._shares = bool(self._shared_state or self._shared_outputs)
        self.runs = self.instructions = 0
        self._checked: dict[str, int] | None = None
        self._arena: Arena | None = None        # while a run uses it, another (of another rank) makes its own
        self._owned: dict[str, ref] = {}

    def run(self, feed: Mapping[str, np.ndarray] | None = None, scope: MutableMapping[str, np.ndarray] | None = None,
            memory: Memory | None = None, sizes: Mapping[str, int] | None = None) -> dict[str, np.ndarray]:
        """Run the program once and return its outputs by name.

        feed: an array for every input, of the declared dtype and of a shape that fits; for `cf.stack_take`, the stack
        that another run gave.  scope: program state, read and written.  memory: an allocation hook.  sizes: of symbolic
        dimensions that no input tells.
        No output shares memory with the state.
        Raises: ValueError for a feed that does not fit; what a kernel raises, with a note that names the operation.
        """
        feed, scope = {} if feed is None else feed, Scope() if scope is None else scope
        bindings = self.sizes(feed, sizes)
        found = self.call([feed[name] for name in self.prepared.inputs], None, scope, bindings, memory)
        return dict(zip(self.prepared.outputs, found, strict=True))

    def call(self, inputs: list[Any], state: Sequence[np.ndarray] | None, scope: MutableMapping[str, np.ndarray],
             sizes: Mapping[str, int] = NO_SIZES, memory: Memory | None = None) -> list[Any]:
        """`run` for who knows that everything fits, without names: returns the outputs, in the order of
        `prepared.outputs`.

        inputs, state: in the order of `prepared.inputs` and `prepared.state`; state None: that in the scope, which is
        looked at.  scope: is written.  sizes: of all symbolic dimensions.
        """
        arena, self._arena = self._arena or Arena(), None
        try:
            bound = arena.bindings.get(tuple(sorted(sizes.items())) if sizes else ())
            if bound is None:
                bound = self._bind(arena, sizes)
            frame, context = bound.frame, current()
            succeeded = False
            try:
                frame.begin([*inputs, *(bound.state_in(scope) if state is None else state)], memory)
                if memory is not None:
                    memory.start(arrays_in((*frame.slots[:frame.n_given], *scope.values())))
                    memory.hold(bound.memory)
                if frame.overwritten:
                    frame.own_state()
                frame.around = watcher(bound) if context.watched else None
                frame.run(self._steps(bound, memory is not None or frame.around is not None, context.comm))
                slots = frame.slots
                outputs = [slots[i] for i in bound.outputs]
                self._store(bound, frame, outputs, scope)
                self.runs += 1
                self.instructions += frame.instructions
                succeeded = True
                return outputs
            finally:
                bound.finish(succeeded)
                if bound.overlap and not bound.overlap.worker.idle:
                    arena = Arena()         # a collective that has been begun may still write into this one
        finally:
            self._arena = arena

    def _steps(self, bound: Binding, watched: bool, comm: Any) -> Steps:
        """What a run calls: on the streams of the place, if it has any; with collectives in a thread, where that may be
        and is of use.  While somebody looks on, one after the other."""
        if self._backend in STREAMS and not watched:
            if bound.on_device is None:
                bound.on_device = on_streams(bound, self._backend)
            return bound.on_device
        if watched or comm is None or not comm.threads:
            return bound.program
        if bound.overlap is None:
            bound.overlap = overlapping(bound) or False
        return bound.overlap.begin() if bound.overlap else bound.program

    def plan(self, **sizes: int) -> Plan:
        """The memory plan; sizes: those of the symbolic dimensions, by name."""
        return Layout(self.prepared, sizes).plan

    def dependencies(self, **sizes: int) -> Dependencies:
        """The graph of the instructions: what must come before what; sizes: as in `plan`."""
        return Dependencies(self.prepared, Layout(self.prepared, sizes))

    @property
    def kernel_program(self) -> Program:
        """The program in dialect `kernel`, which is what runs; each operation says where its result's memory is."""
        for item in self.prepared.items:
            if item.call is not None and "kernel_key" in item.op.attributes:
                item.op.set_attr("memory", self.prepared.memory_of(item))
        return self.lowered.program

    def _bind(self, arena: Arena, sizes: Mapping[str, int]) -> Binding:
        layout = Layout(self.prepared, sizes)
        memory = arena.take(layout.plan.size)
        bound = Binding(self.prepared, layout, memory, self._owned).link()
        arena.bindings[tuple(sorted(sizes.items()))] = bound
        return bound

    def sizes(self, feed: Mapping[str, np.ndarray], known: Mapping[str, int] | None = None) -> dict[str, int]:
        """The sizes of the symbolic dimensions, read off the inputs, which are checked; `known` are some of them.

        Raises: ValueError for a feed that does not fit.
        """
        if feed.keys() != self.inputs.keys():
            missing, unknown = self.inputs.keys() - feed.keys(), feed.keys() - self.inputs.keys()
            raise ValueError(f"feed: expected the inputs {', '.join(self.inputs) or 'none'}; "
                             + "; ".join([f"missing {n}" for n in sorted(missing)]
                                         + [f"unknown {n}" for n in sorted(unknown)]))
        bindings: dict[str, int] = dict(known) if known else {}
        for name, (shape, dtype, value) in self._declared.items():
            array = feed[name]
            if array.dtype != dtype:
                raise ValueError(f"input {name!r}: expected {describe(value)}, got {describe(array)}; cast it first")
            if array.shape != shape:
                bind_shape(shape, array.shape, bindings, f"input {name!r}")
        for name in self._stacks:
            if not isinstance(feed[name], list):
                raise ValueError(f"input {name!r}: expected the stack that another program gives as an output, got "
                                 f"{feed[name]!r}")
        if bindings and bindings != self._checked:
            self.program.constraints.check(bindings)
            self._checked = bindings
        return bindings

    def _store(self, bound: Binding, frame: Frame, outputs: list[Any], scope: MutableMapping[str, np.ndarray]) -> None:
        """Store what the run has written.  Every state and every output gets memory of its own: it may be changed in
        place later, which nobody else may see."""
        for name in frame.copied:
            self._owned[name] = ref(frame.writes[name])
        if self._shares:
            self._part(bound, frame, outputs)
        if frame.writes:
            scope.update(frame.writes)

    def _part(self, bound: Binding, frame: Frame, outputs: list[Any]) -> None:
        """Copy those results that share memory with anything else."""
        taken = {id(root(a)) for a in arrays_in([frame.slots[i] for i in self._rivals])}
        taken.update(bound.outside)
        taken.update(id(root(frame.writes[name])) for name in self.prepared.inplace)
        results: tuple[tuple[Any, Any], ...] = (frame.writes, self._shared_state), (outputs, self._shared_outputs)
        for found, keys in results:
            for key in keys:
                array = found[key]
                if type(array) is list:
                    continue
                if id(root(array)) in taken or not array.flags.writeable:
                    found[key] = array = array.copy()
                taken.add(id(root(array)))
        for stack in outputs:               # nobody writes what is on it, so what is there twice may stay so
            if type(stack) is list:
                own(stack, taken)


def own(stack: list, taken: set[int]) -> None:
    """Copy the arrays on a stack whose memory is that of others."""
    for i, values in enumerate(stack):
        for x in values:
            if type(x) is list:
                own(x, taken)
        if any(type(x) is not list and id(root(x)) in taken for x in values):
            stack[i] = tuple(x.copy() if type(x) is not list and id(root(x)) in taken else x for x in values)
