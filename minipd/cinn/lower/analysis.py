"""The axes of a group: each kind of `compute` entry says which dimensions of its operands and results coincide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.cinn.compute.table import Broadcast, Elementwise, Fill, Indexed, Reduction
from minipd.cinn.lower.axes import Axes, Dim, atoms_of
from minipd.cinn.lower.calls import Call
from minipd.cinn.lower.errors import CannotLower
from minipd.framework.dim import DimExpr, same
from minipd.ir.value import Value

__all__ = ["analyse"]


def analyse(calls: Sequence[Call], operands: Sequence[Value], crossings: bool = False) -> Axes:
    """The axes of a group; `operands` are the values from outside that it reads.

    crossings: whether operators may read operands at other positions than their own.
    Raises: CannotLower if it is no loop nest.
    """
    axes = Axes(holders={} if crossings else None)
    for value in operands:
        axes.dims(value)
    folded: dict[int, tuple[Dim, ...]] = {}
    for call in calls:
        axes.current = call.number
        axes.read.update(call.read, call.results)
        match call.compute:
            case Elementwise():
                _elementwise(axes, call)
            case Fill(step=step):
                for result in call.results:
                    axes.give(result, map(axes.fresh, result.shape))
                    if step:
                        axes.apart.update(a for dim in axes.of[result] for a in dim)
                    if call.operands:           # full_like: the loops of what it is like
                        _align(axes, result, call.operands[0])
            case Broadcast(dims=dims):
                found = _dims(call, dims)
                if found is None:
                    _reshape(axes, call)
                else:
                    _through(axes, call, found)
                    _stretches_or_not(call.operands[0], call.results[0])
                if len(call.operands) > 1:      # expand_as: the loops of the target
                    _align(axes, call.results[0], call.operands[1])
            case Reduction(dims=dims):
                kept = _dims(call, dims)
                assert kept is not None
                _through(axes, call, kept)
                folded[call.number] = tuple(a for i, a in enumerate(axes.dims(call.operands[0])) if i not in kept)
                if len(call.operands) > 1:      # reduce_as
                    _stretches_or_not(call.results[0], call.operands[0])
                    _align(axes, call.results[0], call.operands[1])
            case Indexed():
                for k in range(len(call.results)):
                    _indexed(axes, call, k)
    axes.settle()
    axes.folded = {n: frozenset(a for dim in dims for a in atoms_of(dim)) for n, dims in folded.items()}
    return axes


def _dims(call: Call, dims: Any) -> tuple[int | None, ...] | None:
    try:
        return dims(call.attrs, call.operands[0].shape, call.results[0].shape)
    except TypeError as error:
        raise CannotLower(str(error)) from None


def _through(axes: Axes, call: Call, dims: tuple[int | None, ...]) -> None:
    """The result has the operand's axes where it has its dimensions."""
    own = axes.dims(call.operands[0])
    result = call.results[0]
    axes.give(result, [axes.fresh(n) if i is None else own[i] for i, n in zip(dims, result.shape, strict=True)])


def _reshape(axes: Axes, call: Call) -> None:
    """The elements in the same order: what the operand's axes run through, the result's do."""
    own = [a for dim in axes.dims(call.operands[0]) for a in dim]
    result = call.results[0]
    new = tuple(map(axes.fresh, result.shape))
    axes.give(result, new)
    axes.match(own, [a for dim in new for a in dim])


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
        dims: list[Dim] = [()] * len(result.shape)
        for operand in call.operands:
            _stretches_or_not(operand, result)
            own = axes.dims(operand)
            lead = len(dims) - len(own)
            for i, axis in enumerate(own, lead):
                if axis is not dims[i]:
                    dims[i] = axes.unite(dims[i], axis)
        axes.give(result, dims)


def _indexed(axes: Axes, call: Call, k: int) -> None:
    """Dimensions that a piece takes over as they are have the operand's axes; others are read at computed places."""
    result = call.results[k]
    dims: list[Dim] = [()] * len(result.shape)
    pieces = call.pieces(k)
    for piece in pieces:
        if piece.operand is None:
            continue
        own = axes.dims(call.operands[piece.operand])
        for d, at in enumerate(piece.places):
            if isinstance(at, int) and own[d] is not dims[at]:
                dims[at] = axes.unite(dims[at], own[d])
            elif not isinstance(at, int):
                axes.apart.update(atoms_of(own[d]))
    for d, n in enumerate(result.shape):
        if not dims[d]:
            dims[d] = axes.fresh(n)
    counted = {d for piece in pieces for d in piece.counts}
    axes.apart.update(a for d in counted for a in atoms_of(dims[d]))
    axes.give(result, dims)
