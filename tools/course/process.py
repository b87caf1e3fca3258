"""A function in a process of its own: bounded in time, its output bounded in size, ended with all that it has started,
also when the process that waits for it is ended itself.

Processes are forked from a server that has loaded what every check needs: loading it takes longer than most checks.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

#: What the server loads; nothing of minipd, which each process loads with its own overlay, but what minipd needs.
PRELOADED = ["tools.course.child", "hypothesis", "numpy", "numpy.random", "ml_dtypes", "safetensors.numpy", "graphviz"]
#: How much of what a process prints is kept, in bytes.
KEPT = 1 << 16
#: So many seconds after its time a process ends itself, if nobody has ended it.
GRACE = 10.0

# `start` and `join` look after all processes that there are: two threads must not do so at once.
_LOCK = threading.Lock()


class Ended(NamedTuple):
    """status: the exit status, negative for a signal; None if the process was stopped because its time was up."""

    status: int | None
    printed: str


def run(function: Callable[..., None], args: tuple, environ: Mapping[str, str], timeout: float) -> Ended:
    """Call function(*args) in another process, with `environ` added to its environment."""
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(PRELOADED)
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_prepared, args=(writer, dict(environ), timeout + GRACE, function, args))
    # The server, if this call starts it, takes over the environment as well, and that Ctrl-C is not for it.
    with _LOCK, _added(environ), _uninterrupted():
        process.start()
    writer.close()
    printed = _Printed(reader)
    try:
        late = not wait([process.sentinel], timeout)
        if late:
            _ask_where(process)
    finally:
        _kill(process)
        with _LOCK:
            process.join()
    return Ended(None if late else process.exitcode, printed.text())


def _prepared(writer: Connection, environ: dict[str, str], seconds: float, function: Callable[..., None],
              args: tuple) -> None:
    """What runs in the process, for so many seconds at most."""
    with contextlib.suppress(AttributeError):       # where there are no sessions, only the process itself is ended
        os.setsid()
    with contextlib.suppress(AttributeError):       # the system ends it, whatever it is at
        signal.setitimer(signal.ITIMER_REAL, seconds)
    threading.Thread(target=_end_with_reader, args=(os.dup(writer.fileno()),), daemon=True).start()
    for stream in (1, 2):
        os.dup2(writer.fileno(), stream)
    os.environ.update(environ)
    function(*args)


def _end_with_reader(pipe: int) -> None:
    """End this process, and those that it has started, when nobody is left who could read the pipe.  The parent process
    is no sign of that: it is the server, and that lives as long as its processes do."""
    if not hasattr(select, "poll"):
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())    # they are for the other thread
    poll = select.poll()
    poll.register(pipe, 0)          # of what poll reports, an error is reported unasked
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll()):
        os.killpg(0, signal.SIGKILL)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C comes afterwards; what is started does not get it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _added(environ: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class _Printed(threading.Thread):
    """Reads what a process prints, keeps the beginning and the end, and throws the rest away: the process must not wait
    for a reader, nor fill the memory."""

    def __init__(self, pipe: Connection):
        super().__init__(daemon=True)
        self.pipe = pipe
        self.kept = bytearray()
        self.start()

    def run(self) -> None:
        while chunk := os.read(self.pipe.fileno(), 1 << 16):
            self.kept += chunk
            if len(self.kept) > 2 * KEPT:
                del self.kept[KEPT // 2:-KEPT // 2]

    def text(self) -> str:
        self.join(5)            # not for ever: a process that got away may hold the pipe open
        return self.kept.decode(errors="replace")


def _ask_where(process: Any) -> None:
    """Ask the process for its stack, which it writes to a file."""
    if hasattr(signal, "SIGUSR1"):
        os.kill(process.pid, signal.SIGUSR1)
        wait([process.sentinel], 0.5)


def _kill(process: Any) -> None:
    """End the process and those that it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, ProcessLookupError, PermissionError):
        process.kill()
