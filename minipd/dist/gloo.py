"""Paddle's `gloo_*` functions: processes that the user has started meet at an address, to wait for each other.

Rank 0 listens there, the others connect.  They can do nothing but meet; for collectives, start ranks with a launcher.
"""

from __future__ import annotations

import socket
import time

from minipd.framework.errors import InputError
from minipd.framework.rank import current

__all__ = ["gloo_barrier", "gloo_init_parallel_env", "gloo_release"]

#: Seconds that ranks wait for the last one to come.
PATIENCE = 300.0


class _Meeting:
    """The connections of one rank: of rank 0 to all others, of any other to rank 0."""

    def __init__(self, rank: int, ranks: int, host: str, port: int):
        self.rank = rank
        self.lines: list[socket.socket] = []
        deadline = time.monotonic() + PATIENCE
        if rank == 0:
            with socket.create_server((host, port), backlog=ranks) as server:
                while len(self.lines) < ranks - 1:
                    server.settimeout(max(0.01, deadline - time.monotonic()))
                    try:
                        self.lines.append(server.accept()[0])
                    except TimeoutError:
                        raise TimeoutError(f"gloo_init_parallel_env: expected {ranks} ranks at {host}:{port} within "
                                           f"{PATIENCE:g} s, got {1 + len(self.lines)}") from None
        while rank and not self.lines:
            try:
                self.lines.append(socket.create_connection((host, port), timeout=5))
            except OSError as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"gloo_init_parallel_env: expected rank 0 at {host}:{port} within {PATIENCE:g} "
                                       f"s, got {error}") from error
                time.sleep(0.02)
        for line in self.lines:
            line.settimeout(PATIENCE)

    def barrier(self) -> None:
        """Rank 0 hears of all, then tells all."""
        for listens in (self.rank == 0, self.rank != 0):
            for line in self.lines:
                if not listens:
                    line.sendall(b"!")
                elif line.recv(1) != b"!":
                    who = "a rank" if self.rank == 0 else "rank 0"
                    raise RuntimeError(f"gloo_barrier: rank {self.rank} waits, but {who} has left")

    def close(self) -> None:
        for line in self.lines:
            line.close()


def gloo_init_parallel_env(rank_id: int, rank_num: int, server_endpoint: str) -> None:
    """Meet the other processes.

    Args:
        rank_id, rank_num: this process's number, from 0, and how many there are, at least 2.
        server_endpoint: "address:port" of rank 0.

    Raises: InputError for arguments that make no sense, TimeoutError if the others do not come in five minutes.
    """
    if rank_num < 2 or not 0 <= rank_id < rank_num:
        raise InputError("rank_num of at least 2, and rank_id from 0 up to it", f"rank {rank_id} of {rank_num}",
                         "number the processes")
    host, _, port = server_endpoint.rpartition(":")
    if not host or not port.isdigit():
        raise InputError("server_endpoint as address:port", repr(server_endpoint), 'write "127.0.0.1:6170"')
    gloo_release()
    current().gloo = _Meeting(rank_id, rank_num, host, int(port))


def gloo_barrier() -> None:
    """Return when all that met are here.  Raises: RuntimeError before `gloo_init_parallel_env`, or if one has left."""
    if current().gloo is None:
        raise RuntimeError("gloo_barrier: expected processes that have met; call gloo_init_parallel_env first")
    current().gloo.barrier()


def gloo_release() -> None:
    """Take leave of the others."""
    ctx = current()
    if ctx.gloo is not None:
        ctx.gloo.close()
        ctx.gloo = None
