"""What sort of computation a pattern is."""

import minipd as paddle
from minipd.cinn.compile import prepare
from minipd.cinn.frontend.graph import Graph
from minipd.cinn.frontend.pattern import kind_of
from minipd.framework.tensor import Tensor
from minipd.ir.traced import trace
from minipd.ops.update.adam import AdamW
from minipd.static import InputSpec
from tools.course.checking import check


def kind(want, f, on, only=()):
    """Of the operators of f(x) that the compiler may fuse; only: those of these names."""
    program = trace(f, InputSpec([4, 6], "float64", "x"), InputSpec([6, 6], "float64", "w")).program
    prepare(program)
    graph = Graph(program.global_block())
    ops = [op for op in graph.members if not only or op.name().split(".")[1] in only]
    check(want, lambda: kind_of(ops, graph.readers).value, on)


def total(x: Tensor) -> Tensor:
    return x.sum(-1, keepdim=True)


def test_one_operator():
    kind("Trivial", lambda x, w: x.exp(), "exp(x)")


def test_a_chain():
    kind("Trivial", lambda x, w: x.exp() * 2.0, "exp(x) * 2")


def test_one_reduction():
    kind("Reduce", lambda x, w: total(x), "sum(x)")


def test_what_is_computed_for_a_reduction():
    kind("Reduce", lambda x, w: total(x * x), "sum(x * x)")


def test_two_reductions():
    kind("ReduceTree", lambda x, w: total((x - x.max(-1, keepdim=True)).exp()), "sum(exp(x - max(x)))")


def test_behind_a_reduction():
    kind("ReduceTree+Trivial", lambda x, w: x / total(x), "x / sum(x)")


def test_a_number_for_each_row_behind_a_reduction():
    kind("ReduceTree+Trivial", lambda x, w: total(x) * 2.0, "sum(x) * 2: as small as the sum, and still behind it")


def test_softmax():
    kind("ReduceTree+Trivial", lambda x, w: paddle.nn.functional.softmax(x), "softmax(x)")


def test_two_ends():
    def f(x, w):
        a = x.exp()
        return a.tanh(), a.abs()
    kind("Anchor", f, "a = exp(x); tanh(a), abs(a)")


def test_two_ends_of_which_one_is_a_reduction():
    def f(x, w):
        a = x.exp()
        return a * 2.0, a.sum(0)
    kind("Anchor", f, "a = exp(x); a * 2, sum(a)")


def test_apart():
    kind("HorizontalFusion", lambda x, w: (x.exp(), x.tanh()), "exp(x), tanh(x)")


def test_apart_with_a_reduction():
    kind("HorizontalFusion", lambda x, w: (total(x.exp()), x.tanh() * 2.0), "sum(exp(x)), tanh(x) * 2")


def test_a_value_that_is_read_outside_too():
    """exp is read by tanh and by a matrix product: it is no end of the pattern."""
    def f(x, w):
        a = x.exp()
        return a.tanh(), paddle.matmul(a, w)
    kind("Trivial", f, "a = exp(x); tanh(a), matmul(a, w); of exp and tanh")


def test_a_diamond():
    def f(x, w):
        a = x.exp()
        return a.tanh() + a.abs()
    kind("Trivial", f, "a = exp(x); tanh(a) + abs(a)")


def test_a_part_of_a_program():
    def f(x, w):
        return total((x - x.max(-1, keepdim=True)).exp())
    kind("Reduce", f, "sum(exp(x - max(x))), of the operators subtract, exp and sum", ("subtract", "exp", "sum"))
    kind("ReduceTree+Trivial", f, "sum(exp(x - max(x))), of the operators max, subtract and exp",
         ("max", "subtract", "exp"))


def test_an_operator_with_several_results():
    """An update has the new parameter and the two new averages."""
    def f(x, w):
        one = paddle.full([], 1.0, "float64")
        return AdamW(x, x.exp(), x, x, one, one, False)
    kind("Anchor", f, "an AdamW update of x, with exp(x) for the gradient: one operator that has three results")
