"""Collectives in which every member gives something and gets something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.dist.collective import traced
from minipd.dist.collective.arrays import (
    ReduceOp,
    array_of,
    arrays_of,
    averaged,
    deliver,
    flat,
    like,
    one_dtype,
    reduction,
    room_for,
    rows_of,
    unflat,
    write,
)
from minipd.dist.collective.task import Task, perform, program_has
from minipd.dist.group import Group, entered, existing
from minipd.dist.joining import current_comm
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor

__all__ = ["all_gather", "all_reduce", "alltoall", "alltoall_single", "barrier", "reduce_scatter"]


def all_reduce(tensor: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """The members' tensors, alike in shape and dtype, combined element by element; in place, on every member."""
    g = entered(group, "all_reduce")
    if g is None:
        return None
    if traced.is_traced(tensor):
        return program_has(traced.all_reduce, tensor, op, g)
    x = array_of(tensor, "all_reduce")
    return perform("all_reduce", (x, tuple(g.ranks), reduction(op, x, "all_reduce")),
                   lambda total: write(tensor, averaged(total, op, g), "all_reduce"), [tensor], sync_op)


def all_gather(tensor_list: list[Tensor] | Tensor, tensor: Tensor, group: Group | None = None,
               sync_op: bool = True) -> Task | None:
    """The members' tensors, alike in shape and dtype, on every member.

    tensor_list: an empty list, which gets them; a list of tensors, which are overwritten; or one tensor, in which they
    come to stand one after the other along dimension 0.
    Raises: RuntimeError, unlike other collectives but as in Paddle, on a rank that is none of the group.
    """
    if not (g := existing(group, "all_gather")).is_member():
        raise RuntimeError(f"all_gather: expected a member of the group {g.ranks}; only its members call it")
    g = entered(group, "all_gather") or g
    if traced.is_traced(tensor):
        return program_has(traced.all_gather, tensor_list, tensor, g)
    x = array_of(tensor, "all_gather")
    arguments = x[None], tuple(g.ranks), 0, (1,) * g.nranks
    if isinstance(tensor_list, Tensor):
        whole, shape = tensor_list, rows_of(array_of(tensor_list, "all_gather"), x, g, "all_gather").shape
        return perform("all_gather", arguments, lambda found: write(
            whole, found.reshape(shape[0] * shape[1], *shape[2:]), "all_gather"), [whole, tensor], sync_op)
    room_for(tensor_list, [x] * g.nranks)
    for t in arrays_of(tensor_list, g, "all_gather"):
        like(t, x, "all_gather")
    return perform("all_gather", arguments, lambda found: deliver(tensor_list, found, "all_gather"),
                   [*tensor_list, tensor], sync_op)


def reduce_scatter(tensor: Tensor, tensor_list: list[Tensor] | Tensor, op: int = ReduceOp.SUM,
                   group: Group | None = None, sync_op: bool = True) -> Task | None:
    """`tensor` becomes what the members' contributions for this rank combine to.

    tensor_list: what this rank contributes for each member, tensors like `tensor`; or one tensor, in which they stand
    one after the other along dimension 0.
    """
    g = entered(group, "reduce_scatter")
    if g is None:
        return None
    if traced.is_traced(tensor, tensor_list, *(tensor_list if isinstance(tensor_list, list | tuple) else ())):
        return program_has(traced.reduce_scatter, tensor, tensor_list, op, g)
    x = array_of(tensor, "reduce_scatter")
    if isinstance(tensor_list, Tensor):
        given = rows_of(array_of(tensor_list, "reduce_scatter"), x, g, "reduce_scatter")
        read = [tensor_list]
    else:
        given = np.stack([like(t, x, "reduce_scatter") for t in arrays_of(tensor_list, g, "reduce_scatter")])
        read = list(tensor_list)
    arguments = given, tuple(g.ranks), 0, (1,) * g.nranks, reduction(op, x, "reduce_scatter")
    return perform("reduce_scatter", arguments, lambda mine: write(tensor, averaged(mine[0], op, g), "reduce_scatter"),
                   [tensor, *read], sync_op)


def alltoall(out_tensor_list: list[Tensor] | Tensor, in_tensor_list: list[Tensor] | Tensor, group: Group | None = None,
             sync_op: bool = True) -> Task | None:
    """Tensor i of `in_tensor_list` goes to member i; what the members have for this rank comes into `out_tensor_list`.

    out_tensor_list: an empty list, if what comes is like what goes; else tensors of the right shapes, which are
    overwritten.  Or both are tensors of one shape, of which each member gets an equal part of dimension 0.
    """
    g = entered(group, "alltoall")
    if g is None:
        return None
    if traced.is_traced(in_tensor_list, *(in_tensor_list if isinstance(in_tensor_list, list | tuple) else ())):
        return program_has(traced.alltoall, out_tensor_list, in_tensor_list, g)
    if isinstance(out_tensor_list, Tensor) and isinstance(in_tensor_list, Tensor):
        like(array_of(in_tensor_list, "alltoall"), array_of(out_tensor_list, "alltoall"), "alltoall")
        return _exchange(out_tensor_list, in_tensor_list, None, None, g, sync_op, "alltoall")
    if isinstance(out_tensor_list, Tensor) or isinstance(in_tensor_list, Tensor):
        raise TypeError("alltoall: expected two lists or two tensors, got one of each")
    given = arrays_of(in_tensor_list, g, "alltoall")
    room_for(out_tensor_list, given)
    taken = arrays_of(out_tensor_list, g, "alltoall")
    one_dtype((*given, *taken), "alltoall")
    arguments = (flat(given), tuple(g.ranks), 0, 0, tuple(a.size for a in given), tuple(a.size for a in taken))
    return perform("all_to_all", arguments,
                   lambda found: deliver(out_tensor_list, unflat(found, taken), "alltoall"),
                   [*out_tensor_list, *in_tensor_list], sync_op)


def alltoall_single(out_tensor: Tensor, in_tensor: Tensor, in_split_sizes: Sequence[int] | None = None,
                    out_split_sizes: Sequence[int] | None = None, group: Group | None = None,
                    sync_op: bool = True) -> Task | None:
    """Cut `in_tensor` along dimension 0, give piece i to member i, join what the members give in `out_tensor`.

    in_split_sizes: the extents of the pieces, one for each member, which may be 0; None: all equal.
    out_split_sizes: those of what comes.
    """
    g = entered(group, "alltoall_single")
    if g is None:
        return None
    return _exchange(out_tensor, in_tensor, out_split_sizes, in_split_sizes, g, sync_op, "alltoall_single")


def _exchange(out: Tensor, given: Tensor, out_sizes: Any, in_sizes: Any, g: Group, sync_op: bool, what: str) -> Task:
    x, y = array_of(given, what), array_of(out, what)
    if x.dtype != y.dtype or x.shape[1:] != y.shape[1:]:
        raise ValueError(f"{what}: expected tensors of one dtype that are alike but for dimension 0, got "
                         f"{describe(x)} to send and {describe(y)} to receive in")
    arguments = x, tuple(g.ranks), 0, 0, _sizes(x, in_sizes, g, what), _sizes(y, out_sizes, g, what)
    return perform("all_to_all", arguments, lambda found: write(out, found, what), [out, given], sync_op)


def _sizes(x: np.ndarray, sizes: Sequence[int] | None, g: Group, what: str) -> tuple[int, ...]:
    """The extents of the pieces of x along dimension 0."""
    if not x.ndim or not sizes and x.shape[0] % g.nranks:
        raise ValueError(f"{what}: expected dimension 0 to be divided by {g.nranks} ranks, got {describe(x)}")
    if not sizes:
        return (x.shape[0] // g.nranks,) * g.nranks
    chosen = tuple(int(n) for n in sizes)
    if len(chosen) != g.nranks or min(chosen) < 0 or sum(chosen) != x.shape[0]:
        raise ValueError(f"{what}: expected {g.nranks} sizes that make up the {x.shape[0]} rows of {describe(x)}, got "
                         f"{list(chosen)}")
    return chosen


def barrier(group: Group | None = None) -> None:
    """Return when every member has come here; at once on a rank that is none of the group."""
    g = existing(group, "barrier")
    if g.is_member():
        current_comm().barrier(tuple(g.ranks))
