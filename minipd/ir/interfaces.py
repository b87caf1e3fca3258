"""Interfaces: what an operation can do, asked for by name, whatever the operation is.

    op.has_interface("Vjp")             is there a gradient?
    op.interface(InferMeta).infer()     what are the types of the results?

What an operation can do is a column of the operator table, so an interface is a view: a name, the column, and methods
on top of it for one operation.  A later floor that brings a column brings the interface with it, in its own folder:

    @interface
    class Decomp(Interface):
        "How the operator is computed by other operators."
        name, column = "Decomp", "decompose"

An operation that is no row has columns too if its dialect gives it some (`dialect.Dialect.op`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from minipd.framework.row import Row, Trait, add_column

if TYPE_CHECKING:
    from minipd.framework.row import VjpCall
    from minipd.ir.dialect import OpInfo
    from minipd.ir.operation import Operation
    from minipd.ir.types import Type

__all__ = ["InferMeta", "InferSymbolicShape", "Interface", "Kernel", "Layout", "Vjp", "interface", "interfaces_of"]

#: name -> the interface
INTERFACES: dict[str, type[Interface]] = {}

I = TypeVar("I", bound="type[Interface]")


class Interface:
    """A view of `op` as something that has the column: `entry` is what its row has there."""

    name: ClassVar[str]
    column: ClassVar[str]

    def __init__(self, op: Operation, entry: Any):
        self.op, self.entry = op, entry

    @classmethod
    def entry_of(cls, info: OpInfo) -> Any:
        """What operations like this have in the column, None for nothing."""
        found = info.columns.get(cls.column)
        return found if found is not None or info.row is None else info.row.columns.get(cls.column)

    @classmethod
    def declare(cls, row: Row, entry: Any) -> None:
        """Enter what the declaration of a row says for the column."""
        add_column(row.name, cls.column, entry)

    @classmethod
    def forget(cls, row: Row) -> None:
        """The row is gone; what is kept of it outside of its columns goes too."""

    def __repr__(self) -> str:
        return f"{self.name}({self.op.name()})"


def interface(cls: I) -> I:
    """Make an interface known under its name.

    Raises: ValueError if another class has the name.
    """
    other = INTERFACES.setdefault(cls.name, cls)
    if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"interface {cls.name!r} exists already, in {other.__module__}")
    INTERFACES[cls.name] = cls
    return cls


def interface_named(which: str | type[Interface]) -> type[Interface]:
    """An interface, by name or as it is.

    Raises: KeyError for a name that no floor has brought.
    """
    if isinstance(which, str):
        if which not in INTERFACES:
            raise KeyError(f"interface {which!r}: there is none; there are {', '.join(INTERFACES)}")
        return INTERFACES[which]
    return which


def interfaces_of(info: OpInfo) -> tuple[str, ...]:
    """The names of all interfaces that operations like this have.

    >>> from minipd.ir.dialect import op_info
    >>> interfaces_of(op_info("pd_op.tanh"))[:4], interfaces_of(op_info("cf.yield"))
    (('InferMeta', 'InferSymbolicShape', 'Kernel', 'Vjp'), ())
    """
    return tuple(name for name, cls in INTERFACES.items() if cls.entry_of(info) is not None)


@interface
class InferMeta(Interface):
    """Shapes and dtypes of the results follow from the operands."""

    name, column = "InferMeta", "infer_meta"
    entry: Callable

    @classmethod
    def entry_of(cls, info: OpInfo) -> Any:
        return super().entry_of(info) if info.row is None else info.row.infer_meta

    def infer(self) -> list[Type]:
        """The types that the results must have.

        >>> from minipd.ir import Program
        >>> from minipd.ir.builder import Builder
        >>> from minipd.framework.row import ROWS
        >>> build = Builder(Program().global_block())
        >>> x = build.data("x", (2, 3), "float32")
        >>> y, = build.call(ROWS["sum"], (x,), {"axis": (1,), "keepdim": True})
        >>> y.get_defining_op().interface(InferMeta).infer()
        [tensor<2x1xf32>]
        """
        from minipd.ir.schema import inferred_types, op_attrs, tensor_operands
        row = self.op.row
        if row is None:
            return list(self.entry(self.op))
        return inferred_types(row, tensor_operands(self.op), op_attrs(self.op))


@interface
class InferSymbolicShape(InferMeta):
    """The same rule, over sizes that only the run knows: one rule serves both, since a dimension is an int or a
    `DimExpr`."""

    name = "InferSymbolicShape"


@interface
class Kernel(Interface):
    """It can be computed.  `entry(*arrays, **attributes)` does."""

    name, column = "Kernel", "kernel"

    @classmethod
    def entry_of(cls, info: OpInfo) -> Any:
        return super().entry_of(info) if info.row is None else info.row.kernel


@interface
class Vjp(Interface):
    """It has a gradient: `entry` are the rules, one per input, or one for all (see `framework.row`)."""

    name, column = "Vjp", "vjp"
    entry: tuple[VjpCall, ...]

    @classmethod
    def entry_of(cls, info: OpInfo) -> Any:
        return super().entry_of(info) if info.row is None else info.row.vjp_rules or None

    def inputs(self) -> list[str]:
        """The inputs that have a gradient."""
        row = self.op.row
        assert row is not None, f"{self.op.name()} has a gradient of its own, without rules"
        return list(dict.fromkeys(name for rule in self.entry
                                  for name in (row.inputs if rule.target is None else (row.inputs[rule.target],))))


@interface
class Layout(Interface):
    """It computes the same whatever the order of dimensions, if operands and results are transposed alike: what a pass
    that moves channels may go through."""

    name, column = "Layout", "layout"

    @classmethod
    def entry_of(cls, info: OpInfo) -> Any:
        found = super().entry_of(info)
        return found if found is not None else "any" if Trait.ELEMENTWISE in info.traits else None

    def can_be_modified(self) -> bool:
        """Whether that holds for this operation: no operand is broadcast along dimensions that it does not have."""
        from minipd.ir.schema import tensor_operands
        ranks = {v.ndim for v in (*tensor_operands(self.op), *self.op.results())}
        return len(ranks) == 1
