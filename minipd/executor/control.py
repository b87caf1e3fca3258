"""What the executor does for operations that are no calls: inputs, state, results, bundles, branches, loops, stacks.

A maker takes the binding and an item and returns a function without arguments that works on the binding's frame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from minipd.executor.frame import nothing
from minipd.executor.preparation import Item, results_of

if TYPE_CHECKING:
    from minipd.executor.binding import Binding

__all__: list[str] = []

Step = Callable[[], None]


def _given(bound: Binding, item: Item) -> Step:
    """Inputs and state stand in their places before a run begins, and outputs stay in theirs until it is over."""
    return nothing


def _set_parameter(bound: Binding, item: Item) -> Step:
    name, slot = item.op.attributes["parameter_name"].value, bound.slot(item.op.operand_source(0))
    frame, slots = bound.frame, bound.frame.slots

    def step() -> None:
        array = frame.writes[name] = slots[slot]
        if frame.memory is not None:
            frame.keep((array,))
    return step


def _fetch(bound: Binding, item: Item) -> Step:
    slot, result = bound.slot(item.op.operand_source(0)), bound.slot(item.op.result(0))
    frame, slots = bound.frame, bound.frame.slots

    def step() -> None:
        slots[result] = slots[slot]
        frame.keep((slots[slot],))
    return step


def _split(bound: Binding, item: Item) -> Step:
    op, frame, slots = item.op, bound.frame, bound.frame.slots
    results, sources = [bound.slot(r) for r in op.results()], [bound.slot(v) for v in item.reads()]

    def step() -> None:
        arrays = [slots[i] for i in sources]
        for i, array in zip(results, arrays, strict=True):
            slots[i] = array
        frame.keep(arrays)
    return step


def _if(bound: Binding, item: Item) -> Step:
    frame, slots = bound.frame, bound.frame.slots
    condition = bound.slot(item.op.operand_source(0))
    results = [bound.slot(r) for r in item.op.results()]
    branches = [(bound.steps(block), [bound.slot(v) for v in values],
                 [bound.slot(v) for v in yielded_here(block, values) if v in bound.prepared.dynamic])
                for block, values in zip(item.blocks, item.yields, strict=True)]

    def step() -> None:
        steps, yielded, inside = branches[0 if slots[condition] else 1]
        frame.run(steps)
        arrays = [slots[i] for i in yielded]
        for i, array in zip(results, arrays, strict=True):
            slots[i] = array
        frame.keep(arrays)
        frame.empty(inside)
    return step


def _while(bound: Binding, item: Item) -> Step:
    """Both items of a loop."""
    frame, slots = bound.frame, bound.frame.slots
    args = [bound.slot(a) for a in item.op.regions[0].front().args()]
    if item.enters:
        inputs = [bound.slot(v) for v in item.reads()]

        def enter() -> None:
            arrays = [slots[i] for i in inputs]
            for i, array in zip(args, arrays, strict=True):
                slots[i] = array
            frame.keep(arrays)
        return enter
    condition, results = bound.slot(item.op.operand_source(0)), [bound.slot(r) for r in item.op.results()]
    (body,), (values,) = item.blocks, item.yields
    steps, again, carried = bound.steps(body), bound.slot(values[0]), [bound.slot(v) for v in values[1:]]
    ended = args + [bound.slot(v) for v in yielded_here(body, values) if v in bound.prepared.dynamic]

    def step() -> None:
        going = slots[condition]
        while going:
            frame.run(steps)
            going, arrays = slots[again], [slots[i] for i in carried]
            frame.keep(arrays)
            frame.empty(ended)
            for i, array in zip(args, arrays, strict=True):
                slots[i] = array
        for i, arg in zip(results, args, strict=True):      # which holds it: that is handed on
            slots[i], slots[arg] = slots[arg], None
    return step


def yielded_here(block: list[Item], values: list[Any]) -> list[Any]:
    """Those of the values that the block itself makes, each once: they end with it."""
    made = {v for item in block for v in results_of(item)}
    return [v for v in dict.fromkeys(values) if v in made]


def _stack_create(bound: Binding, item: Item) -> Step:
    results, slots = [bound.slot(r) for r in item.op.results()], bound.frame.slots

    def step() -> None:
        stack: list[Any] = []
        for i in results:               # both ends are the stack itself
            slots[i] = stack
    return step


def _stack_take(bound: Binding, item: Item) -> Step:
    results, slots = [bound.slot(r) for r in item.op.results()], bound.frame.slots
    place = bound.prepared.inputs.index(item.op.attributes["name"].value)

    def step() -> None:
        stack = again(slots[place], {})
        for i in results:
            slots[i] = stack
    return step


def again(stack: list, copies: dict[int, list]) -> list:
    """A copy of a stack that may be popped: the arrays stay, the stacks on it are copied, each once."""
    found = copies.get(id(stack))
    if found is None:
        found = copies[id(stack)] = [tuple(again(x, copies) if type(x) is list else x for x in values)
                                     for values in stack]
    return found


def _tuple_push(bound: Binding, item: Item) -> Step:
    inlet, *values = map(bound.slot, item.op.operands_source())
    frame, slots = bound.frame, bound.frame.slots

    def step() -> None:
        arrays = tuple(slots[i] for i in values)
        slots[inlet].append(arrays)
        frame.keep(arrays)
    return step


def _has_elements(bound: Binding, item: Item) -> Step:
    stack, result, slots = bound.slot(item.op.operand_source(0)), bound.slot(item.op.result(0)), bound.frame.slots

    def step() -> None:
        slots[result] = np.array([bool(slots[stack])])
        bound.frame.keep((slots[result],))
    return step


def _tuple_pop(bound: Binding, item: Item) -> Step:
    outlet, results = bound.slot(item.op.operand_source(0)), [bound.slot(r) for r in item.op.results()]
    slots = bound.frame.slots

    def step() -> None:
        for i, array in zip(results, slots[outlet].pop(), strict=True):     # held since it was pushed
            slots[i] = array
    return step


def unknown(bound: Binding, item: Item) -> Step:
    """An operation that no dialect knows: the program may be looked at, and fails when it comes to it."""
    def step() -> None:
        raise NotImplementedError(f"executor: expected operations that a dialect knows, got {item.op.name()}, which "
                                  "none does; register a dialect that has it, or replace it")
    return step


CONTROL: dict[str, Callable[[Any, Item], Step]] = {
    "builtin.split": _split, "kernel.data": _given, "builtin.parameter": _given, "builtin.constant": _given,
    "builtin.set_parameter": _set_parameter, "builtin.shadow_output": _given, "kernel.fetch": _fetch, "pd_op.if": _if,
    "pd_op.while": _while, "cf.stack_create": _stack_create, "cf.stack_take": _stack_take, "cf.tuple_push": _tuple_push,
    "cf.tuple_pop": _tuple_pop, "cf.has_elements": _has_elements,
}
