"""Placements: what each axis of the mesh holds of a tensor.

A distributed tensor has one global value and, for every mesh axis, one placement:

* `Shard(d)`: the ranks along the axis hold consecutive chunks of dimension d (see `sharding.py` for which);
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

    >>> Shard(1), Shard(1) is Shard(1), Shard(1).get_dim(), Shard(1).is_shard(0)
    (Shard(dim=1), True, 1, False)
    """

    __slots__ = ("dim",)
    dim: int

    def __new__(cls, dim: int) -> Shard:
        return _shard(operator.index(dim))

    def get_dim(self) -> int:
        return self.dim

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or dim == self.dim

    def __reduce__(self) -> tuple:
        return Shard, (self.dim,)

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"


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
        kinds = [t.name[len("kRed"):].lower() for t in ReduceType]
        if isinstance(reduce_type, ReduceType):
            return _partial(kinds[reduce_type])
        if reduce_type not in kinds:
            raise ValueError(f"Partial: expected a ReduceType or one of {', '.join(kinds)}, got {reduce_type!r}")
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
        return f"Partial(reduce_type={self.op.upper()})"


@functools.cache
def _shard(dim: int) -> Shard:
    self = object.__new__(Shard)
    self.dim = dim
    return self


@functools.cache
def _replicate() -> Replicate:
    return object.__new__(Replicate)


@functools.cache
def _partial(op: str) -> Partial:
    self = object.__new__(Partial)
    self.op = op
    return self


def check_placements(placements: Sequence[Any], mesh: ProcessMesh, ndim: int,
                     what: str = "tensor") -> tuple[Placement, ...]:
    """One placement per mesh axis, as a tuple, negative dimensions counted from the end.

    Raises: TypeError for what is no placement, ValueError for a wrong count or a dimension the tensor does not have.

    >>> from minipd.dist.mesh import parse_mesh
    >>> check_placements([Replicate(), Shard(-1)], parse_mesh("dp=2,tp=2"), ndim=3)
    (Replicate(), Shard(dim=2))
    """
    checked = []
    for p in placements:
        if not isinstance(p, Placement):
            raise TypeError(f"{what}: expected placements Shard(dim), Replicate() or Partial(), got {p!r}")
        if isinstance(p, Shard):
            if not -ndim <= p.dim < ndim:
                has = "0-D, it has no dimension to shard" if ndim == 0 else f"{ndim}-D, with dimensions 0 to {ndim - 1}"
                raise ValueError(f"{what}: expected {p!r} to name one of its dimensions, got a tensor that is {has}; "
                                 "use another dimension, or Replicate()")
            p = Shard(p.dim % ndim)
        checked.append(p)
    if len(checked) != mesh.ndim:
        raise ValueError(f"{what}: expected {mesh.ndim} placements, one for each axis of the mesh {mesh.text()}, "
                         f"got {len(checked)}: {checked}; use Replicate() for an axis that does not matter")
    return tuple(checked)
