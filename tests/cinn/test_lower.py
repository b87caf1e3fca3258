"""Lowering: the loops of a group mean what its operators mean one after the other."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd.cinn.ir.ast import Const
from minipd.cinn.ir.interpreter import interpret
from minipd.cinn.ir.simplify import simplify
from minipd.cinn.ir.walk import blocks, loops
from minipd.cinn.lower import CannotLower, lower
from minipd.cinn.lower.analysis import analyse
from minipd.cinn.lower.calls import calls_of
from minipd.framework.dim import symbol
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation
from minipd.ops.reshape import Reshape
from tests.cinn.groups import BF16, group, run

F32, F64, I32, I64 = (np.dtype(t) for t in ("f4", "f8", "i4", "i8"))


def check(g, *arrays, rtol=1e-6, atol=0.0, reference=None):
    """Library kernels = block form = what it is for any number of rows; the block form."""
    expected = g.reference(*arrays) if reference is None else reference
    function = g.lower()
    for f in (function, g.lower(any_rows=True), simplify(function)):
        for a, b in zip(run(f, g, *arrays), expected, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a.astype(F64), b.astype(F64), rtol=rtol, atol=atol)
    return function


def normal(*shape, dtype=F32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# ------------------------------------------------------------------------------------------------------ groups
def rms_norm(x, w):
    return x * paddle.rsqrt((x * x).sum(-1, keepdim=True) / x.shape[-1] + 1e-6) * w


def softmax(x):
    e = paddle.exp(x - x.max(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def rms_norm_gradient(x, w, g):
    r = paddle.rsqrt((x * x).sum(-1, keepdim=True) / x.shape[-1] + 1e-6)
    n = x * r
    dn = g * w
    return r * (dn - n * ((dn * n).sum(-1, keepdim=True) / x.shape[-1])), (g * n).sum([0, 1])


KINDS = [
    ("E", lambda x, b: paddle.tanh(x + b) * 2, [(2, 3, 5), (5,)]),
    ("E", lambda x, b: (x * b, b + 1), [(2, 3, 5), (5,)]),
    ("E", lambda x, b: x / b, [(4, 1), (1, 3)]),
    ("E", lambda x: x.sum(1), [(3, 1, 2)]),
    ("R", rms_norm, [(2, 3, 5), (5,)]),
    ("R", softmax, [(4, 7)]),
    ("R", lambda x: (x / x.sum(), x.max()), [(3, 4)]),
    ("R", lambda x, y: x.max([1, 2]) * y, [(2, 3, 4), (2,)]),
    ("C", lambda x: x.sum([0, 1]) * 2, [(2, 3, 4)]),
    ("C", lambda x: x.sum(), [(2, 3, 4)]),
    ("C", lambda x, w: ((x * w).max(0), (x + w).min(0), x * w), [(3, 4), (4,)]),
    ("RC", rms_norm_gradient, [(2, 3, 5), (5,), (2, 3, 5)]),
    ("RC", lambda x: (paddle.exp(x - x.max(-1, keepdim=True)).sum(-1)).sum(), [(3, 4)]),
]


@pytest.mark.parametrize("expected, fn, shapes", KINDS)
@pytest.mark.parametrize("dtype", [F32, F64])
def test_kinds(expected, fn, shapes, dtype):
    g = group(fn, *((s, dtype) for s in shapes))
    check(g, *(normal(*s, dtype=dtype, seed=i) for i, s in enumerate(shapes)), rtol=2e-5)


@pytest.mark.parametrize("fn, shapes", [
    (lambda x: (x.sum(1), x.sum(2)), [(2, 3, 4)]),              # neither is the rows of the other
    (lambda x: x + x.sum(1), [(3, 3)]),                         # both dimensions would be one loop
    (lambda x: x - x.max(0, keepdim=True), [(3, 4)]),           # all rows wait for the last one
    (lambda x: x.sum(1), [(2, 3, 4)]),                          # a dimension in the middle
    (lambda x: paddle.matmul(x, x), [(3, 3)]),
    (lambda x: x.max(1), [(3, 0)]),                             # the library kernel raises
    (lambda x: (x.sum(0) * x.sum(0)).sum(), [(3, 4)]),          # a reduction of what is known after the last row
])
def test_what_no_loop_nest_computes_is_blocks_all_the_same(fn, shapes):
    g = group(fn, *((s, F32) for s in shapes))
    if shapes == [(3, 0)] or any(op.name() == "pd_op.matmul" for op in g.ops):
        with pytest.raises(CannotLower, match="of no elements|no column"):
            g.lower()
    else:
        check(g, *(normal(*s) for s in shapes), rtol=1e-5)


def test_one_block_for_each_operator():
    """A reduction is two; the output is a copy, in its own dtype."""
    names = [b.name for b in blocks(group(softmax, ((4, 7), BF16)).lower().body)]
    assert names == ["max_0__reduce_init", "max_0", "subtract_1", "exp_2", "sum_3__reduce_init", "sum_3", "divide_4",
                     "y0"]
    function = group(rms_norm_gradient, ((2, 3, 5), F32), ((5,), F32), ((2, 3, 5), F32)).lower()
    assert [(p.ndim, p.view) for p in function.params][:2] == [(2, ((0, 1), (2,))), (1, None)]
    by_name = {b.name: b for b in blocks(function.body)}
    assert [(v.name, v.kind) for v in by_name["sum_17"].iter_vars] == [("vi", "R"), ("vj", "S")]
    assert {x.var for x in loops(function.body)} >= {"i_sum_17", "j_sum_17", "j_sum_17__reduce_init", "j_y1"}


def test_any_rows_are_served_by_one_function():
    """Rows of 7 are what the function knows, not how many there are."""
    function = group(softmax, ((4, 7), F32)).lower(any_rows=True)
    for rows in (0, 1, 9):
        x, y = normal(rows, 7), np.empty((rows, 7), F32)
        interpret(function, [x], [y])
        np.testing.assert_allclose(y, group(softmax, ((rows, 7), F32)).reference(x)[0], rtol=1e-5)
    assert function == group(softmax, ((5, 7), F32)).lower(any_rows=True)


def test_a_fusion_operation_is_lowered_by_its_region():
    """Operands and results of the operation are the function's parameters, in order."""
    g = group(softmax, ((4, 7), F32))
    fusion = Operation("cinn_op.fusion", g.operands, {}, [v.type() for v in g.results], num_regions=1)
    block = fusion.regions[0].add_block()
    for op in g.ops:
        op.parent.remove(op)
        block.append(op)
    Builder(block).build("cf.yield", g.results)
    function = lower(fusion, "softmax")
    x, y = normal(4, 7), np.empty((4, 7), F32)
    interpret(function, [x], [y])
    assert function.name == "softmax" and function.comment == ("max", "subtract", "exp", "sum", "divide")
    np.testing.assert_allclose(y.sum(-1), 1, rtol=1e-6)


# -------------------------------------------------------------------------------------------------- hard cases
def test_c1_a_reshape_between_two_broadcasts_is_read_at_other_places():
    """PaddlePaddle/CINN PR 1489: reduce, broadcast, reshape, broadcast: with the reduction's indices, rows mix."""
    def fn(x):
        r = Reshape(x.sum(1, keepdim=True).expand([2, 3]), shape=(3, 2))
        return r.expand([4, 3, 2])

    g = group(fn, ((2, 3), F32))
    expected, = g.reference(np.arange(6, dtype=F32).reshape(2, 3))
    assert expected[0].tolist() == [[3, 3], [3, 12], [12, 12]]
    with pytest.raises(CannotLower, match="no common parts"):
        analyse(calls_of(g.ops), g.operands)
    check(g, np.arange(6, dtype=F32).reshape(2, 3))
    around = group(lambda x: x.sum(1, keepdim=True).expand([2, 3]), ((2, 3), F32))
    check(around, np.arange(6, dtype=F32).reshape(2, 3))


@pytest.mark.parametrize("n", [1, 31, 32, 33, 257, 300])
def test_c2_a_whole_tensor_reduced_and_used_element_by_element(n):
    """Paddle PR 76619: partial results that no element went into must be the reduction's identity."""
    for reduce in ("sum", "max"):
        g = group(lambda x, reduce=reduce: x / getattr(x, reduce)(), ((1, n), F32))
        check(g, -np.abs(normal(1, n)) - 1, rtol=1e-5)


@pytest.mark.parametrize("shape", [(8, 4), (1, 1), (3, 1031)])
def test_c4_very_small_and_large_reductions(shape):
    """Paddle PRs 63411, 63689."""
    check(group(lambda x: x.sum(-1), (shape, F32)), normal(*shape), atol=1e-6 * shape[-1] ** 0.5)
    check(group(lambda x: x.sum(), (shape, F32)), normal(*shape), atol=1e-6 * np.prod(shape) ** 0.5)


@pytest.mark.parametrize("fn, shape", [(lambda x: x.sum(-1), (3, 0)), (lambda x: x.sum(0), (0, 3)),
                                       (lambda x: x.sum(), (0, 3)), (lambda x: x * 2, (0, 3)),
                                       (lambda x: x / x.sum(-1, keepdim=True), (0, 3))])
def test_empty_tensors(fn, shape):
    check(group(fn, (shape, F32)), np.empty(shape, F32))


def test_extremes_and_nan_propagate_as_in_numpy():
    x = np.array([[1, np.nan, 2], [-np.inf] * 3, [np.inf, 1, -np.inf]], F32)
    check(group(lambda x: (x.max(-1), x.min(-1), x.sum(-1), softmax(x), paddle.maximum(x, 1.5)), (x.shape, F32)), x)


# -------------------------------------------------------------------------------------------------- particular
def test_adamw_is_one_loop():
    from minipd.ops.update import AdamW

    def step(p, g, m, v, t, lr, skip):
        return AdamW(p, g, m, v, t, lr, skip, weight_decay=0.1)

    g = group(step, *[((3, 5), F32)] * 4, ((), I64), ((), F32), ((), np.dtype(bool)))
    arrays = [normal(3, 5, seed=i) for i in range(3)] + [np.abs(normal(3, 5, seed=4))]
    for skip in (False, True):
        scalars = [np.array(3), np.array(0.01, F32), np.array(skip)]
        check(g, *arrays, *scalars, rtol=1e-5)
    arrays[1][0, 0] = np.nan                    # a gradient that is not finite, and a step that is skipped for it
    function = check(g, *arrays, *scalars)
    assert [p.ndim for p in function.params] == [1, 1, 1, 1, 0, 0, 0, 1, 1, 1]


def test_sgd():
    from minipd.ops.update import Sgd
    g = group(lambda p, g, lr, skip: Sgd(p, g, lr, skip), ((5,), F32), ((5,), F32), ((), F64), ((), np.dtype(bool)))
    for skip in (False, True):
        check(g, normal(5), normal(5, seed=1), np.array(0.1), np.array(skip))


def test_low_precision_is_rounded_once_at_the_end_and_where_cast_says_so():
    x = normal(4, 9).astype(BF16)
    fn = lambda x: (softmax(x) * 3, (x * 1.1).sum(-1))
    wide = group(fn, (x.shape, F32)).reference(x.astype(F32))
    check(group(fn, (x.shape, BF16)), x, rtol=2 ** -8, reference=wide)
    rounding = group(lambda x: (x * 1.1).astype("bfloat16").astype("float32"), ((9,), F32))
    check(rounding, normal(9), rtol=0)


def test_symbolic_sizes_are_read_from_the_arrays():
    s, t = symbol("S0"), symbol("S1")
    g = group(rms_norm_gradient, ((s, t, 5), F32), ((5,), F32), ((s, t, 5), F32))
    for rows in ((2, 3), (1, 4), (0, 3)):
        x, gy = normal(*rows, 5), normal(*rows, 5, seed=1)
        check(g, x, normal(5, seed=2), gy, rtol=1e-4, atol=1e-6)


def test_a_mean_over_symbolic_axes_counts_what_is_there():
    from minipd.framework.dim import prod
    from minipd.ops.creation import Full

    def mean(x):
        return x.sum() / Full(shape=(), value=prod(x.payload.shape), dtype=F32), x * 2

    g = group(mean, ((symbol("S0"), symbol("S1"), 5), F32))
    x = normal(2, 3, 5)
    check(g, x, rtol=1e-5, atol=1e-6, reference=(x.mean(), x * 2))


def test_a_size_that_is_known_in_one_operand_is_known():
    g = group(lambda x, y: (x * y).sum(-1), ((symbol("S0"), 4), F32), ((3, 4), F32))
    assert all(isinstance(x.extent, Const) for x in loops(g.lower().body))
    check(g, normal(3, 4), normal(3, 4, seed=1), rtol=1e-5)


def test_a_sum_over_rows_counts_no_element_twice():
    """v lacks an axis that rows of x have: in the loop over those it would be added again and again."""
    g = group(lambda x, v: (x.max([1, 2]), x * v.unsqueeze(1), v.sum(0)),
              ((2, 3, 4), F32), ((2, 4), F32))
    check(g, normal(2, 3, 4), normal(2, 4))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_positions_are_computed(n):
    """The logit of a label: no array of positions is read."""
    def pick(x, label):
        return paddle.where(paddle.arange(n, dtype="int32") == label, x, 0.0).sum(-1)

    g = group(pick, ((3, n), F32), ((3, 1), I32))
    function = check(g, normal(3, n), np.array([[1], [0], [9]], I32))
    assert len(function.params) == 3


def test_a_counted_axis_is_not_merged():
    def fn(x):
        return x * paddle.arange(0.5, 4.5, 1.0, dtype="float32") + paddle.arange(3, dtype="float32").unsqueeze(-1)

    check(group(fn, ((2, 3, 4), F32)), normal(2, 3, 4))
    s = symbol("S0")
    g = group(lambda x: x * paddle.arange(x.shape[0], dtype="float32").unsqueeze(-1), ((s, 4), F32))
    x = normal(3, 4)
    check(g, x, reference=[x * np.arange(3, dtype=F32)[:, None]])


# ---------------------------------------------------------------------------------------------- random groups
UNARY = [lambda x: -x, paddle.abs, paddle.square, paddle.tanh, paddle.sin, lambda x: x * 0.5, lambda x: x + 2,
         lambda x: paddle.nn.functional.relu(x), lambda x: paddle.nn.functional.sigmoid(x),
         lambda x: paddle.where(x > 0, x, x * 0.25)]
BINARY = [lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, paddle.maximum, paddle.minimum,
          lambda x, y: paddle.where(x < y, x, y), lambda x, y: x + paddle.full_like(y, 3)]
INT_UNARY = [lambda x: -x, paddle.abs, paddle.square, lambda x: x * 3, lambda x: x + 2,
             lambda x: paddle.where(x > 0, x, x * 2), lambda x: (x == 1).astype(x.dtype)]


@st.composite
def random_groups(draw, dtype, sizes=(2, 3, 5, 2, 3, 1, 0)):
    """A function made of random operators, and arrays for it.  Not every one is a loop nest."""
    base = draw(st.lists(st.sampled_from(sizes), min_size=draw(st.sampled_from([2, 1])), max_size=3))
    shapes = [tuple(base)] + [tuple(n if draw(st.booleans()) else 1 for n in base)[draw(st.integers(0, len(base))):]
                              for _ in range(draw(st.integers(0, 2)))]
    values = (st.sampled_from([0.0, 1.0, -2.0, 0.5, 3.0, np.inf, -np.inf, np.nan]) if dtype.kind != "i" else
              st.integers(-4, 4))
    plain = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = []
    for shape in shapes:
        count = int(np.prod(shape))
        if plain or count > 40:
            array = rng.integers(-4, 5, shape) if dtype.kind == "i" else rng.standard_normal(shape)
        else:
            array = np.array(draw(st.lists(values, min_size=count, max_size=count))).reshape(shape)
        arrays.append(array.astype(dtype))
    unary = INT_UNARY if dtype.kind == "i" else UNARY
    steps = st.sampled_from(["along", "unary", "reduce", "binary", "along", "stretch"])
    recipe = draw(st.lists(st.tuples(steps, *[st.integers(0, 99)] * 3), min_size=2, max_size=7))
    one_result = draw(st.booleans())

    def fn(*inputs):
        have = list(inputs)
        for what, a, b, c in recipe:
            x, y = have[-1 - a % min(3, len(have))], have[b % len(have)]
            if what == "unary":
                have.append(unary[c % len(unary)](x))
            elif what == "binary":
                if _broadcast(x, y):
                    have.append(BINARY[c % len(BINARY)](x, y))
            elif what == "reduce" and x.ndim:
                first = b % x.ndim
                axes = list(range(first, x.ndim)) if c % 2 else list(range(0, first + 1))
                reduce = [paddle.sum, paddle.max, paddle.min][c // 2 % 3]
                if reduce is paddle.sum or 0 not in [x.shape[i] for i in axes]:
                    have.append(reduce(x, axis=axes, keepdim=bool(a % 2)).astype(x.dtype))
            elif what == "along" and x.ndim and x.shape[-1]:
                reduce = [paddle.sum, paddle.max, paddle.min][c % 3]
                have.append(BINARY[b % len(BINARY)](x, reduce(x, axis=-1, keepdim=True).astype(x.dtype)))
            elif what == "stretch" and _broadcast(x, inputs[0]):
                target = np.broadcast_shapes(tuple(x.shape), tuple(inputs[0].shape))
                axis = c % (x.ndim + 1)
                have.append(x.expand(list(target)) if c % 2 else x.unsqueeze(axis).squeeze(axis))
        made = have[len(inputs):] or [inputs[0] + inputs[0]]
        return made[-1] if one_result else tuple(made[-3:])

    return fn, arrays


def _broadcast(x, y):
    try:
        np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
    except ValueError:
        return False
    return True


def check_random(dtype, rtol, data):
    fn, arrays = data.draw(random_groups(dtype))
    g = group(fn, *((a.shape, dtype) for a in arrays))
    try:
        g.lower()
    except CannotLower as problem:
        assert "of no elements" in str(problem)
        assume(False)
    reference = None
    if dtype == BF16:                           # library kernels round after every operator, a group at the end
        wide = group(fn, *((a.shape, F32) for a in arrays))
        reference = wide.reference(*(a.astype(F32) for a in arrays))
    check(g, *arrays, rtol=rtol, atol=rtol, reference=reference)


in_every_dtype = pytest.mark.parametrize("dtype, rtol", [
    (F32, 2e-4), (F64, 1e-10), (I32, 0), (I64, 0), (BF16, 2 ** -7)])


@in_every_dtype
@settings(max_examples=40)
@given(data=st.data())
def test_random_groups(dtype, rtol, data):
    check_random(dtype, rtol, data)


@pytest.mark.long
@in_every_dtype
@settings(max_examples=400)
@given(data=st.data())
def test_many_random_groups(dtype, rtol, data):
    check_random(dtype, rtol, data)
