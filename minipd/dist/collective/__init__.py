"""Paddle's collectives on ordinary tensors: every rank has a tensor of its own, and they combine or exchange them.

    x = to_tensor([get_rank() + 1.0])
    all_reduce(x)                               # in place: the sum, on every rank
    task = all_reduce(x, sync_op=False)         # begun; x has its new values after task.wait()

They work below the tape: what is received has no gradient history, and a value that was saved for a gradient and is
then overwritten is found out, as after any in-place write.  All members of a group make the same calls in the same
order.  Ranks in arguments are global ones.

    arrays.py    what is given, checked; what came, written into tensors
    task.py      a call that need not be over when it returns
    everyone.py  all members give and get: all_reduce, all_gather, reduce_scatter, alltoall, barrier
    rooted.py    one member gives or gets all: broadcast, reduce, gather, scatter
    messages.py  one rank gives, another gets: send, recv, and batches of them
    objects.py   the same for objects, which travel pickled
    traced.py    collectives and messages in a program

For tensors that are parts of one global tensor, and for gradients through communication, see `shard_tensor` and
`reshard`.
"""

from minipd.dist.collective.arrays import ReduceOp
from minipd.dist.collective.everyone import (
    all_gather,
    all_reduce,
    alltoall,
    alltoall_single,
    barrier,
    reduce_scatter,
)
from minipd.dist.collective.messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from minipd.dist.collective.objects import (
    all_gather_object,
    broadcast_object_list,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from minipd.dist.collective.rooted import broadcast, gather, reduce, scatter
from minipd.dist.collective.task import Task, wait

__all__ = ["P2POp", "ReduceOp", "Task", "all_gather", "all_gather_object", "all_reduce", "alltoall", "alltoall_single",
           "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "gather", "irecv", "isend", "recv",
           "recv_object_list", "reduce", "reduce_scatter", "scatter", "scatter_object_list", "send",
           "send_object_list", "wait"]
