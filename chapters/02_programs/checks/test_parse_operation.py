"""Oracle: programs that were built, not parsed; what they print must parse to the same."""

import numpy as np

import minipd as paddle
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.builder import Builder
from minipd.ir.parser import ParseError, parse
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.static.input import InputSpec
from tools.course.checking import check

ONE = """{
    (%0) = "pd_op.full" () {dtype: dtype(float32), shape: ints(2), value: f64(1.5)} : () -> tensor<2xf32>
    (%1) = "pd_op.add" (%0, %0) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
}
"""


def back(program):
    """The text of what the text of a program parses to."""
    return lambda: parse(program.to_string("exact")).to_string("exact")


def refusal(text):
    """Line and column at which the text is refused, and what stands there."""
    def run():
        try:
            parse(text)
        except ParseError as error:
            return f"{error.line}:{error.column}", str(error).partition(", got ")[2]
        return "accepted"
    return run


def spec(*shape):
    return InputSpec(list(shape), "float32")


def test_two_lines():
    check(["pd_op.full", "pd_op.add"], lambda: [op.name() for op in parse(ONE).walk()], ONE)
    check(ONE, lambda: parse(ONE).to_string("exact"), "printing what was parsed:\n" + ONE)


def test_attributes_are_kept():
    check({"dtype": np.dtype("float32"), "shape": (2,), "value": 1.5},
          lambda: parse(ONE).global_block().front().attrs(), "the attributes of the first operation of\n" + ONE)


def test_operands_are_the_values_above():
    def f():
        full, add = parse(ONE).walk()
        return [v is full.result(0) for v in add.operands_source()]
    check([True, True], f, "whether both operands of the addition are the result of the first line of\n" + ONE)


def test_no_results():
    program = trace(lambda x: x.exp(), spec(2)).program
    check(program.to_string("exact"), back(program), "exp(x): its last line has no results")


def test_several_results():
    program = Program()
    build = Builder(program.global_block())
    x, y = build.data("x", (2, 3), "float32"), build.data("label", (2, 1), "int64")
    softmax, loss = build.call(ROWS["cross_entropy_with_softmax"], (x, y), {"axis": 1})
    build.output("softmax", softmax)
    build.output("loss", loss)
    check(program.to_string("exact"), back(verify(program)), "a cross entropy, which has two results, both of "
                                                             "which are used")


def test_regions():
    def f(x):
        return paddle.static.nn.cond(x.sum() > 0.0, lambda: x.exp(), lambda: x.tanh())
    program = trace(f, spec(2)).program
    check(program.to_string("exact"), back(program), "cond(x.sum() > 0, exp(x), tanh(x))")


def test_regions_in_regions():
    def f(x):
        def inner():
            return paddle.static.nn.cond(x.max() > 1.0, lambda: x * 2.0, lambda: x)
        return paddle.static.nn.cond(x.sum() > 0.0, inner, lambda: x.tanh()) + 1.0
    program = trace(f, spec("S0")).program
    check(program.to_string("exact"), back(program), "a cond in a cond, then + 1, with a symbolic size")


def test_a_value_that_is_not_defined():
    check(("3:29", "%7"), refusal(ONE.replace("(%0, %0)", "(%0, %7)")), "the second line adds %0 and %7")


def test_a_value_that_is_defined_later():
    text = ONE.replace("(%0, %0)", "(%0, %1)")
    check(("3:29", "%1"), refusal(text), "the second line adds %0 and its own result %1")


def test_a_name_that_is_taken():
    check(("3:6", "%0"), refusal(ONE.replace("(%1) =", "(%0) =")), "the second line calls its result %0, too")


def line_of(text):
    """The line at which the text is refused, or "accepted"."""
    def run():
        said = refusal(text)()
        return said if said == "accepted" else said[0].partition(":")[0]
    return run


def test_types_that_are_not_those_of_the_operands():
    both = "(tensor<2xf32>, tensor<2xf32>)"
    check("3", line_of(ONE.replace(both, "(tensor<2xf32>, tensor<3xf32>)")),
          "the line that is refused, where line 3 says that an operand has 3 elements")
    check("3", line_of(ONE.replace(both, "(tensor<2xf32>)")),
          "the line that is refused, where line 3 gives a type for one operand of two")


def test_fewer_types_than_results():
    text = ONE.replace("(%1) =", "(%1, %2) =")
    check(True, lambda: refusal(text)() != "accepted",
          "is it refused that the second line has two results, and one type behind the arrow?")


def test_what_is_missing():
    for old, new in (("} : (tensor", "} (tensor"), (" -> tensor<2xf32>\n}", " tensor<2xf32>\n}"), (") = \"", ") \"")):
        text = new.join(ONE.rsplit(old, 1))
        check(True, lambda text=text: refusal(text)() != "accepted", "is this refused?\n" + text)
