"""Binding a node of a pattern to an operation."""

import itertools

import numpy as np

import minipd as paddle
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.matching import Source
from minipd.passes.pattern import apply_patterns_greedily
from tools.course.checking import check


def matches(f, formula, inputs="ab", shape=(3,)):
    """The matches of a formula at the last operation of f's program: what its names stand for, once each."""
    program = trace(f, *(Meta(shape, np.dtype("float32")) for _ in inputs)).program
    names = {v: n for n, v in zip(inputs, _inputs(program), strict=True)}
    *_, last, _ = program.global_block()
    found = [{k: names.get(v, v) for k, v in m.names().items()} for m in Source(formula, "test").matches(last)]
    return [m for i, m in enumerate(found) if m not in found[:i]]


def _inputs(program):
    return [op.result(0) for op in program.global_block() if op.name() == "pd_op.data"]


def test_an_operator():
    check([{"x": "a"}], matches(lambda a: a.exp(), lambda x: ops.exp(x), "a"), "exp(x) in exp(a)")
    check([], matches(lambda a: a.tanh(), lambda x: ops.exp(x), "a"), "exp(x) in tanh(a)")


def test_a_name_that_occurs_twice():
    check([{"x": "a"}], matches(lambda a: a * F.sigmoid(a), lambda x: x * ops.sigmoid(x), "a"),
          "x * sigmoid(x) in a * sigmoid(a)")
    check([], matches(lambda a, b: a * F.sigmoid(b), lambda x: x * ops.sigmoid(x)),
          "x * sigmoid(x) in a * sigmoid(b)")


def test_operands_that_commute():
    check([{"x": "a"}], matches(lambda a: F.sigmoid(a) * a, lambda x: x * ops.sigmoid(x), "a"),
          "x * sigmoid(x) in sigmoid(a) * a")
    check([], matches(lambda a, b: F.sigmoid(b) * a, lambda x: x * ops.sigmoid(x)),
          "x * sigmoid(x) in sigmoid(b) * a")


def test_both_orders_are_offered():
    found = matches(lambda a, b: a + b, lambda x, y: x + y)
    check([{"x": "a", "y": "b"}, {"x": "b", "y": "a"}], sorted(found, key=lambda m: m["x"]), "x + y in a + b")


def test_operands_that_do_not_commute():
    check([{"x": "a", "y": "b"}], matches(lambda a, b: a - b, lambda x, y: x - y), "x - y in a - b")
    check([], matches(lambda a: a.exp() - a, lambda x: x - ops.exp(x), "a"), "x - exp(x) in exp(a) - a")


def test_an_order_that_fails_leaves_nothing_behind():
    """In the first order x would stand for the sum, and b would have to be a sum."""
    check([{"x": "b", "y": "a"}], matches(lambda a, b: (b.exp() + a) * b, lambda x, y: x * (y + ops.exp(x))),
          "x * (y + exp(x)) in (exp(b) + a) * b")


def test_an_order_that_fails_later_is_taken_back():
    check([{"x": "b", "y": "a"}], matches(lambda a, b: a.exp() * b.exp().tanh(),
                                          lambda x, y: ops.tanh(ops.exp(x)) * ops.exp(y)),
          "tanh(exp(x)) * exp(y) in exp(a) * tanh(exp(b))")


@drr()
class SiluOfARow:
    def source(x, y):
        return ops.silu(x) * y

    def constraint(x):
        return x.shape == (3,)

    def result(x, y):
        return x * ops.sigmoid(x) * y


def test_an_order_that_the_constraint_refuses_is_taken_back():
    program = trace(lambda a, b: F.silu(a) * F.silu(b), Meta((2, 3), np.dtype("float32")),
                    Meta((3,), np.dtype("float32"))).program
    check(1, apply_patterns_greedily(program, [SiluOfARow]),
          "silu(x) * y with x of shape (3,), in silu(a) * silu(b) with a of (2, 3) and b of (3,)")


def test_attributes():
    def once(x):
        return ops.sum(x, axis=(0,), keepdim=True)
    check([{"x": "a"}], matches(lambda a: a.sum(0, keepdim=True), once, "a"), "sum over axis 0 in sum over axis 0")
    check([], matches(lambda a: a.sum(0), once, "a"), "a sum that keeps its axis, in one that does not")
    check([], matches(lambda a: a.sum(1, keepdim=True), once, "a", (2, 3)), "a sum over axis 0, in one over axis 1")


def test_attributes_that_a_match_finds_out():
    def sums(x, *, axis):
        return ops.sum(ops.sum(x, axis=axis, keepdim=True), axis=axis, keepdim=True)
    check([{"x": "a", "axis": (1,)}], matches(lambda a: a.sum(1, keepdim=True).sum(1, keepdim=True), sums, "a", (2, 3)),
          "two sums over one axis")
    check([], matches(lambda a: a.sum(1, keepdim=True).sum(0, keepdim=True), sums, "a", (2, 3)),
          "two sums over one axis, in sums over axes 1 and 0")


def test_numbers():
    check([{"x": "a"}], matches(lambda a: a * 2.0, lambda x: x * 2.0, "a"), "x * 2 in a * 2")
    check([], matches(lambda a: a * 3.0, lambda x: x * 2.0, "a"), "x * 2 in a * 3")
    check([{"x": "a", "c": 3.0}], matches(lambda a: a * 3.0, lambda x, *, c: x * c, "a"), "x * c in a * 3")


def test_how_many_operands():
    def joined(x, y):
        return ops.concat(x, y, axis=0)
    check([{"x": "a", "y": "b"}], matches(lambda a, b: paddle.concat([a, b]), joined), "concat(x, y) in concat(a, b)")
    check([], matches(lambda a, b: paddle.concat([a, b, a]), joined), "concat(x, y) in concat(a, b, a)")


def test_which_result():
    """exp of the second result, the loss, is not exp of the first."""
    def formula(x, label):
        softmax, loss = ops.cross_entropy_with_softmax(x, label, axis=1, ignore_index=-100)
        return ops.exp(loss)
    for which in (1, 0):
        program = Program()
        build = Builder(program.global_block())
        values = build.data("x", (2, 3), "float64"), build.data("label", (2, 1), "int64")
        results = build.call(ROWS["cross_entropy_with_softmax"], values, {"axis": 1, "ignore_index": -100})
        build.call(ROWS["exp"], (results[which],), {})
        last = program.global_block().back()
        check(which, lambda op=last: len(list(Source(formula, "test").matches(op))), "in how many ways exp(loss) of "
              f"softmax, loss = cross_entropy_with_softmax(x, label) stands at exp({('softmax', 'loss')[which]})")


def test_random_sums():
    """Every way to read a sum of three as x + (y + z), found by trying."""
    for order in itertools.permutations("abc"):
        for left in (True, False):
            def f(a, b, c, order=order, left=left):
                p, q, r = ({"a": a, "b": b, "c": c}[n] for n in order)
                return (p + q) + r if left else p + (q + r)
            lone = order[2] if left else order[0]
            pair = [n for n in order if n != lone]
            want = sorted(([lone, *pair], [lone, *pair[::-1]]))
            found = sorted([m["x"], m["y"], m["z"]] for m in matches(f, lambda x, y, z: x + (y + z), "abc"))
            text = f"({order[0]} + {order[1]}) + {order[2]}" if left else f"{order[0]} + ({order[1]} + {order[2]})"
            check(want, found, f"[x, y, z] of x + (y + z) in {text}")
