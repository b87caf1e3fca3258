"""Running a function on simulated ranks, each with its own context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.dist.api import enable
from minipd.dist.comm.sim import World
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.framework.context import RankContext
from minipd.framework.rank import enter, leave


def on_mesh(text: str, function: Callable[[ProcessMesh], Any], dtype: Any = None) -> list[Any]:
    """`function(mesh)` on every rank of the mesh that `text` describes; the results by rank."""
    mesh = parse_mesh(text)

    def rank(comm: Any) -> Any:
        ctx = RankContext(comm.rank, comm.size, comm)
        if dtype is not None:
            ctx.default_dtype = dtype
        token = enter(ctx)
        try:
            enable(ctx)
            return function(mesh)
        finally:
            leave(token)
    return World(mesh.size).run(rank)
