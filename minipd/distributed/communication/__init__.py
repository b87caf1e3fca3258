"""`paddle.distributed.communication`: the collectives, and `stream`, the same with one switch more."""

from minipd.dist.collective import (
    P2POp,
    ReduceOp,
    all_gather,
    all_gather_object,
    all_reduce,
    alltoall,
    alltoall_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    broadcast_object_list,
    gather,
    irecv,
    isend,
    recv,
    recv_object_list,
    reduce,
    reduce_scatter,
    scatter,
    scatter_object_list,
    send,
    send_object_list,
    wait,
)
from minipd.dist.group import destroy_process_group, get_backend, get_group, is_initialized
from minipd.distributed.communication import group, stream

__all__ = [
    "P2POp", "ReduceOp", "all_gather", "all_gather_object", "all_reduce", "alltoall", "alltoall_single", "barrier",
    "batch_isend_irecv", "broadcast", "broadcast_object_list", "destroy_process_group", "gather", "get_backend",
    "get_group", "group", "irecv", "is_initialized", "isend", "recv", "recv_object_list", "reduce", "reduce_scatter",
    "scatter", "scatter_object_list", "send", "send_object_list", "stream", "wait",
]
