"""Operations that a number makes an identity."""

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.program import Program
from minipd.ir.verify import verify
from minipd.passes.compare import outcome
from minipd.passes.library.identity_op_clean import RemoveNeutral
from minipd.passes.pattern import apply_patterns_greedily
from minipd.passes.show import brief, program_of
from tools.course.checking import check

X = np.array([0.5, -2.0, 0.0, -0.0, np.inf, np.nan], np.float32)


def cleaned(program):
    apply_patterns_greedily(program, [RemoveNeutral()], max_rewrites=20)
    verify(program)
    return brief(program).splitlines()


def becomes(lines, f, on, spec="f32[6]"):
    """The short text of the program afterwards, and for floats its values, to the bit."""
    program = program_of(f, spec)
    x = X if spec == "f32[6]" else np.arange(6).astype(program.global_block().front().result(0).dtype)
    before = outcome(program, {"x": x})["output_0"]
    check(lines, lambda: cleaned(program), f"the program that is left of {on}")
    after = outcome(program, {"x": x})["output_0"]
    check(str(before.dtype), str(after.dtype), f"the dtype of the result of {on}")
    check(before.tobytes().hex(), after.tobytes().hex(), f"the bits of the result of {on}")


@pytest.mark.parametrize(("f", "on"), [
    (lambda x: x * 1.0, "x * 1"), (lambda x: 1.0 * x, "1 * x"), (lambda x: x / 1.0, "x / 1"),
    (lambda x: x ** 1.0, "x ** 1"), (lambda x: x - 0.0, "x - 0")], ids=lambda p: p if isinstance(p, str) else "")
def test_what_goes(f, on):
    becomes(["return x"], f, on)


@pytest.mark.parametrize(("f", "left", "on"), [
    (lambda x: x * 2.0, "multiply(x, 2.0)", "x * 2"), (lambda x: x * 0.0, "multiply(x, 0.0)", "x * 0"),
    (lambda x: x / 2.0, "divide(x, 2.0)", "x / 2"), (lambda x: x - 1.0, "subtract(x, 1.0)", "x - 1"),
    (lambda x: 1.0 / x, "divide(1.0, x)", "1 / x"), (lambda x: 0.0 - x, "subtract(0.0, x)", "0 - x"),
    (lambda x: x * x, "multiply(x, x)", "x * x")], ids=lambda p: p if isinstance(p, str) else "")
def test_what_stays(f, left, on):
    becomes([f"a = {left}", "return a"], f, on)


def test_one_to_the_power_of_x():
    program = Program()
    build = Builder(program.global_block())
    x = build.data("x", (), "float32")
    one, = build.call(ROWS["full"], (), {"shape": (), "value": 1.0, "dtype": "float32"})
    y, = build.call(ROWS["pow"], (one, x), {})
    build.output("y", y)
    check(["a = pow(1.0, x)", "return a"], lambda: cleaned(program), "the program that is left of 1 ** x, x one number")


def test_minus_zero():
    """-0.0 - (-0.0) is 0.0."""
    becomes(["a = subtract(x, -0.0)", "return a"], lambda x: x - -0.0, "x - (-0.0), for x = -0.0 among others")


def test_integers():
    becomes(["return x"], lambda x: x * 1, "x * 1 for integers x", "i64[6]")


def test_a_number_that_becomes_a_row():
    """x of no dimensions times ones of three: the result has three."""
    def f(x):
        return paddle.ones([3]) * x
    before = brief(program_of(f, "f32[]")).splitlines()
    program = program_of(f, "f32[]")
    check(before, lambda: cleaned(program), "the program that is left of ones([3]) * x, where x is one number")
    shape = program.global_block().back().operand_source(0).shape
    check((3,), shape, "the shape of ones([3]) * x, where x is one number")


def test_several():
    becomes(["a = exp(x)", "return a"], lambda x: ((x * 1.0).exp() / 1.0 - 0.0) * 1.0, "(exp(x * 1) / 1 - 0) * 1")


def test_a_gradient_that_stops():
    """A result that stops a gradient, of an x that does not: x in its place would let it through."""
    for stops, want in ((True, ["a = multiply(x, 1.0)", "return a"]), (False, ["return x"])):
        program = Program()
        build = Builder(program.global_block())
        x = build.data("x", (2,), "float32")
        x.stop_gradient = False
        one, = build.call(ROWS["full"], (), {"shape": (), "value": 1.0, "dtype": "float32"})
        y, = build.call(ROWS["multiply"], (x, one), {})
        y.stop_gradient = stops
        build.output("y", y)
        check(want, lambda p=program: cleaned(p), "the program that is left of x * 1, where x lets a gradient through "
              f"and the result {'stops it' if stops else 'does, too'}")
