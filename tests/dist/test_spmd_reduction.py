"""Rules of reductions and matmul (D1, D3, D11)."""

import numpy as np
import pytest

from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.spmd import DECOMPOSE, infer
from minipd.framework.dim import symbol
from minipd.framework.meta import Meta
from tests.dist.simulated import Named, check_rule, join, run_inferred, split

R, P = Replicate(), Partial()
MESHES = ["x=2", "x=4", "x=2,y=2", "x=2,y=3"]
SIZES = (0, 1, 2, 3, 5, 6, 7, 8)


def shape(rng, ndim=None, sizes=SIZES):
    return tuple(int(sizes[i]) for i in rng.integers(len(sizes), size=1 + rng.integers(3) if ndim is None else ndim))


def floats(rng, shape):
    return np.asarray(rng.integers(-5, 6, shape), np.float64)


def random_axes(rng, ndim):
    return tuple(d for d in range(ndim) if rng.random() < 0.5)


def reduce_with(function):
    def kernel(x, *, axis, keepdim):
        return np.asarray(function(x, axis=axis, keepdims=keepdim))
    return kernel


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name, function, sizes", [
    ("sum", np.sum, SIZES), ("mean", np.mean, SIZES[1:]), ("max", np.max, SIZES[1:]), ("min", np.min, SIZES[1:])])
def test_reductions(name, function, sizes, mesh):
    rng, decomposed = np.random.default_rng(5), 0
    for _ in range(80):
        x = floats(rng, shape(rng, sizes=sizes))
        attrs = {"axis": random_axes(rng, x.ndim), "keepdim": bool(rng.integers(2))}
        decomposed += check_rule(name, (x,), attrs, reduce_with(function), parse_mesh(mesh), rng) is DECOMPOSE
    assert (decomposed > 0) == (name == "mean")


@pytest.mark.parametrize("mesh", MESHES)
def test_argmax(mesh):
    rng = np.random.default_rng(6)
    for _ in range(40):
        x = floats(rng, shape(rng, sizes=SIZES[1:]))
        check_rule("argmax", (x,), {"axis": int(rng.integers(x.ndim)), "keepdim": bool(rng.integers(2))},
                   lambda x, *, axis, keepdim: np.argmax(x, axis, keepdims=keepdim), parse_mesh(mesh), rng)


@pytest.mark.parametrize("mesh", MESHES)
def test_reduce_as_and_expand_as_are_inverse_shapes(mesh):
    rng = np.random.default_rng(7)

    def reduce_as(x, target):
        lead = x.ndim - len(target.shape)
        x = x.sum(tuple(range(lead)))
        grown = tuple(i for i, (n, d) in enumerate(zip(x.shape, target.shape, strict=True)) if d == 1 and n != 1)
        return x.sum(grown, keepdims=True)

    for _ in range(60):
        full = shape(rng, 3)
        small = tuple(1 if rng.random() < 0.4 else d for d in full[rng.integers(3):])
        check_rule("reduce_as", (floats(rng, full), floats(rng, small)), {}, reduce_as, parse_mesh(mesh), rng, (1,))
        check_rule("expand_as", (floats(rng, small), floats(rng, full)), {},
                   lambda x, target: np.broadcast_to(x, target.shape), parse_mesh(mesh), rng, (1,))


def test_a_shape_only_operand_decides_only_if_nobody_else_does():
    mesh = parse_mesh("x=2")
    x, like = np.zeros((4, 6)), np.zeros(6)
    assert infer(Named("reduce_as"), (x, like), ((R,), (Shard(0),)), {}, mesh).outputs == ((Shard(0),),)
    assert infer(Named("reduce_as"), (x, like), ((Shard(0),), (Shard(0),)), {}, mesh).outputs == ((P,),)
    assert infer(Named("reduce_as"), (x, like), ((P,), (Shard(0),)), {}, mesh).outputs == ((P,),)
    got = infer(Named("reduce_as"), (x, like), ((R,), (P,)), {}, mesh)
    assert got.inputs == ((R,), (P,)) and got.outputs == ((R,),)


def test_what_is_expanded_comes_to_the_target():
    mesh, x, like = parse_mesh("x=2"), np.zeros((4, 1)), np.zeros((4, 6))
    for placed, target, result in ((R, Shard(0), Shard(0)), (R, Shard(1), Shard(1)), (Shard(0), Shard(1), Shard(1)),
                                   (Shard(0), R, R), (P, R, P), (P, Shard(0), Shard(0)), (R, P, R)):
        assert infer(Named("expand_as"), (x, like), ((placed,), (target,)), {}, mesh).outputs == ((result,),)


def test_d1_the_mean_over_uneven_shards_decomposes():
    """pytorch #162692: arange(12) as 3 rows over 2 ranks has the mean 5.5; the average of the ranks' means is 6.5.
    As one
    row, the second rank has nothing: 1.5, never NaN."""
    mesh = parse_mesh("x=2")
    for x, mean in ((np.arange(12.0).reshape(3, 4), 5.5), (np.arange(4.0).reshape(1, 4), 1.5)):
        assert infer(Named("mean"), (x,), ((Shard(0),),), {"axis": (0, 1)}, mesh) is DECOMPOSE
        total = infer(Named("sum"), (x,), ((Shard(0),),), {"axis": (0, 1), "keepdim": False}, mesh)
        assert total.outputs == ((P,),)
        found = run_inferred(total, (x,), {"axis": (0, 1), "keepdim": False}, reduce_with(np.sum), mesh, (), None)
        assert found[0] / x.size == mean
    assert infer(Named("mean"), (x,), ((Shard(0),),), {"axis": (1,)}, mesh).outputs == ((Shard(0),),)


def test_d3_extrema_of_partials_and_shards():
    """[1, 3 | 2, 1]: the maximum of the sum is 4, not 5 (the sum of maxima).  Over shards it is Partial(max)."""
    mesh = parse_mesh("x=2")
    assert infer(Named("max"), (np.zeros(2),), ((P,),), {"axis": (0,)}, mesh).inputs == ((R,),)
    assert infer(Named("max"), (np.zeros(4),), ((Shard(0),),), {"axis": (0,)}, mesh).outputs == ((Partial("max"),),)
    assert infer(Named("min"), (np.zeros(4),), ((Shard(0),),), {"axis": (0,)}, mesh).outputs == ((Partial("min"),),)


def test_a_rank_without_elements_has_no_maximum():
    """5 over 4 ranks is 2, 2, 1, 0: the last rank has nothing to take the maximum of, so x is gathered."""
    mesh = parse_mesh("x=4")
    assert infer(Named("max"), (np.zeros(5),), ((Shard(0),),), {"axis": (0,)}, mesh).inputs == ((R,),)
    assert infer(Named("max"), (np.zeros(8),), ((Shard(0),),), {"axis": (0,)}, mesh).inputs == ((Shard(0),),)
    got = infer(Named("max"), (np.zeros(5),), ((Shard(0), Shard(0)),), {"axis": (0,)}, parse_mesh("x=2,y=3"))
    assert got.inputs == ((Shard(0), R),)               # 3, 2 have elements; 3 over 3 has, 2 over 3 has not


# ------------------------------------------------------------------------------------------------------ matmul
def matmul(x, y, *, transpose_x=False, transpose_y=False):
    x = np.swapaxes(x, -1, -2) if transpose_x and x.ndim > 1 else x
    y = np.swapaxes(y, -1, -2) if transpose_y and y.ndim > 1 else y
    return np.asarray(x @ y)


@pytest.mark.parametrize("mesh", MESHES)
def test_matmul(mesh):
    rng = np.random.default_rng(8)
    for _ in range(150):
        m, n, k = (int(SIZES[i]) for i in rng.integers(len(SIZES), size=3))
        batch = shape(rng, 2)
        bx, by = (tuple(1 if rng.random() < 0.25 else d for d in batch[rng.integers(3):]) for _ in range(2))
        tx, ty = bool(rng.integers(2)), bool(rng.integers(2))
        x = (k,) if rng.random() < 0.15 else bx + ((k, m) if tx else (m, k))
        y = (k,) if rng.random() < 0.15 else by + ((n, k) if ty else (k, n))
        check_rule("matmul", (floats(rng, x), floats(rng, y)), {"transpose_x": tx, "transpose_y": ty}, matmul,
                   parse_mesh(mesh), rng)


def test_megatron_layers_need_no_communication_but_the_last_sum():
    """Column-parallel then row-parallel: x [b, s, d] @ [d, f_tp] @ [f_tp, d] is Partial over tp, and nothing moves."""
    mesh = parse_mesh("dp=2,tp=2")
    x, w1, w2 = np.zeros((8, 4, 16)), np.zeros((16, 64)), np.zeros((64, 16))
    first = infer(Named("matmul"), (x, w1), ((Shard(0), R), (R, Shard(1))), {}, mesh)
    assert first.inputs == ((Shard(0), R), (R, Shard(1))) and first.outputs == ((Shard(0), Shard(2)),)
    second = infer(Named("matmul"), (np.zeros((8, 4, 64)), w2), (first.outputs[0], (R, Shard(0))), {}, mesh)
    assert second.inputs == (first.outputs[0], (R, Shard(0))) and second.outputs == ((Shard(0), P),)


def test_matmul_conflicts_go_by_paddles_order():
    """Batch before n before m before k, whatever the sizes."""
    mesh = parse_mesh("x=2")
    x, y = np.zeros((6, 100, 24)), np.zeros((6, 24, 4))
    b, m, k, n = Shard(0), Shard(1), Shard(2), Shard(2)

    def chosen(px, py):
        return infer(Named("matmul"), (x, y), ((px,), (py,)), {}, mesh).outputs[0][0]

    assert chosen(b, n) == chosen(m, b) == chosen(k, b) == Shard(0)
    assert chosen(m, n) == chosen(k, n) == Shard(2)
    assert chosen(m, Shard(1)) == Shard(1)
    assert chosen(k, R) == chosen(R, Shard(1)) == chosen(k, Shard(1)) == P


def test_d11_a_contraction_split_by_two_axes_has_one_order():
    """pytorch #166598: A [S1, S1] times B [S0, S0] on a 2 x 2 mesh, both split outer axis first."""
    mesh, rng = parse_mesh("x=2,y=2"), np.random.default_rng(0)
    a = np.arange(16.0).reshape(4, 4)
    got = infer(Named("matmul"), (a, a), ((Shard(1),) * 2, (Shard(0),) * 2), {}, mesh)
    assert got.inputs == ((Shard(1),) * 2, (Shard(0),) * 2) and got.outputs == ((P, P),)
    found = run_inferred(got, (a, a), {}, matmul, mesh, (), rng)[0]
    assert found[0].tolist() == [56, 62, 68, 74] and found[3].tolist() == [344, 398, 452, 506]


def test_symbolic_sizes_are_placed_as_numbers_are():
    mesh, f4 = parse_mesh("dp=2,tp=2"), np.dtype("f4")
    x, w = Meta((symbol("B"), symbol("S"), 64), f4), Meta((64, 256), f4)
    got = infer(Named("matmul"), (x, w), ((Shard(0), R), (R, Shard(1))), {}, mesh)
    assert got.outputs == ((Shard(0), Shard(2)),)
    got = infer(Named("max"), (x,), ((Shard(0), R),), {"axis": (0,)}, mesh)
    assert got.outputs == ((Partial("max"), R),)


def test_the_harness_sees_a_wrong_rule():
    """A mean that averaged the ranks' means would be found out."""
    mesh, x = parse_mesh("x=2"), np.arange(12.0).reshape(3, 4)
    pieces = [np.mean(p, keepdims=True) for p in split(x, mesh, (Shard(0),), None)]
    assert join(pieces, mesh, (Partial("avg"),)) != 5.5
