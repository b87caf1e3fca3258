"""A call of a row, or of a public function, as a form reads it when it is saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minipd.framework.errors import InputError
from minipd.framework.row import Row
from minipd.ir.operation import Operation, user_error
from minipd.ir.schema import constant_of, mutable_operands, number_of_tensors, static_attrs
from minipd.ir.types import Type, VectorType
from minipd.ir.value import Value
from minipd.ir.whole import Group

if TYPE_CHECKING:
    from minipd.ir.paddle.save import Saver

__all__ = ["Call", "Whole", "said_of"]


class Call:
    """A call of a row, as a form reads it.

    tensors: the operands that are tensors, as values of the new program; a vector is one.  attrs: Python values of all
    attributes that are known.  given: attribute -> the value of the new program, where it is an operand.
    types: of the results.
    """

    def __init__(self, saver: Saver, op: Operation, row: Row):
        self.op, self.row = op, row
        #: a form sets it where Paddle lets gradients flow though none does
        self.flows = False
        self.sources = op.operands_source()[:number_of_tensors(op, row)]
        self.tensors = [saver.values[v] for v in self.sources if v in saver.values]      # without keys
        self.attrs: dict[str, Any] = static_attrs(op)
        self.given: dict[str, Value] = {}
        for name, value in mutable_operands(op).items():
            self.given[name] = saver.values[value]
            found = constant_of(value)
            if found is not None:
                self.attrs[name] = found
        self.types: list[Type] = [r.type() for r in op.results()]
        #: attributes as they were written (`axis=-1`), where that is known and still means the same
        self.shown = {**self.attrs, **self.written()}

    def written(self) -> dict[str, Any]:
        return {name: given for name, given in said_of(self.op)
                if name in self.attrs and means(given, self.attrs[name], self.sources, self.op)}

    def expect(self, **values: Any) -> None:
        """Raises: InputError if an attribute has another value: Paddle has no such attribute."""
        for name, value in values.items():
            if self.attrs[name] != value:
                raise InputError(f"{name}={value!r}, since Paddle's operator has no such attribute",
                                 user_error(self.op, f"{name}={self.attrs[name]!r}"), "save the program of one process")


class Whole:
    """A call of a public function, as its form reads it.

    tensors: parameter -> value of the new program, or a list of them; a parameter that was not given is not there.
    sources: the same values in the old program.  args: what else was given.  types: of the results.
    """

    def __init__(self, saver: Saver, group: Group):
        self.group = group
        #: see `Call`
        self.flows = False
        self.sources = group.tensors
        self.tensors: dict[str, Any] = {k: [saver.values[m] for m in v] if isinstance(v, list) else saver.values[v]
                                        for k, v in group.tensors.items()}
        self.args = group.args
        self.types: list[Type] = [v.type() for v in group.results]


def said_of(op: Operation) -> list[tuple[str, Any]]:
    """How attributes were written.  It is a fact about the operation, which a text may have in any form: what are no
    pairs of a name and a value says nothing."""
    said = op.attributes.get("as_written")
    pairs = said.value if said is not None and isinstance(said.value, tuple) else ()
    return [p for p in pairs if isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str)]


def means(given: Any, value: Any, sources: Sequence[Value], op: Operation) -> bool:
    """Whether what was written still means what the attribute is: an axis counted from the end, an end that is left
    out, nothing for everything.  Passes may have changed either."""
    if isinstance(given, tuple) and any(isinstance(part, str) for part in given):       # a function, and its numbers
        return given[0] == "flatten" and len(given) == 3 and all(type(part) is int for part in given[1:])
    if isinstance(given, int) and isinstance(value, tuple):         # a number of parts
        return len(value) == given and len(set(value)) == 1
    if isinstance(given, tuple):
        if not given:
            return bool(sources) and value == tuple(range(len(_sizes(sources[0]))))
        if not isinstance(value, tuple) or len(given) != len(value):
            return False
        pairs = zip(sorted(given), sorted(value), strict=True) if op.name() not in ORDERED else zip(
            given, value, strict=True)
        if any(g < 0 for g in given) and op.name() not in ORDERED:
            ranks = {len(_sizes(v)) for v in (*sources[:1], *op.results()[:1])}
            return any(sorted(g % r for g in given) == sorted(value) for r in ranks if r)
        return all(g == v or op.name() in ORDERED for g, v in pairs)
    ranks = {len(_sizes(v)) for v in (*sources[:1], *op.results()[:1])}
    return any(r and given % r == value for r in ranks)


#: operators whose lists are in the order of other things: sizes of a shape, ends of parts
ORDERED = frozenset({"pd_op.reshape", "pd_op.slice", "pd_op.strided_slice", "pd_op.set_value", "pd_op.split"})


def _sizes(value: Value) -> tuple:
    type = value.type()
    if isinstance(type, VectorType):
        type = type.types[0]
    return getattr(type, "shape", ())
