"""What a rule can say beyond two formulas: lists, optional tensors, names, whole operations, options; `explain`."""

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.meta import Meta
from minipd.ir.traced import trace
from minipd.passes.drr import constant_of, drr, explain, ops
from minipd.passes.pattern import RewriteError, apply_patterns_greedily
from minipd.static import InputSpec
from minipd.static.nn import cond, while_loop
from tests.passes.meaning import names, same

F32 = np.dtype("float32")
X, Y = InputSpec([2, 3], "float32", "x"), InputSpec([2, 3], "float32", "y")
sigmoid = paddle.nn.functional.sigmoid


def fires(rule, f, *specs, rtol=1e-6):
    """(operations afterwards, number of rewrites), verified after every rewrite; what is computed stays."""
    changed, n = same(trace(f, *(specs or (X,))).program, lambda p: apply_patterns_greedily(p, [rule], debug=True),
                      rtol)
    assert apply_patterns_greedily(changed, [rule]) == 0
    return names(changed), n


# -------------------------------------------------------------------------------------------------------- options
def test_which_operators_commute_is_an_option():
    def of(commutative):
        @drr(commutative=commutative)
        class Rule:
            def source(x):
                return ops.maximum(x, x + ops.exp(x))

            def result(x):
                return x + ops.exp(x)
        return Rule
    orders = [lambda x: x.maximum(x + x.exp()), lambda x: (x + x.exp()).maximum(x), lambda x: x.maximum(x.exp() + x),
              lambda x: (x.exp() + x).maximum(x)]
    for said, wanted in ((True, [1, 1, 1, 1]), (False, [1, 0, 0, 0]), ({"add"}, [1, 0, 1, 0]),
                         (["maximum"], [1, 1, 0, 0])):
        assert [fires(of(said), f)[1] for f in orders] == wanted


def test_a_tensor_may_be_missing():
    @drr()
    class Linear:
        def source(x, w, b=None):
            y = ops.matmul(x, w)
            return y if b is None else y + b

        def constraint(w, b):
            return w.ndim == 2 and w.shape[0] != w.shape[1] and (b is None or b.ndim == 1)

        def result(x, w, b):
            y = ops.matmul(ops.scale(x, scale=2.0), ops.scale(w, scale=0.5), transpose_x=False)
            return ops.tanh(y) if w.shape[0] == 99 else y if b is None else b + y

    specs = X, InputSpec([3, 5], "float32", "w"), InputSpec([5], "float32", "b")
    program = trace(lambda x, w, b: x.matmul(w) + b, *specs).program
    assert [len(s.nodes) for s in Linear.sources] == [2, 1]
    assert explain(Linear, program).fires == 1
    changed, n = same(program, lambda p: first(p, Linear), 1e-5)
    assert n and names(changed) == ["scale", "scale", "matmul", "add"]
    changed, n = same(trace(lambda x, w, b: x.matmul(w) * b, *specs).program, lambda p: first(p, Linear), 1e-5)
    assert n and names(changed) == ["scale", "scale", "matmul", "multiply"]


def first(program, rule):
    """Apply a rule once, where it fires first from the end of the program on."""
    from minipd.passes.pattern import PatternRewriter
    rewriter = PatternRewriter(program)
    for op in reversed(list(program.walk())):
        rewriter.start(op)
        if op.name() in rule.roots and rule.match_and_rewrite(op, rewriter):
            return True
    return False


def test_a_list_of_any_length():
    @drr()
    class Nested:
        """A concatenation of a concatenation."""

        def source(last, *xs, axis):
            return ops.concat(ops.concat(*xs, axis=axis), last, axis=axis)

        def result(last, xs, axis):
            return ops.concat(*xs, last, axis=axis)
    for n in (1, 2, 5):
        def f(x, y, n=n):
            return paddle.concat([paddle.concat([x.exp()] * n, axis=1), y], axis=1)
        assert fires(Nested, f, X, Y) == (["exp", "concat"], 1)
    assert fires(Nested, lambda x: paddle.concat([paddle.concat([x, x], axis=1), paddle.concat([x, x], axis=1)],
                                                 axis=0))[1] == 0

    @drr()
    class Both:
        """The same list twice."""

        def source(xs: list, ys: list):
            return ops.add_n(*xs) * ops.exp(ops.add_n(*xs)) + ops.add_n(*ys)

        def constraint(xs, ys):
            return len(xs) > len(ys)

        def result(*xs, ys):
            total = ops.add_n(*xs)
            return total * ops.exp(total) + ops.add_n(*ys)

    def sums(n, m):
        def f(x, y):
            return paddle.add_n([x, y] * n) * paddle.add_n([x, y] * m).exp() + paddle.add_n([y, x])
        return f
    assert fires(Both, sums(2, 2), X, Y, rtol=1e-5)[1] == 1
    assert fires(Both, sums(1, 1), X, Y)[1] == 0            # the constraint
    assert fires(Both, sums(2, 3), X, Y)[1] == 0            # lists of two lengths


def test_an_operator_with_any_number_of_results():
    @drr()
    class Again:
        """What is cut and put together again is what it was."""

        def source(x, *, sections, axis):
            return ops.concat(*ops.split(x, sections=sections, axis=axis), axis=axis)

        def result(x):
            return x

    @drr()
    class Parts:
        """What is put together and cut where it was put together; a list of results."""

        def source(*xs, sections, axis):
            return ops.split(ops.concat(*xs, axis=axis), sections=sections, axis=axis)

        def constraint(xs, sections, axis):
            return tuple(x.shape[axis] for x in xs) == sections

        def result(xs):
            return xs

    @drr()
    class Three:
        def source(x, *, sections, axis):
            a, b, c = ops.split(x, sections=sections, axis=axis, results=3)
            return a * b + c

        def result(x, sections, axis):
            a, b, c = ops.split(x, sections=sections, axis=axis, results=3)
            return c + a * b
    wide = InputSpec([2, 6], "float32", "x")
    assert fires(Again, lambda x: paddle.concat(paddle.split(x, 3, 1), 1).exp(), wide) == (["exp"], 1)
    assert fires(Again, lambda x: paddle.concat(paddle.split(x, 3, 1)[::-1], 1), wide)[1] == 0
    assert fires(Again, lambda x: paddle.concat(paddle.split(x, 3, 1)[:2], 1), wide)[1] == 0

    def joined(x, y):
        a, b = paddle.split(paddle.concat([x, y], axis=1), 2, 1)
        return a.exp() + b
    assert fires(Parts, joined, X, Y) == (["exp", "add"], 1)

    def cut(n):
        def f(x):
            a, b, c, *_ = paddle.split(x, n, 1)
            return a * b + c
        return f
    changed = trace(cut(3), wide).program
    assert first(changed, Three) and names(changed)[-2:] == ["multiply", "add"]
    assert not first(trace(cut(6), wide).program, Three)


# ------------------------------------------------------------------------------------------- values in between
def test_values_in_between_have_names():
    @drr()
    class SharedExp:
        """Only where the exp has two readers here."""

        def source(x):
            e = ops.exp(x).named("e")
            return e * ops.tanh(e)

        def constraint(e, x):
            return e.use_count() == 2 and e.shape == x.shape

        def result(x, e):
            return ops.tanh(ops.exp(x)) / ops.exp(-x) if e.ndim == 2 else x

    def f(x):
        e = x.exp()
        return e * e.tanh()
    assert fires(SharedExp, f, rtol=1e-5) == (["exp", "tanh", "scale", "exp", "divide"], 1)


def test_b8_what_others_read_may_be_kept():
    def rule(keep):
        @drr(keep=keep)
        class SquaredExp:
            def source(x):
                return ops.square(ops.exp(x).named("e"))

            def result(x):
                return ops.exp(x * 2.0)
        return SquaredExp

    def shared(x):
        e = x.exp()
        return e.square(), e

    def inside(x):
        e = x.exp()
        return e.square() + cond(x.sum() > 0.0, lambda: e.tanh(), lambda: x)
    assert fires(rule(False), shared)[1] == fires(rule(False), inside)[1] == 0
    assert fires(rule(True), shared, rtol=1e-5) == (["exp", "multiply", "exp"], 1)
    assert fires(rule(True), inside, rtol=1e-5)[1] == 1
    assert fires(rule(True), lambda x: x.exp().square(), rtol=1e-5) == (["multiply", "exp"], 1)

    @drr(keep=True)
    class Uses:
        """The result computes with what is between, which stays then."""

        def source(x):
            return ops.square(ops.exp(x).named("e"))

        def result(e):
            return e * e
    assert fires(Uses, lambda x: x.exp().square()) == (["exp", "multiply"], 1)


def test_a_result_must_not_read_what_will_be_gone():
    @drr()
    class Wrong:
        def source(x):
            return ops.square(ops.exp(x).named("e"))

        def result(e):
            return e * e
    with pytest.raises(RewriteError, match="rule Wrong: expected a result that does without result 0 of pd_op.exp"):
        apply_patterns_greedily(trace(lambda x: x.exp().square(), X).program, [Wrong])


# -------------------------------------------------------------------------------------------- whole operations
@drr()
class NotIf:
    """if not c: A, else B  ->  if c: B, else A."""

    def source(c, *, branches):
        return ops.op("pd_op.if", ops.logical_not(c), regions=branches)

    def result(c, branches):
        return ops.op("pd_op.if", c, regions=branches[::-1])


def test_an_operation_with_regions_as_a_whole():
    def f(x):
        e = x.exp()
        return cond((x.sum() > 0.0).logical_not(), lambda: e + 1.0, lambda: e - x).tanh()
    assert fires(NotIf, f) == (["exp", "sum", "greater_than", "if", "subtract", "cf.yield", "add", "cf.yield",
                                "tanh"], 1)
    assert fires(NotIf, lambda x: cond(x.sum() > 0.0, lambda: x, lambda: x.exp()))[1] == 0


def test_an_operation_of_which_each_region_is_inside_of_another():
    def f(x):
        return cond(x.sum() > 0.0, lambda: cond((x.sum() > 1.0).logical_not(), lambda: x.exp(), lambda: x), lambda: x)
    assert fires(NotIf, f)[1] == 1


def test_patterns_inside_of_regions():
    @drr()
    class Silu:
        def source(x):
            return x * ops.sigmoid(x)

        def result(x):
            return ops.silu(x)

    def loop(x):
        """x is an argument of the loop's block."""
        return while_loop(lambda x: x.sum() < 9.0, lambda x: [x * sigmoid(x) + 2.0], [x])[0]

    def deep(x):
        return cond(x.sum() > 0.0, lambda: cond(x.sum() > 1.0, lambda: x * sigmoid(x), lambda: x), lambda: x)
    assert fires(Silu, loop)[1] == fires(Silu, deep)[1] == 1


# ------------------------------------------------------------------------------------------- constants, afterwards
def test_constants_are_tensors_too():
    @drr()
    class TimesZero:
        def source(x, *, shape, value, dtype):
            return x * ops.full(shape=shape, value=value, dtype=dtype)

        def constraint(x, value, shape):
            return value == 0.5 and len(shape) == 1

        def result(x, dtype):
            return x / ops.full(shape=(1,), value=2.0, dtype=dtype)
    assert fires(TimesZero, lambda x: x * paddle.full([3], 0.5)) == (["divide"], 1)
    assert fires(TimesZero, lambda x: x * paddle.full([3], 0.25))[1] == 0


def test_constraints_may_ask_for_constants_and_users():
    @drr()
    class Rule:
        def source(x, y):
            return ops.maximum(ops.exp(x).named("e"), y)

        def constraint(x, y, e):
            return constant_of(y) == 0.0 and e.use_count() == 1 and x.use_count() == 2 and x.dtype == F32

        def result(x):
            return ops.exp(x)
    zero = paddle.full
    assert fires(Rule, lambda x: x.exp().maximum(zero([2, 3], 0.0)) + x) == (["exp", "add"], 1)
    assert fires(Rule, lambda x: x.exp().maximum(zero([2, 3], 2.0)) + x)[1] == 0
    assert fires(Rule, lambda x: x.exp().maximum(zero([2, 3], 0.0)))[1] == 0
    assert fires(Rule, lambda x, y: x.exp().maximum(y) + x, X, Y)[1] == 0


def test_afterwards():
    seen = []

    @drr()
    class Silu:
        def source(x):
            return x * ops.sigmoid(x)

        def result(x):
            return ops.silu(x)

        def post(x, results, match, rewriter):
            op = results[0].get_defining_op()
            op.set_attr("note", "made by a rule")
            rewriter.modified(op)
            seen.append((x.shape, len(match.nodes)))
    program = trace(lambda x: x * sigmoid(x), X).program
    assert apply_patterns_greedily(program, [Silu]) == 1 and seen == [((2, 3), 2)]
    assert [op.attributes["note"].value for op in program.walk() if op.name() == "pd_op.silu"] == ["made by a rule"]


def test_the_match_itself():
    @drr()
    class Rule:
        def source(x):
            return ops.exp(ops.tanh(x))

        def constraint(match):
            return len(match.ops) == 2 and all("test_drr_language" in op.callstack[0] for op in match.ops)

        def result(x):
            return ops.exp(-ops.tanh(-x))
    program = trace(lambda x: x.tanh().exp(), X).program
    assert first(program, Rule)


# ------------------------------------------------------------------------------------------------- wrong rules
def test_what_a_rule_must_have():
    with pytest.raises(TypeError, match="rule Half: expected functions source and result, got no result"):
        @drr()
        class Half:
            def source(x):
                return ops.exp(x)
    with pytest.raises(AttributeError, match="got 'sigmod'; did you mean sigmoid"):
        @drr()
        class Near:
            def source(x):
                return ops.sigmod(x)

            def result(x):
                return x
    with pytest.raises(TypeError, match="parameter 'rewriter' of result is none of the source's: x"):
        @drr()
        class Asks:
            def source(x):
                return ops.exp(x)

            def result(x, rewriter):
                return x


@pytest.mark.parametrize("result, message", [
    (lambda x: (ops.tanh(x), x), "expected 1 results, as the source has, got 2"),
    (lambda x: ops.tanh(x, axis=1), "tanh has the attributes none, got axis"),
    (lambda x: ops.sum(x, axes=(1,)), "sum has the attributes axis, keepdim, got axes; did you mean axis"),
    (lambda x: ops.tanh(x, x), r"tanh takes 1 tensors \(x\), got 2"),
    (lambda x: ops.add(x, None), "add: expected tensors and numbers, got None"),
    (lambda x: ops.tanh(x).named("t"), "expected no .named.'t'. in a result"),
    (lambda x: ops.split(x, sections=(1, 1), axis=0, results=3), "expected 3 results of split, got 2"),
    (lambda x: 2.0, "expected a result of type tensor<2x3xf32>, got 2.0"),
])
def test_wrong_results(result, message):
    rule = drr()(type("Wrong", (), {"source": lambda x: ops.exp(x), "result": result}))
    with pytest.raises(RewriteError, match=message):
        apply_patterns_greedily(trace(lambda x: x.exp(), X).program, [rule])


# --------------------------------------------------------------------------------------------------- explain
@drr()
class RmsNorm:
    def source(x, w, *, axis, epsilon):
        return x * ops.rsqrt(ops.mean(ops.square(x), axis=axis, keepdim=True) + epsilon) * w

    def constraint(x, w, axis):
        return w.ndim == len(axis)

    def result(x, w, epsilon):
        return ops.rms_norm(x, w, epsilon=epsilon)


W = InputSpec([3], "float32", "w")


@pytest.mark.parametrize("f, matched, op, reason", [
    (lambda x, w: x * ((x * x).mean(1, keepdim=True) + 1e-6).rsqrt() * w, 4, "mean",
     "operand 0: expected a result of pd_op.square, got result 0 of pd_op.multiply"),
    (lambda x, w: x * (x.square().mean(1) + 1e-6).rsqrt().unsqueeze(1) * w, 2, "mean",
     "attribute keepdim: expected True, got False"),
    (lambda x, w: x * (x.square().mean(1, keepdim=True) + 1e-6).sqrt() * w, 3, "sqrt", "which goes into pd_op.sqrt"),
    (lambda x, w: w * (x.square().mean(1, keepdim=True) + 1e-6).rsqrt() * w, 5, "square",
     "operand 0: x is result 0 of pd_op.data: tensor<3xf32> already, got result 0 of pd_op.data: tensor<2x3xf32>"),
    (lambda x, w: x * (x.square().mean(1, keepdim=True) + 1e-6).rsqrt() * (w + x), 6, "multiply",
     "the constraint refuses x=tensor<2x3xf32>, w=tensor<2x3xf32>, axis=(1,), epsilon=1e-06"),
])
def test_explain_says_where_the_best_partial_match_stopped(f, matched, op, reason):
    found = explain(RmsNorm, trace(f, X, W).program)
    assert reason in found.reason, found.text
    assert (len(found.matched), found.total, found.op.name()) == (matched, 6, f"pd_op.{op}"), found.text
    assert "test_drr_language.py" in found.line and f"has {matched} of 6 operations" in str(found)


def test_explain_what_lies_between_and_where_there_is_no_place():
    def shared(x, w):
        r = (x.square().mean(1, keepdim=True) + 1e-6).rsqrt()
        return x * r * w, r.tanh()
    found = explain(RmsNorm, trace(shared, X, W).program)
    assert found.op.name() == "pd_op.tanh" and "lies between inputs and outputs" in found.reason
    assert len(found.matched) == 6 and "keep=True" in found.text

    @drr()
    class Pair:
        def source(x, y):
            return ops.exp(x), ops.tanh(x) + y

        def result(x, y):
            return ops.exp(x * 1.0), ops.tanh(x) * 1.0 + y

    def too_late(x):
        p = x.exp()
        u, y = p.square(), x.abs()
        return u, x.tanh() + y
    assert "no place" in explain(Pair, trace(too_late, X).program).reason
    spec = InputSpec((3,), "float32", "x", stop_gradient=False)

    @drr()
    class Silu:
        def source(x):
            return x * ops.sigmoid(x)

        def result(x):
            return ops.silu(x)

    def cut(x):
        with paddle.no_grad():
            s = sigmoid(x)
        return x * s
    assert explain(Silu, trace(cut, spec).program).reason.startswith("a gradient flows through one part")

    def across(x):
        s = sigmoid(x)
        return cond(x.sum() > 0.0, lambda: x * s, lambda: x)
    assert "different blocks" in explain(Silu, trace(across, X).program).reason


def test_explain_where_nothing_is_to_be_found_and_where_it_fires():
    assert explain(RmsNorm, trace(lambda x: x.abs(), X).program).reason.startswith("the program has none of")
    found = explain(NotIf, trace(lambda x: cond((x.sum() > 0.0).logical_not(), lambda: x, lambda: -x), X).program)
    assert found.fires == 1 and str(found) == "rule NotIf fires: it matches at 1 place"
    assert drr.explain is explain
    with pytest.raises(TypeError, match="explain: expected a rule of drr, got str"):
        explain("silu", trace(lambda x: x, X).program)


def test_a_meta_is_enough():
    assert explain(RmsNorm, trace(lambda x: x.square(), Meta((2, 3), F32)).program).matched
