"""Global programs on simulated ranks: trace, complete, partition, run, and put the outputs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minipd.dist.completion import complete
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.partition import output_types, partition
from minipd.dist.placements import Partial, Placement, Replicate
from minipd.dist.sharding import local_blocks, local_shape
from minipd.executor import Executor
from minipd.framework.rank import current
from minipd.ir.program import Program
from minipd.ir.verify import verify
from tests.dist.ranks import on_mesh
from tests.dist.simulated import join

Placed = Mapping[str, Sequence[Placement]]


def completed(program: Program, mesh: ProcessMesh, placed: Placed) -> Program:
    """The program with placements, those of its inputs and parameters by name (default: replicated)."""
    def marks(op: Any) -> tuple[Placement, ...]:
        name = op.attributes["name" if op.name() == "pd_op.data" else "parameter_name"].value
        return tuple(placed.get(name, (Replicate(),) * mesh.ndim))
    return verify(complete(program, mesh, marks))


class Ran(NamedTuple):
    """outputs: whole, by name; every rank's parts agree.  state: what each rank holds afterwards.  collectives: per
    rank.  locals: the programs of the ranks, as exact text."""

    outputs: dict[str, np.ndarray]
    state: list[dict[str, np.ndarray]]
    collectives: list[dict[str, int]]
    locals: list[str]


def run_on(mesh: str, program: Program, placed: Placed, feed: Mapping[str, np.ndarray],
           state: Mapping[str, np.ndarray] | None = None) -> Ran:
    """Complete and partition a traced program, and run it on every rank with its parts of feed and state."""
    grid = parse_mesh(mesh)
    whole = completed(program, grid, placed)
    kinds = output_types(whole)

    def part(name: str, array: np.ndarray, rank: int) -> np.ndarray:
        placements = tuple(placed.get(name, (Replicate(),) * grid.ndim))
        out = np.empty(local_shape(array.shape, grid, placements, rank), array.dtype)
        for block in local_blocks(array.shape, grid, placements, rank):
            block.of_local(out)[...] = block.of_whole(array)
        return out

    def rank(_: ProcessMesh) -> Any:
        r, comm = current().rank, current().comm
        local = verify(partition(whole, grid, r))
        scope = {n: part(n, a, r) for n, a in (state or {}).items()}
        out = Executor(local).run({n: part(n, a, r) for n, a in feed.items()}, scope)
        return out, scope, dict(comm.counts), local.to_string("exact")
    outs, scopes, counts, texts = zip(*on_mesh(mesh, rank), strict=True)
    return Ran({n: joined([o[n] for o in outs], grid, kinds[n].placements, kinds[n].shape) for n in kinds},
               list(scopes), list(counts), list(texts))


def joined(pieces: list[np.ndarray], grid: ProcessMesh, placements: Sequence[Placement], shape: tuple) -> np.ndarray:
    """The whole, of what the ranks hold: also where axes split a dimension in another order, or part by part."""
    if all(not p.is_shard() or (p.order, p.factor) == (0, 1) for p in placements):
        return join(pieces, grid, placements)
    wholes = [put(piece, grid, placements, shape, rank) for piece, rank in zip(pieces, grid.process_ids, strict=True)]
    return join(wholes, grid, [Partial() if p.is_shard() else p for p in placements]).astype(pieces[0].dtype)


def put(piece: np.ndarray, grid: ProcessMesh, placements: Sequence[Placement], shape: tuple, rank: int) -> np.ndarray:
    """A tensor of zeros but for what a rank holds."""
    out = np.zeros(shape, piece.dtype)
    for block in local_blocks(shape, grid, placements, rank):
        block.of_whole(out)[...] = block.of_local(piece)
    return out
