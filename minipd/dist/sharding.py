"""The split rule: which rank owns which elements.  Data, checkpoints, plans and messages all ask here.

One mesh axis splits n elements over `ways` ranks into ceil-sized chunks: every chunk has ceil(n / ways) elements until
they run out, so 5 over 4 is 2, 2, 1, 0.  Where several mesh axes split one dimension, the outer axis splits first and
the next one splits each chunk again: 5 over 2 x 2 is (3, 2), then (2, 1) and (1, 1).  `shard_order` gives another order
of the axes.  With a `split_factor` of k the axis splits each of k equal parts of what there is, so that a rank holds
several runs of elements, one after the other.

The invariant: over the ranks along any set of mesh axes, what they hold is a partition of the tensor; in rank order,
where the axes split in the order of the mesh and no factor parts a dimension.

A symbolic dimension has no ceil: split n ways it is dim / n exactly, which is recorded as an assumption of the trace.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Shard, splitting_order
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


def split_axes(placements: Sequence[Placement], dim: int) -> tuple[int, ...]:
    """The mesh axes that split dimension `dim`, the one that splits first in front.

    >>> split_axes((Shard(0, shard_order=1), Shard(1), Shard(0)), 0)
    (2, 0)
    """
    return tuple(axis for axis in splitting_order(placements) if placements[axis].is_shard(dim))


def local_window(shape: Sequence[Any], mesh: ProcessMesh, placements: Sequence[Placement],
                 rank: int) -> tuple[tuple, tuple]:
    """(local shape, offsets): the block of the global tensor that `rank` holds.

    Replicate and Partial axes leave it whole (what a Partial rank holds has the full extent).
    Raises: ValueError if what it holds is no one block, because of a split factor (`local_blocks` gives them all).

    >>> from minipd.dist.mesh import parse_mesh
    >>> mesh = parse_mesh("dp=2,tp=2")
    >>> [local_window((5, 3), mesh, (Shard(0), Shard(0)), rank) for rank in range(4)]
    [((2, 3), (0, 0)), ((1, 3), (2, 0)), ((1, 3), (3, 0)), ((1, 3), (4, 0))]
    """
    at = mesh.coordinate(rank)
    sizes, offsets = list(shape), [0] * len(shape)
    for axis in splitting_order(placements):
        p = placements[axis]
        assert isinstance(p, Shard)
        if p.factor > 1:
            return _only_window(shape, mesh, placements, rank)
        sizes[p.dim], offset = chunk(sizes[p.dim], mesh.sizes[axis], at[axis])
        offsets[p.dim] = offsets[p.dim] + offset
    return tuple(sizes), tuple(offsets)


Run = tuple[int, int]                   # (offset, size) of consecutive elements of a dimension


def _only_window(shape: Sequence[Any], mesh: ProcessMesh, placements: Sequence[Placement],
                 rank: int) -> tuple[tuple, tuple]:
    """The window of placements with a split factor, for a rank that holds one run of every dimension all the same."""
    runs = local_runs(shape, mesh, placements, rank)
    if any(len(r) > 1 for r in runs):
        text = sharding_text(shape, None, mesh, placements)
        raise ValueError(f"local_window: expected rank {rank} to hold one block of {text}, got the runs "
                         f"{[list(r) for r in runs]} of its dimensions, for a split factor parts it; ask local_blocks "
                         "for them, or reshard to a Shard without split_factor")
    return tuple(r[0][1] for r in runs), tuple(r[0][0] for r in runs)


def local_runs(shape: Sequence[int], mesh: ProcessMesh, placements: Sequence[Placement],
               rank: int) -> tuple[tuple[Run, ...], ...]:
    """For each dimension the runs (offset, size) of it that `rank` holds, in the order in which it holds them.

    At least one run each: a rank without elements has one of size 0.
    Raises: ValueError if a split factor does not divide the extent that it shall part.

    >>> from minipd.dist.mesh import parse_mesh
    >>> [local_runs((12, 3), parse_mesh("tp=2"), (Shard(0, split_factor=3),), rank)[0] for rank in range(2)]
    [((0, 2), (4, 2), (8, 2)), ((2, 2), (6, 2), (10, 2))]
    """
    check_factors(shape, mesh, placements)
    at = mesh.coordinate(rank)
    held: list[list[Run]] = [[(0, n)] for n in shape]
    for axis in splitting_order(placements):
        p: Any = placements[axis]
        part = sum(n for _, n in held[p.dim]) // p.factor
        size, offset = ceil_chunk(part, mesh.sizes[axis], at[axis])
        held[p.dim] = _joined(run for i in range(p.factor) for run in _cut(held[p.dim], i * part + offset, size))
    return tuple(map(tuple, held))


def _cut(runs: Sequence[Run], start: int, size: int) -> Iterator[Run]:
    """The `size` elements from number `start` on of what the runs hold."""
    end = start + size
    for offset, n in runs:
        first, last = max(start, 0), min(end, n)
        if first < last or size == 0 and 0 <= start <= n:
            yield offset + first, max(last - first, 0)
        if size == 0 and 0 <= start <= n:
            return
        start, end = start - n, end - n


def _joined(runs: Iterator[Run]) -> list[Run]:
    """Runs that touch made one, those without elements left out (but for a last one)."""
    found: list[Run] = []
    for offset, n in runs:
        if found and (n == 0 or found[-1][1] == 0 or sum(found[-1]) == offset):
            before = found.pop()
            offset, n = (before[0], before[1] + n) if before[1] else (offset, n)
        found.append((offset, n))
    return found


def check_factors(shape: Sequence[Any], mesh: ProcessMesh, placements: Sequence[Placement]) -> None:
    """ValueError unless every split factor parts what its dimension has: on every rank, so that all of them raise if
    one must."""
    order = splitting_order(placements)
    if not any(placements[axis].factor > 1 for axis in order):      # type: ignore[attr-defined]
        return
    for rank in mesh.process_ids:
        at, sizes = mesh.coordinate(rank), list(shape)
        for axis in order:
            p: Any = placements[axis]
            extent = sizes[p.dim]
            if type(extent) is DimExpr:
                break                                   # is assumed to divide
            if extent % p.factor:
                raise ValueError(f"expected a dimension that {p!r} over {mesh.names[axis]} can see as {p.factor} equal "
                                 f"parts, got {extent} elements on rank {rank} of dimension {p.dim} of "
                                 f"{sharding_text(shape, None, mesh, placements)}; use a split_factor that divides "
                                 f"{extent}, or pad the tensor")
            sizes[p.dim] = p.factor * ceil_chunk(extent // p.factor, mesh.sizes[axis], at[axis])[0]


def local_shape(shape: Sequence[Any], mesh: ProcessMesh, placements: Sequence[Placement], rank: int) -> tuple:
    """The shape of what `rank` holds, whatever the placements.

    >>> from minipd.dist.mesh import parse_mesh
    >>> local_shape((12, 3), parse_mesh("tp=2"), (Shard(0, split_factor=3),), 1)
    (6, 3)
    """
    at = mesh.coordinate(rank)
    sizes = list(shape)
    for axis in splitting_order(placements):
        p: Any = placements[axis]
        part = sizes[p.dim]
        if p.factor > 1:
            check_factors(shape, mesh, placements)
            part = exact_div(part, p.factor, f"dimension {part} in {p.factor} parts") if type(part) is DimExpr else (
                part // p.factor)
        sizes[p.dim] = p.factor * chunk(part, mesh.sizes[axis], at[axis])[0]
    return tuple(sizes)


class Block(NamedTuple):
    """A block of the global tensor: `shape` at `offsets`, which lies at the place `at` of what a rank holds."""

    shape: tuple[int, ...]
    offsets: tuple[int, ...]
    at: tuple[int, ...]

    def of_whole(self, array: Any) -> Any:
        """The block of the global tensor, a view."""
        return array[(*(slice(o, o + n) for o, n in zip(self.offsets, self.shape, strict=True)), ...)]

    def of_local(self, array: Any) -> Any:
        """The block of what the rank holds, a view."""
        return array[(*(slice(o, o + n) for o, n in zip(self.at, self.shape, strict=True)), ...)]


def local_blocks(shape: Sequence[int], mesh: ProcessMesh, placements: Sequence[Placement], rank: int) -> list[Block]:
    """The blocks of the global tensor that `rank` holds: one, or where split factors part dimensions several.

    Blocks without elements are none.

    >>> from minipd.dist.mesh import parse_mesh
    >>> for block in local_blocks((12, 3), parse_mesh("tp=2"), (Shard(0, split_factor=3),), 1):
    ...     print(block)
    Block(shape=(2, 3), offsets=(2, 0), at=(0, 0))
    Block(shape=(2, 3), offsets=(6, 0), at=(2, 0))
    Block(shape=(2, 3), offsets=(10, 0), at=(4, 0))
    """
    placed = []
    for runs in local_runs(shape, mesh, placements, rank):
        starts = itertools.accumulate((n for _, n in runs), initial=0)
        placed.append([(n, offset, at) for (offset, n), at in zip(runs, starts, strict=False) if n])
    return [Block(*(tuple(part) for part in zip(*chosen, strict=True)) if chosen else ((), (), ()))
            for chosen in itertools.product(*placed)]


def local_part(whole: np.ndarray, mesh: ProcessMesh, placements: Sequence[Placement], rank: int) -> np.ndarray:
    """What `rank` holds of a tensor that is given whole: a copy."""
    out = np.empty(local_shape(whole.shape, mesh, placements, rank), whole.dtype)
    for block in local_blocks(whole.shape, mesh, placements, rank):
        block.of_local(out)[...] = block.of_whole(whole)
    return out


def check_local_shape(local: Sequence[int], shape: Sequence[int], mesh: ProcessMesh, placements: Sequence[Placement],
                      rank: int, what: str = "tensor") -> None:
    """ValueError unless a rank's own piece has the shape that the split rule gives it."""
    expected = local_shape(shape, mesh, placements, rank)
    if tuple(local) != expected:
        raise ValueError(f"{what}: expected a local shape {list(expected)} on rank {rank} for "
                         f"{sharding_text(shape, None, mesh, placements)} (chunks of ceil(n / ways), outer mesh axis "
                         f"first), got {list(local)}; split the data by this rule, or give the global shape that it "
                         "belongs to")


def sharding_text(shape: Sequence[Any], dtype: Any, mesh: ProcessMesh, placements: Sequence[Placement]) -> str:
    """The one notation: every dimension with the mesh axes that split it (the one that splits first in front), then
    what is partial.  A split factor stands in brackets: each of so many parts is split.

    >>> from minipd.dist.mesh import parse_mesh
    >>> import numpy as np
    >>> sharding_text((16, 128, 64), np.dtype("float32"), parse_mesh("dp=2,tp=2,pp=2"), (Shard(0), Shard(2), Partial()))
    'f32[16_dp, 128, 64_tp]{P_pp}'
    >>> placed = Shard(0, shard_order=1), Shard(0), Shard(1, split_factor=3)
    >>> sharding_text((16, 192), None, parse_mesh("dp=2,tp=2,pp=2"), placed)
    '[16_tp_dp, 192_pp(3)]'
    """
    dims = [str(d) for d in shape]
    for axis in splitting_order(placements):
        split: Any = placements[axis]
        dims[split.dim] += f"_{mesh.names[axis]}" + (f"({split.factor})" if split.factor > 1 else "")
    partial = []
    for p, name in zip(placements, mesh.names, strict=True):
        if isinstance(p, Partial):
            partial.append(("P" if p.op == "sum" else f"P{p.op}") + f"_{name}")
    head = "" if dtype is None else dtypes.of(dtype).short
    return f"{head}[{', '.join(dims)}]" + (f"{{{', '.join(partial)}}}" if partial else "")
