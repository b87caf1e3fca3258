"""The loops of a group: neighbouring axes merged where no value tells them apart, and arrays as loops see them.

f32[8, 256, 288] with a weight f32[288] is looped over as [2048, 288]; a group whose arrays all have one shape is one
flat loop.  A parameter's `view` carries the same merge over to the caller's array, and the cuts that a reshape made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from minipd.cinn.ir.ast import Dim, Expr, Param, Var
from minipd.cinn.ir.build import binary, index
from minipd.cinn.lower.axes import Axes, Axis
from minipd.cinn.lower.errors import CannotLower
from minipd.framework.dim import DimExpr, is_symbolic, prod, same
from minipd.ir.value import Value

__all__ = ["Iteration", "Loop"]

LETTERS = "ijklmnpqrstuw"


@dataclass(frozen=True, eq=False)
class Loop:
    """Axes that a group runs through as one: `letter` names it in every block, `size` is an int or symbolic."""

    letter: str
    axes: tuple[Axis, ...]
    size: Any

    @property
    def var(self) -> Var:
        """The iter var that stands for it in a block."""
        return Var(f"v{self.letter}")


class Iteration:
    """The loops of a group, and the parameters of the function.

    inputs, outputs: the values that are arrays of the caller.
    merge: False keeps every axis a loop of its own.
    any_rows: the first loop runs as far as the arrays do, also where its size is known, so that one function serves
    every number of rows.  Not where positions along it count: what is written into rows 1 to 3 of 5 is no other's.
    """

    def __init__(self, axes: Axes, inputs: Sequence[Value], outputs: Sequence[Value], merge: bool = True,
                 any_rows: bool = False):
        self.axes = axes
        self.inputs = {v: f"x{i}" for i, v in enumerate(inputs)}
        self.outputs = [(f"y{i}", v) for i, v in enumerate(outputs)]
        self.loops = self._merged(merge)
        self._loop_of = {axis: loop for loop in self.loops for axis in loop.axes}
        self._own: dict[Value, tuple[Loop, ...]] = {}
        self._arrays = [*((name, v) for v, name in self.inputs.items()), *self.outputs]
        self._extents = {loop: index(loop.size) for loop in self.loops if not isinstance(loop.size, DimExpr)}
        symbolic = [loop for loop in self.loops if isinstance(loop.size, DimExpr)]
        if any_rows:
            symbolic = [*(loop for loop in self.loops[:1] if axes.apart.isdisjoint(loop.axes)), *symbolic]
        for loop in symbolic:
            dim = self._dim(loop)
            if dim is not None:
                self._extents[loop] = dim
        for loop in symbolic:
            if loop not in self._extents:
                self._extents[loop] = self.size(loop.size)
        self.params = tuple([self._param(name, v, i >= len(inputs)) for i, (name, v) in enumerate(self._arrays)])

    # --------------------------------------------------------------------------------------------------- loops
    def _merged(self, merge: bool) -> list[Loop]:
        """Neighbours are one loop if every value that has one of them has the other right beside it."""
        chains = [chain for chain in dict.fromkeys(self.axes.along.values()) if chain]
        after: dict[Axis, set[Axis | None]] = {}
        before: dict[Axis, set[Axis | None]] = {}
        for chain in chains:
            for axis, following, preceding in zip(chain, (*chain[1:], None), (None, *chain[:-1]), strict=True):
                after.setdefault(axis, set()).add(following)
                before.setdefault(axis, set()).add(preceding)
        groups: list[list[Axis]] = []
        for axis in self._ordered(chains):
            last = groups[-1][-1] if groups else None
            if merge and last is not None and after[last] == {axis} and before[axis] == {last} and not (
                    {last, axis} & self.axes.apart):
                groups[-1].append(axis)
            else:
                groups.append([axis])
        return [Loop(LETTERS[n] if n < len(LETTERS) else f"a{n}", tuple(group), prod(a.size for a in group))
                for n, group in enumerate(groups)]

    def _ordered(self, chains: Sequence[tuple[Axis, ...]]) -> list[Axis]:
        """All axes, those of inputs that nothing reads last."""
        try:
            order = self.axes.order(frozenset())
        except CannotLower:                     # no order suits all: that of the largest result first
            results = sorted((self.axes.along[v] for _, v in self.outputs), key=len, reverse=True)
            order = list(dict.fromkeys(a for chain in (*results, *chains) for a in chain))
        read = self.axes.read.union(v for _, v in self.outputs)
        used = {a for v, along in self.axes.along.items() if v in read for a in along}
        return sorted(order, key=lambda axis: axis not in used)

    def of(self, value: Value) -> tuple[Loop, ...]:
        """The loops that the value's index depends on, outermost first."""
        if value not in self._own:
            self._own[value] = tuple(dict.fromkeys(self._loop_of[a] for a in self.axes.along[value]))
        return self._own[value]

    def within(self, value: Value, dim: int) -> tuple[Loop, ...]:
        """The loops of one dimension."""
        return tuple(dict.fromkeys(self._loop_of[a] for a in self.axes.of[value][dim]))

    def extent(self, loop: Loop) -> Expr:
        return self._extents[loop]

    # -------------------------------------------------------------------------------------------------- arrays
    def axes_of(self, array: Value) -> list[tuple[Loop, ...]]:
        """The loops that each axis of an array's buffer runs through: one, but for a dimension that would have to be
        cut into parts of unknown size, which stays whole."""
        groups: list[tuple[Loop, ...]] = [(loop,) for loop in self.of(array)]
        for dim in self.axes.of[array]:
            cut = tuple(dict.fromkeys(self._loop_of[a] for a in dim))
            if len(cut) > 1 and len([a for a in dim if isinstance(a.size, DimExpr)]) > 1:
                touched = [g for g in groups if not set(g).isdisjoint(cut)]
                at = groups.index(touched[0])
                groups[at:at + len(touched)] = [tuple(loop for g in touched for loop in g)]
        return groups

    def _dim(self, loop: Loop) -> Dim | None:
        for name, v in self._arrays:
            axes = self.axes_of(v)
            if (loop,) in axes:
                return Dim(name, axes.index((loop,)))
        return None

    def _param(self, name: str, value: Value, output: bool) -> Param:
        view = tuple(self._view(value, {a for loop in axis for a in loop.axes}) for axis in self.axes_of(value))
        plain = view == tuple((i,) for i in range(len(value.shape)))
        return Param(name, value.dtype, len(view), output, None if plain else view)

    def _view(self, value: Value, axes: set[Axis]) -> tuple[int | tuple[int, int], ...]:
        """What axes run through of an array: dimensions, or (dimension, size of the part) of one that is cut up."""
        found: list[int | tuple[int, int]] = []
        for i, dim in enumerate(self.axes.of[value]):
            own = [a for a in dim if a in axes]
            if len(own) == len(dim):
                found += [i] if own else []
            elif own:
                size = prod(a.size for a in own)
                others = prod(a.size for a in dim if a not in own)
                found.append((i, size if isinstance(size, int) else -int(others)))      # at most one is not known
        return tuple(found)

    # --------------------------------------------------------------------------------------------------- sizes
    def size(self, dim: Any) -> Expr:
        """A dimension as an expression, int64: products of extents, or a polynomial in those that are plain symbols.

        Raises: CannotLower where a symbol is not the extent of any loop (it may have been merged into one).
        """
        if not isinstance(dim, DimExpr):
            return index(dim)
        for loop, extent in self._extents.items():
            if same(loop.size, dim):
                return extent
        known = {str(loop.size): extent for loop, extent in self._extents.items()
                 if len(loop.axes) == 1 and is_symbolic(loop.size)}
        total: Expr = index(0)
        for monomial, coefficient in dim.terms:
            term: Expr = index(coefficient)
            for symbol in monomial:
                if symbol not in known:
                    raise CannotLower(f"the size {dim} is not known inside the group")
                term = binary("mul", term, known[symbol])
            total = binary("add", total, term)
        return binary("floordiv", total, dim.denominator) if dim.denominator != 1 else total
