"""Ranks as a list, for tests: split a global array by placements, run something on every piece, put the pieces
together.

Written apart from the library: nested halves and concatenations instead of windows and offsets, so that it can be its
oracle.
"""

import itertools
import math

import numpy as np

from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.sharding import local_window
from minipd.dist.spmd import infer
from minipd.dist.spmd.table import Decompose
from minipd.framework.meta import Meta


class Named:
    """As much of a row as inference looks at."""

    def __init__(self, name):
        self.name = name


def ceil_chunks(array, dim, ways):
    step = -(-array.shape[dim] // ways)
    return [np.take(array, range(min(i * step, array.shape[dim]), min((i + 1) * step, array.shape[dim])), dim)
            for i in range(ways)]


def random_parts(array, op, ways, rng):
    """`ways` arrays whose reduction is `array`: of mixed signs (for sums up to rounding, the parts are small integers),
    and for extremes and truth with elements that do not count."""
    if op in ("sum", "avg"):
        parts = [rng.integers(-4, 5, array.shape).astype(array.dtype) for _ in range(ways - 1)]
        total = array * ways if op == "avg" else array
        return [*parts, np.asarray(total - sum(parts), array.dtype)]
    if op == "prod":                                # factors that divide exactly
        parts = [np.asarray(rng.choice([-1, 1, -2, 2] if array.dtype.kind in "fc" else [-1, 1], array.shape),
                            array.dtype) for _ in range(ways - 1)]
        factor = np.asarray(math.prod(parts), array.dtype)
        return [*parts, np.asarray(array / factor if array.dtype.kind in "fc" else array * factor)]
    owner = rng.integers(0, ways, array.shape)
    if op in ("any", "all"):                        # where some element has to be what the whole is, its owner's is
        other = rng.integers(0, 2, (ways, *array.shape)).astype(bool)
        return [np.asarray(np.where(owner == i, array, array & other[i] if op == "any" else array | other[i]))
                for i in range(ways)]
    away, limit = (np.subtract, "min") if op == "max" else (np.add, "max")
    at_the_end = False
    if array.dtype.kind in "iu":                    # there is nothing beyond
        end = getattr(np.iinfo(array.dtype), limit)
        at_the_end = array <= end + 3 if op == "max" else array >= end - 3
    others = [np.where(at_the_end, array, away(array, rng.integers(0, 4, array.shape).astype(array.dtype)))
              for _ in range(ways)]
    return [np.where(owner == i, array, other).astype(array.dtype) for i, other in enumerate(others)]


def split(array, mesh, placements, rng):
    """The local array of every rank, in the mesh's order: the outer axis is split first, its pieces again by the next.
    Replicas along an axis hold the same, also where it is a part of a sum along another axis."""
    if not placements:
        return [array]
    ways, p, inner = mesh.sizes[-len(placements)], placements[0], placements[1:]
    if isinstance(p, Replicate):
        return split(array, mesh, inner, rng) * ways
    pieces = ceil_chunks(array, p.dim, ways) if isinstance(p, Shard) else random_parts(array, p.op, ways, rng)
    return [local for piece in pieces for local in split(piece, mesh, inner, rng)]


REDUCE = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply, "any": np.logical_or,
          "all": np.logical_and}


def join(pieces, mesh, placements):
    """The global array, innermost axis first.  Replicas must agree to the bit."""
    for ways, p in reversed(list(zip(mesh.sizes, placements, strict=False))):
        groups = [pieces[i:i + ways] for i in range(0, len(pieces), ways)]
        if isinstance(p, Shard):
            pieces = [np.concatenate(g, p.dim) for g in groups]
        elif isinstance(p, Replicate):
            for g in groups:
                for other in g[1:]:
                    np.testing.assert_array_equal(g[0], other)
            pieces = [g[0] for g in groups]
        elif p.op == "avg":
            pieces = [sum(g) / len(g) for g in groups]
        else:
            pieces = [REDUCE[p.op].reduce(g).astype(g[0].dtype) for g in groups]       # numpy adds int32 up as int64
    return pieces[0]


def random_placements(ndim, mesh, rng, partial=("sum", "sum", "max", "avg")):
    """One random placement per axis; dimensions may be split by several axes."""
    choices = [Replicate(), *(Shard(d) for d in range(ndim)), Partial(partial[rng.integers(len(partial))])]
    return tuple(choices[rng.integers(len(choices))] for _ in mesh.sizes)


def all_placements(ndim, mesh, partial=("sum",)):
    choices = [Replicate()] + [Shard(d) for d in range(ndim)] + [Partial(op) for op in partial]
    return list(itertools.product(choices, repeat=mesh.ndim))


def run_inferred(got, operands, attrs, kernel, mesh, shape_only, rng):
    """The results of every rank's kernel on its pieces, put together by the inferred placements."""
    locals_ = []
    for i, (x, placed) in enumerate(zip(operands, got.inputs, strict=False)):
        if not isinstance(x, np.ndarray):
            locals_.append([x] * mesh.size)
        elif i in shape_only:
            locals_.append([Meta(local_window(x.shape, mesh, placed, rank)[0], x.dtype) for rank in mesh.process_ids])
        else:
            locals_.append(split(x, mesh, placed, rng))
    results = []
    for n, rank in enumerate(mesh.process_ids):
        out = kernel(*(x[n] for x in locals_), **got.attributes(attrs, mesh, rank))
        results.append(out if isinstance(out, tuple) else (out,))
    return [join([r[k] for r in results], mesh, placed) for k, placed in enumerate(got.outputs)]


def check_rule(name, operands, attrs, kernel, mesh, rng, shape_only=(), placements=None):
    """The property of every rule: run on shards, by the placements it asks for, the operator gives the global result.

    Returns the placements inferred, or a Decompose.
    """
    given = placements or [
        random_placements(x.ndim, mesh, rng, ("sum", "sum", "max", "avg") if x.dtype.kind == "f" else ("sum",))
        if isinstance(x, np.ndarray) else None for x in operands]
    got = infer(Named(name), operands, given, attrs, mesh)
    if isinstance(got, Decompose):
        return got
    context = f"{name} {[getattr(x, 'shape', x) for x in operands]} {attrs} placed {given}: inferred {got}"
    for x, before, after in zip(operands, given, got.inputs, strict=False):
        for axis, p in enumerate(after):
            assert isinstance(p, Replicate) or p.is_shard() and p.dim < x.ndim or isinstance(p, Partial), context
            # a Partial is only kept, never made of what was not Partial, except in add_n
            assert not isinstance(p, Partial) or p is before[axis] or name == "add_n", context
    wanted = kernel(*(Meta(x.shape, x.dtype) if i in shape_only else x for i, x in enumerate(operands)), **attrs)
    found = run_inferred(got, operands, attrs, kernel, mesh, shape_only, rng)
    for w, f in zip(wanted if isinstance(wanted, tuple) else (wanted,), found, strict=True):
        assert w.shape == f.shape, context
        np.testing.assert_allclose(f, w, rtol=1e-9, atol=1e-9, err_msg=context)
    return got


def global_index_noise(shape, window):
    """What stands for a counter-based generator: a function of the global index."""
    whole, offsets = (shape, (0,) * len(shape)) if window is None else window
    strides = [int(np.prod(whole[d + 1:])) for d in range(len(whole))]
    index = sum(((np.arange(n) + o) * s).reshape([-1] + [1] * (len(shape) - d - 1))
                for d, (n, o, s) in enumerate(zip(shape, offsets, strides, strict=False)))
    return (np.broadcast_to(index, shape) * 7919 % 101) / 101
