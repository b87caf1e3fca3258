"""The split rule: which rank owns which elements.  Data, checkpoints, plans and messages all ask here.

One mesh axis splits n elements over `ways` ranks into ceil-sized chunks: every chunk has ceil(n / ways) elements until
they run out, so 5 over 4 is 2, 2, 1, 0.  Where several mesh axes split one dimension, the outer axis splits first and
the next one splits each chunk again: 5 over 2 x 2 is (3, 2), then (2, 1) and (1, 1).

The invariant: over the ranks along any set of mesh axes, the windows are a partition of the tensor, in rank order.

A symbolic dimension has no ceil: split n ways it is dim / n exactly, which is recorded as an assumption of the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Shard
from minipd.framework import dtype as dtypes
from minipd.framework.dim import DimExpr, exact_div

__all__: list[str] = []


def chunk(n: Any, ways: int, index: int) -> tuple[Any, Any]:
    """(size, offset) of chunk `index` when n elements are split `ways` ways.

    >>> [chunk(5, 4, i) for i in range(4)]
    [(2, 0), (2, 2), (1, 4), (0, 5)]
    """
    if type(n) is DimExpr:
        size = n if ways == 1 else exact_div(n, ways, f"dimension {n} split {ways} ways")
        return size, size * index
    return ceil_chunk(n, ways, index)


def ceil_chunk(n: int, ways: int, index: int) -> tuple[int, int]:
    """`chunk` of a number: ceil(n / ways) elements for every rank until they run out.

    The last chunks may be short or empty; an empty one stands at n, the end.

    >>> [ceil_chunk(7, 3, i) for i in range(3)]
    [(3, 0), (3, 3), (1, 6)]
    """
    step = -(-n // ways)
    offset = min(step * index, n)
    return min(step, n - offset), offset


def chunk_sizes(n: Any, ways: int) -> tuple[Any, ...]:
    """The extents of all chunks: (2, 2, 1, 0) for 5 split 4 ways."""
    return tuple(chunk(n, ways, i)[0] for i in range(ways))


def local_window(shape: Sequence[Any], mesh: ProcessMesh, placements: Sequence[Placement],
                 rank: int) -> tuple[tuple, tuple]:
    """(local shape, offsets): the block of the global tensor that `rank` holds.

    Replicate and Partial axes leave it whole (what a Partial rank holds has the full extent).

    >>> from minipd.dist.mesh import parse_mesh
    >>> mesh = parse_mesh("dp=2,tp=2")
    >>> [local_window((5, 3), mesh, (Shard(0), Shard(0)), rank) for rank in range(4)]
    [((2, 3), (0, 0)), ((1, 3), (2, 0)), ((1, 3), (3, 0)), ((1, 3), (4, 0))]
    """
    at = mesh.coordinate(rank)
    sizes, offsets = list(shape), [0] * len(shape)
    for axis, p in enumerate(placements):
        if isinstance(p, Shard):
            sizes[p.dim], offset = chunk(sizes[p.dim], mesh.sizes[axis], at[axis])
            offsets[p.dim] = offsets[p.dim] + offset
    return tuple(sizes), tuple(offsets)


def check_local_shape(local: Sequence[int], shape: Sequence[int], mesh: ProcessMesh, placements: Sequence[Placement],
                      rank: int, what: str = "tensor") -> None:
    """ValueError unless a rank's own piece has the shape that the split rule gives it."""
    expected = local_window(shape, mesh, placements, rank)[0]
    if tuple(local) != expected:
        raise ValueError(f"{what}: expected a local shape {list(expected)} on rank {rank} for "
                         f"{sharding_text(shape, None, mesh, placements)} (chunks of ceil(n / ways), outer mesh axis "
                         f"first), got {list(local)}; split the data by this rule, or give the global shape that it "
                         "belongs to")


def sharding_text(shape: Sequence[Any], dtype: Any, mesh: ProcessMesh, placements: Sequence[Placement]) -> str:
    """The one notation: every dimension with the mesh axes that split it (outermost first), then what is partial.

    >>> from minipd.dist.mesh import parse_mesh
    >>> import numpy as np
    >>> sharding_text((16, 128, 64), np.dtype("float32"), parse_mesh("dp=2,tp=2,pp=2"), (Shard(0), Shard(2), Partial()))
    'f32[16_dp, 128, 64_tp]{P_pp}'
    """
    dims = [str(d) for d in shape]
    partial = []
    for p, name in zip(placements, mesh.names, strict=True):
        if isinstance(p, Shard):
            dims[p.dim] += f"_{name}"
        elif isinstance(p, Partial):
            partial.append(("P" if p.op == "sum" else f"P{p.op}") + f"_{name}")
    head = "" if dtype is None else dtypes.of(dtype).short
    return f"{head}[{', '.join(dims)}]" + (f"{{{', '.join(partial)}}}" if partial else "")
