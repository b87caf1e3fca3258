"""The worker processes of a DataLoader, seen from the process that trains.

Batch k is the business of worker k % n, and each answers in the order in which it was asked: so batches come in the
same order however fast the workers are.  Every wait ends: by an answer, by the death of the worker (its end of the
socket closes with it), or by the time limit.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from minipd.io import wire
from minipd.io.worker import Task, WorkerInfo

__all__: list[str] = []

#: what a worker runs: modules are looked for where this process does, and `paddle` means what it means here
PROGRAM = """
import sys
sys.path[:] = {path!r}
import minipd
if {as_paddle}:
    minipd.install_as_paddle()
from minipd.io.worker import main
main({descriptor})
"""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class WorkerError(RuntimeError):
    """A worker process has failed; where its error could be sent, it is the cause."""


class Worker:
    """One process and the socket to it."""

    def __init__(self, task: Task):
        self.id, ours, theirs = task.info.id, *socket.socketpair()
        program = PROGRAM.format(path=sys.path, descriptor=theirs.fileno(),
                                 as_paddle=sys.modules.get("paddle") is sys.modules["minipd"])
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program], stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                env={**dict.fromkeys(ONE_THREAD, "1"), **os.environ})
        self.connection = Connection(ours.detach())

    def receive(self, timeout: float) -> Any:
        """Its next answer.

        Raises: WorkerError if it has died, or does not answer within `timeout` seconds (0: there is no limit).
        """
        try:
            if timeout and not self.connection.poll(timeout):
                raise WorkerError(f"DataLoader: expected a batch from worker {self.id} (process {self.process.pid}) "
                                  f"within {timeout:g} s, got none; load less in one batch, use more workers, or set "
                                  "another timeout")
            return wire.receive(self.connection)
        except (EOFError, OSError) as e:
            raise self.death() from e

    def death(self) -> WorkerError:
        """How the process ended, as an error."""
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            code = None
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"exited with status {code}"
        more = "; that is what the system does when memory runs out" if code == -9 else ""
        return WorkerError(f"DataLoader: worker {self.id} (process {self.process.pid}) {how}{more}.  What it has "
                           "written before stands above; num_workers=0 loads in this process, where a debugger can "
                           "look")


def _close(workers: list[Worker]) -> None:
    for worker in workers:
        worker.connection.close()               # it reads that as the end
    for worker in workers:
        try:
            worker.process.wait(1)
        except subprocess.TimeoutExpired:       # in the middle of something of the user's
            worker.process.kill()
            worker.process.wait()


class Workers:
    """Processes that are started once, and serve one pass over the dataset after the other."""

    def __init__(self, tasks: list[Task], prefetch: int, timeout: float):
        self.prefetch, self.timeout, self.passes = prefetch, timeout, 0
        self.workers: list[Worker] = []
        self.close = weakref.finalize(self, _close, self.workers)
        try:
            for task in tasks:
                self.workers.append(Worker(task))
            for worker, task in zip(self.workers, tasks, strict=True):
                try:
                    wire.send(worker.connection, task)
                except OSError as e:
                    raise worker.death() from e
                except Exception as e:
                    raise TypeError(f"DataLoader: expected a dataset, collate_fn and worker_init_fn that can be sent "
                                    f"to worker processes, got an error of pickle: {e}; num_workers=0 needs no "
                                    "pickling") from e
            for worker in self.workers:
                _, _, kind, content = worker.receive(0)
                if kind == "error":
                    raise _raised(worker, "when it started", content)
        except BaseException:
            self.close()
            raise

    def run(self, batches: Iterable[Any] | None) -> Iterator[Any]:
        """One pass: what `collate_fn` makes of each of the batches, in order.

        batches: lists of sample numbers; None for streams, of which each worker has its own.
        """
        self.passes += 1
        which, asked = self.passes, iter(batches) if batches is not None else itertools.repeat(None)
        waiting: deque[tuple[Worker, int]] = deque()
        turn = itertools.cycle(self.workers)
        ended: set[int] = set()
        number = itertools.count()

        def ask() -> bool:
            """Give the next worker its next task."""
            if len(ended) == len(self.workers):
                return False
            try:
                samples = next(asked)
            except StopIteration:
                return False
            worker = next(w for w in turn if w.id not in ended)
            n = next(number)
            try:
                wire.send(worker.connection, (which, n, samples))
            except OSError as e:
                raise worker.death() from e
            waiting.append((worker, n))
            return True

        for _ in range(self.prefetch * len(self.workers)):
            if not ask():
                break
        while waiting:
            worker, n = waiting.popleft()
            got, answered, kind, content = worker.receive(self.timeout)
            while got != which:                         # of a pass that nobody has taken to its end
                got, answered, kind, content = worker.receive(self.timeout)
            assert answered == n, "a worker answers in order"
            if kind == "error":
                raise _raised(worker, f"with batch {n}", content)
            if kind == "end":
                ended.add(worker.id)
            ask()
            if kind == "batch":
                yield content


def _raised(worker: Worker, when: str, content: tuple[str, BaseException | None]) -> WorkerError:
    text, error = content
    failure = WorkerError(f"DataLoader: worker {worker.id} (process {worker.process.pid}) failed {when}:\n\n{text}")
    failure.__cause__ = error
    return failure


def tasks(dataset: Any, n: int, first_seed: int, **settings: Any) -> list[Task]:
    """What n workers are to do."""
    return [Task(WorkerInfo(i, n, dataset, first_seed + i), **settings) for i in range(n)]


