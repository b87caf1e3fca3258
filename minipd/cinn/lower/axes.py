"""Which loop each dimension of each value of a group belongs to.

Dimensions that must have the same index in every element-wise formula are one *axis*.  They are found by unification:
each dimension starts as an axis of its own, and each operator says which of its dimensions coincide.  A dimension of
size 1 has no axis: its index is 0 whatever the loops do, which is all that broadcasting means here.

    x: f32[8, 16];  m = max(x, axis=1, keepdim=True): [8, 1];  y = x - m: [8, 16]
    axes    x: (i)(j)    m: (i)()    y: (i)(j)

A dimension may be several axes, one inside the other, where a reshape cuts it up or makes it of others:

    x: [2, 12, 5] reshaped to [2, 3, 20]        axes    x: (i)(g, c)(j)    result: (i)(g)(c, j)

Two things do not come out like that: two dimensions of one value that would have to be one axis (x + x.T, or
x + x.sum(1) of a square x), and a reshape whose sizes have no common parts ([2, 3] to [3, 2]).  There an operator reads
its operand at other positions than its own: the operand is *crossed*.  No one loop nest does that, so `analyse` refuses
it, unless it is told that crossings may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from minipd.cinn.lower.errors import CannotLower
from minipd.framework.dim import is_symbolic, prod, same
from minipd.ir.value import Value

__all__ = ["Axes", "Axis", "Dim", "atoms_of"]


@dataclass(eq=False)
class Axis:
    """A loop that a group may need.  `size` is an int or symbolic; `parent` is where it went in a unification, `parts`
    what it was cut into, outermost first."""

    number: int
    size: Any
    parent: Axis | None = None
    parts: tuple[Axis, ...] = ()

    def atoms(self) -> tuple[Axis, ...]:
        """What it is now: itself, the axis that it was united with, or the axes that it was cut into."""
        axis = self
        while axis.parent is not None:
            axis = axis.parent
        return tuple(a for part in axis.parts for a in part.atoms()) if axis.parts else (axis,)


#: the axes of one dimension, outermost first; () for a dimension of size 1
Dim = tuple[Axis, ...]


@dataclass
class Axes:
    """The axes of every value, and what each reduction folds.

    of: for each dimension of a value, its axes.
    along: the axes of each value in order; known once all are united (`settle`).
    folded: for each reduction (by the number of its call), the axes that it folds.
    apart: axes whose position counts, or along which a value is read at other places; merged with a neighbour they
    would lose it.
    crossed: the numbers of the calls that read an operand at other positions than their own.
    read: the values that calls read or make, but for those of which they only take the shape.
    order: all axes, in an order that every value's dimensions follow; `order(last)` puts some of them last if it can.
    """

    of: dict[Value, tuple[Dim, ...]] = field(default_factory=dict)
    along: dict[Value, tuple[Axis, ...]] = field(default_factory=dict)
    folded: dict[int, frozenset[Axis]] = field(default_factory=dict)
    apart: set[Axis] = field(default_factory=set)
    crossed: set[int] = field(default_factory=set)
    read: set[Value] = field(default_factory=set)
    made: list[Axis] = field(default_factory=list)
    #: where crossings may be: the values that have each axis, so that no two of a value are united
    holders: dict[Axis, set[Value]] | None = None
    #: the number of the call that is being looked at
    current: int = -1

    def present(self, value: Value) -> tuple[Axis, ...]:
        """The axes of a value, in order."""
        return self.along[value]

    def settle(self) -> None:
        """Everything is united: each dimension has the axes that its own became.

        Raises: CannotLower if two dimensions of a value became one.
        """
        for value, dims in self.of.items():
            self.of[value] = own = tuple([atoms_of(d) for d in dims])
            self.along[value] = along = tuple([a for d in own for a in d])
            if len(along) > 1 and len(set(along)) < len(along):
                raise CannotLower(f"two dimensions of a {value.type()} would have to be one loop")
        self.apart = {b for a in self.apart for b in a.atoms()}

    def fresh(self, size: Any) -> Dim:
        if same(size, 1):
            return ()
        axis = Axis(len(self.made), size)
        self.made.append(axis)
        return (axis,)

    def dims(self, value: Value) -> tuple[Dim, ...]:
        """The axes of a value; one from outside gets new ones."""
        if value not in self.of:
            self.give(value, map(self.fresh, value.shape))
        return self.of[value]

    def give(self, value: Value, dims: Iterable[Dim]) -> None:
        """The value has these axes.  (Where crossings may be, an axis that it has twice is replaced by a new one.)"""
        found = tuple(dims)
        if self.holders is not None:
            seen: set[Axis] = set()
            own = []
            for dim, size in zip(found, value.shape, strict=True):
                atoms = atoms_of(dim)
                if seen.intersection(atoms):
                    self.cross(*atoms)
                    atoms = self.fresh(size)
                    self.cross(*atoms)
                seen.update(atoms)
                own.append(atoms)
            for axis in seen:
                self.holders.setdefault(axis, set()).add(value)
            found = tuple(own)
        self.of[value] = found

    def cross(self, *axes: Axis) -> None:
        """The current call reads an operand at other positions along these axes."""
        self.crossed.add(self.current)
        self.apart.update(axes)

    # ---------------------------------------------------------------------------------------------- unification
    def unite(self, a: Dim, b: Dim) -> Dim:
        """Two dimensions are one; one of size 1 goes along with any."""
        if not a or not b or a is b:
            return a or b
        x, y = atoms_of(a), atoms_of(b)
        if len(x) == len(y) == 1:
            self._unite_two(x[0], y[0])
        else:
            self.match(x, y)
        return a

    def match(self, a: Sequence[Axis], b: Sequence[Axis]) -> bool:
        """The axes `a`, one inside the other, run through what the axes `b` do: cut each up until they correspond.

        Returns whether that could be done.  Raises: CannotLower if not, where crossings may not be.
        """
        left, right = list(atoms_of(a)), list(atoms_of(b))
        fits = True
        if len(left) == len(right):                     # sizes that are equal by assumption
            for x, y in zip(left, right, strict=True):
                fits = fits and (same(x.size, y.size) or len(left) == 1)
        else:
            fits = False
        if fits:
            pairs = list(zip(left, right, strict=True))
        else:
            pairs = []
            while left and right:
                x, y = left.pop(0), right.pop(0)
                if same(x.size, y.size):
                    pairs.append((x, y))
                    continue
                rest = self._rest(x, y, left, right)
                if rest is None:
                    return self._no_match(a, b)
                pairs.append(rest)
            if left or right:
                return self._no_match(a, b)
        return all([self._unite_two(x, y) for x, y in pairs])

    def _rest(self, x: Axis, y: Axis, left: list[Axis], right: list[Axis]) -> tuple[Axis, Axis] | None:
        """Cut the larger of two axes, so that its inner part corresponds to ... the other's whole, from outside in."""
        if is_symbolic(x.size) or is_symbolic(y.size):
            return self._symbolic_rest(x, y, left, right)
        if y.size and x.size > y.size and x.size % y.size == 0:
            outer, inner = self._cut(x, y.size, x.size // y.size)
            left.insert(0, inner)
            return outer, y
        if x.size and y.size > x.size and y.size % x.size == 0:
            outer, inner = self._cut(y, x.size, y.size // x.size)
            right.insert(0, inner)
            return x, outer
        return None

    def _symbolic_rest(self, x: Axis, y: Axis, left: list[Axis], right: list[Axis]) -> tuple[Axis, Axis] | None:
        """The same where a size is symbolic: only if the axis is, whole, the product of the other's first ones."""
        for whole, first, rest in ((x, y, right), (y, x, left)):
            for n in range(1, len(rest) + 1):
                if same(prod([first.size, *(a.size for a in rest[:n])]), whole.size):
                    inner = prod(a.size for a in rest[:n])
                    outer_part, inner_part = self._cut(whole, first.size, inner)
                    (left if whole is x else right).insert(0, inner_part)
                    return (outer_part, y) if whole is x else (x, outer_part)
        return None

    def _cut(self, axis: Axis, outer: Any, inner: Any) -> tuple[Axis, Axis]:
        parts = tuple(Axis(len(self.made) + n, size) for n, size in enumerate((outer, inner)))
        self.made += parts
        axis.parts = parts
        if axis in self.apart:
            self.apart.update(parts)
        if self.holders is not None:
            for part in parts:
                self.holders[part] = set(self.holders.get(axis, ()))
        return parts[0], parts[1]

    def _no_match(self, a: Sequence[Axis], b: Sequence[Axis]) -> bool:
        if self.holders is None:
            raise CannotLower("the sizes of a reshape, or of dimensions that it made, have no common parts: "
                              f"{[x.size for x in atoms_of(a)]} and {[x.size for x in atoms_of(b)]}")
        self.cross(*atoms_of(a), *atoms_of(b))
        return False

    def _unite_two(self, a: Axis, b: Axis) -> bool:
        if a is b:
            return True
        if self.holders is not None:
            mine, others = self.holders.setdefault(a, set()), self.holders.setdefault(b, set())
            if not mine.isdisjoint(others):
                self.cross(a, b)
                return False
            mine |= others
            others |= mine
        if a.number > b.number:
            a, b = b, a
        if is_symbolic(a.size):
            a.size = b.size                     # shape inference has checked, or assumed, that they are equal
        b.parent = a
        return True

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


def atoms_of(dim: Sequence[Axis]) -> Dim:
    """What a dimension's axes are by now."""
    if len(dim) == 1:
        axis = dim[0]
        return (axis,) if axis.parent is None and not axis.parts else axis.atoms()
    return tuple([b for a in dim for b in a.atoms()])
