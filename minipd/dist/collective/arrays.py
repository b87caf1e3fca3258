"""What is given to a collective, checked; and what came, written into the tensors that are to have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.dist.comm.arguments import MAX_TAG
from minipd.dist.group import Group
from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.meta import describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.framework.views import rebind

__all__ = ["ReduceOp"]


class ReduceOp:
    """How values are combined (Paddle's numbers).  On bool, SUM is "any" and PROD is "all"."""

    SUM, MAX, MIN, PROD, AVG = range(5)


_NAMES = {ReduceOp.SUM: "sum", ReduceOp.MAX: "max", ReduceOp.MIN: "min", ReduceOp.PROD: "prod", ReduceOp.AVG: "avg"}


def reduction(op: Any, array: np.ndarray, what: str) -> str:
    """The communicator's name of a ReduceOp; of AVG, it is the sum, which `averaged` divides."""
    if not isinstance(op, int) or op not in _NAMES:
        raise ValueError(f"{what}: expected ReduceOp.SUM, MAX, MIN, PROD or AVG, got {op!r}")
    if op == ReduceOp.AVG and array.dtype not in dtypes.INEXACT:
        raise TypeError(f"{what}: expected floats for ReduceOp.AVG, got {describe(array)}; use SUM and divide")
    if op in (ReduceOp.MAX, ReduceOp.MIN) and array.dtype in dtypes.COMPLEX:
        raise TypeError(f"{what}: expected real numbers for ReduceOp.{_NAMES[op].upper()}, got {describe(array)}")
    return "sum" if op == ReduceOp.AVG else _NAMES[op]


def averaged(array: np.ndarray, op: int, group: Group) -> np.ndarray:
    """What was combined, as `op` has it."""
    return array / array.dtype.type(group.nranks) if op == ReduceOp.AVG else array


# --------------------------------------------------------------------------------------------------------- given
def array_of(tensor: Any, what: str) -> np.ndarray:
    """What an ordinary tensor holds."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{what}: expected a Tensor, got {tensor!r}")
    if not isinstance(tensor.payload, np.ndarray):
        kind = "" if hasattr(tensor.payload, "placements") else ", and programs have all_reduce, broadcast, " \
            "all_gather, reduce_scatter, alltoall, send and recv"
        raise TypeError(f"{what}: expected an ordinary tensor with values, got {tensor.payload!r}; a distributed "
                        f"tensor changes its placements with reshard{kind}")
    return tensor.payload


def arrays_of(tensors: Any, group: Group, what: str) -> list[np.ndarray]:
    """What the tensors of a list hold, one for each member."""
    if not isinstance(tensors, list | tuple) or len(tensors) != group.nranks:
        raise ValueError(f"{what}: expected a list of {group.nranks} tensors, one for each rank of the group, got "
                         f"{len(tensors) if isinstance(tensors, list | tuple) else tensors!r}")
    return [array_of(t, what) for t in tensors]


def like(array: np.ndarray, model: np.ndarray, what: str) -> np.ndarray:
    """The array, if it has the shape and dtype of `model`."""
    if array.shape != model.shape or array.dtype != model.dtype:
        raise ValueError(f"{what}: expected {describe(model)}, got {describe(array)}")
    return array


def rows_of(array: np.ndarray, model: np.ndarray, group: Group, what: str) -> np.ndarray:
    """A tensor that is `group.nranks` tensors like `model`, one after the other along dimension 0: [nranks, ...]."""
    if not model.ndim or array.shape != (model.shape[0] * group.nranks, *model.shape[1:]) or array.dtype != model.dtype:
        raise ValueError(f"{what}: expected {group.nranks} times {describe(model)} along dimension 0, got "
                         f"{describe(array)}")
    return array.reshape(group.nranks, *model.shape)


def one_dtype(arrays: Sequence[np.ndarray], what: str) -> None:
    """Bytes of several tensors travel together: they must be of one dtype."""
    if len({a.dtype for a in arrays}) > 1:
        raise ValueError(f"{what}: expected tensors of one dtype, got {[describe(a) for a in arrays]}")


def member(rank: Any, group: Group, what: str) -> int:
    """A global rank, if it is one of the group's."""
    if rank not in group.ranks:
        raise ValueError(f"{what}: expected a rank of the group, {group.ranks}, got {rank}")
    return int(rank)


def peer(rank: Any, group: Group, what: str) -> int:
    """A global rank of the group, if it is another than this one."""
    if rank == current().rank:
        raise ValueError(f"{what}: expected another rank, got {rank}, which is this one")
    return member(rank, group, what)


#: Messages of different groups are kept apart by their tags, and from those that programs send (from 0 up): a group's
#: is this and its number.
FIRST_TAG = 16384


def tag_of(group: Group) -> int:
    """The tag of a group's messages."""
    return FIRST_TAG + group.id % (MAX_TAG + 1 - FIRST_TAG)


# ---------------------------------------------------------------------------------------------------------- came
def write(tensor: Tensor, new: np.ndarray, what: str) -> None:
    """Values only: the tensor keeps its history, and everyone who shares its memory sees them."""
    with using(grad=False):
        rebind(tensor, Tensor(np.asarray(new)), what)


def room_for(tensors: list[Tensor], models: Sequence[np.ndarray]) -> None:
    """Fill an empty list with tensors of the right shapes, which are to be overwritten."""
    if not tensors:
        tensors.extend(Tensor(np.zeros(m.shape, m.dtype)) for m in models)


def deliver(tensors: Sequence[Tensor], arrays: Sequence[np.ndarray], what: str) -> None:
    """Write each array into its tensor."""
    for t, a in zip(tensors, arrays, strict=True):
        write(t, a, what)


def flat(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Their elements, one array after the other."""
    return np.concatenate([a.reshape(-1) for a in arrays])


def unflat(array: np.ndarray, models: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What `flat` joined, in the shapes of `models`.

    >>> unflat(np.arange(5), [np.zeros((1, 2)), np.zeros(3)])
    [array([[0, 1]]), array([2, 3, 4])]
    """
    ends = np.cumsum([m.size for m in models])[:-1]
    return [part.reshape(m.shape) for part, m in zip(np.split(array, ends), models, strict=True)]
