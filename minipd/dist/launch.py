"""Start a script on several ranks: `minipd launch -n 4 script.py arguments...`.

Each rank is a process that mpiexec starts, on this host or on several; it runs the script in `worker.py`, which sees to
it that a rank that raises or dies ends all of them within seconds and says which it was.  In the script, whatever
needs the other ranks finds them (`joining.current_comm`).  `python -m minipd.distributed.launch` is the same with
Paddle's options.

Ctrl-C.  The launcher passes SIGINT on to mpiexec, and mpiexec to every rank, once.  A rank that does nothing about it
gets a KeyboardInterrupt, which ends the job (status 130).  A rank that wants to finish its step and write a checkpoint
installs a handler that only notes the signal; since the ranks hear of it at different times, they must then agree in a
collective to stop.  Nobody is killed meanwhile, however long it takes.  A second Ctrl-C makes mpiexec kill the ranks.
(mpiexec is in a process group of its own: otherwise a terminal would send it a second SIGINT, besides ours.)  SIGTERM
is passed on likewise, and kills ranks that do not handle it.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from minipd.dist import worker
from minipd.dist.hosts import Host, host_arguments, hosts_in_file, hosts_in_text
from minipd.framework.environment import missing, of_the_user, rank_environment
from minipd.framework.errors import InputError

__all__ = ["launch_mpi"]

#: How to get what is missing.
INSTALL = "pip install 'minipd[mpi]' brings both; or simulate the ranks in one process (--comm sim)"


def main(argv: Sequence[str] | None = None) -> int:
    """The command `minipd launch`; returns the job's exit status, which is that of the rank that failed first."""
    parser = argparse.ArgumentParser(
        prog="minipd launch", usage="minipd launch -n RANKS [OPTIONS] SCRIPT [ARGUMENTS]\n"
        "       minipd launch -n RANKS [OPTIONS] -m MODULE [ARGUMENTS]", description="Run a script on several ranks.",
        epilog="Ctrl-C asks the ranks to stop, a second one kills them.  `python -m minipd.distributed.launch` takes "
               "the options of Paddle's launcher.")
    parser.add_argument("-n", "--ranks", type=int, required=True, help="how many ranks")
    parser.add_argument("--hosts", help="where they run: NAME or NAME:RANKS, separated by commas; mpiexec reaches them "
                        "by ssh, and finds the same Python and files there")
    parser.add_argument("--hostfile", help="a file with such a host in each line")
    parser.add_argument("--log-dir", help="write what rank N prints into workerlog.N in this folder; the screen shows "
                        "rank 0")
    parser.add_argument("--as-paddle", action="store_true", help="in the script, `import paddle` means minipd")
    parser.add_argument("--check", action="store_true",
                        help="compare the ranks' collectives before each, to see mismatches at once (slow)")
    parser.add_argument("-m", "--module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="SCRIPT ...", help="the script and its arguments")
    options = parser.parse_args(argv)
    if not options.command:
        parser.error("which script?")
    if options.hosts and options.hostfile:
        parser.error("either --hosts or --hostfile")
    hosts = hosts_in_file(options.hostfile) if options.hostfile else hosts_in_text(options.hosts or "")
    return launch_mpi(options.ranks, script_command(options.command, options.module),
                      {"MINIPD_COMM_CHECK": "1"} if options.check else None, hosts=hosts, log_dir=options.log_dir,
                      as_paddle=options.as_paddle)


def script_command(command: Sequence[str], module: bool) -> list[str]:
    """What follows `python`: a script that exists, or -m and a module; and the arguments."""
    if not module and not os.path.exists(command[0]):
        raise InputError("a script to run", f"{command[0]!r}, which does not exist", "give a Python file")
    return ["-m", *command] if module else list(command)


def launch_mpi(ranks: int, command: Sequence[str], env: Mapping[str, str] | None = None, *, hosts: Sequence[Host] = (),
               log_dir: str | None = None, as_paddle: bool = False, **popen: Any) -> int:
    """Run `python command...` as `ranks` MPI processes and wait for them.

    Args:
        ranks: how many.
        command: what follows `python`: a script, or "-m" and a module, and their arguments.
        env: variables for the ranks, beyond this process's own and what `rank_environment` says.
        hosts: where they run; this host if there are none.
        log_dir: a folder for what they print.
        as_paddle: whether `import paddle` means minipd in the script.
        popen: more for `subprocess.Popen`, such as `stdout` or `cwd`.

    Returns: the exit status: 0, or that of the rank that failed first; 128 + the number of the signal that killed it,
    or mpiexec, or with which the user had the ranks killed.

    Raises: InputError if mpi4py or mpiexec is missing, `ranks` is no positive number, or the hosts have no room.
    """
    with SignalRelay() as relay, Job(ranks, command, env, hosts=hosts, log_dir=log_dir, as_paddle=as_paddle,
                                     **popen) as job:
        relay.to(job.process)
        status = job.wait()
    # mpiexec that is told a second time kills the ranks, and may end with 0 all the same
    return status or (128 + signal.SIGINT if relay.interrupts > 1 else 0)


class Job:
    """Ranks that run; see `launch_mpi`.  `process` is mpiexec.  Use it in a `with` statement."""

    def __init__(self, ranks: int, command: Sequence[str], env: Mapping[str, str] | None = None, *,
                 hosts: Sequence[Host] = (), log_dir: str | None = None, as_paddle: bool = False, **popen: Any):
        if ranks < 1:
            raise InputError("at least one rank", str(ranks), "give a positive number")
        mpiexec = find_mpiexec()
        if mpiexec is None or importlib.util.find_spec("mpi4py") is None:
            raise InputError("mpi4py and mpiexec, to run ranks as processes",
                             "no mpiexec" if mpiexec is None else "no mpi4py", INSTALL)
        where = host_arguments(mpiexec, hosts, ranks)
        options = [*(["--log", os.path.abspath(log_dir)] if log_dir else []), *(["--as-paddle"] if as_paddle else [])]
        self._folder = tempfile.TemporaryDirectory(prefix="minipd-job-")
        self._failure = Path(self._folder.name, "failure")      # written by the first rank to fail
        told = {"MINIPD_JOB": self._folder.name, **(env or {})}
        if hosts:
            told["MINIPD_HOSTS"] = ",".join(host.name for host in hosts)
        if log_dir:
            told["PADDLE_LOG_DIR"] = os.path.abspath(log_dir)
        start = [mpiexec, *where, "-n", str(ranks), sys.executable, worker.__file__, *options, *command]
        self.process = subprocess.Popen(start, env=environment(ranks, told), stdin=subprocess.DEVNULL, process_group=0,
                                        preexec_fn=_end_with_parent(), **popen)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, as soon as there is one; TimeoutExpired after `timeout` seconds."""
        status, failure = self.process.wait(timeout), self.failure()
        return failure[1] if failure else status if status >= 0 else 128 - status

    def failure(self) -> tuple[int, int] | None:
        """The rank that failed first, and its exit status.  (Of ranks on other hosts this is not known.)"""
        text = self._failure.read_text().split() if self._failure.exists() else []
        return (int(text[0]), int(text[1])) if len(text) == 2 else None


def find_mpiexec() -> str | None:
    """The mpiexec of this Python environment, which fits its mpi4py; else the first on PATH."""
    for folder in (sysconfig.get_path("scripts"), os.path.dirname(sys.executable), None):
        if (found := shutil.which("mpiexec", path=folder)) is not None:
            return found
    return None


def environment(ranks: int, env: Mapping[str, str] | None = None, terminal: bool | None = None) -> dict[str, str]:
    """The variables of each rank: this process's own, what `rank_environment` adds to them, and `env` over all.

    `terminal`: whether what the ranks print is seen on a terminal (default: look).  mpiexec puts a pipe in between, so
    they could not know; rich reads these names.

    >>> environment(2, {"COLOUR": "blue"}, terminal=False)["COLOUR"]
    'blue'
    """
    variables = rank_environment(ranks)
    variables["PYTHONFAULTHANDLER"] = "1"       # a crash in native code shows where
    if sys.stdout.isatty() if terminal is None else terminal:
        size = shutil.get_terminal_size()
        variables |= {"TTY_COMPATIBLE": "1", "COLUMNS": str(size.columns), "LINES": str(size.lines)}
    own = of_the_user()
    return {**own, **missing(variables, own), "MINIPD_RANKS": str(ranks), **(env or {})}


class SignalRelay:
    """While it is entered, SIGINT and SIGTERM do not end this process; they go to a job, once there is one.

    In a thread other than the main one, where Python gets no signals, it does nothing.
    """

    def __init__(self) -> None:
        self._job: subprocess.Popen | None = None
        self._early: list[int] = []
        self.interrupts = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> SignalRelay:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def to(self, job: subprocess.Popen) -> None:
        """Relay to this job, also what came before it."""
        self._job = job
        for number in self._early:
            self._handle(number, None)

    def _handle(self, number: int, _: Any) -> None:
        if self._job is None:
            self._early.append(number)
            return
        self.interrupts += number == signal.SIGINT
        if number == signal.SIGINT and self.interrupts == 1:
            print("\nstopping: the ranks finish what they are at; Ctrl-C again kills them", file=sys.stderr, flush=True)
        self._job.send_signal(number)


def _end_with_parent() -> Callable[[], None] | None:
    """What mpiexec runs before it begins: if the launcher is killed outright, mpiexec gets SIGTERM and ends the ranks.

    Only Linux has this; elsewhere None.
    """
    if sys.platform != "linux":
        return None
    pr_set_pdeathsig, libc = 1, ctypes.CDLL(None)       # loaded here: little is safe between fork and exec
    return lambda: libc.prctl(pr_set_pdeathsig, signal.SIGTERM)
