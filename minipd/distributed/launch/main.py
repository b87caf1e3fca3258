"""Paddle's launcher, on MPI: each of its options has its meaning here, or is refused by name.

One command on one host starts the ranks of all hosts (Paddle wants it on each): `--nnodes 2 --ips host1,host2`.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from minipd import as_paddle
from minipd.dist.hosts import Host, hosts_in_file, hosts_in_text
from minipd.dist.launch import launch_mpi, script_command
from minipd.framework.errors import InputError

__all__ = ["launch"]

#: Variables that stand for options which are not given, as in Paddle.
ENVIRONMENT = {
    "PADDLE_MASTER": "master", "PADDLE_DEVICES": "devices", "PADDLE_NNODES": "nnodes", "PADDLE_RUN_MODE": "run_mode",
    "PADDLE_LOG_LEVEL": "log_level", "PADDLE_LOG_OVERWRITE": "log_overwrite",
    "PADDLE_NPROC_PER_NODE": "nproc_per_node", "PADDLE_JOB_ID": "job_id", "PADDLE_RANK": "rank",
    "PADDLE_LOG_DIR": "log_dir", "PADDLE_START_PORT": "start_port", "PADDLE_IPS": "ips"}

#: Options for what is not here: what each is for.
REFUSED = {
    "servers": "a parameter server", "trainers": "a parameter server", "workers": "a parameter server",
    "server_num": "a parameter server", "trainer_num": "a parameter server", "worker_num": "a parameter server",
    "heter_workers": "a parameter server", "heter_worker_num": "a parameter server",
    "heter_devices": "a parameter server", "auto_tuner_json": "the tuner of Paddle's launcher",
    "auto_parallel_config": "the planner of Paddle's launcher", "elastic_level": "restarts of failed jobs",
    "legacy": "the launcher of Paddle 2.0"}


def launch() -> None:
    """The command line of this process; exits with the status of the rank that failed first, or 0."""
    try:
        status = main(sys.argv[1:])
    except InputError as refusal:
        print(f"minipd.distributed.launch: {refusal}", file=sys.stderr)
        status = 2
    sys.exit(status)


def main(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """Start what a command line asks for and wait for it; returns the exit status.

    Raises: InputError for what is not here, or does not fit together.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    for variable, name in ENVIRONMENT.items():
        if variable in environ and getattr(options, name) == parser.get_default(name):
            kind: Any = next(a.type for a in parser._actions if a.dest == name) or str
            setattr(options, name, kind(environ[variable]))
    _refuse(options)
    logging.basicConfig(level=options.log_level.upper(), format="LAUNCH %(levelname)s %(message)s")
    hosts, each = _places(options)
    env = {"MINIPD_START_PORT": str(options.start_port), "PADDLE_JOB_ID": options.job_id}
    if options.log_overwrite:
        env["MINIPD_LOG_OVERWRITE"] = "1"
    if options.devices:
        env["MINIPD_DEVICES"] = options.devices
    if options.check:
        env["MINIPD_COMM_CHECK"] = "1"
    command = script_command([options.training_script, *options.training_script_args], options.module)
    return launch_mpi(each * max(1, len(hosts)), command, env, hosts=hosts, log_dir=options.log_dir,
                      as_paddle=options.as_paddle or as_paddle.is_installed())


def _yes(text: str) -> bool:
    """Paddle's way to write a switch: --log_overwrite true."""
    if text.lower() not in ("1", "0", "true", "false", "yes", "no", "on", "off", "y", "n", "t", "f"):
        raise argparse.ArgumentTypeError(f"expected true or false, got {text!r}")
    return text.lower() in ("1", "true", "yes", "on", "y", "t")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m minipd.distributed.launch", allow_abbrev=False,
        usage="python -m minipd.distributed.launch [OPTIONS] [-m] SCRIPT [ARGUMENTS]",
        description="Run a script on several ranks; the options are those of Paddle's launcher.",
        epilog="One command starts the ranks of all hosts.  For a script that says `import paddle`: --as-paddle, or "
               "`minipd as-paddle -m paddle.distributed.launch [OPTIONS] SCRIPT`.  (`python -m paddle.distributed."
               "launch` is the real Paddle's, if that is installed.)")
    base = parser.add_argument_group("ranks")
    base.add_argument("--nproc_per_node", type=int, metavar="N",
                      help="ranks on each host (default: one for each of --devices, else one)")
    base.add_argument("--nnodes", default="1", metavar="N", help="hosts; more than one need --ips or --hostfile")
    base.add_argument("--ips", metavar="HOST,...", help="the hosts, which mpiexec reaches by ssh; NAME or NAME:RANKS")
    base.add_argument("--hostfile", metavar="FILE", help="a file with a host in each line (not in Paddle)")
    base.add_argument("--devices", "--gpus", "--npus", "--xpus", metavar="0,1,...",
                      help="the GPUs of a host, one for each of its ranks (FLAGS_selected_gpus); on a CPU their number "
                      "counts")
    base.add_argument("-m", "--module", action="store_true", help="SCRIPT is the name of a module (not in Paddle)")
    base.add_argument("--as-paddle", "--as_paddle", action="store_true",
                      help="in the script, `import paddle` means minipd")
    base.add_argument("--check", action="store_true",
                      help="compare the ranks' collectives, to see mismatches at once (slow; not in Paddle)")
    logs = parser.add_argument_group("logs")
    logs.add_argument("--log_dir", metavar="FOLDER", help="write what rank N prints into workerlog.N in this folder; "
                      "the screen shows rank 0 (default: all on the screen)")
    logs.add_argument("--log_overwrite", type=_yes, default=False, metavar="BOOL", help="begin these files anew")
    logs.add_argument("--log_level", default="INFO", metavar="LEVEL", help="of the launcher's own words")
    logs.add_argument("--job_id", default="default", metavar="NAME", help="PADDLE_JOB_ID for the ranks")
    without = parser.add_argument_group("accepted, with nothing to do here")
    without.add_argument("--master", metavar="HOST:PORT", help="where hosts meet: mpiexec knows them all")
    without.add_argument("--rank", "--node_rank", type=int, default=-1, metavar="N",
                         help="the number of this host: only 0, from which mpiexec starts the others")
    without.add_argument("--host", metavar="HOST", help="this host's own address")
    without.add_argument("--start_port", type=int, default=6070, metavar="N", help="of the PADDLE_TRAINER_ENDPOINTS")
    without.add_argument("--run_mode", metavar="MODE", help="only collective")
    for name, kind in (("--sort_ip", _yes), ("--enable_gpu_log", _yes), ("--auto_cluster_config", _yes),
                       ("--gloo_port", int), ("--with_gloo", str), ("--max_restart", int), ("--elastic_timeout", int)):
        without.add_argument(name, type=kind, metavar="X", help=argparse.SUPPRESS)
    for name in REFUSED:
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    parser.add_argument("training_script", metavar="SCRIPT", help="a Python file")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="of the script")
    return parser


def _refuse(options: argparse.Namespace) -> None:
    """Say by name what is not here."""
    for name, what in REFUSED.items():
        given = getattr(options, name)
        if given is not None and not (name == "elastic_level" and given == "-1") and given.lower() not in ("false", ""):
            raise InputError("an option of collective training", f"--{name} {given}, which is for {what}",
                             "minipd has none; leave it out")
    if options.run_mode not in (None, "collective"):
        raise InputError("--run_mode collective", repr(options.run_mode), "minipd has no other")
    if options.rank > 0:
        raise InputError("the command on one host, which starts the ranks of all", f"--rank {options.rank}",
                         "run it on the first host only, with --ips or --hostfile for all of them")
    if not isinstance(logging.getLevelName(options.log_level.upper()), int):
        raise InputError("--log_level CRITICAL, ERROR, WARNING, INFO, DEBUG or NOTSET", repr(options.log_level),
                         "choose one")


def _places(options: argparse.Namespace) -> tuple[list[Host], int]:
    """The hosts (none: this one), and the ranks on each."""
    if options.ips and options.hostfile:
        raise InputError("either --ips or --hostfile", "both", "leave one out")
    devices = options.devices.split(",") if options.devices else []
    each = len(devices) or 1 if options.nproc_per_node is None else options.nproc_per_node
    if each < 1:
        raise InputError("--nproc_per_node of at least 1", str(each), "give a positive number")
    if devices and len(devices) < each:
        raise InputError(f"--devices with one for each of {each} ranks", options.devices, "name more, or start fewer")
    hosts: list[Host] = hosts_in_file(options.hostfile) if options.hostfile else hosts_in_text(options.ips or "")
    if not options.nnodes.isdigit() or int(options.nnodes) < 1:
        raise InputError("--nnodes with a positive number", repr(options.nnodes), "jobs here do not grow or shrink")
    nodes = int(options.nnodes)
    if nodes > 1 and not hosts:
        raise InputError(f"the names of {nodes} hosts", "--nnodes without --ips or --hostfile",
                         "name them; --master is not enough, since mpiexec starts the ranks from here")
    if hosts and nodes not in (1, len(hosts)):
        raise InputError(f"{nodes} hosts, as --nnodes says", f"{len(hosts)}: {', '.join(h.name for h in hosts)}",
                         "leave --nnodes out, or name as many")
    if [host.name for host in hosts] in (["127.0.0.1"], ["localhost"]):
        hosts = []
    rooms: Any = {host.ranks for host in hosts} - {0, each}
    if rooms:
        raise InputError(f"hosts with {each} ranks each, as --nproc_per_node says", f"{sorted(rooms)}",
                         "leave the numbers out; `minipd launch` takes different ones")
    return [Host(host.name, each) for host in hosts], each
