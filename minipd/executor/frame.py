"""One run: the slots that values stand in, and what the run reads and leaves behind."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from minipd.executor.memory import Memory
from minipd.framework.rank import current
from minipd.ir.operation import user_error

if TYPE_CHECKING:
    from minipd.executor.preparation import Item

__all__: list[str] = []

def nothing() -> None:
    """The function of an item that a run has nothing to do for: what it is given stands in its place already."""


#: is given an item and its function, and calls it
Around = Callable[["Item", Callable[[], Any]], None]


class Part(NamedTuple):
    """An item, its function, and the slots that are emptied afterwards."""

    item: Item
    function: Callable[[], Any]
    dead: tuple[int, ...]


class Steps:
    """What a block does, in order: `parts`; and `functions`, the same as a flat list, which is all that a run sees."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.functions: list[Callable[[], Any]] = []

    def add(self, part: Part, frame: Frame) -> None:
        """Call the function of `part`, then let go of what is dead."""
        self.parts.append(part)
        if part.function is not nothing:
            self.functions.append(part.function)
        if part.dead:
            self.functions.append(functools.partial(frame.empty, part.dead))

    def item_of(self, function: Callable | None) -> Item | None:
        """The item that a function belongs to."""
        return next((part.item for part in self.parts if part.function is function), None)


class Frame:
    """The state of a run.

    slots: the arrays, one per value; those of static values stay from run to run.  The first ones are what the run is
    given.  writes: state to be stored when the run is over.  overwritten: the places and names of given state that is
    written over.  owned: the arrays of state that earlier runs made, by name: only these are written over.  copied: the
    names of state that this run has copied, in order to write over it.
    """

    def __init__(self, n_slots: int, n_given: int, overwritten: Sequence[tuple[int, str]], owned: dict[str, ref]):
        self.slots: list[Any] = [None] * n_slots
        self.n_given, self.overwritten, self.owned = n_given, overwritten, owned
        self.none = (None,) * n_given
        self.around: Around | None = None       # while somebody looks on: it calls the functions itself
        self.begin(self.none, None)

    def begin(self, given: Sequence[Any], memory: Memory | None) -> None:
        """A run begins.  given: the inputs, arrays and stacks, and the state."""
        self.slots[:self.n_given] = given
        self.memory = memory
        self.writes: dict[str, np.ndarray] = {}
        self.copied: list[str] = []
        self.instructions = 0

    def own_state(self) -> None:
        """See to it that the state that will be written over is nobody else's."""
        for slot, name in self.overwritten:
            array = self.slots[slot]
            known = self.owned.get(name)
            if known is None or known() is not array:
                self.copied.append(name)        # others may hold the array that the caller has put there
                self.slots[slot] = array = np.array(array, order="C")
                self.keep((array,))

    def end(self) -> None:
        """The run is over: let go of what it was given."""
        self.slots[:self.n_given] = self.none
        self.memory, self.writes = None, {}

    def run(self, steps: Steps) -> None:
        """Call functions in order.

        An exception leaves with a note that names the operation, its operands and the user's line.
        """
        step = None
        try:
            if self.around is None:
                for step in steps.functions:
                    step()
            else:
                for item, step, dead in steps.parts:
                    self.around(item, step)
                    self.empty(dead)
        except Exception as error:
            failed = steps.item_of(step)
            if failed is not None:
                error.add_note(user_error(failed.origin, "while running this operation"))
            raise
        self.instructions += len(steps.parts)

    # ---------------------------------------------------------------------------------------------------- slots
    def empty(self, slots: Iterable[int]) -> None:
        """Let go of what stands in `slots`."""
        for i in slots:
            if self.memory is not None:
                self.let_go((self.slots[i],))
            self.slots[i] = None

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

    def communicator(self, name: str) -> Any:
        """This rank's communicator."""
        comm = current().join()
        if comm is None:
            raise RuntimeError(f"{name}: this rank has no communicator; start ranks with `minipd launch -n N "
                               "script.py`, or simulate them with minipd.dist.comm.sim.World(N).run(fn)")
        return comm


def _arrays(held: Iterable[Any]) -> Iterator[np.ndarray]:
    """The arrays among what is held.  What is on a stack is held from the push to the pop, whoever holds the stack."""
    for x in held:
        if isinstance(x, np.ndarray):
            yield x
        elif isinstance(x, tuple):
            yield from _arrays(x)


def arrays_in(held: Iterable[Any]) -> Iterator[np.ndarray]:
    """The arrays among what is held, and on the stacks among it."""
    for x in held:
        if isinstance(x, np.ndarray):
            yield x
        elif isinstance(x, (tuple, list)):
            yield from arrays_in(x)
