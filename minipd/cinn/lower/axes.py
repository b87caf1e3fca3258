"""Which loop each dimension of each value of a group belongs to.

Dimensions that must have the same index in every element-wise formula are one *axis*.  They are found by unification:
each dimension starts as an axis of its own, and each operator says which of its dimensions coincide.  A dimension of
size 1 has no axis: its index is 0 whatever the loops do, which is all that broadcasting means here.

    x: f32[8, 16];  m = max(x, axis=1, keepdim=True): [8, 1];  y = x - m: [8, 16]
    axes    x: (i, j)    m: (i, -)    y: (i, j)

A group in which two dimensions of one value are found to be one axis (x + sum(x, axis=1) of a square x) is no loop
nest; neither is one whose values disagree about the order of axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from minipd.cinn.compute.table import Broadcast, Compute, Elementwise, Fill, Reduction, compute_of
from minipd.cinn.lower.errors import CannotLower
from minipd.framework.dim import DimExpr, is_symbolic, same
from minipd.framework.dtype import COMPLEX
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.ir.value import Value

__all__ = ["Axis", "Axes", "Call", "analyse", "calls_of"]


#: operations of a group that compute nothing
NO_CALLS = ("pd_op.full_int_array", "pd_op.shape_only", "builtin.combine", "builtin.split", "cf.yield")


@dataclass(eq=False)
class Axis:
    """A loop that a group may need.  `size` is an int or symbolic; `parent` is where it went in a unification."""

    number: int
    size: Any
    parent: Axis | None = None

    def root(self) -> Axis:
        axis = self
        while axis.parent is not None:
            axis = axis.parent
        return axis


@dataclass
class Call:
    """One operator of a group."""

    op: Operation
    compute: Compute
    operands: list[Value]
    results: list[Value]
    attrs: dict[str, Any]
    #: its place in the group, for names
    number: int

    @property
    def name(self) -> str:
        assert self.op.row is not None
        return self.op.row.name


def calls_of(ops: Iterable[Operation]) -> list[Call]:
    """The operators among `ops` as calls of rows; constants that only stand for attributes are no calls.

    Raises: CannotLower for one without a `compute` entry, and for complex numbers, which the loop IR does not have.
    """
    calls: list[Call] = []
    for op in ops:
        if op.name() in NO_CALLS:
            continue
        compute = None if op.row is None else compute_of(op.row)
        if compute is None:
            raise CannotLower(f"{op.name()} has no column `compute`")
        for value in (*tensor_operands(op), *result_values(op)):
            if value.dtype in COMPLEX:
                raise CannotLower(f"{op.name()} of {value.type()}: the loop IR has no complex numbers")
        calls.append(Call(op, compute, tensor_operands(op), result_values(op), op_attrs(op), len(calls)))
    return calls


@dataclass
class Axes:
    """The axes of every value, and what each reduction folds.

    of: for each dimension of a value, its axis, or None where the size is 1.
    along: the axes of each value in order, without the Nones; known once all are united (`settle`).
    folded: for each reduction (by the number of its call), the axes that it folds.
    counted: axes whose position is part of a value (arange); merged with others they would lose it.
    order: all axes, in an order that every value's dimensions follow; `order(last)` puts some of them last if it can.
    """

    of: dict[Value, tuple[Axis | None, ...]] = field(default_factory=dict)
    along: dict[Value, tuple[Axis, ...]] = field(default_factory=dict)
    folded: dict[int, frozenset[Axis]] = field(default_factory=dict)
    counted: frozenset[Axis] = frozenset()
    made: list[Axis] = field(default_factory=list)

    def present(self, value: Value) -> tuple[Axis, ...]:
        """The axes of a value, in order."""
        return self.along[value]

    def settle(self) -> None:
        """Everything is united: each dimension has the axis that its own became.

        Raises: CannotLower if two dimensions of a value became one.
        """
        for value, dims in self.of.items():
            self.of[value] = own = tuple([None if a is None else a.root() for a in dims])
            self.along[value] = along = tuple([a for a in own if a is not None])
            if len(along) > 1 and len(set(along)) < len(along):
                raise CannotLower(f"two dimensions of a {value.type()} would have to be one loop")

    def fresh(self, size: Any) -> Axis | None:
        if same(size, 1):
            return None
        axis = Axis(len(self.made), size)
        self.made.append(axis)
        return axis

    def dims(self, value: Value) -> tuple[Axis | None, ...]:
        """The axes of a value; one from outside gets new ones."""
        if value not in self.of:
            self.of[value] = tuple(map(self.fresh, value.shape))
        return self.of[value]

    def unite(self, a: Axis | None, b: Axis | None) -> Axis | None:
        """The two are one; a dimension of size 1 (None) goes along with any."""
        if a is None or b is None:
            return b if a is None else a
        a, b = a.root(), b.root()
        if a is b:
            return a
        if a.number > b.number:
            a, b = b, a
        if is_symbolic(a.size):
            a.size = b.size                     # shape inference has checked, or assumed, that they are equal
        b.parent = a
        return a

    def order(self, last: frozenset[Axis]) -> list[Axis]:
        """Every axis once, so that the dimensions of every value are in order; those in `last` at the end if possible.

        Raises: CannotLower if there is no such order.
        """
        after: dict[Axis, set[Axis]] = {}
        for chain in dict.fromkeys(self.along.values()):
            for a in chain:
                after.setdefault(a, set())
            for a, b in zip(chain, chain[1:], strict=False):
                after[b].add(a)
        order: list[Axis] = []
        waiting = sorted(after, key=lambda a: (a in last, a.number))
        while waiting:
            ready = next((a for a in waiting if after[a].issubset(order)), None)
            if ready is None:
                raise CannotLower("the values of the group have their dimensions in different orders")
            order.append(ready)
            waiting.remove(ready)
        return order


def analyse(calls: Sequence[Call], operands: Sequence[Value]) -> Axes:
    """The axes of a group; `operands` are the values from outside that it reads.

    Raises: CannotLower if it is no loop nest.
    """
    axes = Axes()
    for value in operands:
        axes.dims(value)
    folded: dict[int, tuple[Axis | None, ...]] = {}
    for call in calls:
        match call.compute:
            case Elementwise():
                _elementwise(axes, call)
            case Fill():
                for result in call.results:
                    axes.of[result] = tuple(map(axes.fresh, result.shape))
                    if call.operands:           # full_like: the loops of what it is like
                        _align(axes, result, call.operands[0])
            case Broadcast(dims=dims):
                _through(axes, call, _dims(call, dims))
                _stretches_or_not(call.operands[0], call.results[0])
                if len(call.operands) > 1:      # expand_as: the loops of the target
                    _align(axes, call.results[0], call.operands[1])
            case Reduction(dims=dims):
                kept = _dims(call, dims)
                _through(axes, call, kept)
                folded[call.number] = tuple(a for i, a in enumerate(axes.dims(call.operands[0])) if i not in kept)
                if len(call.operands) > 1:      # reduce_as
                    _stretches_or_not(call.results[0], call.operands[0])
                    _align(axes, call.results[0], call.operands[1])
    axes.settle()
    axes.folded = {n: frozenset(a.root() for a in dims if a is not None) for n, dims in folded.items()}
    axes.counted = frozenset(a for call in calls if isinstance(call.compute, Fill) and call.compute.step
                             for a in axes.present(call.results[0]))
    return axes


def _dims(call: Call, dims: Any) -> tuple[int | None, ...]:
    try:
        return dims(call.attrs, call.operands[0].shape, call.results[0].shape)
    except TypeError as error:
        raise CannotLower(str(error)) from None


def _through(axes: Axes, call: Call, dims: tuple[int | None, ...]) -> None:
    """The result has the operand's axes where it has its dimensions."""
    own = axes.dims(call.operands[0])
    result = call.results[0]
    axes.of[result] = tuple(axes.fresh(n) if i is None else own[i] for i, n in zip(dims, result.shape, strict=True))


def _align(axes: Axes, value: Value, other: Value) -> None:
    """Two values of one shape."""
    for a, b in zip(axes.of[value], axes.dims(other), strict=True):
        axes.unite(a, b)


def _stretches_or_not(small: Value, large: Value) -> None:
    """Raise CannotLower where only the run knows whether a dimension of size 1 is stretched: S0 beside
    Broadcast(S0,S1)."""
    for n, m in zip(reversed(small.shape), reversed(large.shape), strict=False):
        if isinstance(m, DimExpr) and any(a.function == "Broadcast" for a in m.atoms) and not same(n, 1) and n != m:
            raise CannotLower(f"whether a {small.type()} is stretched to {large.type()} is known only when it runs")


def _elementwise(axes: Axes, call: Call) -> None:
    for result in call.results:
        dims: list[Axis | None] = [None] * len(result.shape)
        for operand in call.operands:
            _stretches_or_not(operand, result)
            own = axes.dims(operand)
            lead = len(dims) - len(own)
            for i, axis in enumerate(own, lead):
                if axis is not dims[i]:
                    dims[i] = axes.unite(dims[i], axis)
        axes.of[result] = tuple(dims)
