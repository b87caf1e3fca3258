"""Element-wise rules: on shards, placed as the rule asks, they give the global result (D2, D3, D5, D14)."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.spmd import DECOMPOSE, infer
from minipd.framework.meta import Meta
from tests.dist.simulated import Named, check_rule, global_index_noise, join, split

R, P = Replicate(), Partial()
MESHES = ["x=2", "x=4", "x=2,y=2", "x=2,y=3"]
SIZES = (0, 1, 2, 3, 5, 6, 7, 8)


def shape(rng, ndim=None):
    return tuple(int(SIZES[i]) for i in rng.integers(len(SIZES), size=rng.integers(4) if ndim is None else ndim))


def floats(rng, shape, low=-5):
    """Small integers, so that sums of parts are exact."""
    return np.asarray(rng.integers(low, 6, shape), np.float64)


def broadcastable(rng, n):
    """n shapes that broadcast: a common one, with leading dimensions missing and others 1."""
    full = shape(rng)
    shapes = []
    for _ in range(n):
        s = full[rng.integers(len(full) + 1):] if full and rng.random() < 0.3 else full
        shapes.append(tuple(1 if rng.random() < 0.25 else d for d in s))
    return shapes


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
    "divide": lambda x, y: x / (y + (y == 0)), "pow": lambda x, y: np.abs(x) ** y,
    "maximum": np.maximum, "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal, "less_than": np.less,
    "less_equal": np.less_equal, "greater_than": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "swiglu": lambda x, y: x / (1 + np.exp(-x)) * y,
}
UNARY = {
    "exp": np.exp, "log": lambda x: np.log(np.abs(x) + 1), "sqrt": lambda x: np.sqrt(np.abs(x)),
    "rsqrt": lambda x: 1 / np.sqrt(np.abs(x) + 1), "square": np.square, "abs": np.abs, "tanh": np.tanh, "sin": np.sin,
    "cos": np.cos, "logical_not": np.logical_not, "isfinite": np.isfinite, "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "silu": lambda x: x / (1 + np.exp(-x)), "assign": lambda x: x,
    "share_data_": lambda x: x,
}


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", BINARY)
@np.errstate(all="ignore")
def test_binary(name, mesh):
    rng = np.random.default_rng(1)
    for _ in range(40):
        a, b = broadcastable(rng, 2)
        check_rule(name, (floats(rng, a), floats(rng, b)), {}, BINARY[name], parse_mesh(mesh), rng)
    for number in (3, 0.5):
        check_rule(name, (floats(rng, (5, 3)), number), {}, BINARY[name], parse_mesh(mesh), rng)
        check_rule(name, (number, floats(rng, (5, 3))), {}, BINARY[name], parse_mesh(mesh), rng)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, mesh):
    rng = np.random.default_rng(2)
    for _ in range(40):
        check_rule(name, (floats(rng, shape(rng)),), {}, UNARY[name], parse_mesh(mesh), rng)


@pytest.mark.parametrize("mesh", MESHES)
def test_where_scale_cast_add_n(mesh):
    rng = np.random.default_rng(3)
    mesh = parse_mesh(mesh)
    for _ in range(60):
        c, a, b = broadcastable(rng, 3)
        check_rule("where", (floats(rng, c) > 0, floats(rng, a), floats(rng, b)), {}, np.where, mesh, rng)
        for bias in (0.0, 2.0):
            check_rule("scale", (floats(rng, a),), {"scale": -3.0, "bias": bias},
                       lambda x, *, scale, bias: x * scale + bias, mesh, rng)
        for dtype in ("float32", "int64"):
            check_rule("cast", (floats(rng, a) / 2,), {"dtype": np.dtype(dtype)}, lambda x, *, dtype: x.astype(dtype),
                       mesh, rng)
        s = shape(rng)
        xs = tuple(floats(rng, s) for _ in range(rng.integers(1, 5)))
        check_rule("add_n", xs, {}, lambda *xs: sum(xs), mesh, rng)


@pytest.mark.parametrize("mesh", MESHES)
def test_dropout_masks_by_global_index(mesh):
    """E5: the shards' masks concatenate to the single-rank mask, replicas agree."""
    rng = np.random.default_rng(4)

    def dropout(x, key, *, p, mode, window=None):
        return x * (global_index_noise(x.shape, window) >= p)

    for _ in range(60):
        attrs = {"p": 0.3, "mode": "upscale_in_train"}
        check_rule("dropout", (floats(rng, shape(rng)), np.array([1, 2])), attrs, dropout, parse_mesh(mesh), rng)


# ------------------------------------------------------------------------------------------------ the hard cases
def test_d2_a_partial_plus_a_number_is_resolved_first():
    """pytorch #163193: P[10 | 35] + 10 is 55, for a Python number, a 0-D tensor and a replicated tensor alike; on one
    axis of a 2-D mesh too."""
    one, two = parse_mesh("x=2"), parse_mesh("x=2,y=2")
    for ten, placed in ((10, None), (np.array(10.0), (R,)), (np.full((1,), 10.0), (R,))):
        got = infer(Named("add"), (np.array(45.0), ten), ((P,), placed), {}, one)
        assert got.inputs[0] == (R,) and got.outputs == ((R,),)
        got = infer(Named("subtract"), (ten, np.array(45.0)), (placed and placed * 2, (R, P)), {}, two)
        assert got.inputs[1] == (R, R) and got.outputs == ((R, R),)


def test_d3_a_partial_through_a_nonlinear_function_is_resolved_first():
    """[-3, 2 | 2, -1]: relu of the sum is [0, 1], the sum of relus [2, 2]."""
    mesh = parse_mesh("x=2")
    for name in ("relu", "square", "exp", "abs", "tanh", "isfinite"):
        assert infer(Named(name), (np.zeros(2),), ((P,),), {}, mesh).inputs == ((R,),)
    assert infer(Named("cast"), (np.zeros(2),), ((P,),), {"dtype": np.dtype("int32")}, mesh).inputs == ((R,),)
    assert infer(Named("cast"), (np.zeros(2),), ((P,),), {"dtype": np.dtype("float32")}, mesh).inputs == ((P,),)


def test_d5_products_of_partials():
    """pytorch PR #157340: P * P resolves both, P * R one; a scalar factor and a scalar divisor are free, R / P is
    not."""
    mesh, x, s = parse_mesh("x=2"), np.zeros((2, 2)), np.array(2.0)
    assert infer(Named("multiply"), (x, x), ((P,), (P,)), {}, mesh).inputs == ((R,), (R,))
    assert infer(Named("multiply"), (x, x), ((P,), (R,)), {}, mesh).inputs == ((R,), (R,))
    assert infer(Named("multiply"), (x, 3.0), ((P,), None), {}, mesh).outputs == ((P,),)
    assert infer(Named("multiply"), (s, x), ((R,), (P,)), {}, mesh).outputs == ((P,),)
    assert infer(Named("multiply"), (s, x), ((P,), (R,)), {}, mesh).outputs == ((R,),)
    assert infer(Named("divide"), (x, s), ((P,), (R,)), {}, mesh).outputs == ((P,),)
    assert infer(Named("divide"), (s, x), ((R,), (P,)), {}, mesh).inputs == ((R,), (R,))
    assert infer(Named("add"), (x, x), ((P,), (P,)), {}, mesh).outputs == ((P,),)
    assert infer(Named("add"), (x, x), ((P,), (Partial("max"),)), {}, mesh).inputs == ((R,), (R,))
    for given in (P, Partial("max")):                           # as in Paddle
        assert infer(Named("scale"), (x,), ((given,),), {"scale": -2.0}, mesh).outputs == ((R,),)


def test_add_n_keeps_one_all_reduce_for_all():
    """Gradients of a parameter used three times, two of them Partial: the replicated one is kept on one rank, so the
    sum is Partial and reduced once.  Beside a shard they become shards."""
    mesh, x = parse_mesh("x=2"), np.zeros((4, 2))
    got = infer(Named("add_n"), (x, x, x), ((P,), (R,), (P,)), {}, mesh)
    assert got.inputs == ((P,), (P,), (P,)) and got.outputs == ((P,),)
    got = infer(Named("add_n"), (x, x), ((P,), (R,)), {}, mesh)                 # (one alone would save nothing)
    assert got.inputs == ((R,), (R,)) and got.outputs == ((R,),)
    got = infer(Named("add_n"), (x, x), ((P,), (Shard(0),)), {}, mesh)
    assert got.inputs == ((Shard(0),), (Shard(0),)) and got.outputs == ((Shard(0),),)


def test_d14_broadcasting_and_dimensions_of_size_one():
    """Paddle PR #54373: [4, 1] S0 times [1, 6] S1 over another axis stays where it is; a dimension of 1 that grows is
    not split; [4, 6] S0 + [6] S0 over one axis conflict, because the bias lies along dimension 1."""
    two, one = parse_mesh("x=2,y=2"), parse_mesh("x=2")
    got = infer(Named("multiply"), (np.zeros((4, 1)), np.zeros((1, 6))), ((Shard(0), R), (R, Shard(1))), {}, two)
    assert got.outputs == ((Shard(0), Shard(1)),) and got.inputs == ((Shard(0), R), (R, Shard(1)))
    got = infer(Named("multiply"), (np.zeros((4, 1)), np.zeros((1, 6))), ((Shard(1),), (Shard(0),)), {}, one)
    assert got.inputs == ((R,), (R,))
    got = infer(Named("add"), (np.zeros((4, 6)), np.zeros(6)), ((Shard(0),), (Shard(0),)), {}, one)
    assert got.inputs == ((Shard(0),), (R,)) and got.outputs == ((Shard(0),),)


def test_a_conflict_keeps_the_larger_operand_in_place():
    mesh = parse_mesh("x=2")
    small, large = Meta((8,), np.dtype("f4")), Meta((64, 8), np.dtype("f4"))
    got = infer(Named("add"), (small, large), ((Shard(0),), (Shard(0),)), {}, mesh)
    assert got.inputs == ((R,), (Shard(0),))


def test_partial_meets_shard_by_one_reduce_scatter():
    mesh = parse_mesh("x=2")
    got = infer(Named("multiply"), (np.zeros((4, 6)), np.zeros((4, 6))), ((P,), (Shard(1),)), {}, mesh)
    assert got.inputs == ((Shard(1),), (Shard(1),))


def test_the_declared_linearity_of_the_harness():
    """The oracle itself: a split by any placements joins to what it was."""
    rng, mesh = np.random.default_rng(0), parse_mesh("x=2,y=3")
    x = floats(rng, (5, 7))
    for placed in ((P, Shard(0)), (Shard(1), Shard(1)), (Partial("max"), R), (Partial("avg"), P)):
        np.testing.assert_allclose(join(split(x, mesh, placed, rng), mesh, placed), x)


def test_no_rule_replicates_and_says_so_once():
    frob = SimpleNamespace(name="frob", multi=True, columns={}, infer_meta=lambda x, y: (Meta((2,), x.dtype),) * 3)
    x = np.zeros(2)
    with pytest.warns(UserWarning, match=r'frob: no SPMD rule.*@spmd\("frob"\)'):
        got = infer(frob, (x, x), ((Shard(0),), (P,)), {}, parse_mesh("x=2"))
    assert got.inputs == ((R,),) * 2 and got.outputs == ((R,),) * 3
    with warnings.catch_warnings(record=True) as said:
        infer(frob, (x, x), ((R,), (R,)), {}, parse_mesh("x=2"))
    assert not said


def test_no_rule_but_a_decomposition_runs_that():
    row = SimpleNamespace(name="frab", columns={"decompose": lambda x: x})
    assert infer(row, (np.zeros(2),), ((Shard(0),),), {}, parse_mesh("x=2")) is DECOMPOSE
