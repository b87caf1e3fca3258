"""Ranks on two hosts.  The hosts are network namespaces of this machine, joined by one virtual cable, with a host name
and a /dev/shm of their own, so that ranks of different hosts have only the network; a script stands for ssh.

It needs root, and `ip` and `unshare` of Linux.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minipd.dist.launch import environment

ROOT = Path(__file__).resolve().parents[2]
ADDRESSES = {"minipd-a": "10.77.0.1", "minipd-b": "10.77.0.2"}

SCRIPT = """
import os, socket, sys
import minipd as paddle
import minipd.distributed as dist

rank = dist.get_rank()
x = paddle.ones([50000]) * (rank + 1)
dist.all_reduce(x)
y = paddle.zeros([3])
if rank == 0:
    dist.send(paddle.to_tensor([1.0, 2.0, 3.0]), 3)
if rank == 3:
    dist.recv(y, 0)
rows = []
env = dist.ParallelEnv()
dist.all_gather_object(rows, (rank, socket.gethostname(), env.current_endpoint, os.environ["PADDLE_LOCAL_RANK"],
                              os.environ["PADDLE_NNODES"]))
if sys.argv[1:] == ["die"] and rank == 3:
    os.kill(os.getpid(), 9)
dist.barrier()
if rank == 3:
    print(x.sum().item(), y.tolist(), *rows, sep="\\n")
"""

SSH = """#!/bin/sh
# ssh [-x] HOST COMMAND...
[ "$1" = -x ] && shift
host=$1; shift
case $host in {a}) name=minipd-a;; {b}) name=minipd-b;; *) echo "no host $host" >&2; exit 1;; esac
exec {on_host} "$name" sh -c "$*"
"""

#: ON_HOST NAME COMMAND...: run a command on a host
ON_HOST = """#!/bin/sh
name=$1; shift
exec ip netns exec "$name" unshare --uts --ipc --mount \
    sh -c 'mount -t tmpfs none /dev/shm; hostname "$0"; exec "$@"' "$name" "$@"
"""


def ip(*arguments):
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def on_host(tmp_path_factory):
    """A command that runs another on the first host, and the environment in which it reaches the second."""
    if sys.platform != "linux" or os.geteuid() or not shutil.which("ip") or not shutil.which("unshare"):
        pytest.skip("needs root, ip and unshare on Linux")
    folder = tmp_path_factory.mktemp("hosts")
    try:
        for name in ADDRESSES:
            ip("netns", "add", name)
    except subprocess.CalledProcessError as error:
        _remove()
        pytest.skip(f"no network namespaces: {error.stderr}")
    try:
        ip("link", "add", "mpd-a", "netns", "minipd-a", "type", "veth", "peer", "name", "mpd-b", "netns", "minipd-b")
        for name, address in ADDRESSES.items():
            ip("-n", name, "addr", "add", f"{address}/24", "dev", f"mpd-{name[-1]}")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", f"mpd-{name[-1]}", "up")
        deadline = time.monotonic() + 20
        while not all(" UP " in ip("-n", n, "-br", "link", "show", f"mpd-{n[-1]}") for n in ADDRESSES):
            assert time.monotonic() < deadline      # MPI takes no notice of a cable that is not in use yet
            time.sleep(0.1)
        script, ssh = folder / "on_host", folder / "ssh"
        script.write_text(ON_HOST)
        ssh.write_text(SSH.format(on_host=script, a=ADDRESSES["minipd-a"], b=ADDRESSES["minipd-b"]))
        for file in (script, ssh):
            file.chmod(0o755)
        probe = subprocess.run([str(script), "minipd-b", "hostname"], capture_output=True, text=True, check=False)
        if probe.stdout != "minipd-b\n":
            pytest.skip(f"no host of its own: {probe.stderr}")
        yield [str(script), "minipd-a"], {"HYDRA_LAUNCHER_EXEC": str(ssh)}
    finally:
        _remove()


def _remove():
    for name in ADDRESSES:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def bytes_on_the_cable():
    fields = ip("-s", "-n", "minipd-a", "link", "show", "mpd-a").splitlines()
    return int(fields[fields.index(next(f for f in fields if "TX:" in f)) + 1].split()[0])


HOSTS = ",".join(ADDRESSES.values())
LAUNCHERS = {
    "ours": ["-m", "minipd", "launch", "-n", "4", "--hosts", HOSTS],
    "paddle's": ["-m", "minipd.distributed.launch", "--nnodes", "2", "--nproc_per_node", "2", "--ips", HOSTS,
                 "--master", "10.77.0.1:8090"],
}


def launched(on_host, launcher, tmp_path, *arguments):
    prefix, variables = on_host
    (tmp_path / "script.py").write_text(SCRIPT)
    return subprocess.run([*prefix, sys.executable, *LAUNCHERS[launcher], str(tmp_path / "script.py"), *arguments],
                          cwd=ROOT, capture_output=True, text=True, timeout=120,
                          env=environment(4, {"PYTHONPATH": str(ROOT), **variables}))


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_four_ranks_on_two_hosts(on_host, launcher, tmp_path):
    before = bytes_on_the_cable()
    done = launched(on_host, launcher, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "500000.0", "[1.0, 2.0, 3.0]",
        *(str((r, name, f"{ADDRESSES[name]}:{6070 + r % 2}", str(r % 2), "2"))
          for r, name in enumerate(("minipd-a", "minipd-a", "minipd-b", "minipd-b")))]
    # ranks 0 and 1 give at least half of the 200,000 bytes of their sum to the other host
    assert bytes_on_the_cable() - before > 200_000


@pytest.mark.mpi
@pytest.mark.long
def test_a_rank_that_dies_on_the_other_host_ends_the_job(on_host, tmp_path):
    done = launched(on_host, "ours", tmp_path, "die")
    assert done.returncode == 137, done.stdout + done.stderr
    assert "minipd: rank 3 of 4 was killed by SIGKILL (signal 9); the job ends" in done.stderr
