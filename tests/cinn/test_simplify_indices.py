"""Polynomials, ranges, and quotients: each against what Python computes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd.cinn.ir.ast import BOOL, INT64, Const, Dim, For, Function, Param, Store, Var
from minipd.cinn.ir.build import binary, const
from minipd.cinn.ir.interpreter import _Run
from minipd.cinn.ir.linear import coefficient, difference, from_polynomial, polynomial
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.ranges import Ranges, simplify_in_ranges
from minipd.cinn.optim.simplify_indices import simplify_indices

VARS = ("i", "j", "k")
i, j, k, n = (Var(v) for v in "ijkn")


def value(e, **at):
    run = _Run(None)
    run.scalars = {name: INT64.type(x) for name, x in at.items()}
    return int(run.expression(e))


def sums():
    leaves = st.sampled_from([i, j, k]) | st.integers(-9, 9).map(lambda x: const(x, INT64))
    return st.recursive(leaves, lambda e: st.builds(binary, st.sampled_from(["add", "sub", "mul"]), e, e), max_leaves=7)


@given(sums(), sums(), st.tuples(*[st.integers(-4, 6)] * 3))
def test_polynomials_mean_the_same(a, b, at):
    known = dict(zip(VARS, at, strict=True))
    assert value(from_polynomial(polynomial(a)), **known) == value(a, **known)
    both = from_polynomial(difference(polynomial(a), polynomial(b)))
    assert value(both, **known) == value(a, **known) - value(b, **known)


@given(sums())
def test_what_is_the_same_becomes_the_same(e):
    again = from_polynomial(polynomial(e))
    assert polynomial(again) == polynomial(e)
    assert from_polynomial(difference(polynomial(e), polynomial(again))) == const(0, INT64)


@given(sums(), st.tuples(*[st.integers(-4, 6)] * 3))
def test_coefficients(e, at):
    known = dict(zip(VARS, at, strict=True))
    found = coefficient(polynomial(e), "i")
    if found is not None:
        c, rest = (value(from_polynomial(p), **known) for p in found)
        assert c * known["i"] + rest == value(e, **known)
        assert all(v.name != "i" for p in found for m in p for v in m)


@given(sums(), st.sampled_from(["floordiv", "mod"]), st.integers(1, 8), st.integers(1, 5),
       st.tuples(*[st.integers(1, 5)] * 3))
def test_quotients_mean_the_same(e, op, d, more, extents):
    whole = binary("floordiv", binary(op, e, d), more)
    found = simplify_in_ranges(whole, Ranges({v: const(x, INT64) for v, x in zip(VARS, extents, strict=True)}))
    for at in itertools.product(*map(range, extents)):
        known = dict(zip(VARS, at, strict=True))
        assert value(found, **known) == value(whole, **known), text(found)


@given(sums(), st.sampled_from(["lt", "le", "gt", "ge"]), st.integers(-20, 20), st.tuples(*[st.integers(1, 4)] * 3))
def test_conditions_that_always_or_never_hold(e, op, than, extents):
    ranges = Ranges({v: const(x, INT64) for v, x in zip(VARS, extents, strict=True)})
    cond = binary(op, e, than)
    holds = {bool(value(cond, **dict(zip(VARS, at, strict=True)))) for at in itertools.product(*map(range, extents))}
    assert not ranges.always(cond) or holds == {True}
    assert not ranges.never(cond) or holds == {False}
    assert not ranges.never_negative(e) or min(value(e, **dict(zip(VARS, at, strict=True)))
                                               for at in itertools.product(*map(range, extents))) >= 0


ROWS, COLUMNS = Dim("x", 0), Dim("x", 1)


@pytest.mark.parametrize("op, x, y, extents, expected", [
    ("floordiv", binary("add", binary("mul", i, 64), j), 64, {"j": 64}, "i"),
    ("mod", binary("add", binary("mul", i, 64), j), 64, {"j": 64}, "j"),
    ("mod", binary("add", binary("mul", i, 128), j), 64, {"j": 64}, "j"),
    ("floordiv", binary("add", binary("mul", i, 128), j), 64, {"j": 64}, "i * 2"),
    ("mod", binary("add", binary("mul", i, 64), j), 64, {"j": 65}, "(i * 64 + j) % 64"),
    ("floordiv", binary("add", binary("mul", i, COLUMNS), j), COLUMNS, {"j": COLUMNS}, "i"),
    ("mod", binary("add", binary("mul", i, COLUMNS), j), COLUMNS, {"j": COLUMNS}, "j"),
    ("mod", binary("add", binary("mul", i, COLUMNS), j), COLUMNS, {"j": ROWS}, "(i * x.shape[1] + j) % x.shape[1]"),
    ("floordiv", binary("floordiv", i, 4), 8, {}, "i // 32"),
    ("mod", i, 5, {"i": 5}, "i"),
    ("floordiv", i, 5, {"i": 5}, "0"),
])
def test_what_quotients_become(op, x, y, extents, expected):
    ranges = Ranges({"i": const(1000, INT64), **{
        v: e if isinstance(e, Dim) else const(e, INT64) for v, e in extents.items()}})
    assert text(simplify_in_ranges(binary(op, x, y), ranges)) == expected


def test_conditions_of_sizes_are_left():
    ranges = Ranges({"i": ROWS})
    assert not ranges.always(binary("lt", i, 5)) and not ranges.never(binary("lt", i, 5))
    assert ranges.always(Const(True, BOOL)) and ranges.never(Const(False, BOOL))


def test_the_pass_knows_the_loops():
    position = binary("add", binary("mul", i, 4), j)
    back = binary("add", binary("mul", binary("floordiv", position, 4), 10), binary("mod", position, 4))
    store = Store("y", (position,), back)
    f = Function("f", (Param("y", INT64, 1, True),), For("i", const(3, INT64), For("j", const(4, INT64), store)))
    assert text(simplify_indices(f).body).splitlines()[4].strip() == "y[i * 4 + j] = i * 10 + j"
