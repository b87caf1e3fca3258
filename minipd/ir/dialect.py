"""Dialects: the operations there are, by name.

An operation `pd_op.add` belongs to dialect `pd_op`.  What a dialect knows of it is an `OpInfo`: names of operands,
results and attributes, traits, and a check of its own.  For tensor operators that is read off their row, so dialect
`pd_op` is the operator table plus the few operations that are no tensor function (`data`, `fetch`, `if`).  A floor
above adds its dialect with `register_dialect`; its rows say which dialect they belong to.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from minipd.framework.row import ROWS, Row, Trait
from minipd.ir.context import CONTEXT
from minipd.ir.traits import IrTrait

if TYPE_CHECKING:
    from minipd.ir.operation import Operation

__all__ = ["Dialect", "OpInfo", "op_info", "register_dialect"]

#: attributes that any operation may carry: facts about it, which no kernel and no shape rule reads
COMMON_ATTRIBUTES = {"chunk_id", "comp_op_name", "op_callstack", "op_role", "persistable", "place", "stop_gradient",
                     "struct_name"}


@dataclass(frozen=True)
class OpInfo:
    """What is known of all operations of one name.

    inputs, outputs: names; a name that starts with `*` stands for any number.  attrs: names, those in `required` must
    be given.  regions: how many.  check: raises ValueError if one operation is wrong in a way of its own.
    registered: False for a name that no dialect knows; such an operation can be kept, printed and copied, not run.
    """

    name: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    attrs: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    traits: frozenset[Any] = frozenset()
    regions: int = 0
    row: Row | None = None
    check: Callable[[Operation], None] | None = None
    registered: bool = True


@dataclass
class Dialect:
    """A named set of operations.  Those of rows are filled in when they are first asked for."""

    name: str
    ops: dict[str, OpInfo] = field(default_factory=dict)

    def define(self, name: str, inputs: tuple = (), outputs: tuple = (), attrs: tuple = (), **rest: Any) -> None:
        """Add an operation that is no row.  All its attributes are required."""
        self.ops[name] = OpInfo(f"{self.name}.{name}", inputs, outputs, attrs, attrs, **rest)

    def find(self, name: str) -> OpInfo | None:
        """The entry of an operation that is asked for the first time; None if it is unknown.  Here: that of its row."""
        row = ROWS.get(name)
        return info_of_row(row) if row is not None and row.dialect == self.name else None


DIALECTS = CONTEXT.dialects


def register_dialect(dialect: Dialect) -> Dialect:
    """Make a dialect known.

    Raises: ValueError if there is one of that name.
    """
    if dialect.name in DIALECTS:
        raise ValueError(f"register_dialect: there is a dialect {dialect.name!r} already")
    DIALECTS[dialect.name] = dialect
    return dialect


@functools.cache
def op_info(full_name: str) -> OpInfo:
    """What is known of the operations called `full_name`, such as `pd_op.add`; it never changes.

    Raises: KeyError if the dialect or the operation is unknown.
    """
    dialect_name, _, name = full_name.partition(".")
    dialect = DIALECTS.get(dialect_name)
    if dialect is None:
        raise KeyError(f"operation {full_name!r}: no dialect {dialect_name!r}; there are {', '.join(DIALECTS)}")
    info = dialect.ops.get(name)
    if info is None:
        info = dialect.find(name)
        if info is None:
            raise KeyError(f"operation {full_name!r}: dialect {dialect_name!r} has no operation {name!r}, and the "
                           "operator table no row of that name")
        dialect.ops[name] = info
    return info


def info_or_unregistered(full_name: str) -> OpInfo:
    """`op_info`, and for a name that no dialect knows what may be assumed of anything: any operands, results and
    attributes, and an effect that forbids to remove it.  Nothing is remembered of an unknown name, so that a dialect
    that is registered later is seen."""
    try:
        return op_info(full_name)
    except KeyError:
        return OpInfo(full_name, ("*operands",), ("*results",), traits=frozenset({IrTrait.SIDE_EFFECT}),
                      registered=False)


def info_of_row(row: Row) -> OpInfo:
    """A row as the dialect sees it.  Its mutable attributes are operands, after the tensors, in the row's order."""
    inputs = [f"*{n}" if row.variadic and n == row.inputs[-1] else n for n in row.inputs]
    attrs = tuple(a for a in row.attrs if a not in row.mutable)
    required = tuple(a for a in attrs if row.attrs[a] is inspect.Parameter.empty)
    traits: set[Any] = set(row.traits)
    if Trait.SIDE_EFFECT in traits or Trait.COMM in traits:
        traits.add(IrTrait.SIDE_EFFECT)         # a rank that leaves out a collective leaves the others waiting
    if row.name in ("full", "full_int_array"):
        traits.add(IrTrait.CONSTANT)
    return OpInfo(f"{row.dialect}.{row.name}", (*inputs, *row.mutable), row.outputs, attrs, required, frozenset(traits),
                  row=row)
