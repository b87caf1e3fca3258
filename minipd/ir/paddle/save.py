"""Our form -> Paddle's.

Every operation is visited once, in order; `values` says which value of the new program stands for which old one.  Calls
of rows go through their form (`form`), or through `same` where the signatures agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.framework.errors import InputError
from minipd.framework.row import Row
from minipd.ir.attributes import Attribute, PlaceAttribute, attribute
from minipd.ir.block import Block
from minipd.ir.builder import ANYWHERE, CPU, Builder
from minipd.ir.dialect import COMMON_ATTRIBUTES
from minipd.ir.operation import Operation, user_error
from minipd.ir.paddle.calls import Call, Whole, said_of
from minipd.ir.paddle.form import SAVES, WHOLES, Apart
from minipd.ir.paddle.in_place import written_operands
from minipd.ir.paddle.reasons import REASONS, SOME_CALLS, our_name, paddles_name
from minipd.ir.paddle.signatures import REQUIRED, Signature, of_kind, signature
from minipd.ir.program import Program
from minipd.ir.schema import vector_result
from minipd.ir.types import NULL_TYPE, DenseTensorType, Type
from minipd.ir.value import OpResult, Value
from minipd.ir.whole import Group, group_of

__all__ = ["Call", "Saver", "Whole", "problem", "to_paddle"]


def to_paddle(program: Program) -> Program:
    """The same program in Paddle's form: operands, attributes and their kinds as Paddle 3.3 has them.

    Raises: InputError for an operator that Paddle has nothing for (a shard's window), naming it.
    """
    if program.form == "paddle":
        return program
    saver = Saver()
    for c in program.constraints:
        saver.program.constraints.add(c)
    saver.block(program.global_block(), saver.program.global_block())
    saver.sweep()
    return saver.program


def as_text(program: Program) -> Program:
    """The program in Paddle's form, as it is printed: what Paddle has nothing for stays as it is."""
    saver = Saver(strict=False)
    saver.block(program.global_block(), saver.program.global_block())
    saver.sweep()
    return saver.program


class Saver:
    """The new program, and the values that are there.  `build` appends to the block that is being written.

    strict: what Paddle has nothing for is refused, not copied.  exact: numbers keep digits that Paddle's have not.
    """

    exact = False

    def __init__(self, strict: bool = True) -> None:
        self.strict = strict
        self.program = Program()
        self.program.form = "paddle"
        self.build = Builder(self.program.global_block())
        self.values: dict[Value, Value] = {}
        self.common: dict[str, Attribute] = {}
        self.constants: list[Operation] = []
        self.wholes: dict[Operation, Group] = {}    # the last operation of a call that is written as one -> all of it
        self.parts: set[Operation] = set()          # the others

    def block(self, source: Block, target: Block) -> None:
        """Translate `source` into `target`; what waits is on a stack, so nesting costs no frames."""
        pending = [(iter(self.grouped(source)), target)]
        while pending:
            ops, into = pending[-1]
            op = next(ops, None)
            if op is None:
                pending.pop()
                continue
            self.build.set_insertion_point_to_block_end(into)
            new = self.operation(op)
            for old_region, region in zip(op.regions, [] if new is None else new.regions, strict=False):
                for old in old_region.blocks:
                    inner = region.add_block()
                    for arg in old.args():
                        copy = inner.add_arg(arg.type())
                        copy.attributes.update(arg.attributes)
                        self.values[arg] = copy
                    pending.append((iter(self.grouped(old)), inner))
            if new is not None and len(new.regions) > 1:        # regions in their order
                count = sum(len(r.blocks) for r in new.regions)
                pending[-count:] = reversed(pending[-count:])

    def grouped(self, block: Block) -> list[Operation]:
        """The operations of a block; those that a function wrote which has a form are noted."""
        ops = block.ops
        for op in ops:
            group = group_of(op, said_of(op), is_key) if "as_written" in op.attributes else None
            if group is not None and group.function in WHOLES:
                self.wholes[op] = group
                self.parts.update(group.ops[:-1])
        return ops

    def whole(self, op: Operation, group: Group) -> None:
        """Write a call as one, or as the operations that it called."""
        before = self.build.block.back()
        self.common = self.common_of(op)
        call = Whole(self, group)
        try:
            results = WHOLES[group.function](self, call)
        except (Apart, InputError):
            self.undo(before)
            for part in group.ops:
                self.one(part)
            return
        results = [results] if isinstance(results, Value) else results
        for old, new in zip(group.results, results, strict=True):
            self.stands_for(old, new, call.flows)

    def operation(self, op: Operation) -> Operation | None:
        """Translate one operation; returns the copy if it is one that owns regions."""
        if op in self.parts:
            return None
        if op in self.wholes:
            self.whole(op, self.wholes[op])
            return None
        return self.one(op)

    def common_of(self, op: Operation) -> dict[str, Attribute]:
        told = COMMON_ATTRIBUTES - {"as_written", "is_inplace", "place"}
        common = {k: a for k, a in op.attributes.items() if k in told}
        return common | {name: attribute(given) for name, given in said_of(op) if name == "struct_name"}

    def undo(self, before: Operation | None) -> None:
        """Erase what a form has written until it gave up."""
        while (last := self.build.block.back()) is not before:
            assert last is not None
            last.erase()

    def stands_for(self, old: Value, new: Value, flows: bool) -> None:
        self.values[old] = new
        for flag in ("stop_gradient", "persistable"):
            if flows and flag == "stop_gradient":
                new.stop_gradient = False
            elif old.attribute(flag) is not None and new.attribute(flag) != old.attribute(flag):
                new.set_attribute(flag, old.attribute(flag))        # type: ignore[arg-type]

    def one(self, op: Operation) -> Operation | None:
        """Translate one operation by itself."""
        self.common = self.common_of(op)
        row = op.row
        if op.name() == "builtin.set_parameter" and is_written(self.values[op.operand_source(0)],
                                                               op.attributes["parameter_name"]):
            return None
        if row is None or not op.name().startswith("pd_op.") or row.name in PLAIN or row.name in REASONS:
            return None if is_key(op) else self.copy(op)
        before = self.build.block.back()
        try:
            call = Call(self, op, row)
            results = SAVES.get(row.name, same)(self, call)
        except InputError:
            if self.strict and row.name not in SOME_CALLS:
                raise
            self.undo(before)
            return self.copy(op)
        if isinstance(results, Value):
            results = [results]
        for old, new in zip(op.results(), results, strict=True):
            if new is not None:         # a result that somebody uses
                self.stands_for(old, new, call.flows)
        return None

    def as_kind(self, kind: str, given: Attribute) -> Attribute:
        """An attribute in the kind that Paddle has for it; in a text, one that does not fit stays as it is."""
        try:
            return of_kind(kind, given)
        except (TypeError, ValueError, OverflowError) as error:
            if self.strict:
                raise InputError(f"an attribute that Paddle's {kind} can hold", str(given), str(error)) from error
            return given

    def copy(self, op: Operation) -> Operation:
        """The operation as it is, but for the kinds of its attributes."""
        dialect, _, name = op.name().partition(".")
        row = op.row
        ours = row is not None and (row.name in REASONS or row.name in SOME_CALLS) and op.name() == f"pd_op.{row.name}"
        found = signature(name) if dialect == "pd_op" and not ours else None
        attributes = {k: a for k, a in op.attributes.items() if k != "as_written"}
        if found is not None:
            attributes = {k: self.as_kind(found.attrs[k][0], a) if k in found.attrs else a
                          for k, a in attributes.items()}
            attributes |= {k: ANYWHERE for k, (kind, _) in found.attrs.items()
                           if kind == "place" and k not in attributes}
        operands = [None if v is None else self.values[v] for v in op.operands_source()]
        if op.name() == "builtin.split" and operands[0] is not None:
            maker = operands[0].get_defining_op()
            if maker is not None and "struct_name" in maker.attributes:
                attributes["struct_name"] = maker.attributes["struct_name"]
        name = our_name(row.name) if row is not None and ours else paddles_name(op.name())
        new = self.build.build(name, operands, attributes, [r.type() for r in op.results()], op.num_regions())
        self.values.update(zip(op.results(), new.results(), strict=True))
        if op.name() in CONSTANTS and not op.result(0).use_empty():
            self.constants.append(new)
        return new

    def sweep(self) -> None:
        """Erase the constants that have become attributes, or constants of another kind."""
        for op in reversed(self.constants):
            if op.result(0).use_empty():
                op.erase()

    # ------------------------------------------------------------------------------------------- for forms
    def op(self, name: str, operands: Sequence[Any], attrs: dict[str, Any], types: Sequence[Type | None],
           ) -> list[OpResult]:
        """Append Paddle's operator `name`.

        attrs: Python values; those that are missing get Paddle's default, `place` the undefined one, and all the kind
        that Paddle has.  types: None for a result that is absent.
        """
        found = signature(name)
        assert found is not None, f"Paddle has no operator {name}"
        attributes: dict[str, Attribute] = {}
        for key, (kind, default) in found.attrs.items():
            value = attrs[key] if key in attrs else ANYWHERE if kind == "place" and default is REQUIRED else default
            assert value is not REQUIRED, f"{name}: attribute {key} has no default"
            attributes[key] = value if isinstance(value, PlaceAttribute) else self.of_kind(kind, value)
        stop = [v is None or v.stop_gradient for v in operands]
        flags = {"stop_gradient": [all(stop)] * len(types)} if types else {}
        given = {k: a for k, a in self.common.items() if k not in ("stop_gradient", "persistable")}
        op = self.build.build(f"pd_op.{name}", operands, {**attributes, **flags, **given},
                              [NULL_TYPE if t is None else t for t in types])
        self.settle(op)
        return op.results()

    def of_kind(self, kind: str, value: Any) -> Attribute:
        """An attribute in the kind that Paddle has for it; a float32 that loses digits is a double if they count."""
        wide = self.exact and kind == "f32" and isinstance(value, float) and float(np.float32(value)) != value
        return of_kind("f64" if wide else kind, value)

    def settle(self, op: Operation) -> None:
        """Constants and vectors that only this operation reads stand before it, in the order of its operands, and
        belong where it does."""
        for value in op.operands_source():
            made = None if value is None else value.get_defining_op()
            if made is None or made.name() not in (*CONSTANTS, "builtin.combine") or made.parent is not op.parent or (
                    not value.has_one_use()):
                continue
            if made.name() in CONSTANTS:
                made.move_before(op)
            if "struct_name" in op.attributes:
                made.attributes["struct_name"] = op.attributes["struct_name"]

    def number(self, value: Any, dtype: Any = "float32") -> OpResult:
        """A `pd_op.full` of one number: what an attribute becomes that is an operand."""
        type = DenseTensorType((1,), dtype)
        attributes = {"shape": (1,), "value": of_kind("f64", value), "dtype": type.dtype, "place": CPU,
                      "stop_gradient": [True]}
        return self.build.build("pd_op.full", (), attributes, [type]).result(0)

    def ints(self, value: Sequence) -> OpResult:
        """A `pd_op.full_int_array`."""
        type = DenseTensorType((len(value),), "int64")
        attributes = {"value": of_kind("array<i64>", value), "dtype": type.dtype, "place": CPU, "stop_gradient": [True]}
        return self.build.build("pd_op.full_int_array", (), attributes, [type]).result(0)

    def operand(self, call: Call, name: str, kind: str) -> Value:
        """The operand for attribute `name`: the one that is there, or a new constant."""
        if name in call.given and call.shown.get(name) == call.attrs.get(name):
            return call.given[name]
        return self.constant(call.shown[name], kind)

    def constant(self, value: Any, kind: str) -> OpResult:
        if kind == "ints":
            return self.ints(value)
        return self.number(value, {"i32": "int32", "i64": "int64", "f64": "float64"}.get(kind, "float32"))


#: rows that are copied as they are
PLAIN = frozenset({"full_int_array", "full"})
CONSTANTS = ("pd_op.full", "pd_op.full_int_array")
#: which part of the whole this process holds; what is written has no such parts
LOCAL = "window"
#: row -> which of its operands is the key of a random draw
KEYS = {"uniform": 0, "gaussian": 0, "randint": 0, "randperm": 0, "dropout": 1, "multinomial": 1, "poisson": 1,
        "binomial": 2, "standard_gamma": 1}


def is_written(value: Value, name: Attribute) -> bool:
    """Whether an operator of Paddle's gives this value by writing the state of that name in place."""
    made = value.get_defining_op()
    for old, new in [] if made is None else written_operands(made):
        read = old.get_defining_op()
        if new is value and read is not None and read.attributes.get("parameter_name") == name:
            return True
    return False


def is_key(op: Operation) -> bool:
    """Whether an operation only makes keys of random draws."""
    if op.name() not in ("pd_op.data", "pd_op.draw_key"):
        return False
    uses = [use for r in op.results() for use in r.uses]
    rows = [use.owner().row for use in uses]
    return bool(uses) and all(row is not None and KEYS.get(row.name) == use.index()
                              for row, use in zip(rows, uses, strict=True))


def problem(row: Row) -> str | None:
    """Why `same` cannot translate a row; None if it can."""
    found = signature(row.name)
    if row.dialect != "pd_op" or found is None:
        return f"Paddle has no operator {row.name}"
    if len(found.tensors) < len(row.inputs) or any(not o.optional for o in found.tensors[len(row.inputs):]):
        return f"Paddle's {row.name} takes {', '.join(o.name for o in found.tensors)}"
    lost = [a for a in row.attrs if a not in found.attrs and a not in found.mutable
            and (a != LOCAL or row.name in SAVES)]
    if lost:
        return f"Paddle's {row.name} has no attribute {lost[0]}"
    asked = [a for a, (kind, default) in found.attrs.items()
             if a not in row.attrs and default is REQUIRED and kind != "place"]
    asked += [a for a, operand in found.mutable.items() if a not in row.attrs and operand.default is REQUIRED]
    if asked:
        return f"Paddle's {row.name} has an attribute {asked[0]} without default"
    if len(found.results) != (1 if vector_result(row) else len(row.outputs)):
        return f"Paddle's {row.name} has the results {', '.join(found.results)}"
    return None


def same(saver: Saver, call: Call) -> Sequence[Value]:
    """Paddle's operator of the same name: tensors in order, then attributes that are operands, by their names."""
    wrong = problem(call.row)
    if wrong is not None:
        raise InputError("an operator that Paddle has", user_error(call.op, wrong), "compute it with other operators")
    found = signature(call.row.name)
    assert found is not None
    if LOCAL in call.attrs:
        call.expect(**{LOCAL: None})
    place = {"place": call.op.attributes["place"]} if "place" in call.op.attributes else {}
    shown = {name: value for name, value in call.shown.items() if name != LOCAL}
    return saver.op(call.row.name, operands(saver, call, found), {**shown, **place}, call.types)


def operands(saver: Saver, call: Call, found: Signature) -> list[Value | None]:
    """The operands in Paddle's order; tensors that are not given are absent."""
    tensors = iter(call.tensors)
    return [next(tensors, None) if not o.kind else
            saver.operand(call, o.name, o.kind) if o.name in call.attrs or o.name in call.given else
            saver.constant(o.default.value, o.kind) for o in found.operands]
