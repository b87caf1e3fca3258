"""Groups that could not run: a path leads out of them and back in."""

import numpy as np

import minipd as paddle
from minipd.cinn.compile import prepare
from minipd.cinn.dialect import FUSION
from minipd.cinn.frontend import build_groups, run_group
from minipd.framework.context import Kernels
from minipd.ir.schema import op_attrs, tensor_operands
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.static import InputSpec
from tools.course.checking import check

SHAPE = (3, 3)


def grouped(f):
    """The operators of each group of f(x, w)."""
    program = trace(f, InputSpec(list(SHAPE), "float64", "x"), InputSpec(list(SHAPE), "float64", "w")).program
    prepare(program)
    before = run(program)
    groups = build_groups(program)
    verify(program)
    check(before, run(program), "the value of the program after grouping")
    return sorted(sorted(op.name().split(".")[1] for op in g.regions[0].front()
                         if op.row is not None and op.num_operands()) for g in groups)


def run(program):
    """The outputs, with library kernels."""
    rng = np.random.default_rng(0)
    env, outputs = {}, []
    for op in program.global_block():
        if op.name() == "pd_op.data":
            env[op.result(0)] = rng.standard_normal(SHAPE) * 0.3
        elif op.name() == "builtin.shadow_output":
            outputs.append(env[op.operand_source(0)])
        elif op.name() == FUSION:
            env.update(zip(op.results(), run_group(op, [env[v] for v in op.operands_source()]), strict=True))
        elif op.row is not None:
            env[op.result(0)] = Kernels().run(op.row, [env[v] for v in tensor_operands(op)], op_attrs(op))
    return outputs


def groups(want, f, on):
    check(sorted(map(sorted, want)), lambda: grouped(f), f"the groups of {on}")


def test_a_chain():
    groups([["exp", "tanh", "multiply"]], lambda x, w: x.exp().tanh() * 2.0, "tanh(exp(x)) * 2")


def test_a_diamond():
    def f(x, w):
        a = x.exp()
        return a.tanh() + a.abs()
    groups([["exp", "tanh", "abs", "add"]], f, "a = exp(x); tanh(a) + abs(a)")


def test_somebody_in_between():
    def f(x, w):
        a = x.exp() * 2.0
        return (paddle.matmul(a, w) + a).tanh()
    groups([["exp", "multiply"], ["add", "tanh"]], f, "a = exp(x) * 2; tanh(matmul(a, w) + a)")


def test_two_in_between():
    """The path out and back is three operations long."""
    def f(x, w):
        a = x.exp() * 2.0
        m = paddle.matmul(paddle.matmul(a, w), w)
        return (m + a).tanh()
    groups([["exp", "multiply"], ["add", "tanh"]], f, "a = exp(x) * 2; tanh(matmul(matmul(a, w), w) + a)")


def test_another_group_in_between():
    def f(x, w):
        a = x.exp() * 2.0
        b = paddle.matmul(a, w).tanh() * 0.5
        return (paddle.matmul(b, w) + a).abs()
    groups([["exp", "multiply"], ["tanh", "multiply"], ["add", "abs"]], f,
           "a = exp(x) * 2; b = tanh(matmul(a, w)) * 0.5; abs(matmul(b, w) + a)")


def test_somebody_beside():
    """A matmul reads the group; nothing leads back in."""
    def f(x, w):
        a = x.exp() * 2.0
        return paddle.matmul(a, w), a.tanh() + 1.0
    groups([["exp", "multiply", "tanh", "add"]], f, "a = exp(x) * 2; matmul(a, w), tanh(a) + 1")


def test_somebody_before():
    def f(x, w):
        m = paddle.matmul(x, w)
        return (m + x.exp()).tanh()
    groups([["exp", "add", "tanh"]], f, "tanh(matmul(x, w) + exp(x))")


def test_two_ways_out():
    """One way out leads nowhere, the other one back in."""
    def f(x, w):
        a = x.exp() * 2.0
        lost = paddle.matmul(w, a)
        return lost, (paddle.matmul(a, w) + a).tanh()
    groups([["exp", "multiply"], ["add", "tanh"]], f, "a = exp(x) * 2; matmul(w, a), tanh(matmul(a, w) + a)")


def test_random_programs():
    """Whatever is grouped, the program can run, and means the same."""
    rng = np.random.default_rng(5)
    for number in range(25):
        plan = [(int(rng.integers(0, 4)), float(rng.random()), float(rng.random())) for _ in range(9)]

        def f(x, w, plan=plan):
            values = [x, w]
            for kind, p, q in plan:
                a, b = values[int(p * len(values))], values[int(q * len(values))]
                values.append((a.tanh(), a + b, a * b, paddle.matmul(a, b).tanh())[kind])
            return values[-1], values[-2]
        check(True, lambda f=f: grouped(f) is not None, f"random program {number}: whether it can run after grouping")
