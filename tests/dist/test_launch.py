"""Starting ranks: their environment, their exit status, and Ctrl-C."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from minipd.cli import main as minipd
from minipd.dist import launch
from minipd.framework.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60

#: What a trainer does: note the signal, agree in a collective of the step, write a checkpoint.
STOPS = """
import signal, sys, time
import numpy as np
from minipd.dist.comm.connect import connect
asked = []
signal.signal(signal.SIGINT, lambda *_: asked.append(1))
with connect() as comm:
    everyone = tuple(range(comm.size))
    if comm.rank == 0:
        print("ready", flush=True)
    stop = False
    while not stop:
        time.sleep(0.01)
        stop = bool(comm.all_reduce(np.array(len(asked)), everyone, "max"))
    time.sleep(0.3)
    notes = comm.all_gather_object(len(asked))
    if comm.rank == 0:
        print("checkpoint written", notes, flush=True)
"""

#: Hears of the signal, but waits for a message that never comes.
STUCK = """
import signal
from minipd.dist.comm.connect import connect
signal.signal(signal.SIGINT, lambda *_: None)
with connect() as comm:
    comm.barrier()
    if comm.rank == 0:
        print("ready", flush=True)
    comm.recv(comm.rank)
"""

PLAIN = """
import time
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 0:
    print("ready", flush=True)
time.sleep(60)
"""


class Running:
    """A launcher with two ranks that have said "ready"; whatever happens, it is gone at the end."""

    def __init__(self, path, script):
        path.write_text(script)
        self.process = subprocess.Popen([sys.executable, "-m", "minipd", "launch", "-n", "2", str(path)], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
                                        env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True)

    def __enter__(self):
        assert self.process.stdout.readline() == "ready\n", self.process.communicate(timeout=LIMIT)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=LIMIT)

    def ended(self):
        """(exit status, standard output, standard error)."""
        out, err = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, out, err


@pytest.fixture
def running(tmp_path):
    return lambda script: Running(tmp_path / "script.py", script)


@pytest.mark.mpi
def test_ctrl_c_reaches_every_rank_once_and_leaves_them_time(running):
    with running(STOPS) as job:
        job.process.send_signal(signal.SIGINT)
        status, out, err = job.ended()
    assert (status, out.splitlines()[-1]) == (0, "checkpoint written [1, 1]"), err
    assert "stopping: the ranks finish what they are at; Ctrl-C again kills them" in err


@pytest.mark.mpi
def test_ctrl_c_in_a_terminal_goes_to_the_whole_process_group(running):
    with running(STOPS) as job:
        os.killpg(job.process.pid, signal.SIGINT)
        status, out, err = job.ended()
    assert (status, out.splitlines()[-1]) == (0, "checkpoint written [1, 1]"), err


@pytest.mark.mpi
def test_a_second_ctrl_c_kills(running):
    with running(STUCK) as job:
        job.process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            job.process.wait(timeout=0.5)
        job.process.send_signal(signal.SIGINT)
        status, *_ = job.ended()
    assert status != 0


@pytest.mark.mpi
def test_a_rank_that_does_not_handle_ctrl_c_is_interrupted(running):
    with running(PLAIN) as job:
        job.process.send_signal(signal.SIGINT)
        status, _, err = job.ended()
    assert status == 130
    assert "KeyboardInterrupt" in err


@pytest.mark.mpi
def test_sigterm_ends_ranks_that_do_not_handle_it(running):
    with running(PLAIN) as job:
        job.process.terminate()
        status, *_ = job.ended()
    assert status != 0


@pytest.mark.mpi
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
def test_ranks_do_not_outlive_a_killed_launcher(running):
    with running(PLAIN) as job:
        job.process.kill()
        # The ranks hold the pipe: its end means that they are gone.
        job.ended()


@pytest.mark.mpi
def test_what_the_ranks_find_in_their_environment(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    (tmp_path / "show.py").write_text(
        "import os, sys\n"
        "names = 'MINIPD_RANKS', 'OMP_NUM_THREADS', 'OPENBLAS_THREAD_TIMEOUT', 'MINE'\n"
        "values = [os.environ.get(name) for name in names]\n"
        "sys.stdout.write(f'{values} {sys.argv[1:]} {\"mpi4py\" in sys.modules}\\n')\n")
    assert launch.launch_mpi(2, [str(tmp_path / "show.py"), "--mesh", "dp=2"], {"MINE": "x"}) == 0
    assert capfd.readouterr().out == "['2', '3', '4', 'x'] ['--mesh', 'dp=2'] True\n" * 2


def test_ranks_that_outnumber_the_cores_yield():
    assert launch.environment(4096, terminal=False)["MPIR_CVAR_ENABLE_HEAVY_YIELD"] == "1"


def test_a_terminal_is_told_to_the_ranks(monkeypatch):
    for name in ("TTY_COMPATIBLE", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    assert {"TTY_COMPATIBLE", "COLUMNS", "LINES"} <= launch.environment(2, terminal=True).keys()
    assert "TTY_COMPATIBLE" not in launch.environment(2, terminal=False)


def test_the_environments_own_mpiexec_comes_before_path(tmp_path, monkeypatch):
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):
        folder.mkdir()
        (folder / "mpiexec").write_text("")
        (folder / "mpiexec").chmod(0o755)
    monkeypatch.setenv("PATH", str(other))
    monkeypatch.setattr(launch.sysconfig, "get_path", lambda name: str(own))
    assert launch.find_mpiexec() == str(own / "mpiexec")
    monkeypatch.setattr(launch.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert launch.find_mpiexec() == str(other / "mpiexec")


def test_without_mpi_it_says_what_to_do(monkeypatch, tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text("")
    monkeypatch.setattr(launch, "find_mpiexec", lambda: None)
    assert minipd(["launch", "-n", "2", str(script)]) == 2
    assert capsys.readouterr().err == (
        "minipd: expected mpi4py and mpiexec, to run ranks as processes, got no mpiexec: pip install 'minipd[mpi]' "
        "brings both; or simulate the ranks in one process (--comm sim)\n")
    monkeypatch.setattr(launch, "find_mpiexec", lambda: "mpiexec")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert minipd(["launch", "-n", "2", str(script)]) == 2
    assert "got no mpi4py" in capsys.readouterr().err


def test_requests_that_make_no_sense(tmp_path, capsys):
    assert minipd(["launch", "-n", "2", str(tmp_path / "nothing.py")]) == 2
    assert "nothing.py', which does not exist: give a Python file" in capsys.readouterr().err
    with pytest.raises(InputError, match="expected at least one rank, got 0"):
        launch.launch_mpi(0, ["x.py"])
    with pytest.raises(SystemExit) as exit:
        launch.main(["-n", "2"])
    assert exit.value.code == 2


class Job:
    """Stands for a process."""

    def __init__(self):
        self.signals = []

    def send_signal(self, number):
        self.signals.append(number)


def test_a_signal_before_the_job_is_kept_for_it(capsys):
    job = Job()
    before = signal.getsignal(signal.SIGINT)
    with launch.SignalRelay() as relay:
        os.kill(os.getpid(), signal.SIGINT)
        while not relay._early:
            time.sleep(0.001)
        relay.to(job)
        os.kill(os.getpid(), signal.SIGTERM)
        while len(job.signals) < 2:
            time.sleep(0.001)
    assert job.signals == [signal.SIGINT, signal.SIGTERM]
    assert signal.getsignal(signal.SIGINT) is before


def test_in_a_thread_signals_are_left_alone():
    def work():
        with launch.SignalRelay():
            seen.append(signal.getsignal(signal.SIGINT))
    seen = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_ranks_get_their_own_share_of_the_threads(monkeypatch):
    """`minipd train` prepares its own process for one rank; its four ranks must not inherit that rank's threads."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")                     # the user's own
    monkeypatch.setenv("NUMBA_NUM_THREADS", "64")                       # set for one rank
    monkeypatch.setenv("MINIPD_PREPARED", "NUMBA_NUM_THREADS")
    variables = launch.environment(1000, terminal=False)
    assert variables["NUMBA_NUM_THREADS"] == variables["OMP_NUM_THREADS"] == "1"
    assert variables["OPENBLAS_NUM_THREADS"] == "3" and "MINIPD_PREPARED" not in variables
