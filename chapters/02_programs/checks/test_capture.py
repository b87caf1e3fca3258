"""Oracle: which outside tensors are one and the same, and what they hold when the program runs."""

import numpy as np

import minipd as paddle
from minipd.executor import Executor
from minipd.framework.meta import Meta
from minipd.ir import Program
from minipd.ir.trace import Trace
from minipd.ir.traced import trace
from minipd.static.input import InputSpec
from tools.course.checking import check

X = Meta((2,), np.dtype("float32"))


def names(program):
    return [op.attributes["name"].value for op in program.walk() if op.name() == "pd_op.data"]


def run(traced, x):
    """What the program gives for x and for what the captured tensors hold now."""
    feed = {traced.inputs[0]: np.array(x, "float32"), **traced.captures}
    return Executor(traced.program).run(feed)["output_0"].tolist()


def test_an_outside_tensor_becomes_an_input():
    w = paddle.to_tensor([10.0, 20.0])
    check(["input_0", "captured_0"], lambda: names(trace(lambda x: x * w, X).program), "the inputs of x * w, w outside")
    traced = trace(lambda x: x * w, X)
    check(True, traced.captures["captured_0"] is w.payload, "whether captured_0 is bound to the very array of w")
    check([10.0, 40.0], lambda: run(traced, [1.0, 2.0]), "x * w at x = [1, 2], w = [10, 20]")


def test_one_tensor_is_captured_once():
    w = paddle.to_tensor([10.0, 20.0])
    check(["input_0", "captured_0"], lambda: names(trace(lambda x: (x * w + w) * w, X).program),
          "the inputs of (x w + w) w, where w comes from outside")


def test_equal_tensors_are_two():
    v, w = paddle.to_tensor([1.0, 1.0]), paddle.to_tensor([1.0, 1.0])
    check(["input_0", "captured_0", "captured_1"], lambda: names(trace(lambda x: x * v + w, X).program),
          "the inputs of x v + w, where v and w come from outside and hold equal numbers")
    traced = trace(lambda x: x * v + w, X)
    w.fill_(5.0)
    check([6.0, 7.0], lambda: run(traced, [1.0, 2.0]), "x v + w at x = [1, 2], v = [1, 1], after w.fill_(5)")


def test_it_is_no_constant():
    w = paddle.to_tensor([10.0, 20.0])
    traced = trace(lambda x: x * w, X)
    w.fill_(3.0)
    check([3.0, 6.0], lambda: run(traced, [1.0, 2.0]), "x * w at x = [1, 2], w = [3, 3] now; when it was "
                                                       "traced, w was [10, 20]")


def test_a_name_that_is_taken():
    w = paddle.to_tensor([10.0, 20.0])

    def f():
        traced = trace(lambda x: x * w, InputSpec([2], "float32", "captured_0"))
        return names(traced.program), list(traced.captures)
    check((["captured_0", "captured_1"], ["captured_1"]), f,
          "the inputs of x * w, and the captured ones, where the caller calls x captured_0")


def test_who_held_it():
    w = paddle.to_tensor([10.0, 20.0])
    tracer = Trace(Program())

    def f():
        trace(lambda x: x * w, X, tracer=tracer)
        return {name: holder is w for name, holder in tracer.holders.items()}
    check({"captured_0": True}, f, "name -> whether it is w, in `holders`, after x * w was traced")


def test_a_compiled_function_reads_what_the_tensor_holds():
    w = paddle.to_tensor([10.0, 20.0])
    f = paddle.jit.to_static(lambda x: x * w)
    x = paddle.to_tensor([1.0, 2.0])
    check([10.0, 40.0], lambda: f(x).tolist(), "a compiled x * w at x = [1, 2], w = [10, 20]")
    w.set_value(np.array([1.0, 1.0], "float32"))
    check([1.0, 2.0], lambda: f(x).tolist(), "the same after w.set_value([1, 1])")


def test_many():
    ws = [paddle.to_tensor([float(i), 1.0]) for i in range(20)]

    def f(x):
        for w in ws + ws:
            x = x + w
        return x
    traced = trace(f, X)
    check(21, len(names(traced.program)), "how many inputs x + w0 + ... + w19 + w0 + ... + w19 has")
    check([380.0, 40.0], lambda: run(traced, [0.0, 0.0]), "its value at x = [0, 0], where wi = [i, 1]")
