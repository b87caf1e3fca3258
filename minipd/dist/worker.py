"""The process of one rank: `python worker.py [--log FOLDER] [--as-paddle] [-m] SCRIPT [ARGUMENTS]`, which mpiexec runs.

It forks.  The child is the rank: it starts MPI, runs the script, and if that raises shows the traceback and ends all
ranks.  The parent only waits for it, because a rank can end without a word: killed by a signal (the system is out of
memory, native code crashed), or by `os._exit`.  The others would wait for it for ever, and what mpiexec says names no
rank.  The parent says which rank it was and what happened, and a few seconds later has mpiexec end the job.

It is run as a file, not as a module: importing minipd before the fork would cost every rank its memory twice.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import os
import runpy
import select
import signal
import sys
import time
import traceback
from typing import Any

#: Seconds that a rank which has raised gets to clean up before it is killed, and that the others then get to find out.
GRACE = 5.0
#: What the rank tells its parent: it came to its end, or it has shown what it raised.
DONE, SHOWN = b"d", b"s"
#: Lines of a rank's log that are shown when it fails.
TAIL = 30

RANK = next((int(os.environ[n]) for n in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK") if n in os.environ), 0)
SIZE = int(os.environ.get("MINIPD_RANKS", os.environ.get("PMI_SIZE", "1")))
#: The job's folder, on the host of the launcher.
JOB = os.environ.get("MINIPD_JOB", "")


# ---------------------------------------------------------------------------------------------------- the parent
def main() -> int:
    """Fork; the child never comes back from here."""
    argv, folder, switches = sys.argv[1:], "", set()
    while argv[0] in ("--log", "--as-paddle", "-m"):
        switches.add(name := argv.pop(0))
        if name == "--log":
            folder = argv.pop(0)
    log = open_log(folder) if folder else None
    told, tell = os.pipe()
    out, write_out = os.pipe() if folder and RANK == 0 else (None, None)
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)           # none may come between fork and what each makes of it
    child = os.fork()
    if child == 0:
        end_with_parent()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        os.close(told)
        if log is not None:
            for stream in (1, 2):
                os.dup2(log if write_out is None else write_out, stream)
        be_rank(tell, argv, "--as-paddle" in switches, "-m" in switches)    # in the end returns like any main program
        return 0
    os.close(tell)
    if write_out is not None:
        os.close(write_out)
    # mpiexec gives a rank's signals to its process group, hence to the child as well; anything else gives them to us
    heard: list[int] = []
    leads = os.getpgid(0) == os.getpid()

    def hear(number: int, _: Any) -> None:
        heard.append(number)
        if not leads:
            os.kill(child, number)
    for number in signals:
        signal.signal(number, hear)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    status, notes = watch(child, told, out, log)
    failed = status if status or DONE in notes else 1
    failed = failed if failed >= 0 else 128 - failed
    if failed:
        note("failure", f"{RANK} {failed}", once=True)          # of the first to fail
        if SHOWN not in notes and -status not in heard:
            say(text := f"minipd: {how_it_ended(status)}; the job ends")
            if log is not None:
                write_all(log, (text + "\n").encode())
        if folder and RANK:
            show_tail(folder)
    note(f"ended.{RANK}", "")
    if failed:
        end_job(failed)
    os._exit(failed)


def watch(child: int, told: int, out: int | None, log: int | None) -> tuple[int, bytes]:
    """Wait for the child; (its exit status, the negative number of a signal if one killed it; what it told)."""
    open_ends = {told} if out is None else {told, out}
    notes, deadline, ended = b"", None, None
    while True:
        # The end of what it tells is its own end, unless a process that it has forked holds the other side open.
        patience = 0 if ended is not None else 0.5 if told in open_ends else 0.01
        ready, _, _ = select.select(list(open_ends), [], [], patience)
        for end in ready:
            data = os.read(end, 65536)
            if not data:
                open_ends.discard(end)
            elif end == told:
                notes += data
                if SHOWN in data:
                    deadline = time.monotonic() + GRACE
            else:
                write_all(1, data)
                write_all(log, data)
        if ended is not None and not ready:
            return ended, notes
        if ended is None:
            pid, how = os.waitpid(child, os.WNOHANG)
            if pid:
                ended = os.waitstatus_to_exitcode(how)
            elif deadline is not None and time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)


def how_it_ended(status: int) -> str:
    """What is known of a rank that has failed without a word."""
    who = f"rank {RANK} of {SIZE}"
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"{who} was killed by {signal.Signals(-status).name} (signal {-status})"
        return f"{who} was killed by signal {-status}"
    if status:
        return f"{who} ended with exit status {status}"
    return f"{who} ended in the middle, with exit status 0: it called os._exit, or replaced itself by another program"


def note(name: str, text: str, once: bool = False) -> None:
    """Leave a note in the job's folder, if this host has it."""
    if JOB:
        with contextlib.suppress(OSError):
            end = os.open(os.path.join(JOB, name), os.O_CREAT | os.O_WRONLY | (os.O_EXCL if once else 0), 0o600)
            os.write(end, text.encode())
            os.close(end)


def end_job(status: int) -> None:
    """Have mpiexec end all ranks, and take this for the job's exit status.

    Not at once: ranks that wait for this one find out in a few seconds that it is gone, and each shows an error that
    says in what it waited.
    """
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline and not all_ended():
        time.sleep(0.02)
    with contextlib.suppress(OSError, ValueError):              # what MPICH's MPI_Abort tells mpiexec
        os.write(int(os.environ.get("PMI_FD", "")), f"cmd=abort exitcode={status}\n".encode())
        time.sleep(2)                                           # it kills this process, too; if not, what follows does


def all_ended() -> bool:
    """Whether every rank has, as far as this host can see."""
    with contextlib.suppress(OSError):
        return len([name for name in os.listdir(JOB) if name.startswith("ended")]) == SIZE
    return False


def say(text: str) -> None:
    """One write, which no other rank's words come in between of."""
    write_all(2, (text + "\n").encode())


def write_all(end: Any, data: bytes) -> None:
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(end, data):]


# ----------------------------------------------------------------------------------------------------------- logs
def open_log(folder: str) -> int:
    """The rank's file, `workerlog.N`, as Paddle's launcher names it.  It is added to."""
    os.makedirs(folder, exist_ok=True)
    how = os.O_TRUNC if os.environ.get("MINIPD_LOG_OVERWRITE") == "1" else os.O_APPEND
    return os.open(log_path(folder), os.O_CREAT | os.O_WRONLY | how, 0o644)


def log_path(folder: str) -> str:
    return os.path.join(folder, f"workerlog.{RANK}")


def show_tail(folder: str) -> None:
    """The end of this rank's log, which nobody has seen on the screen."""
    with contextlib.suppress(OSError):
        with open(log_path(folder), errors="replace") as file:
            lines = file.read().splitlines()[-TAIL:]
        say("\n".join([f"minipd: the end of {log_path(folder)}:", *("  " + line for line in lines)]))


# ------------------------------------------------------------------------------------------------------- the rank
class Ending:
    """How this rank ends.  Its `last` is the last thing that Python calls: what the script registers for the end has
    run by then, and MPI, which would wait for the other ranks, has not."""

    def __init__(self, tell: int):
        self.tell, self.status = tell, 0
        atexit.register(self.last)                              # the first registered is the last called

    def last(self) -> None:
        if not self.status:
            os.write(self.tell, DONE)
            return
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(self.status)

    def fail(self, error: BaseException, status: int, text: str) -> None:
        """Show what went wrong, and end this process with a status; the parent then ends all ranks."""
        sys.stdout.flush()
        say(text)
        os.write(self.tell, SHOWN)
        sys.last_value = error                                  # so that nothing at the end waits for other ranks
        self.status = status & 0xFF or 1                        # sys.exit(256) is a failure, too


def end_with_parent() -> None:
    """If the parent is killed outright, so is the rank (Linux)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def be_rank(tell: int, argv: list[str], as_paddle: bool, module: bool) -> None:
    """Run the script as this rank."""
    ending = Ending(tell)
    tell_paddles_way()
    del sys.path[0]                                             # the folder of this file
    try:
        from mpi4py import MPI
        if as_paddle:
            from minipd.as_paddle import install_as_paddle
            install_as_paddle()
        sys.argv = argv
        # mpiexec puts a pipe in the way, into which Python would write some thousand characters at a time, and lines
        # of different ranks would mix
        sys.stdout.reconfigure(line_buffering=True)             # type: ignore[union-attr]
        if module:
            sys.path.insert(0, os.getcwd())
            run = functools.partial(runpy.run_module, argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(argv[0])))
            run = functools.partial(runpy.run_path, argv[0], run_name="__main__")
        try:
            run()
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
        meet_at_the_end(MPI)
    except SystemExit as end:
        text = f"minipd: rank {RANK} of {SIZE} called sys.exit({end.code!r}); the job ends"
        ending.fail(end, end.code if isinstance(end.code, int) else 1, text)
    except BaseException as error:
        ending.fail(error, 130 if isinstance(error, KeyboardInterrupt) else 1, shown(error))


def shown(error: BaseException) -> str:
    """The traceback, from the script on, and whose it is."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace))
    return f"{text}minipd: rank {RANK} of {SIZE} raised {type(error).__name__}; the job ends"


def meet_at_the_end(MPI: Any) -> None:
    """Wait for the others, and hear of messages that were never received.  A rank that has never needed the others
    joins them now: one that waits for it must learn that it ends."""
    joining = sys.modules.get("minipd.dist.joining")
    if joining is not None and SIZE > 1 and not MPI.Is_finalized():
        joining.leave_ranks()


def tell_paddles_way() -> None:
    """The variables by which a script written for Paddle's launcher knows its rank; and that this process is a rank."""
    environ = os.environ
    local = int(environ.get("MPI_LOCALRANKID", environ.get("OMPI_COMM_WORLD_LOCAL_RANK", RANK)))
    local_size = environ.get("MPI_LOCALNRANKS", environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", str(SIZE)))
    hosts = environ.get("MINIPD_HOSTS", "127.0.0.1").split(",")
    port, each = int(environ.get("MINIPD_START_PORT", "6070")), -(-SIZE // len(hosts))
    endpoints = [f"{hosts[r // each]}:{port + r % each}" for r in range(SIZE)]
    environ |= {
        "MINIPD_RANK_PROCESS": str(os.getpid()), "PADDLE_TRAINER_ID": str(RANK), "PADDLE_TRAINERS_NUM": str(SIZE),
        "PADDLE_GLOBAL_RANK": str(RANK), "PADDLE_GLOBAL_SIZE": str(SIZE), "PADDLE_LOCAL_RANK": str(local),
        "PADDLE_RANK_IN_NODE": str(local), "PADDLE_LOCAL_SIZE": local_size, "PADDLE_NNODES": str(len(hosts)),
        "PADDLE_CURRENT_ENDPOINT": endpoints[RANK], "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints)}
    devices = environ.get("MINIPD_DEVICES")
    if devices:
        environ["FLAGS_selected_gpus"] = devices.split(",")[local]


if __name__ == "__main__":
    main()
