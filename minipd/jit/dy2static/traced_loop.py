"""A loop that the program decides: which variables go from iteration to iteration, and what becomes of the others.

That is found by tracing the body.  It is traced again where it tells something new: that a variable changes its type or
is no tensor, which then no iteration hands to the next; that a tensor around the loop is written in place; what the
loop returns.  (`static.loops` traces again for its own reasons: the dtype of a number, a gradient.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minipd.autograd.tape import record_call
from minipd.framework.constraints import user_line
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.framework.views import rebind
from minipd.ir.structure import mapped
from minipd.ir.trace import Trace
from minipd.jit.dy2static.branches import GUARDED, Branch
from minipd.jit.dy2static.changes import Changes, Left, emptied, noted
from minipd.jit.dy2static.logic import traced, truth
from minipd.jit.dy2static.merging import NUMBERS, Apart, equal, meta, spelled
from minipd.jit.dy2static.reasons import Undecided
from minipd.jit.dy2static.variables import MISSING, Place
from minipd.ops.creation import full
from minipd.ops.logic import logical_and, logical_not
from minipd.static.effects import Assert as stop_unless
from minipd.static.loops import write_loop

__all__: list[str] = []


#: places of one loop; more means that it finds new ones in every iteration
MANY = 1000


class Again(Exception):
    """The body has to be traced once more."""


@dataclass
class Spec:
    """The type of a tensor."""

    shape: tuple
    dtype: np.dtype


class TracedLoop:
    """A loop that is being traced.

    goes_on: the test before the first iteration.  places: what test and body may change.  flag: which of them ends it.
    read: variables that are read right after the loop.  before: the values of the places around the loop.
    dropped: the places whose values no iteration hands to the next, and why.  missing: what to say of variables that
    have no value yet.  flags: Python's truth values, which stay that until an iteration changes them.  guarded: what
    stands for a value that the loop returns, or that is read after it, before there is one.  written: tensors around
    the loop that are written in place.  defined: the places that an iteration leaves with a value.
    """

    def __init__(self, goes_on: Tensor, test_fn: Callable, body_fn: Callable, places: list[Place], flag: Place | None,
                 read: Sequence[str], free: bool = False):
        self.trace: Trace = current().ground
        self.goes_on, self.test_fn, self.body_fn, self.flag = goes_on, test_fn, body_fn, flag
        self.free = free
        self.places, self.read, self.where = list(places), read, user_line()
        self.before, self.named = [p.get() for p in places], len(places)
        self.dropped: dict[int, tuple[str, type[Exception]]] = {}
        self.guarded: dict[int, Any] = {}
        self.flags = {i for i, value in enumerate(self.before) if isinstance(value, bool)}
        self.written: dict[int, Tensor] = {}
        self.defined: set[int] = set()
        self.missing = {
            i: f"`{place.name}` is undefined when the loop at {self.where} runs no iteration: its end is a tensor, "
               f"which only the program knows. Give `{place.name}` a value before the loop"
            for i, (place, value) in enumerate(zip(places, self.before, strict=True)) if value is MISSING}
        self.dropped |= {i: (why, NameError) for i, why in self.missing.items()}

    def write(self) -> None:
        while True:             # every reason to trace again is given at most once for each place or tensor
            drawn, block = current().rng.get_state(), self.trace.build.block
            last = block.back()
            try:
                values, written = self._write()
                break
            except Again:
                current().rng.set_state(drawn)
                while (op := block.back()) is not None and op is not last:
                    op.erase()
            finally:
                self._put(self.before)
        for i, (place, value) in enumerate(zip(self.places, values, strict=True)):
            if i in self.dropped and (i not in self.missing or i in self.defined):
                emptied(place, self.where, *self.dropped[i])
            if i >= self.named or not place.is_variable:
                noted(place, True)              # a block around this one changes it, too
            place.put(value)
        for i in self.guarded:
            if self._is_checked(i):             # it is read now: Python would stop here, too
                stop_unless(self.goes_on, message=self.missing[i])
        for x, new in zip(self.written.values(), written, strict=True):
            if x.view_of is None or id(x.view_of[0]) not in self.written:       # views follow their base
                rebind(x, new, "an in-place write in a loop")

    def _write(self) -> tuple[list[Any], list[Tensor]]:
        """Write the loop; returns the values of the places after it, and of the tensors that it has written."""
        start = [self._start(i) for i in range(len(self.places))]
        carried = [i for i, value in enumerate(start) if _has_tensors(value) and i not in self.flags]

        depth, again = len(self.trace.scopes), [self.goes_on]       # whether there is one more iteration

        def body(values: list, written: list) -> list:
            inside = list(start)
            mapped([values, written], _computed)
            for i, value in zip(carried, values, strict=True):
                inside[i] = MISSING if self._is_checked(i) else value       # the first iteration finds none
            self._put(inside)
            for x, value in zip(self.written.values(), written, strict=True):
                rebind(x, value, "an in-place write in a loop")
            with Changes(self.places) as changes:
                self.body_fn()
                left = [self._test(), *(p.get() for p in self.places)]
            self._put(self.before)              # nobody but `left` holds what the iteration has made
            self._discover(changes.take_back(left, inside, values))
            goes_on, *after = left
            now = self.trace.scopes[-1].take_back()
            self._learn(start, after, {k: x for k, (x, _) in now.items()})
            again[1:] = [goes_on]
            return [[self._settled(start[i], after[i]) for i in carried],
                    [now[k][1] if k in now else handle_on(x) for k, x in self.written.items()]]
        first = [[start[i] for i in carried], [handle_on(x) for x in self.written.values()]]
        names = ["the variables", "the tensors written in place"]
        values, written = write_loop(self.trace, lambda *_: again[len(self.trace.scopes) - depth], body, first, names)
        found = list(start)
        for i, value in zip(carried, values, strict=True):
            found[i] = value
        return found, written

    def _is_checked(self, i: int) -> bool:
        """Whether a place is a variable that gets its value in the loop, and is read after it."""
        return i in self.guarded and not self.places[i].name.startswith(GUARDED)

    def _test(self) -> Any:
        """Whether there is another iteration."""
        stopped = False if self.flag is None else self.flag.get()
        if traced(stopped) and self.free:
            goes_on = logical_and(truth(self.test_fn()), logical_not(truth(stopped)))
        elif traced(stopped):
            goes_on = Branch(truth(stopped), (lambda: False, self.test_fn), self.places).write()
        else:
            goes_on = False if stopped else truth(self.test_fn())
        return goes_on if isinstance(goes_on, Tensor) else full([], bool(goes_on), "bool")

    def _discover(self, found: list[Left]) -> None:
        """What called functions have changed becomes places like those that the body itself names.

        Raises: Again if there is something.
        """
        for left in found:
            if left.before is MISSING or len(self.places) > MANY:
                raise TypeError(
                    f"`{left.place.name}` is set by a function that the loop at {self.where} calls, and has no value "
                    "before: the end of the loop is a tensor, and what goes from one iteration to the next needs a "
                    "start. Give it a value of the shape and dtype that it will have before the loop, or compile with "
                    "full_graph=False")
            if isinstance(left.before, bool):
                self.flags.add(len(self.places))
            self.places.append(left.place)
            self.before.append(left.before)
        if found:
            raise Again

    def _put(self, values: list[Any]) -> None:
        for place, value in zip(self.places, values, strict=True):
            place.put(value)

    def _start(self, i: int) -> Any:
        """What a place holds at the start of the loop, as far as it can be handed on."""
        if i in self.guarded:
            return mapped(self.guarded[i], lambda s: full(s.shape, 0, s.dtype.name) if isinstance(s, Spec) else s)
        return MISSING if i in self.dropped else self.before[i]

    # --------------------------------------------------------------------------------- from iteration to iteration
    def _learn(self, start: list[Any], after: list[Any], written: dict[int, Tensor]) -> None:
        """Compare what an iteration leaves with what the next one should start with.

        Raises: Again where the loop has to be traced in another way; TypeError where there is none.
        """
        self.defined = {i for i, value in enumerate(after) if value is not MISSING}
        again = not written.keys() <= self.written.keys()
        self.written |= written
        for i, (place, old, new) in enumerate(zip(self.places, start, after, strict=True)):
            if i in self.dropped:
                if new is not MISSING and self.before[i] is MISSING and (
                        place.name.startswith(GUARDED) or place.name in self.read and _has_tensors(new)):
                    self.guarded[i] = mapped(new, lambda x: Spec(*meta(x, x)) if isinstance(x, (Tensor, *NUMBERS))
                                             else x)
                    del self.dropped[i]
                    again = True
                continue
            if i in self.flags and not (isinstance(new, bool) and new is old):
                self.flags.discard(i)
                again = True
            try:
                self._settled(old, new)
            except Apart:
                if i in self.guarded or not place.is_variable:
                    raise TypeError(self._changes(place, old, new)) from None
                self.dropped[i] = self._changes(place, old, new), Undecided
                emptied(place, self.where, *self.dropped[i])       # the body may look at it, too
                again = True
        if again:
            raise Again

    def _settled(self, old: Any, new: Any) -> Any:
        """What an iteration leaves, as the next one can take it: numbers in the dtype that the loop started with.

        Raises: Apart.
        """
        leaf = (Tensor, *NUMBERS)
        if isinstance(old, leaf) and isinstance(new, leaf):
            (shape, dtype), (before, before_dtype) = meta(new, old), meta(old, new)
            if shape != before or dtype != before_dtype:
                raise Apart
            return full((), new, dtype.name) if isinstance(new, NUMBERS) and isinstance(old, Tensor) else new
        if type(old) is type(new):
            if isinstance(old, (list, tuple)) and len(old) == len(new):
                items = [self._settled(*pair) for pair in zip(old, new, strict=True)]
                return type(old)(*items) if hasattr(old, "_fields") else type(old)(items)
            if isinstance(old, dict) and list(old) == list(new):
                return {k: self._settled(old[k], new[k]) for k in old}
            if not isinstance(old, (list, tuple, dict)) and equal(old, new):
                return new
        raise Apart

    def _changes(self, place: Place, old: Any, new: Any) -> str:
        text = (f"`{place.name}` is {spelled(old)} before the loop at {self.where} and {spelled(new)} after an "
                "iteration: the end of the loop is a tensor, and what goes from one iteration to the next has one "
                "structure, shape and dtype")
        if isinstance(old, list) and isinstance(new, list) and len(old) != len(new):
            return text + (". A list cannot grow in a loop that the program counts: write into a tensor of full size "
                           "(`out[i] = ...`), or loop over a Python range")
        return text + ". Let it start as what it becomes (paddle.zeros of that shape and dtype), or cast it in the loop"


class _Iteration:
    """What the tape wants to know of the call that made what an iteration starts with."""

    name, multi, raw_gradient = "an iteration", True, True


def _computed(x: Any) -> None:
    """What an iteration starts with was computed: it is no leaf, and may be written in place."""
    if isinstance(x, Tensor) and not x.stop_gradient:
        record_call(_Iteration, [], [x], lambda gradients: [])


def handle_on(x: Tensor) -> Tensor:
    """Another handle on what a tensor holds now."""
    t = Tensor(x.payload)
    t.node, t.index, t.stop_gradient = x.node, x.index, x.stop_gradient
    return t


def _has_tensors(tree: Any) -> bool:
    found: list[bool] = []
    mapped(tree, lambda x: found.append(isinstance(x, (Tensor, *NUMBERS))))
    return any(found)
