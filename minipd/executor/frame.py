"""One run: the slots that values stand in, and what the run reads and leaves behind."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from weakref import ref

import numpy as np

from minipd.executor.memory import Memory
from minipd.framework.meta import describe
from minipd.framework.rank import current
from minipd.ir.operation import user_error
from minipd.ir.value import Value

if TYPE_CHECKING:
    from minipd.executor.preparation import Item

__all__: list[str] = []

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
        self.functions.append(part.function)
        if part.dead:
            self.functions.append(functools.partial(frame.empty, part.dead))

    def item_of(self, function: Callable | None) -> Item | None:
        """The item that a function belongs to."""
        return next((part.item for part in self.parts if part.function is function), None)


class Frame:
    """The state of a run.

    slots: the arrays, one per value; those of static values stay from run to run.  feed: inputs.  scope: program state
    as it was before.  state: what has been read of it.  writes: state to be stored when the run is over.
    owned: the arrays of state that earlier runs made, by name: only these are written over.  copied: the names of state
    that this run has copied, in order to write over it.
    """

    def __init__(self, n_slots: int, owned: dict[str, ref]):
        self.slots: list[Any] = [None] * n_slots
        self.owned = owned
        self.memory: Memory | None = None
        self.around: Around | None = None       # while somebody looks on: it calls the functions itself
        self.begin({}, {}, None)

    def begin(self, feed: Mapping[str, Any], scope: Mapping[str, np.ndarray], memory: Memory | None) -> None:
        """A run begins."""
        self.feed, self.scope, self.memory = feed, scope, memory
        self.state: dict[str, np.ndarray] = {}
        self.outputs: dict[str, Any] = {}        # arrays, and stacks
        self.writes: dict[str, np.ndarray] = {}
        self.copied: list[str] = []
        self.instructions = 0

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

    # ---------------------------------------------------------------------------------------- state and others
    def refuse_state(self, name: str, value: Value) -> NoReturn:
        """Say why program state cannot be read."""
        if name not in self.scope:
            raise KeyError(f"state {name!r}: expected it in the scope, which has {', '.join(self.scope) or 'nothing'}"
                           ) from None
        raise ValueError(f"state {name!r}: expected {describe(value)}, got {describe(self.scope[name])}")

    def own(self, name: str, array: np.ndarray) -> np.ndarray:
        """State that will be written over: copied once, unless an earlier run made it, for others may hold the array
        that the caller has put there."""
        known = self.owned.get(name)
        if known is not None and known() is array:
            return array
        self.copied.append(name)
        return np.array(array, order="C")

    def communicator(self, name: str) -> Any:
        """This rank's communicator."""
        comm = current().comm
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
