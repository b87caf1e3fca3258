"""`if` and `a if c else b`.  A condition of Python's, or an eager tensor: Python's own.  A traced tensor: a `pd_op.if`.

Both blocks are traced, each into its region, from the same start: what the first has changed is taken back before the
second.  Then what they have left is merged, variable by variable; what can be had from one block only, or is no tensor
and differs, is left empty (see `reasons`), unless it is what the function returns: that has to agree.
"""

from __future__ import annotations

import linecache
import types
from collections.abc import Callable, Sequence
from typing import Any

from minipd.framework.constraints import PACKAGE, user_line
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.framework.views import rebind
from minipd.ir.structure import Leaf, mapped
from minipd.ir.trace import Trace
from minipd.ir.value import Value
from minipd.jit.dy2static.asserts import raised_by_user, stop_with
from minipd.jit.dy2static.changes import Changes, Left, emptied, noted
from minipd.jit.dy2static.logic import traced, truth
from minipd.jit.dy2static.merging import Apart, Merge, spelled, with_contents
from minipd.jit.dy2static.reasons import Undecided
from minipd.jit.dy2static.variables import CONTENTS, MISSING, Place, places
from minipd.static.control_flow import record

__all__: list[str] = []

#: what `loop_exits` calls the variables that hold what a loop returns: read only where they are set
GUARDED = "return_value_"


def If(test: Any, true_fn: types.FunctionType, false_fn: types.FunctionType | None, names: Sequence[str],
       local: Sequence[str] = ()) -> Any:
    """`if test: true_fn() else: false_fn()`; the result is that of the function that is called.

    names: what the functions may change.  local: variables that they may change too, which nobody looks at afterwards.
    """
    if not traced(test):
        if test:
            return true_fn()
        return None if false_fn is None else false_fn()
    functions = [f for f in (true_fn, false_fn) if f is not None]
    return Branch(truth(test), (true_fn, false_fn), places(names, functions),
                  places(local, functions)).write()


def IfExp(test: Any, true_fn: Callable, false_fn: Callable) -> Any:
    """`true_fn() if test else false_fn()`"""
    if not traced(test):
        return true_fn() if test else false_fn()
    return choose(truth(test), true_fn, false_fn)


def choose(test: Tensor, true_fn: Any, false_fn: Any) -> Any:
    """The value of one of two functions without other effects."""
    return Branch(test, (true_fn, false_fn), []).write()


class Branch:
    """A branch that is being traced.  blocks: the two functions.  places: what they may change; local: the same, but of
    no interest afterwards."""

    def __init__(self, test: Tensor, blocks: tuple, places: list[Place], local: Sequence[Place] = ()):
        self.test, self.blocks, self.places, self.local = test, blocks, list(places), local
        self.trace: Trace = current().ground
        self.where = user_line()

    def write(self) -> Any:
        trace = self.trace
        op = trace.build.build("pd_op.if", [trace.value(self.test.payload)], {"op_callstack": (self.where,)},
                               num_regions=2)
        handles: dict[Value, Tensor] = {}
        sides = []
        for region, block in zip(op.regions, self.blocks, strict=True):
            with trace.inside(region.add_block()) as scope:
                sides.append(self.side(block, scope))
            handles.update(scope.handles)
        named = len(self.places)
        self._discover(sides)
        merge = Merge()
        for side, other in (sides, sides[::-1]):
            if side.error is not None and other.error is not None:
                raise side.error
            if side.error is not None:          # nobody sees what it leaves: as if it left the same
                side.result, side.values = other.result, other.values
        result = self.result(merge, sides)
        after = [self.variable(merge, sides, i) for i in range(len(self.places))]
        written = {k: x for s in sides for k, (x, _) in s.written.items()}
        writes = [(x, merge.of(*(s.written.get(k, (x, x))[1] for s in sides))) for k, x in written.items()]
        for i, region in enumerate(op.regions):
            with trace.inside(region.front()) as scope:
                trace.build.build("cf.yield", merge.values(trace, i))
            handles.update(scope.handles)
        outs = []
        yields = [r.front().back() for r in op.regions]
        for left, right in zip(*(y.operands_source() for y in yields if y is not None), strict=True):
            value = op.add_result(left.type())
            value.stop_gradient = left.stop_gradient and right.stop_gradient or not current().grad_enabled
            outs.append(Tensor(value))
            outs[-1].stop_gradient = value.stop_gradient
        record(trace, op, [], handles, outs)

        def filled(tree: Any) -> Any:
            return mapped(tree, lambda leaf: outs[leaf.index] if isinstance(leaf, Leaf) else leaf)
        for i, (place, tree) in enumerate(zip(self.places, after, strict=True)):
            if i >= named or not place.is_variable:
                noted(place, True)              # a block around this one changes it, too
            place.put(filled(tree))
        for x, tree in writes:
            if x.view_of is None or id(x.view_of[0]) not in written:        # views follow their base
                rebind(x, filled(tree), "an in-place write in a branch")
        return filled(result)

    def side(self, block: Any, scope: Any) -> Side:
        every = [*self.places, *self.local]
        before = [p.get() for p in every]
        changes = Changes(every)
        try:
            with changes:
                left = [None if block is None else block(), *(p.get() for p in self.places)]
        except Exception as error:
            if raised_by_user(error):
                stop_with(error)
                scope.take_back()
                return Side(None, before[:len(self.places)], {}, error)
            if not getattr(error, "branch_told", False) and not isinstance(error, NameError):
                error.branch_told = True            # type: ignore[attr-defined]
                error.add_note(f"while tracing a branch of the condition at {self.where}, which is a tensor: both "
                               "branches are traced, and the program takes one of them")
            raise
        finally:
            for place, value in zip(every, before, strict=True):
                place.put(value)
        found = changes.take_back(left)
        return Side(left[0], left[1:], scope.take_back(), None, found)

    def _discover(self, sides: list[Side]) -> None:
        """What called functions have changed becomes places like those that the blocks themselves name."""
        found = {left.place.key: left for side in sides for left in side.found}
        for key, left in found.items():
            self.places.append(left.place)
            for side in sides:
                side.values.append(next((x.after for x in side.found if x.place.key == key), left.before))

    def result(self, merge: Merge, sides: list[Side]) -> Any:
        try:
            return self.one(merge, sides, *self._as_left(sides, sides[0].result, sides[1].result))
        except Apart:
            raise TypeError(
                f"expected what the condition at {self.where} decides to be alike on both sides, got "
                f"{spelled(sides[0].result)} when it is True{self._last(0)} and {spelled(sides[1].result)} when it is "
                f"False{self._last(1)}: the condition is a tensor, so one program must hold both. Let both sides have "
                "the same structure, shapes and dtypes, or decide it by a Python value") from None

    def variable(self, merge: Merge, sides: list[Side], i: int) -> Any:
        place = self.places[i]
        true, false = self._as_left(sides, sides[0].values[i], sides[1].values[i])
        if true is MISSING and false is MISSING:
            return MISSING
        if true is MISSING or false is MISSING:
            if place.name.startswith(GUARDED):
                return merge.guarded(false if true is MISSING else true, false is MISSING)
            if place.is_variable:
                emptied(place, self.where, f"`{place.name}` is undefined when the condition is "
                            f"{false is MISSING and 'False' or 'True'} (line {self.line}: the condition is a tensor, "
                            f"and only the program knows it). Give `{place.name}` a value before the `if`, or in both "
                            "branches")
                return MISSING
        try:
            return self.one(merge, sides, true, false)
        except Apart:
            text = (f"`{place.name.removesuffix(CONTENTS)}` is {spelled(true)} when the condition is True"
                    f"{self._first(0)} and {spelled(false)} when it is False{self._first(1)}: the condition at "
                    f"{self.where} is a tensor, and one variable of the program has one type")
            if not place.is_variable:
                text += (". Let both sides leave the same structure, shapes and dtypes there, change it behind the "
                         "`if`, or compile with full_graph=False")
            if place.is_variable and not place.name.startswith(GUARDED):
                emptied(place, self.where, text, Undecided)
                return MISSING
            raise TypeError(text) from None

    def _as_left(self, sides: list[Side], true: Any, false: Any) -> tuple[Any, Any]:
        """Two values, with what each side has left in the lists and dicts in them.  (They hold what they did before by
        now; one that is the same on both sides stays itself, and its contents are a place of their own.)"""
        if true is false:
            return true, false
        contents = [i for i, p in enumerate(self.places) if p.what == CONTENTS]
        held = [{id(self.places[i].owner): side.values[i] for i in contents} for side in sides]
        return with_contents(true, held[0]), with_contents(false, held[1])

    def one(self, merge: Merge, sides: list[Side], true: Any, false: Any) -> Any:
        """Two values as one; of a side that raises, zeros stand for its value."""
        if sides[0].error is not None or sides[1].error is not None:
            return merge.guarded(true, sides[1].error is not None)
        return merge.of(true, false)

    # ------------------------------------------------------------------------------------------------ for errors
    @property
    def line(self) -> str:
        return self.where.rpartition(":")[2]

    def _code(self, side: int) -> types.CodeType | None:
        """The user's code of a block."""
        block = self.blocks[side]
        code = getattr(getattr(block, "func", block), "__code__", None)
        return None if code is None or code.co_filename.startswith(PACKAGE) else code

    def _first(self, side: int) -> str:
        code = self._code(side)
        return "" if code is None else f" (line {code.co_firstlineno})"

    def _last(self, side: int) -> str:
        """The line where a block ends, with its text: that of its `return`."""
        code = self._code(side)
        if code is None:
            return ""
        lines = [n for _, _, n in code.co_lines() if n is not None]
        text = linecache.getline(code.co_filename, lines[-1]).strip()
        return f" (line {lines[-1]}: `{text}`)" if text else f" (line {lines[-1]})"


class Side:
    """What a block has left.  written: id -> (a tensor that was written in place, what it held at the end).  error:
    what it raises instead.  found: what functions that it called have left in other places."""

    def __init__(self, result: Any, values: list[Any], written: dict[int, tuple[Tensor, Tensor]],
                 error: Exception | None = None, found: Sequence[Left] = ()):
        self.result, self.values, self.written, self.error, self.found = result, values, written, error, found
