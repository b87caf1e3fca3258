"""What a pattern is made of: nodes, one for each operation, between inputs and outputs.

A `Node` is a call of a row, seen as everybody who writes formulas sees it: tensors, and attributes with their values,
however the program spells them.  An `OperationNode` is an operation as it stands in the program, for what is no call of
a row, and for programs in Paddle's form.  Both answer the same questions, which is all that the matcher asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from minipd.framework.row import Row, Trait
from minipd.ir.operation import Operation, captured
from minipd.ir.schema import op_attrs, result_values, tensor_operands, vector_result
from minipd.ir.value import Value
from minipd.passes.formula import Attr

__all__ = ["Input", "Inputs", "Node", "OperationNode", "Output", "Outputs"]


@dataclass(frozen=True)
class Input:
    """A tensor that the formula is given; one of a list, if it has an index."""

    name: str
    index: int | None = None

    def __repr__(self) -> str:
        return self.name if self.index is None else f"{self.name}[{self.index}]"


@dataclass(frozen=True)
class Inputs:
    """Any number of tensors that the formula is given: `*xs`."""

    name: str

    def __getitem__(self, index: int) -> Input:
        return Input(self.name, index)

    def __repr__(self) -> str:
        return f"*{self.name}"


@dataclass(frozen=True)
class Output:
    """Result `index` of a node."""

    node: Node
    index: int

    def __repr__(self) -> str:
        return f"{self.node.name}" + (f" (result {self.index})" if self.index else "")


@dataclass(frozen=True)
class Outputs:
    """All results of a node that has any number of them."""

    node: Node

    def __getitem__(self, index: int) -> Output:
        return Output(self.node, index)

    def __repr__(self) -> str:
        return f"*{self.node.name}"


@dataclass(eq=False, repr=False)
class Node:
    """A call in the pattern.

    operands: Inputs, Outputs, Attrs, numbers; attrs: values and Attrs, all of the row's.  commutes: whether the
    operands may be met in the other order.  results: how many, where the row does not say; None for any number.
    """

    row: Row
    operands: tuple[Any, ...]
    attrs: dict[str, Any]
    commutes: bool = False
    results: int | None = None

    def __post_init__(self) -> None:
        self.name = f"{self.row.dialect}.{self.row.name}"       # of the operation
        #: where a list stands among the operands, if one does
        self.list_at = list_at(self.operands)
        #: whether each result is one of the operation itself; else a `builtin.split` takes its vector apart
        self.whole = not vector_result(self.row)
        self.any_results = not self.whole and self.results is None
        #: whether operands, attributes and results are all that there is to meet
        self.plain = self.list_at is None and not self.any_results
        #: names of the operations that make operands, where that can be seen at once
        self.makers = frozenset() if self.row.variadic else makers(self.operands)

    def __repr__(self) -> str:
        return self.name

    @property
    def outputs(self) -> list[Output]:
        """The results that the pattern knows of."""
        return [Output(self, i) for i in range(len(self.row.outputs) if self.whole else self.results or 0)]

    def read(self, op: Operation) -> tuple[Sequence[Any], dict[str, Any]]:
        """Operands and attributes of an operation that has the node's name.

        Raises: ValueError for one that no pattern can match: a vector of unknown parts, an attribute that is known
        only when the program runs.
        """
        return tensor_operands(op), op_attrs(op)

    def results_of(self, op: Operation) -> list[Value]:
        return result_values(op)

    def number_fits(self, count: int) -> bool:
        """Whether an operation with so many results may be this one."""
        return self.whole or self.results in (None, count)

    def maker_of(self, value: Value) -> Operation | None:
        """The operation of which `value` is a result, as this node counts results."""
        op = value.get_defining_op()
        if op is not None and op.name() == "builtin.split" and not self.whole:
            return op.operand_source(0).get_defining_op()
        return op

    def users_of(self, value: Value) -> list[Operation]:
        """The operations of the node's name that have `value` as an operand."""
        users = value.all_used_ops()
        if self.row.variadic:
            bundles = [r for op in users if op.name() == "builtin.combine" for r in op.results()]
            users += [op for bundle in bundles for op in bundle.all_used_ops()]
        return [op for op in dict.fromkeys(users) if op.name() == self.name]

    def parts_of(self, op: Operation) -> list[Operation]:
        """The operation, and those that belong to it: the bundle of its operands, what takes its vector apart."""
        parts = [op]
        if self.row.variadic:
            bundle = op.operand_source(len(self.row.inputs) - 1).get_defining_op()
            assert bundle is not None, "tensor_operands has looked through it"
            parts.append(bundle)
        if not self.whole:
            parts += [user for user in op.result(0).all_used_ops() if user.name() == "builtin.split"]
        return parts

    def extra(self, op: Operation) -> tuple[dict[str, Any], list[Value]]:
        """Names that the operation as a whole gives a meaning to, and values that it reads besides its operands."""
        return {}, []


class OperationNode(Node):
    """An operation as it stands: every operand, None where one is left out, and the attributes that the pattern asks
    for.  regions: the attribute that stands for its regions."""

    def __init__(self, name: str, operands: tuple[Any, ...], attrs: dict[str, Any], results: int | None,
                 regions: Attr | None = None, commutes: bool = False):
        self.name, self.operands, self.attrs = name, operands, attrs
        self.commutes, self.results, self.regions = commutes, results, regions
        self.list_at = list_at(operands)
        self.whole, self.any_results, self.plain = True, results is None, False
        self.makers = makers(operands)

    @property
    def outputs(self) -> list[Output]:
        return [Output(self, i) for i in range(self.results or 0)]

    def read(self, op: Operation) -> tuple[Sequence[Any], dict[str, Any]]:
        return op.operands_source(), {name: self.attribute(op, name) for name in self.attrs}

    def attribute(self, op: Operation, name: str) -> Any:
        """What an attribute of the pattern is compared with, and bound to."""
        found = op.attributes.get(name)
        return None if found is None else found.value

    def results_of(self, op: Operation) -> list[Value]:
        return list(op.results())

    def number_fits(self, count: int) -> bool:
        return self.results in (None, count)

    def maker_of(self, value: Value) -> Operation | None:
        return value.get_defining_op()

    def users_of(self, value: Value) -> list[Operation]:
        return [op for op in value.all_used_ops() if op.name() == self.name]

    def parts_of(self, op: Operation) -> list[Operation]:
        return [op]

    def extra(self, op: Operation) -> tuple[dict[str, Any], list[Value]]:
        names = {} if self.regions is None else {self.regions.name: list(op.regions)}
        return names, captured(op) if op.regions else []


def makers(operands: Sequence[Any]) -> frozenset[str]:
    return frozenset(p.node.name for p in operands if isinstance(p, Output) and p.node.whole)


def list_at(operands: Sequence[Any]) -> int | None:
    """Where a list of any number stands among operands; None if there is none.

    Raises: ValueError for two of them, which could share what there is in several ways.
    """
    found = [i for i, p in enumerate(operands) if isinstance(p, (Inputs, Outputs))]
    if len(found) > 1:
        raise ValueError(f"expected one list among the operands, got {', '.join(repr(operands[i]) for i in found)}")
    return found[0] if found else None


def commutes(row: Row, said: bool | frozenset[str] | set[str]) -> bool:
    """Whether a rule lets the operands of a row be met in the other order: as its trait says, or never, or for the rows
    that it names."""
    return row.name in said if not isinstance(said, bool) else said and Trait.COMMUTATIVE in row.traits
