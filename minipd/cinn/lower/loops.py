"""The loops of a group: neighbouring axes merged where no array tells them apart, and arrays as loops see them.

f32[8, 256, 288] with a weight f32[288] is looped over as [2048, 288]; a group whose arrays all have one shape is one
flat loop.  A parameter's `view` carries the same merge over to the caller's array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from minipd.cinn.ir.ast import Dim, Expr, Param, Var
from minipd.cinn.ir.build import binary, index
from minipd.cinn.lower.axes import Axes, Axis
from minipd.cinn.lower.errors import CannotLower
from minipd.cinn.lower.kinds import Split
from minipd.framework.dim import DimExpr, is_symbolic, prod, same
from minipd.ir.value import Value

__all__ = ["Loop", "Loops"]


@dataclass(frozen=True)
class Loop:
    """One loop: its variable, the axes that it runs through at once, its extent."""

    var: str
    axes: tuple[Axis, ...]
    extent: Expr


class Loops:
    """The loops of a split, and the parameters of the function.

    inputs, outputs: the values that are arrays of the caller.  merge: False keeps every axis a loop of its own.
    """

    def __init__(self, axes: Axes, split: Split, inputs: Sequence[Value], outputs: Sequence[Value], merge: bool = True):
        self.axes = axes
        self.arrays = [*inputs, *outputs]
        self.names = {v: f"x{i}" for i, v in enumerate(inputs)}
        self.output_names = [f"y{i}" for i in range(len(outputs))]
        self._array_names = [*self.names.values(), *self.output_names]
        outer, inner = (self._merged(part) if merge else [(a,) for a in part] for part in (split.outer, split.inner))
        if split.kind == "E" and len(outer) > 1:
            outer, inner = outer[:-1], outer[-1:]
        self._groups = [*outer, *inner]
        self.outer = tuple(self._loop(f"i{n or ''}", group) for n, group in enumerate(outer))
        self.inner = tuple(self._loop(f"j{n or ''}", group) for n, group in enumerate(inner))
        if split.kind == "E":
            self.outer, self.inner = (*self.outer, *self.inner), ()
        self.params = tuple(self._param(name, v, i >= len(inputs))
                            for i, (name, v) in enumerate(zip(self._array_names, self.arrays, strict=True)))

    def _merged(self, part: tuple[Axis, ...]) -> list[tuple[Axis, ...]]:
        """Neighbours are one loop if every array that has one of them has the other right beside it."""
        groups: list[tuple[Axis, ...]] = []
        for axis in part:
            if groups and self._inseparable(groups[-1][-1], axis):
                groups[-1] += (axis,)
            else:
                groups.append((axis,))
        return groups

    def _inseparable(self, a: Axis, b: Axis) -> bool:
        if {a, b} & self.axes.apart:
            return False
        for v in self.arrays:
            own = self.axes.present(v)
            if a in own or b in own:
                if a not in own or own[own.index(a) + 1:][:1] != (b,):
                    return False
        return True

    def _loop(self, var: str, group: tuple[Axis, ...]) -> Loop:
        size = prod(a.size for a in group)
        return Loop(var, group, self._dim(group) if isinstance(size, DimExpr) else index(size))

    def _dim(self, group: tuple[Axis, ...]) -> Dim:
        for name, v in zip(self._array_names, self.arrays, strict=True):
            present = [g for g in self._groups if g[0] in self.axes.present(v)]
            if group in present:
                return Dim(name, present.index(group))
        raise CannotLower(f"no array has the symbolic size {prod(a.size for a in group)}")

    def _param(self, name: str, value: Value, output: bool) -> Param:
        if any(len(dim) > 1 for dim in self.axes.of[value]):
            raise CannotLower(f"a dimension of a {value.type()} would have to be several loops")
        view = tuple(tuple(i for i, dim in enumerate(self.axes.of[value]) if set(dim) & set(loop.axes))
                     for loop in self.of(value))
        plain = view == tuple((i,) for i in range(len(value.shape)))
        return Param(name, value.dtype, len(view), output, None if plain else view)

    def of(self, value: Value) -> tuple[Loop, ...]:
        """The loops that the value's index depends on, outermost first."""
        present = self.axes.present(value)
        return tuple(loop for loop in (*self.outer, *self.inner) if loop.axes[0] in present)

    def index(self, value: Value) -> tuple[Expr, ...]:
        """The value's index within the loops around it."""
        return tuple(Var(loop.var) for loop in self.of(value))

    def size(self, dim: Any) -> Expr:
        """A dimension as an expression, int64: products of extents, or a polynomial in those that are plain symbols.

        Raises: CannotLower where a symbol is not the extent of any loop (it may have been merged into one).
        """
        if not isinstance(dim, DimExpr):
            return index(dim)
        for loop in (*self.outer, *self.inner):
            if same(prod(a.size for a in loop.axes), dim):
                return loop.extent
        known = {str(loop.axes[0].size): loop.extent for loop in (*self.outer, *self.inner)
                 if len(loop.axes) == 1 and is_symbolic(loop.axes[0].size)}
        total: Expr = index(0)
        for monomial, coefficient in dim.terms:
            term: Expr = index(coefficient)
            for symbol in monomial:
                if symbol not in known:
                    raise CannotLower(f"the size {dim} is not known inside the group")
                term = binary("mul", term, known[symbol])
            total = binary("add", total, term)
        return binary("floordiv", total, dim.denominator) if dim.denominator != 1 else total
