"""How many bytes an operation reads and writes."""

import numpy as np

import minipd as paddle
from minipd.cinn.compile import prepare
from minipd.cinn.dialect import JIT_KERNEL
from minipd.cinn.frontend import build_groups, bytes_moved
from minipd.cinn.frontend.traffic import bytes_of_op
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.static import InputSpec
from tools.course.checking import check


def traced(f, *shapes, dtype="float32"):
    return trace(f, *(InputSpec(list(s), dtype, f"x{i}") for i, s in enumerate(shapes))).program


def bytes_of(name, program):
    """The bytes of the program's only operation of that name."""
    op, = (op for op in program.walk() if op.name().endswith(f".{name}"))
    return lambda: bytes_of_op(op)


def called(name, shapes, **attrs):
    """A program with one call of a row on float32 inputs."""
    program = Program()
    build = Builder(program.global_block())
    values = [build.data(f"x{i}", s, "float32") for i, s in enumerate(shapes)]
    build.output("y", build.call(ROWS[name], values, attrs)[0])
    return program


def test_two_operands():
    check(72, bytes_of("add", traced(lambda x, y: x + y, (2, 3), (2, 3))), "x + y, both f32[2, 3]: 24 + 24 + 24 bytes")


def test_float64():
    check(144, bytes_of("add", traced(lambda x, y: x + y, (2, 3), (2, 3), dtype="float64")), "x + y, both f64[2, 3]")


def test_one_operand_twice():
    check(48, bytes_of("add", traced(lambda x: x + x, (2, 3))), "x + x of f32[2, 3]: x is read once")


def test_a_broadcast():
    check(60, bytes_of("add", traced(lambda x, y: x + y, (2, 3), (3,))), "x + y of f32[2, 3] and f32[3]")


def test_a_reduction():
    """The axis is an operand in a program, and no data."""
    check(32, bytes_of("sum", traced(lambda x: x.sum(1), (2, 3))), "x.sum(1) of f32[2, 3]: 24 + 8 bytes")
    program = traced(lambda x: x.sum(1), (2, 3))
    check(0, bytes_of("full_int_array", program), "the constant [1] that is the axis of a sum")


def test_a_number():
    """2.0 is a tensor of one element, which is written and read; only attributes cost nothing."""
    program = traced(lambda x: x * 2.0, (2, 3))
    check(52, bytes_of("multiply", program), "x * 2.0 of f32[2, 3]: 24 + 4 + 24 bytes")
    check(4, bytes_of("full", program), "the constant 2.0 in x * 2.0")


def test_views():
    check(0, bytes_of("reshape", traced(lambda x: x.reshape([3, 2]), (2, 3))), "x.reshape([3, 2]) of f32[2, 3]")
    check(0, bytes_of("transpose", traced(lambda x: x.transpose([1, 0]), (2, 3))), "x.transpose([1, 0]) of f32[2, 3]")


def test_inputs_and_outputs():
    program = traced(lambda x: x.exp(), (2, 3))
    check(0, bytes_of("data", program), "an input of the program")
    check(0, bytes_of("shadow_output", program), "an output of the program")


def test_a_repeated_tensor():
    program = traced(lambda x, y: paddle.expand(x, [5, 3]) * y, (1, 3), (5, 3))
    check(12 + 60 + 60, bytes_of("multiply", program), "expand(x, [5, 3]) * y of f32[1, 3] and f32[5, 3]")
    program = traced(lambda x, y: paddle.expand(x, [5, 3]) * x, (3,), (5, 3))
    check(12 + 60, bytes_of("multiply", program), "expand(x, [5, 3]) * x of f32[3]: x is read once")


def test_of_which_only_the_shape_is_wanted():
    program = called("reduce_as", [(8, 3), (3,)])
    check(96 + 12, bytes_of("reduce_as", program), "reduce_as(x, like y) of f32[8, 3] and f32[3]: y is not read")
    program = called("full_like", [(2, 3)], value=1.0)
    check(24, bytes_of("full_like", program), "full_like(x, 1.0) of f32[2, 3]: x is not read")


def test_many_operands():
    program = traced(lambda x, y: paddle.concat([x, y]), (2, 3), (1, 3))
    check(24 + 12 + 36, bytes_of("concat", program), "concat([x, y]) of f32[2, 3] and f32[1, 3]")


def test_groups():
    program = traced(F.softmax, (64, 288))
    prepare(program)
    check(590848, lambda: bytes_moved(program), "a softmax of f32[64, 288], operator by operator (the lesson's table)")
    group, = build_groups(program)
    check(147456, lambda: bytes_of_op(group), "the same as a group: 2 * 64 * 288 * 4")


def test_kernels():
    """A call of a compiled kernel, written by hand: what crosses its border."""
    program = Program()
    build = Builder(program.global_block())
    x, w = build.data("x", (4, 8), "float32"), build.data("w", (8,), "float32")
    op = Operation(JIT_KERNEL, [x, w], {"kernel": "norm", "stop_gradient": [True]}, [x.type()])
    program.global_block().append(op)
    check(128 + 32 + 128, lambda: bytes_of_op(op), "a kernel that reads f32[4, 8] and f32[8], and writes f32[4, 8]")


def test_random_chains():
    """Element-wise operators of arrays of one size: each reads its different operands and writes one result."""
    rng = np.random.default_rng(0)
    for size in range(1, 8):
        program = Program()
        build = Builder(program.global_block())
        values = [build.data(n, (size, 2), "float32") for n in "ab"]
        arrays = 0
        for _ in range(size):
            i, j = (int(k) for k in rng.integers(0, len(values), 2))
            values += build.call(ROWS["add"], (values[i], values[j]), {})
            arrays += 2 if i == j else 3
        build.output("y", values[-1])
        check(arrays * size * 8, lambda p=program: bytes_moved(p), f"{size} random sums of arrays f32[{size}, 2]")
