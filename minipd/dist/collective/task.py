"""A call that need not be over when it returns: what `sync_op=False` is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.dist.comm.request import Finished, Request
from minipd.dist.group import existing
from minipd.dist.joining import current_comm
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor

__all__ = ["Task", "wait"]


class Task:
    """A collective or a message on its way.  The tensors it writes have their new values once it has been waited for;
    until then, neither they nor the tensors it reads may be changed.

    A rank that ends, or calls `destroy_process_group`, waits for those that were forgotten.
    """

    # Invariant: a task is in the rank's `tasks` exactly until its results have been written.

    def __init__(self, request: Request, finish: Callable[[Any], None], tensors: Sequence[Tensor], sync_op: bool):
        self._request, self._finish, self._sync = request, finish, sync_op
        self.tensors = tuple(tensors)
        self._written = False
        current().tasks.append(self)

    def wait(self, timeout: Any = None) -> bool:
        """Return True when the tensors have their values.

        timeout: without effect; ranks that do not come are found out by the communicator.
        Raises: what the call would have raised with `sync_op=True`.
        """
        if not self._written:
            self._written = True                        # also if it fails: nobody waits for it again
            current().tasks.remove(self)
            self._finish(self._request.wait())
        return True

    def synchronize(self) -> None:
        """`wait`, as Paddle also calls it."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether the tensors have their values.  Never waits; asking helps the communication along."""
        if not self._written and self._request.done():
            self.wait()
        return self._written

    def is_sync(self) -> bool:
        """Whether it was over when the call returned because that was asked for."""
        return self._sync


def perform(kind: str, arguments: tuple, finish: Callable[[Any], None], tensors: Sequence[Tensor],
            sync_op: bool) -> Task:
    """Call, or start, a method of the communicator; `finish` writes its result into the tensors."""
    comm = current_comm()
    if not sync_op:
        return Task(comm.start(kind, *arguments), finish, tensors, False)
    task = Task(Finished(getattr(comm, kind)(*arguments)), finish, tensors, True)
    task.wait()
    return task


def program_has(write: Callable[..., None], *arguments: Any) -> Task:
    """Let `write` put a collective into the program that is being written; it is over when the program has run it."""
    write(*arguments)
    task = Task(Finished(None), lambda _: None, (), True)
    task.wait()
    return task


def wait(tensor: Tensor, group: Any = None, use_calc_stream: bool = True) -> None:
    """Wait for what was begun with `sync_op=False` and reads or writes this tensor.

    use_calc_stream: Paddle waits for one or the other stream of a GPU; here both are waited for.
    """
    if group is None or existing(group, "wait").is_member():
        for task in [t for t in current().tasks if any(x is tensor for x in t.tensors)]:
            task.wait()
