"""Rounded quotients, maxima, minima and broadcast sizes against plain ints; bounds; what follows from assumptions."""

import copy
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd.framework.constraints import RELATIONS, Constraint
from minipd.framework.dim import (
    Constraints,
    DimExpr,
    broadcast_dims,
    ceil_div,
    exact_div,
    floor_div,
    maximum,
    minimum,
    modulo,
    parse_dim,
    parse_relation,
    require_at_least,
    require_divisible,
    require_equal,
    same,
    symbol,
)
from minipd.framework.dim_atoms import always_equal, bounds, broadcast

S, T = symbol("S0"), symbol("S1")
BINDINGS = st.fixed_dictionaries({name: st.integers(0, 12) for name in ("S0", "S1")})
SMALL = st.integers(1, 7)


def grow(children):
    """Pairs of (Python text, DimExpr or int), one operator deeper."""
    pair = st.tuples(children, children)
    return st.one_of(
        pair.map(lambda p: (f"({p[0][0]})+({p[1][0]})", p[0][1] + p[1][1])),
        pair.map(lambda p: (f"({p[0][0]})-({p[1][0]})", p[0][1] - p[1][1])),
        pair.map(lambda p: (f"({p[0][0]})*({p[1][0]})", p[0][1] * p[1][1])),
        st.tuples(children, SMALL).map(lambda p: (f"({p[0][0]})//{p[1]}", floor_div(p[0][1], p[1]))),
        st.tuples(children, SMALL).map(lambda p: (f"-(-({p[0][0]})//{p[1]})", ceil_div(p[0][1], p[1]))),
        st.tuples(children, SMALL).map(lambda p: (f"({p[0][0]})%{p[1]}", modulo(p[0][1], p[1]))),
        st.tuples(children, SMALL).map(lambda p: (f"({p[0][0]})//(S1+{p[1]})", floor_div(p[0][1], T + p[1]))),
        pair.map(lambda p: (f"max(({p[0][0]}),({p[1][0]}))", maximum(p[0][1], p[1][1]))),
        pair.map(lambda p: (f"min(({p[0][0]}),({p[1][0]}))", minimum(p[0][1], p[1][1]))),
    )


LEAVES = st.integers(-5, 5).map(lambda n: (str(n), n)) | st.sampled_from([("S0", S), ("S1", T)])
EXPRESSIONS = st.recursive(LEAVES, grow, max_leaves=6)


def value(dim, bindings):
    return dim if isinstance(dim, int) else dim.substitute(bindings)


@given(EXPRESSIONS, BINDINGS)
def test_sizes_equal_integer_arithmetic_within_their_bounds(expression, bindings):
    text, dim = expression
    expected = eval(text, {"max": max, "min": min}, dict(bindings))
    assert value(dim, bindings) == expected
    low, high = bounds(dim)
    assert low <= expected <= high


@given(EXPRESSIONS)
def test_text_and_copies_round_trip(expression):
    dim = expression[1]
    assert parse_dim(str(dim)) == dim
    assert pickle.loads(pickle.dumps(dim)) == dim and copy.deepcopy(dim) == dim


@given(EXPRESSIONS, EXPRESSIONS, BINDINGS)
def test_substituting_expressions_then_values(expression, inner, bindings):
    dim, inner = expression[1], inner[1]
    if isinstance(dim, DimExpr) and value(inner, bindings) >= 0:        # a size
        substituted = dim.substitute({"S0": inner})
        assert value(substituted, bindings) == value(dim, {**bindings, "S0": value(inner, bindings)})


@given(EXPRESSIONS, EXPRESSIONS, BINDINGS)
def test_what_is_said_to_be_equal_always_is(a, b, bindings):
    if always_equal(a[1], b[1]):
        assert value(a[1], bindings) == value(b[1], bindings)


@pytest.mark.parametrize("dim, text", [
    (S // 2, "S0//2"), ((S + 3) // 2, "(S0+1)//2+1"), (S // 2 // 3, "S0//6"), ((S // 2 + 1) // 2, "(S0+2)//4"),
    (2 * S // 4, "S0//2"), ((2 * S + 5) // 4, "S0//2+1"), (ceil_div(S, 2), "(S0+1)//2"),
    (3 * (S // 2), "3*(S0//2)"), (S * T // T, "S0"), (S // T, "S0//S1"), ((S + 1) // (T + 1), "(S0+1)//(S1+1)"),
    (12 // (S + 1), "12//(S0+1)"), (maximum(S, 0), "S0"), (maximum(T, S, 3, 4), "Max(S0,S1,4)"),
    (maximum(S, maximum(T, 4)), "Max(S0,S1,4)"), (maximum(S, S + 1), "S0+1"), (minimum(S, 8), "Min(S0,8)"),
    (minimum(S, S + T), "S0"), (broadcast(S, 1), "S0"), (broadcast(T, S), "Broadcast(S0,S1)"),
    (broadcast(S, broadcast(T, S)), "Broadcast(S0,S1)"), (broadcast(S, 8), "8"),
    (2 * maximum(S, T) + 1, "2*Max(S0,S1)+1"),
])
def test_normal_forms(dim, text):
    assert str(dim) == text
    assert parse_dim(text) == dim


def test_broadcast_sizes_evaluate_or_refuse():
    both = broadcast(S, T)
    assert [both.evaluate({"S0": a, "S1": b}) for a, b in ((3, 3), (1, 5), (5, 1), (0, 1), (1, 1))] == [3, 5, 5, 0, 1]
    with pytest.raises(ValueError, match="broadcast: expected sizes that are equal or 1, got 2, 3"):
        both.evaluate({"S0": 2, "S1": 3})


def test_order_is_known_where_it_is_the_same_for_all_sizes():
    assert S >= 0 and S + 1 > 0 and not S < 0 and S // 2 <= S and bool(S + 1) and S - S // 2 >= 0
    assert minimum(S, 4) < 5 and maximum(S, 4) >= 4
    for question in (lambda: S > 0, lambda: S < T, lambda: bool(S)):
        with pytest.raises(TypeError, match="expected a size known while tracing"):
            question()
    with Constraints().collect():
        require_at_least(S, 3, "rows")
        assert S > 2 and 2 * S - 6 >= 0
        with pytest.raises(TypeError):
            assert S > 3


def test_bounds():
    assert bounds(S * T) == (0, math.inf) and bounds(S - T) == (-math.inf, math.inf)
    assert bounds(S - 5, {"S0": (7, 9)}) == (2, 4) and bounds(S * S - 5, {"S0": (2, 3)}) == (-1, 4)
    assert bounds((10 - S) // 3, {"S0": (0, 10)}) == (0, 3)


# ------------------------------------------------------------------------------------------------- the solver
def collected(*facts):
    constraints = Constraints()
    for kind, left, right in facts:
        constraints.record(kind, left, right, "test")
    return constraints


@pytest.mark.parametrize("facts, kept", [
    ([("equal", T, S), ("equal", S, T)], ["S1 == S0"]),
    ([("equal", T, S), ("equal", S, 8), ("equal", T, 8)], ["S1 == S0", "S0 == 8"]),
    ([("equal", 2 * S, 8), ("divisible", S, 4)], ["2*S0 == 8"]),
    ([("divisible", S, 2), ("divisible", S, 4)], ["S0 % 4 == 0"]),
    ([("divisible", S, 4), ("divisible", 3 * S, 2)], ["S0 % 4 == 0"]),
    ([("at least", S, 3), ("at least", S, 2), ("at least", S + 1, 4)], ["S0 >= 3"]),
    ([("at least", S, 2), ("at least", S, 3)], ["S0 >= 3"]),
    ([("at least", S, 3), ("equal", S, 5)], ["S0 == 5"]),
    ([("equal", S + T, 4), ("equal", 2 * S + 2 * T, 8)], ["S0+S1 == 4"]),
    ([("broadcastable", S, T), ("broadcastable", T, S), ("broadcastable", S, 1)], ["Broadcastable(S0,S1)"]),
    ([("broadcastable", S, T), ("equal", S, T)], ["S0 == S1"]),
    ([("equal", (S + 1) // 2, S - S // 2)], []),
    ([("divisible", S, 2), ("equal", S // 2 * 2, S)], ["S0 % 2 == 0"]),
    ([("at least", S, T), ("at least", S + 1, T)], ["S0 >= S1"]),
])
def test_what_follows_is_not_kept(facts, kept):
    assert [c.relation for c in collected(*facts)] == kept


@pytest.mark.parametrize("facts", [
    [("equal", S, 5), ("equal", S, 6)],
    [("equal", S, T), ("equal", T, S + 1)],
    [("equal", S, 5), ("divisible", S, 2)],
    [("divisible", S, 2), ("equal", S, 5)],
    [("at least", S, 6), ("equal", S, 5)],
    [("equal", S, T), ("at least", S, 3), ("equal", T, 2)],
    [("at least", 3, S), ("at least", S, 4)],
    [("equal", S, 3), ("equal", T, 4), ("broadcastable", S, T)],
    [("equal", S, 2 * T), ("equal", S, 2 * T + 1)],
    [("divisible", S, 0)],
])
def test_contradictions_are_found_while_tracing(facts):
    with pytest.raises(ValueError, match="test: expected .*, which no sizes fulfil"):
        collected(*facts)


def test_a_contradiction_names_what_it_contradicts():
    constraints = collected(("equal", S, T), ("equal", S, 5))
    with pytest.raises(ValueError, match=r"heads: expected S1 % 2 == 0, which no sizes fulfil together with "
                                         r"S0 == S1  \(test, .*; S0 == 5  \(test, "), constraints.collect():
        require_divisible(T, 2, "heads")


FACTS = st.tuples(st.sampled_from(sorted(RELATIONS)), EXPRESSIONS, EXPRESSIONS)


@given(st.lists(FACTS, max_size=5), BINDINGS)
def test_what_is_kept_says_the_same(facts, bindings):
    """Sizes fulfil what is kept exactly when they fulfil everything that was assumed; a contradiction has none."""
    facts = [(kind, left[1], right[1]) for kind, left, right in facts]

    def hold():
        return all(Constraint(*fact, "test", "").holds(bindings) for fact in facts)
    try:
        constraints = collected(*facts)
    except ValueError:
        assert not hold()
        return
    assert all(c.holds(bindings) for c in constraints) == hold()
    if hold():
        for _, left, right in facts:
            for dim in (left, right):
                assert value(constraints.simplified(dim), bindings) == value(dim, bindings)


@given(FACTS)
def test_relations_round_trip(fact):
    kind, left, right = fact[0], fact[1][1], fact[2][1]
    assert parse_relation(RELATIONS[kind].format(left, right)) == (kind, left, right)


def test_assumed_equalities_count_from_then_on():
    with Constraints().collect() as constraints:
        assert not same(S, T)
        require_equal(S, T, "add")
        assert same(S, T) and same((S, 3), (T, 3)) and same(S * T, T * T) and not same(S, T + 1)
        assert broadcast_dims("add", S, T) in (S, T)
        require_divisible(S, 4, "heads")
        assert exact_div(T, 4) == T / 4
    assert len(constraints) == 2


def test_open_dimensions_broadcast():
    with Constraints().collect() as constraints:
        assert str(both := broadcast_dims("add", S, T)) == "Broadcast(S0,S1)"
        assert broadcast_dims("add", both, S) == both and broadcast_dims("add", 1, both) == both
        assert broadcast_dims("add", symbol("S2"), 8) == 8
    assert [c.relation for c in constraints] == ["Broadcastable(S0,S1)", "S2 == 8"]
    fit = ((4, 4), (1, 4), (4, 1), (0, 1))
    for sizes in (*fit, (4, 2), (0, 2)):
        bindings = {"S0": sizes[0], "S1": sizes[1], "S2": 8}
        if sizes in fit:
            constraints.check(bindings)
        else:
            with pytest.raises(ValueError, match=r"add: expected Broadcastable\(S0,S1\), got . and ."):
                constraints.check(bindings)


@pytest.mark.parametrize("text", ["(" * 300 + "S0" + ")" * 300, "-" * 3000 + "1", "S0+" * 5000 + "S0",
                                  "*".join(f"(A{i}+B{i})" for i in range(40)), "9" * 9000, "S0*" * 400 + "S0", "1/0",
                                  "S0//0", "Max(" * 200 + "S0" + ")" * 200, "[S0]", "lambda: S0", "S0 if 1 else 2"])
def test_texts_without_end_are_refused(text):
    with pytest.raises(ValueError, match="parse_dim: expected a dimension such as"):
        parse_dim(text)
