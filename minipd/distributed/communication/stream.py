"""`paddle.distributed.communication.stream`: the collectives with `use_calc_stream`.

On a GPU it says on which stream they run: with it, they take their turn among the computations, and nobody waits for
them.  On a CPU a call that is over when it returns (`sync_op=True`) is both, so the switch changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.dist import collective
from minipd.dist.collective import ReduceOp, Task
from minipd.dist.group import Group
from minipd.framework.tensor import Tensor

__all__ = ["all_gather", "all_reduce", "alltoall", "alltoall_single", "broadcast", "gather", "recv", "reduce",
           "reduce_scatter", "scatter", "send"]


def _checked(function: Callable[..., Any], sync_op: bool, use_calc_stream: bool) -> Callable[..., Any]:
    if use_calc_stream and not sync_op:
        raise RuntimeError(f"stream.{function.__name__}: use_calc_stream can only be true in sync op behavior, got "
                           "sync_op=False")
    return function


def all_reduce(tensor: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True,
               use_calc_stream: bool = False) -> Task | None:
    """See `paddle.distributed.all_reduce`."""
    return _checked(collective.all_reduce, sync_op, use_calc_stream)(tensor, op, group, sync_op)


def all_gather(tensor_or_tensor_list: Tensor | list[Tensor], tensor: Tensor, group: Group | None = None,
               sync_op: bool = True, use_calc_stream: bool = False) -> Task | None:
    """See `paddle.distributed.all_gather`."""
    return _checked(collective.all_gather, sync_op, use_calc_stream)(tensor_or_tensor_list, tensor, group, sync_op)


def alltoall(out_tensor_or_tensor_list: Tensor | list[Tensor], in_tensor_or_tensor_list: Tensor | list[Tensor],
             group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False) -> Task | None:
    """See `paddle.distributed.alltoall`."""
    return _checked(collective.alltoall, sync_op, use_calc_stream)(out_tensor_or_tensor_list, in_tensor_or_tensor_list,
                                                                   group, sync_op)


def alltoall_single(out_tensor: Tensor, in_tensor: Tensor, out_split_sizes: Sequence[int] | None = None,
                    in_split_sizes: Sequence[int] | None = None, group: Group | None = None, sync_op: bool = True,
                    use_calc_stream: bool = False) -> Task | None:
    """See `paddle.distributed.alltoall_single`; here, as in Paddle, the sizes of what comes stand first."""
    return _checked(collective.alltoall_single, sync_op, use_calc_stream)(out_tensor, in_tensor, in_split_sizes,
                                                                          out_split_sizes, group, sync_op)


def broadcast(tensor: Tensor, src: int, group: Group | None = None, sync_op: bool = True,
              use_calc_stream: bool = False) -> Task | None:
    """See `paddle.distributed.broadcast`."""
    return _checked(collective.broadcast, sync_op, use_calc_stream)(tensor, src, group, sync_op)


def reduce(tensor: Tensor, dst: int = 0, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True,
           use_calc_stream: bool = False) -> Task | None:
    """See `paddle.distributed.reduce`."""
    return _checked(collective.reduce, sync_op, use_calc_stream)(tensor, dst, op, group, sync_op)


def reduce_scatter(tensor: Tensor, tensor_or_tensor_list: Tensor | list[Tensor], op: int = ReduceOp.SUM,
                   group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False) -> Task | None:
    """See `paddle.distributed.reduce_scatter`."""
    return _checked(collective.reduce_scatter, sync_op, use_calc_stream)(tensor, tensor_or_tensor_list, op, group,
                                                                         sync_op)


def scatter(tensor: Tensor, tensor_or_tensor_list: Tensor | Sequence[Tensor] | None = None, src: int = 0,
            group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False) -> Task | None:
    """See `paddle.distributed.scatter`."""
    return _checked(collective.scatter, sync_op, use_calc_stream)(tensor, tensor_or_tensor_list, src, group, sync_op)


def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int = 0, group: Group | None = None,
           sync_op: bool = True, use_calc_stream: bool = False) -> Task | None:
    """See `paddle.distributed.gather`."""
    return _checked(collective.gather, sync_op, use_calc_stream)(tensor, gather_list, dst, group, sync_op)


def send(tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True,
         use_calc_stream: bool = False) -> Task | None:
    """See `paddle.distributed.send`."""
    return _checked(collective.send, sync_op, use_calc_stream)(tensor, dst, group, sync_op)


def recv(tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True,
         use_calc_stream: bool = False) -> Task | None:
    """See `paddle.distributed.recv`."""
    return _checked(collective.recv, sync_op, use_calc_stream)(tensor, src, group, sync_op)
