"""Which operations may be run once instead of twice."""

import minipd as paddle
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS, Trait, op
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.passes import create_pass
from minipd.static import InputSpec
from minipd.static.nn import cond
from tools.course.checking import check


@op("send_and_receive", Trait.COMM)
class SendAndReceive:
    """A message to every rank, and their answers: no pass has heard of this operator before."""

    def infer_meta(x):
        return Meta(x.shape, x.dtype)

    def kernel(comm, x):
        return x


@op("note_down", Trait.SIDE_EFFECT)
class NoteDown:
    """Writes x into a log."""

    def infer_meta(x):
        return Meta(x.shape, x.dtype)

    def kernel(xp, x):
        return x


def left(program, name):
    """How many operations of that name the pass leaves."""
    create_pass("common_subexpression_elimination_pass").run(program)
    return sum(op.name().endswith(f".{name}") for op in program.walk())


def twice(row, **attrs):
    """A program with two calls of a row on the same operands."""
    program = Program()
    build = Builder(program.global_block())
    operands = {"x": ((4,), "float32"), "key": ((2,), "int64")}
    wanted = [build.data(n, *operands[n]) for n in ROWS[row].inputs]
    for i in range(2):
        result, = build.call(ROWS[row], wanted, attrs)
        build.output(f"y{i}", result)
    return program


def test_arithmetic():
    check(1, left(twice("exp"), "exp"), "how many exp are left of exp(x), exp(x)")


def test_random_numbers():
    drop = twice("dropout", p=0.5, mode="upscale_in_train")
    check(2, left(drop, "dropout"), "how many dropouts are left of two on the same x: they are two draws")
    draw = twice("uniform", shape=(4,), dtype="float32", min=0.0, max=1.0)
    check(2, left(draw, "uniform"), "how many draws are left of two")


def test_collectives():
    check(2, left(twice("send_and_receive"), "send_and_receive"),
          "how many collectives are left of two: the other ranks wait for both")


def test_side_effects():
    check(2, left(twice("note_down"), "note_down"), "how many notes are left of two notes of x in a log")


def test_stacks():
    """The gradient of a branch has a stack; the stacks of two branches look alike."""
    def f(x):
        return cond(x.sum() > 0.0, lambda: x.exp(), lambda: x) * cond(x.sum() > 1.0, lambda: x.exp(), lambda: x)
    traced = trace(f, InputSpec([2], "float32", "x", stop_gradient=False))
    append_backward(traced.program, traced.output_values, traced.input_values)
    before = sum(op.name() == "cf.stack_create" for op in traced.program.walk())
    check(before, left(traced.program, "stack_create"), f"how many stacks are left of {before}, one for each branch")


def test_reads_of_state():
    program = Program()
    build = Builder(program.global_block())
    old = build.parameter("w", (2,), "float32")
    build.output("old", old)
    new, = build.call(ROWS["exp"], (old,), {})
    build.set_parameter("w", new)
    build.output("new", build.parameter("w", (2,), "float32"))
    check(2, left(program, "parameter"), "how many reads of w are left of two with a write between them")


def test_bundles_of_operands():
    """concat([a, b]) reads a vector, which builtin.combine makes of a and b."""
    specs = [InputSpec([2], "float32", n) for n in "ab"]
    program = trace(lambda a, b: paddle.concat([a, b]).exp() + paddle.concat([a, b]).tanh(), *specs).program
    check(1, left(program, "concat"), "how many concat are left of concat([a, b]), concat([a, b])")


def test_inputs_that_look_alike():
    specs = [InputSpec([2], "float32", n) for n in "ab"]
    program = trace(lambda a, b: a - b, *specs).program
    check(2, left(program, "data"), "how many inputs are left of two of one type")
