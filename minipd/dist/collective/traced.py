"""Collectives in a program: inside of `to_static`, or in static mode, they are operators that it will run.

They write values without a gradient history only: these operators have no gradient rule.  (Communication that gradients
go through is `reshard`.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.dist.collective.arrays import ReduceOp, reduction, tag_of
from minipd.dist.group import Group
from minipd.dist.rows import AllGather, AllReduce, AllToAll, Broadcast, P2PRecv, P2PSend, ReduceScatter
from minipd.framework.context import using
from minipd.framework.meta import describe
from minipd.framework.rank import dispatch
from minipd.framework.tensor import Tensor
from minipd.framework.views import rebind
from minipd.ir.value import Value
from minipd.ops.joining import concat, stack
from minipd.ops.stacking import unstack

__all__: list[str] = []


def is_traced(*tensors: Any) -> bool:
    """Whether one of these is a value of a program that is being written."""
    return any(isinstance(t, Tensor) and isinstance(t.payload, Value) for t in tensors)


def _call(row: Any, operands: Sequence[Tensor], **attributes: Any) -> Any:
    return dispatch(row, operands, attributes)


def _write(tensor: Tensor, out: Tensor, what: str) -> None:
    if tuple(out.payload.shape) != tuple(tensor.payload.shape) or out.payload.dtype != tensor.payload.dtype:
        raise ValueError(f"{what}: expected {describe(tensor.payload)} to write in, got {describe(out.payload)}")
    rebind(tensor, out, what)


def _no_grad(function: Callable[..., None]) -> Callable[..., None]:
    def silent(*arguments: Any) -> None:
        with using(grad=False):
            function(*arguments)
    return silent


def _averaged(out: Tensor, op: int, g: Group) -> Tensor:
    return out / g.nranks if op == ReduceOp.AVG else out


@_no_grad
def all_reduce(tensor: Tensor, op: int, g: Group) -> None:
    out = _call(AllReduce, [tensor], group=tuple(g.ranks), op=reduction(op, tensor.payload, "all_reduce"))
    _write(tensor, _averaged(out, op, g), "all_reduce")


@_no_grad
def broadcast(tensor: Tensor, root: int, g: Group) -> None:
    _write(tensor, _call(Broadcast, [tensor], root=root, group=tuple(g.ranks)), "broadcast")


@_no_grad
def all_gather(into: list[Tensor] | Tensor, tensor: Tensor, g: Group) -> None:
    found = _call(AllGather, [stack([tensor])], group=tuple(g.ranks), axis=0, sizes=(1,) * g.nranks)
    if isinstance(into, Tensor):
        _write(into, found.flatten(0, 1), "all_gather")
    else:
        into[:] = unstack(found)


@_no_grad
def reduce_scatter(tensor: Tensor, given: Sequence[Tensor] | Tensor, op: int, g: Group) -> None:
    x = concat([given] if isinstance(given, Tensor) else list(given), axis=0)
    sizes = (_each(x, g, "reduce_scatter"),) * g.nranks
    out = _call(ReduceScatter, [x], group=tuple(g.ranks), index=g.rank, axis=0, sizes=sizes,
                op=reduction(op, x.payload, "reduce_scatter"))
    _write(tensor, _averaged(out, op, g), "reduce_scatter")


@_no_grad
def alltoall(out: list[Tensor] | Tensor, given: Sequence[Tensor] | Tensor, g: Group) -> None:
    x = given if isinstance(given, Tensor) else stack(list(given))
    sizes = (_each(x, g, "alltoall"),) * g.nranks
    found = _call(AllToAll, [x], group=tuple(g.ranks), index=g.rank, split_axis=0, concat_axis=0, split_sizes=sizes,
                  concat_sizes=sizes)
    if isinstance(out, Tensor):
        _write(out, found, "alltoall")
    else:
        out[:] = unstack(found)


def _each(x: Tensor, g: Group, what: str) -> int:
    """The rows of x for each member."""
    rows = x.payload.shape[0] if x.payload.shape else None
    if not isinstance(rows, int) or rows % g.nranks:
        raise ValueError(f"{what}: expected dimension 0 to be divided by {g.nranks} ranks, got {describe(x.payload)}")
    return rows // g.nranks


@_no_grad
def send(tensor: Tensor, dst: int, g: Group) -> None:
    _call(P2PSend, [tensor], dst=dst, tag=tag_of(g))


@_no_grad
def recv(tensor: Tensor, src: int, g: Group) -> None:
    meta = tensor.payload
    _write(tensor, _call(P2PRecv, [], src=src, shape=tuple(meta.shape), dtype=meta.dtype, tag=tag_of(g)), "recv")
