"""Paddle's collectives on ordinary tensors: every rank has a tensor of its own, and they combine or exchange them.

    init_parallel_env()
    x = to_tensor([get_rank() + 1.0])
    all_reduce(x)                           # in place: the sum, on every rank

They work below the tape: what is received has no gradient history, and a value that was saved for a gradient and is
then overwritten is found out, as after any in-place write.  All members of a group make the same calls in the same
order.  Every call is complete when it returns, also with `sync_op=False`; its `Task` has nothing left to wait for.

For tensors that are parts of one global tensor, and for gradients through communication, see `shard_tensor` and
`reshard`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.dist.comm.base import Communicator
from minipd.dist.group import Group, entered
from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.meta import describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.framework.views import rebind

__all__ = ["ReduceOp", "all_gather", "all_gather_object", "all_reduce", "alltoall", "barrier", "broadcast", "recv",
           "reduce_scatter", "send"]


class ReduceOp:
    """How values are combined (Paddle's numbers)."""

    SUM, MAX, MIN, PROD, AVG = range(5)


_NAMES = {ReduceOp.SUM: "sum", ReduceOp.MAX: "max", ReduceOp.MIN: "min", ReduceOp.PROD: "prod", ReduceOp.AVG: "avg"}


class Task:
    """What a call returns; it is complete."""

    def wait(self, timeout: float | None = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


def _comm() -> Any:
    """This rank's communicator; a single process talks to itself."""
    return current().comm or Communicator(0, 1)


def _array(tensor: Any, what: str) -> np.ndarray:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{what}: expected a Tensor, got {tensor!r}")
    if not isinstance(tensor.payload, np.ndarray):
        raise TypeError(f"{what}: expected an ordinary tensor with values, got {tensor.payload!r}; a distributed "
                        "tensor changes its placements with reshard")
    return tensor.payload


def _arrays(tensors: Any, group: Group, what: str) -> list[np.ndarray]:
    if not isinstance(tensors, list | tuple) or len(tensors) != group.nranks:
        raise ValueError(f"{what}: expected a list of {group.nranks} tensors, one for each rank of the group, got "
                         f"{len(tensors) if isinstance(tensors, list | tuple) else tensors!r}")
    return [_array(t, what) for t in tensors]


def _like(array: np.ndarray, model: np.ndarray, what: str) -> np.ndarray:
    if array.shape != model.shape or array.dtype != model.dtype:
        raise ValueError(f"{what}: expected {describe(model)}, got {describe(array)}")
    return array


def _rows(array: np.ndarray, model: np.ndarray, group: Group, what: str) -> np.ndarray:
    """A tensor that is `group.nranks` tensors like `model`, one after the other along dimension 0."""
    if not model.ndim or array.shape != (model.shape[0] * group.nranks, *model.shape[1:]) or array.dtype != model.dtype:
        raise ValueError(f"{what}: expected {group.nranks} times {describe(model)} along dimension 0, got "
                         f"{describe(array)}")
    return array.reshape(group.nranks, *model.shape)


def _member(rank: int, group: Group, what: str) -> int:
    if rank not in group.ranks:
        raise ValueError(f"{what}: expected a rank of the group, {group.ranks}, got {rank}")
    return rank


def _peer(rank: int, group: Group, what: str) -> int:
    if rank == current().rank:
        raise ValueError(f"{what}: expected another rank, got {rank}, which is this one")
    return _member(rank, group, what)


def _write(tensor: Tensor, new: np.ndarray, what: str) -> None:
    """Values only: the tensor keeps its history, and everyone who shares its memory sees them."""
    with using(grad=False):
        rebind(tensor, Tensor(np.asarray(new)), what)


def _reduction(op: int, array: np.ndarray, what: str) -> str:
    if op not in _NAMES:
        raise ValueError(f"{what}: expected ReduceOp.SUM, MAX, MIN, PROD or AVG, got {op!r}")
    if op == ReduceOp.AVG and array.dtype not in dtypes.INEXACT:
        raise TypeError(f"{what}: expected floats for ReduceOp.AVG, got {describe(array)}; use SUM and divide")
    return "sum" if op == ReduceOp.AVG else _NAMES[op]


def _averaged(array: np.ndarray, op: int, group: Group) -> np.ndarray:
    return array / array.dtype.type(group.nranks) if op == ReduceOp.AVG else array


# --------------------------------------------------------------------------------------------- collectives
def all_reduce(tensor: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """The members' tensors, alike in shape and dtype, combined element by element; in place, on every member."""
    g = entered(group, "all_reduce")
    if g is None:
        return None
    x = _array(tensor, "all_reduce")
    total = _comm().all_reduce(x, tuple(g.ranks), _reduction(op, x, "all_reduce"))
    _write(tensor, _averaged(total, op, g), "all_reduce")
    return Task()


def all_gather(tensor_list: list[Tensor] | Tensor, tensor: Tensor, group: Group | None = None,
               sync_op: bool = True) -> Task | None:
    """The members' tensors, alike in shape and dtype, on every member.

    tensor_list: an empty list, which gets them; a list of tensors, which are overwritten; or one tensor, in which they
    come to stand one after the other along dimension 0.
    """
    g = entered(group, "all_gather")
    if g is None:
        return None
    x = _array(tensor, "all_gather")
    if isinstance(tensor_list, Tensor):
        _rows(_array(tensor_list, "all_gather"), x, g, "all_gather")
    elif tensor_list:
        for t in _arrays(tensor_list, g, "all_gather"):
            _like(t, x, "all_gather")
    found = _comm().all_gather(x[None], tuple(g.ranks), 0, (1,) * g.nranks)
    if isinstance(tensor_list, Tensor):
        _write(tensor_list, found.reshape(tensor_list.payload.shape), "all_gather")
    else:
        _deliver(tensor_list, [np.array(row) for row in found], "all_gather")
    return Task()


def _deliver(tensors: list[Tensor], arrays: list[np.ndarray], what: str) -> None:
    """Into the tensors of a list, or into an empty list."""
    if not tensors:
        tensors.extend(map(Tensor, arrays))
    else:
        for t, a in zip(tensors, arrays, strict=True):
            _write(t, a, what)


def broadcast(tensor: Tensor, src: int, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """The tensor of (global) rank `src`, in place, on every member.  All have the same shape and dtype."""
    g = entered(group, "broadcast")
    if g is None:
        return None
    x = _comm().broadcast(_array(tensor, "broadcast"), _member(src, g, "broadcast"), tuple(g.ranks))
    _write(tensor, x, "broadcast")
    return Task()


def reduce_scatter(tensor: Tensor, tensor_list: list[Tensor] | Tensor, op: int = ReduceOp.SUM,
                   group: Group | None = None, sync_op: bool = True) -> Task | None:
    """`tensor` becomes what the members' contributions for this rank combine to.

    tensor_list: what this rank contributes for each member, tensors like `tensor`; or one tensor, in which they stand
    one after the other along dimension 0.
    """
    g = entered(group, "reduce_scatter")
    if g is None:
        return None
    x = _array(tensor, "reduce_scatter")
    if isinstance(tensor_list, Tensor):
        given = _rows(_array(tensor_list, "reduce_scatter"), x, g, "reduce_scatter")
    else:
        given = np.stack([_like(t, x, "reduce_scatter") for t in _arrays(tensor_list, g, "reduce_scatter")])
    mine = _comm().reduce_scatter(given, tuple(g.ranks), 0, (1,) * g.nranks, _reduction(op, x, "reduce_scatter"))
    _write(tensor, _averaged(mine[0], op, g), "reduce_scatter")
    return Task()


def alltoall(out_tensor_list: list[Tensor] | Tensor, in_tensor_list: list[Tensor] | Tensor, group: Group | None = None,
             sync_op: bool = True) -> Task | None:
    """Tensor i of `in_tensor_list` goes to member i; what the members have for this rank comes into `out_tensor_list`.

    out_tensor_list: an empty list, if what comes is like what goes; else tensors of the right shapes, which are
    overwritten.  Or both are tensors of one shape, of which each member gets an equal part of dimension 0.
    """
    g = entered(group, "alltoall")
    if g is None:
        return None
    if isinstance(out_tensor_list, Tensor) and isinstance(in_tensor_list, Tensor):
        x = _like(_array(in_tensor_list, "alltoall"), _array(out_tensor_list, "alltoall"), "alltoall")
        if not x.ndim or x.shape[0] % g.nranks:
            raise ValueError(f"alltoall: expected dimension 0 to be divided by {g.nranks} ranks, got {describe(x)}")
        sizes = (x.shape[0] // g.nranks,) * g.nranks
        _write(out_tensor_list, _comm().all_to_all(x, tuple(g.ranks), 0, 0, sizes, sizes), "alltoall")
        return Task()
    if isinstance(out_tensor_list, Tensor) or isinstance(in_tensor_list, Tensor):
        raise TypeError("alltoall: expected two lists or two tensors, got one of each")
    given = _arrays(in_tensor_list, g, "alltoall")
    taken = _arrays(out_tensor_list, g, "alltoall") if out_tensor_list else given
    if len({a.dtype for a in (*given, *taken)}) > 1:
        raise ValueError(f"alltoall: expected tensors of one dtype, got {[describe(a) for a in (*given, *taken)]}")
    found = _comm().all_to_all(np.concatenate([a.reshape(-1) for a in given]), tuple(g.ranks), 0, 0,
                               tuple(a.size for a in given), tuple(a.size for a in taken))
    ends = np.cumsum([a.size for a in taken])[:-1]
    _deliver(out_tensor_list, [part.reshape(a.shape).copy() for part, a in zip(np.split(found, ends), taken,
                                                                              strict=True)], "alltoall")
    return Task()


def send(tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Give a copy of the tensor to (global) rank `dst`, which calls `recv`.  Never waits."""
    g = entered(group, "send")
    if g is None:
        return None
    _comm().send(_array(tensor, "send"), _peer(dst, g, "send"))
    return Task()


def recv(tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """The next tensor that (global) rank `src` sent to this rank, in place.

    Raises: ValueError if it has another shape or dtype.
    """
    g = entered(group, "recv")
    if g is None:
        return None
    x = _array(tensor, "recv")
    _write(tensor, _like(_comm().recv(_peer(src, g, "recv")), x, f"recv from rank {src}"), "recv")
    return Task()


def barrier(group: Group | None = None) -> None:
    """Return when every member has come here."""
    g = entered(group, "barrier")
    if g is not None:
        _comm().barrier(tuple(g.ranks))


def all_gather_object(object_list: list[Any], obj: Any, group: Group | None = None) -> None:
    """Each member's object, which travels pickled, into `object_list`; what it held before is gone."""
    g = entered(group, "all_gather_object")
    if g is not None:
        object_list[:] = _comm().all_gather_object(obj, tuple(g.ranks))
