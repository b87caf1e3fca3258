"""Declarative rules: where they match, where they must not, and where the result goes."""

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.builder import Builder
from minipd.ir.traced import trace
from minipd.passes.drr import RULES, drr
from minipd.passes.formula import ops
from minipd.passes.pattern import RewriteError, apply_patterns_greedily
from minipd.static.nn import cond
from tests.passes.meaning import names, same

F32 = np.dtype("float32")
sigmoid, silu = paddle.nn.functional.sigmoid, paddle.nn.functional.silu


def traced(f, *shapes):
    return trace(f, *(Meta(s, F32) for s in shapes)).program


def rewritten(f, *shapes, rules, rtol=1e-6):
    """(names of operations, number of rewrites)."""
    before = f if isinstance(f, Program) else traced(f, *shapes)
    changed, n = same(before, lambda p: apply_patterns_greedily(p, rules, debug=True), rtol)
    return names(changed), n


# ------------------------------------------------------------------------------------------------ B7
SILU = RULES["silu_fuse_pass"]


def test_b7_a_name_that_occurs_twice_is_one_value():
    """Paddle #62158."""
    assert rewritten(lambda a: a * sigmoid(a), (3,), rules=SILU) == (["silu"], 1)
    assert rewritten(lambda a, b: a * sigmoid(b), (3,), (3,), rules=SILU)[1] == 0
    assert rewritten(lambda a: sigmoid(a) * a, (3,), rules=SILU) == (["silu"], 1)      # multiply commutes
    assert rewritten(lambda a, b: sigmoid(b) * a, (3,), (3,), rules=SILU)[1] == 0


def test_b7_operands_that_do_not_commute_keep_their_order():
    @drr()
    class Rule:
        def source(x):
            return x - ops.exp(x)

        def result(x):
            return -(ops.exp(x) - x)

    assert rewritten(lambda a: a - a.exp(), (3,), rules=[Rule]) == (["exp", "subtract", "scale"], 1)
    assert rewritten(lambda a: a.exp() - a, (3,), rules=[Rule])[1] == 0


def test_b7_a_repeated_attribute_is_one_value():
    @drr()
    class TwoSums:
        def source(x, *, axis, keep):
            return ops.sum(ops.sum(x, axis=axis, keepdim=keep), axis=axis, keepdim=keep)

        def result(x, axis, keep):
            return ops.sum(x, axis=axis, keepdim=keep)

        def constraint(keep):
            return keep

    assert rewritten(lambda x: x.sum(1, keepdim=True).sum(1, keepdim=True), (2, 3), rules=[TwoSums]) == (["sum"], 1)
    assert rewritten(lambda x: x.sum(1, keepdim=True).sum(0, keepdim=True), (2, 3), rules=[TwoSums])[1] == 0
    assert rewritten(lambda x: x.sum(0).sum(0), (2, 3), rules=[TwoSums])[1] == 0


def test_both_orders_are_tried_until_the_constraint_agrees():
    swiglu = RULES["swiglu_fuse_pass"]
    assert rewritten(lambda a, b: silu(a) * silu(b), (3,), (3,), rules=swiglu)[1] == 1
    assert rewritten(lambda a, b: b * silu(a), (3,), (3,), rules=swiglu) == (["swiglu"], 1)
    assert rewritten(lambda a, b: b * silu(a), (3,), (2, 3), rules=swiglu)[1] == 0      # broadcast: another shape
    both = SILU + swiglu
    assert rewritten(lambda a, b: a * sigmoid(a) * b, (3,), (3,), rules=both) == (["swiglu"], 2)


# ------------------------------------------------------------------------------------------------ B8
@drr()
class Linear:
    def source(x, w, b):
        return ops.matmul(x, w) + b

    def result(x, w, b):
        return b + ops.matmul(x, w)     # not the source: no third order of adding

    def constraint(b):
        return b.ndim == 1


@drr()
class SquaredExp:
    def source(x):
        return ops.square(ops.exp(x))

    def result(x):
        return ops.exp(x * 2.0)


def test_b8_an_intermediate_with_outside_users_is_kept():
    """(derived; Paddle #63062)"""
    assert rewritten(lambda x: x.exp().square(), (3,), rules=[SquaredExp]) == (["multiply", "exp"], 1)

    def output(x):
        m = x.exp()
        return m.square(), m
    assert rewritten(output, (3,), rules=[SquaredExp]) == (["exp", "square"], 0)

    def twice(x):
        m = x.exp()
        return m.square() + m.tanh()
    assert rewritten(twice, (3,), rules=[SquaredExp])[1] == 0


def test_b8_an_intermediate_that_a_region_or_its_terminator_uses_is_kept():
    def inside(x):
        m = x.exp()
        return m.square() + cond(x.sum() > 0.0, lambda: m.tanh(), lambda: x)

    def yielded(x):
        m = x.exp()
        return m.square() + cond(x.sum() > 0.0, lambda: m, lambda: x)

    def terminator(x):
        def branch():
            m = x.exp()
            return m, m.square()
        return cond(x.sum() > 0.0, branch, lambda: (x, x))

    for f in (inside, yielded, terminator):
        assert rewritten(f, (3,), rules=[SquaredExp])[1] == 0

    def closed(x):
        return cond(x.sum() > 0.0, lambda: x.exp().square(), lambda: x)
    assert rewritten(closed, (3,), rules=[SquaredExp])[1] == 1


def test_b8_matches_do_not_reach_across_blocks():
    def f(x):
        m = x.exp()
        return cond(x.sum() > 0.0, lambda: m.square(), lambda: x)
    assert rewritten(f, (3,), rules=[SquaredExp])[1] == 0


def test_b8_what_no_grad_has_cut_is_not_joined_again():
    def cut(x):
        with paddle.no_grad():
            s = sigmoid(x)
        return x * s
    spec = paddle.static.InputSpec((3,), "float32", stop_gradient=False)
    assert rewritten(trace(cut, spec).program, rules=SILU)[1] == 0
    assert rewritten(trace(lambda x: x * sigmoid(x).detach(), spec).program, rules=SILU)[1] == 0
    assert rewritten(trace(lambda x: x * sigmoid(x), spec).program, rules=SILU)[1] == 1


# ------------------------------------------------------------------------------------------------ B9
@drr()
class ExpAndTanh:
    """{exp, tanh} of one value; something that differs, so that it does not match again."""

    def source(x):
        return ops.exp(x), ops.tanh(x)

    def result(x):
        e = ops.exp(x + 0.0)
        return e, ops.tanh(x + 0.0)


def two_outputs(order):
    program = Program()
    build = Builder(program.global_block())
    x = build.data("x", (3,), "float32")
    p, = build.call(ROWS["exp"], (x,), {})
    u, = build.call(ROWS["abs"], (p,), {})
    q, = build.call(ROWS["tanh"], (x,), {})
    for name in order:
        build.output(name, {"u": u, "q": q, "p": p}[name])
    return program


@pytest.mark.parametrize("order", ["uq", "uqp", "p"])
def test_b9_the_result_stands_before_the_first_use_of_any_output(order):
    """Paddle #64784: p = f(x); u = g(p); q = h(x): what replaces {f, h} must stand before u."""
    found, n = rewritten(two_outputs(order), rules=[ExpAndTanh])
    assert n == 1 and found.index("abs") == 4


def test_b9_no_place_no_rewrite():
    """Where the second output needs what is made of the first, nothing stands before the one and after the other."""
    @drr()
    class ExpAndAdd:
        def source(x, y):
            return ops.exp(x), ops.tanh(x) + y

        def result(x, y):
            return ops.exp(x * 1.0), ops.tanh(x) * 1.0 + y

    def chained(x):
        p = x.exp()
        return x.tanh() + p.abs()

    def late(x):
        p, y = x.exp(), x.abs()
        return p, x.tanh() + y

    def too_late(x):
        p = x.exp()
        u, y = p.square(), x.abs()
        return u, x.tanh() + y

    assert rewritten(chained, (3,), rules=[ExpAndAdd])[1] == 0
    assert rewritten(late, (3,), rules=[ExpAndAdd])[1] == 1         # moved behind y
    assert rewritten(too_late, (3,), rules=[ExpAndAdd])[1] == 0


def test_b9_inputs_may_be_block_arguments():
    """Paddle #68746."""
    program = Program()
    build = Builder(program.global_block())
    x = program.global_block().add_arg(build.data("x", (3,), "float32").type())
    s, = build.call(ROWS["sigmoid"], (x,), {})
    y, = build.call(ROWS["multiply"], (x, s), {})
    build.output("y", y)
    assert apply_patterns_greedily(program, SILU) == 1 and names(program) == ["silu"]
    assert program.get_output_value_by_name("y").get_defining_op().operand_source(0) is x


def test_an_input_may_be_passed_through():
    @drr()
    class TwoNegatives:
        def source(x):
            return ops.scale(ops.scale(x, scale=-1.0), scale=-1.0)

        def result(x):
            return x

    assert rewritten(lambda x: x.neg().neg().exp(), (3,), rules=[TwoNegatives]) == (["exp"], 1)


def test_facts_are_handed_on():
    program = traced(lambda x: x * sigmoid(x), (3,))
    apply_patterns_greedily(program, SILU)
    silu = next(op for op in program.walk() if op.name() == "pd_op.silu")
    assert "test_drr.py" in silu.attrs()["op_callstack"][0]


# ------------------------------------------------------------------------------------------------ wrong rules
def rule(source, result=lambda x: x, **parts):
    return drr()(type("Rule", (), {"source": staticmethod(source).__func__, "result": result, **parts}))


@pytest.mark.parametrize("source, message", [
    (lambda x, y: ops.exp(x), "parameter 'y' occurs nowhere"),
    (lambda x, *, a: ops.exp(x), "parameter 'a' occurs nowhere"),
    (lambda x: x, "expected it to return results of operators, got x"),
    (lambda x, y: (ops.exp(x), ops.tanh(y)), "tanh has no connection to the first result"),
    (lambda x: ops.sum(x), "sum has the attributes axis, keepdim; missing axis"),
    (lambda x: ops.exp(x, axis=1), "exp has the attributes none; unknown axis"),
    (lambda x: ops.exp(x, results=2), "exp: expected no `results`, .* it has 1"),
    (lambda x: ops.exp(x, x), r"exp takes 1 tensors \(x\), got 2"),
    (lambda *xs: ops.concat(xs, axis=0), r"concat: expected tensors one by one, got a list; write \*xs"),
    (lambda *xs: ops.concat(*xs, *xs, axis=0), r"concat: expected one list among the operands, got \*xs, \*xs"),
    (lambda x: ops.op("pd_op.iff", x), "expected the full name of an operation, got 'pd_op.iff'"),
    (lambda x: ops.op("pd_op.if", 2.0), "the operands, got"),
    (lambda x: ops.exp(ops.abs(x).named("x")), r"named\('x'\): expected a new name"),
    (lambda x: ops.exp(x) if x else x, "cannot branch"),
    (lambda x: ops.exp(2.0), "expected a tensor of the formula"),
])
def test_formulas_that_are_no_pattern_are_refused(source, message):
    with pytest.raises(TypeError, match=message):
        rule(source)


def test_unknown_operators_and_parameters_are_refused():
    with pytest.raises(AttributeError, match="ops.expp: expected the name of an operator"):
        rule(lambda x: ops.expp(x))
    with pytest.raises(TypeError, match="parameter 'y' of <lambda> is none of the source's: x"):
        rule(lambda x: ops.exp(x), lambda y: y)


def test_rules_are_made_of_functions_which_may_be_inherited_or_static():
    class Exps:
        @staticmethod
        def source(x):
            return ops.exp(ops.exp(x))

    class Tanh(Exps):
        def result(x):
            return ops.tanh(x)
    program = traced(lambda x: x.exp().exp(), (3,))
    assert apply_patterns_greedily(program, [drr()(Tanh)]) == 1 and names(program) == ["tanh"]
    with pytest.raises(TypeError, match="rule Exps: expected functions source and result, got no result"):
        drr()(Exps)
    with pytest.raises(TypeError, match="rule Two: expected result to be a function, got 2"):
        drr()(type("Two", (Exps,), {"result": 2}))


def test_a_result_of_another_type_is_the_rules_fault():
    bad = rule(lambda x: ops.exp(x), lambda x: ops.sum(x, axis=(0,)))
    with pytest.raises(RewriteError, match="expected a result of type tensor<3xf32>, got result 0 of pd_op.sum"):
        apply_patterns_greedily(traced(lambda x: x.exp(), (3,)), [bad])
