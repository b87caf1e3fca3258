"""Generated kernels do what the loop IR's interpreter does: every operator, dtype, size, and way of running them."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd.cinn.codegen.numba_source import numba_source
from minipd.cinn.ir.ast import (
    BINARY,
    COMPARISONS,
    UNARY,
    Accumulate,
    Alloc,
    Cast,
    Const,
    Dim,
    For,
    Function,
    Init,
    Let,
    Load,
    Param,
    Seq,
    Store,
    Var,
)
from minipd.cinn.ir.build import binary, cast, const, select, unary
from minipd.cinn.runtime.compiler import KernelError
from minipd.cinn.runtime.kernel import Kernel, compile_function
from tests.cinn.loops import F32, F64, I64, check, column_sum, flat, i, j, rms_norm, run_all, softmax

BOOL, BF16, F16 = np.dtype(bool), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)
INTS = [np.dtype(d) for d in ("int8", "int16", "int32", "int64", "uint8")]
SIZES = [(0, 5), (5, 0), (1, 1), (1, 7), (13, 1), (5, 31), (17, 64), (3, 101)]


def grid(values, dtype):
    """Each pair of the values: two arrays."""
    x, y = np.meshgrid(np.array(values, dtype), np.array(values, dtype))
    return [np.ascontiguousarray(x.ravel()), np.ascontiguousarray(y.ravel())]


# --------------------------------------------------------------------------------------------------- operators
@pytest.mark.parametrize("dtype", [F32, F64, *INTS, BOOL], ids=str)
def test_every_operator(dtype, compiler):
    x, y = Load("x", (i,), dtype), Load("y", (i,), dtype)
    logical, real = dtype == BOOL, dtype.kind == "f"
    one = [op for op in UNARY if (op == "not") == logical and (real or op in ("neg", "abs", "not"))]
    two = [op for op in BINARY if (op in ("and", "or", "eq", "ne") if logical else op not in ("and", "or"))
           and (real or op not in ("div", "pow"))]
    results = {f"{op}_1": unary(op, x) for op in one} | {f"{op}_2": binary(op, x, y) for op in two}
    if not logical:
        results |= {f"power_{n}": binary("pow", x, const(n, dtype)) for n in (2, 3, 4)}
        results["chosen"] = select(binary("lt", x, y), x, y)
    function = flat(f"operators_{dtype}", {"x": dtype, "y": dtype}, {n: e.dtype for n, e in results.items()},
                    [Store(n, (i,), e) for n, e in results.items()])
    if logical:
        inputs = grid([False, True], dtype)
    elif real:
        # 0.25, not 0.5: of scalars numpy computes x^0.5 as sqrt, which differs for -inf from its own pow
        inputs = grid([0, 1, -1, 0.25, 2, -3, 3.25, 1e-3, 100, np.inf, -np.inf, np.nan], dtype)
    else:
        low = np.iinfo(dtype).min
        top = np.iinfo(dtype).max
        inputs = grid([1, 2, 3, 7, top, top - 1, *([-1, -2, low] if low else [])], dtype)
    check(function, compiler, inputs, [inputs[0].shape] * len(results), rtol=1e-6 if dtype == F32 else 1e-14)


@pytest.mark.parametrize("dtype", [F32, F64, F16, BF16, *INTS, BOOL], ids=str)
def test_every_cast(dtype, compiler):
    goals = [d for d in (F32, F64, F16, BF16, *INTS, BOOL) if d != dtype]
    results = {f"to_{d}": Cast(Load("x", (i,), dtype), d) for d in goals}
    function = flat(f"casts_{dtype}", {"x": dtype}, {n: e.dtype for n, e in results.items()},
                    [Store(n, (i,), e) for n, e in results.items()])
    x = np.array([0, 1, 0, 1, 1] if dtype == BOOL else [0, 1, 2, 17, 100, 3.7, 1.00390625, 0.1, 99.99999], np.float64)
    check(function, compiler, [x.astype(dtype)], [x.shape] * len(goals))


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_casts_to_halves_round_as_numpy(dtype, compiler):
    results = {"a": Cast(Load("x", (i,), F32), dtype), "b": Cast(Load("y", (i,), F64), dtype)}
    function = flat(f"round_{dtype}", {"x": F32, "y": F64}, {n: e.dtype for n, e in results.items()}, [
        Let("h", results["a"]), Store("a", (i,), Var("h", dtype)), Store("b", (i,), results["b"])])
    rng = np.random.default_rng(1)
    x = rng.standard_normal(500) * 10.0 ** rng.integers(-9, 7, 500)
    x = np.concatenate([x, [np.nan, np.inf, -np.inf, 65504, 65520]])
    with np.errstate(over="ignore"):
        check(function, compiler, [x.astype(np.float32), x], [x.shape] * 2)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_no_nan_is_lost_where_terms_cancel(dtype, compiler):
    """LLVM may not reassociate (x + y) - x to y, nor make 0 of x - x in a longer sum."""
    x, y = Load("x", (i,), dtype), Load("y", (i,), dtype)
    results = {"a": binary("sub", x, x), "b": binary("sub", binary("add", x, y), x),
               "c": binary("add", binary("sub", y, x), binary("sub", x, y))}
    function = flat(f"cancel_{dtype}", {"x": dtype, "y": dtype}, dict.fromkeys(results, dtype),
                    [Store(n, (i,), e) for n, e in results.items()])
    check(function, compiler, grid([1, 0.25, np.inf, -np.inf, np.nan], dtype), [(25,)] * 3)


def test_constants_are_exact(compiler):
    values = [0.1, -0.0, 1e-45, 3.4e38, np.inf, -np.inf, np.nan, 16777217]
    function = flat("constants", {"x": F32}, {f"c{n}": F32 for n in range(len(values))},
                    [Store(f"c{n}", (i,), const(v, F32)) for n, v in enumerate(values)])
    check(function, compiler, [np.zeros(2, np.float32)], [(2,)] * len(values))


def test_int_arithmetic_wraps_around(compiler):
    d = np.dtype(np.int32)
    function = flat("wrap", {"x": d}, {"y": d}, [Store("y", (i,), binary("sub", binary("mul", binary(
        "add", Load("x", (i,), d), const(2**31 - 1, d)), const(65537, d)), Load("x", (i,), d)))])
    check(function, compiler, [np.array([0, 1, 2, -1, 2**31 - 1, -2**31], d)], [(6,)])


# ------------------------------------------------------------------------------------------- sizes and loop forms
@pytest.mark.parametrize("size", SIZES)
def test_rows_of_any_size(size, compiler):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(size).astype(np.float32), rng.standard_normal(size[1]).astype(np.float32)
    check(rms_norm(), compiler, [x, w], [size], rtol=1e-5, atol=1e-6, threads=True)
    check(softmax(), compiler, [x], [size], rtol=1e-5, atol=1e-7, threads=True)
    check(column_sum(), compiler, [x], [size[1:]], rtol=1e-5, atol=1e-5, threads=True)


@pytest.mark.parametrize("dtype, rtol", [(F64, 1e-12), (F16, 2e-3), (BF16, 1.6e-2)], ids=str)
def test_dtypes_of_rows(dtype, rtol, compiler):
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(dtype) for s in ((5, 31), 31))
    check(rms_norm(dtype, wide=F64 if dtype == F64 else F32), compiler, [x, w], [(5, 31)], rtol=rtol, atol=1e-6)


def test_infinities_and_nan_stay(compiler):
    x = np.array([[0, -np.inf, 1, 2], [np.nan, 0, 1, 2], [-np.inf] * 4, [np.inf, 0, 1, 2], [-1e38, 1e38, 0, 0]],
                 np.float32)
    check(softmax(), compiler, [x], [x.shape], rtol=1e-6)
    y = run_all(softmax(), compiler, [x], [x.shape])[0][0]
    assert y[0, 1] == 0 and np.isnan(y[1]).all() and np.isnan(y[2]).all()


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("op, beyond", [("max", -np.inf), ("min", np.inf)])
def test_a_masked_maximum_is_a_vector_loop(op, beyond, dtype, compiler):
    """What a mask takes out is an infinity, which LLVM is not to fold into the maximum."""
    value = select(Load("m", (i, j), BOOL), Load("x", (i, j), dtype), const(beyond, dtype))
    body = Seq((Init("top", const(beyond, dtype)), For("j", Dim("x", 1), Accumulate("top", op, value), "vector"),
                Store("y", (i,), Var("top", dtype))))
    params = Param("m", BOOL, 2), Param("x", dtype, 2), Param("y", dtype, 1, True)
    function = Function(f"masked_{op}", params, For("i", Dim("x", 0), body, "parallel"), ("where", op))
    r = np.random.default_rng(0)
    x = r.standard_normal((4, 67)).astype(dtype)
    x[1, 3], x[2, 5] = np.nan, beyond
    mask = r.random((4, 67)) < 0.5
    mask[3] = False
    mask[1, 3] = mask[2, 5] = True
    check(function, compiler, [mask, x], [(4,)])
    kernel = Kernel(function, compiler)
    assert "scalar.hidden" in kernel.source
    assert "vector.body" in compiler.build(function, kernel.source).library.get_llvm_str()


def test_the_threaded_version_runs_big_arrays(compiler, monkeypatch):
    monkeypatch.setattr("minipd.cinn.runtime.kernel.allowed_threads", lambda: 2)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 257)).astype(np.float32)
    kernel, y = Kernel(softmax(), compiler), np.empty_like(x)
    assert kernel.threads(x.size) == 2 and kernel.threads(1000) == 1
    kernel([x], [y])
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_index_arithmetic_and_gathers(compiler):
    """y[i, j] = x[ids[i], columns - 1 - j]: an index that is loaded, and one that is computed."""
    reversed_j = binary("sub", binary("sub", Dim("x", 1), const(1, I64)), j)
    function = Function("pick", (Param("x", F32, 2), Param("ids", np.dtype(np.int32), 1), Param("y", F32, 2, True)),
                        For("i", Dim("ids", 0), For("j", Dim("x", 1), Store("y", (i, j), Load(
                            "x", (Load("ids", (i,), np.dtype(np.int32)), reversed_j), F32)), "vector"), "parallel"))
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    check(function, compiler, [x, np.array([2, 0, 0, 1], np.int32)], [(4, 5)], threads=True)


def test_the_loop_variable_as_a_value(compiler):
    function = flat("count", {"x": I64}, {"y": I64}, [
        Store("y", (i,), binary("add", Load("x", (i,), I64), binary("mul", i, i)))])
    check(function, compiler, [np.arange(11)], [(11,)], threads=True)


def test_views_and_scalars(compiler):
    """[2, 3, 5] seen as [6, 5], scaled by a 0-D array."""
    view = ((0, 1), (2,))
    function = Function("scaled", (Param("x", F32, 2, view=view), Param("s", F32, 0), Param("y", F32, 2, True, view)),
                        For("i", Dim("x", 0), For("j", Dim("x", 1), Store("y", (i, j), binary(
                            "mul", Load("x", (i, j), F32), Load("s", (), F32))), "vector"), "parallel"))
    x = np.arange(30, dtype=np.float32).reshape(2, 3, 5)
    check(function, compiler, [x, np.array(0.5, np.float32)], [x.shape], threads=True)


# ------------------------------------------------------------------------------------------------ random functions
def exact_values(depth):
    """Expressions over x, y, z and small constants that have no rounding: any order of evaluation gives the same."""
    leaf = st.one_of(st.sampled_from("xyz").map(lambda n: ("load", n)), st.integers(-3, 3).map(lambda v: ("const", v)))
    return st.recursive(leaf, lambda inner: st.one_of(
        st.tuples(st.sampled_from(["add", "sub", "mul", "max", "min"]), inner, inner),
        st.tuples(st.sampled_from(["neg", "abs"]), inner),
        st.tuples(st.just("select"), st.sampled_from(COMPARISONS), inner, inner, inner, inner)), max_leaves=depth)


def built(tree, dtype):
    match tree:
        case ("load", name):
            return Load(name, (i,), dtype)
        case ("const", value):
            return const(value, dtype)
        case ("select", compare, a, b, x, y):
            return select(binary(compare, built(a, dtype), built(b, dtype)), built(x, dtype), built(y, dtype))
        case (op, x):
            return unary(op, built(x, dtype))
        case (op, x, y):
            return binary(op, built(x, dtype), built(y, dtype))


def check_random(trees, dtype, size, compiler):
    names = [f"out{n}" for n in range(len(trees))]
    function = flat("random", dict.fromkeys("xyz", dtype), dict.fromkeys(names, dtype),
                    [Store(n, (i,), built(t, dtype)) for n, t in zip(names, trees, strict=True)])
    rng = np.random.default_rng(size)
    check(function, compiler, [rng.integers(-3, 4, size).astype(dtype) for _ in "xyz"], [(size,)] * len(names))


RANDOM = {"trees": st.lists(exact_values(6), min_size=1, max_size=4), "dtype": st.sampled_from([F32, F64, *INTS]),
          "size": st.sampled_from([0, 1, 2, 7, 31, 64, 101])}


@given(**RANDOM)
@settings(max_examples=8)
def test_random_functions(compiler, trees, dtype, size):
    check_random(trees, dtype, size, compiler)


@pytest.mark.long
@given(**RANDOM)
@settings(max_examples=200)
def test_many_random_functions(compiler, trees, dtype, size):
    check_random(trees, dtype, size, compiler)


# ------------------------------------------------------------------------------------------------ calling a kernel
def test_arrays_that_are_not_contiguous(compiler):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((12, 14)).astype(np.float32)
    kernel, expected = Kernel(softmax(), compiler), np.empty((6, 7), np.float32)
    kernel([np.ascontiguousarray(x[::2, ::2])], [expected])
    for given_x in (x[::2, ::2], np.asfortranarray(x[::2, ::2]), x[::2, ::2][::-1][::-1]):
        y = np.empty_like(expected)
        kernel([given_x], [y])
        np.testing.assert_array_equal(y, expected)
    y = np.zeros((7, 6), np.float32)
    kernel([x[::2, ::2]], [y.T])
    np.testing.assert_array_equal(y.T, expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_big_inputs_with_strides_are_read_where_they_are(compiler, monkeypatch, threads):
    monkeypatch.setattr("minipd.cinn.runtime.kernel.allowed_threads", lambda: threads)
    wide = np.random.default_rng(0).standard_normal((300, 600)).astype(np.float32)
    kernel, y = Kernel(softmax(), compiler), np.empty((300, 300), np.float32)
    for x in (wide[:, :300], wide[:, ::2], wide[:, :300].T):
        expected = np.empty_like(y)
        kernel([np.ascontiguousarray(x)], [expected])
        assert kernel.wanted([x], [y]).strided == (0,)
        kernel([x], [y])
        np.testing.assert_allclose(y, expected, rtol=1e-5)


def test_what_is_known_from_the_first_call_holds_for_other_arrays_only_if_they_fit(compiler):
    """Same shapes, but: other memory, an input over the output, unaligned, other dtypes."""
    kernel = Kernel(softmax(), compiler)
    memory = np.random.default_rng(0).standard_normal(60).astype(np.float32)

    def expected(x):
        e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    for first in range(3):
        x, y = memory[first:first + 12].reshape(3, 4), np.empty((3, 4), np.float32)
        kernel([x], [y])
        np.testing.assert_allclose(y, expected(x), rtol=1e-6)
    assert len(kernel._plans) == 1
    for shift in (0, 4, -4):
        own = memory.copy()
        x, y = own[20:32].reshape(3, 4), own[20 + shift:32 + shift].reshape(3, 4)
        want = expected(x)
        kernel([x], [y])
        np.testing.assert_allclose(y, want, rtol=1e-6)
    unaligned = np.frombuffer(bytearray(1) + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 4)
    y = np.empty((3, 4), np.float32)
    kernel([unaligned], [y])
    np.testing.assert_allclose(y, expected(unaligned), rtol=1e-6)
    with pytest.raises(TypeError, match="expected float32"):
        kernel([x.view(np.int32)], [y])
    assert len(kernel._plans) == 1


def test_shapes_without_end_do_not_fill_the_memory(compiler):
    kernel = Kernel(softmax(), compiler)
    for n in range(1, 200):
        x, y = np.zeros((n, 2), np.float32), np.empty((n, 2), np.float32)
        kernel([x], [y])
        assert (y == 0.5).all() and len(kernel._plans) <= 64


def test_a_bound_call_reads_its_arrays_anew(compiler):
    x, y = np.ones((3, 4), np.float32), np.empty((3, 4), np.float32)
    call = Kernel(softmax(), compiler).bind([x.T.copy().T], [y])
    strided = np.ones((3, 8), np.float32)[:, ::2]
    copied = Kernel(softmax(), compiler).bind([strided], [y])
    call()
    np.testing.assert_array_equal(y, 0.25)
    strided[:, 0] = -np.inf
    copied()
    np.testing.assert_allclose(y[:, 1:], 1 / 3, rtol=1e-6)


def test_read_only_and_unaligned_inputs(compiler):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    expected, y = np.empty_like(x), np.empty_like(x)
    Kernel(softmax(), compiler)([x], [expected])
    read_only = x.copy()
    read_only.flags.writeable = False
    unaligned = np.frombuffer(bytearray(1) + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 4)
    assert not unaligned.flags.aligned
    for given_x in (read_only, np.broadcast_to(x, (3, 4)), unaligned):
        Kernel(softmax(), compiler)([given_x], [y])
        np.testing.assert_array_equal(y, expected)


def test_an_input_that_is_the_output(compiler):
    x = np.random.default_rng(0).standard_normal((5, 31)).astype(np.float32)
    expected = np.empty_like(x)
    kernel = Kernel(softmax(), compiler)
    kernel([x], [expected])
    kernel([x], [x])
    np.testing.assert_array_equal(x, expected)


def test_an_input_that_overlaps_the_output_is_copied(compiler):
    memory = np.random.default_rng(0).standard_normal(40).astype(np.float32)
    x, y = memory[:36].reshape(4, 9), memory[4:].reshape(4, 9)
    expected = np.empty_like(x)
    kernel = Kernel(softmax(), compiler)
    kernel([x.copy()], [expected])
    kernel([x], [y])
    np.testing.assert_array_equal(y, expected)


def test_wrong_arrays_are_refused(compiler):
    kernel, x = Kernel(softmax(), compiler), np.ones((2, 3), np.float32)
    with pytest.raises(TypeError, match="expected 2 arrays, got 1 \\+ 0"):
        kernel([x], [])
    with pytest.raises(TypeError, match=r"array 0 \(x\): expected float32 with 2 axes, got float64 with 2"):
        kernel([x.astype(np.float64)], [x.copy()])
    with pytest.raises(TypeError, match=r"array 1 \(y\): expected float32 with 2 axes, got float32 with 1"):
        kernel([x], [np.ones(3, np.float32)])


def test_nothing_is_launched_for_no_elements(compiler):
    """... but a sum over no elements is written."""
    kernel = Kernel(softmax(), compiler)
    kernel.version = None           # would be called
    kernel([np.empty((0, 4), np.float32)], [np.empty((0, 4), np.float32)])
    y = np.ones(3, np.float32)
    Kernel(column_sum(), compiler)([np.empty((0, 3), np.float32)], [y])
    np.testing.assert_array_equal(y, 0)


def test_one_thread_means_serial(compiler, monkeypatch):
    monkeypatch.setattr("minipd.cinn.runtime.kernel.allowed_threads", lambda: 1)
    assert Kernel(softmax(), compiler).threads(1 << 30) == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_a_kernel_without_memory_for_its_row_says_so(compiler, monkeypatch, threads):
    monkeypatch.setattr("minipd.cinn.runtime.kernel.allowed_threads", lambda: threads)
    size = binary("mul", Dim("x", 0), const(1 << 45, I64))
    body = Seq((Alloc("row", (size,), F32), Store("row", (const(0, I64),), Load("x", (i,), F32)),
                Store("y", (i,), Load("row", (const(0, I64),), F32))))
    function = Function("greedy", (Param("x", F32, 1), Param("y", F32, 1, True)),
                        For("i", Dim("x", 0), body, "parallel"), ("cumsum",))
    x = np.ones(1 << 17, np.float32)
    call = Kernel(function, compiler).bind([x], [x.copy()])
    for _ in range(2):
        with pytest.raises(MemoryError, match=r"Kernel\(greedy: cumsum\): no memory for its own arrays"):
            call()


def test_a_kernel_that_cannot_be_built_names_its_operators(compiler):
    function = flat("broken", {"x": F32}, {"y": F32}, [Store("y", (i,), Load("nowhere", (i,), F32))], ("pow", "tanh"))
    with pytest.raises((KernelError, KeyError), match="nowhere|pow, tanh"):
        compile_function(function, compiler=compiler)


# ------------------------------------------------------------------------------------------------------ the source
def test_source_is_readable_and_always_the_same():
    assert numba_source(softmax()) == numba_source(softmax()) == '''\
import math as libm

import numpy as np

from minipd.cinn.codegen import math, scalar


def softmax(task, tasks, x, y):
    # softmax
    x_dim0 = x.shape[0]
    x_dim1 = x.shape[1]
    row = np.empty((x_dim1,), np.float32)
    for i in range(x_dim0 * task // tasks, x_dim0 * (task + 1) // tasks):
        top = np.float32(-np.inf)
        for j in range(x_dim1):
            top = scalar.maximum(top, x[i, j])
        total = np.float32(0.0)
        for j in range(x_dim1):
            e = math.exp(x[i, j] - top)
            row[j] = e
            total = scalar.plus(total, e)
        per_total = np.float32(1.0) / total
        for j in range(x_dim1):
            y[i, j] = row[j] * per_total
'''


def test_names_that_python_or_the_text_use_are_changed(compiler):
    function = flat("while", {"np": F32, "task": F32}, {"0": F32}, [
        Let("range", binary("add", Load("np", (i,), F32), Load("task", (i,), F32))),
        Store("0", (i,), Var("range", F32))])
    check(function, compiler, [np.ones(3, np.float32)] * 2, [(3,)])


def test_one_name_for_scalars_of_two_dtypes(compiler):
    body = For("i", Dim("x", 0), Store("y", (i,), Load("x", (i,), F32)), "parallel")
    narrow = Let("t", const(3, F32))
    first = For("k", const(1, I64), narrow)
    second = For("k", const(1, I64), Let("t", const(3, I64)))
    from minipd.cinn.ir.ast import Seq
    function = Function("names", (Param("x", F32, 1), Param("y", F32, 1, True)), Seq((first, second, body)))
    check(function, compiler, [np.ones(3, np.float32)], [(3,)])
    assert isinstance(cast(Const(1, I64), F32), Cast)


def test_the_sides_of_a_minimum_of_sizes_are_written_once(compiler):
    """Bounds that are clamped again and again would become a text that doubles each time."""
    n = Dim("x", 0)
    for _ in range(40):
        n = binary("max", binary("min", n, 5), 2)
    function = Function("least", (Param("x", F32, 1), Param("y", F32, 1, True)), For("i", n, Store(
        "y", (Var("i"),), const(1, F32))))
    kernel = compile_function(function, compiler)
    assert len(kernel.source) < 4000
    for size, want in ((1, 2), (3, 3), (9, 5)):
        y = np.zeros(9, F32)
        kernel([np.zeros(size, F32)], [y])
        assert y.sum() == want


def test_a_scalar_after_a_loop_that_has_one_of_its_name():
    """What every phase computes for itself stands before the loops: one of them must not have a scalar called so."""
    total, first = Init("total", const(0, F64)), Let("v", Load("x", (const(0, I64),), F64))
    loop = For("i", Dim("x", 0), Seq((Let("v", Load("x", (i,), F64)), Accumulate("total", "add", Var("v", F64)))))
    last = Store("y", (), binary("mul", Var("total", F64), Var("v", F64)))
    f = Function("f", (Param("x", F64, 1), Param("y", F64, 0, True)), Seq((total, loop, first, last)))
    y = np.empty(())
    compile_function(f)((np.array([2.0, 3.0, 5.0]),), (y,))
    assert y == 20.0
