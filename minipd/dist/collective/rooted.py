"""Collectives with a root: one member gives what all get, or gets what all give.

But for `broadcast` they are exchanges in which most members have nothing for most others, so no byte travels in vain,
and ranks that disagree are found out as in any collective.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from minipd.dist.collective import traced
from minipd.dist.collective.arrays import (
    ReduceOp,
    array_of,
    arrays_of,
    averaged,
    deliver,
    like,
    member,
    reduction,
    room_for,
    rows_of,
    write,
)
from minipd.dist.collective.task import Task, perform, program_has
from minipd.dist.group import Group, entered
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor

__all__ = ["broadcast", "gather", "reduce", "scatter"]


def broadcast(tensor: Tensor, src: int, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """The tensor of rank `src`, in place, on every member.  All have the same shape and dtype."""
    g = entered(group, "broadcast")
    if g is None:
        return None
    if traced.is_traced(tensor):
        return program_has(traced.broadcast, tensor, member(src, g, "broadcast"), g)
    arguments = array_of(tensor, "broadcast"), member(src, g, "broadcast"), tuple(g.ranks)
    return perform("broadcast", arguments, lambda x: write(tensor, x, "broadcast"), [tensor], sync_op)


def reduce(tensor: Tensor, dst: int, op: int = ReduceOp.SUM, group: Group | None = None,
           sync_op: bool = True) -> Task | None:
    """The members' tensors, alike in shape and dtype, combined; in place, on rank `dst`.  Others keep theirs."""
    g = entered(group, "reduce")
    if g is None:
        return None
    x = array_of(tensor, "reduce")
    sizes = _only(g, member(dst, g, "reduce"), 1)       # the whole tensor is the chunk of dst, the others' are empty

    def finish(mine: np.ndarray) -> None:
        if current().rank == dst:
            write(tensor, averaged(mine[0], op, g), "reduce")
    return perform("reduce_scatter", (x[None], tuple(g.ranks), 0, sizes, reduction(op, x, "reduce")), finish, [tensor],
                   sync_op)


def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int = 0, group: Group | None = None,
           sync_op: bool = True) -> Task | None:
    """The members' tensors, alike in shape and dtype, on rank `dst`.

    gather_list: on `dst`, an empty list, which gets them, or a list of tensors, which are overwritten; elsewhere None.
    """
    g = entered(group, "gather")
    if g is None:
        return None
    x, root = array_of(tensor, "gather"), member(dst, g, "gather")
    at_root = current().rank == root
    into: list[Tensor] = []
    if at_root:
        if gather_list is None:
            raise ValueError(f"gather: expected a gather_list on rank {dst}, which gets the tensors, got None")
        room_for(into := gather_list, [x] * g.nranks)
        for t in arrays_of(into, g, "gather"):
            like(t, x, "gather")
    elif gather_list:
        warnings.warn("Specific `gather_list` is meaningless for rank which is not dst.", stacklevel=2)
    arguments = x[None], tuple(g.ranks), 0, 0, _only(g, root, 1), (int(at_root),) * g.nranks
    return perform("all_to_all", arguments, lambda found: deliver(into, found, "gather"), [tensor, *into], sync_op)


def scatter(tensor: Tensor, tensor_list: Sequence[Tensor] | Tensor | None = None, src: int = 0,
            group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Rank `src` gives each member its tensor, which is written into `tensor`.

    tensor_list: on `src`, a list of tensors like `tensor`, one for each member; or one tensor, in which they stand one
    after the other along dimension 0.  Elsewhere None.
    """
    g = entered(group, "scatter")
    if g is None:
        return None
    x, root = array_of(tensor, "scatter"), member(src, g, "scatter")
    at_root = current().rank == root
    given = np.empty((0, *x.shape), x.dtype)
    if at_root:
        if isinstance(tensor_list, Tensor):
            given = rows_of(array_of(tensor_list, "scatter"), x, g, "scatter")
        else:
            given = np.stack([like(t, x, "scatter") for t in arrays_of(tensor_list, g, "scatter")])
    elif tensor_list is not None and (isinstance(tensor_list, Tensor) or len(tensor_list)):
        warnings.warn("Specific `tensor_or_tensor_list` is meaningless for rank which is not src.", stacklevel=2)
    arguments = given, tuple(g.ranks), 0, 0, (int(at_root),) * g.nranks, _only(g, root, 1)
    return perform("all_to_all", arguments, lambda mine: write(tensor, mine[0], "scatter"), [tensor], sync_op)


def _only(group: Group, rank: int, size: int) -> tuple[int, ...]:
    """`size` for one member, 0 for the others."""
    return tuple(size if r == rank else 0 for r in group.ranks)
