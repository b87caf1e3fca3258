"""What a block changes of Python's state: noted where it happens, and taken back at the end of the block.

A branch that the program decides is traced on both sides, an iteration once for all, and the trace of a whole program
for many calls.  So what such a block does to objects from around it, `self.n += 1` in a method that it calls, must not
stay: it is what the block *leaves*, which is merged, handed on, or done at every call.

Rewritten code says what it is about to change: `self.n += 1` is `_jst.Change(self, 'self.n').n += 1`, and `Call` sees
methods that change a container.  The innermost open `Changes` notes the place, and what stood there before.

What the block has made itself (a list that a helper fills) is nobody's business.  See `inside`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from minipd.framework.constraints import user_line
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.jit.dy2static.inside import behind, from_around, leads_on
from minipd.jit.dy2static.reading import KEPT
from minipd.jit.dy2static.reasons import leave_empty
from minipd.jit.dy2static.variables import CONTENTS, GLOBAL, MISSING, Place, attribute, contents, owned_place, places

__all__: list[str] = []

OPEN = "dy2static_changes"              # among this rank's flags: those that are open, innermost last


class Left(NamedTuple):
    """What a block has left in a place that was there before it.  read: it depends on what stood there before."""

    place: Place
    before: Any
    after: Any
    read: bool

    @property
    def is_change(self) -> bool:
        if self.place.what != CONTENTS:
            return self.before is not self.after
        if isinstance(self.before, np.ndarray):
            return self.before.tobytes() != self.after.tobytes()
        old, new = (list(x.items()) if isinstance(x, dict) else list(x) for x in (self.before, self.after))
        return len(old) != len(new) or any(not _same(*pair) for pair in zip(old, new, strict=True))


def _same(a: Any, b: Any) -> bool:
    return a is b or type(a) is tuple and type(b) is tuple and len(a) == len(b) and all(map(_same, a, b))


class Changes:
    """`with Changes(known) as changes: ...` notes what is changed inside; known: places that are looked after already.

    given: tells objects that were there before, as `inside.given_to` does, for this block and for all inside of it.
    after, around: from `take_back` on, what was left in the places, and the ids of those containers and objects in what
    the block has left that were there before.
    """

    def __init__(self, known: Iterable[Place] = (), given: Callable[[], Iterable[Any]] = tuple):
        self.known = {p.key for p in known}
        self.given = given
        self.found: dict[tuple, int] = {}
        self.names: list[str] = []
        self.owners: list[Any] = []
        self.kinds: list[str] = []
        self.read: list[bool] = []
        self.before: list[Any] = []
        self.spent: list[Any] = []
        self.spending: list[tuple[str, str]] = []
        self.after: list[Any] = []
        self.around: set[int] = set()
        self.emptied: dict[tuple, tuple[str, str, type[Exception]]] = {}

    def __enter__(self) -> Changes:
        current().flags.setdefault(OPEN, []).append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        current().flags[OPEN].remove(self)
        if exc[0] is not None:
            self._undo()

    def note(self, place: Place, read: bool) -> None:
        """This place is about to change."""
        if place.key in self.known or place.key in self.found:
            return
        self.read.append(read)
        self.found[place.key] = len(self.names)
        self.names.append(place.name)
        self.owners.append(place.owner)
        self.kinds.append(place.what)
        self.before.append(place.get())

    def _places(self) -> list[Place]:
        return [owned_place(*each) for each in zip(self.names, self.owners, self.kinds, strict=True)]

    def _undo(self) -> None:
        for place, value in reversed(list(zip(self._places(), self.before, strict=True))):
            place.put(value)

    def take_back(self, *products: list[Any]) -> list[Left]:
        """Put back what stood in the places; returns what was left there, without what the block has made itself.

        products: what else the block was given or has left, its results, held by these lists and nobody else.

        Raises: TypeError where something from around has been used up.
        """
        self.after = [place.get() for place in self._places()]
        self._undo()
        outermost = next(iter(current().flags.get(OPEN) or ()), self)
        there = behind(outermost.given())
        there.update(id(x) for x, kind in zip(self.owners, self.kinds, strict=True) if kind.startswith(GLOBAL))
        noted = current().flags.get(KEPT, ())
        self.around = from_around((self.owners, self.before, self.after, self.spent, *products, *noted), there)
        for x, (what, where) in zip(self.spent, self.spending, strict=True):
            if id(x) in self.around:
                raise TypeError(
                    f"{what} at {where}: expected state that can be put back after a trace, got {type(x).__name__}, "
                    "which is used up: every call of the program would see what this trace has seen. Pass what it "
                    "gives as an argument, or compile with full_graph=False; for random numbers there is paddle.rand")
        found = []
        for place, before, now, read in zip(self._places(), self.before, self.after, self.read, strict=True):
            if id(place.owner) in self.around:
                found.append(Left(place, before, now, read))
            else:
                place.put(now)
        return [left for left in found if left.is_change]

    def refuse_emptied(self) -> None:
        """After `take_back`, of a whole trace: raise where a variable that outlives the call was `emptied` and has no
        value yet, since code that the trace does not see may look at it."""
        for key, (name, why, error) in self.emptied.items():
            i = self.found.get(key)
            if i is not None and self.names[i] == name and self.after[i] is MISSING and id(
                    self.owners[i]) in self.around:
                raise error(f"{why}; `{name}` outlives the call")

    @contextmanager
    def done_again(self) -> Iterator[None]:
        """Let the changes be there inside, for code that belongs to the block and runs later: rules of gradients.

        Raises: TypeError if that changes something itself.
        """
        for place, value in zip(self._places(), self.after, strict=True):
            place.put(value)
        try:
            with Changes() as later:
                yield
            later._undo()
        finally:
            self._undo()
        if later.found:
            name = later.names[0].removesuffix(CONTENTS)
            raise TypeError("to_static: expected hooks and the backward of a PyLayer to change nothing but tensors, "
                            f"got a change of `{name}`: they run when backward() does, which a program does not tell. "
                            "Compile with full_graph=False")


def noted(place: Place, read: bool = False) -> None:
    """A place is about to change; read: maybe.  (One without an owner is a loop's own.)"""
    open_ = current().flags.get(OPEN)
    if open_ and place.owner is not None:
        open_[-1].note(place, read)


def emptied(place: Place, where: str, why: str, error: type[Exception] = NameError) -> None:
    """A variable has no value any more after the statement at `where`: who looks at it learns why."""
    leave_empty(where, place.name, why, error)
    open_ = current().flags.get(OPEN)
    if open_:
        open_[0].emptied[place.key] = place.name, why, error        # not the place: it would hold the owner


def spent(x: Any, what: str) -> None:
    """An object whose state nobody can put back, an iterator or a generator of random numbers, is about to go on."""
    open_ = current().flags.get(OPEN)
    if open_:
        open_[-1].spent.append(x)
        open_[-1].spending.append((what, user_line()))


def Change(owner: Any, name: str) -> Any:
    """The owner of `name`, an attribute `a.b` or contents `a[]`, which is changed next."""
    if current().flags.get(OPEN) and not isinstance(owner, Tensor):     # of tensors the trace knows
        what = name.rpartition(".")[2]
        place = contents(name, owner) if name.endswith(CONTENTS) else attribute(name, owner, what)
        if place is not None and not isinstance(getattr(type(owner), what, None), property):
            noted(place)
        elif leads_on(owner) and hasattr(owner, "__dict__"):        # its class says what is changed
            root = name.removesuffix(CONTENTS) if name.endswith(CONTENTS) else name.rpartition(".")[0]
            for attr, value in vars(owner).items():
                for inner in (attribute(f"{root}.{attr}", owner, attr), contents(f"{root}.{attr}[]", value)):
                    if inner is not None:
                        noted(inner)
    return owner


def Rebind(names: tuple[str, ...], read: Callable) -> None:
    """Variables of the module, or of functions around, that the function is going to bind.  read: reads them."""
    if current().flags.get(OPEN):
        for place in places(names, [read]):     # type: ignore[list-item]
            noted(place)
