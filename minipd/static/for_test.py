"""Copies of static programs, and the form in which one is evaluated: `Program.clone`.

A copy has handles of its own for program state, under the same names, so that one scope serves the original and all its
copies: train with the one, evaluate with the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from minipd.framework.tensor import Parameter, Tensor
from minipd.ir.dce import remove_dead_ops
from minipd.ir.mapping import IrMapping, clone_block
from minipd.ir.operation import Operation
from minipd.ir.schema import constant_of, op_attrs
from minipd.ir.value import Value
from minipd.ops.cast import cast
from minipd.ops.elementary import rsqrt
from minipd.static.program import Program, StaticTrace, writing

__all__: list[str] = []


def copied(program: Program, mapping: IrMapping) -> Program:
    """A copy that goes on where the program is now; `mapping` learns which value stands for which."""
    copy = Program()
    copy.form, copy.random_seed = program.form, program.random_seed
    for c in program.constraints:
        copy.constraints.add(c)
    clone_block(program.global_block(), copy.global_block(), mapping)
    old, new = program.trace, copy.trace
    new.input_names = set(old.input_names)
    for facts in ("captures", "holders", "draws", "micros"):
        getattr(new, facts).update(getattr(old, facts))
    new._captured = {key: mapping.look_up(value) for key, value in old._captured.items()}
    new._seen = dict(old._seen)
    new.draws_inside = old.draws_inside
    new.first = {name: mapping.look_up(value) for name, value in old.first.items()}
    for name, (handle, read) in old.state.items():
        new.state[name] = _again(handle, mapping.look_up(handle.payload)), mapping.look_up(read)
    copy.original = program
    copy.twins = {old_value: mapping.look_up(now) for old_value, now in program.twins.items()}
    for value in _values(program):
        copy.twins[value] = mapping.look_up(value)
    return copy


def _again(handle: Tensor, value: Value) -> Tensor:
    """A handle like this one on another value."""
    if isinstance(handle, Parameter):
        new: Tensor = Parameter(value)
        for name in ("need_clip", "regularizer", "optimize_attr"):
            setattr(new, name, getattr(handle, name))
    else:
        new = Tensor(value)
    new.name, new.stop_gradient, new.persistable = handle.name, handle.stop_gradient, handle.persistable
    return new


def _values(program: Program) -> Iterable[Value]:
    return (value for op in program.global_block() for value in op.results())


def for_test(program: Program, also: Iterable[Value] = ()) -> Program:
    """A copy for evaluation: nothing is trained and no state is written, dropout keeps everything, and batch
    normalisation uses the running statistics.  What only training needs is left out, but for the values `also`."""
    mapping = IrMapping()
    copy = copied(program, mapping)
    instead: dict[Value, Value] = {}
    for op, statistics in _followed(program.trace).items():
        _by_running_statistics(copy, mapping.look_up(op.result(0)), [mapping.look_up(v) for v in statistics], instead)
    for op in list(copy.walk()):
        if op.name() == "pd_op.dropout" and not _is_mask(op):
            _without_dropping(copy, op, instead)
    roots = [mapping.look_up(value) for value in (*_asked_for(program), *also)]
    for handle, read in copy.trace.state.values():
        handle.payload = read
    for i, value in enumerate(dict.fromkeys(roots)):
        copy.trace.build.output(f"kept_{i}", instead.get(value, value))
    remove_dead_ops(copy)
    for op in list(copy.global_block()):
        if op.name() == "builtin.shadow_output":
            op.erase()
        elif op.name() == "pd_op.data" and op.result(0).use_empty():
            name = op.attributes["name"].value
            if name in copy.trace.draws or name in copy.trace.captures:
                copy.trace.draws.pop(name, None)
                copy.trace.forget(op)
    copy.twins = {old: instead.get(now, now) for old, now in copy.twins.items()}
    return copy


#: what is between the statistics of a batch and the running ones that follow them
FOLLOWING = ("pd_op.add", "pd_op.multiply", "pd_op.reshape", "pd_op.share_data_", "pd_op.cast")


def _followed(trace: StaticTrace) -> dict[Operation, list[Value]]:
    """Standardisation -> the running mean and variance that follow it: the state, as it is read, whose new value is
    made of the batch's mean or variance."""
    found: dict[Operation, dict[int, Value]] = {}
    for handle, read in trace.state.values():
        todo = [] if handle.payload is read else [handle.payload]
        while todo:
            value = todo.pop()
            op = value.get_defining_op()
            if op is not None and op.name() == "pd_op.standardize":
                found.setdefault(op, {})[op.results().index(value)] = read
            elif op is not None and op.name() in FOLLOWING:
                todo += op.operands_source()
    return {op: [statistics[1], statistics[2]] for op, statistics in found.items() if len(statistics) == 2}


def _tensor(value: Value) -> Tensor:
    x = Tensor(value)
    x.stop_gradient = value.stop_gradient
    return x


def _by_running_statistics(copy: Program, out: Value, statistics: list[Value], instead: dict[Value, Value]) -> None:
    op = out.get_defining_op()
    assert op is not None
    x, epsilon = _tensor(op.operand_source(0)), op_attrs(op)["epsilon"]
    per_channel = op.result(1).shape
    with writing(copy), _before(copy, op):
        mean, variance = (cast(Tensor(v), x.dtype).reshape(per_channel) for v in statistics)
        new = (x - mean) * rsqrt(variance + epsilon)
    _replace(out, new.payload, instead)


def _is_mask(op: Operation) -> bool:
    """Whether this drops ones in a mask whose complement is used too: alpha dropout, which (as in Paddle) stays."""
    ones = constant_of(op.operand_source(0)) == 1
    return ones and any(use.owner().name() == "pd_op.subtract" for use in op.result(0).uses)


def _without_dropping(copy: Program, op: Operation, instead: dict[Value, Value]) -> None:
    attrs, kept = op_attrs(op), op.operand_source(0)
    if attrs["mode"] == "downscale_in_infer":
        with writing(copy), _before(copy, op):
            kept = (_tensor(kept) * (1.0 - attrs["p"])).payload
    _replace(op.result(0), kept, instead)


@contextmanager
def _before(copy: Program, op: Operation) -> Iterator[None]:
    """What is written inside goes before this operation."""
    with copy.trace.build.insertion_guard() as build:
        build.set_insertion_point(op)
        yield


def _replace(old: Value, new: Value, instead: dict[Value, Value]) -> None:
    old.replace_all_uses_with(new)
    for key, value in instead.items():
        if value is old:
            instead[key] = new
    instead[old] = new


def _asked_for(program: Program) -> list[Value]:
    """What somebody may fetch: the values of tensors that are still there, but for state and its gradients; and values
    that nothing uses, but for those that only new values of state are made of."""
    trace = program.trace
    state = [handle for handle, _ in trace.state.values()]
    others = {id(x) for handle in state for x in (handle, handle.grad)}
    held = [x.payload for ref in trace._handles if (x := ref()) is not None and id(x) not in others]
    asked = [v for v in held if isinstance(v, Value) and v.parent_block() is program.global_block()]
    for_state: set[Value] = set()
    todo = [handle.payload for handle, read in trace.state.values() if handle.payload is not read]
    while todo:
        value = todo.pop()
        if value not in for_state:
            for_state.add(value)
            op = value.get_defining_op()
            todo += [] if op is None else [v for v in op.operands_source() if v is not None]
    return asked + [v for v in _values(program) if v.use_empty() and v not in for_state]
