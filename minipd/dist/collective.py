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

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.dist.comm.base import Communicator
from minipd.dist.comm.mpi import connect
from minipd.dist.interpreter import Dist
from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.meta import describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.framework.views import rebind

__all__ = ["Group", "ReduceOp", "all_gather", "all_gather_object", "all_reduce", "alltoall", "barrier", "broadcast",
           "destroy_process_group", "get_group", "get_rank", "get_world_size", "init_parallel_env", "is_initialized",
           "new_group", "recv", "reduce_scatter", "send"]


class ReduceOp:
    """How values are combined (Paddle's numbers)."""

    SUM, MAX, MIN, PROD, AVG = range(5)


_NAMES = {ReduceOp.SUM: "sum", ReduceOp.MAX: "max", ReduceOp.MIN: "min", ReduceOp.PROD: "prod", ReduceOp.AVG: "avg"}


class Group:
    """Ranks that communicate with each other.

    ranks: global ranks, in the order in which results stand.  rank: this rank's number among them, -1 if it is none of
    them.  id: its number among the groups of this rank; 0 is the group of all ranks.
    """

    def __init__(self, rank_in_group: int, id: int, ranks: list[int], name: str | None = None):
        self.rank, self.id, self.ranks, self.name = rank_in_group, id, ranks, name

    @property
    def nranks(self) -> int:
        return len(self.ranks)

    @property
    def world_size(self) -> int:
        """How many ranks there are; -1 on a rank that is none of them."""
        return self.nranks if self.is_member() else -1

    def is_member(self) -> bool:
        """Whether this rank belongs to the group."""
        return self.rank >= 0

    def get_group_rank(self, rank: int) -> int:
        """The number in the group of a global rank; -1 if it, or this rank, is none of the group."""
        return self.ranks.index(rank) if self.is_member() and rank in self.ranks else -1

    def __repr__(self) -> str:
        return (f"rank: {self.rank}, nranks: {self.nranks}, id: {self.id}, ranks: "
                f"{', '.join(map(str, self.ranks))}; name: {self.name}")


class Task:
    """What a call returns; it is complete."""

    def wait(self, timeout: float | None = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


# ------------------------------------------------------------------------------------------------ environment
def init_parallel_env(nccl_config: Any = None) -> Group:
    """Join the other ranks; returns the group of all of them.

    A process that `minipd launch` (or `mpiexec ... python -m mpi4py`) started becomes its rank; any other is rank 0 of
    1; a simulated rank is what it is.  Everything else of the process's context, its seed for instance, stays.
    Raises: InputError if there is no MPI to be had although ranks were started.

    >>> init_parallel_env()
    rank: 0, nranks: 1, id: 0, ranks: 0; name: _default_pg
    >>> destroy_process_group()
    """
    ctx = current()
    if not ctx.groups:
        if ctx.comm is None and ("MINIPD_RANKS" in os.environ or "mpi4py" in sys.modules):
            _become(ctx, connect())
        ctx.groups[0] = Group(ctx.rank, 0, list(range(ctx.world_size)), "_default_pg")
    return ctx.groups[0]


def _become(ctx: Any, comm: Any) -> None:
    """The context of a process is that of a rank from now on."""
    ctx.rank, ctx.world_size, ctx.comm = comm.rank, comm.size, comm
    if ctx.middle is not None:
        ctx.middle = Dist(comm.rank)
        ctx.compose()


def is_initialized() -> bool:
    """Whether `init_parallel_env` has been called."""
    return bool(current().groups)


def new_group(ranks: Sequence[int] | None = None, backend: str | None = None, timeout: Any = None,
              nccl_comm_init_option: int = 0, nccl_config: Any = None) -> Group:
    """A group of some ranks (None: of all).  Every rank calls it, also those that are not in the group.

    Raises: ValueError for ranks that are not different numbers of ranks that were started.
    """
    ctx = current()
    everyone = _group(None, "new_group").ranks
    chosen = everyone if ranks is None else [int(r) for r in ranks]
    if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(everyone):
        raise ValueError(f"new_group: expected different ranks of 0 to {len(everyone) - 1}, got {list(chosen)}")
    number = max(ctx.groups) + 1
    at = chosen.index(ctx.rank) if ctx.rank in chosen else -1
    ctx.groups[number] = Group(at, number, list(chosen), f"_default_pg{number}")
    return ctx.groups[number]


def get_group(id: int = 0) -> Group | None:
    """The group with this number; None, with a warning, if there is none."""
    found = current().groups.get(id)
    if found is None:
        warnings.warn(f"Group {id} is not initialized.", stacklevel=2)
    return found


def destroy_process_group(group: Group | None = None) -> None:
    """Forget a group.  Without one, all of them, after waiting for the other ranks: the end of what `init_parallel_env`
    began.

    Raises: CommError if a message to this rank was never received.
    """
    ctx = current()
    given = _group(group, "destroy_process_group")
    if given.id:
        del ctx.groups[given.id]
        return
    ctx.groups.clear()
    close = getattr(ctx.comm, "close", None)
    if close is not None:
        close()


def get_rank(group: Group | None = None) -> int:
    """The number of this rank, from 0; with a group, among its members (-1 if it is none)."""
    return current().rank if group is None else group.rank


def get_world_size(group: Group | None = None) -> int:
    """How many ranks there are; with a group, how many members (-1 on a rank that is none)."""
    return current().world_size if group is None else group.world_size


# ----------------------------------------------------------------------------------------------- arguments
def _group(group: Group | None, what: str) -> Group:
    groups = current().groups
    if not groups:
        raise RuntimeError(f"{what}: expected ranks that know each other; call init_parallel_env() first")
    found = groups.get(0 if group is None else group.id)
    if found is None or group is not None and found is not group:
        raise ValueError(f"{what}: expected a group that exists, got {group}, which was destroyed")
    return found


def _enter(group: Group | None, what: str) -> Group | None:
    """The group, on its members; elsewhere None, with a warning, as in Paddle."""
    found = _group(group, what)
    if found.is_member():
        return found
    warnings.warn(f"{what}: rank {current().rank} is not in the group of the ranks {found.ranks}, so it does nothing",
                  stacklevel=3)
    return None


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
    if op == ReduceOp.AVG and array.dtype not in dtypes.FLOATS:
        raise TypeError(f"{what}: expected floats for ReduceOp.AVG, got {describe(array)}; use SUM and divide")
    return "sum" if op == ReduceOp.AVG else _NAMES[op]


def _averaged(array: np.ndarray, op: int, group: Group) -> np.ndarray:
    return array / array.dtype.type(group.nranks) if op == ReduceOp.AVG else array


# --------------------------------------------------------------------------------------------- collectives
def all_reduce(tensor: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """The members' tensors, alike in shape and dtype, combined element by element; in place, on every member."""
    g = _enter(group, "all_reduce")
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
    g = _enter(group, "all_gather")
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
    g = _enter(group, "broadcast")
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
    g = _enter(group, "reduce_scatter")
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
    g = _enter(group, "alltoall")
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
    g = _enter(group, "send")
    if g is None:
        return None
    _comm().send(_array(tensor, "send"), _peer(dst, g, "send"))
    return Task()


def recv(tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """The next tensor that (global) rank `src` sent to this rank, in place.

    Raises: ValueError if it has another shape or dtype.
    """
    g = _enter(group, "recv")
    if g is None:
        return None
    x = _array(tensor, "recv")
    _write(tensor, _like(_comm().recv(_peer(src, g, "recv")), x, f"recv from rank {src}"), "recv")
    return Task()


def barrier(group: Group | None = None) -> None:
    """Return when every member has come here."""
    g = _enter(group, "barrier")
    if g is not None:
        _comm().barrier(tuple(g.ranks))


def all_gather_object(object_list: list[Any], obj: Any, group: Group | None = None) -> None:
    """Each member's object, which travels pickled, into `object_list`; what it held before is gone."""
    g = _enter(group, "all_gather_object")
    if g is not None:
        object_list[:] = _comm().all_gather_object(obj, tuple(g.ranks))
