"""The hosts on which mpiexec starts ranks."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from minipd.framework.errors import InputError

__all__: list[str] = []


class Host(NamedTuple):
    """A host by name or address, and how many ranks it has room for; 0: its share, as many as the others."""

    name: str
    ranks: int = 0


def hosts_in_text(text: str) -> list[Host]:
    """
    >>> hosts_in_text("node1:4, 10.0.0.2")
    [Host(name='node1', ranks=4), Host(name='10.0.0.2', ranks=0)]
    """
    return [_host(part) for part in text.split(",") if part.strip()]


def hosts_in_file(path: str) -> list[Host]:
    """The hosts of a file, one in each line: `name`, `name:4` (MPICH) or `name slots=4` (Open MPI); # begins a remark.

    Raises: InputError if there is no such file, or a line is none of these.
    """
    try:
        lines = Path(path).read_text().splitlines()
    except OSError as error:
        raise InputError("a file with a host in each line", f"{path!r} ({error.strerror})", "name one") from None
    found = [_host(line.partition("#")[0]) for line in lines if line.partition("#")[0].strip()]
    if not found:
        raise InputError("a file with a host in each line", f"{path!r}, which names none", "name some")
    return found


def _host(text: str) -> Host:
    match = re.fullmatch(r"\s*([\w.-]+)(?:\s*:\s*(\d+)|\s+slots\s*=\s*(\d+))?\s*", text)
    if match is None:
        raise InputError("a host as NAME or NAME:RANKS", repr(text), "separate several by commas")
    return Host(match[1], int(match[2] or match[3] or 0))


def host_arguments(mpiexec: str, hosts: Sequence[Host], ranks: int) -> list[str]:
    """What tells this mpiexec where the ranks run; nothing if they all run here.

    The first host gets the first ranks.  Raises: InputError if there is not room for all.

    >>> host_arguments("mpiexec", [], 4)
    []
    """
    if not hosts:
        return []
    share = -(-ranks // len(hosts))
    rooms = [host.ranks or share for host in hosts]
    if sum(rooms) < ranks:
        raise InputError(f"hosts with room for {ranks} ranks", f"{sum(rooms)}: {_text(hosts, rooms)}",
                         "give more hosts, or more ranks to each")
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    return ["--host" if "Open MPI" in version or "open-mpi" in version else "-hosts", _text(hosts, rooms)]


def _text(hosts: Sequence[Host], rooms: Sequence[int]) -> str:
    return ",".join(f"{host.name}:{room}" for host, room in zip(hosts, rooms, strict=True))
