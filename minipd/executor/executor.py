"""The plain executor: one library kernel per operation, in the order of the program.

Prepared once, run often.  What is dead is let go of at once; program state is read from a scope and stored there when
the run has succeeded as a whole, so that a run that fails half way changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import numpy as np

from minipd.executor.frame import Frame
from minipd.executor.instructions import Preparation
from minipd.executor.memory import Memory, root
from minipd.framework.dim import bind_shape
from minipd.framework.meta import describe
from minipd.ir.program import Program
from minipd.ir.value import Value

__all__ = ["Executor", "Scope"]


class Scope(dict[str, np.ndarray]):
    """Program state by name."""


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

    program: is prepared as it is now; later changes of it are not seen.
    runs, instructions: how often it has been run, and how many instructions that were.
    """

    def __init__(self, program: Program):
        self.program = program
        prepare = Preparation()
        self.steps = prepare.block(program.global_block())
        self.n_slots = len(prepare.slots)
        self.inputs: dict[str, Value] = {op.attributes["name"].value: op.result(0) for op in program.global_block()
                                         if op.name() == "pd_op.data"}
        self.runs = self.instructions = 0
        self._checked: dict[str, int] | None = None

    def run(self, feed: Mapping[str, np.ndarray] | None = None, scope: MutableMapping[str, np.ndarray] | None = None,
            memory: Memory | None = None) -> dict[str, np.ndarray]:
        """Run the program once and return its outputs by name.

        feed: an array for every input, of the declared dtype and of a shape that fits.  scope: program state, read and
        written.  memory: an allocation hook.
        No output shares memory with the state.
        Raises: ValueError for a feed that does not fit; what a kernel raises, with a note that names the operation.
        """
        feed, scope = feed or {}, Scope() if scope is None else scope
        bindings = self._bind(feed)
        if memory is not None:
            memory.start((*feed.values(), *scope.values()))
        frame = Frame(self.n_slots, feed, scope, bindings, memory)
        frame.run(self.steps)
        self.runs += 1
        self.instructions += frame.instructions
        self._store(frame, scope)
        return frame.outputs

    def _bind(self, feed: Mapping[str, np.ndarray]) -> dict[str, int]:
        """Check the inputs, and read the sizes of the symbolic dimensions off them."""
        if feed.keys() != self.inputs.keys():
            missing, unknown = self.inputs.keys() - feed.keys(), feed.keys() - self.inputs.keys()
            raise ValueError(f"feed: expected the inputs {', '.join(self.inputs) or 'none'}; "
                             + "; ".join([f"missing {n}" for n in sorted(missing)]
                                         + [f"unknown {n}" for n in sorted(unknown)]))
        bindings: dict[str, int] = {}
        for name, value in self.inputs.items():
            array = feed[name]
            if array.dtype != value.dtype:
                raise ValueError(f"input {name!r}: expected {describe(value)}, got {describe(array)}; cast it first")
            if array.shape != value.shape:
                bind_shape(value.shape, array.shape, bindings, f"input {name!r}")
        if bindings and bindings != self._checked:
            self.program.constraints.check(bindings)
            self._checked = bindings
        return bindings

    def _store(self, frame: Frame, scope: MutableMapping[str, np.ndarray]) -> None:
        """Store what the run has written.  Every state and every output gets memory of its own: it may be changed in
        place later, which nobody else may see."""
        taken = {id(root(a)) for a in (*frame.feed.values(), *scope.values())}
        for found in (frame.writes, frame.outputs):
            for name, array in found.items():
                if id(root(array)) in taken or not array.flags.writeable:
                    found[name] = array = array.copy()
                taken.add(id(root(array)))
        scope.update(frame.writes)
