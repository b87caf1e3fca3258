"""Reading the program's own operations, which are no calls of rows: inputs, state, vectors, constants, regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from minipd.framework.dim import DimExpr
from minipd.ir.attributes import Attribute, IntArrayAttribute, attribute
from minipd.ir.operation import Operation
from minipd.ir.paddle.in_place import state_name
from minipd.ir.types import DenseTensorType, TensorType, VectorType
from minipd.ir.value import Value

if TYPE_CHECKING:
    from minipd.ir.paddle.load import Loader

__all__ = ["STRUCTURE"]


def _data(at: Loader, op: Operation) -> Sequence[Value | None]:
    type = op.result(0).type()
    if not isinstance(type, DenseTensorType):
        return at.copy(op)
    state = state_name(op)
    if state is not None:
        return [at.tracer.parameter(state, type)]
    shape = op.attributes["shape"].value if "shape" in op.attributes else type.shape
    sizes = [t if isinstance(t, DimExpr) else next(at.symbols) if s == -1 else s
             for s, t in zip(shape, type.shape, strict=True)]
    attributes = {**op.attributes, "shape": IntArrayAttribute(sizes)}
    name = op.attributes["name"].value
    at.tracer.input_names.add(name)
    return at.build.build(op.name(), (), attributes, [DenseTensorType(sizes, type.dtype)]).results()


def _parameter(at: Loader, op: Operation) -> Sequence[Value]:
    return at.build.build(op.name(), (), dict(op.attributes), [r.type() for r in op.results()]).results()


def _combine(at: Loader, op: Operation) -> Sequence[Value | None]:
    if not all(at.known(v) for v in op.operands_source()):
        return at.copy(op)
    at.vectors[op.result(0)] = [v for v in op.operands_source()]
    return [None]


def _split(at: Loader, op: Operation) -> Sequence[Value | None]:
    vector = op.operand_source(0)
    if vector in at.absent:
        return [None] * op.num_results()
    if vector not in at.vectors:                # of an operation that stays, whose sizes have names of their own
        ours = at.value(vector)
        type = ours.type()
        types = list(type.types) if isinstance(type, VectorType) else [r.type() for r in op.results()]
        return at.build.build(op.name(), [ours], dict(op.attributes), types).results()
    for result, member in zip(op.results(), at.vectors[vector], strict=True):
        if member in at.numbers:
            at.numbers[result] = at.numbers[member]
    return [at.values.get(v, v) for v in at.vectors[vector]]


def _constant(at: Loader, op: Operation) -> Sequence[Value]:
    """Kept for those who read it as a tensor."""
    type = op.result(0).type()
    assert isinstance(type, TensorType)
    attributes = dict(op.attributes)
    if op.name() == "pd_op.full_int_array":
        attributes["value"] = attribute(tuple(op.attributes["value"].value))
    elif type.dtype.kind in "iub" and isinstance(op.attributes["value"].value, float):
        value = op.attributes["value"].value
        attributes["value"] = attribute(bool(value) if type.dtype.kind == "b" else int(value))
    new = at.build.build(op.name(), (), attributes, [type])
    at.constants.append(new)
    return new.results()


def _state(at: Loader, op: Operation) -> Sequence[Value | None]:
    return at.copy(op)


def _shown(at: Loader, op: Operation) -> Sequence[Value | None]:
    """A value that outlives the run is state: the first moments of a startup program."""
    value = op.operand_source(0)
    made = value.get_defining_op()
    if value.persistable and made is not None and state_name(made) is None:
        at.build.set_parameter(op.attributes["output_name"].value, at.value(value))
        return []
    return at.copy(op)


def _if(at: Loader, op: Operation) -> list[Value | None]:
    new = at.build.build(op.name(), [at.value(op.operand_source(0))], dict(op.attributes), (), op.num_regions())
    flags: dict[str, Attribute] = {k: new.attributes.pop(k)
                                    for k in ("stop_gradient", "persistable") if k in new.attributes}
    for old, region in zip(op.regions, new.regions, strict=True):
        inner = region.add_block()
        with at.tracer.inside(inner):
            at.blocks(old.front(), inner)
            last = inner.back()
            if last is None or last.name() != "cf.yield":       # a branch that gives nothing
                at.build.build("cf.yield")
    end = new.regions[0].front().back()
    assert end is not None
    for value in end.operands_source():
        new.add_result(value.type())
    new.attributes.update(flags)
    return list(new.results())


def _while(at: Loader, op: Operation) -> list[Value | None]:
    operands = [at.value(v) for v in op.operands_source()]
    new = at.build.build(op.name(), operands, dict(op.attributes), [v.type() for v in operands[1:]], 1)
    block = op.regions[0].front()
    inner = new.regions[0].add_block()
    for arg, value in zip(block.args(), operands[1:], strict=True):
        at.argument(arg, inner, value.type())
    with at.tracer.inside(inner):
        at.blocks(block, inner)
    return list(new.results())


#: operations that are no calls of rows, or whose form is the same for all
STRUCTURE: dict[str, Callable[[Loader, Operation], Sequence[Value | None]]] = {
    "pd_op.data": _data, "builtin.parameter": _parameter, "builtin.constant": _parameter, "builtin.combine": _combine,
    "builtin.split": _split, "pd_op.full": _constant, "pd_op.full_int_array": _constant, "pd_op.if": _if,
    "pd_op.while": _while, "builtin.shadow_output": _shown, "builtin.set_parameter": _state, "cf.yield": _state,
}
