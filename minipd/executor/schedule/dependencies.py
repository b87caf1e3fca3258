"""What depends on what: the graph of a program's instructions, for given sizes.

Two instructions may run in either order unless one of them writes what the other touches:

    true    a read after the write that it means to see
    anti    a write after a read of what was there before (memory of the arena is used again, state is written over)
    output  a write after another write of the same place

The places are the slots of dynamic values, the bytes of the arena (*bytes*, not buffers: two buffers that never live at
once may overlap in part), and program state by name.  Besides, some instructions keep the order of the program among
themselves, whatever they touch:

    communication   collectives: every rank must make the same calls in the same order
    effect          operators with side effects; what is pushed on stacks and popped
    commit          what writes over program state comes after every collective: a run that fails in one has changed
                    nothing

A branch or a loop is one instruction, which touches whatever its regions may touch.  Every order that respects the
graph computes the same.  (When a slot is emptied is not part of it: that must come after the last reader, whichever
that is.)
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from minipd.executor.layout import Layout
from minipd.executor.preparation import STATE, Item, Preparation, results_of
from minipd.framework.row import Trait
from minipd.ir.printer import ProgramPrinter
from minipd.ir.value import Value

__all__ = ["Dependencies", "Dependency", "Instruction"]

#: the kinds, those that tell more first: of several reasons between two instructions, one is kept
KINDS = ("true", "anti", "output", "communication", "effect", "commit")


@dataclass(eq=False)
class Instruction:
    """Something that a run does.

    index: its place in the order of the program.  label: what it computes, and the values that it makes.
    """

    index: int
    item: Item
    label: str
    communicates: bool = False

    def __repr__(self) -> str:
        return f"{self.index}: {self.label}"


class Dependency(NamedTuple):
    """Instruction `after` must not begin before `before` has ended.  on: what both touch."""

    before: int
    after: int
    kind: str
    on: str


class Access(NamedTuple):
    """A place that an instruction touches: a name, or a range of bytes of the arena."""

    place: object
    writes: bool
    what: str


@dataclass
class Place:
    """Who touched a place last."""

    writer: int | None = None
    readers: list[int] = field(default_factory=list)


class Dependencies:
    """The graph.

    instructions: in the order of the program.  edges: the dependencies, one for each two instructions.
    downstream, upstream: for every instruction, those that wait for it, and those that it waits for.
    """

    def __init__(self, prepared: Preparation, layout: Layout):
        self.prepared, self.layout = prepared, layout
        self._printer = ProgramPrinter("exact")
        items = [item for item in prepared.top if layout.runs(item)]
        self.instructions = [Instruction(i, item, self._label(item), any(
            inner.call is not None and inner.call.comm for inner in _with_inner(item))) for i, item in enumerate(items)]
        self._found: dict[tuple[int, int], tuple[str, str]] = {}
        self._places: dict[object, Place] = {}
        self._cuts = sorted({at for b in layout.own.values() for whole in (b.whole(),)
                             for at in (whole.offset, whole.offset + whole.size)})
        for instruction in self.instructions:
            self._depend(instruction)
        self._keep_order()
        self.edges = [Dependency(a, b, *why) for (a, b), why in sorted(self._found.items())]
        self.downstream: list[list[int]] = [[] for _ in items]
        self.upstream: list[list[int]] = [[] for _ in items]
        for edge in self.edges:
            self.downstream[edge.before].append(edge.after)
            self.upstream[edge.after].append(edge.before)

    # ------------------------------------------------------------------------------------------- what is touched
    def _accesses(self, item: Item) -> Iterator[Access]:
        for inner in _with_inner(item):
            for value in inner.reads():
                yield from self._reads(value)
            yield from self._writes(inner)

    def _reads(self, value: Value) -> Iterator[Access]:
        name = self._printer.name(value)
        for place in self._memory(value):
            yield Access(place, False, name)

    def _writes(self, item: Item) -> Iterator[Access]:
        call, op = item.call, item.op
        for value in results_of(item):
            if value in self.prepared.dynamic:
                yield Access(value, True, self._printer.name(value))
            elif value in self.layout.own:
                buffer = self.layout.own[value].whole()
                yield Access(range(buffer.offset, buffer.offset + buffer.size), True, self._printer.name(value))
        if op.name() in STATE:
            name = op.attributes[STATE[op.name()]].value
            yield Access(("state", name), False, f"state {name!r}")
        elif op.name() == "builtin.set_parameter":
            name = op.attributes["parameter_name"].value
            yield Access(("state", name), True, f"state {name!r}")
        elif call is not None and call.inplace_state:
            for operand in call.updates.values():
                for place in self._memory(call.operands[operand]):
                    yield Access(place, True, self._printer.name(call.operands[operand]))

    def _memory(self, value: Value) -> list[object]:
        """The places in which a value may lie."""
        dynamic = self.prepared.dynamic
        found: list[object] = [v for v in self.prepared.roots(value) if v in dynamic]
        for buffer in self.layout.buffers(value):
            whole = buffer.whole()
            found.append(range(whole.offset, whole.offset + whole.size))
        return found

    # ------------------------------------------------------------------------------------------------- the edges
    def _depend(self, instruction: Instruction) -> None:
        """Enter what the instruction depends on, and what it touches.

        It reads before it writes.  Edges that others imply may be left out: a write that comes after reads depends on
        them, and they on the write before.
        """
        now, accesses = instruction.index, list(self._accesses(instruction.item))
        for place, writes, what in sorted(accesses, key=lambda a: a.writes):     # it reads before it writes
            for part, on in self._parts(place, what):
                last = self._places.setdefault(part, Place())
                if not writes:
                    self._edge(last.writer, now, "true", on)
                    last.readers.append(now)
                    continue
                for reader in last.readers:
                    self._edge(reader, now, "anti", on)
                if not last.readers:
                    self._edge(last.writer, now, "output", on)
                last.writer, last.readers = now, []

    def _parts(self, place: object, what: str) -> Iterable[tuple[object, str]]:
        """The places that are told apart: a range of bytes is cut where any buffer begins or ends."""
        if not isinstance(place, range):
            return [(place, what)]
        first, end = bisect.bisect_left(self._cuts, place.start), bisect.bisect_left(self._cuts, place.stop)
        return [(self._cuts[i], f"{what}, bytes {place.start} to {place.stop} of the arena") for i in range(first, end)]

    def _keep_order(self) -> None:
        last: dict[str, int] = {}
        for instruction in self.instructions:
            item = instruction.item
            kinds = {"communication"} if instruction.communicates else set()
            for inner in _with_inner(item):
                if inner.op.name().startswith("cf.") or inner.op.has_trait(Trait.SIDE_EFFECT) or (
                        not inner.op.info.registered):
                    kinds.add("effect")
            for kind in kinds:
                self._edge(last.get(kind), instruction.index, kind, "the order of the program")
                last[kind] = instruction.index
            if item.call is not None and item.call.inplace_state:
                self._edge(last.get("communication"), instruction.index, "commit", "the order of the program")

    def _edge(self, before: int | None, after: int, kind: str, on: str) -> None:
        if before is None or before == after:
            return
        known = self._found.get((before, after))
        if known is None or KINDS.index(kind) < KINDS.index(known[0]):
            self._found[before, after] = kind, on

    # ----------------------------------------------------------------------------------------------- for reading
    def _label(self, item: Item) -> str:
        op = item.op
        names = [self._printer.name(v) for v in results_of(item)]
        said = next((op.attributes[key].value for key in ("name", "parameter_name", "tensor_name", "output_name")
                     if key in op.attributes and isinstance(op.attributes[key].value, str)), "")
        short = op.name().partition(".")[2] + (" begins" if item.enters else "")
        return " ".join(filter(None, [short, said, ", ".join(names)]))

    def reduced(self) -> list[Dependency]:
        """The dependencies that no others imply: the transitive reduction.

        Its cost grows with the square of the number of instructions, in bits.
        """
        reached = [0] * len(self.instructions)      # everything downstream, as bits
        for i in reversed(range(len(reached))):
            for j in self.downstream[i]:
                reached[i] |= 1 << j | reached[j]
        kept = []
        for edge in self.edges:
            through = (reached[j] for j in self.downstream[edge.before] if j != edge.after)
            if not any(found >> edge.after & 1 for found in through):
                kept.append(edge)
        return kept

    def check_order(self, order: Iterable[int]) -> None:
        """Raises: ValueError if the order breaks a dependency, naming the two instructions, or misses one."""
        at = {i: n for n, i in enumerate(order)}
        if sorted(at) != list(range(len(self.instructions))):
            raise ValueError(f"order: expected each of {len(self.instructions)} instructions once, got {len(at)}")
        for edge in self.edges:
            if at[edge.before] > at[edge.after]:
                raise ValueError(f"order: {self.explain(edge)}, and the order has them the other way round")

    def explain(self, edge: Dependency) -> str:
        """A dependency in words."""
        before, after = self.instructions[edge.before], self.instructions[edge.after]
        reason = {"true": "reads what it writes", "anti": "writes over what it reads",
                  "output": "writes over what it writes"}.get(edge.kind, edge.kind)
        return f"instruction {after!r} must follow {before!r} ({reason}: {edge.on})"


def _with_inner(item: Item) -> Iterator[Item]:
    """The item and those of its regions."""
    pending = [item]
    while pending:
        found = pending.pop()
        yield found
        for block in found.blocks:
            pending += block
