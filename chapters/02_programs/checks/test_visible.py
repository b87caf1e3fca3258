"""Oracles: what each operation may read, written out by hand; and the verifier, which must accept and refuse."""

import minipd  # noqa: F401  (fills the operator table)
from minipd.framework.row import ROWS
from minipd.ir import DenseTensorType, Program
from minipd.ir.builder import Builder
from minipd.ir.verify import VerifyError, _walk, verify
from tools.course.checking import check

F2 = DenseTensorType((2,), "float32")


def start():
    program = Program()
    return program, Builder(program.global_block())


def branch(build):
    """An `if` on a condition, with one result; returns it and the builders of its two regions."""
    op = build.build("pd_op.if", [build.full((), True, "bool")], {}, [F2], 2)
    return op, [Builder(region.add_block()) for region in op.regions]


def seen(program, names):
    """For each operation in the order of the walk: its name, and the names of the values that it may use."""
    def run():
        visible = set()
        return [(op.name().partition(".")[2], sorted(name for name, value in names.items() if value in visible))
                for op in _walk(program.global_block(), visible)]
    return run


def verdict(program):
    def run():
        try:
            verify(program)
        except VerifyError:
            return "refused"
        return "accepted"
    return run


def test_no_operations():
    check([], seen(Program(), {}), "an empty program")


def test_a_straight_line():
    program, build = start()
    x = build.data("x", (2,), "float32")
    y, = build.call(ROWS["exp"], (x,), {})
    build.output("y", y)
    check([("data", []), ("exp", ["x"]), ("shadow_output", ["x", "y"])], seen(program, {"x": x, "y": y}),
          "x = data; y = exp(x); output(y): what each may use (never its own result)")


def test_a_use_before_the_definition():
    program, build = start()
    x = build.data("x", (2,), "float32")
    y, = build.call(ROWS["exp"], (x,), {})
    z, = build.call(ROWS["tanh"], (y,), {})
    y.get_defining_op().move_after(z.get_defining_op())
    check("refused", verdict(program), "x = data; z = tanh(y); y = exp(x)")


def test_a_use_of_the_own_result():
    program, build = start()
    x = build.data("x", (2,), "float32")
    y, = build.call(ROWS["exp"], (x,), {})
    y.get_defining_op().operand(0).set_source(y)
    check("refused", verdict(program), "x = data; y = exp(y)")


def test_regions():
    program, build = start()
    x = build.data("x", (2,), "float32")
    op, (true, false) = branch(build)
    a, = true.call(ROWS["exp"], (x,), {})
    true.build("cf.yield", [a])
    b, = false.call(ROWS["tanh"], (x,), {})
    false.build("cf.yield", [b])
    build.output("y", op.result(0))
    names = {"x": x, "a": a, "b": b, "y": op.result(0)}
    check([("data", []), ("full", ["x"]), ("if", ["x"]), ("exp", ["x"]), ("yield", ["a", "x"]), ("tanh", ["x"]),
           ("yield", ["b", "x"]), ("shadow_output", ["x", "y"])], seen(program, names),
          "y = if: {a = exp(x)} else: {b = tanh(x)}; output(y): what each may use")
    check("accepted", verdict(program), "y = if: {a = exp(x)} else: {b = tanh(x)}; output(y)")


def test_a_value_of_the_other_region():
    program, build = start()
    x = build.data("x", (2,), "float32")
    _, (true, false) = branch(build)
    a, = true.call(ROWS["exp"], (x,), {})
    true.build("cf.yield", [a])
    false.build("cf.yield", [a])
    check("refused", verdict(program), "if: {a = exp(x); yield a} else: {yield a}")


def test_a_value_of_a_region_after_it():
    program, build = start()
    x = build.data("x", (2,), "float32")
    _, (true, false) = branch(build)
    a, = true.call(ROWS["exp"], (x,), {})
    true.build("cf.yield", [a])
    false.build("cf.yield", [x])
    build.output("y", a)
    check("refused", verdict(program), "if: {a = exp(x); yield a} else: {yield x}; output(a)")


def test_a_region_does_not_see_the_result_of_its_operation():
    program, build = start()
    x = build.data("x", (2,), "float32")
    op, (true, false) = branch(build)
    true.build("cf.yield", [op.result(0)])
    false.build("cf.yield", [x])
    check("refused", verdict(program), "y = if: {yield y} else: {yield x}")


def test_arguments_of_a_block():
    program, build = start()
    x = build.data("x", (2,), "float32")
    op, (true, false) = branch(build)
    i = true.block.add_arg(F2)
    a, = true.call(ROWS["add"], (x, i), {})
    false.build("cf.yield", [x])
    check([("data", []), ("full", ["x"]), ("if", ["x"]), ("add", ["i", "x"]), ("yield", ["x"])],
          seen(program, {"x": x, "i": i, "a": a}),
          "if: ^(i) {a = x + i} else: {yield x}, i an argument of the first block: what each may use")


def test_regions_in_regions():
    program, build = start()
    x = build.data("x", (2,), "float32")
    outer, (true, false) = branch(build)
    a, = true.call(ROWS["exp"], (x,), {})
    inner, (deep, other) = branch(true)
    b, = deep.call(ROWS["add"], (x, a), {})
    deep.build("cf.yield", [b])
    other.build("cf.yield", [a])
    true.build("cf.yield", [inner.result(0)])
    false.build("cf.yield", [x])
    build.output("y", outer.result(0))
    names = {"x": x, "a": a, "b": b, "inner": inner.result(0), "y": outer.result(0)}
    check([("data", []), ("full", ["x"]), ("if", ["x"]), ("exp", ["x"]), ("full", ["a", "x"]), ("if", ["a", "x"]),
           ("add", ["a", "x"]), ("yield", ["a", "b", "x"]), ("yield", ["a", "x"]), ("yield", ["a", "inner", "x"]),
           ("yield", ["x"]), ("shadow_output", ["x", "y"])], seen(program, names),
          "y = if: {a = exp(x); inner = if: {b = x + a} else: {yield a}} else: {yield x}: what each may use")
