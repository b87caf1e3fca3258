"""Oracle: the invariant itself, counted from the operands' side."""

import minipd  # noqa: F401  (fills the operator table)
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.builder import Builder
from minipd.ir.verify import verify
from tools.course.checking import check


def start():
    """An empty program and its builder, with two inputs."""
    program = Program()
    build = Builder(program.global_block())
    return program, build, build.data("x", (2,), "float32"), build.data("y", (2,), "float32")


def users(value):
    """The uses of a value, as (name of the operation, number of the operand)."""
    return [(use.owner().name(), use.index()) for use in value.uses]


def agree(program):
    """Whether use lists and operands say the same, in both directions."""
    operands = [operand for op in program.walk() for operand in op.operands()]
    listed = [use for op in program.walk() for result in op.results() for use in result.uses]
    return (len(operands) == len(listed) == len(set(listed)) and set(operands) == set(listed)
            and all(use.source() is result for op in program.walk() for result in op.results() for use in result.uses))


def test_a_new_operand_is_a_use():
    def f():
        _, build, x, y = start()
        build.call(ROWS["add"], (x, y), {})
        return users(x), users(y)
    check(([("pd_op.add", 0)], [("pd_op.add", 1)]), f, "the uses of x and of y, in the program x + y")


def test_one_value_twice_is_two_uses():
    def f():
        _, build, x, _ = start()
        build.call(ROWS["multiply"], (x, x), {})
        return users(x), len(x.all_used_ops())
    check(([("pd_op.multiply", 0), ("pd_op.multiply", 1)], 1), f, "the uses of x, and how many operations use it, in "
                                                                  "x * x")


def test_the_order_of_uses():
    def f():
        _, build, x, _ = start()
        build.call(ROWS["exp"], (x,), {})
        build.call(ROWS["tanh"], (x,), {})
        return users(x)
    check([("pd_op.exp", 0), ("pd_op.tanh", 0)], f, "the uses of x in exp(x), tanh(x), in the order in which they came")


def test_an_operand_changes_its_value():
    def f():
        program, build, x, y = start()
        out, = build.call(ROWS["add"], (x, x), {})
        out.get_defining_op().operand(0).set_source(y)
        return users(x), users(y), agree(program)
    check(([("pd_op.add", 1)], [("pd_op.add", 0)], True), f,
          "the uses of x and y, and whether all use lists agree, after operand 0 of x + x was set to y")


def test_the_same_value_again():
    def f():
        program, build, x, _ = start()
        out, = build.call(ROWS["exp"], (x,), {})
        out.get_defining_op().operand(0).set_source(x)
        return users(x), agree(program)
    check(([("pd_op.exp", 0)], True), f, "the uses of x after operand 0 of exp(x) was set to x again")


def test_every_use_is_replaced():
    def f():
        program, build, x, y = start()
        a, = build.call(ROWS["multiply"], (x, x), {})
        build.call(ROWS["add"], (a, x), {})
        x.replace_all_uses_with(y)
        return users(x), users(y), agree(verify(program))
    check(([], [("pd_op.multiply", 0), ("pd_op.multiply", 1), ("pd_op.add", 1)], True), f,
          "the uses of x and y in a = x * x, a + x after x.replace_all_uses_with(y)")


def test_an_erased_operation_lets_go():
    def f():
        program, build, x, _ = start()
        a, = build.call(ROWS["exp"], (x,), {})
        b, = build.call(ROWS["tanh"], (a,), {})
        b.get_defining_op().erase()
        free = a.use_empty()
        a.get_defining_op().erase()
        return free, x.use_empty(), program.num_ops()
    check((True, True, 2), f, "whether a and x are free, and how many operations are left, after tanh(a) and "
                              "a = exp(x) were erased")
