"""Schedules: every primitive, and all of them in order, keep what a function means; or refuse."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from minipd.cinn.ir.ast import Accumulate, Alloc, Const, Dim, For, Function, Init, Let, Load, Param, Seq, Store, Var
from minipd.cinn.ir.build import binary, const, unary
from minipd.cinn.ir.interpreter import interpret
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.simplify import simplify
from minipd.cinn.ir.walk import statements
from minipd.cinn.lower import CannotLower
from minipd.cinn.schedule import (
    Options,
    ScheduleError,
    block,
    cache_row,
    chunk,
    explain,
    hoist,
    merge,
    parallelize,
    schedule,
    share,
    vectorize,
)
from minipd.cinn.schedule.tree import loops
from minipd.framework.dim import symbol
from tests.cinn.groups import BF16, group, run
from tests.cinn.test_lower import F32, F64, I32, KINDS, normal, random_groups, rms_norm_gradient, softmax

#: every rule fires, on sizes that the interpreter can take
EAGER = Options(row_bytes=1 << 20, keep_cost=1, chunks=3, least_rows=1, most_rows=2, flat_chunks=4, least_elements=1,
                parallel_elements=0, block=2, block_from=2)
NO_ROWS = Options(row_bytes=0, chunks=2, flat_chunks=2, least_elements=3, parallel_elements=0, block=3, block_from=0)
OPTIONS = [Options(), EAGER, NO_ROWS]


def same(g, function, other, *arrays, rtol=1e-6, atol=1e-6):
    for a, b in zip(run(function, g, *arrays), run(other, g, *arrays), strict=True):
        np.testing.assert_allclose(b.astype(F64), a.astype(F64), rtol=rtol, atol=atol)


def kinds_of(function):
    return [s.kind for s in statements(function.body) if isinstance(s, For)]


@pytest.mark.parametrize("kind, fn, shapes", KINDS)
@pytest.mark.parametrize("options", OPTIONS)
def test_a_schedule_keeps_the_meaning_after_every_step(kind, fn, shapes, options):
    from minipd.cinn.schedule.plan import _scheduled
    g = group(fn, *((s, F32) for s in shapes))
    arrays = [normal(*s, seed=i) for i, s in enumerate(shapes)]
    lowered = g.lower()
    for _, function in _scheduled(lowered, options).steps:
        same(g, lowered, function, *arrays, rtol=2e-5)


@pytest.mark.parametrize("dtype, rtol", [(F32, 2e-4), (F64, 1e-10), (I32, 0), (BF16, 2 ** -7)])
@settings(max_examples=40)
@given(data=st.data())
def test_random_groups(dtype, rtol, data):
    fn, arrays = data.draw(random_groups(dtype))
    g = group(fn, *((a.shape, dtype) for a in arrays))
    try:
        lowered = g.lower()
    except CannotLower:
        assume(False)
    for options in OPTIONS:
        same(g, lowered, schedule(lowered, options), *arrays, rtol=rtol, atol=rtol)


def test_a_schedule_for_symbolic_sizes_suits_all_of_them():
    s, t = symbol("S0"), symbol("S1")
    g = group(rms_norm_gradient, ((s, t, 5), F32), ((5,), F32), ((s, t, 5), F32))
    for options in OPTIONS:
        function = schedule(g.lower(), options)
        assert "parallel" in kinds_of(function)
        for rows in ((2, 3), (7, 3), (1, 1), (0, 3)):
            arrays = normal(*rows, 5), normal(5, seed=2), normal(*rows, 5, seed=1)
            same(g, g.lower(), function, *arrays, rtol=1e-4)


# ------------------------------------------------------------------------------------------------- hard cases
@pytest.mark.parametrize("n", [1, 31, 32, 33, 257, 300, 511, 512, 768, 1025])
@pytest.mark.parametrize("options", OPTIONS[:2])
def test_c2_partial_results_that_nothing_went_into_are_the_identity(n, options):
    """Paddle PR 76619: y = x / sum(x) for inner sizes around the block."""
    g = group(lambda x: (x / x.sum(), x - x.max()), ((1, n), F32))
    x = -np.abs(normal(1, n)) - 1                          # a 0 instead of -inf would be the maximum
    outputs = run(schedule(g.lower(), options), g, x)
    np.testing.assert_allclose(outputs[0], x / x.sum(dtype=F64), rtol=1e-5)
    np.testing.assert_array_equal(outputs[1], x - x.max())


@pytest.mark.parametrize("shape", [(8, 4), (1, 1), (2, 5001)])
def test_c4_small_and_large_reductions(shape):
    """Paddle PRs 63411 and 63689.  The bound: 2^-23 sqrt(n), relative to the sum of the absolute values."""
    x = normal(*shape)
    for fn, axis in ((lambda x: x.sum(-1), -1), (lambda x: x.sum(), None)):
        g = group(fn, (shape, F32))
        y, = run(schedule(g.lower()), g, x)
        n = x.size if axis is None else shape[axis]
        bound = 2 ** -23 * n ** 0.5 * np.abs(x).sum(axis, dtype=F64)
        assert (np.abs(y - x.sum(axis, dtype=F64)) <= bound).all()


def test_the_error_of_a_long_sum_of_equal_numbers_is_that_of_its_blocks():
    """At most 2^-24 (1024 + n / 1024) of the sum, which is 2^-23 sqrt(n) for n = 2^20."""
    x = np.full(2 ** 14, 0.1, F32)
    g = group(lambda x: x.sum(), (x.shape, F32))
    exact = x.sum(dtype=F64)
    plain, = run(g.lower(), g, x)
    blocks, = run(schedule(g.lower()), g, x)
    assert abs(blocks - exact) / exact <= 2 ** -24 * (1024 + x.size / 1024)
    assert abs(blocks - exact) < abs(plain - exact) / 4


def test_the_number_of_chunks_is_part_of_the_function():
    """Parallel sums add up in the same order on any number of threads."""
    g = group(lambda x: x.sum(0), ((100, 3), F32))
    function = schedule(g.lower(), Options(parallel_elements=0))
    chunks = [s for s in statements(function.body) if isinstance(s, For) and s.kind == "parallel"]
    assert [c.extent for c in chunks if c.var == "i_chunk"] == [const(15, np.dtype("i8"))]


# -------------------------------------------------------------------------------------------------- primitives
i, n = Var("i"), Dim("x", 0)
X, Y = Param("x", F32, 1), Param("y", F32, 1, output=True)


def load(buffer="x", *index):
    return Load(buffer, index or (i,), F32)


def function(*body, params=(X, Y)):
    return Function("f", params, Seq(body))


REVERSE = function(For("i", n, Store("y", (binary("sub", binary("sub", n, 1), i),), load())))
SUM = function(Init("s", const(0, F32)), For("i", n, Seq((Let("v", load()), Store("y", (i,), Var("v", F32))))))
PREFIX = simplify(group(lambda x: x.sum(), ((4,), F32)).lower())


def test_parallelize_refuses_iterations_that_meet():
    with pytest.raises(ScheduleError, match="iterations meet in sum_0; chunk it instead"):
        parallelize(PREFIX, (1,))
    with pytest.raises(ScheduleError, match="iterations meet in y"):        # true of no iteration, but not seen
        parallelize(REVERSE, (0,))
    shifted = function(For("i", n, Store("y", (i,), load("y", binary("add", i, 1)))))
    with pytest.raises(ScheduleError, match="iterations meet in y"):
        parallelize(shifted, (0,))
    assert kinds_of(parallelize(SUM, (1,))) == ["parallel"]


def test_vectorize_takes_accumulators_but_no_loops():
    assert kinds_of(vectorize(PREFIX, (1,))) == ["vector"]
    g = group(lambda x: x * 2 + 1, ((3, 4), F32))
    nest = function(For("i", n, For("j", n, Store("z", (i, Var("j")), load()))), params=(X, Param("z", F32, 2, True)))
    with pytest.raises(ScheduleError, match="vectorize i: it contains a loop"):
        vectorize(nest, (0,))
    assert len(loops(g.lower())) == 1                       # merged: f32[3, 4] is flat


def test_chunk_refuses_what_is_no_accumulation():
    with pytest.raises(ScheduleError, match="it accumulates nothing"):
        chunk(SUM, (1,), 4)
    running = function(Init("s", const(0, F32)), For("i", n, Seq((
        Accumulate("s", "add", load()), Store("y", (i,), Var("s", F32))))))
    with pytest.raises(ScheduleError, match="which the loop does not read"):
        chunk(running, (1,), 4)


def test_cache_row_refuses_what_is_not_the_same():
    def twice(second):
        return function(For("i", n, Seq((Let("e", unary("exp", load())), Store("y", (i,), Var("e", F32))))),
                        For("i", n, Seq((Let("e", second), Store("z", (i,), Var("e", F32))))),
                        params=(X, Y, Param("z", F32, 1, True)))

    kept = cache_row(twice(unary("exp", load())), (0,), (1,), "e")
    assert text(kept).count("exp") == 1
    x = np.array([0, 1, 2], F32)
    outputs = [np.empty(3, F32) for _ in range(2)]
    interpret(kept, [x], outputs)
    np.testing.assert_array_equal(*outputs)
    with pytest.raises(ScheduleError, match="not from the same"):
        cache_row(twice(unary("tanh", load())), (0,), (1,), "e")
    with pytest.raises(ScheduleError, match="the first one earlier"):
        cache_row(twice(unary("exp", load())), (1,), (0,), "e")
    changing = function(For("i", n, Store("y", (i,), load())),
                        For("i", n, Seq((Let("e", unary("exp", load("y"))), Store("y", (i,), Var("e", F32))))),
                        For("i", n, Seq((Let("e", unary("exp", load("y"))), Store("z", (i,), Var("e", F32))))),
                        params=(X, Y, Param("z", F32, 1, True)))
    with pytest.raises(ScheduleError, match="changes between the two loops"):
        cache_row(changing, (1,), (2,), "e")
    with pytest.raises(ScheduleError, match="y is no output of float32 that only the later loop stores"):
        cache_row(twice(unary("exp", load())), (0,), (1,), "e", "y")


def test_softmax_keeps_its_exponentials_in_its_output():
    """Two passes over the input and one exponential per element; in bfloat16 a local float32 row."""
    once = schedule(group(softmax, ((4, 7), F32)).lower())
    assert text(once).count("exp(") == 1 and "local" not in text(once)
    narrow = schedule(group(softmax, ((4, 7), BF16)).lower())
    assert text(narrow).count("exp(") == 1 and "exp_2_row := local f32[7]" in text(narrow)


def test_hoist_moves_what_is_fixed_and_nothing_else():
    c = unary("exp", Load("s", (), F32))
    value = binary("mul", load(), binary("add", Var("a", F32), c))
    f = function(For("i", n, Seq((Let("a", c), Store("y", (i,), value)))), params=(X, Param("s", F32, 0), Y))
    moved = hoist(f, (0,))
    assert [type(s) for s in moved.body.stmts] == [Let, Let, For]
    x, y, z = np.array([1, 2], F32), np.empty(2, F32), np.empty(2, F32)
    interpret(f, [x, np.array(0.5, F32)], [y])
    interpret(moved, [x, np.array(0.5, F32)], [z])
    np.testing.assert_array_equal(y, z)
    assert hoist(SUM, (1,)) is SUM


def test_block_needs_an_accumulation():
    with pytest.raises(ScheduleError, match="expected an innermost loop that accumulates"):
        block(SUM, (1,), 2)
    assert isinstance(block(PREFIX, (1,), 3).body.stmts[1].extent, Const)


def test_a_path_that_leads_to_no_loop():
    with pytest.raises(ScheduleError, match=r"no loop at \(7,\)"):
        vectorize(SUM, (7,))


def test_explain_prints_every_step():
    told = explain(group(softmax, ((4, 7), F32)).lower())
    assert [line for line in told.splitlines() if line.startswith("##")] == [
        "## lowered", "## cache_row((0, 3), (0, 4), 'exp_2', 'y0')", "## simplify()", "## vectorize((0, 4),)",
        "## vectorize((0, 3),)", "## vectorize((0, 1),)"]


def test_few_long_rows_get_few_accumulators():
    """A sum over 8 rows in 16 chunks would write as much as it reads."""
    for rows, accumulators in ((8, 2), (100, 15)):
        function = schedule(group(lambda x: x.sum(0), ((rows, 4096), F32)).lower())
        assert f"sum_0_parts := local f32[{accumulators}, 4096]" in text(function)
    assert "parts" not in text(schedule(group(lambda x: x.sum(0), ((4, 8192), F32)).lower()))


def test_hoist_leaves_what_the_loop_writes():
    at = const(0, np.dtype("i8"))
    f = function(Alloc("t", (const(1, np.dtype("i8")),), F32), For("i", n, Seq((
        Store("t", (at,), load()), Let("a", unary("exp", load("t", at))), Store("y", (i,), Var("a", F32))))))
    assert hoist(f, (1,)) is f


def test_share_gives_a_name_to_what_comes_twice():
    e = unary("exp", load())
    f = function(For("i", n, Seq((Store("y", (i,), binary("add", e, e)), Store("z", (i,), binary("mul", e, load()))))),
                 params=(X, Y, Param("z", F32, 1, True)))
    assert text(share(f, (0,)).body).splitlines()[2:-1] == [
        "  t = exp(x[i])", "  y[i] = t + t", "  z[i] = t * x[i]"]
    written = function(For("i", n, Seq((Store("y", (i,), load()), Store("z", (i,), binary(
        "add", unary("exp", load("y")), unary("exp", load("y"))))))), params=(X, Y, Param("z", F32, 1, True)))
    assert share(written, (0,)) is written


def test_merge_gives_loops_one_name_for_what_they_both_had_fixed():
    rows, j = Dim("x", 0), Var("j")
    params = (Param("x", F32, 2), Param("m", F32, 1), Param("y", F32, 2, True), Param("z", F32, 2, True))

    def inner(buffer, name):
        return For("j", Dim("x", 1), Store(buffer, (i, j), binary("mul", Load("x", (i, j), F32), Var(name, F32))))

    def both(*between):
        return Function("f", params, For("i", rows, Seq((
            Let("a", Load("m", (i,), F32)), inner("y", "a"), *between, Let("b", Load("m", (i,), F32)),
            Let("c", unary("exp", Var("b", F32))), inner("z", "c")))))
    merged = merge(both(), (0,))
    assert text(merged.body).splitlines()[2:-1] == [
        "  a = m[i]", "  serial for (j, 0, x.shape[1])", "  {", "    y[i, j] = x[i, j] * a", "  }", "  c = exp(a)",
        "  serial for (j, 0, x.shape[1])", "  {", "    z[i, j] = x[i, j] * c", "  }"]
    x, m = normal(2, 3), normal(2)
    outputs = [[np.empty((2, 3), F32) for _ in range(2)] for _ in range(2)]
    for f, found in zip((both(), merged), outputs, strict=True):
        interpret(f, [x, m], found)
    np.testing.assert_array_equal(outputs[0], outputs[1])
    written = both(Store("m", (i,), const(1, F32)))
    assert merge(written, (0,)) is written


def test_a_value_of_three_passes_is_kept_once():
    """The gradient of softmax: exponentials in one row, for both passes behind."""
    def gradient(x, g):
        e = softmax(x) * g
        return e * (x - (e * e).sum(-1, keepdim=True)) / (e - e.sum(-1, keepdim=True)).max(-1, keepdim=True)
    g = group(gradient, ((3, 7), F32), ((3, 7), F32))
    function = schedule(g.lower())
    assert text(function).count("exp(") == 1 and text(function).count("local") == 1
    same(g, g.lower(), function, normal(3, 7), normal(3, 7, seed=1), rtol=2e-5)


def test_share_keeps_the_name_that_a_let_gives():
    e = unary("exp", load())
    f = function(For("i", n, Seq((Let("a", e), Store("y", (i,), binary("add", e, Var("a", F32)))))))
    assert text(share(f, (0,)).body).splitlines()[2:-1] == ["  a = exp(x[i])", "  y[i] = a + a"]
