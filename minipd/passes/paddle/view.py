"""A program as Paddle has it, and which of our operations each of Paddle's stands for.

Rules that name Paddle's operators are matched here.  A call of `layer_norm` is three operators of ours and one of
Paddle's, `x[0]` is two and one, `x * 2.0` one and two (the number is an operand): the view knows who is who, so that
what is found here can be rewritten there.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, NamedTuple

from minipd.ir.block import Block
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation
from minipd.ir.paddle.save import CONSTANTS, Saver
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.ir.whole import Group
from minipd.passes.drr import _place
from minipd.passes.matching import Match
from minipd.passes.nodes import Input
from minipd.passes.rewriter import Listener, PatternRewriter

__all__ = ["Place", "View", "view_of"]


class Place(NamedTuple):
    """Where a match of the view stands in our program.

    ops: our operations.  inputs: Paddle's value -> ours, None for a constant that ours has as an attribute.
    outputs: Paddle's value -> those of ours that something outside of the match reads.
    """

    ops: dict[Operation, None]
    inputs: dict[Value, Value | None]
    outputs: dict[Value, list[Value]]

    def before(self) -> Operation | None:
        """The operation before which a result goes, None if there is none, as for every rule."""
        outs = [v for values in self.outputs.values() for v in values] or list(self.ops)[-1].results()
        values: dict[Any, Value] = {Input(str(i)): v for i, v in enumerate(self.inputs.values()) if v is not None}
        results: dict[Any, Value] = {(i,): v for i, v in enumerate(outs)}
        nodes: dict[Any, Operation] = dict(enumerate(self.ops))
        return _place(SimpleNamespace(outputs=tuple(results)),      # type: ignore[arg-type]
                      Match({**values, **results}, nodes=nodes, ops=self.ops))


class Remembering(Builder):
    """A builder that knows what it has made."""

    def __init__(self, block: Block):
        super().__init__(block)
        self.made: list[Operation] = []

    def insert(self, op: Operation) -> Operation:
        self.made.append(op)
        return super().insert(op)


class View(Saver, Listener):
    """The program in Paddle's form, as it was when the view was made.

    makers: Paddle's operation -> ours that it stands for.  made: the other way round.  touched: our operations that
    have changed since; what is matched there says nothing any more.
    """

    exact = True
    sweep_of_driver = 0         # in which the view was made

    def __init__(self, program: Program):
        super().__init__(strict=False)
        self.build: Remembering = Remembering(self.program.global_block())
        self.makers: dict[Operation, dict[Operation, None]] = {}
        self.touched: set[Operation] = set()
        self.block(program.global_block(), self.program.global_block())
        self.sweep()
        self.made: dict[Operation, list[Operation]] = {}
        self.ending: dict[Operation, list[Operation]] = {}      # the last of ours -> Paddle's that ends there
        for theirs, ours in self.makers.items():
            if theirs.parent is not None:
                for op in ours:
                    self.made.setdefault(op, []).append(theirs)
                self.ending.setdefault(list(ours)[-1], []).append(theirs)
        self.ours: dict[Value, list[Value]] = {}
        for old, new in self.values.items():
            self.ours.setdefault(new, []).append(old)

    # ------------------------------------------------------------------------------------- who stands for whom
    def one(self, op: Operation) -> Operation | None:
        known = len(self.build.made)
        copy = super().one(op)
        self._note(known, (op,))
        for result in op.results():     # written into an operation that was there: an index is a part of its slice
            made = self.values[result].get_defining_op() if result in self.values else None
            if made is not None and op not in self.makers[made]:
                self.makers[made][op] = None
        return copy

    def whole(self, op: Operation, group: Group) -> None:
        known = len(self.build.made)
        super().whole(op, group)
        self._note(known, group.ops)

    def _note(self, known: int, ops: Iterable[Operation]) -> None:
        for new in self.build.made[known:]:
            self.makers.setdefault(new, dict.fromkeys(ops))

    def place_of(self, ops: Iterable[Operation], inputs: Iterable[Value], outputs: Iterable[Value]) -> Place | None:
        """Where a match of these operations stands; None if nothing of ours is just that."""
        theirs = set(ops)
        ours = {op: None for each in theirs for op in self.makers[each]}
        if len({op.parent for op in ours}) != 1 or ours.keys() & self.touched:
            return None
        rest = {each for op in ours for each in self.made[op] if each not in theirs}
        if any(each.name() not in CONSTANTS and any(not r.use_empty() for r in each.results()) for each in rest):
            return None                 # of what an operation of ours is written as, a part was matched
        found: dict[Value, list[Value]] = {}
        for value in outputs:
            made = [v for v in self.ours.get(value, ()) if v.get_defining_op() in ours]
            found[value] = [v for v in made if any(u.owner() not in ours for u in v.uses)]
        read = {v for values in found.values() for v in values}
        for op in ours:
            if op.name() not in CONSTANTS and any(r not in read and any(u.owner() not in ours for u in r.uses)
                                                  for r in op.results()):
                return None
        return Place(ours, {v: self._input(v) for v in inputs}, found)

    def _input(self, value: Value) -> Value | None:
        known = self.ours.get(value, [])
        return next((v for v in reversed(known) if v.type() == value.type()), known[-1] if known else None)

    # ------------------------------------------------------------------------------------------------ listening
    def inserted(self, op: Operation) -> None:
        self.touched.add(op)

    def modified(self, op: Operation) -> None:
        self.touched.add(op)

    def replaced(self, old: Value, new: Value) -> None:
        self.touched.update(old.all_used_ops())

    def erased(self, op: Operation) -> None:
        self.touched.add(op)


def view_of(rewriter: PatternRewriter) -> View:
    """The view that all rules share which this rewriter works for.  It is made anew when a sweep begins in which what
    it shows has changed."""
    view = rewriter.shared.get(View)
    if view is None or view.touched and view.sweep_of_driver != rewriter.sweep:
        if view is not None:
            rewriter.listeners.remove(view)
        view = rewriter.shared[View] = View(rewriter.program)
        rewriter.listeners.append(view)
        view.sweep_of_driver = rewriter.sweep
    return view
