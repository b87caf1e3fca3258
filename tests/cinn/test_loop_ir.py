"""The loop IR: ill-typed trees cannot be built, the interpreter refuses what no kernel may do, simplify changes no
result."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd.cinn.ir.ast import (
    BOOL,
    INT64,
    Accumulate,
    Alloc,
    Binary,
    Cast,
    Const,
    Dim,
    For,
    Function,
    Init,
    Let,
    Load,
    Param,
    Select,
    Seq,
    Store,
    Unary,
    Var,
)
from minipd.cinn.ir.build import binary, cast, const, identity, select, seq, unary
from minipd.cinn.ir.interpreter import LoopError, interpret
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.simplify import simplify, simplify_expression

F32, F64, BF16, I32 = np.dtype("f4"), np.dtype("f8"), np.dtype(ml_dtypes.bfloat16), np.dtype("i4")
i, j = Var("i"), Var("j")


def element(buffer="x", *index, dtype=F32):
    return Load(buffer, index or (i,), dtype)


def one_loop(*body, params=None, extent=None):
    params = params or (Param("x", F32, 1), Param("y", F32, 1, output=True))
    return Function("f", params, For("i", extent or Dim("x", 0), seq(body)))


# ------------------------------------------------------------------------------------------------------- types
@pytest.mark.parametrize("build, message", [
    (lambda: Binary("add", element(), element(dtype=F64), F32), "one dtype, got float32 and float64"),
    (lambda: Binary("lt", element(), element(), F32), "lt of float32 gives bool, not float32"),
    (lambda: binary("add", element(dtype=BF16), element(dtype=BF16)), "cast it to float32 first"),
    (lambda: binary("div", i, j), "ints have floordiv"),
    (lambda: unary("exp", i), "expected a float"),
    (lambda: unary("not", element()), "not of float32"),
    (lambda: Unary("gamma", element(), F32), "no unary operator 'gamma'"),
    (lambda: select(element(), element(), element()), "expected a bool condition"),
    (lambda: Load("x", (element(),), F32), "index of x: expected ints"),
    (lambda: Param("x", F32, 2, view=((0, 1),)), "a view of 1 axes, 2 dimensions"),
])
def test_ill_typed_trees_cannot_be_built(build, message):
    with pytest.raises(TypeError, match=message):
        build()


# ------------------------------------------------------------------------------------------------ interpreter
X = np.array([1, 2, 3], np.float32)


@pytest.mark.parametrize("function, message", [
    (one_loop(Store("y", (binary("add", i, 1),), element())), r"y\[i \+ 1\] = x\[i\]: \[3\] is outside y"),
    (one_loop(Store("y", (binary("sub", i, 1),), element())), r"\[-1\] is outside y"),
    (one_loop(Store("y", (i,), element("y"))), r"y\[0\] is read before it is written"),
    (one_loop(Store("y", (i,), Var("s", F32))), "s: it has no value here"),
    (one_loop(Store("x", (i,), element())), "x is an input"),
    (one_loop(Store("y", (i,), cast(element(), F64))), "y is float32, the value float64"),
    (one_loop(Store("y", (i,), Var("i", I32))), "i is int64, read as int32"),
    (one_loop(Accumulate("s", "add", element()), Store("y", (i,), element())), "s is no accumulator here"),
    (one_loop(Alloc("t", (Dim("x", 0),), F32), Store("y", (i,), element("t"))), r"t\[0\] is read before"),
    (one_loop(Store("y", (i,), element()), extent=const(2, INT64)), r"output y is not written at \[2\]"),
    (Function("f", one_loop(Seq(())).params, Seq((Seq((Let("s", const(1, F32)),)), Store("y", (const(0, INT64),),
                                                                                     Var("s", F32))))), "no value"),
])
def test_the_interpreter_refuses_what_no_kernel_may_do(function, message):
    with pytest.raises(LoopError, match=message):
        interpret(function, [X], [np.empty(3, np.float32)])


def test_a_local_array_is_new_in_every_iteration():
    first = select(binary("eq", i, 0), const(0, INT64), const(0, INT64))
    once = select(binary("eq", i, 0), const(1, INT64), const(0, INT64))
    f = one_loop(Alloc("t", (const(1, INT64),), F32), For("j", once, Store("t", (first,), element())),
                 Store("y", (i,), Load("t", (first,), F32)))
    with pytest.raises(LoopError, match=r"t\[0\] is read before it is written"):
        interpret(f, [X], [np.empty(3, np.float32)])


def test_scalars_have_their_exact_dtype():
    x = np.array([100, 127, -128], np.int8)
    i8 = np.dtype("i1")
    f = Function("f", (Param("x", i8, 1), Param("y", i8, 1, output=True)),
                 For("i", Dim("x", 0), Store("y", (i,), binary("add", element(dtype=i8), element(dtype=i8)))))
    y = np.empty(3, np.int8)
    interpret(f, [x], [y])
    assert y.tolist() == [-56, -2, 0]


def test_maximum_propagates_nan_and_starts_from_its_identity():
    f = Function("f", (Param("x", F32, 1), Param("y", F32, 0, output=True)), Seq((
        Init("m", identity("max", F32)), For("i", Dim("x", 0), Accumulate("m", "max", element())),
        Store("y", (), Var("m", F32)))))
    for values, expected in (([1, 3, 2], 3), ([1, np.nan, 2], np.nan), ([], -np.inf), ([-np.inf], -np.inf)):
        y = np.empty((), np.float32)
        interpret(f, [np.array(values, np.float32)], [y])
        np.testing.assert_array_equal(y, expected)


def test_a_view_merges_axes():
    f = Function("f", (Param("x", F32, 1, view=((0, 1),)), Param("y", F32, 1, True, view=((0, 1),))),
                 For("i", Dim("x", 0), Store("y", (i,), binary("mul", element(), element()))))
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.empty((2, 3), np.float32)
    interpret(f, [x], [y])
    np.testing.assert_array_equal(y, x * x)


# ---------------------------------------------------------------------------------------------------- printer
@pytest.mark.parametrize("e, expected", [
    (binary("sub", i, binary("sub", j, 1)), "i - (j - 1)"),
    (binary("mul", binary("add", i, 1), j), "(i + 1) * j"),
    (binary("pow", unary("neg", element()), const(2, F32)), "(-x[i]) ** 2.0f"),
    (unary("neg", binary("pow", element(), const(2, F32))), "-x[i] ** 2.0f"),
    (unary("not", binary("and", binary("lt", i, j), binary("eq", i, 0))), "not (i < j and i == 0)"),
    (binary("eq", binary("lt", i, j), binary("lt", j, i)), "(i < j) == (j < i)"),
    (select(binary("lt", element(), const(-np.inf, F32)), const(np.nan, F32), cast(i, F32)),
     "select(x[i] < -inf, nan, f32(i))"),
    (const(0.1, F32), "0.1f"),
    (cast(element("s", dtype=BF16), F32), "f32(s[i])"),
])
def test_expressions_print_as_python_groups_them(e, expected):
    assert text(e) == expected


# --------------------------------------------------------------------------------------------------- simplify
def test_indices_fold():
    a, n = Var("a"), Dim("x", 0)
    for e, expected in (
            (binary("add", binary("add", a, 2), 3), "a + 5"),
            (binary("mul", 4, binary("mul", a, 2)), "a * 8"),
            (binary("sub", binary("add", a, n), n), "a"),
            (binary("min", binary("mul", n, 1), n), "x.shape[0]"),
            (binary("mod", a, 1), "0"),
            (binary("floordiv", const(7, INT64), const(2, INT64)), "3")):
        assert text(simplify_expression(e)) == expected


def test_float_results_are_kept():
    x = element()
    for e, expected in (
            (binary("mul", x, const(0, F32)), "x[i] * 0.0f"),            # NaN * 0 is NaN
            (binary("sub", x, x), "x[i] - x[i]"),
            (binary("div", x, x), "x[i] / x[i]"),
            (binary("add", binary("add", x, const(1, F32)), const(2, F32)), "x[i] + 1.0f + 2.0f"),
            (binary("mul", x, const(1, F32)), "x[i]"),
            (select(const(True, BOOL), x, const(0, F32)), "x[i]"),
            (binary("add", const(16777216, F32), const(1, F32)), "1.6777216e+07f"),  # folded in float32
            (Cast(Cast(x, BF16), F32), "f32(bf16(x[i]))")):             # a rounding
        assert text(simplify_expression(e)) == expected


def test_what_nothing_reads_goes():
    f = one_loop(Let("a", element()), Let("b", unary("exp", Var("a", F32))), Init("s", const(0, F32)),
                 For("k", const(4, INT64), Accumulate("s", "add", Var("a", F32))), Alloc("t", (const(1, INT64),), F32),
                 Store("t", (const(0, INT64),), Var("a", F32)), Store("y", (i,), Var("a", F32)))
    assert text(simplify(f).body) == "serial for (i, 0, x.shape[0])\n{\n  a = x[i]\n  y[i] = a\n}"


def test_a_name_that_comes_again_in_a_later_scope_is_judged_by_that_scope():
    used = For("i", Dim("x", 0), Seq((Let("a", unary("exp", element())), Store("y", (i,), Var("a", F32)))))
    unused = For("i", Dim("x", 0), Seq((Let("a", unary("exp", element())), Store("z", (i,), element()))))
    f = Function("f", (Param("x", F32, 1), Param("y", F32, 1, True), Param("z", F32, 1, True)), Seq((used, unused)))
    assert text(simplify(f).body).count("exp") == 1


FLOATS = st.sampled_from([0.0, -0.0, 1.0, 2.5, -3.0, np.inf, -np.inf, np.nan])
INTS = st.integers(-3, 9)


def float_expressions():
    leaves = st.just(element()) | FLOATS.map(lambda v: const(v, F32))
    return st.recursive(leaves, lambda e: st.one_of(
        st.builds(binary, st.sampled_from(["add", "sub", "mul", "div", "max", "min"]), e, e),
        st.builds(unary, st.sampled_from(["neg", "abs", "exp", "tanh"]), e),
        st.builds(lambda op, a, b, x, y: select(binary(op, a, b), x, y), st.sampled_from(["lt", "eq"]), e, e, e, e),
        st.builds(lambda x: Cast(Cast(x, BF16), F32), e)), max_leaves=8)


def index_expressions():
    leaves = st.sampled_from([i, Dim("x", 0)]) | INTS.map(lambda v: const(v, INT64))
    return st.recursive(leaves, lambda e: st.builds(
        binary, st.sampled_from(["add", "sub", "mul", "min", "max"]), e, e) | st.builds(
        lambda e, n: binary("floordiv", e, n), e, st.integers(1, 4)), max_leaves=8)


@given(float_expressions(), index_expressions(), st.lists(FLOATS, max_size=4))
def test_simplified_functions_mean_the_same(e, k, values):
    f = Function("f", (Param("x", F32, 1), Param("y", F32, 1, True), Param("z", INT64, 1, True)),
                 For("i", Dim("x", 0), Seq((Let("a", e), Let("b", k), Store("z", (i,), Var("b")),
                                            Store("y", (i,), Var("a", F32))))))
    x = np.array(values, np.float32)
    results = []
    for function in (f, simplify(f)):
        y, z = np.empty(len(x), np.float32), np.empty(len(x), np.int64)
        interpret(function, [x], [y, z])
        results.append((y, z))
    (y0, z0), (y1, z1) = results
    np.testing.assert_array_equal(y0, y1)       # 0.0 == -0.0: the sign of a zero is open
    np.testing.assert_array_equal(z0, z1)


def test_constants_hold_what_their_dtype_holds():
    assert const(300, np.dtype("u1")) == Const(44, np.dtype("u1"))
    assert const(0.1, F32).value == float(np.float32(0.1))
    assert const(1.001, BF16).value == 1.0
    assert isinstance(const(np.float64(2), I32).value, int)
    assert Select(const(True, BOOL), i, j, INT64) == select(const(True, BOOL), i, j)
