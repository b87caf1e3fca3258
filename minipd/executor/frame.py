"""One run: the slots that values stand in, and what the run reads and leaves behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from minipd.executor.memory import Memory
from minipd.framework.meta import describe
from minipd.framework.rank import current
from minipd.framework.row import Row
from minipd.ir.operation import user_error
from minipd.ir.value import Value

if TYPE_CHECKING:
    from minipd.executor.instructions import Instruction

__all__: list[str] = []

SMALL = 1024        # bytes: an array of which only the shape is read later is not worth replacing below this


class Frame:
    """The state of one run.

    slots: the arrays, one per value.  feed: inputs.  scope: program state as it was before.  writes: state to be stored
    when the run is over.  bindings: the sizes of symbolic dimensions.
    """

    def __init__(self, n_slots: int, feed: Mapping[str, np.ndarray], scope: Mapping[str, np.ndarray],
                 bindings: dict[str, int], memory: Memory | None):
        self.slots: list[Any] = [None] * n_slots
        self.feed, self.scope, self.bindings, self.memory = feed, scope, bindings, memory
        self.outputs: dict[str, np.ndarray] = {}
        self.writes: dict[str, np.ndarray] = {}
        self.instructions = 0

    def run(self, steps: list[Instruction]) -> None:
        """Run instructions in order.

        An exception of an instruction leaves with a note that names the operation, its operands and the user's line.
        """
        slots, memory = self.slots, self.memory
        step = None
        try:
            for step in steps:
                step.execute(self)
                if memory is not None:
                    self.keep(slots[i] for i in step.results)
                for i in step.shape_only:
                    self._replace_by_shape(i)
                if step.dead:
                    self.empty(step.dead)
        except Exception as error:
            if step is not None:
                error.add_note(user_error(step.op, "while running this operation"))
            raise
        self.instructions += len(steps)

    # -------------------------------------------------------------------------------------------------- slots
    def empty(self, slots: Iterable[int]) -> None:
        """Let go of what stands in `slots`."""
        for i in slots:
            if self.memory is not None:
                self.let_go((self.slots[i],))
            self.slots[i] = None

    def _replace_by_shape(self, i: int) -> None:
        array = self.slots[i]
        if array.nbytes > SMALL:
            self.let_go((array,))
            self.slots[i] = np.broadcast_to(np.zeros((), array.dtype), array.shape)
            self.keep((self.slots[i],))

    def keep(self, arrays: Iterable[Any]) -> None:
        """Tell the memory hook, if there is one, of arrays that are held from now on."""
        if self.memory is not None:
            for a in _arrays(arrays):
                self.memory.hold(a)

    def let_go(self, arrays: Iterable[Any]) -> None:
        """Tell the memory hook of arrays that are not held any more."""
        if self.memory is not None:
            for a in _arrays(arrays):
                self.memory.release(a)

    # ---------------------------------------------------------------------------------------- state and others
    def read_state(self, name: str, value: Value) -> np.ndarray:
        """The program state `name`, which must be as the program declares it."""
        if name not in self.scope:
            raise KeyError(f"state {name!r}: expected it in the scope, which has {', '.join(self.scope) or 'nothing'}")
        array = self.scope[name]
        if array.shape != value.shape or array.dtype != value.dtype:
            raise ValueError(f"state {name!r}: expected {describe(value)}, got {describe(array)}")
        return array

    def communicator(self, row: Row) -> Any:
        """This rank's communicator."""
        comm = current().comm
        if comm is None:
            raise RuntimeError(f"{row.name}: this rank has no communicator; start ranks with `minipd launch -n N "
                               "script.py`, or simulate them with minipd.dist.comm.sim.World(N).run(fn)")
        return comm


def _arrays(held: Iterable[Any]) -> Iterable[np.ndarray]:
    for x in held:
        if isinstance(x, np.ndarray):
            yield x
        elif isinstance(x, tuple):
            yield from x
