"""The operators of distribution: the marks of a global program, and the collectives of a rank's own.

`reshard`, `shard_tensor`, `match` and `align` are the identity on the global value; only the dist interpreter does
anything for them.  The collectives work on local values: the reshard steps and the partition put them there, below the
tape, so they have no gradient rule (a gradient sees global values only).  `stage_sum` alone is called by hand, where
meshes meet that a global value never spans: the stages of a pipeline.

`group` is a tuple of global ranks, `index` this rank's position in it, `sizes` the extents of the members' chunks.
What goes to a rank of another mesh is no collective: `p2p_send` here, `p2p_recv` there (`send_v2` and `recv_v2` in
Paddle's text).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.dist.comm.errors import MismatchError
from minipd.dist.placements import whole
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.ops.broadcast import as_operand

__all__: list[str] = []


@op("reshard", Trait.EXACT, dialect="dist_op")
class Reshard:
    """x under other placements, or on another mesh.

    The gradient is matched to the placements that x had, from whatever placements it arrives in: where x was sharded
    and is now replicated, a Partial gradient needs one reduce-scatter, not an all-reduce and a slice.  It crosses back
    to the mesh that x was on.
    """

    raw_gradient = True

    def infer_meta(x, *, mesh, placements):
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, mesh, placements):
        return x

    def vjp_x(g, x: Meta, mesh):
        like = as_operand(x)
        before = getattr(like.payload, "mesh", mesh)
        return Match(g, like) if before == mesh else Reshard(g, mesh=before, placements=whole(like.payload.placements))


@op("shard_tensor", Trait.EXACT, dialect="dist_op")
class ShardTensor:
    """x, marked with the mesh and the placements that it is to have: what `shard_tensor` leaves in a program.

    `mix2dist_pass` makes a type of the mark where x is an input or a parameter, and a reshard where x is computed.
    """

    raw_gradient = True

    def infer_meta(x, *, mesh, placements):
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, mesh, placements):
        return x

    def vjp_x(g, x: Meta):
        return Match(g, as_operand(x))


@op("dtensor_to_local", Trait.EXACT, dialect="dist_op")
class ToLocal:
    """What this rank holds of x, `shape` of it, as an ordinary tensor: where inserted communication begins, and where
    code begins that the user has written for a rank.

    mesh, placements: those of the gradient, of which the ranks' gradients are parts.
    """

    def infer_meta(x, *, shape, mesh=None, placements=None):
        return Meta(shape, x.dtype)

    def kernel(xp, x, *, shape, mesh=None, placements=None):
        return x

    def vjp_x(g, x: Meta, mesh, placements):
        return FromLocal(g, mesh=mesh, placements=placements, shape=tuple(x.shape))


@op("dtensor_from_local", Trait.EXACT, dialect="dist_op")
class FromLocal:
    """The global value, of `shape`, of which this rank holds x: where inserted communication, or the user's code for a
    rank, ends.  Its gradient is placed as it is."""

    def infer_meta(x, *, mesh, placements, shape):
        return Meta(shape, x.dtype)

    def kernel(xp, x, *, mesh, placements, shape):
        return x

    def vjp_x(g, x: Meta, mesh, placements):
        return ToLocal(g, shape=tuple(x.shape), mesh=mesh, placements=whole(placements))


@op("match", Trait.EXACT, dialect="dist_op")
class Match:
    """x with the placements of `like`, where a Partial one reads as Replicate: what a gradient owes its primal."""

    def infer_meta(x, like: Meta):
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, like):
        return x

    def vjp_x(g):
        return g


@op("align", Trait.MULTI, Trait.EXACT, dialect="dist_op")
class Align:
    """The operands of a composition, placed as one operator would place its own: see `framework.whole.aligned`.

    words: the letters of each one's dimensions.  prefer, lead: as in an SPMD rule (`dist.spmd.notation`).
    """

    def infer_meta(*xs, words, prefer=(), lead=None):
        return tuple(Meta(x.shape, x.dtype) for x in xs)

    def kernel(xp, *xs, words, prefer=(), lead=None):
        return xs

    def vjp(gs):
        return list(gs)


@op("stage_sum", Trait.COMM, dialect="dist_op")
class StageSum:
    """x, of which every place along an axis of `mesh` has its own, added up over them, in order.

    The x of one place is a value on that place's sub-mesh, placed as those of the others are: so the ranks along the
    axis have the same part of each.  `mesh` is the whole mesh, axis a name.
    """

    def infer_meta(x, *, mesh, axis):
        return Meta(x.shape, x.dtype)

    def kernel(comm, x, *, mesh, axis):
        return comm.all_reduce(x, mesh.group(comm.rank, mesh.axis(axis)), "sum")


def _with(shape: tuple, axis: int, size: Any) -> tuple:
    return (*shape[:axis], size, *shape[axis + 1:])


def _total(sizes: tuple) -> Any:
    total = sizes[0]
    for s in sizes[1:]:
        total = total + s
    return total


@op("all_reduce", Trait.COMM)
class AllReduce:
    """The members' values combined (sum, max, min, prod), on every member."""

    def infer_meta(x, *, group, op):
        return Meta(x.shape, x.dtype)

    def kernel(comm, x, *, group, op):
        return comm.all_reduce(x, group, op)


@op("all_gather", Trait.COMM)
class AllGather:
    """The members' chunks one after the other along `axis`, on every member."""

    def infer_meta(x, *, group, axis, sizes):
        return Meta(_with(x.shape, axis, _total(sizes)), x.dtype)

    def kernel(comm, x, *, group, axis, sizes):
        return comm.all_gather(x, group, axis, sizes)


@op("reduce_scatter", Trait.COMM)
class ReduceScatter:
    """The members' values combined, of which each keeps its chunk along `axis`."""

    def infer_meta(x, *, group, index, axis, sizes, op):
        return Meta(_with(x.shape, axis, sizes[index]), x.dtype)

    def kernel(comm, x, *, group, index, axis, sizes, op):
        return comm.reduce_scatter(x, group, axis, sizes, op)


@op("all_to_all", Trait.COMM)
class AllToAll:
    """Each member's value cut along `split_axis`; each gets its part of everybody's, joined along `concat_axis`."""

    def infer_meta(x, *, group, index, split_axis, concat_axis, split_sizes, concat_sizes):
        return Meta(_with(_with(x.shape, split_axis, split_sizes[index]), concat_axis, _total(concat_sizes)), x.dtype)

    def kernel(comm, x, *, group, index, split_axis, concat_axis, split_sizes, concat_sizes):
        return comm.all_to_all(x, group, split_axis, concat_axis, split_sizes, concat_sizes)


@op("broadcast", Trait.COMM, Trait.SIDE_EFFECT)
class Broadcast:
    """The value that the member `root` (a global rank) has, on every member; of the others' x only the shape is read.
    """

    def infer_meta(x, *, root, group):
        return Meta(x.shape, x.dtype)

    def kernel(comm, x, *, root, group):
        return comm.broadcast(x, root, group)


@op("p2p_send", Trait.COMM, Trait.SIDE_EFFECT, Trait.MULTI)
class P2PSend:
    """Gives x to rank `dst`, which gets it with a `p2p_recv` of the same `tag`.  No results, and it never waits."""

    outputs = ()

    def infer_meta(x, *, dst, tag=0):
        return ()

    def kernel(comm, x, *, dst, tag=0):
        comm.send(x, dst, tag)
        return ()


@op("p2p_recv", Trait.COMM, Trait.SIDE_EFFECT)
class P2PRecv:
    """What rank `src` gave this rank under `tag`, an array of this shape and dtype.

    Raises: MismatchError if what comes is another one.
    """

    def infer_meta(*, src, shape, dtype, tag=0):
        return Meta(tuple(shape), np.dtype(dtype))

    def kernel(comm, *, src, shape, dtype, tag=0):
        x = comm.recv(src, tag)
        if x.shape != tuple(shape) or x.dtype != dtype:
            raise MismatchError(f"p2p_recv: rank {comm.rank} expected {describe(Meta(tuple(shape), np.dtype(dtype)))} "
                                f"from rank {src} under tag {tag}, which sent {describe(x)}; the two programs differ: "
                                "partition them from one global program")
        return x
