"""Symbolic dimensions against plain integer arithmetic."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from minipd.framework.dim import (
    Constraints,
    DimExpr,
    bind_shape,
    exact_div,
    is_symbolic,
    parse_dim,
    prod,
    require_at_least,
    require_divisible,
    require_equal,
    same,
    size_hint,
    substitute_all,
    symbol,
)

S, T = symbol("S0"), symbol("S1")
BINDINGS = st.fixed_dictionaries({name: st.integers(0, 20) for name in ("S0", "S1", "S2")})


def grow(children):
    pair = st.tuples(children, children)
    return st.one_of(
        pair.map(lambda p: (f"({p[0][0]})+({p[1][0]})", p[0][1] + p[1][1])),
        pair.map(lambda p: (f"({p[0][0]})-({p[1][0]})", p[0][1] - p[1][1])),
        pair.map(lambda p: (f"({p[0][0]})*({p[1][0]})", p[0][1] * p[1][1])),
    )


# Pairs of (Python text of an expression, its DimExpr or int): the text is evaluated by Python itself as the oracle.
LEAVES = st.one_of(
    st.integers(-5, 5).map(lambda n: (str(n), n)),
    st.sampled_from(["S0", "S1", "S2"]).map(lambda name: (name, symbol(name))),
)
EXPRESSIONS = st.recursive(LEAVES, grow, max_leaves=8)


def value(x, bindings):
    return x if isinstance(x, int) else x.substitute(bindings)


@given(EXPRESSIONS, BINDINGS)
def test_arithmetic_equals_integer_arithmetic(expression, bindings):
    text, dim = expression
    expected = eval(text, {}, bindings)
    assert value(dim, bindings) == expected
    assert parse_dim(text) == dim
    if expected >= 0 and isinstance(dim, DimExpr):
        assert dim.evaluate(bindings) == expected


@given(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS)
def test_equal_polynomials_have_one_form(a, b, c):
    a, b, c = a[1], b[1], c[1]
    left, right = a * (b + c), c * a + b * a
    assert left == right and hash(left) == hash(right) and repr(left) == repr(right)
    assert type(left) is type(right)
    assert (a - b) + b == a
    assert not isinstance(a - a, DimExpr) and a - a == 0


@given(EXPRESSIONS, st.integers(1, 12), BINDINGS)
def test_text_and_copies_round_trip(expression, divisor, bindings):
    dim = expression[1] / divisor if isinstance(expression[1], DimExpr) else expression[1]
    assert parse_dim(str(dim)) == dim
    assert pickle.loads(pickle.dumps(dim)) == dim
    assert copy.deepcopy(dim) == dim


@given(EXPRESSIONS, EXPRESSIONS)
def test_division_undoes_multiplication(a, b):
    a, b = a[1], b[1]
    assume(isinstance(b, DimExpr))
    assert a * b / b == a
    assert a * b // b == a
    assert (a * b) % b == 0


@given(EXPRESSIONS, st.integers(1, 12), BINDINGS)
def test_division_by_an_int_is_exact_or_refused_at_run_time(expression, divisor, bindings):
    dim = expression[1]
    assume(isinstance(dim, DimExpr))
    constraints = Constraints()
    expected = dim.substitute(bindings)
    try:
        with constraints.collect():
            quotient = exact_div(dim, divisor)
    except ValueError as error:
        assert "expected a multiple" in str(error) and expected % divisor != 0  # 2*S0+1 is odd for every S0
        return
    if expected % divisor == 0:
        constraints.check(bindings)
        assert value(quotient, bindings) == expected // divisor
    else:
        with pytest.raises(ValueError, match="expected"):
            constraints.check(bindings)
        with pytest.raises(ValueError, match="whole number"):
            value(quotient, bindings)


@given(EXPRESSIONS, st.integers(1, 6), BINDINGS)
def test_a_remainder_known_without_assumption_is_right(expression, divisor, bindings):
    dim = expression[1]
    assume(isinstance(dim, DimExpr))
    constraints = Constraints()
    with constraints.collect():
        remainder = dim % divisor
    if not len(constraints):
        assert dim.substitute(bindings) % divisor == remainder
    else:
        assert remainder == 0


@given(EXPRESSIONS, EXPRESSIONS, BINDINGS)
def test_substituting_expressions_then_values(expression, inner, bindings):
    dim, inner = expression[1], inner[1]
    assume(isinstance(dim, DimExpr))
    substituted = dim.substitute({"S0": inner})
    assert value(substituted, bindings) == dim.substitute({**bindings, "S0": value(inner, bindings)})


@pytest.mark.parametrize(
    "dim, text",
    [
        (S, "S0"),
        (2 * S + 1, "2*S0+1"),
        (S * T / 4, "S0*S1/4"),
        (1 - S, "-S0+1"),
        (S * S - 1, "S0*S0-1"),
        ((S + 2) / 4, "(S0+2)/4"),
        (3 * S / 6, "S0/2"),
        ((4 * S + 2) / 4, "(2*S0+1)/2"),
    ],
)
def test_text(dim, text):
    assert str(dim) == text
    assert parse_dim(text) == dim


@pytest.mark.parametrize("text", ["s0", "S0**2", "1.5", "S0%2", "Max()", "max(S0,1)", "True", "1//0", "S0 S1", "",
                                  "f(S0)", "S_0"])
def test_what_is_no_dimension_is_refused(text):
    with pytest.raises(ValueError, match="parse_dim: expected a dimension such as"):
        parse_dim(text)


def test_equality_is_structural():
    assert S != 1 and S != T and S + 1 != S
    assert S == symbol("S0") and {S: 1}[symbol("S0")] == 1
    assert S + 0 == S and S * 1 == S
    assert S * 0 == 0 and type(S * 0) is int
    assert S.symbols == {"S0"} and (S * T + 1).symbols == {"S0", "S1"}


@pytest.mark.parametrize(
    "question, text",
    [
        (lambda: bool(S), r"bool\(S0\)"),
        (lambda: S < 8, "S0 < 8"),
        (lambda: S >= T, "S0 >= S1"),
        (lambda: 3 > S, "S0 < 3"),
        (lambda: S <= 3, "S0 <= 3"),
        (lambda: int(S), r"int\(S0\)"),
        (lambda: np.zeros((S, 2)), r"int\(S0\)"),
        (lambda: range(S), r"int\(S0\)"),
    ],
)
def test_the_truth_is_unknown_while_tracing(question, text):
    with pytest.raises(TypeError, match=f"{text}: expected a size known while tracing, got the symbolic dimension"):
        question()


def test_floats_are_refused_and_strangers_left_alone():
    with pytest.raises(TypeError, match=r"S0 \* 0.5: expected an int or a dimension, got a float"):
        S * 0.5
    with pytest.raises(TypeError, match="unsupported operand"):
        S + "a"
    assert S * np.int64(3) == 3 * S
    assert type((S * np.int64(3)).substitute({"S0": np.int64(2)})) is int


def test_evaluate_names_the_guard():
    with pytest.raises(ValueError, match=r"dimension S0/4: expected a whole number, got 3/2 for S0=6.*divides evenly"):
        (S / 4).evaluate({"S0": 6})
    with pytest.raises(ValueError, match=r"dimension S0-5: expected a size of at least 0, got -2 for S0=3"):
        (S - 5).evaluate({"S0": 3})
    with pytest.raises(ValueError, match=r"S0\*S1: expected a size for every symbol, got none for S1"):
        (S * T).evaluate({"S0": 3})
    assert (S - 5).substitute({"S0": 3}) == -2


def test_halves_may_meet_again():
    half = (2 * S + 1) / 2 - S
    assert half * 2 == 1 and type(half * 2) is int


def test_known_remainders():
    assert (4 * S + 1) % 2 == 1
    assert (4 * S + 6) % 4 == 2
    assert (S * T) % S == 0
    assert (-1 * (4 * S + 1)) % 4 == 3


def test_without_a_trace_an_assumption_is_an_error():
    with pytest.raises(ValueError, match="S0 % 4: expected S0 to be a multiple of 4.*no trace is recording"):
        S % 4
    with pytest.raises(ValueError, match="columns: expected S0 to be a multiple of 4"):
        exact_div(S, 4, "columns")
    with pytest.raises(ValueError, match="add: dimension 0: expected 8, got S0"):
        require_equal(S, 8, "add: dimension 0")


def test_quotients_that_are_no_polynomial():
    with pytest.raises(ValueError, match="12 / S0: expected a quotient that is a polynomial"):
        exact_div(12, S)
    with pytest.raises(ZeroDivisionError):
        S / 0
    assert exact_div(12 * S * T, 4 * T) == 3 * S
    assert (S * T + S) // (T + 1) == S
    assert 0 / S == 0


def test_ints_are_compared_at_once():
    assert require_equal(3, 3, "x") == 3
    with pytest.raises(ValueError, match="matmul: inner dimension: expected 4, got 3"):
        require_equal(3, 4, "matmul: inner dimension")
    require_divisible(12, 4, "x")
    with pytest.raises(ValueError, match="heads: expected a multiple of 5, got 12"):
        require_divisible(12, 5, "heads")
    with pytest.raises(ValueError, match="heads: expected a multiple of 5, got 12"):
        exact_div(12, 5, "heads")


def test_require_equal_returns_the_int():
    constraints = Constraints()
    with constraints.collect():
        assert require_equal(S, 8, "a") == 8
        assert require_equal(8, S, "b") == 8
        assert require_equal(S, T, "c") in (S, T)
        assert require_equal(S, S, "d") == S
    assert [c.relation for c in constraints] == ["S0 == 8", "S0 == S1"]     # that 8 == S0 follows


def test_require_at_least():
    require_at_least(3, 3, "x")
    with pytest.raises(ValueError, match="rows: expected at least 4, got 3"):
        require_at_least(3, 4, "rows")
    require_at_least(S * T + 2, 2, "known: sizes are never negative")
    with pytest.raises(ValueError, match="rows: S0 against S0[+]1: expected at least 0, got -1"):
        require_at_least(S, S + 1, "rows")
    with pytest.raises(ValueError, match="rows: expected S0 to be at least 4.*no trace is recording"):
        require_at_least(S, 4, "rows")
    constraints = Constraints()
    with constraints.collect():
        require_at_least(S, 4, "rows")
    constraints.check({"S0": 4})
    with pytest.raises(ValueError, match="rows: expected S0 >= 4, got 3 and 4 for S0=3"):
        constraints.check({"S0": 3})


def test_what_can_never_be_equal_is_refused_while_tracing():
    with Constraints().collect(), pytest.raises(ValueError, match="differ whatever the symbols are"):
        require_equal(S, S + 1, "concat")


def test_constraints_remember_where_they_came_from():
    constraints = Constraints()
    with constraints.collect():
        S % 4
        S % 4
        require_equal(T, S, "add: dimension 1")
    divisible, equal = constraints
    assert str(divisible).startswith("S0 % 4 == 0  (S0 % 4, ") and "test_dim.py:" in divisible.where
    assert str(equal).startswith("S1 == S0  (add: dimension 1, ")
    constraints.check({"S0": 8, "S1": 8})
    with pytest.raises(ValueError, match=r"expected S0 % 4 == 0, got 6 and 4 for S0=6, S1=6 \(assumed at"):
        constraints.check({"S0": 6, "S1": 6})
    with pytest.raises(ValueError, match="add: dimension 1: expected S1 == S0, got 4 and 8 for S0=8, S1=4"):
        constraints.check({"S0": 8, "S1": 4})


def test_collectors_nest_and_end():
    outer, inner = Constraints(), Constraints()
    with outer.collect():
        S % 2
        with inner.collect():
            S % 3
        S % 5
    assert [c.right for c in outer] == [2, 5] and [c.right for c in inner] == [3]
    with pytest.raises(ValueError):
        S % 2


def test_helpers():
    assert prod(()) == 1 and prod((2, 3)) == 6 and prod((2, S, T)) == 2 * S * T
    assert type(prod((2, 3))) is int
    assert same((2, S), (2, symbol("S0"))) and not same((2, S), (2, 1))
    assert is_symbolic(S) and is_symbolic((1, [S])) and is_symbolic({"a": S}) and not is_symbolic((1, 2, "S0", None))
    assert S.hint == 64 and (S * 2 + 1).hint == 129 and (S - 100).hint == 0 and size_hint(5) == 5
    assert size_hint(S / 4) == 16
    tree = {"shape": (S, 4, [T * S]), "axis": None, "name": "S0", "start": S - 5}
    assert substitute_all(tree, {"S0": 2, "S1": 3}) == {"shape": (2, 4, [6]), "axis": None, "name": "S0", "start": -3}
    assert substitute_all((S, T), {"S0": T}) == (T, T)


def test_bind_shape():
    bindings: dict[str, int] = {}
    bind_shape((2 * T, S, 4, T), (6, 2, 4, 3), bindings, "x")
    assert bindings == {"S0": 2, "S1": 3}
    with pytest.raises(ValueError, match=r"y: expected S0 = 2 for dimension 0 of \[S0\], got shape \[5\]"):
        bind_shape((S,), (5,), bindings, "y")
    with pytest.raises(ValueError, match=r"y: expected 4 for dimension 1 of \[S0, 4\], got shape \[2, 3\]"):
        bind_shape((S, 4), (2, 3), bindings, "y")
    with pytest.raises(ValueError, match="y: expected 2 dimensions"):
        bind_shape((S, 4), (2,), bindings, "y")


@pytest.mark.parametrize("name", ["", "s0", "S_0", "0S", "S0x"])
def test_symbol_names(name):
    with pytest.raises(ValueError, match="capital letters and digits"):
        symbol(name)
