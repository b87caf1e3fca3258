"""One property for every rule: whatever the operands' placements, run on shards by the placements that the rule asks
for, the operator gives the whole result, in parts as the rule has promised.

No communication is needed for it: operands are cut to what the rule asks for, where it asks for a Partial in random
parts of mixed signs.  So a rule that lets a Partial pass says that the operator is linear there (or moves data, or
reduces by the same), and is held to it.
"""

import numpy as np

from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.sharding import local_window
from minipd.dist.spmd import DECOMPOSE, infer
from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from tests.dist.simulated import join, split

#: operands that every rank has
KEYS = ("key",)
R = Replicate()


def kinds_of(x):
    """The reductions whose parts can make x."""
    if x.dtype == bool:
        return ["any", "all"]
    if x.dtype.kind == "i":
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
        found.append(tuple(choices[rng.integers(len(choices))] for _ in mesh.sizes))
    tensors = [i for i, p in enumerate(found) if p is not None]
    sums = [i for i in tensors if "sum" in kinds_of(operands[i]) and operands[i].dtype.kind != "i"]
    if sums and not rng.integers(3):    # else blocks of several operands are rarely Partial together
        axis, block = rng.integers(mesh.ndim), sums if rng.integers(2) else [sums[rng.integers(len(sums))]]
        for i in tensors:
            p = found[i]
            found[i] = (*p[:axis], Partial() if i in block else R, *p[axis + 1:])
            if i in block:
                found[i] = tuple(R if q.is_partial() and q is not Partial() else q for q in found[i])
    return found


def pieces(row, operands, placements, mesh, rng):
    """For each operand what each rank holds of it; of a shape-only one the shape."""
    found = []
    for i, (x, placed) in enumerate(zip(operands, placements, strict=True)):
        if not isinstance(x, np.ndarray):
            found.append([x] * mesh.size)
        elif i in row.shape_only:
            found.append([Meta(local_window(x.shape, mesh, placed, rank)[0], x.dtype) for rank in mesh.process_ids])
        else:
            found.append(split(x, mesh, placed, rng))
    return found


def whole_result(row, operands, attrs):
    out = row.kernel(*(Meta(x.shape, x.dtype) if i in row.shape_only else x for i, x in enumerate(operands)), **attrs)
    return out if isinstance(out, tuple) else (out,)


def check_call(row, operands, attrs, mesh, rng, placements=None):
    """Checks one call on one mesh; returns what was inferred, or DECOMPOSE, of which nothing is checked."""
    given = draw_placements(row, operands, mesh, rng) if placements is None else placements
    got = infer(row, operands, given, attrs, mesh)
    if got is DECOMPOSE:
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
            assert o.shape == local_window(w.shape, mesh, placed, rank)[0], f"rank {rank}, {context}"
            assert o.dtype == w.dtype, f"rank {rank}, {context}"
        results.append(out)
    for k, (w, placed) in enumerate(zip(want, got.outputs, strict=True)):
        close(join([r[k] for r in results], mesh, placed), w, f"result {k} of {context}")
    return got


def close(got, want, context):
    assert got.shape == want.shape, context
    eps = dtypes.finfo(want.dtype).eps if want.dtype in dtypes.INEXACT else 0
    got, want = (x.astype(np.promote_types(x.dtype, float)) for x in (got, want))
    scale = np.abs(want[np.isfinite(want)]).max(initial=4.0)        # parts of a sum are as large as 4
    np.testing.assert_allclose(got, want, rtol=1e-9 + 8 * eps, atol=(1e-11 + 8 * eps) * scale, err_msg=context)
