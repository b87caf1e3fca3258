"""One property for every rule: whatever the operands' placements, run on shards by the placements that the rule asks
for, the operator gives the whole result, in parts as the rule has promised.

No communication is needed for it: operands are cut to what the rule asks for, where it asks for a Partial in random
parts of mixed signs.  So a rule that lets a Partial pass says that the operator is linear there (or moves data, or
reduces by the same), and is held to it.
"""

import itertools

import numpy as np

from minipd.autograd.mode import no_grad
from minipd.dist.api import dtensor_from_local
from minipd.dist.placements import Partial, Replicate, Shard, check_placements
from minipd.dist.sharding import local_shape
from minipd.dist.simulate import simulate
from minipd.dist.spmd import infer
from minipd.dist.spmd.table import Decompose
from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from tests.dist.simulated import REDUCE, ceil_chunks, random_parts

#: operands that every rank has
KEYS = ("key",)
R = Replicate()


def kinds_of(x):
    """The reductions whose parts can make x."""
    if x.dtype == bool:
        return ["any", "all"]
    if x.dtype.kind in "iu":
        return ["sum", "max", "min", "prod"]
    if not np.isfinite(x).all() or (np.signbit(x.real) & (x == 0)).any():       # no sum is -0
        return []
    return ["sum", "avg"] if x.dtype.kind == "c" else ["sum", "avg", "max", "min", "prod"]


def draw_placements(row, operands, mesh, rng):
    """Random placements for each operand, of all kinds; None for numbers, and for keys."""
    found = []
    for i, x in enumerate(operands):
        if not isinstance(x, np.ndarray) or not row.variadic and row.inputs[i] in KEYS:
            found.append(None)
            continue
        choices = [R, R, *map(Shard, range(x.ndim)), *map(Shard, range(x.ndim))]
        kinds = kinds_of(x)
        if kinds:                       # one kind for an operand: sums of maxima are no maxima of sums
            choices += [Partial(kinds[rng.integers(len(kinds))])] * 2
        drawn = [choices[rng.integers(len(choices))] for _ in mesh.sizes]
        found.append(check_placements(styled(x, drawn, mesh, rng), mesh, x.ndim))
    tensors = [i for i, p in enumerate(found) if p is not None]
    sums = [i for i in tensors if "sum" in kinds_of(operands[i]) and operands[i].dtype.kind not in "iu"]
    if sums and not rng.integers(3):    # else blocks of several operands are rarely Partial together
        axis, block = rng.integers(mesh.ndim), sums if rng.integers(2) else [sums[rng.integers(len(sums))]]
        for i in tensors:
            p = found[i]
            found[i] = (*p[:axis], Partial() if i in block else R, *p[axis + 1:])
            if i in block:
                found[i] = tuple(R if q.is_partial() and q is not Partial() else q for q in found[i])
    return found


def styled(x, placements, mesh, rng):
    """The same with orders and factors here and there."""
    if rng.integers(3):
        return placements
    orders = rng.permutation(mesh.ndim).tolist()
    found = [Shard(p.dim, shard_order=orders[i]) if p.is_shard() else p for i, p in enumerate(placements)]
    for i, p in enumerate(placements):
        alone = p.is_shard() and sum(q.is_shard(p.dim) for q in placements) == 1
        factors = [k for k in (2, 3) if alone and x.shape[p.dim] % k == 0]
        if factors and rng.integers(2):
            found[i] = Shard(p.dim, split_factor=factors[rng.integers(len(factors))])
    return found


def numbers(shape, mesh, placements, rank):
    """Which elements a rank has along each dimension."""
    found = [np.arange(n) for n in shape]
    axes = [axis for axis, p in enumerate(placements) if p.is_shard()]
    for axis in sorted(axes, key=lambda axis: placements[axis].order):
        p, at = placements[axis], mesh.coordinate(rank)[axis]
        parts = np.split(found[p.dim], p.factor)
        found[p.dim] = np.concatenate([ceil_chunks(part, 0, mesh.sizes[axis])[at] for part in parts])
    return found


def parts_of(x, mesh, placements, rng):
    """Where the ranks stand along the axes that are Partial -> what all those that stand there have the parts of."""
    found = {(): x}
    for p, size in zip(placements, mesh.sizes, strict=True):
        if p.is_partial():
            found = {(*at, i): part for at, whole in found.items()
                     for i, part in enumerate(random_parts(whole, p.op, size, rng))}
    return found


def standing(mesh, placements, rank):
    return tuple(i for i, p in zip(mesh.coordinate(rank), placements, strict=True) if p.is_partial())


def cut(x, mesh, placements, rng):
    """What each rank has of x."""
    parts = parts_of(x, mesh, placements, rng)
    return [np.ascontiguousarray(parts[standing(mesh, placements, rank)][np.ix_(*numbers(
        x.shape, mesh, placements, rank))]).reshape(local_shape(x.shape, mesh, placements, rank))
        for rank in mesh.process_ids]


def put_together(pieces, shape, mesh, placements):
    """The whole; ranks that have the same have the same bits."""
    parts, filled = {}, {}
    for piece, rank in zip(pieces, mesh.process_ids, strict=True):
        at = standing(mesh, placements, rank)
        whole = parts.setdefault(at, np.zeros(shape, piece.dtype))
        seen = filled.setdefault(at, np.zeros(shape, bool))
        block = np.ix_(*numbers(shape, mesh, placements, rank))
        known = np.asarray(seen[block]).reshape(piece.shape)
        np.testing.assert_array_equal(np.asarray(whole[block]).reshape(piece.shape)[known], piece[known])
        whole[block], seen[block] = piece, True
    assert all(seen.all() for seen in filled.values())
    for axis in reversed([axis for axis, p in enumerate(placements) if p.is_partial()]):
        op, size = placements[axis].op, mesh.sizes[axis]
        groups = itertools.groupby(sorted(parts), key=lambda at: at[:-1])
        parts = {at: [parts[k] for k in group] for at, group in groups}
        parts = {at: sum(g) / size if op == "avg" else REDUCE[op].reduce(g) for at, g in parts.items()}
    return np.asarray(parts[()])


def pieces(row, operands, placements, mesh, rng):
    """For each operand what each rank holds of it; of a shape-only one the shape."""
    found = []
    for i, (x, placed) in enumerate(zip(operands, placements, strict=True)):
        if not isinstance(x, np.ndarray):
            found.append([x] * mesh.size)
        elif i in row.shape_only:
            found.append([Meta(local_shape(x.shape, mesh, placed, rank), x.dtype) for rank in mesh.process_ids])
        else:
            found.append(cut(x, mesh, placed, rng))
    return found


def whole_result(row, operands, attrs):
    out = row.kernel(*(Meta(x.shape, x.dtype) if i in row.shape_only else x for i, x in enumerate(operands)), **attrs)
    return out if isinstance(out, tuple) else (out,)


def check_call(row, operands, attrs, mesh, rng, placements=None, in_parts=False):
    """Checks one call on one mesh; returns what was inferred.  A call that is to run in parts is run, ranks and all,
    if `in_parts`."""
    row.infer_meta(*operands, **attrs)              # it is a call that the operator takes
    given = draw_placements(row, operands, mesh, rng) if placements is None else placements
    got = infer(row, operands, given, attrs, mesh)
    if isinstance(got, Decompose):
        if in_parts:
            check_placed(row, operands, attrs, mesh, given, rng)
        return got
    context = (f"{row.name}{[getattr(x, 'shape', x) for x in operands]} {attrs} on {mesh.text()}, placed {given}: "
               f"inferred {got.inputs} -> {got.outputs}")
    want = whole_result(row, operands, attrs)
    locals_ = pieces(row, operands, got.inputs, mesh, rng)
    results = []
    for n, rank in enumerate(mesh.process_ids):
        try:
            out = row.kernel(*(x[n] for x in locals_), **got.attributes(attrs, mesh, rank))
        except Exception as error:
            error.add_note(f"rank {rank} of {context}")
            raise
        out = out if isinstance(out, tuple) else (out,)
        for o, w, placed in zip(out, want, got.outputs, strict=True):
            assert o.shape == local_shape(w.shape, mesh, placed, rank), f"rank {rank}, {context}"
            assert o.dtype == w.dtype, f"rank {rank}, {context}"
        results.append(out)
    for k, (w, placed) in enumerate(zip(want, got.outputs, strict=True)):
        close(put_together([r[k] for r in results], w.shape, mesh, placed), w, f"result {k} of {context}")
    return got


def check_placed(row, operands, attrs, mesh, placements, rng):
    """The same by the whole way: every rank calls the operator on distributed tensors."""
    locals_ = [None if p is None else cut(x, mesh, p, rng) for x, p in zip(operands, placements, strict=True)]

    def call(mesh):
        xs = [x if p is None else dtensor_from_local(pieces[current().rank], mesh, p, x.shape)
              for x, p, pieces in zip(operands, placements, locals_, strict=True)]
        with no_grad():
            out = row(*(Tensor(x) if isinstance(x, np.ndarray) else x for x in xs), **attrs)
        return [o.numpy() for o in (out if row.multi else (out,))]

    for rank, got in enumerate(simulate(mesh, call)):
        for g, w in zip(got, whole_result(row, operands, attrs), strict=True):
            close(g, w, f"rank {rank} of {row.name}{[getattr(x, 'shape', x) for x in operands]} {attrs} on "
                  f"{mesh.text()}, placed {placements}")


def close(got, want, context):
    assert got.shape == want.shape, context
    eps = dtypes.finfo(want.dtype).eps if want.dtype in dtypes.INEXACT else 0
    got, want = (x.astype(np.promote_types(x.dtype, float)) for x in (got, want))
    scale = np.abs(want[np.isfinite(want)]).max(initial=4.0)        # parts of a sum are as large as 4
    np.testing.assert_allclose(got, want, rtol=1e-9 + 8 * eps, atol=(1e-11 + 8 * eps) * scale, err_msg=context)
