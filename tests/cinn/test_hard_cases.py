"""Cases that compilers of formulas have got wrong: each is computed in every way that there is (`ways`), and by numpy.

What only a GPU has, threads that meet, is checked on the loop interpreter, which runs them.
"""

import math

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.compile import apply_cinn_pass, prepare
from minipd.cinn.frontend import build_groups
from minipd.cinn.ir.ast import (
    Alloc,
    Dim,
    For,
    Function,
    IfThenElse,
    Load,
    Param,
    Seq,
    Store,
    SyncThreads,
    Var,
)
from minipd.cinn.ir.build import binary, const
from minipd.cinn.ir.interpreter import LoopError, interpret
from minipd.executor import Executor
from minipd.nn import functional as F
from tests.cinn.programs import traced
from tests.cinn.test_random_graphs import each_group
from tests.cinn.ways import ways

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)
R = np.random.default_rng(0)


def run_compiled(fn, *arrays):
    """The outputs of `fn`, compiled."""
    program, feed = traced(fn, *arrays)
    apply_cinn_pass(program)
    with np.errstate(all="ignore"):
        return list(Executor(program).run(feed).values())


def every_way(fn, *arrays, tolerance=1e-12, compiler=None, one_kernel=True):
    """The outputs of `fn`: its groups agree in all ways, and the compiled program gives what they do.

    one_kernel: nothing may be left beside kernels.
    """
    program, feed = traced(fn, *arrays)
    whole = program.clone()
    prepare(program)
    assert build_groups(program)

    def visit(group, given):
        (_, library), *others = ways(group, given, compiler)
        for name, results in others:
            for got, want in zip(results, library, strict=True):
                assert got.dtype == want.dtype and got.shape == want.shape
                scale = np.abs(want[np.isfinite(want)]).max(initial=0)
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale, err_msg=name)
        return library
    found = each_group(program, feed, visit)
    assert apply_cinn_pass(whole) >= 1
    if one_kernel:
        assert not [op for op in whole.walk() if op.row is not None], "an operator is left beside the kernels"
    with np.errstate(all="ignore"):
        for got, want in zip(Executor(whole).run(feed).values(), found, strict=True):
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * np.abs(
                want[np.isfinite(want)]).max(initial=0))
    return found


# ------------------------------------------------------------------------- C1: reduce, broadcast, reshape, broadcast
def test_c1_rows_that_are_reshaped_between_two_broadcasts(compiler):
    def f(x):
        b = paddle.expand((x * 2.0).sum(1, keepdim=True), [2, 3]) * 0.5
        return paddle.expand(b.reshape([3, 2]) + 1.0, [4, 3, 2]) * 2.0
    y, = every_way(f, np.array([[0.0, 1, 2], [3, 4, 5]]), compiler=compiler, one_kernel=False)
    np.testing.assert_array_equal(y / 2 - 1, [[[3, 3], [3, 12], [12, 12]]] * 4)


def test_c1_without_the_first_broadcast(compiler):
    def f(x):
        rows = paddle.expand((x * 2.0).sum(1).reshape([2, 2]) * 0.5, [3, 2, 2])
        return rows + (x.reshape([1, 2, 6]) * 2.0).sum(2).reshape([1, 2, 1]) * 0.5
    x = np.arange(12.0).reshape(4, 3)
    y, = every_way(f, x, compiler=compiler, one_kernel=False)
    want = np.broadcast_to(x.sum(1).reshape(2, 2), (3, 2, 2)) + x.reshape(1, 2, 6).sum(2).reshape(1, 2, 1)
    np.testing.assert_array_equal(y, want)


# ----------------------------------------------------------------------------- C2: a whole reduction, used by each
@pytest.mark.parametrize("size", [1, 31, 32, 33, 257, 300, 511, 512, 768, 1025])
def test_c2_a_tensor_divided_by_its_sum(size, compiler):
    """Parts of a sum that do not exist are 0, and of a maximum -inf."""
    x = R.normal(size=(1, size)) - 5.0
    quotient, rest = every_way(lambda x: (x / x.sum(), x - x.max()), x, compiler=compiler)
    np.testing.assert_allclose(quotient, x / x.sum(), rtol=1e-12)
    np.testing.assert_allclose(rest, x - x.max(), rtol=1e-12)


# ------------------------------------------------------------------------------- C4: very small and large reductions
@pytest.mark.parametrize("shape, axis", [((8, 4), -1), ((1, 1), None), ((8, 4), 0), ((1, 300), 0), ((300, 1), 1)])
def test_c4_small_reductions(shape, axis, compiler):
    x = R.normal(size=shape)
    total, most = every_way(lambda x: (paddle.sum(x * 1.0, axis), paddle.max(x * 1.0, axis)), x, compiler=compiler)
    np.testing.assert_allclose(total, x.sum(axis), rtol=1e-12)
    np.testing.assert_array_equal(most, x.max(axis))


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("shape", [(3, 2 ** 20 + 7), (70_001, 3)])
def test_c4_large_reductions(shape, equal):
    """To 2^-23 sqrt(n), relative to the sum of absolute values; equal numbers err in one direction."""
    x = np.full(shape, 0.1, np.float32) if equal else R.normal(size=shape).astype(np.float32)
    program, feed = traced(lambda x: ((x * 1.0).sum(-1), (x * 1.0).sum(0), (x * 1.0).sum(), (x * 1.0).max(-1)), x)
    apply_cinn_pass(program)
    assert not [op for op in program.walk() if op.row is not None]
    rows, columns, whole, most = Executor(program).run(feed).values()
    wide, size = x.astype(np.float64), np.abs(x.astype(np.float64))
    for found, axis, n in (rows, 1, shape[1]), (columns, 0, shape[0]), (whole, None, x.size):
        assert (np.abs(found - wide.sum(axis)) <= 2 ** -23 * n ** 0.5 * size.sum(axis)).all()
    np.testing.assert_array_equal(most, x.max(-1))


@pytest.mark.parametrize("shape", [(5, 0), (3, 1), (1, 3)])
def test_c4_columns_of_no_or_one_element(shape, compiler):
    """Code for no elements is code, too; where one element is folded, nobody reads what argmax is of."""
    every_way(lambda x: (F.softmax(x, 1), x - x.sum(1, keepdim=True)), R.normal(size=shape), compiler=compiler)
    if 0 not in shape:
        every_way(lambda x: ((x * 2.0).argmax(1), (x * 2.0).argmin(0)), R.normal(size=shape), compiler=compiler)


# --------------------------------------------------------- C6: sizes beside the schedule's blocks, vectors and chunks
def around(n):
    return [n - 1, n, n + 1, 3 * n + 5]


@pytest.mark.parametrize("n", [0, 1, *around(16), *around(64)])
def test_c6_maps_and_reductions_of_odd_sizes(n, compiler):
    """A map, a sum of columns (chunks of rows), of rows (blocks of columns), and of everything."""
    def f(x):
        y = paddle.exp(x * 0.5)
        return y + 1.0, y.sum(0), y.sum(1), (y * 2.0).sum()
    x = R.normal(size=(n, 11))
    for given in x, np.ascontiguousarray(x.T):
        y, columns, rows, total = every_way(f, given, compiler=compiler) if n < 18 else run_compiled(f, given)
        want = np.exp(given * 0.5)
        np.testing.assert_allclose(y, want + 1, rtol=1e-12)
        np.testing.assert_allclose(columns, want.sum(0), rtol=1e-12)
        np.testing.assert_allclose(rows, want.sum(1), rtol=1e-12)
        np.testing.assert_allclose(total, (want * 2).sum(), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 1023, 1024, 1025, 3 * 1024 + 5])
def test_c6_blocks_of_long_sums_in_float32(n):
    x = R.normal(size=(2, n)).astype(np.float32)
    y, = run_compiled(lambda x: (x * x).sum(-1), x)
    np.testing.assert_allclose(y, (x.astype(np.float64) ** 2).sum(-1), rtol=2e-6)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 29])
def test_c6_what_libraries_and_kernels_compute_together(n):
    """Products and convolutions of odd sizes with fused neighbours, and a running sum, which no kernel has yet."""
    def f(x, w, image, taps):
        y = F.silu(paddle.matmul(x * 2.0, w) + 1.0)
        z = F.relu(F.conv2d(image * 0.5, taps, padding=1) - 0.25)
        return y, z, paddle.cumsum(y * 2.0, 1) + 1.0
    x, w = R.normal(size=(n, n + 2)), R.normal(size=(n + 2, 2 * n + 1))
    image, taps = R.normal(size=(1, 2, n, n + 1)), R.normal(size=(3, 2, 3, 3))
    program, feed = traced(f, x, w, image, taps)
    assert apply_cinn_pass(program) >= 2
    y, z, running = Executor(program).run(feed).values()
    product = (x * 2) @ w + 1
    want = product / (1 + np.exp(-product))
    np.testing.assert_allclose(y, want, rtol=1e-12, atol=1e-12)
    padded = np.pad(image * 0.5, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    np.testing.assert_allclose(z, np.maximum(np.einsum("nchwij,ocij->nohw", windows, taps) - 0.25, 0), rtol=1e-12,
                               atol=1e-12)
    np.testing.assert_allclose(running, np.cumsum(want * 2, 1) + 1, rtol=1e-12, atol=1e-12)


TPB = 8
block, thread, step = Var("block"), Var("thread"), Var("step")


def block_sum(guarded=True):
    """Each GPU block adds TPB numbers up in shared memory: halves onto halves, with a barrier between."""
    at = binary("add", binary("mul", block, const(TPB, I64)), thread)
    inside = binary("lt", at, Dim("x", 0))
    cell = Load("shared", (thread,), F32)
    fill = Store("shared", (thread,), Load("x", (at,), F32))
    stmts = [IfThenElse(inside, fill, Store("shared", (thread,), const(0, F32)) if guarded else None), SyncThreads()]
    half = TPB // 2
    while half:
        other = Load("shared", (binary("add", thread, const(half, I64)),), F32)
        stmts += [IfThenElse(binary("lt", thread, const(half, I64)),
                             Store("shared", (thread,), binary("add", cell, other)), None), SyncThreads()]
        half //= 2
    stmts.append(IfThenElse(binary("eq", thread, const(0, I64)), Store("y", (block,), cell), None))
    threads = For("thread", const(TPB, I64), Seq(tuple(stmts)), "threadIdx.x")
    blocks = For("block", Dim("y", 0), Seq((Alloc("shared", (const(TPB, I64),), F32, "shared"), threads)), "blockIdx.x")
    return Function("block_sum", (Param("x", F32, 1), Param("y", F32, 1, True)), blocks)


@pytest.mark.parametrize("shuffle", [None, 1])
@pytest.mark.parametrize("n", [0, 1, TPB - 1, TPB, TPB + 1, 15, 3 * TPB + 5])
def test_c6_a_sum_of_gpu_blocks(n, shuffle):
    x, y = np.arange(n, dtype=np.float32), np.empty(math.ceil(n / TPB), np.float32)
    interpret(block_sum(), [x], [y], shuffle=shuffle)
    np.testing.assert_array_equal(y, [x[i:i + TPB].sum() for i in range(0, n, TPB)])
    if n == 15:
        np.testing.assert_array_equal(y, [28, 77])


def test_c6_shared_memory_that_nobody_filled_is_noticed():
    """Where a block is not full, the lanes behind the end read what is left in shared memory: 84 in place of 77."""
    with pytest.raises(LoopError, match="shared.*(before it is|never|not) written"):
        interpret(block_sum(guarded=False), [np.arange(15, dtype=np.float32)], [np.empty(2, np.float32)])
    y = np.empty(2, np.float32)
    interpret(block_sum(guarded=False), [np.arange(16, dtype=np.float32)], [y])
    np.testing.assert_array_equal(y, [28, 92])


# ------------------------------------------------------------------------------------ C7: a return before a barrier
def test_c7_threads_that_do_not_all_come_to_a_barrier():
    def function(stmt):
        threads = For("thread", const(4, I64), stmt, "threadIdx.x")
        return Function("early", (Param("x", F32, 1), Param("y", F32, 1, True)), Seq((
            Alloc("shared", (const(4, I64),), F32, "shared"), threads)))
    inside = binary("lt", thread, Dim("x", 0))
    mirrored = binary("sub", binary("sub", Dim("x", 0), const(1, I64)), thread)
    meet = Seq((Store("shared", (thread,), Load("x", (thread,), F32)), SyncThreads(),
                Store("y", (thread,), Load("shared", (mirrored,), F32))))
    x = np.arange(3, dtype=np.float32)
    with pytest.raises(LoopError, match="barrier|__syncthreads"):
        interpret(function(IfThenElse(inside, meet, None)), [x], [np.empty(3, np.float32)])
    guarded = Seq((IfThenElse(inside, meet.stmts[0], None), SyncThreads(), IfThenElse(inside, meet.stmts[2], None)))
    y = np.empty(3, np.float32)
    interpret(function(guarded), [x], [y])
    np.testing.assert_array_equal(y, [2, 1, 0])


def test_c7_no_kernel_returns_early():
    """A task whose share is empty runs empty loops: the text has no return, and phases are told apart by who calls."""
    from minipd.cinn.codegen.numba_source import numba_source
    from tests.cinn.loops import column_sum, softmax
    for function in (softmax(), column_sum()):
        assert "return" not in numba_source(function)


# ------------------------------------------------------------------------------ A12: rows that are all minus infinity
MASKED = np.array([[0, -np.inf], [-np.inf, -np.inf]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a12_attention_gives_zeros_for_dead_rows(dtype):
    """A program of attention, with everything that is masked out -inf: zeros, not NaN; and no NaN in any gradient."""
    q, k, v = (R.normal(size=(1, 2, 1, 4)).astype(dtype) for _ in range(3))
    mask = MASKED.astype(dtype).reshape(1, 1, 2, 2)

    def f(q, k, v, mask):
        for x in (q, k, v):
            x.stop_gradient = False
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return (out, *paddle.grad((out * out).sum(), [q, k, v]))
    out, *gradients = run_compiled(f, q, k, v, mask)
    np.testing.assert_allclose(out[0, 0, 0], v[0, 0, 0], rtol=1e-6)     # the live row sees the first key only
    np.testing.assert_array_equal(out[0, 1], 0)
    for gradient in gradients:
        assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(gradients[0][0, 1], 0)


def test_a12_the_plain_softmax_follows_numpy(compiler):
    y, = every_way(lambda x: F.softmax(x) * 1.0, MASKED, compiler=compiler)
    np.testing.assert_array_equal(y, [[1, 0], [np.nan, np.nan]])


def test_a12_the_online_softmax_starts_at_minus_infinity(compiler):
    """A running maximum of -inf and masked numbers: what is left of a dead row is exp(-inf) = 0, told by a comparison
    and not by what -inf - -inf happens to give."""
    def f(x):
        top = x.max(-1, keepdim=True)
        safe = paddle.where(top == -math.inf, paddle.zeros_like(top), top)
        e = paddle.exp(x - safe)
        total = e.sum(-1, keepdim=True)
        return e / paddle.where(total == 0.0, paddle.ones_like(total), total)
    y, = every_way(f, MASKED, compiler=compiler)
    np.testing.assert_array_equal(y, [[1, 0], [0, 0]])
