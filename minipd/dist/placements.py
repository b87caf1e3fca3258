"""Placements: what each axis of the mesh holds of a tensor.

A distributed tensor has one global value and, for every mesh axis, one placement:

* `Shard(d)`: the ranks along the axis hold consecutive chunks of dimension d (see `sharding.py` for which).  Where
  several axes split one dimension, `shard_order` says which splits it first; with `split_factor` they hold a chunk of
  each of so many parts of it;
* `Replicate()`: they all hold the same;
* `Partial(op)`: the value is the reduction of what they hold, so nobody has it yet.

Placements are interned: equal ones are the same object, so that comparing and hashing them, which every distributed
call does several times, costs a pointer comparison.
"""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Sequence
from typing import Any

from minipd.dist.mesh import ProcessMesh

__all__ = ["Partial", "Placement", "ReduceType", "Replicate", "Shard"]


class ReduceType(enum.IntEnum):
    """How the parts of a `Partial` make the value (Paddle's numbers)."""

    kRedSum = 0
    kRedMax = 1
    kRedMin = 2
    kRedProd = 3
    kRedAvg = 4
    kRedAny = 5
    kRedAll = 6


#: the short names of the reductions, in the order of Paddle's numbers
KINDS = tuple(t.name[len("kRed"):].lower() for t in ReduceType)


class Placement:
    """What one mesh axis holds of a tensor."""

    __slots__ = ()

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether this shards (dimension `dim`, if given)."""
        return False

    def is_replicated(self) -> bool:
        return False

    def is_partial(self) -> bool:
        return False

    def __copy__(self) -> Placement:
        return self

    def __deepcopy__(self, memo: dict) -> Placement:
        return self


class Shard(Placement):
    """The ranks along the axis hold consecutive chunks of dimension `dim`.

    Args:
        dim: the dimension; one below zero counts from the end.
        shard_order: where several axes split the dimension, those with a smaller number split it first.  Without
            numbers, or where they are equal, the outer axis of the mesh does.
        split_factor: the dimension is so many equal parts, one after the other, and every part is split over the axis:
            a rank holds its chunk of each.  So the weights of q, k and v in one tensor are split alike (factor 3).

    Raises: TypeError for what is no whole number, ValueError for an order below 0 or a factor below 1.

    >>> Shard(1), Shard(1) is Shard(1), Shard(1).get_dim(), Shard(1).is_shard(0)
    (Shard(dim=1), True, 1, False)
    >>> Shard(0, shard_order=1), Shard(0, split_factor=3), Shard(0, shard_order=0) is Shard(0)
    (Shard(dim=0, shard_order=1), Shard(dim=0, split_factor=3), True)
    """

    __slots__ = ("dim", "factor", "order")
    dim: int
    order: int
    factor: int

    def __new__(cls, dim: int, *, shard_order: int | None = None, split_factor: int = 1) -> Shard:
        if shard_order is None and split_factor == 1:
            return _shard(operator.index(dim), 0, 1)
        order, factor = operator.index(shard_order or 0), operator.index(split_factor)
        if order < 0:
            raise ValueError(f"Shard: expected a shard_order of 0 or more (0 splits first), got {order}")
        if factor < 1:
            raise ValueError(f"Shard: expected a split_factor of 1 or more (how many parts the dimension has), got "
                             f"{factor}")
        return _shard(operator.index(dim), order, factor)

    def get_dim(self) -> int:
        return self.dim

    def get_co_shard_order(self) -> int:
        """Which of the axes that split the dimension splits it first: the one with the smallest number."""
        return self.order

    def get_split_factor(self) -> int:
        """How many parts the dimension is seen as, each of which is split."""
        return self.factor

    def set_split_factor(self, factor: int) -> None:
        """Raises: TypeError, for equal placements are one object, which other tensors have too."""
        raise TypeError(f"set_split_factor: expected a placement that is never changed, {self!r} may belong to other "
                        f"tensors too; make another one, Shard({self.dim}, split_factor={factor})")

    def with_(self, **changed: int) -> Shard:
        """The same with another `dim`, `shard_order` or `split_factor`."""
        return Shard(**{"dim": self.dim, "shard_order": self.order, "split_factor": self.factor, **changed})

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or dim == self.dim

    def __reduce__(self) -> tuple:
        return _shard, (self.dim, self.order, self.factor)

    def __repr__(self) -> str:
        order = f", shard_order={self.order}" if self.order else ""
        return f"Shard(dim={self.dim}{order}{f', split_factor={self.factor}' if self.factor > 1 else ''})"


class Replicate(Placement):
    """The ranks along the axis all hold the same."""

    __slots__ = ()

    def __new__(cls) -> Replicate:
        return _replicate()

    def is_replicated(self) -> bool:
        return True

    def __reduce__(self) -> tuple:
        return Replicate, ()

    def __repr__(self) -> str:
        return "Replicate()"


class Partial(Placement):
    """The value is the reduction (`op`: sum, max, min, prod, avg, any or all) of what the ranks along the axis hold.

    Args:
        reduce_type: a `ReduceType` or its short name.

    >>> Partial(), Partial("max") is Partial(ReduceType.kRedMax), Partial("max").op
    (Partial(reduce_type=SUM), True, 'max')
    """

    __slots__ = ("op",)
    op: str

    def __new__(cls, reduce_type: ReduceType | str = ReduceType.kRedSum) -> Partial:
        if isinstance(reduce_type, ReduceType):
            return _partial(KINDS[reduce_type])
        if reduce_type not in KINDS:
            raise ValueError(f"Partial: expected a ReduceType or one of {', '.join(KINDS)}, got {reduce_type!r}")
        return _partial(reduce_type)

    @property
    def idempotent(self) -> bool:
        """Whether equal parts reduce to themselves, so that a replicated value already is such a Partial."""
        return self.op in ("max", "min", "avg", "any", "all")

    def reduce_type(self) -> ReduceType:
        return ReduceType["kRed" + self.op.capitalize()]

    def is_partial(self) -> bool:
        return True

    def __reduce__(self) -> tuple:
        return Partial, (self.op,)

    def __repr__(self) -> str:
        return f"Partial(reduce_type={'PRODUCT' if self.op == 'prod' else self.op.upper()})"


@functools.cache
def _shard(dim: int, order: int, factor: int) -> Shard:
    self = object.__new__(Shard)
    self.dim, self.order, self.factor = dim, order, factor
    return self


@functools.cache
def _replicate() -> Replicate:
    return object.__new__(Replicate)


@functools.cache
def _partial(op: str) -> Partial:
    self = object.__new__(Partial)
    self.op = op
    return self


def whole(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """The placements with Partial read as Replicate: those of the value once it has been reduced.

    >>> whole((Partial(), Shard(0)))
    (Replicate(), Shard(dim=0))
    """
    return tuple(Replicate() if p.is_partial() else p for p in placements)


def splitting_order(placements: Sequence[Placement]) -> list[int]:
    """The mesh axes that split dimensions, in the order in which those of one dimension split it.

    >>> splitting_order((Shard(0, shard_order=1), Replicate(), Shard(0)))
    [2, 0]
    """
    axes, ordered = [], False
    for axis, p in enumerate(placements):
        if type(p) is Shard:
            axes.append(axis)
            ordered = ordered or p.order > 0
    if ordered:
        axes.sort(key=lambda axis: placements[axis].order)  # type: ignore[attr-defined]
    return axes


def canonical(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """The one way to write a layout: orders that say what the mesh's order says are left out, others are 0, 1, ...

    So equal layouts are equal placements.

    >>> canonical((Shard(0, shard_order=3), Shard(0, shard_order=5))), canonical((Shard(0, shard_order=5), Shard(0)))
    ((Shard(dim=0), Shard(dim=0)), (Shard(dim=0, shard_order=1), Shard(dim=0)))
    """
    if not any(isinstance(p, Shard) and p.order for p in placements):
        return tuple(placements)
    found = list(placements)
    order = splitting_order(placements)
    for dim in {placements[axis].dim for axis in order}:    # type: ignore[attr-defined]
        axes = [axis for axis in order if placements[axis].dim == dim]      # type: ignore[attr-defined]
        for number, axis in enumerate(axes):
            found[axis] = found[axis].with_(shard_order=0 if axes == sorted(axes) else number)  # type: ignore
    return tuple(found)


def check_placements(placements: Sequence[Any], mesh: ProcessMesh, ndim: int,
                     what: str = "tensor") -> tuple[Placement, ...]:
    """One placement per mesh axis, as a tuple, in canonical form: negative dimensions counted from the end, no orders
    but where they differ from the mesh's.

    Raises: TypeError for what is no placement, ValueError for a wrong count or a dimension the tensor does not have.

    >>> from minipd.dist.mesh import parse_mesh
    >>> check_placements([Replicate(), Shard(-1)], parse_mesh("dp=2,tp=2"), ndim=3)
    (Replicate(), Shard(dim=2))
    """
    checked = []
    if not isinstance(placements, Sequence):
        raise TypeError(f"{what}: expected a list of placements, one for each axis of the mesh {mesh.text()}, got "
                        f"{placements!r}")
    for p in placements:
        if not isinstance(p, Placement):
            raise TypeError(f"{what}: expected placements Shard(dim), Replicate() or Partial(), got {p!r}")
        if isinstance(p, Shard):
            if not -ndim <= p.dim < ndim:
                has = "0-D, it has no dimension to shard" if ndim == 0 else f"{ndim}-D, with dimensions 0 to {ndim - 1}"
                raise ValueError(f"{what}: expected {p!r} to name one of its dimensions, got a tensor that is {has}; "
                                 "use another dimension, or Replicate()")
            p = p.with_(dim=p.dim % ndim) if p.dim < 0 else p
        checked.append(p)
    if len(checked) != mesh.ndim:
        raise ValueError(f"{what}: expected {mesh.ndim} placements, one for each axis of the mesh {mesh.text()}, "
                         f"got {len(checked)}: {checked}; use Replicate() for an axis that does not matter")
    return canonical(checked)
