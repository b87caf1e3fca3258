"""Messages from one rank to another, and batches of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.collective import traced
from minipd.dist.collective.arrays import array_of, like, peer, tag_of, write
from minipd.dist.collective.task import Task, perform, program_has
from minipd.dist.group import Group, entered, existing
from minipd.framework.tensor import Tensor

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def send(tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Give a copy of the tensor to rank `dst`, which calls `recv`.  Never waits: rings of sends do not lock up."""
    g = entered(group, "send")
    if g is None:
        return None
    if traced.is_traced(tensor):
        return program_has(traced.send, tensor, peer(dst, g, "send"), g)
    return perform("send", (array_of(tensor, "send"), peer(dst, g, "send"), tag_of(g)), lambda _: None, [tensor],
                   sync_op)


def recv(tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """The next tensor that rank `src` sent to this rank in this group, in place.

    Raises: ValueError if it has another shape or dtype.
    """
    g = entered(group, "recv")
    if g is None:
        return None
    if traced.is_traced(tensor):
        return program_has(traced.recv, tensor, peer(src, g, "recv"), g)
    x = array_of(tensor, "recv")

    def finish(message: np.ndarray) -> None:
        write(tensor, like(message, x, f"recv from rank {src}"), "recv")
    return perform("recv", (peer(src, g, "recv"), tag_of(g)), finish, [tensor], sync_op)


def isend(tensor: Tensor, dst: int, group: Group | None = None) -> Task | None:
    """`send`; the task is over at once."""
    return send(tensor, dst, group, sync_op=False)


def irecv(tensor: Tensor, src: int | None = None, group: Group | None = None) -> Task | None:
    """Begin to receive: the tensor has its values after the task's `wait`.  src: None is rank 0."""
    return recv(tensor, 0 if src is None else src, group, sync_op=False)


class P2POp:
    """One message of a batch.

    op: `isend` or `irecv`.  tensor: what is sent, or what it is received in.  peer: the other (global) rank.
    """

    def __init__(self, op: Callable[..., Any], tensor: Tensor, peer: int, group: Group | None = None):
        if op not in (isend, irecv):
            raise RuntimeError(f"P2POp: expected paddle.distributed.isend or irecv as op, got {op!r}")
        self.op, self.tensor, self.peer = op, tensor, peer
        self.group = existing(group, "P2POp")


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Task] | None:
    """Begin all of the messages; the tasks of those that are this rank's business.

    The messages between two ranks meet in the order in which they stand in the lists.
    """
    if not isinstance(p2p_op_list, list | tuple) or not p2p_op_list or not all(
            isinstance(p, P2POp) for p in p2p_op_list):
        raise RuntimeError("batch_isend_irecv: expected a list of P2POp, with at least one, got " + repr(p2p_op_list))
    if entered(p2p_op_list[0].group, "batch_isend_irecv") is None:
        return None
    tasks = [p.op(p.tensor, p.peer, p.group) for p in p2p_op_list]
    return [task for task in tasks if task is not None]
