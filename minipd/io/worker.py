"""A worker process of a DataLoader: a fresh interpreter, which makes batches when it is told to.

It is started anew and not forked: a fork would take over locks that threads of the parent hold (numba's, the BLAS'),
and wait for them for ever.  The script that started it all is not imported again, as multiprocessing would: what the
dataset needs of it comes along by value.

Messages in:  (pass, number, samples) asks for a batch of these, or for one sample, or with None for the next batch of
              a stream.
Messages out: (pass, number, kind, content), kind being "batch", "end" (of a stream) or "error".
"""

from __future__ import annotations

import itertools
import random
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from minipd.framework.random import seed
from minipd.io import wire

__all__ = ["get_worker_info"]

READY = "ready"


@dataclass
class WorkerInfo:
    """id of num_workers; dataset: this worker's copy of it; seed: of its random numbers."""

    id: int
    num_workers: int
    dataset: Any
    seed: int


@dataclass
class Task:
    """What a worker is for.   batch_size, drop_last: of a stream; a batch_size of None gives samples one by one."""

    info: WorkerInfo
    collate_fn: Callable
    init_fn: Callable | None
    batch_size: int | None
    drop_last: bool


#: in a worker process, what it is
_info: list[WorkerInfo] = []


def get_worker_info() -> WorkerInfo | None:
    """In a worker process of a DataLoader: its id, how many there are, and its dataset; None anywhere else.

    >>> get_worker_info() is None
    True
    """
    return _info[0] if _info else None


def main(descriptor: int) -> None:
    """Serve the parent until it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)        # Ctrl-C reaches the whole group; the parent decides
    connection = Connection(descriptor)
    try:
        _serve(connection)
    except (EOFError, OSError):
        pass                                            # the parent has closed its end, or is no more


def _serve(connection: Connection) -> None:
    try:
        task: Task = wire.receive(connection)
        _begin(task)
    except (EOFError, OSError):
        raise
    except BaseException as error:
        wire.send(connection, (0, READY, "error", _told(error)))
        return
    wire.send(connection, (0, READY, READY, None))
    stream: tuple[int, Iterator[Any]] | None = None
    while True:
        which, number, samples = wire.receive(connection)
        kind: str = "batch"
        try:
            if samples is None:
                if stream is None or stream[0] != which:
                    stream = which, iter(task.info.dataset)
                content, kind = _next(task, stream[1])
            elif isinstance(samples, list):
                content = task.collate_fn([task.info.dataset[i] for i in samples])
            else:
                content = task.collate_fn(task.info.dataset[samples])
        except BaseException as error:
            kind, content = "error", _told(error)
        try:
            wire.send(connection, (which, number, kind, content))
        except (EOFError, OSError):
            raise
        except Exception as error:                      # a batch that cannot be pickled
            wire.send(connection, (which, number, "error", _told(error)))


def _begin(task: Task) -> None:
    info = task.info
    _info[:] = [info]
    random.seed(info.seed)
    np.random.seed(info.seed % 2 ** 32)
    seed(info.seed)
    if task.init_fn is not None:
        task.init_fn(info.id)


def _next(task: Task, stream: Iterator[Any]) -> tuple[Any, str]:
    """(the stream's next batch, "batch"), or (None, "end")."""
    if task.batch_size is None:
        for sample in stream:
            return task.collate_fn(sample), "batch"
        return None, "end"
    samples = list(itertools.islice(stream, task.batch_size))
    if not samples or task.drop_last and len(samples) < task.batch_size:
        return None, "end"
    return task.collate_fn(samples), "batch"


def _told(error: BaseException) -> tuple[str, BaseException | None]:
    """The error as text, with its traceback; and itself, if it can be sent."""
    text = "".join(traceback.format_exception(error))
    import cloudpickle
    try:
        cloudpickle.loads(cloudpickle.dumps(error))
    except Exception:               # whatever the user's own class raises when it is taken apart or put together
        return text, None
    return text, error
