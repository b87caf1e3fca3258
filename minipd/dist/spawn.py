"""Ranks for a function: `spawn(train, args=(0.1,), nprocs=2)`.

Like `multiprocessing` with its start method "spawn", each rank imports the main program under another name and then
calls the function there, which must therefore be defined at the top level of a module.  But mpiexec starts the ranks,
so that they find each other (`launch.py`); what they do is in `spawned.py`.
"""

from __future__ import annotations

import atexit
import multiprocessing.process
import multiprocessing.spawn
import pickle
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from minipd import as_paddle
from minipd.dist.launch import Job
from minipd.framework.environment import available_cores, is_started
from minipd.framework.errors import InputError

__all__ = ["MultiprocessContext", "spawn"]

#: Options of Paddle's `spawn` that choose what is not to be chosen here.
IGNORED = ("start_method", "gpus", "xpus", "print_config", "backend", "selected_devices", "started_port", "node_ip",
           "use_paddlecloud")


def spawn(func: Callable[..., Any], args: Iterable[Any] = (), nprocs: int = -1, join: bool = True,
          daemon: bool = False, **options: Any) -> MultiprocessContext:
    """Call `func(*args)` on `nprocs` ranks, each a process.

    Args:
        func: defined at the top level of a module, not inside of a function or at a prompt.
        args: travel pickled.
        nprocs: how many; -1: as many as this process may use cores.
        join: wait for them.
        daemon: when this process ends, end them; else they are waited for.
        options: `start_method="spawn"`; `backend`, `gpus`, `xpus` and the like have no effect.

    Returns: a context whose `join()` waits, and whose `return_queues[rank].get()` is what `func` returned.

    Raises: Exception with the traceback of the rank that failed first, after all have been ended.  InputError for what
    cannot be started, RuntimeError in a rank.  ValueError for an unknown option.
    """
    _check_options(options)
    if getattr(multiprocessing.process.current_process(), "_inheriting", False) or is_started():
        raise RuntimeError("spawn: expected a process that starts ranks, got one that is a rank: if it imports the "
                           "main program, that must call spawn under `if __name__ == '__main__':`")
    ranks = available_cores() if nprocs == -1 else nprocs
    context = MultiprocessContext(func, tuple(args), ranks, daemon)
    if join:
        try:
            while not context.join():
                pass
        except KeyboardInterrupt:                               # the terminal tells this process only
            context.terminate()
            raise
    return context


def _check_options(options: dict[str, Any]) -> None:
    for name, value in options.items():
        if name not in (*IGNORED, "ips", "cluster_node_ips"):
            raise ValueError(f"The config option ({name}) of `paddle.distributed.spawn` is not supported: expected "
                             f"{', '.join((*IGNORED, 'ips'))}")
        if name == "start_method" and value not in (None, "spawn"):
            raise ValueError(f"spawn: expected start_method 'spawn', got {value!r}: ranks find each other through "
                             "mpiexec, which starts them anew")
        if name in ("ips", "cluster_node_ips") and value not in (None, "", "127.0.0.1", "localhost"):
            raise ValueError(f"spawn: expected ranks on this host, got {name}={value!r}; minipd launch --hosts starts "
                             "a script on several")


class RankProcess:
    """One of the ranks that were spawned, as `multiprocessing.Process` shows a process.

    name, exitcode: None while it runs, and its exit status afterwards, -N if signal N killed it.
    """

    def __init__(self, context: MultiprocessContext, rank: int):
        self._context, self.rank, self.name = context, rank, f"Rank-{rank}"
        self.daemon = context.daemon

    @property
    def exitcode(self) -> int | None:
        status = self._context.status
        if status is None:
            return None
        failure = self._context.failure
        if failure is None or failure[0] != self.rank:
            return 0
        return failure[1] if failure[1] <= 128 else 128 - failure[1]

    @property
    def pid(self) -> int | None:
        """The number of its process; None before it has begun."""
        return self._context.note(self.rank, "pid")

    def is_alive(self) -> bool:
        return self._context.poll() is None

    def join(self, timeout: float | None = None) -> None:
        """Wait for all ranks: they end together."""
        self._context.wait(timeout)

    def terminate(self) -> None:
        """End all ranks: none can go on without the others."""
        self._context.terminate()


class ReturnQueue:
    """What a rank's function returned; `get` once, as from a queue."""

    def __init__(self, context: MultiprocessContext, rank: int, what: str):
        self._context, self._rank, self._what = context, rank, what

    def empty(self) -> bool:
        return not self._context.has(self._rank, self._what)

    def get(self) -> Any:
        """Waits until the ranks have ended, or this one has returned.  Raises EOFError if it never did."""
        while self.empty():
            if self._context.poll() is not None and self.empty():
                raise EOFError(f"rank {self._rank} has ended and left no {self._what}")
            time.sleep(0.01)
        return self._context.note(self._rank, self._what)


class MultiprocessContext:
    """Ranks that `spawn` has started.

    processes: one for each rank.  return_queues, error_queues: what a rank returned; the traceback of what it raised.
    """

    def __init__(self, func: Callable[..., Any], args: tuple, ranks: int, daemon: bool):
        self.daemon = daemon
        self.status: int | None = None
        self.failure: tuple[int, int] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="minipd-spawn-")
        self._notes: dict[tuple[int, str], Any] = {}
        try:
            call = pickle.dumps((func, args), pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError("a function at the top level of a module, and arguments, that can be pickled",
                             f"{func!r} ({error})", "define it outside of other functions, in a file") from error
        main = multiprocessing.spawn.get_preparation_data("Rank")
        del main["authkey"]                                     # which may not be written anywhere
        Path(self._folder.name, "call").write_bytes(pickle.dumps(main) + call)
        self._job = Job(ranks, ["-m", "minipd.dist.spawned", self._folder.name], as_paddle=as_paddle.is_installed())
        self.processes = [RankProcess(self, r) for r in range(ranks)]
        self.return_queues = [ReturnQueue(self, r, "result") for r in range(ranks)]
        self.error_queues = [ReturnQueue(self, r, "error") for r in range(ranks)]
        atexit.register(self._at_exit)

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the ranks, at most `timeout` seconds; whether they have all ended well.

        Raises: Exception with the traceback of the rank that failed first, when all have ended.
        """
        if self.wait(timeout) is None:
            return False
        if self.status:
            self._raise()
        return True

    def wait(self, timeout: float | None = None) -> int | None:
        """The job's exit status; None if it has none after `timeout` seconds."""
        if self.status is None:
            try:
                self.status = self._job.wait(timeout)
            except subprocess.TimeoutExpired:
                return None
            self.failure = self._job.failure()
            for rank in range(len(self.processes)):
                for what in ("result", "error", "pid"):         # read before the folder goes
                    self.note(rank, what)
            self._job.__exit__()
            self._folder.cleanup()
            atexit.unregister(self._at_exit)
        return self.status

    def poll(self) -> int | None:
        """The exit status if the ranks have ended, else None."""
        return self.wait(0)

    def terminate(self) -> None:
        """End all ranks."""
        if self.poll() is None:
            self._job.process.terminate()
            self.wait()

    def has(self, rank: int, what: str) -> bool:
        """Whether a rank has left a note."""
        return (rank, what) in self._notes or Path(self._folder.name, f"{what}.{rank}").exists()

    def note(self, rank: int, what: str) -> Any:
        """What a rank has left; None if nothing."""
        if (rank, what) not in self._notes and self.has(rank, what):
            self._notes[rank, what] = pickle.loads(Path(self._folder.name, f"{what}.{rank}").read_bytes())
        return self._notes.get((rank, what))

    def _raise(self) -> None:
        rank, status = self.failure or (None, self.status)
        wrong = self.note(rank, "error") if rank is not None else None
        if wrong is not None:
            line = "-" * 46
            raise Exception(f"\n\n{line}\nProcess {rank} terminated with the following error:\n{line}\n\n{wrong}")
        which = "The ranks were" if rank is None else f"Process {rank}"
        raise Exception(f"{which} terminated with exit code {status}." if status is None or status <= 128 else
                        f"{which} terminated with signal {status - 128}.")

    def _at_exit(self) -> None:
        if self.daemon:
            self.terminate()
        else:
            self.wait()
