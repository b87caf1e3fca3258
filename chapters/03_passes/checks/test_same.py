"""The key of common-subexpression elimination: which operations compute the same."""

import numpy as np

import minipd as paddle
from minipd.executor import Executor, Scope
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.passes import create_pass
from minipd.static import InputSpec
from tools.course.checking import check

QUIET = ("data", "full", "full_int_array", "shadow_output")


def left(f, *names, stop_gradient=True, shape=(2, 2)):
    """The operators that are left of f's program after the pass, without inputs and constants."""
    program = trace(f, *(InputSpec(list(shape), "float32", n, stop_gradient) for n in names)).program
    create_pass("common_subexpression_elimination_pass").run(program)
    names = [op.name().split(".")[1] for op in program.walk()]
    return [n for n in names if n not in QUIET]


def test_the_same_operator_on_the_same_value():
    def twice(x):
        first = x.exp()
        second = x.exp()                # another line: where it was written makes no difference
        return first * second
    check(["exp", "multiply"], left(twice, "x"), "exp(x) * exp(x)")


def test_other_values():
    check(["exp", "exp", "add"], left(lambda a, b: a.exp() + b.exp(), "a", "b"), "exp(a) + exp(b)")


def test_other_operators():
    check(["exp", "tanh", "add"], left(lambda x: x.exp() + x.tanh(), "x"), "exp(x) + tanh(x)")


def test_operands_that_commute():
    check(["add", "multiply"], left(lambda a, b: (a + b) * (b + a), "a", "b"), "(a + b) * (b + a)")


def test_operands_that_do_not_commute():
    check(["subtract", "subtract", "multiply"], left(lambda a, b: (a - b) * (b - a), "a", "b"), "(a - b) * (b - a)")


def test_attributes():
    check(["sum", "sum", "add"], left(lambda x: x.sum(0) + x.sum(1), "x"), "x.sum(0) + x.sum(1)")
    check(["sum", "sum", "add"], left(lambda x: x.sum(0) + x.sum(0, keepdim=True), "x"),
          "x.sum(0) + x.sum(0, keepdim=True)")
    check(["sum", "add"], left(lambda x: x.sum(0) + x.sum(0), "x"), "x.sum(0) + x.sum(0)")


def test_constants():
    check(["multiply", "multiply", "add"], left(lambda x: x * 2.0 + x * 3.0, "x"), "x * 2.0 + x * 3.0")
    check(["multiply", "multiply", "add"], left(lambda x: x * 0.0 + x * -0.0, "x"),
          "x * 0.0 + x * -0.0 (1 / 0.0 is inf, 1 / -0.0 is -inf)")


def test_operands_that_stand_for_attributes():
    check(["strided_slice", "strided_slice", "add"], left(lambda x: x[2:6:3] + x[3:6:2], "x", shape=(8,)),
          "x[2:6:3] + x[3:6:2]: start, end and step are operands, too")


def test_whether_a_gradient_flows():
    def cut(x):
        with paddle.no_grad():
            stopped = x.exp()
        return x.exp() * stopped
    check(["exp", "exp", "multiply"], left(cut, "x", stop_gradient=False),
          "exp(x) with and without paddle.no_grad(), for an x that wants a gradient")


def test_random_programs():
    """As many operations are left as there are different formulas, written as text."""
    rng = np.random.default_rng(3)
    for size in range(2, 30):
        program = Program()
        build = Builder(program.global_block())
        values = [build.data(n, (3,), "float64") for n in "ab"]
        formulas = ["a", "b"]
        for _ in range(size):
            row = str(rng.choice(["add", "multiply", "subtract", "exp"]))
            picked = [int(i) for i in rng.integers(0, len(values), 1 if row == "exp" else 2)]
            values += build.call(ROWS[row], [values[i] for i in picked], {})
            texts = [formulas[i] for i in picked]
            formulas.append(f"{row}({', '.join(sorted(texts) if row in ('add', 'multiply') else texts)})")
        for i, value in enumerate(values[2:]):
            build.output(f"y{i}", value)
        feed = {"a": rng.standard_normal(3) * 0.5, "b": rng.standard_normal(3) * 0.5}
        with np.errstate(all="ignore"):
            before = Executor(program).run(feed, Scope())
            create_pass("common_subexpression_elimination_pass").run(program)
            after = Executor(program).run(feed, Scope())
        number = sum(op.name().split(".")[1] not in QUIET for op in program.walk())
        check(len(set(formulas[2:])), number, f"how many operations are left of {', '.join(formulas[2:])}")
        for name, want in before.items():
            check(want.tolist(), after[name].tolist(), f"the value of {formulas[2:][int(name[1:])]}")
