"""Results that go around the cache: the rows that may, and their bits."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from minipd.cinn.codegen import numba_source as writer
from minipd.cinn.codegen import scalar
from minipd.cinn.codegen.numba_source import numba_source
from minipd.cinn.codegen.streaming import streamed_rows
from minipd.cinn.ir.ast import Dim, For, Function, IfThenElse, Load, Param, Seq, Store
from minipd.cinn.ir.build import binary, const
from minipd.cinn.ir.walk import map_expressions
from minipd.framework.numba_setup import numba
from tests.cinn.loops import F32, I64, check, i, j, k, rms_norm, softmax


def with_columns(function, columns):
    """The function for rows of known length."""
    def known(e):
        if isinstance(e, Dim) and e.axis == 1:
            return const(columns, I64)
        return e
    return replace(function, body=map_expressions(known, function.body))


def doubled(loop, outputs=("y",), dtype=F32):
    params = (Param("x", dtype, 2), *(Param(name, dtype, 2, True) for name in outputs))
    return Function("doubled", params, loop, ())


def columns(body, n=4096, var="j"):
    return For(var, const(n, I64), body)


TWICE = binary("mul", Load("x", (i, j), F32), const(2, F32))
IN_PLACE = binary("mul", Load("y", (i, j), F32), const(2, F32))


def rows(body):
    return For("i", Dim("x", 0), body, "parallel")


def test_rows_that_are_written_once():
    loop = rows(columns(Store("y", (i, j), TWICE)))
    (row,) = streamed_rows(doubled(loop))[id(loop)]
    assert (row.param.name, row.place, row.first, row.last) == ("y", (i,), 0, 0)


def test_rows_that_are_read_again_after_they_were_written():
    stmts = Seq((columns(Store("y", (i, j), TWICE)), columns(Store("y", (i, j), IN_PLACE))))
    loop = rows(stmts)
    (row,) = streamed_rows(doubled(loop))[id(loop)]
    assert (row.first, row.last) == (0, 1)


@pytest.mark.parametrize("body", [
    columns(Store("y", (i, j), IN_PLACE)),                                      # y is an input too
    columns(Store("y", (i, j), TWICE), n=2047),
    columns(Store("y", (i, j), TWICE), n=65537),
    Seq((columns(Store("y", (i, j), TWICE)), columns(Store("y", (const(0, I64), j), TWICE)))),
])
def test_rows_that_stay(body):
    assert not streamed_rows(doubled(rows(body)))


def test_rows_whose_halves_are_written_differently():
    half = binary("lt", j, const(2048, I64))
    other = IfThenElse(half, Store("y", (i, j), TWICE), Store("y", (i, j), Load("x", (i, j), F32)))
    loop = rows(columns(other))
    assert [row.place for row in streamed_rows(doubled(loop))[id(loop)]] == [(i,)]
    elsewhere = IfThenElse(half, Store("y", (i, j), TWICE), Store("y", (const(0, I64), j), TWICE))
    assert not streamed_rows(doubled(rows(columns(elsewhere))))


def test_rows_that_two_nests_use():
    nest = rows(columns(Store("y", (i, j), TWICE)))
    assert not streamed_rows(doubled(Seq((nest, rows(columns(Store("y", (i, j), IN_PLACE)))))))


def test_columns_of_a_transposed_result_stay():
    loop = rows(columns(Store("y", (j, i), TWICE)))
    assert not streamed_rows(doubled(loop))


def test_small_results_say_when_they_would():
    text = numba_source(with_columns(softmax(), 4096))
    assert "y_local = np.empty(y.shape[1] if y.nbytes >= 67108864 else 0, np.float32)" in text
    assert "y_row = y_local if y_local.size else y[i]" in text
    assert "scalar.stream(y_local, y[i])" in text


@pytest.mark.parametrize("dtype", [F32, np.dtype(ml_dtypes.bfloat16)])
@pytest.mark.parametrize("width", [2048, 2051])
def test_streamed_rows_hold_the_same(monkeypatch, compiler, dtype, width):
    monkeypatch.setattr(writer, "STREAMED_FROM", 0)
    r = np.random.default_rng(0)
    x, w = r.standard_normal((7, width)).astype(dtype), r.standard_normal(width).astype(dtype)
    function = with_columns(rms_norm(dtype), width)
    assert "nbytes >= 0" in numba_source(function)
    check(function, compiler, [x, w], [(7, width)], rtol=1e-6 if dtype == F32 else 1e-2, threads=True)


def test_a_row_in_three_dimensions(monkeypatch, compiler):
    monkeypatch.setattr(writer, "STREAMED_FROM", 0)
    store = Store("y", (i, k, j), binary("add", Load("x", (i, k, j), F32), const(1, F32)))
    nest = For("i", Dim("x", 0), For("k", Dim("x", 1), columns(store, 2053)), "parallel")
    function = Function("more", (Param("x", F32, 3), Param("y", F32, 3, True)), nest, ())
    assert "y_local if y_local.size else y[i, k]" in numba_source(function)
    x = np.random.default_rng(1).standard_normal((3, 2, 2053)).astype(F32)
    check(function, compiler, [x], [x.shape])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint16, np.bool_])
def test_stream_copies_every_element_wherever_arrays_begin(dtype):
    @numba.njit
    def copy(source, goal):
        scalar.stream(source, goal)
    memory = np.random.default_rng(0).integers(0, 2 if dtype is np.bool_ else 100, 400).astype(dtype)
    for length in (0, 1, 2, 15, 16, 17, 31, 64, 65, 130, 200):
        for start in (0, 1, 3, 16, 63):
            goal = np.zeros(400, dtype)
            copy(memory[start:start + length], goal[7 + start:7 + start + length])
            expected = np.zeros(400, dtype)
            expected[7 + start:7 + start + length] = memory[start:start + length]
            np.testing.assert_array_equal(goal, expected)
