"""What passes do, as text; and when results count as the same."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ml_dtypes import bfloat16

import minipd as paddle
from minipd.passes import FunctionPass, Pass, create_pass, pass_names, register_pass
from minipd.passes.compare import TOLERANCES, difference
from minipd.passes.listing import info, listing
from minipd.passes.show import before_after, brief, program_of
from minipd.passes.table import MAKERS
from minipd.static.nn import cond, while_loop

F = paddle.nn.functional


# ------------------------------------------------------------------------------------------------------ short text
def text(function, *specs):
    return brief(program_of(function, *specs)).splitlines()


def test_attributes_that_are_not_the_default_and_constants_where_they_are_used():
    assert text(lambda x, w: F.softmax(paddle.matmul(x, w, transpose_y=True) * 0.5 + 1.0).sum(0, keepdim=True),
                "f32[2, 3]", "f32[4, 3]") == [
        "a = matmul(x, w, transpose_y=True)", "b = multiply(a, 0.5)", "c = add(b, 1.0)", "d = softmax(c, axis=1)",
        "e = sum(d, keepdim=True, axis=(0,))", "return e"]


def test_vectors_are_lists_and_several_results_have_a_name_each():
    assert text(lambda x: paddle.concat(x.split([1, 2], 1)[::-1], 1), "f32[2, 3]") == [
        "a, b = split(x, sections=(1, 2), axis=1)", "c = concat(b, a, axis=1)", "return c"]
    assert text(lambda x: x.split([1, 2], 1)[1], "f32[2, 3]") == [
        "_, a = split(x, sections=(1, 2), axis=1)", "return a"]


def test_names_do_not_collide_with_inputs():
    assert text(lambda b, a: (a + b).exp(), (2,), (2,)) == ["c = add(a, b)", "d = exp(c)", "return d"]
    many = text(lambda x: [x := x.exp() for _ in range(30)][-1], (2,))
    assert many[22:27] == ["w = exp(v)", "y = exp(w)", "z = exp(y)", "a1 = exp(z)", "b1 = exp(a1)"]


def test_state_regions_and_open_sizes():
    class Counting(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", paddle.zeros([1]))

        def forward(self, x):
            self.seen.set_value(self.seen + 1.0)
            return cond(x.sum() > 0.0, lambda: x * self.seen, lambda: x)
    assert text(Counting(), "f32[S, 2]") == [
        "a = add(seen, 1.0)", "b = share_data_(a)", "c = sum(x, axis=(0, 1))", "d = greater_than(c, 0.0)", "e = if(d)",
        "  f = multiply(x, b)", "  return f", "else", "  return x", "seen <- b", "return e"]
    loop = text(lambda x: while_loop(lambda y: y.sum() < 9.0, lambda y: [y * 2.0], [x])[0], (2,))
    assert loop[2:4] == ["c = while(b, x)", "  given d"]


def test_specs_are_short_texts_shapes_or_input_specs():
    spec = paddle.static.InputSpec([3], "int64")
    program = program_of(lambda x, y, z: (x, y, z), "bf16[2, S]", (4,), spec)
    types = [str(op.result(0).type()) for op in program.walk() if op.name() == "pd_op.data"]
    assert types == ["tensor<2xSxbf16>", "tensor<4xf32>", "tensor<3xi64>"]
    with pytest.raises(ValueError, match=r"spec: expected a dtype and dimensions, such as f32\[2, S\], got 'g32\[2\]'; "
                                         "the dtypes are b, i8"):
        program_of(lambda x: x, "g32[2]")


# ---------------------------------------------------------------------------------------------------- before, after
def test_before_and_after_share_nothing_and_the_options_are_given():
    lines = ["  a = full(shape=(2,), value=3.0, dtype=float32)", "  b = multiply(a, 0.5)", "  c = add(x, b)",
             "  return c"]
    assert before_after("constant_folding_pass", lambda x: x + paddle.full([2], 3.0) * 0.5, (2,), max_elements=1) == (
        "\n".join(["before", *lines, "after", *lines]))


def test_a_pass_that_does_not_keep_the_meaning_is_not_shown():
    @register_pass("wrong_pass")
    class Wrong(Pass):
        exact = True

        def run(self, program):
            op = next(op for op in program.walk() if op.name() == "pd_op.full")
            op.set_attr("value", 2.0 + 1e-6)
            return 1
    try:
        with pytest.raises(AssertionError, match="wrong_pass: expected the program to compute the same afterwards, got "
                                                 "output_0"):
            before_after("wrong_pass", lambda x: x * 2.0, (2, 3))
        Wrong.exact = False
        assert "2.000001" in before_after("wrong_pass", lambda x: x * 2.0, (2, 3))
    finally:
        del MAKERS["wrong_pass"]


# ------------------------------------------------------------------------------------------------------- comparing
floats = st.floats(width=32, allow_nan=True, allow_infinity=True)


@given(st.lists(st.tuples(floats, floats), min_size=1, max_size=6))
def test_to_the_bit_means_the_same_bits_but_for_the_kind_of_nan(pairs):
    a, b = (np.array(x, np.float32) for x in zip(*pairs, strict=True))
    same = all(x.tobytes() == y.tobytes() or (x != x and y != y) for x, y in zip(a, b, strict=True))
    assert (difference({"y": a}, {"y": b}, 0.0) is None) == same
    assert difference({"y": a}, {"y": a.copy()}, 0.0) is None and difference({"y": a}, {"y": a.copy()}) is None


@pytest.mark.parametrize("dtype", [np.float16, bfloat16, np.float32, np.float64, np.complex64])
def test_how_far_apart_is_the_same_is_a_part_of_the_largest_number(dtype):
    a = np.array([1e-3, -100.0, 2.0], dtype)
    limit = TOLERANCES[a.dtype.itemsize] * 100.0
    for factor, same in ((0.3, True), (3.0, False)):
        b = a + np.array([factor * limit, 0, 0]).astype(dtype)
        assert (difference({"y": a}, {"y": b}) is None) == same
    assert difference({"y": a}, {"y": a * np.array(1.5, dtype)}, rtol=0.6) is None


@pytest.mark.parametrize("a, b", [(np.inf, -np.inf), (np.inf, 1.0), (1.0, np.inf), (np.nan, 1.0), (1.0, np.nan),
                                  (np.nan, np.inf)])
def test_what_is_not_finite_is_only_itself(a, b):
    assert difference({"y": np.array([a, 5.0])}, {"y": np.array([b, 5.0])}, rtol=1.0).startswith(f"y[0]: expected {a}")
    assert difference({"y": np.array([a, 5.0])}, {"y": np.array([a, 5.0])}) is None


def test_names_shapes_dtypes_and_integers():
    one = np.ones(2, np.float32)
    assert difference({"y": one}, {}) == "results: expected y, got none of y"
    assert difference({"y": one}, {"y": one, "z": one}) == "results: expected y, got z too"
    assert difference({"y": one}, {"y": np.ones(3, np.float32)}) == "y: expected float32[2], got float32[3]"
    assert difference({"y": one}, {"y": np.ones(2)}) == "y: expected float32[2], got float64[2]"
    assert difference({"y": np.array(3)}, {"y": np.array(4)}) == "y: expected 3, got 4 (1 of 1 numbers differ)"
    assert difference({"y": np.array([[True, False]])}, {"y": np.array([[True, True]])}) == (
        "y[0, 1]: expected False, got True (1 of 2 numbers differ)")
    assert difference({"y": np.zeros((0, 2))}, {"y": np.zeros((0, 2))}) is None
    assert difference({"y": np.zeros(1)}, {"y": np.full(1, 1e-300)}) is not None


# -------------------------------------------------------------------------------------------------------- listing
def test_every_pass_says_what_it_is():
    for name in pass_names():
        found = info(name)
        assert found.name == name and re.fullmatch(r"[a-z0-9_]+_pass", name), name
        assert len(found.doc) > 10 and "\n" not in found.doc, f"{name} needs a docstring that says what it does"
        assert (Path(__file__).parents[2] / found.file).is_file(), name
        assert found.opt_level in range(5) and isinstance(found.exact, bool)
        assert set(found.dependents) <= {*pass_names()}


def test_the_listing_is_a_table():
    lines = listing().splitlines()
    assert len(lines) == 1 + len(pass_names()) and lines[0].split() == ["pass", "level", "exact", "what", "it", "does"]
    column = lines[0].index("level")
    assert [int(line[column:].split()[0]) for line in lines[1:]] == [info(n).opt_level for n in pass_names()]
    more = listing(["constant_folding_pass"], long=True).splitlines()
    assert "    file     minipd/passes/library/constant_folding.py" in more
    assert any(line.startswith("    options  max_elements: int = 65536") for line in more)


def test_facts_of_a_pass_that_is_a_function_and_of_one_with_needed_options():
    try:
        MAKERS["made_pass"] = lambda *, size: FunctionPass("made_pass", lambda p: 0)
        found = info("made_pass")
        assert (found.opt_level, found.exact, found.options, found.rules) == (1, False, ("size",), ())
    finally:
        del MAKERS["made_pass"]
    with pytest.raises(KeyError, match="expected one of the table"):
        info("no_such_pass")
    assert create_pass("silu_fuse_pass").rules and info("silu_fuse_pass").rules == ("Silu",)
