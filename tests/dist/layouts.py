"""Random layouts of tensors on meshes, and what every rank holds under them: written without the split rule's code."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import strategies as st

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Replicate, Shard

R = Replicate()
REDUCE = {"sum": np.add, "avg": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
          "any": np.logical_or, "all": np.logical_and}
#: dtype -> the reductions that it has
KINDS = {"float64": ("sum", "max", "min", "prod", "avg"), "int64": ("sum", "max", "min", "prod", "avg"),
         "bool": ("any", "all")}


def elements(n, mesh, placements, dim, rank):
    """The elements of dimension `dim`, of extent n, that a rank holds: an array of all is split axis by axis.

    Raises: ValueError (of np.split) if a factor does not part it evenly.
    """
    held = np.arange(n)
    axes = [axis for axis in range(mesh.ndim) if isinstance(placements[axis], Shard) and placements[axis].dim == dim]
    for axis in sorted(axes, key=lambda axis: placements[axis].order):
        ways, at = mesh.sizes[axis], mesh.coordinate(rank)[axis]
        chunks = []
        for part in np.split(held, placements[axis].factor):
            step = math.ceil(len(part) / ways)
            chunks.append(part[step * at:step * at + step])
        held = np.concatenate(chunks)
    return held


def fits(shape, mesh, placements):
    """Whether the factors part every dimension evenly, on every rank and with axes gathered one after the other."""
    try:
        for dim, n in enumerate(shape):
            for rank in mesh.process_ids:
                elements(n, mesh, placements, dim, rank)
    except ValueError:
        return False
    return True


def pieces(x, mesh, placements, rng):
    """What the ranks hold, by rank: parts along Partial axes are random, and make x."""
    partial = [axis for axis, p in enumerate(placements) if isinstance(p, Partial)]
    held = {(): x}
    for axis in partial:                                # what is reduced last is parted first
        held = {(*place, i): part for place, value in held.items()
                for i, part in enumerate(parts(value, placements[axis].op, mesh.sizes[axis], rng))}
    found = {}
    for rank in mesh.process_ids:
        at = mesh.coordinate(rank)
        whole = held[tuple(at[axis] for axis in partial)]
        found[rank] = whole[np.ix_(*(elements(n, mesh, placements, d, rank) for d, n in enumerate(x.shape)))] \
            if x.ndim else whole
    return found


def parts(x, op, n, rng):
    """n arrays that make x: of different signs where there are signs."""
    if n == 1:
        return [x]
    if op in ("sum", "avg"):
        others = [rng.integers(-9, 9, x.shape).astype(x.dtype) for _ in range(n - 1)]
        return [x * (n if op == "avg" else 1) - sum(others), *others]
    if op == "prod":
        signs = [rng.choice([-1, 1], x.shape).astype(x.dtype) for _ in range(n - 1)]
        return [x * np.multiply.reduce(signs), *signs]
    if op in ("max", "min"):
        owner = rng.integers(0, n, x.shape)
        less = -1 if op == "max" else 1
        return [np.where(owner == i, x, x + less * rng.integers(0, 5, x.shape)).astype(x.dtype) for i in range(n)]
    owner = rng.integers(0, n, x.shape)
    noise = [rng.integers(0, 2, x.shape).astype(bool) for _ in range(n)]
    if op == "any":
        return [np.where(owner == i, x, x & noise[i]) for i in range(n)]
    return [np.where(owner == i, x, x | noise[i]) for i in range(n)]


def value(held, mesh, placements, shape, dtype):
    """The tensor that the ranks hold pieces of: the inner axes are reduced first.  Replicas must be equal."""
    partial = [axis for axis, p in enumerate(placements) if isinstance(p, Partial)]
    wholes = {}
    for rank in mesh.process_ids:
        place = tuple(mesh.coordinate(rank)[axis] for axis in partial)
        whole, seen = wholes.setdefault(place, (np.zeros(shape, dtype), np.zeros(shape, bool)))
        index = np.ix_(*(elements(n, mesh, placements, d, rank) for d, n in enumerate(shape))) if shape else ()
        assert held[rank].shape == whole[index].shape and held[rank].dtype == dtype
        assert np.array_equal(np.where(seen[index], whole[index], held[rank]), held[rank])
        whole[index], seen[index] = held[rank], True
    assert all(seen.all() for _, seen in wholes.values())
    found = {place: whole for place, (whole, _) in wholes.items()}
    for axis in reversed(partial):
        op, n = placements[axis].op, mesh.sizes[axis]
        outer = {place[:-1] for place in found}
        totals = {place: REDUCE[op].reduce([found[*place, i] for i in range(n)]) for place in outer}
        divided = np.floor_divide if dtype == "int64" else np.true_divide
        found = {place: divided(total, n) if op == "avg" else total for place, total in totals.items()}
    return found[()]


@st.composite
def meshes(draw, most=8, ranks=None):
    """A mesh of up to `most` ranks (of those given) in any order, of up to three axes."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda s: math.prod(s) <= most))
    order = draw(st.permutations(range(math.prod(sizes)) if ranks is None else ranks))
    return ProcessMesh(np.array(order[:math.prod(sizes)]).reshape(sizes), [f"a{i}" for i in range(len(sizes))])


@st.composite
def placed(draw, mesh, shape, dtype):
    """Placements that fit: any order, factors where they part evenly, reductions that the dtype has."""
    found = []
    for _ in mesh.sizes:
        kind = draw(st.sampled_from("RSSSP")) if shape else draw(st.sampled_from("RP"))
        if kind == "R":
            found.append(R)
        elif kind == "P":
            found.append(Partial(draw(st.sampled_from(KINDS[dtype]))))
        else:
            found.append(Shard(draw(st.integers(0, len(shape) - 1)), shard_order=draw(st.integers(0, 2)),
                               split_factor=draw(st.sampled_from([1, 1, 1, 2, 3]))))
    for axis in range(mesh.ndim):                       # leave out factors until all fit
        if not fits(shape, mesh, found) and isinstance(found[axis], Shard):
            found[axis] = found[axis].with_(split_factor=1)
    return tuple(found)


@st.composite
def tensors(draw):
    """(an array, its dtype's name)."""
    dtype = draw(st.sampled_from(["float64", "float64", "int64", "bool"]))
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 12]), max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    x = rng.integers(-9, 9, shape)
    return (x > 0 if dtype == "bool" else x.astype(dtype)), dtype


def every_placement(ndim, axes, kinds=("sum",)):
    """All tuples of plain placements."""
    return list(itertools.product([R, *map(Shard, range(ndim)), *map(Partial, kinds)], repeat=axes))
