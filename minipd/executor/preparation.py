"""A program, prepared: everything about running it that no run and no size changes.

*Slots.*  Every value has a place in a list.  A value is **static** if its array lies in the arena, where it stays for
all runs of one size: then it is put into its slot once, and kernels that touch only static values are called with their
arrays bound.  Everything else is **dynamic** and stands in its slot from the instruction that makes it to the last one
that reads it: what is fed, program state, what a row without `kernel_out` or a collective returns, the results of a
branch or a loop, what a loop carries, and what leaves the run (results and new state get memory of their own, which
later runs never touch).

*Positions.*  Items are numbered in the order in which they can run, those of regions before the operation that owns the
region.  A branch runs at most once where it stands, so the span from the first to the last position at which a value is
touched covers every moment at which it is alive.

*Loops.*  A loop has two items: the first hands the initial values to the arguments of the body, the second, behind the
body's, runs it again and again.  What comes into being in the body is alive within one iteration, so its static memory
is used again by the next; and what the body reads from around it is alive until the loop's second item, for another
iteration may read it.  The values carried from one iteration to the next are dynamic, in memory of their own: nothing
that an iteration writes lies where the one before left what this one reads.

*State that is written over.*  An INPLACE row that reads state and whose result is the same state's new value (an
optimizer's update) writes over it, if nothing reads the old value later.  Such calls are moved behind everything else,
so that a run that fails before them has changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from minipd.executor.calls import Call, call_of
from minipd.executor.kernel.lowering import Lowered
from minipd.executor.makers import MAKERS
from minipd.ir.block import Block
from minipd.ir.operation import Operation, captured
from minipd.ir.schema import is_attribute_only, result_values
from minipd.ir.traits import IrTrait
from minipd.ir.types import TensorType
from minipd.ir.value import Value

__all__: list[str] = []

#: operations that the executor itself gives a meaning (`control`)
STRUCTURE = frozenset({
    "builtin.split", "kernel.data", "builtin.parameter", "builtin.constant", "builtin.set_parameter",
    "builtin.shadow_output", "kernel.fetch", "pd_op.if", "pd_op.while", "cf.stack_create", "cf.stack_take",
    "cf.tuple_push", "cf.tuple_pop", "cf.has_elements"})
#: bundles are looked through, and what a region yields is taken by the operation that owns it
SKIPPED = frozenset({"builtin.combine", "cf.yield"})
#: readers that hand a value's memory on to where its reading cannot be foreseen
KEEPING = frozenset({"builtin.set_parameter", "builtin.shadow_output", "kernel.fetch", "cf.tuple_push", "cf.yield",
                     "pd_op.while"})
STATE = {"builtin.parameter": "parameter_name", "builtin.constant": "tensor_name"}
INPUTS = ("kernel.data", "cf.stack_take")
OUTPUTS = {"builtin.shadow_output": "output_name", "kernel.fetch": "name"}


@dataclass(eq=False)
class Item:
    """One operation to run, of a lowered program.

    origin: the operation that it comes from, which errors name.  at: its position.  call: what it calls, None for
    structure.  blocks: the items of its regions.  yields: what these yield.  dead: the dynamic values that nothing
    reads afterwards.  entry: of the second item of a loop, the first one; `enters` marks that one.  loops: the loops
    around it, innermost first (their second items).
    """

    op: Operation
    origin: Operation
    call: Call | None = None
    at: int = 0
    blocks: list[list[Item]] = field(default_factory=list)
    yields: list[list[Value]] = field(default_factory=list)
    dead: list[Value] = field(default_factory=list)
    entry: Item | None = None
    enters: bool = False
    loops: tuple[Item, ...] = ()

    def reads(self) -> list[Value]:
        """The values that it reads itself (what its regions read, their items read)."""
        if self.call is not None:
            return self.call.reads()
        if self.op.name() == "builtin.split":
            return parts_of(self.op)
        operands = self.op.operands_source()
        if self.enters:
            operands = operands[1:]
        elif self.entry is not None:
            operands = operands[:1]
        # an operator that minipd does not have may leave an operand out
        return unbundled(v for v in (*operands, *(v for values in self.yields for v in values)) if v is not None)


class Preparation:
    """The items of a lowered program, flat (`items`, by position) and as the global block runs them (`top`).

    slots: value -> its place.  What a run is given stands in the first places: the inputs, in the order of the program,
    and behind them the state that is read.  n_slots: how many places there are.
    inputs, state: the names of what is given.  outputs: the values that leave the run, by name.
    sources: value -> the values that it may share memory with, that come before it.
    dynamic: the dynamic values.  inplace: names of the state that is written over.
    passed: value that leaves the run -> the operand whose memory, made by the run, it takes.
    """

    def __init__(self, lowered: Lowered):
        self.origins = lowered.origins
        self.items: list[Item] = []
        self.sources: dict[Value, list[Value]] = {}
        self.inplace: dict[str, Value] = {}
        self.top = self._block(lowered.program.global_block())
        self._write_state_last()
        self._note_given(lowered.program.global_block())
        for item in self._flat(self.top):
            item.at = len(self.items)
            self.items.append(item)
            for value in (*item.reads(), *results_of(item)):
                if value not in self.slots:
                    self.slots[value] = self.n_slots
                    self.n_slots += 1
            if item.entry is not None:
                for inner in self._flat(item.blocks[0]):
                    inner.loops = (*inner.loops, item)
        leaving = self._leaving()
        self.dynamic: set[Value] = set()
        for item in self.items:
            if self._is_dynamic(item, leaving):
                self.dynamic.update(results_of(item))
        self._pass_on()
        self._end_dynamic(self.top, yields=list(self.outputs.values()))

    # --------------------------------------------------------------------------------------------------- items
    def _block(self, block: Block) -> list[Item]:
        items: list[Item] = []
        for op in block:
            if op.name() in SKIPPED or (
                    op.name() not in MAKERS and IrTrait.CONSTANT in op.info.traits and is_attribute_only(op)):
                continue
            if op.name() == "builtin.split" and op.results() == parts_of(op):
                continue                    # the call that makes the bundle makes these
            item = Item(op, self.origins[op])
            if op.name() == "pd_op.while":
                item.entry = Item(op, item.origin, enters=True)
                items.append(item.entry)
            if op.name() in STRUCTURE:
                for region in op.regions:
                    inner, end = region.front(), region.front().back()
                    item.blocks.append(self._block(inner))
                    item.yields.append([] if end is None or end.name() != "cf.yield" else end.operands_source())
            elif op.info.registered:
                item.call = call_of(op)
            items.append(item)
            self._note_sources(item)
        return items

    def _note_given(self, block: Block) -> None:
        """Give places to what a run is given, and note what it returns."""
        inputs = [op for op in block if op.name() in INPUTS]
        state = [item for item in self._flat(self.top) if item.op.name() in STATE]
        self.inputs = [op.attributes["name"].value for op in inputs]
        self.state = [item.op.attributes[STATE[item.op.name()]].value for item in state]
        given = [op.result(0) if op.name() == "kernel.data" else None for op in inputs]     # a stack is copied first
        given += [item.op.result(0) for item in state]
        self.slots: dict[Value, int] = {v: i for i, v in enumerate(given) if v is not None}
        self.n_slots = self.n_given = len(given)
        self.outputs = {item.op.attributes[OUTPUTS[item.op.name()]].value: item.op.operand_source(0)
                        for item in self.top if item.op.name() in OUTPUTS}

    def _note_sources(self, item: Item) -> None:
        call, op = item.call, item.op
        for i, value in enumerate(results_of(item)):
            if call is None:
                if op.name() == "pd_op.if":
                    self.sources[value] = [values[i] for values in item.yields]
                elif op.name() == "pd_op.while":        # no iteration at all, or the last one
                    initial, carried = op.operand_source(i + 1), item.yields[0][i + 1]
                    self.sources[value] = [initial, carried]
                    self.sources[op.regions[0].front().args()[i]] = [initial, carried]
                elif op.name() == "builtin.split":
                    self.sources[value] = [parts_of(op)[i]]
                elif op.name() == "kernel.fetch":
                    self.sources[value] = op.operands_source()
            elif call.view:
                self.sources[value] = [call.operands[0]]
            elif call.passes:
                self.sources[value] = call.reads()

    def _flat(self, items: list[Item]) -> Iterable[Item]:
        for item in items:
            for block in item.blocks:
                yield from self._flat(block)
            yield item

    # ------------------------------------------------------------------------------------ state written in place
    def _write_state_last(self) -> None:
        """Find the calls that write over state, and move them, with the writes of their results, to the end."""
        derived: dict[Value, list[Value]] = {}      # value -> those that may share its memory and come behind it
        for value, sources in self.sources.items():
            for source in sources:
                derived.setdefault(source, []).append(value)
        calls = {item: pairs for item in self.top if (pairs := self._state_pairs(item, derived))}
        while True:                     # what one of them reads, no other may write over
            written = {old: item for item, pairs in calls.items() for old, _, _ in pairs}
            clash = next((item for item in calls for v in item.reads() for root in self.roots(v)
                          if written.get(root, item) is not item), None)
            if clash is None:
                break
            del calls[clash]
        results = {r for item in calls for r in results_of(item)}
        last = [i for i in self.top if i in calls]
        writes = [i for i in self.top if i.op.name() == "builtin.set_parameter" and i.op.operand_source(0) in results]
        moved = {id(i) for i in (*last, *writes)}
        self.top = [i for i in self.top if id(i) not in moved] + last + writes
        for item, pairs in calls.items():
            assert item.call is not None
            for old, new, name in pairs:
                self.inplace[name] = old
                self.sources[new] = [old]
            item.call.inplace_state = True

    def _state_pairs(self, item: Item, derived: dict[Value, list[Value]]) -> list[tuple[Value, Value, str]]:
        """(old value, new value, name) of every state that a call may write over; empty unless it may all of them."""
        call = item.call
        if call is None or call.kernel_out is None:
            return []
        pairs = []
        for result, operand in call.updates.items():
            old, new = call.operands[operand], call.results[result]
            state, uses = old.get_defining_op(), new.all_used_ops()
            if state is None or state.name() != "builtin.parameter" or len(uses) != 1:
                return []
            name = state.attributes["parameter_name"].value
            if uses[0].name() != "builtin.set_parameter" or uses[0].attributes["parameter_name"].value != name:
                return []
            if sum(v is old for v in call.operands) > 1 or _is_kept(old, derived):
                return []
            pairs.append((old, new, name))
        return pairs if len(pairs) == len(call.results) else []

    def roots(self, value: Value, besides: Mapping[Value, Sequence[Value]] | None = None) -> list[Value]:
        """The value, and all those before it that it may share memory with.  besides: more `sources`."""
        found = {value: None}
        pending, more = [value], besides or {}
        while pending:
            value = pending.pop()
            for source in (*self.sources.get(value, ()), *more.get(value, ())):
                if source not in found:
                    found[source] = None
                    pending.append(source)
        return list(found)

    # -------------------------------------------------------------------------------------- static and dynamic
    def _leaving(self) -> set[Value]:
        """The values whose memory outlives the run or an iteration of a loop, or stands on a stack."""
        pending: list[Value] = []
        for item in self.items:
            name = item.op.name()
            if name in ("builtin.shadow_output", "kernel.fetch"):
                pending.append(item.op.operand_source(0))
            elif name == "builtin.set_parameter":
                if item.op.attributes["parameter_name"].value not in self.inplace:
                    pending.append(item.op.operand_source(0))
            elif name == "cf.tuple_push":
                pending += item.op.operands_source()[1:]
            elif item.entry is not None:
                pending += item.yields[0]
        found: set[Value] = set()
        while pending:
            value = pending.pop()
            if value not in found:
                found.add(value)
                pending += self.sources.get(value, ())
        return found

    def _is_dynamic(self, item: Item, leaving: set[Value]) -> bool:
        call = item.call
        if call is None:
            return item.op.name() != "builtin.split" or any(v in self.dynamic for v in item.reads())
        if call.view:
            return call.operands[0] in self.dynamic
        if any(r in leaving for r in call.results) or call.inplace_state:
            return True
        return call.kernel_out is None and not call.constant

    def _pass_on(self) -> None:
        """Let what a compiled kernel makes, and leaves the run, take the memory of an operand that ends with the kernel
        (a matrix product that it finishes): the operand is made in memory of its own instead, and no second array."""
        self.passed: dict[Value, Value] = {}
        makers = {call.results[0]: call for item in self.top
                  if (call := item.call) is not None and self._makes_one(call)}
        for value, call in makers.items():
            if call.bind is None or value not in self.dynamic or value in self.passed.values():
                continue
            for i in call.overwrites.get(0, ()):
                operand = call.operands[i]
                if (operand in makers and operand not in self.dynamic and not makers[operand].constant
                        and len(operand.all_used_ops()) == 1 and sum(v is operand for v in call.operands) == 1
                        and operand.type() == value.type()):
                    self.dynamic.add(operand)
                    self.passed[value] = operand
                    break

    def _makes_one(self, call: Call) -> bool:
        """Whether a call writes one result into whatever memory it is given."""
        return (call.kernel_out is not None and not call.multi and not call.comm and not call.view
                and not call.inplace_state and len(call.results) == 1 and call.results[0] not in self.sources)

    def shared_results(self) -> tuple[list[str], list[int], list[int]]:
        """The new state and the outputs that may share memory with another or with what the run is given: their names
        and their numbers.  A run then has to look: at these, and at what is given in the places that are the third
        result.  What kernels write into new buffers, nothing else being on them, is not among them."""
        results: dict[Any, Value] = {
            op.attributes["parameter_name"].value: op.operand_source(0) for op in (item.op for item in self.items)
            if op.name() == "builtin.set_parameter" and op.attributes["parameter_name"].value not in self.inplace}
        results.update(enumerate(self.outputs.values()))
        makers = {r: item.call for item in self.items if item.call is not None for r in item.call.results}
        fresh = {v for v in results.values() if v not in self.sources and (call := makers.get(v)) is not None
                 and call.kernel_out is not None and not call.inplace_state}
        besides = {v: call.operands for v, call in makers.items() if call.kernel_out is None}   # may return what it got
        roots = {key: frozenset(self.roots(v, besides)) for key, v in results.items()}
        held: dict[Value, int] = {}             # how many results may lie in the memory of a value
        for found in roots.values():
            for v in found:
                held[v] = held.get(v, 0) + 1
        if any(not isinstance(v.type(), TensorType) for v in results.values()):     # a stack: anything may be on it
            looked, rivals = list(results), set(range(self.n_given))
        else:
            looked = [key for key, v in results.items() if v not in fresh or held[v] > 1]
            rivals = {self.slots[v] for key in looked for v in roots[key] if self.slots[v] < self.n_given}
        return ([key for key in looked if type(key) is str], [key for key in looked if type(key) is int],
                sorted(rivals))

    def memory_of(self, item: Item) -> str:
        """How the result of a call gets its memory, in a word (see `kernel.dialect`)."""
        call = item.call
        assert call is not None
        if call.view:
            return "view"
        if call.inplace_state:
            return "state"
        if any(r in self.dynamic for r in call.results):
            return "own"
        return "constant" if call.constant else "arena"

    def _end_dynamic(self, items: list[Item], given: Sequence[Value] = (), yields: Sequence[Value] = ()) -> None:
        """Note at each item the dynamic values of its block that end there, arguments that are `given` to it too; what
        regions read, their owner reads, and what a block yields or never reads of what it is given, its owner lets go
        of."""
        last: dict[Value, Item] = {}
        for item in items:
            inside = unbundled(captured(item.op)) if item.blocks else []
            made = () if item.enters else results_of(item)
            last.update((v, item) for v in (*made, *item.reads(), *inside) if v in last or v in made or v in given)
            for region, block, values in zip(item.op.regions, item.blocks, item.yields, strict=False):
                self._end_dynamic(block, region.front().args(), values)
        for value, item in last.items():
            if value in self.dynamic and value not in yields and not self._is_outside(value):
                item.dead.append(value)

    def _is_outside(self, value: Value) -> bool:
        """Whether a value's memory is the caller's, who holds it anyway."""
        return all((op := v.get_defining_op()) is not None and (op.name() == "kernel.data" or op.name() in STATE)
                   for v in self.roots(value) if v not in self.sources)


def results_of(item: Item) -> Sequence[Value]:
    """The values that an item makes."""
    if item.enters:
        return item.op.regions[0].front().args()
    return item.op.results() if item.call is None else item.call.results


def parts_of(split: Operation) -> list[Value]:
    """The values that a `builtin.split` takes out of its bundle."""
    bundle = split.operand_source(0)
    op = bundle.get_defining_op()
    return unbundled([bundle]) if op is None or op.row is None else list(result_values(op))


def unbundled(values: Iterable[Value]) -> list[Value]:
    """The values, those that `builtin.combine` made replaced by what it combined."""
    found: list[Value] = []
    for v in values:
        op = v.get_defining_op()
        found += op.operands_source() if op is not None and op.name() == "builtin.combine" else [v]
    return found


def _is_kept(value: Value, derived: Mapping[Value, Sequence[Value]]) -> bool:
    """Whether a value, or something on its memory, leaves the run or is read where that cannot be foreseen."""
    pending, seen = [value], {value}
    while pending:
        value = pending.pop()
        if any(op.name() in KEEPING for op in value.all_used_ops()):
            return True
        for other in derived.get(value, ()):
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return False
