"""Ranks for a function."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import minipd.distributed as dist
from minipd.framework.errors import InputError
from tests.dist import spawned_functions as functions

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.mpi
def test_two_ranks():
    context = dist.spawn(functions.ranks_sum, args=(1.5,), nprocs=2)
    assert [queue.get() for queue in context.return_queues] == [(4.0, 0, 2, "0", 2), (4.0, 1, 2, "1", 2)]
    assert [queue.empty() for queue in context.error_queues] == [True, True]
    assert [(p.exitcode, p.is_alive(), p.pid > 1) for p in context.processes] == [(0, False, True)] * 2
    assert context.join() is True


@pytest.mark.mpi
def test_a_rank_that_raises(capfd):
    with pytest.raises(Exception, match="Process 1 terminated with the following error") as error:
        dist.spawn(functions.ranks_sum, args=(1, "raise"), nprocs=2)
    assert "Traceback (most recent call last)" in str(error.value)
    assert "in ranks_sum\n    raise KeyError(\"no such key\")\nKeyError: 'no such key'" in str(error.value)
    assert "minipd: rank 1 of 2 raised KeyError; the job ends" in capfd.readouterr().err


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize(("how", "text", "exitcode"), [
    ("kill", "Process 1 terminated with signal 9.", -9), ("exit", "Process 1 terminated with exit code 7.", 7),
    ("leave", "Process 1 terminated with exit code 3.", 3)])
def test_a_rank_that_ends_otherwise(how, text, exitcode, capfd):
    context = dist.spawn(functions.ranks_sum, args=(1, how), nprocs=2, join=False)
    with pytest.raises(Exception, match=text):
        while not context.join():
            pass
    assert [p.exitcode for p in context.processes] == [0, exitcode]
    assert "minipd: rank 1 of 2" in capfd.readouterr().err


@pytest.mark.mpi
@pytest.mark.long
def test_without_join():
    context = dist.spawn(functions.sleeps, nprocs=2, join=False, daemon=True)
    assert context.join(0.01) is False and context.processes[0].is_alive() and context.processes[0].exitcode is None
    while context.processes[1].pid is None:
        time.sleep(0.05)
    context.processes[1].terminate()
    assert not context.processes[0].is_alive()
    with pytest.raises(EOFError, match="rank 0 has ended and left no result"):
        context.return_queues[0].get()


MAIN = """
import sys
import minipd as paddle
import minipd.distributed as dist

def train(n):
    dist.init_parallel_env()
    x = paddle.ones([n])
    dist.all_reduce(x)
    return x.tolist(), __name__

if __name__ == "__main__":
    print([queue.get() for queue in dist.spawn(train, (2,), 2).return_queues])
"""


@pytest.mark.mpi
def test_a_function_of_the_main_program(tmp_path):
    (tmp_path / "main.py").write_text(MAIN)
    done = subprocess.run([sys.executable, str(tmp_path / "main.py")], capture_output=True, text=True, timeout=60,
                          env=ENVIRONMENT)
    assert (done.returncode, done.stdout) == (0, "[([2.0, 2.0], '__mp_main__'), ([2.0, 2.0], '__mp_main__')]\n"), \
        done.stderr


@pytest.mark.mpi
@pytest.mark.long
def test_a_main_program_that_spawns_when_it_is_imported(tmp_path):
    (tmp_path / "main.py").write_text(MAIN.replace('if __name__ == "__main__":', "if True:"))
    done = subprocess.run([sys.executable, str(tmp_path / "main.py")], capture_output=True, text=True, timeout=60,
                          env=ENVIRONMENT)
    assert done.returncode == 1
    assert "that must call spawn under `if __name__ == '__main__':`" in done.stderr


@pytest.mark.mpi
@pytest.mark.long
def test_ranks_do_not_spawn():
    with pytest.raises(Exception, match="spawn: expected a process that starts ranks, got one that is a rank"):
        dist.spawn(functions.spawns, nprocs=2)


@pytest.mark.mpi
@pytest.mark.long
def test_what_cannot_travel_back(capfd):
    context = dist.spawn(functions.returns_what_cannot_travel, nprocs=1)
    assert context.return_queues[0].empty()
    assert "what rank 0 returned cannot be pickled" in capfd.readouterr().err


@pytest.mark.mpi
@pytest.mark.long
def test_import_paddle_means_the_same_in_the_ranks(tmp_path):
    (tmp_path / "main.py").write_text(
        "import paddle\nimport paddle.distributed as dist\nfrom tests.dist.spawned_functions import paddles_name\n"
        "if __name__ == '__main__':\n    print(dist.spawn(paddles_name, nprocs=2).return_queues[1].get())\n")
    done = subprocess.run([sys.executable, "-m", "minipd", "as-paddle", str(tmp_path / "main.py")], timeout=60,
                          capture_output=True, text=True, cwd=ROOT,
                          env=ENVIRONMENT)
    assert (done.returncode, done.stdout) == (0, "minipd\n"), done.stderr


@pytest.mark.parametrize(("options", "error", "text"), [
    ({"colour": "blue"}, ValueError, r"The config option \(colour\) of `paddle.distributed.spawn` is not supported"),
    ({"start_method": "fork"}, ValueError, "spawn: expected start_method 'spawn', got 'fork'"),
    ({"ips": "10.0.0.1,10.0.0.2"}, ValueError, "spawn: expected ranks on this host, got ips='10.0.0.1,10.0.0.2'"),
    ({"nprocs": 0}, InputError, "expected at least one rank, got 0"),
])
def test_errors(options, error, text):
    with pytest.raises(error, match=text):
        dist.spawn(functions.sleeps, **options)


def test_a_function_inside_of_another():
    def inner():
        pass
    with pytest.raises(InputError, match="expected a function at the top level of a module"):
        dist.spawn(inner, nprocs=2)
