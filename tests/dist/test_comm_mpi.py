"""Ranks as MPI processes: the same answers as simulated ranks, and a clear end when they do not fit together."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from minipd.dist.comm.sim import World
from minipd.dist.launch import environment, find_mpiexec
from tests.dist import collective_checks

pytest.importorskip("mpi4py")
if find_mpiexec() is None:
    pytest.skip("no mpiexec", allow_module_level=True)
pytestmark = pytest.mark.mpi

ROOT = Path(__file__).resolve().parents[2]
#: Every script ends by itself in a second or two; this is for one that hangs.
LIMIT = 60

START = """
import sys
import numpy as np
from minipd.dist.comm.mpi import connect
X = np.ones(3)
with connect() as comm:
"""


def launch(ranks, *command, env=None, check=False):
    """`minipd launch` on a script; returns the finished process."""
    flags = ["--check"] if check else []
    return subprocess.run([sys.executable, "-m", "minipd", "launch", "-n", str(ranks), *flags, *map(str, command)],
                          capture_output=True, text=True, timeout=LIMIT, cwd=ROOT,
                          env=environment(ranks, {"PYTHONPATH": str(ROOT), **(env or {})}))


@pytest.fixture
def run_script(tmp_path):
    """Run lines of code on ranks: `comm` is their communicator, X an array."""
    def run(ranks, body, **options):
        path = tmp_path / "script.py"
        path.write_text(START + "".join(f"    {line}\n" for line in body.splitlines()))
        return launch(ranks, path, **options)
    return run


@pytest.mark.parametrize("ranks, check", [(1, False), (2, False), (3, False), (4, False), (3, True)])
def test_every_method_gives_the_bits_of_simulated_ranks(tmp_path, ranks, check):
    done = launch(ranks, collective_checks.__file__, tmp_path / "out", check=check)
    assert done.returncode == 0, done.stderr
    assert ast.literal_eval((tmp_path / "out").read_text()) == World(ranks).run(collective_checks.check_all)


def test_a_rank_that_raises_ends_the_job_with_its_traceback(run_script):
    done = run_script(4, "if comm.rank == 2:\n    raise ValueError('boom')\ncomm.barrier()\ncomm.recv(2)")
    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr and "ValueError: boom" in done.stderr
    assert 'script.py", line 8' in done.stderr


def test_the_exit_status_is_that_of_the_rank_that_failed(run_script):
    assert run_script(2, "if comm.rank == 1:\n    sys.exit(7)\ncomm.barrier()").returncode == 7


@pytest.mark.parametrize("body, text", [
    ("comm.all_reduce(np.ones(3 + comm.rank), (0, 1))", "in all_reduce(f64["),
    ("comm.all_reduce(np.ones(3, 'f4' if comm.rank else 'i4'), (0, 1))", "bytes of another call"),
    ("comm.all_reduce(X, (0, 1), 'max' if comm.rank else 'sum')", "bytes of another call"),
    ("comm.all_to_all(X, (0, 1), 0, 0, (1, 2) if comm.rank == 0 else (2, 1), (1, 1))", "in all_to_all(f64[?]"),
    ("comm.all_reduce(X, (0, 1)) if comm.rank else comm.reduce_scatter(np.ones(6), (0, 1), 0, (3, 3))", "another call"),
])
def test_a_mismatch_is_noticed(run_script, body, text):
    done = run_script(2, body)
    assert done.returncode == 1
    assert "MismatchError: rank " in done.stderr and text in done.stderr
    assert "The members made different calls; with MINIPD_COMM_CHECK=1 you see them" in done.stderr


def test_the_check_shows_both_calls(run_script):
    done = run_script(2, "comm.barrier()\ncomm.all_reduce(X, (0, 1)) if comm.rank else comm.barrier()", check=True)
    assert done.returncode == 1
    assert "MismatchError: the members of a group must make the same calls in the same order:" in done.stderr
    assert "  rank 0 called barrier#1() of the group (0, 1), at script.py:8 in <module>" in done.stderr
    assert "  rank 1 called all_reduce#1(f64[3], op=sum) of the group (0, 1), at script.py:8 in <module>" in done.stderr
    assert "They differ in kind: barrier and all_reduce." in done.stderr


def test_the_check_sees_different_groups(run_script):
    done = run_script(3, "comm.all_reduce(X, (0, 1) if comm.rank == 0 else (0, 1, 2))", check=True)
    assert done.returncode == 1
    assert "They differ in group: (0, 1) and (0, 1, 2)." in done.stderr


@pytest.mark.parametrize("other, what", [
    ("pass", "barrier#0() of the group (0, 1)"),        # it waits in the barrier at the end
    ("comm.recv(0, tag=4)", "recv(src=0, tag=4)"),
])
def test_the_check_gives_up_waiting(run_script, other, what):
    body = f"if comm.rank == 0:\n    comm.recv(1)\nelse:\n    {other}"
    done = run_script(2, body, check=True, env={"MINIPD_COMM_TIMEOUT": "0.5"})
    assert done.returncode == 1
    # Whichever gives up first ends the job.
    assert ("rank 0 has waited 0.5 s for rank 1 in recv(src=1, tag=0), at script.py:" in done.stderr
            or f"rank 1 has waited 0.5 s for rank 0 in {what}" in done.stderr)


def test_what_ranks_print_appears_line_by_line(run_script):
    done = run_script(3, "for i in range(50):\n    print('rank', comm.rank, 'line', i)")
    assert sorted(done.stdout.splitlines()) == sorted(f"rank {r} line {i}" for r in range(3) for i in range(50))


def test_a_message_that_nobody_receives(run_script):
    done = run_script(2, "if comm.rank == 0:\n    comm.send(X, 1, tag=3)")
    assert done.returncode == 1
    assert "all ranks have ended, but rank 1 never received a message from rank 0, tag 3" in done.stderr


def test_mpiexec_and_mpi4py_of_different_libraries():
    # As if mpiexec, told to start two, had started two worlds of one.
    done = subprocess.run([sys.executable, "-c", "from minipd.dist.comm.mpi import connect; connect()"],
                          capture_output=True, text=True, timeout=LIMIT, cwd=ROOT, env=environment(2))
    assert done.returncode == 1
    assert "InputError: expected 2 ranks, as mpiexec was told, got a world of 1: mpiexec must come from the MPI that " \
           "mpi4py uses, which is" in done.stderr


def test_a_script_started_alone_is_a_world_of_one(tmp_path):
    done = subprocess.run([sys.executable, collective_checks.__file__, tmp_path / "out"], capture_output=True,
                          text=True, timeout=LIMIT, cwd=ROOT, env=environment(1, {"PYTHONPATH": str(ROOT)}))
    assert done.returncode == 0, done.stderr
