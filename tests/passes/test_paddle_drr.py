"""Rules of Paddle's Python API: what they make of programs, and what is refused."""

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.row import ROWS
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.passes import PassManager
from minipd.passes.drr import explain
from minipd.passes.paddle.view import View
from minipd.passes.pattern import RewriteError
from minipd.pir import DrrPatternContext
from minipd.static import InputSpec
from minipd.static.nn import cond, while_loop
from tests.passes.meaning import names, observed, run, same
from tests.passes.paddle_rules import CASES, silu_rule

X = InputSpec([3, 4], "float32", "x")
Y = InputSpec([3, 4], "float32", "y")
sigmoid = paddle.nn.functional.sigmoid


def applied(rule, program):
    """How often a rule fires; verified after every rewrite."""
    manager = PassManager(debug=True)
    manager.register_pass("rule_pass", rule)
    return manager.run(program)


def fires(rule, f, *specs, rtol=1e-6):
    """(operations afterwards, number of rewrites); what is computed stays."""
    changed, n = same(trace(f, *specs).program, lambda p: applied(rule, p), rtol)
    return names(changed), n


def static(case):
    main = paddle.static.Program()
    with paddle.static.program_guard(main, paddle.static.Program()):
        outs = case.program(paddle)
    return main, outs


#: case -> what real Paddle 3.3.1 has afterwards besides inputs, constants, bundles and the final assign.  (It matches
#: add_norm, and ends its process when it makes the rms_norm.)
AFTER = {
    "silu": ["swish"], "matmul_scale": ["scale", "matmul"], "matmul_transpose": ["matmul"], "add_norm": ["rms_norm"],
    "embedding": ["cast", "cast", "fused_embedding_eltwise_layernorm"], "rope": ["fused_rotary_position_embedding"],
    "multihead": ["reshape", "reshape", "multihead_matmul"],
}
#: Paddle's operator -> what ours is called, or is made of
OURS = {
    "swish": ["silu"], "scale": ["multiply"], "fused_rotary_position_embedding": [
        *["squeeze", "embedding", "unsqueeze"] * 2, *["slice", "slice", "scale", "concat", "multiply", "multiply",
                                                      "add"] * 2],
    "multihead_matmul": ["reshape", "matmul", "reshape", "add", "reshape", *["slice", "squeeze"] * 3, "flash_attn",
                         "reshape"],
}


@pytest.mark.parametrize("name", CASES)
def test_rules_that_paddle_reads_too(name):
    program, _ = static(CASES[name])
    observed(program, last=2 if name == "rope" else 1)
    rule = CASES[name].rule(paddle)
    assert explain(rule, program).fires
    changed = program.clone()
    n = applied(rule, changed)
    bound = {"embedding": {"x": np.array([[0, 3, 6, 1, 1, 5]])}, "rope": {"ids": np.arange(16).reshape(2, 8) * 3 % 8}}
    (before, _), (after, _) = (run(p, bound=bound.get(name)) for p in (program, changed))
    assert before.keys() == after.keys() and before
    for key, array in before.items():
        np.testing.assert_allclose(after[key], array, rtol=1e-4, atol=1e-5)
    want = [op for theirs in AFTER[name] for op in OURS.get(theirs, [theirs])]
    assert n == 1 and [op for op in names(changed) if op != "assign"] == want
    assert applied(rule, changed) == 0


def test_the_name_of_the_module_is_paddles():
    assert paddle.pir.DrrPatternContext is DrrPatternContext and paddle.pir.PassManager is PassManager


# ------------------------------------------------------------------------------------------------ what matches
def test_b7_operands_are_met_in_their_order():
    rule = silu_rule(paddle)
    assert fires(rule, lambda x: x * sigmoid(x), X) == (["silu"], 1)
    assert fires(rule, lambda x, y: x * sigmoid(y), X, Y)[1] == 0
    assert fires(rule, lambda x: sigmoid(x) * x, X)[1] == 0                 # as in Paddle
    either = silu_rule(paddle)
    either.commutative = frozenset({"multiply"})
    assert fires(either, lambda x: sigmoid(x) * x, X) == (["silu"], 1)


def test_b8_values_in_between_that_others_read():
    def shared(x):
        s = sigmoid(x)
        return x * s, s.tanh()

    def in_a_region(x):
        s = sigmoid(x)
        return x * s + cond(x.sum() > 0.0, lambda: s.tanh(), lambda: x)

    def terminator(x):
        def branch():
            s = sigmoid(x)
            return x * s, s
        return cond(x.sum() > 0.0, branch, lambda: (x, x))
    for f in (shared, in_a_region, terminator):
        assert fires(silu_rule(paddle), f, X)[1] == 0
    assert fires(silu_rule(paddle), lambda x: cond(x.sum() > 0.0, lambda: x * sigmoid(x), lambda: x), X)[1] == 1


def two_outputs():
    ctx = DrrPatternContext()
    pat = ctx.SourcePattern()
    pat.Op("pd_op.exp")([pat.Tensor("x")], [pat.Tensor("p")])
    pat.Op("pd_op.tanh")([pat.Tensor("x")], [pat.Tensor("q")])
    res = pat.ResultPattern()
    res.Op("pd_op.expm1")([res.Tensor("x")], [res.Tensor("less")])
    res.Op("pd_op.full", {"shape": res.VectorInt64Attr([1]), "value": res.DoubleAttr(1.0),
                          "dtype": res.DataTypeAttr("float32"), "place": res.PlaceAttr("cpu")})(
        [], [res.Tensor("one")])
    res.Op("pd_op.scale", {"bias": res.Float32Attr(1.0), "bias_after_scale": res.BoolAttr(True)})(
        [res.Tensor("less"), res.Tensor("one")], [res.Tensor("p")])
    res.Op("pd_op.sinh")([res.Tensor("x")], [res.Tensor("s")])
    res.Op("pd_op.cosh")([res.Tensor("x")], [res.Tensor("c")])
    res.Op("pd_op.divide")([res.Tensor("s"), res.Tensor("c")], [res.Tensor("q")])
    return ctx


def test_b9_the_result_stands_before_the_first_use():
    def early(x):
        p = x.exp()
        u = p.abs()
        return u, x.tanh()

    def late(x):
        return x.exp().abs() + x.tanh()
    assert fires(two_outputs(), early, X, rtol=1e-5) == (["expm1", "add", "sinh", "cosh", "divide", "abs"], 1)
    assert fires(two_outputs(), late, X, rtol=1e-5)[1] == 1


def test_b9_inputs_may_be_block_arguments():
    """The values that a loop carries."""
    def loop(x):
        return while_loop(lambda x: x.sum() < 9.0, lambda x: [x * sigmoid(x) + 2.0], [x])[0]
    assert fires(silu_rule(paddle), loop, X)[1] == 1


def test_chains_are_rewritten_to_the_end():
    def chain(x):
        for _ in range(5):
            x = x * sigmoid(x)
        return x
    assert fires(silu_rule(paddle), chain, X) == (["silu"] * 5, 5)


def test_post_processing_sees_the_match_before_it_is_rewritten():
    seen, rule = [], silu_rule(paddle)
    program = trace(lambda x: x * sigmoid(x), X).program
    rule.SourcePattern().AddPostProcess(lambda match: seen.append((names(program), list(match.Tensor("x").shape))))
    assert applied(rule, program) == 1 and seen == [(["sigmoid", "multiply"], [3, 4])]


def test_a_result_may_be_an_input():
    ctx = DrrPatternContext()
    pat = ctx.SourcePattern()
    pat.Op("pd_op.transpose", {"perm": pat.Attr("perm")})([pat.Tensor("x")], [pat.Tensor("m")])
    pat.Op("pd_op.transpose", {"perm": pat.Attr("perm")})([pat.Tensor("m")], [pat.Tensor("out")])
    pat.AddConstraint(lambda match: match.VectorInt32Attr("perm") == [1, 0])
    res = pat.ResultPattern()
    res.Tensor("out").Assign(res.Tensor("x"))
    assert fires(ctx, lambda x: x.t().t().exp(), X) == (["exp"], 1)


def test_a_layer_norm_is_one_operator_of_paddles():
    """Three of ours, or one."""
    ctx = DrrPatternContext()
    pat = ctx.SourcePattern()
    pat.Op("pd_op.layer_norm", {"epsilon": pat.Attr("epsilon")})(
        [pat.Tensor("x"), pat.Tensor("w"), pat.InputNoneTensor()],
        [pat.Tensor("out"), pat.Tensor("mean"), pat.Tensor("variance")])
    pat.AddConstraint(lambda match: match.Float32Attr("epsilon") == 0.1)         # all its digits
    res = pat.ResultPattern()
    res.Op("pd_op.multiply")([res.Tensor("x"), res.Tensor("w")], [res.Tensor("out")])
    program = trace(lambda x, w: paddle.nn.functional.layer_norm(x, [4], w, None, 0.1), X,
                    InputSpec([4], "float32", "w")).program
    assert applied(ctx, program) == 1 and names(program) == ["multiply"]
    verify(program)


def test_a_part_of_what_an_operation_is_written_as_is_no_match():
    """The norm over another axis is one operation of ours, and a transposition, a norm and one back for Paddle."""
    ctx = DrrPatternContext()
    pat = ctx.SourcePattern()
    pat.Op("pd_op.transpose", {"perm": pat.Attr("perm")})([pat.Tensor("x")], [pat.Tensor("out")])
    pat.ResultPattern().Tensor("out").Assign(pat.Tensor("x"))
    square = InputSpec([3, 3], "float32", "x")
    program = trace(lambda x: ROWS["standardize"](x, axis=(0,), epsilon=1e-5)[0], square).program
    assert [op.name() for op in View(program).program.walk()].count("pd_op.transpose") == 2
    assert applied(ctx, program) == 0
    assert applied(ctx, trace(lambda x: x.t().exp(), square).program) == 1


def test_what_no_grad_has_cut_is_not_joined_again():
    spec = InputSpec((3,), "float32", stop_gradient=False)
    for f, n in (lambda x: x * sigmoid(x).detach(), 0), (lambda x: x * sigmoid(x), 1):
        assert applied(silu_rule(paddle), trace(f, spec).program) == n


# ------------------------------------------------------------------------------------------------- what is wrong
def test_names_are_checked_where_they_are_written():
    ctx = DrrPatternContext()
    pat = ctx.SourcePattern()
    res = pat.ResultPattern()
    with pytest.raises(TypeError, match=r"got 'pd_op.sigmoidd'; did you mean pd_op.sigmoid"):
        pat.Op("pd_op.sigmoidd")
    with pytest.raises(TypeError, match="pd_op.softmax has the attributes axis, got 'axes'"):
        pat.Op("pd_op.softmax", {"axes": pat.Attr("a")})
    with pytest.raises(TypeError, match="got 'axis', which is an operand: match the pd_op.full or"):
        pat.Op("pd_op.mean", {"axis": pat.Attr("a")})
    with pytest.raises(TypeError, match="pd_op.layer_norm takes x, scale, bias, got 1 operands; InputNoneTensor"):
        pat.Op("pd_op.layer_norm")([pat.Tensor("x")], [pat.Tensor("y")])
    with pytest.raises(TypeError, match="pd_op.layer_norm gives out, mean, variance, got 1 results"):
        pat.Op("pd_op.layer_norm")([pat.Tensor(n) for n in "xwb"], [pat.Tensor("y")])
    with pytest.raises(TypeError, match="expected lists of tensors of the pattern"):
        pat.Op("pd_op.exp")(pat.Tensor("x"), pat.Tensor("y"))
    pat.Op("pd_op.exp")([pat.Tensor("x")], [pat.Tensor("y")])
    with pytest.raises(TypeError, match="expected one operator to make 'y', got pd_op.tanh besides another"):
        pat.Op("pd_op.tanh")([pat.Tensor("x")], [pat.Tensor("y")])
    with pytest.raises(TypeError, match="expected the result pattern to make a tensor of the source .y., got nothing"):
        _ = ctx.source
    res.Op("pd_op.tanh")([res.Tensor("z")], [res.Tensor("y")])
    with pytest.raises(TypeError, match=r"pd_op.tanh reads 'z'; expected an input of the source \(x\)"):
        _ = ctx.source


def broken(make):
    """A rule for exp(x) whose result `make` writes."""
    ctx = DrrPatternContext("Broken")
    pat = ctx.SourcePattern()
    pat.Op("pd_op.exp")([pat.Tensor("x")], [pat.Tensor("out")])
    make(pat, pat.ResultPattern())
    return ctx


@pytest.mark.parametrize("make, error, message", [
    (lambda pat, res: res.Op("pd_op.softmax", {"axis": pat.Attr("a")})([res.Tensor("x")], [res.Tensor("out")]),
     TypeError, "attribute 'axis' of pd_op.softmax is Attr.'a'., which no operator of the source binds"),
    (lambda pat, res: res.Op("pd_op.argmax", {"axis": res.Int64Attr(0)})([res.Tensor("x")], [res.Tensor("out")]),
     RewriteError, "expected 'out' of type tensor<3x4xf32>, got tensor"),
    (lambda pat, res: res.Op("pd_op.one_hot", {"num_classes": res.Int32Attr(2)})([res.Tensor("x")],
                                                                               [res.Tensor("out")]),
     Exception, "one_hot"),
    (lambda pat, res: res.Op("pd_op.add_position_encoding")([res.Tensor("x")], [res.Tensor("out")]),
     RewriteError, "rule Broken: expected a result of operators that minipd has, got pd_op.add_position_encoding"),
    (lambda pat, res: res.Op("pd_op.fused_gemm_epilogue", {
        "trans_x": res.BoolAttr(False), "trans_y": res.BoolAttr(True), "activation": res.StrAttr("none")})(
        [res.Tensor("x")] * 3, [res.Tensor("out"), res.Tensor("space")]),
     RewriteError, "got pd_op.fused_gemm_epilogue, which it can only keep; there is ops.fused_gemm_epilogue of ours"),
    (lambda pat, res: res.Op("pd_op.cast")([res.Tensor("x")], [res.Tensor("out")]),
     RewriteError, "expected attribute 'dtype' of pd_op.cast, got none"),
    (lambda pat, res: res.Op("pd_op.softmax", {"axis": res.ComputeAttr(lambda m: (1, "int33"))})(
        [res.Tensor("x")], [res.Tensor("out")]), TypeError, "one of the kinds bool, int32, .*, got 'int33'"),
    (lambda pat, res: res.Op("pd_op.softmax", {"axis": res.StrAttr("one")})([res.Tensor("x")], [res.Tensor("out")]),
     RewriteError, "attribute 'axis' of pd_op.softmax: expected one of kind i32"),
])
def test_results_that_cannot_be_made_leave_the_program_as_it_was(make, error, message):
    program = trace(lambda x: x.exp(), X).program
    before = program.to_string("exact")
    with pytest.raises(error, match=message):
        applied(broken(make), program)
    assert program.to_string("exact") == before
    verify(program)


def test_questions_of_the_wrong_kind():
    """Each of these ends Paddle's process."""
    ctx = DrrPatternContext("Asks")
    pat = ctx.SourcePattern()
    pat.Op("pd_op.softmax", {"axis": pat.Attr("axis")})([pat.Tensor("x")], [pat.Tensor("out")])
    asked = []

    def ask(match):
        for question, name, error, message in (
                (match.Int64Attr, "axis", TypeError, "expected an attribute of kind i64 .*ask with Int32Attr"),
                (match.Int32Attr, "axe", KeyError, "an attribute that the source pattern binds .axis., got 'axe'"),
                (match.Tensor, "y", KeyError, "expected a tensor of the source pattern .*, got 'y'")):
            with pytest.raises(error, match=message):
                question(name)
        asked.append((match.Int32Attr("axis"), match.Attr("axis"), match.Tensor("x").dtype))
        return False
    pat.AddConstraint(ask)
    res = pat.ResultPattern()
    res.Op("pd_op.log_softmax", {"axis": pat.Attr("axis")})([res.Tensor("x")], [res.Tensor("out")])
    program = trace(lambda x: paddle.nn.functional.softmax(x), X).program
    assert applied(ctx, program) == 0 and asked == [(-1, -1, paddle.float32)]
    assert explain(ctx, program).reason.startswith("the constraint refuses")


def test_a_miss_is_explained_in_paddles_operators():
    found = explain(silu_rule(paddle), trace(lambda x: sigmoid(x) * x, X).program)
    assert found.reason == ("operand 0: x is result 0 of pd_op.data: tensor<3x4xf32> already, got result 0 of "
                            "pd_op.sigmoid: tensor<3x4xf32>")
    assert found.op.name() == "pd_op.multiply" and "test_paddle_drr.py" in found.line


def test_results_stay_in_double_precision():
    """An epsilon that has more digits than Paddle's attribute keeps them."""
    program = trace(lambda x: (x + 0.1).exp(), InputSpec([3], "float64", "x")).program
    ctx = DrrPatternContext()
    pat = ctx.SourcePattern()
    pat.Op("pd_op.full", {"value": pat.Attr("v"), "shape": pat.Attr("s"), "dtype": pat.Attr("d"),
                          "place": pat.Attr("p")})([], [pat.Tensor("f")])
    pat.Op("pd_op.scale", {"bias": pat.Attr("bias"), "bias_after_scale": pat.Attr("after")})(
        [pat.Tensor("x"), pat.Tensor("f")], [pat.Tensor("m")])
    pat.Op("pd_op.exp")([pat.Tensor("m")], [pat.Tensor("out")])
    res = pat.ResultPattern()
    kept = {"value": pat.Attr("v"), "shape": pat.Attr("s"), "dtype": pat.Attr("d"), "place": pat.Attr("p")}
    res.Op("pd_op.full", kept)([], [res.Tensor("g")])
    res.Op("pd_op.scale", {"bias": pat.Attr("bias"), "bias_after_scale": pat.Attr("after")})(
        [res.Tensor("x"), res.Tensor("g")], [res.Tensor("n")])
    res.Op("pd_op.expm1")([res.Tensor("n")], [res.Tensor("e")])
    res.Op("pd_op.full", kept)([], [res.Tensor("h")])
    res.Op("pd_op.scale", {"bias": res.Float32Attr(1.0), "bias_after_scale": res.BoolAttr(True)})(
        [res.Tensor("e"), res.Tensor("h")], [res.Tensor("out")])
    before = run(program)
    assert applied(ctx, program) == 1
    for name, array in run(program)[0].items():
        np.testing.assert_allclose(array, before[0][name], rtol=1e-14)
