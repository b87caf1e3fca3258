"""The launcher with Paddle's options; what a rank knows, how its end is told, and where its words go."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import minipd.distributed as dist
from minipd.as_paddle import main as as_paddle
from minipd.cli import main as minipd
from minipd.dist import hosts
from minipd.dist.hosts import Host
from minipd.dist.launch import environment
from minipd.dist.parallel_env import own_rank
from minipd.distributed.launch import main as launcher
from minipd.framework.context import RankContext
from minipd.framework.errors import InputError
from minipd.framework.rank import current, enter, leave

ROOT = Path(__file__).resolve().parents[2]


def run(*command, cwd=ROOT, **env):
    return subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=90, cwd=cwd,
                          env={**os.environ, "PYTHONPATH": str(ROOT), **env})


# -------------------------------------------------------------------------------------------------------- options
@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What the launcher asks for, given its options: (ranks, command, variables, the rest)."""
    script = tmp_path / "train.py"
    script.write_text("")
    monkeypatch.setattr(launcher, "launch_mpi", lambda ranks, command, env, **rest: calls.append(
        (ranks, command, env, rest)) or 0)
    calls = []

    def ask(*options, environ=None, arguments=()):
        calls.clear()
        assert launcher.main([*options, str(script), *arguments], environ or {}) == 0
        ranks, command, env, rest = calls[0]
        assert command == [str(script), *arguments]
        return ranks, env, rest
    return ask


PLAIN = {"MINIPD_START_PORT": "6070", "PADDLE_JOB_ID": "default"}
HERE = {"hosts": [], "log_dir": None, "as_paddle": False}


def test_options(asked):
    assert asked() == (1, PLAIN, HERE)
    assert asked("--nproc_per_node", "4", arguments=("--nproc_per_node", "9")) == (4, PLAIN, HERE)
    assert asked("--devices=0,1,2") == (3, {**PLAIN, "MINIPD_DEVICES": "0,1,2"}, HERE)
    assert asked("--gpus", "4,5,6,7", "--nproc_per_node=2")[0] == 2
    assert asked("--log_dir", "logs", "--log_overwrite", "true", "--job_id", "mine", "--start_port=7000") == (
        1, {"MINIPD_START_PORT": "7000", "PADDLE_JOB_ID": "mine", "MINIPD_LOG_OVERWRITE": "1"},
        {**HERE, "log_dir": "logs"})
    assert asked("--as-paddle", "--check") == (1, {**PLAIN, "MINIPD_COMM_CHECK": "1"}, {**HERE, "as_paddle": True})
    two = [Host("10.0.0.1", 3), Host("10.0.0.2", 3)]
    assert asked("--nnodes=2", "--ips", "10.0.0.1,10.0.0.2", "--nproc_per_node=3") == (6, PLAIN, {**HERE, "hosts": two})
    assert asked("--ips=127.0.0.1", "--nproc_per_node=2") == (2, PLAIN, HERE)


def test_options_with_nothing_to_do(asked):
    assert asked("--master=127.0.0.1:8080", "--rank=0", "--run_mode=collective", "--log_level", "debug", "--host",
                 "h", "--max_restart", "3", "--elastic_level=-1", "--with_gloo", "1", "--sort_ip", "no",
                 "--legacy", "False", "--servers", "") == (1, PLAIN, HERE)


def test_variables_stand_for_options(asked):
    variables = {"PADDLE_NPROC_PER_NODE": "3", "PADDLE_LOG_DIR": "there", "PADDLE_LOG_OVERWRITE": "1"}
    assert asked(environ=variables) == (3, {**PLAIN, "MINIPD_LOG_OVERWRITE": "1"}, {**HERE, "log_dir": "there"})
    assert asked("--nproc_per_node=2", environ=variables)[0] == 2


@pytest.mark.parametrize(("options", "text"), [
    (["--nproc_per_node=0"], "expected --nproc_per_node of at least 1, got 0"),
    (["--nnodes=2"], "expected the names of 2 hosts, got --nnodes without --ips or --hostfile: name them; --master is"),
    (["--nnodes=2:3"], "expected --nnodes with a positive number, got '2:3': jobs here do not grow or shrink"),
    (["--nnodes=3", "--ips=a,b"], "expected 3 hosts, as --nnodes says, got 2: a, b"),
    (["--rank=1"], "expected the command on one host, which starts the ranks of all, got --rank 1"),
    (["--run_mode=ps"], "expected --run_mode collective, got 'ps'"),
    (["--servers=a:1"], "expected an option of collective training, got --servers a:1, which is for a parameter"),
    (["--elastic_level=1"], "got --elastic_level 1, which is for restarts of failed jobs"),
    (["--auto_tuner_json=a"], "which is for the tuner of Paddle's launcher"),
    (["--devices=0", "--nproc_per_node=2"], "expected --devices with one for each of 2 ranks, got 0"),
    (["--ips=a", "--hostfile=b"], "expected either --ips or --hostfile, got both"),
    (["--ips=a:2,b:3"], r"expected hosts with 1 ranks each, as --nproc_per_node says, got \[2, 3\]"),
    (["--log_level=loud"], "expected --log_level CRITICAL, ERROR"),
    (["--hostfile=nowhere"], "expected a file with a host in each line, got 'nowhere' .No such file"),
])
def test_refused(options, text, asked):
    with pytest.raises(InputError, match=text):
        asked(*options)


def test_the_script_must_be_there(tmp_path):
    with pytest.raises(InputError, match="nothing.py', which does not exist"):
        launcher.main([str(tmp_path / "nothing.py")], {})


def test_an_option_that_nobody_knows(capsys):
    with pytest.raises(SystemExit) as end:
        launcher.main(["--colour", "blue", "x.py"], {})
    assert end.value.code == 2


def test_dist_launch_is_the_function():
    assert callable(dist.launch)


# ---------------------------------------------------------------------------------------------------------- hosts
def test_hosts_in_a_file(tmp_path):
    file = tmp_path / "hosts"
    file.write_text("# ours\nnode1:4\n\n10.0.0.2 slots=2   # old\nnode3\n")
    assert hosts.hosts_in_file(str(file)) == [Host("node1", 4), Host("10.0.0.2", 2), Host("node3", 0)]
    file.write_text("# none\n")
    with pytest.raises(InputError, match="which names none"):
        hosts.hosts_in_file(str(file))
    with pytest.raises(InputError, match="expected a host as NAME or NAME:RANKS, got 'a b'"):
        hosts.hosts_in_text("a b")


@pytest.mark.parametrize(("version", "option"), [("HYDRA build", "-hosts"), ("mpirun (Open MPI) 5.0", "--host")])
def test_what_mpiexec_is_told(version, option, tmp_path):
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text(f"#!/bin/sh\necho '{version}'\n")
    mpiexec.chmod(0o755)
    assert hosts.host_arguments(str(mpiexec), [Host("a"), Host("b")], 5) == [option, "a:3,b:3"]
    assert hosts.host_arguments(str(mpiexec), [Host("a", 1), Host("b", 4)], 5) == [option, "a:1,b:4"]
    with pytest.raises(InputError, match="expected hosts with room for 5 ranks, got 3: a:1,b:2"):
        hosts.host_arguments(str(mpiexec), [Host("a", 1), Host("b", 2)], 5)


# ---------------------------------------------------------------------------------------------- what a rank knows
def test_ranks_of_another_launcher(monkeypatch):
    for name in ("MINIPD_RANKS", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "4")
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "a:1,b:2")
    monkeypatch.setenv("PADDLE_CURRENT_ENDPOINT", "b:2")
    monkeypatch.setenv("FLAGS_selected_gpus", "3")
    token = enter(RankContext())
    try:
        env = dist.ParallelEnv()
        assert (env.rank, env.local_rank, env.world_size, env.nranks, dist.get_rank(), dist.get_world_size()) == (
            1, 1, 4, 4, 1, 4)
        assert (env.device_id, env.dev_id, env.device_type, env.nrings) == (3, 3, "", 1)
        assert (env.current_endpoint, env.trainer_endpoints) == ("b:2", ["a:1", "b:2"])
        with pytest.raises(InputError, match="got PADDLE_TRAINERS_NUM=4 and PADDLE_TRAINER_ID=1 of something else"):
            dist.init_parallel_env()
    finally:
        leave(token)
    monkeypatch.setenv("FLAGS_nccl_nrings", "9")
    with pytest.raises(ValueError, match="ParallelEnv: expected FLAGS_nccl_nrings from 1 to 8, got 9"):
        dist.ParallelEnv()


def test_a_process_that_a_rank_starts_is_no_rank(monkeypatch):
    monkeypatch.setenv("MINIPD_RANKS", "2")
    monkeypatch.setenv("MINIPD_RANK_PROCESS", "1")
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    token = enter(RankContext())
    try:
        with pytest.raises(InputError, match="of something else"):
            dist.barrier() if current().comm else dist.init_parallel_env()
        assert own_rank() == (0, 2)
    finally:
        leave(token)


KNOWS = """
import os, sys
import paddle
import paddle.distributed as dist
from paddle.distributed.communication.group import Group
x = paddle.to_tensor([dist.get_rank() + 1.0])
before = dist.is_initialized()
assert list(paddle.io.DistributedBatchSampler(range(4), 1)) == [[dist.get_rank()], [2 + dist.get_rank()]]
dist.all_reduce(x)                              # nobody has called init_parallel_env
env = dist.ParallelEnv()
assert isinstance(dist.get_group(), Group) and paddle.__name__ == "minipd"
names = "PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "PADDLE_RANK_IN_NODE", "PADDLE_NNODES", "FLAGS_selected_gpus"
print(x.item(), before, dist.is_initialized(), env.rank, env.current_endpoint, env.trainer_endpoints, sys.argv[1:],
      [os.environ[n] for n in names])
"""


@pytest.mark.mpi
def test_a_script_for_paddle(tmp_path):
    """Its words go to the logs; the screen shows rank 0.  It is run where `python` is `minipd as-paddle`."""
    (tmp_path / "script.py").write_text(KNOWS)
    command = ["-m", "minipd", "as-paddle", "-m", "paddle.distributed.launch", "--devices", "4,6", "--log_dir", "logs",
               "script.py", "--nnodes", "7"]
    done = run(*command, cwd=tmp_path)
    lines = [f"3.0 False True {r} 127.0.0.1:607{r} ['127.0.0.1:6070', '127.0.0.1:6071'] ['--nnodes', '7'] "
             f"['{r}', '2', '{r}', '1', '{4 + 2 * r}']\n" for r in range(2)]
    assert (done.returncode, done.stdout) == (0, lines[0]), done.stderr
    assert [(tmp_path / "logs" / f"workerlog.{r}").read_text() for r in range(2)] == lines


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize("command", [
    ["-m", "minipd", "launch", "-n", "2", "--as-paddle"],
    ["-m", "minipd.distributed.launch", "--nproc_per_node=2", "--as-paddle"],
    ["-m", "minipd", "launch", "-n", "2", "-m", "minipd", "as-paddle"]])
def test_other_ways_to_say_it(command, tmp_path):
    (tmp_path / "script.py").write_text("import paddle.distributed as dist\nprint(dist.init_parallel_env().nranks)\n")
    done = run(*command, tmp_path / "script.py")
    assert (done.returncode, done.stdout) == (0, "2\n2\n"), done.stderr


@pytest.mark.mpi
@pytest.mark.long
def test_eight_ranks(tmp_path):
    (tmp_path / "script.py").write_text("import minipd as paddle\nimport minipd.distributed as dist\n"
                                        "x = paddle.ones([1000])\ndist.all_reduce(x)\nprint(x[7].item())\n")
    done = run("-m", "minipd.distributed.launch", "--nproc_per_node=8", tmp_path / "script.py")
    assert (done.returncode, done.stdout) == (0, "8.0\n" * 8), done.stderr


def test_as_paddle_runs_a_module(tmp_path):
    (tmp_path / "some_module.py").write_text(
        "import sys\nimport paddle\nprint(paddle.__name__, __name__, sys.argv[1:])\n")
    done = run("-m", "minipd", "as-paddle", "-m", "some_module", "a", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "minipd __main__ ['a']\n"), done.stderr
    with pytest.raises(InputError, match="expected a Python file to run"):
        as_paddle(["nothing.py"])


# ------------------------------------------------------------------------------------------------ how a rank ends
ENDS = """
import os, sys, time
import minipd as paddle
import minipd.distributed as dist
x = paddle.ones([3])
dist.all_reduce(x)
how = sys.argv[1]
if dist.get_rank() == 1:
    print("words of rank 1")
    if how == "raises": raise ValueError("no good")
    if how == "is killed": os.kill(os.getpid(), 9)
    if how == "leaves": os._exit(0)
    if how == "fails": os._exit(5)
    if how == "exits": sys.exit("that is all")
    if how == "ends": sys.exit()
    if how == "sends": dist.send(x, 0)
if how != "sends":
    dist.all_reduce(x)
"""

WAITS = "rank 0 waits in all_reduce#1(f32[3], op=sum) of the group (0, 1), at script.py:18 in <module>"


def ended(how, tmp_path, *options):
    (tmp_path / "script.py").write_text(ENDS)
    return run("-m", "minipd", "launch", "-n", "2", *options, tmp_path / "script.py", how)


@pytest.mark.mpi
def test_a_rank_that_raises_shows_its_log(tmp_path):
    done = ended("raises", tmp_path, "--log-dir", tmp_path / "logs")
    assert (done.returncode, done.stdout.count("words of rank 1")) == (1, 0)
    shown = done.stderr[done.stderr.index("minipd: the end of"):]
    assert shown.startswith(f"minipd: the end of {tmp_path}/logs/workerlog.1:\n  words of rank 1\n  Traceback (most")
    assert "  ValueError: no good\n  minipd: rank 1 of 2 raised ValueError; the job ends\n" in shown
    assert "runpy" not in shown and "worker.py" not in shown
    assert WAITS in (tmp_path / "logs" / "workerlog.0").read_text()      # the other rank has an error, too


@pytest.mark.mpi
def test_a_rank_that_is_killed(tmp_path):
    done = ended("is killed", tmp_path)
    assert done.returncode == 137
    assert "minipd: rank 1 of 2 was killed by SIGKILL (signal 9); the job ends\n" in done.stderr
    assert "rank 1" in done.stderr and WAITS in done.stderr and "BAD TERMINATION" not in done.stdout


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize(("how", "status", "text"), [
    ("leaves", 1, "rank 1 of 2 ended in the middle, with exit status 0: it called os._exit"),
    ("fails", 5, "rank 1 of 2 ended with exit status 5; the job ends"),
    ("exits", 1, "rank 1 of 2 called sys.exit('that is all'); the job ends"),
    ("ends", 1, "rank 1 called barrier#1() of the group (0, 1), at the end of its script"),
    ("sends", 1, "rank 0 never received a message from rank 1"),
])
def test_a_rank_that_ends_otherwise(how, status, text, tmp_path):
    done = ended(how, tmp_path)
    assert done.returncode == status
    assert text in done.stderr
    assert how == "sends" or "all_reduce#1(f32[3], op=sum) of the group (0, 1), at script.py:18" in done.stderr


@pytest.mark.mpi
@pytest.mark.long
def test_a_script_with_a_mistake_in_its_first_line(tmp_path):
    (tmp_path / "script.py").write_text("import no_such_module\n")
    done = run("-m", "minipd", "launch", "-n", "2", tmp_path / "script.py")
    assert done.returncode == 1 and "No module named 'no_such_module'" in done.stderr


def test_logs_and_hosts_of_minipd_launch(monkeypatch, tmp_path):
    from minipd.dist import launch
    calls = []
    monkeypatch.setattr(launch, "launch_mpi", lambda *given, **named: calls.append((given, named)) or 0)
    script = tmp_path / "s.py"
    script.write_text("")
    assert minipd(["launch", "-n", "3", "--hosts", "a:2,b", "--log-dir", "logs", "--as-paddle", str(script), "x"]) == 0
    assert calls == [((3, [str(script), "x"], None),
                      {"hosts": [Host("a", 2), Host("b", 0)], "log_dir": "logs", "as_paddle": True})]
    with pytest.raises(SystemExit):
        minipd(["launch", "-n", "3", "--hosts", "a", "--hostfile", "b", str(script)])
    assert environment(2, {"X": "1"})["MINIPD_RANKS"] == "2"
