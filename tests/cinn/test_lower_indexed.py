"""Lowering of what reads its operands at other places: reshapes, transposes, parts, joined tensors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd.cinn.ir.ast import INT64, For, IfThenElse, Load
from minipd.cinn.ir.build import const
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.walk import blocks, expressions, loops, statements, walk
from minipd.cinn.lower import CannotLower
from minipd.cinn.lower.analysis import analyse
from minipd.cinn.lower.calls import calls_of
from minipd.cinn.optim import finalize
from minipd.framework.dim import substitute_all, symbol
from minipd.ops.reshape import Reshape
from minipd.ops.slicing import SetValue, StridedSlice
from tests.cinn.groups import group, run

F32, I64 = np.dtype("f4"), np.dtype("i8")


def counted(*shape, dtype=F32, start=0):
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) + start).astype(dtype)


def check(fn, *arrays, rtol=1e-6):
    """Library kernels = block form; returns the function."""
    g = group(fn, *((a.shape, a.dtype) for a in arrays))
    function = g.lower()
    for a, b in zip(run(function, g, *arrays), g.reference(*arrays), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol)
    return function


def indices(function):
    """The texts of operators in indices: none where every index is a plain variable."""
    return {x.op for e in expressions(function.body) for load in walk(e) if isinstance(load, Load)
            for i in load.index for x in walk(i) if hasattr(x, "op")}


def set_part(x, v):
    return SetValue(x, v, axes=(0, 1), starts=(1, 6), ends=(3, -1), strides=(1, -2)) * 2


CASES = {
    "transpose": (lambda x: x.transpose([2, 0, 1]) * 2, [(2, 3, 4)]),
    "transpose beside itself": (lambda x: x + x.t(), [(3, 3)]),
    "rows beside columns": (lambda x: x + x.sum(1), [(3, 3)]),
    "outer product": (lambda x: x.unsqueeze(0) * x.unsqueeze(1), [(4,)]),
    "outer product of sums": (lambda x: (x.sum(1) * x.sum(1).unsqueeze(1)).sum(), [(3, 4)]),
    "transposed sum": (lambda x, y: (x.t() + y).sum(0), [(3, 4), (4, 3)]),
    "slice": (lambda x: x[1:, 2:4] + 1, [(3, 5)]),
    "strided": (lambda x: x[::-2, 1::3] + 1, [(4, 8)]),
    "index": (lambda x: x[1] * 3, [(3, 4)]),
    "halves": (lambda x: paddle.concat([-x[:, 3:], x[:, :3]], axis=1) * x, [(2, 6)]),
    "concat": (lambda x, y, z: paddle.concat([x, y * 2, z], axis=-1).sum(0), [(2, 3), (2, 1), (2, 4)]),
    "concat of nothing": (lambda x, y: paddle.concat([x, y], axis=0) * 2, [(0, 3), (2, 3)]),
    "stack": (lambda x, y: paddle.stack([x, y * 2], axis=1), [(2, 3), (2, 3)]),
    "split": (lambda x: [a * (n + 1.0) for n, a in enumerate(paddle.split(x, [1, 3, 2], axis=1))], [(2, 6)]),
    "chunk and swiglu": (lambda x: paddle.nn.functional.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], [(2, 6)]),
    "flip": (lambda x: paddle.flip(x, [0, 2]) + x, [(2, 3, 4)]),
    "roll": (lambda x: paddle.roll(x, [1, -2, 3], [0, 1, 0]) + x, [(3, 5)]),
    "pad": (lambda x: paddle.nn.functional.pad(x, [1, 2, 0, 1], value=7.0) * 2, [(1, 1, 2, 3)]),
    "write": (set_part, [(4, 7), (2, 4)]),
    "write a number": (lambda x, v: SetValue(x, v, axes=(1,), starts=(1,), ends=(6,), strides=(2,)), [(2, 7), ()]),
    "tril": (lambda x: paddle.tril(x, 1) - paddle.triu(x, -1), [(2, 3, 4)]),
    "eye": (lambda x: x * paddle.eye(3, 4), [(3, 4)]),
    "diagonal": (lambda x: paddle.diagonal(x, -1, 0, 2) * 2, [(3, 2, 4)]),
    "write a diagonal": (lambda x, y: paddle.diagonal_scatter(x, y, 1, 1, 2) * 2, [(2, 3, 4), (2, 3)]),
    "gradient of a diagonal": (lambda x, y: paddle.diagonal_scatter(x, y, -2, 0, 1), [(4, 3), (2,)]),
    "split and merge": (lambda x: (x.reshape([2, 3, 20]) + 1).reshape([2, 60]).sum(1), [(2, 12, 5)]),
    "heads": (lambda x: x.reshape([2, 3, 2, 4]).transpose([0, 2, 1, 3]) * 2, [(2, 3, 8)]),
    "merged, then with a row": (lambda x, w: x.reshape([6, 4]) * w + x.sum(), [(2, 3, 4), (4,)]),
    "cut at both ends": (lambda x: x.reshape([4, 3]) * x.sum(), [(2, 6)]),
    "no common parts": (lambda x: x.reshape([3, 2]) * 2, [(2, 3)]),
    "no common parts, in the middle": (lambda x: (x * 2).reshape([2, 6, 2]).sum(1), [(2, 4, 3)]),
    "reshape of nothing": (lambda x: x.reshape([0, 4]) * 2, [(2, 0)]),
    "pixel shuffle": (lambda x: x.reshape([1, 2, 2, 2, 3, 3]).transpose([0, 1, 4, 2, 5, 3]).reshape([1, 2, 6, 6]) + 1,
                      [(1, 8, 3, 3)]),
}


@pytest.mark.parametrize("case", CASES)
def test_elements_at_other_places(case):
    fn, shapes = CASES[case]
    check(fn, *(counted(*s, start=n) for n, s in enumerate(shapes)))


def test_c1_a_reshape_between_two_broadcasts():
    """PaddlePaddle/CINN PR 1489: reduce, broadcast, reshape, broadcast: with the reduction's indices, rows mix."""
    def fn(x):
        return Reshape(x.sum(1, keepdim=True).expand([2, 3]), shape=(3, 2)).expand([4, 3, 2])
    check(fn, counted(2, 3))
    g = group(fn, ((2, 3), F32))
    with pytest.raises(CannotLower, match="no common parts"):
        analyse(calls_of(g.ops), g.operands)
    assert len(analyse(calls_of(g.ops), g.operands, crossings=True).crossed) == 1


def group_norm(x, w, b):
    n, c, h, width = x.shape
    g = x.reshape([n, 2, c // 2 * h * width])
    mean = g.sum(-1, keepdim=True) / g.shape[-1]
    d = g - mean
    y = d * paddle.rsqrt((d * d).sum(-1, keepdim=True) / g.shape[-1] + 1e-5)
    return y.reshape([n, c, h, width]) * w.reshape([1, c, 1, 1]) + b.reshape([1, c, 1, 1])


def test_group_norm_has_no_division_in_its_indices():
    """A dimension is a product of axes: C = (groups, channels of one)."""
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s).astype(F32) for s in [(2, 6, 3, 5), (6,), (6,)])
    function = check(group_norm, x, w, b, rtol=2e-4)
    assert not indices(function)
    views = {p.name: p.view for p in function.params}
    assert views["x0"] == ((0,), ((1, 2),), ((1, 3),), (2, 3)) and views["x1"] == (((0, 2),), ((0, 3),))


S, T = symbol("S0"), symbol("S1")


def rope(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + paddle.concat([-x[..., half:], x[..., :half]], -1) * sin


def centred_groups(x):
    s, c, h, w = x.shape
    g = x.reshape([s, 2, c // 2 * h * w])
    return (g - g.sum(-1, keepdim=True) / g.shape[-1]).reshape([s, c, h, w])


SYMBOLIC = {
    "rope": (rope, [(S, T, 2, 8), (T, 1, 8), (T, 1, 8)]),
    "heads": (lambda x: x.reshape([S, T, 2, 4]).transpose([0, 2, 1, 3]) * 2, [(S, T, 8)]),
    "heads merged": (lambda x: x.transpose([0, 2, 1, 3]).reshape([S, T, 8]) * 2, [(S, 2, T, 4)]),
    "queries, keys, values": (lambda x: [a.transpose([0, 2, 1, 3]) * 1 for a in paddle.split(
        x.reshape([S, T, 2, 12]), 3, -1)], [(S, T, 24)]),
    "rows of rows": (lambda x, w: (x.reshape([S * T, 8]) * w).sum(0), [(S, T, 8), (8,)]),
    "rows cut": (lambda y, x: x.reshape([S, T, 8]) * y, [(S, T, 8), (S * T, 8)]),
    "rows cut and moved": (lambda y, x: x.reshape([S, T, 2, 4]).transpose([0, 2, 1, 3]) + y,
                           [(S, 2, T, 4), (S * T, 8)]),
    "a row cut": (lambda x: x.reshape([S, T, 2, 4]).sum(-1) * 2, [(S, T * 8)]),
    "mask": (lambda x: paddle.tril(x) * 2, [(2, T, T)]),
    "beside itself": (lambda x: x + x.t(), [(S, S)]),
    "joined": (lambda x, y: paddle.concat([x, y, paddle.zeros([2, 1, 4])], 1) * 2, [(2, S, 4), (2, T, 4)]),
    "last": (lambda x: x[:, -1] * 2, [(S, T, 4)]),
    "shifted": (lambda x: x[:, 1:] - x[:, :-1], [(S, T, 4)]),
    "flipped": (lambda x: paddle.flip(x, [1]) + x, [(S, T)]),
    "first extreme": (lambda x: x.argmax(-1), [(S, T)]),
    "groups": (centred_groups, [(S, 8, T, T)]),
}


@pytest.mark.parametrize("case", SYMBOLIC)
def test_one_function_serves_all_sizes(case):
    fn, shapes = SYMBOLIC[case]
    g = group(fn, *((s, F32) for s in shapes))
    function = g.lower(any_rows=True)
    for s, t in ((3, 5), (1, 1), (2, 4), (0, 3)):
        sizes = {"S0": s, "S1": t}
        arrays = [counted(*substitute_all(shape, sizes), start=n) for n, shape in enumerate(shapes)]
        for got, want in zip(run(function, g, *arrays), g.reference(*arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_moves_are_indices_and_joints_are_arms():
    """No buffer is made for what only moves; a concat is one block."""
    def rotated(x, cos, sin):
        half = paddle.concat([-x[:, 2:], x[:, :2]], axis=-1)
        return x * cos + half * sin

    function = check(rotated, counted(3, 4), counted(3, 4), counted(3, 4))
    names = [b.name.rsplit("_", 1)[0] for b in blocks(function.body)]
    assert names == ["scale", "concat", "multiply", "multiply", "add", "y0"]
    assert sum(isinstance(s, IfThenElse) for s in statements(function.body)) == 1


def test_bounds_that_always_hold_are_not_asked_for():
    def write(x, v):
        return SetValue(x, v, axes=(0, 1), starts=(0, 2), ends=(2, 5), strides=(1, 1))

    function = check(write, counted(2, 5), counted(2, 3))
    assert [text(s.cond) for s in statements(function.body) if isinstance(s, IfThenElse)] == ["vj >= 2"]


def test_rows_that_are_told_apart_are_as_many_as_they_are():
    """The gradient of `qkv[0] * qkv[1] * qkv[2]`: three parts of 3 rows, written and added up.  With a number of rows
    that was not known, each bound would be the smaller one of two."""
    def gradient(q, k, v):
        parts = [SetValue(paddle.zeros([3, 2, 4]), paddle.unsqueeze(x, 0), axes=(0,), starts=(n,), ends=(n + 1,),
                          strides=(1,)) for n, x in enumerate((q, k, v))]
        return paddle.add_n(parts).exp()
    g = group(gradient, *[((2, 4), F32)] * 3)
    function = g.lower(any_rows=True)
    assert {s.extent for s in statements(function.body) if isinstance(s, For)} == {
        const(3, INT64), const(8, INT64)}
    final = text(finalize(function))
    assert "min" not in final and len(final) < 1500
    arrays = [counted(2, 4, start=n) for n in range(3)]
    np.testing.assert_allclose(run(function, g, *arrays)[0], g.reference(*arrays)[0], rtol=1e-6)


def test_the_loops_of_what_nothing_reads_are_no_rows():
    def shaped_like(x, y):
        return y * paddle.full_like(x.sum(), 2.0)
    function = group(shaped_like, ((5,), F32), ((3, 4), F32)).lower(any_rows=True)
    assert [b.name.rsplit("_", 1)[0] for b in blocks(function.body)] == ["multiply", "y0"]
    assert {x.var[0] for x in loops(function.body)} == {"i"}


def test_positions_may_run_backward_past_the_front():
    x = counted(6)
    check(lambda x: StridedSlice(x, axes=(0,), starts=(5,), ends=(-1,), strides=(-1,)) * 2, x)


# ----------------------------------------------------------------------------------------------- random groups
MOVES = ["transpose", "flip", "slice", "concat", "reshape", "stride", "with transpose", "reduce", "scale", "add first"]


def move(what, x, first, a, b):
    """One of MOVES, where x allows it."""
    axis = a % x.ndim if x.ndim else 0
    match what:
        case "transpose" if x.ndim > 1:
            return x.transpose([*range(1, x.ndim), 0])
        case "flip" if x.ndim:
            return paddle.flip(x, [axis])
        case "slice" if x.ndim and x.shape[axis] > 1:
            return paddle.slice(x, [axis], [b % x.shape[axis]], [x.shape[axis]])
        case "stride" if x.ndim and x.shape[axis] > 1:
            return StridedSlice(x, axes=(axis,), starts=(x.shape[axis] - 1,), ends=(-1,), strides=(-1 - b % 2,))
        case "concat" if x.ndim:
            return paddle.concat([x, x * 2][:: 1 if b % 2 else -1], axis=axis)
        case "reshape":
            n = int(np.prod(x.shape))
            factors = [f for f in (2, 3, 4, 6) if n and n % f == 0] or [1]
            f = factors[b % len(factors)]
            return x.reshape([f, n // f] if a % 3 else [n // f, f] if a % 2 else [n])
        case "with transpose" if x.ndim == 2 and x.shape[0] == x.shape[1]:
            return x + x.t()
        case "reduce" if x.ndim:
            return (paddle.sum if b % 2 else paddle.max)(x, axis=axis, keepdim=a % 4 > 1)
        case "scale":
            return x * 0.5 + 1
        case "add first":
            try:
                np.broadcast_shapes(tuple(x.shape), tuple(first.shape))
            except ValueError:
                return x
            return x + first
    return x


@settings(max_examples=120)
@given(shape=st.sampled_from([(2, 3, 4), (4, 4), (12,), (2, 6), (1, 3, 2)]), twice=st.booleans(),
       recipe=st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 20), st.integers(0, 20)), min_size=2,
                       max_size=7))
def test_random_moves(shape, twice, recipe):
    def fn(x):
        y, made = x, []
        for what, a, b in recipe:
            if np.prod(y.shape) < 400:
                y = move(what, y, x, a, b)
            made.append(y)
        return (y * 1, made[len(made) // 2] * 1) if twice else y * 1
    check(fn, counted(*shape), rtol=1e-5)
