"""Ranks as MPI processes: the same answers as simulated ranks, and a clear end when they do not fit together."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from minipd.dist.comm.errors import MismatchError
from minipd.dist.comm.sim import World
from minipd.dist.launch import environment, find_mpiexec
from tests.dist import collective_checks, mismatches

pytestmark = pytest.mark.mpi

ROOT = Path(__file__).resolve().parents[2]
#: Every script ends by itself in a second or two; this is for one that hangs.
LIMIT = 60

START = """
import sys
import numpy as np
from minipd.dist.comm.connect import connect
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
    done = launch(ranks, collective_checks.__file__, tmp_path / "out", check=check,
                  env={"MINIPD_COMM_SHARED": "0"} if check else None)
    assert done.returncode == 0, done.stderr
    assert ast.literal_eval((tmp_path / "out").read_text()) == World(ranks).run(collective_checks.check_all)


def test_a_rank_that_raises_ends_the_job_with_its_traceback(run_script):
    done = run_script(4, "if comm.rank == 2:\n    raise ValueError('boom')\ncomm.barrier()\ncomm.recv(2)")
    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr and "ValueError: boom" in done.stderr
    assert 'script.py", line 8' in done.stderr


def test_the_exit_status_is_that_of_the_rank_that_failed(run_script):
    assert run_script(2, "if comm.rank == 1:\n    sys.exit(7)\ncomm.barrier()").returncode == 7


#: Cases in which the ranks show here the calls that they show when they are simulated, lines of the script included.
SAME = ["shape", "shape of a large one", "dtype", "op", "axis", "root", "kind"]


def test_ranks_that_do_not_fit_together_raise_on_every_rank_within_seconds(tmp_path):
    done = launch(3, mismatches.__file__, tmp_path / "out", env={"MINIPD_COMM_PATIENCE": "0.2"})
    assert done.returncode == 0, done.stderr
    outcomes = json.loads((tmp_path / "out").read_text())
    assert all(in_time for on_ranks in outcomes.values() for _, in_time in on_ranks)
    texts = {name: [text for text, _ in on_ranks] for name, on_ranks in outcomes.items()}
    assert texts["slow"] == ["12.0"] * 3                                # a rank that takes its time is no error
    for name in SAME:
        with pytest.raises(MismatchError) as simulated:
            World(3).run(mismatches.CASES[name])
        assert texts[name] == [f"MismatchError: {simulated.value}"] * 3
    assert all(t.startswith("MismatchError: rank ") and "in all_to_all#0(f64[?]" in t for t in texts["pieces"])
    for text in texts["groups"]:
        assert "  rank 0 waits in all_reduce#0(f64[3], op=sum) of the group (0, 1), at mismatches.py:" in text
        assert "They wait in a circle: 0 -> 1 -> 0." in text
    assert all("They wait in a circle: 0 -> 1 -> 2 -> 0." in text for text in texts["circle"])
    assert all("  rank 1 called barrier#2() of the group (0, 1, 2), at the end of its script\n" in text
               for text in texts["one too few"])
    assert all("  rank 2 waits in recv(src=1, tag=0) for a message from rank 1, at mismatches.py:" in text
               and "  rank 1 waits in barrier#0() of the group (0, 1, 2), at the end of its script\n" in text
               for text in texts["no message"])
    assert all("They differ in shape: (3,) and (2,)." in text for text in texts["started"])
    assert all("They wait in a circle: 0 -> 1 -> 0." in text for text in texts["held up"])


def test_a_rank_that_dies_is_named_by_the_others(run_script):
    body = "comm.barrier()\nif comm.rank == 1:\n    os.kill(os.getpid(), 9)\ncomm.all_reduce(X, (0, 1, 2))"
    done = run_script(3, "import os\n" + body, env={"MINIPD_COMM_PATIENCE": "0.2"})
    assert done.returncode
    for rank in (0, 2):
        assert done.stderr.count(f"  rank {rank} waits in all_reduce#1(f64[3], op=sum) of the group (0, 1, 2), at "
                                 "script.py:11 in <module>") == 2       # each of them says it
    assert done.stderr.count("has died, so the others cannot go on:") == 2
    assert "RankDiedError: rank 1 (process " in done.stderr


def test_a_rank_that_ends_where_nobody_sees_to_it(tmp_path):
    script = tmp_path / "script.py"                                     # without -m mpi4py, an error ends one rank only
    script.write_text(START + "    if comm.rank:\n        raise ValueError('boom')\n    comm.recv(1)")
    done = subprocess.run([find_mpiexec(), "-n", "2", sys.executable, script], capture_output=True, text=True,
                          timeout=LIMIT, cwd=ROOT,
                          env=environment(2, {"PYTHONPATH": str(ROOT), "MINIPD_COMM_PATIENCE": "0.2"}))
    assert done.returncode and "ValueError: boom" in done.stderr
    assert "DeadlockError: no rank can run:\n  rank 0 waits in recv(src=1, tag=0) for a message from" in done.stderr
    assert "\n  rank 1 has ended\n" in done.stderr


def test_the_check_shows_both_calls_before_anything_is_sent(run_script):
    done = run_script(2, "comm.barrier()\ncomm.all_reduce(X, (0, 1)) if comm.rank else comm.barrier()", check=True,
                      env={"MINIPD_COMM_PATIENCE": "50"})
    assert done.returncode == 1
    assert "MismatchError: the members of a group must make the same calls in the same order:" in done.stderr
    assert "  rank 0 called barrier#1() of the group (0, 1), at script.py:8 in <module>" in done.stderr
    assert "  rank 1 called all_reduce#1(f64[3], op=sum) of the group (0, 1), at script.py:8 in <module>" in done.stderr
    assert "They differ in kind: barrier and all_reduce." in done.stderr


def test_what_ranks_print_appears_line_by_line(run_script):
    done = run_script(3, "for i in range(50):\n    print('rank', comm.rank, 'line', i)")
    assert sorted(done.stdout.splitlines()) == sorted(f"rank {r} line {i}" for r in range(3) for i in range(50))


def test_a_message_that_nobody_receives(run_script):
    done = run_script(2, "if comm.rank == 0:\n    comm.send(X, 1, tag=3)")
    assert done.returncode == 1
    assert "all ranks have ended, but rank 1 never received a message from rank 0, tag 3" in done.stderr


def test_mpiexec_and_mpi4py_of_different_libraries():
    # As if mpiexec, told to start two, had started two worlds of one.
    done = subprocess.run([sys.executable, "-c", "from minipd.dist.comm.connect import connect; connect()"],
                          capture_output=True, text=True, timeout=LIMIT, cwd=ROOT, env=environment(2))
    assert done.returncode == 1
    assert "InputError: expected 2 ranks, as mpiexec was told, got a world of 1: mpiexec must come from the MPI that " \
           "mpi4py uses, which is" in done.stderr


def test_a_script_started_alone_is_a_world_of_one(tmp_path):
    done = subprocess.run([sys.executable, collective_checks.__file__, tmp_path / "out"], capture_output=True,
                          text=True, timeout=LIMIT, cwd=ROOT, env=environment(1, {"PYTHONPATH": str(ROOT)}))
    assert done.returncode == 0, done.stderr
