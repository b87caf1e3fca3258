"""The ranks of a mesh in one process: to try something out, to test it, to teach it.

What the ranks run is written as for real ones: `shard_tensor`, operators, `reshard`.  No MPI is needed, and every run
is the same (see `comm/baton.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.dist.api import enable
from minipd.dist.comm.faults import Fault
from minipd.dist.comm.links import Links
from minipd.dist.comm.record import Record
from minipd.dist.comm.sim import World
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.framework.context import RankContext
from minipd.framework.rank import enter, leave

__all__ = ["simulate"]


def simulate(mesh: str | ProcessMesh, function: Callable[[ProcessMesh], Any], dtype: Any = None,
             log: list[str] | None = None, records: list[Record] | None = None, faults: Sequence[Fault] = (),
             links: Links | None = None) -> list[Any]:
    """`function(mesh)` on every rank of a mesh; what it returned, by rank.

    Args:
        mesh: the ranks 0, 1, ... in a grid, or its text, `"dp=2,tp=2"`.
        function: sees a rank's context of its own, `minipd.framework.rank.current()`, with its communicator `.comm`.
        dtype: the ranks' default dtype, a numpy dtype; float32 if None.
        log: gets a line for every collective and message, in the order in which they happened.
        records: gets the same as records (see `comm/record.py`).
        faults: what goes wrong, on purpose (see `comm/faults.py`).
        links: what communication takes; `current().comm.clock` is then a rank's simulated time (see `comm/links.py`).

    Raises: what a rank raised; MismatchError or DeadlockError if the ranks do not fit together, RankDiedError if one
    was made to die.

    >>> from minipd.dist.api import shard_tensor
    >>> from minipd.dist.placements import Shard
    >>> log = []
    >>> simulate("tp=2", lambda mesh: shard_tensor([3.0, 4.0, 5.0], mesh, [Shard(0)]).sum().item(), log=log)
    [12.0, 12.0]
    >>> log
    ['all_reduce#0(f32[], op=sum) by (0, 1)']
    """
    grid = parse_mesh(mesh) if isinstance(mesh, str) else mesh

    def rank(comm: Any) -> Any:
        ctx = RankContext(comm.rank, comm.size, comm)
        if dtype is not None:
            ctx.default_dtype = dtype
        token = enter(ctx)
        try:
            enable(ctx)
            return function(grid)
        finally:
            leave(token)
    world = World(max(grid.process_ids) + 1, record=log is not None or records is not None, faults=faults, links=links)
    try:
        return world.run(rank)
    finally:
        if log is not None:
            log.extend(world.log)
        if records is not None:
            records.extend(world.records)
