"""Rules that move data, and reshape (D7)."""

import numpy as np
import pytest

from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.spmd import infer
from minipd.dist.spmd.reshape import groups
from minipd.framework.constraints import Constraints
from minipd.framework.dim import symbol
from minipd.framework.meta import Meta
from tests.dist.simulated import Named, all_placements, check_rule

R, P = Replicate(), Partial()
MESHES = ["x=2", "x=4", "x=2,y=2", "x=2,y=3"]
SIZES = (0, 1, 2, 3, 5, 6, 7, 8)


def shape(rng, ndim):
    return tuple(int(SIZES[i]) for i in rng.integers(len(SIZES), size=ndim))


def floats(rng, shape):
    return np.asarray(rng.integers(-5, 6, shape), np.float64)


def part_index(ndim, axes, starts, ends, strides):
    index = [slice(None)] * ndim
    for a, b, e, s in zip(axes, starts, ends, strides, strict=False):
        index[a] = slice(b, None if e < 0 else e, s)
    return tuple(index)


def sliced(x, *, axes, starts, ends, strides=None):
    return x[part_index(x.ndim, axes, starts, ends, strides or (1,) * len(axes))]


def set_value(x, value, *, axes, starts, ends, strides):
    out = x.copy()
    out[part_index(x.ndim, axes, starts, ends, strides)] = value
    return out


def random_part(rng, n):
    """(start, end, stride) as they arrive: normalised; often all of the dimension."""
    kind = rng.integers(4)
    if kind == 0 or n == 0:
        return 0, n, 1
    if kind == 1:
        return n - 1, -1, -int(rng.integers(1, 3))
    start = int(rng.integers(n))
    return start, int(rng.integers(start, n + 1)), int(rng.integers(1, 3)) if kind == 2 else 1


@pytest.mark.parametrize("mesh", MESHES)
def test_moves(mesh):
    rng, mesh = np.random.default_rng(9), parse_mesh(mesh)
    for _ in range(80):
        ndim = int(rng.integers(1, 4))
        x = floats(rng, shape(rng, ndim))
        perm = tuple(int(p) for p in rng.permutation(ndim))
        check_rule("transpose", (x,), {"perm": perm}, lambda x, *, perm: x.transpose(perm), mesh, rng)
        axis = tuple(sorted(int(a) for a in rng.choice(ndim + 2, 2, replace=False)))
        check_rule("unsqueeze", (x,), {"axis": axis}, lambda x, *, axis: np.expand_dims(x, axis), mesh, rng)
        y = np.expand_dims(x, axis)
        check_rule("squeeze", (y,), {"axis": axis}, lambda x, *, axis: np.squeeze(x, axis), mesh, rng)
        small = tuple(1 if rng.random() < 0.4 else d for d in x.shape[rng.integers(ndim):])
        check_rule("expand", (floats(rng, small),), {"shape": x.shape}, lambda x, *, shape: np.broadcast_to(x, shape),
                   mesh, rng)


@pytest.mark.parametrize("mesh", MESHES)
def test_parts(mesh):
    rng, mesh = np.random.default_rng(10), parse_mesh(mesh)
    for _ in range(100):
        ndim = int(rng.integers(1, 4))
        x = floats(rng, shape(rng, ndim))
        axes = tuple(d for d in range(ndim) if rng.random() < 0.6)
        parts = [random_part(rng, x.shape[a]) for a in axes]
        attrs = {"axes": axes, "starts": tuple(p[0] for p in parts), "ends": tuple(p[1] for p in parts)}
        strides = tuple(p[2] for p in parts)
        if all(s == 1 for s in strides):
            check_rule("slice", (x,), attrs, sliced, mesh, rng)
        check_rule("strided_slice", (x,), attrs | {"strides": strides}, sliced, mesh, rng)
        part = sliced(x, **attrs, strides=strides).shape
        value = tuple(1 if rng.random() < 0.3 else d for d in part[rng.integers(ndim + 1):])
        value = (1,) * int(rng.integers(2)) + value
        check_rule("set_value", (x, floats(rng, value)), attrs | {"strides": strides}, set_value, mesh, rng)
        check_rule("set_value", (x, 7.0), attrs | {"strides": strides}, set_value, mesh, rng)


@pytest.mark.parametrize("mesh", MESHES)
def test_concat_split_triangles(mesh):
    rng, mesh = np.random.default_rng(11), parse_mesh(mesh)
    for _ in range(60):
        ndim = int(rng.integers(1, 4))
        s, axis = list(shape(rng, ndim)), int(rng.integers(ndim))
        sections = tuple(int(n) for n in rng.integers(0, 5, size=rng.integers(1, 4)))
        xs = tuple(floats(rng, (*s[:axis], n, *s[axis + 1:])) for n in sections)
        check_rule("concat", xs, {"axis": axis}, lambda *xs, axis: np.concatenate(xs, axis), mesh, rng)
        whole = floats(rng, (*s[:axis], sum(sections), *s[axis + 1:]))
        check_rule("split", (whole,), {"sections": sections, "axis": axis},
                   lambda x, *, sections, axis: tuple(np.split(x, np.cumsum(sections)[:-1], axis)), mesh, rng)
        x, diagonal = floats(rng, shape(rng, int(rng.integers(2, 4)))), int(rng.integers(-3, 4))
        check_rule("tril", (x,), {"diagonal": diagonal}, lambda x, *, diagonal: np.tril(x, diagonal), mesh, rng)
        check_rule("triu", (x,), {"diagonal": diagonal}, lambda x, *, diagonal: np.triu(x, diagonal), mesh, rng)


def test_partials_of_any_kind_move():
    mesh = parse_mesh("x=2")
    for kind in (P, Partial("max"), Partial("min"), Partial("avg")):
        assert infer(Named("transpose"), (np.zeros((2, 3)),), ((kind,),), {"perm": (1, 0)}, mesh).outputs == ((kind,),)
        assert infer(Named("concat"), (np.zeros(2),) * 2, ((kind,), (kind,)), {"axis": 0}, mesh).outputs == ((kind,),)
    assert infer(Named("concat"), (np.zeros(2),) * 2, ((P,), (R,)), {"axis": 0}, mesh).outputs == ((R,),)
    # a triangle puts zeros, which are no identity of max
    assert infer(Named("tril"), (np.zeros((2, 3)),), ((Partial("max"),),), {}, mesh).outputs == ((R,),)


# ------------------------------------------------------------------------------------------------------ reshape
def reshape(x, *, shape):
    return x.reshape(shape)


SHAPES = [
    ((6, 12, 24), (72, 24)), ((6, 12, 24), (6, 288)), ((6, 12), (72,)), ((6, 8), (6, 4, 2)), ((6, 8), (6, 2, 4)),
    ((6, 8), (3, 2, 8)), ((12, 8), (16, 6)), ((1, 6, 1, 4), (6, 4)), ((6, 4), (1, 6, 1, 4)), ((5, 3), (15,)),
    ((15,), (5, 3)),
    ((7,), (1, 7, 1)), ((1,), (1, 1)), ((1,), ()), ((), (1, 1)), ((0, 3), (0,)), ((2, 0, 3), (2, 0)), ((2, 0), (0, 5)),
    ((4, 3, 2), (2, 2, 3, 2)), ((8, 3), (2, 2, 2, 3)), ((2, 2, 2, 3), (8, 3)), ((7, 5), (5, 7)), ((6, 5), (6, 5)),
]


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("source, target", SHAPES)
def test_reshape(source, target, mesh):
    rng, mesh = np.random.default_rng(12), parse_mesh(mesh)
    x = np.arange(float(np.prod(source))).reshape(source)
    for placed in all_placements(len(source), mesh):
        check_rule("reshape", (x,), {"shape": target}, reshape, mesh, rng, placements=(placed,))


def test_d7_a_reshape_that_cuts_through_a_sharded_dimension_gathers_first():
    """pytorch #179502: arange(96) as (12, 8), S(1) on 4, reshaped to (16, 6).  Legal to keep: a merge with the sharded
    dimension outermost, a split whose outer factor divides."""
    mesh = parse_mesh("x=4")

    def placed(source, dim, target):
        return infer(Named("reshape"), (np.zeros(source),), ((Shard(dim),),), {"shape": target}, mesh).outputs[0][0]

    assert placed((12, 8), 1, (16, 6)) == R
    assert placed((8, 12), 0, (96,)) == Shard(0)
    assert placed((8, 12), 1, (96,)) == R
    assert placed((24, 2), 0, (4, 6, 2)) == Shard(0)
    assert placed((24, 2), 0, (6, 4, 2)) == R          # 6 over 4 is 2, 2, 2, 0: not the rows of 24 over 4
    assert placed((6, 12), 0, (72,)) == R              # 2 * 12 = 24 elements, but 72 over 4 is 18
    assert placed((6, 12), 0, (6, 3, 4)) == Shard(0)   # untouched, uneven is fine
    assert placed((5, 12), 0, (1, 5, 12)) == Shard(1)


def test_uneven_chunks_may_align():
    """5 rows of 3 over 2 ranks are 9 and 6 elements; 15 over 2 is 8 and 7.  3 rows of 4 over 2: 8 and 4, 12: 6 and 6.
    But (3, 2) -> (6,) over 3: 2, 2, 2 on both sides."""
    def placed(source, target, mesh):
        got = infer(Named("reshape"), (np.zeros(source),), ((Shard(0),),), {"shape": target}, parse_mesh(mesh))
        return got.outputs[0][0]

    assert placed((5, 3), (15,), "x=2") == R
    assert placed((3, 4), (12,), "x=2") == R
    assert placed((3, 2), (6,), "x=3") == Shard(0)
    assert placed((2, 4), (8,), "x=4") == R            # 1, 1, 0, 0 rows of 4; 8 over 4 is 2 each


def test_groups_of_symbolic_dimensions():
    b, s = symbol("B"), symbol("S")
    assert groups((b, s, 64), (b * s, 4, 16)) == [((0, 1), (0,)), ((2,), (1, 2))]
    assert groups((b * s, 64), (b, s, 64)) == [((0,), (0, 1)), ((1,), (2,))]
    assert groups((1, b, 1, s), (b, s, 1)) == [((1,), (0,)), ((3,), (1,))]


def test_symbolic_reshape_keeps_the_leading_dimension_and_localises_its_target():
    b, s, mesh, f4 = symbol("B"), symbol("S"), parse_mesh("dp=2,tp=2"), np.dtype("f4")
    attrs = {"shape": (b * s, 4, 16)}
    got = infer(Named("reshape"), (Meta((b, s, 64), f4),), ((Shard(0), Shard(2)),), attrs, mesh)
    assert got.outputs == ((Shard(0), Shard(1)),)
    with Constraints().collect() as assumed:
        assert got.attributes(attrs, mesh, 3) == {"shape": (b * s / 2, 2, 16)}
    assert [str(c.left) for c in assumed] == ["B*S"]
    got = infer(Named("reshape"), (Meta((b, s, 64), f4),), ((Shard(1), R),), attrs, mesh)
    assert got.inputs == ((R, R),)
