"""minipd bisect: a wrong pass that was planted is found, and the rewrite in which it went wrong."""

import re

import numpy as np
import pytest

import minipd as paddle
from minipd.cli import main
from minipd.framework.dim import symbol
from minipd.framework.errors import InputError
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.builder import Builder
from minipd.ir.parser import parse
from minipd.ir.schema import tensor_operands
from minipd.ir.traced import trace
from minipd.passes import FunctionPass, PassManager, RewritePattern, bisect, load_passes, pass_names
from minipd.passes.compare import difference, outcome, random_feed, random_state
from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.pattern import RULES
from minipd.passes.show import program_of
from minipd.passes.table import MAKERS

CLEAN, CSE, DCE = "identity_op_clean_pass", "common_subexpression_elimination_pass", "dead_code_elimination_pass"

#: a user's file: a pass whose rule is right for most shapes, and wrong for one
PLANTED = '''
from minipd.passes import function_pass
from minipd.passes.drr import drr
from minipd.passes.formula import ops

@drr("twice_pass")
class Twice:
    """x + x is 2 x, or so somebody thinks."""
    def source(x):
        return x + x
    def constraint(x):
        return x.shape != (3, 2)
    def result(x):
        return x * 2.0

@drr("twice_pass")
class Thrice:
    def source(x):
        return x + x
    def constraint(x):
        return x.shape == (3, 2)
    def result(x):
        return x * 3.0

@function_pass("reverse_pass")
def reverse(program):
    for op in program.global_block():
        if op.name() == "pd_op.subtract":
            x, y = op.operands_source()
            op.operand(0).set_source(y)
            op.operand(1).set_source(x)
            return 1
    return 0
'''


@pytest.fixture
def planted(tmp_path):
    """The file; what it registers is gone afterwards."""
    file = tmp_path / "planted.py"
    file.write_text(PLANTED)
    before = set(pass_names())
    yield str(file)
    for name in set(pass_names()) - before:
        RULES.pop(name, None), MAKERS.pop(name, None)


def traced(f, *shapes):
    return trace(f, *(Meta(s, np.dtype("float32")) for s in shapes)).program


def sums(x, y):
    """Seven sums of a value with itself, of which the fourth, in the order of the program, is of shape [3, 2]."""
    for _ in range(3):
        x = (x + x).tanh()
    turned = (x.transpose([1, 0]) + x.transpose([1, 0]).scale(1.0)).transpose([1, 0])
    x = x.transpose([1, 0])
    x = (x + x).transpose([1, 0]).tanh()
    for _ in range(3):
        x = (x + x).tanh()
    return x, turned - y


def numbers_in(text):
    """What was expected, and what came."""
    found = re.search(r"expected (\S+), got (\S+) ", text)
    return float(found[1]), float(found[2])


# ------------------------------------------------------------------------------------------------- programs
def test_where_all_passes_are_right_there_is_none():
    program = traced(sums, (2, 3), (2, 3))
    text = program.to_string("exact")
    assert bisect(program, [CLEAN, CSE, DCE, "silu_fuse_pass"]) is None
    assert program.to_string("exact") == text


def test_a_planted_rule_is_found_and_at_which_of_its_rewrites(planted):
    assert load_passes(planted) == ["reverse_pass", "twice_pass"]
    program = traced(sums, (2, 3), (2, 3))
    found = bisect(program, [DCE, CLEAN, CSE, "twice_pass", "silu_fuse_pass"])
    # CLEAN has made x + x of x + scale(x, 1), CSE one of the two sums of shape [3, 2]
    assert (found.number, found.name, found.rule, found.rewrites) == (4, "twice_pass", "Thrice", 7)
    assert found.at.startswith("pd_op.add -> tensor<3x2xf32> (from ") and "test_bisect.py" in found.at
    assert "output_0[0, 0]: expected " in found.difference
    # the programs before and after are one rewrite apart, and that one is the wrong one
    feed = random_feed(program)
    want = outcome(program, feed)
    assert difference(want, outcome(found.before, feed)) is None
    assert difference(want, outcome(found.after, feed)) == found.difference
    assert sum(line.startswith("- ") and " = add(" in line for line in found.lines) == 1
    assert sum(line.startswith("+ ") and ", 3.0)" in line for line in found.lines) == 1
    assert str(found).splitlines()[1].startswith(f"rewrite {found.rewrite} of 7, by rule Thrice at pd_op.add -> ")


@pytest.mark.parametrize("wrong", range(6))
def test_whichever_rewrite_is_wrong_is_found(wrong):
    """Every link of the chain has a shape of its own, and the rule is wrong at one."""
    def chain(x):
        for _ in range(6):
            x = paddle.concat([x.exp(), x[:1]])
        return x

    class Once(RewritePattern):
        """exp -> abs(exp), once for each, and tanh in one place."""
        roots = ("pd_op.exp",)

        def match_and_rewrite(self, op, rewriter):
            x, = tensor_operands(op)
            if any(user.name() == "pd_op.abs" for user in op.result(0).all_used_ops()):
                return False
            if x.shape[0] == wrong + 2:
                rewriter.replace_op_with(op, ROWS["tanh"], (x,))
                return True
            rewriter.set_insertion_point_after(op)
            y, = rewriter.call(ROWS["abs"], (op.result(0),), {})
            rewriter.replace_uses_if(op.result(0), y, lambda use: use.owner() is not y.get_defining_op())
            return True
    found = bisect(traced(chain, (2, 3)), [CSE, Once()])
    assert (found.number, found.name, found.rewrites, found.rule) == (2, "Once", 6, "Once")
    assert found.at.startswith(f"pd_op.exp -> tensor<{wrong + 2}x3xf32>")


def test_a_pass_without_rules_is_found_without_a_rewrite(planted):
    load_passes(planted)
    found = bisect(traced(lambda x, y: (x - y).exp(), (2,), (2,)), [DCE, "reverse_pass", CSE])
    assert (found.number, found.name, found.rewrite, found.rule) == (2, "reverse_pass", None, "")
    assert found.lines == ("- a = subtract(input_0, input_1)", "+ a = subtract(input_1, input_0)", "  b = exp(a)")


def test_passes_may_be_given_as_they_come(planted):
    load_passes(planted)
    program = traced(lambda x, y: (x - y).exp(), (2,), (2,))
    manager = PassManager()
    manager.add_pass("constant_folding_pass", {"max_elements": 1})
    manager.add_pass("reverse_pass")
    assert bisect(program, manager).number == 2
    options = ("constant_folding_pass", {"max_elements": 1})
    assert bisect(program, [options, FunctionPass("fine_pass", lambda p: 0), "reverse_pass"]).number == 3
    with pytest.raises(KeyError, match="did you mean reverse_pass"):
        bisect(program, [CSE, "revers_pass"])
    with pytest.raises(TypeError, match=r"expected names of passes, passes, or rules, got .*; write FunctionPass\(\)"):
        bisect(program, [CSE, FunctionPass])


# ------------------------------------------------------------------------------------------- other ways to be wrong
def breaks(program):
    program.global_block().back().move_before(program.global_block().front())
    return 1


def raises(program):
    raise ArithmeticError("no")


def cannot_run(program):
    op = next(op for op in program.walk() if op.name() == "pd_op.reshape")
    shape = op.operand_source(1).get_defining_op()
    shape.set_attr("value", (5, 5))
    return 1


def drops_an_output(program):
    program.global_block().back().erase()
    return 1


@pytest.mark.parametrize("function, says", [
    (breaks, "the program is not well formed any more: "), (raises, "it raises ArithmeticError: no"),
    (cannot_run, "the program "), (drops_an_output, "results: expected output_0, output_1, got none of output_1")])
def test_what_cannot_be_run_is_wrong_too(function, says):
    program = traced(lambda x: (x.exp(), x.reshape([3, 2])), (2, 3))
    found = bisect(program, [CSE, FunctionPass("bad_pass", function), DCE])
    assert (found.number, found.name) == (2, "bad_pass") and found.difference.startswith(says)


def test_a_rule_without_end_is_reported_as_such():
    @drr()
    class Swap:
        def source(a, b):
            return a - b

        def result(a, b):
            return (b - a) * -1.0
    found = bisect(traced(lambda x, y: x - y, (2,), (2,)), [Swap])
    assert found.rewrite is None and found.difference.startswith(
        "it raises RewriteError: apply_patterns_greedily: expected rules that come to an end")


def test_how_far_apart_is_another():
    @drr()
    class Nearly:
        def source(x):
            return ops.exp(x)

        def result(x):
            return ops.tanh(x) * 0.0 + ops.expm1(x) + 1.0
    program = traced(lambda x: x.exp(), (100,))
    assert bisect(program, [Nearly]) is None and bisect(program, [Nearly], rtol=0.0).rule == "Nearly"


def test_programs_that_tell_nothing_are_refused():
    with pytest.raises(InputError, match="expected a program with results to compare, got one without outputs"):
        program = traced(lambda x: x, (2,))
        program.global_block().back().erase()
        bisect(program, [DCE])
    with pytest.raises(InputError, match="expected results that are numbers, got NaN everywhere"):
        bisect(traced(lambda x: x * float("nan"), (2,)), [DCE])
    with pytest.raises(InputError, match="expected a program that runs before the passes, got ValueError: feed: "
                                         "expected the inputs input_0"):
        bisect(traced(lambda x: x, (2,)), [DCE], {})


def test_state_that_is_written_counts_and_parameters_are_given_to_passes_that_fold_them():
    program = Program()
    build = Builder(program.global_block())
    w, v = build.parameter("w", (2, 2), "float32"), build.parameter("v", (2, 2), "float32")
    build.set_parameter("w", build.call(ROWS["exp"], (w,), {})[0])
    build.output("y", build.call(ROWS["tanh"], (v,), {})[0])

    def forgets(p):
        op = next(op for op in p.walk() if op.name() == "builtin.set_parameter")
        op.operand(0).set_source(p.get_parameter_value_by_name("w"))
        return 1
    found = bisect(program, [DCE, FunctionPass("forgets_pass", forgets)])
    assert found.number == 2 and found.difference.startswith("state w[0, 0]: expected ")
    seen = []

    def folds(p, *, param_scope):
        seen.append(dict(param_scope))
        param_scope["v"] = param_scope["v"] + 1
        return 1
    MAKERS["folds_pass"] = lambda *, param_scope: FunctionPass("folds_pass", folds, param_scope=param_scope)
    try:
        given = {"v": np.full((2, 2), 0.5, np.float32)}
        found = bisect(program, ["folds_pass"], state=given)
        assert found.difference.startswith("y[0, 0]: expected ")
        np.testing.assert_allclose(numbers_in(found.difference), np.tanh([0.5, 1.5]), rtol=1e-5)
        assert seen[0]["v"] is given["v"] and sorted(seen[0]) == ["v", "w"] and (given["v"] == 0.5).all()
    finally:
        del MAKERS["folds_pass"]


# ------------------------------------------------------------------------------------------------- inputs
def test_random_inputs_fit_what_reads_them():
    def f(ids, x, flag):
        table = paddle.ones([5, 2])
        return paddle.nn.functional.embedding(ids, table), x.reshape([-1, 4]), flag
    spec = paddle.static.InputSpec
    program = trace(f, spec([64], "int64"), spec([None, 6]), spec([3], "bool")).program
    feed = random_feed(program)
    assert set(feed["input_0"].tolist()) == {0, 1, 2, 3, 4} and feed["input_2"].dtype == bool
    assert feed["input_1"].shape[0] % 2 == 0            # 6 S0 is a multiple of 4
    assert random_feed(program, sizes={"S0": 10})["input_1"].shape == (10, 6)
    program = trace(lambda x: x, spec(["S1"])).program
    program.constraints.record("equal", symbol("S1"), 17, "test")
    with pytest.raises(InputError, match="expected sizes of S1 for which the assumptions of the program hold, got S1 "
                                         "== 17 .*: give sizes, or a feed"):
        random_feed(program)
    assert random_feed(program, sizes={"S1": 17})["input_0"].shape == (17,)


def test_random_numbers_depend_on_names_only():
    a = traced(lambda x, y: x + y, (2, 3), (2, 3))
    b = traced(lambda x: x, (2, 3))
    np.testing.assert_array_equal(random_feed(a)["input_0"], random_feed(b)["input_0"])
    assert (random_feed(a)["input_0"] != random_feed(a)["input_1"]).all()
    assert (random_feed(a)["input_0"] != random_feed(a, seed=1)["input_0"]).all()


def test_random_parameters_keep_the_size_of_activations_and_may_be_variances():
    net = paddle.nn.Sequential(paddle.nn.Linear(400, 300), paddle.nn.BatchNorm1D(300))
    state = random_state(program_of(net, (2, 400)))
    weight = next(v for v in state.values() if v.ndim == 2)
    assert 0.8 < np.linalg.norm(weight) / np.sqrt(weight.shape[0]) < 1.2        # each row has length one
    assert all((v > 0).all() for v in state.values() if v.ndim == 1)


# ------------------------------------------------------------------------------------------------- the command
def test_bisect_a_file_of_exact_text(planted, tmp_path, capsys):
    file = tmp_path / "net.pir"
    file.write_text(traced(sums, (2, 3), (2, 3)).to_string("exact"))
    assert main(["bisect", str(file), "--passes", f"{DCE},{CSE}"]) == 0
    assert capsys.readouterr().out == f"the result stays the same after each of 2 passes: {DCE}, {CSE}\n"
    found = tmp_path / "found"
    assert main(["bisect", str(file), "-p", DCE, "-p", "twice_pass", "--load", planted, "--out", str(found)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("pass 2, twice_pass, changes the result: output_0[0, 0]: expected ")
    assert "by rule Thrice at pd_op.add -> tensor<3x2xf32>" in out
    before, after = (parse((found / f"{name}.pir").read_text()) for name in ("before", "after"))
    feed = random_feed(before)
    assert difference(outcome(before, feed), outcome(after, feed)) is not None


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.second = paddle.nn.Linear(4, 6), paddle.nn.Linear(6, 3)

    def forward(self, x):
        h = self.first(x)
        h = h + h
        return self.second(h).tanh() - x[:, :3]


def test_bisect_a_saved_model_with_its_parameters(planted, tmp_path, capsys):
    paddle.seed(3)
    net = Net()
    paddle.jit.save(net, str(tmp_path / "net"), [paddle.static.InputSpec([None, 4])])
    x = np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4)
    np.savez(tmp_path / "feed.npz", x=x)
    want = net(paddle.to_tensor(x)).numpy()
    for what in ("net", "net.json"):
        arguments = ["bisect", str(tmp_path / what), "-p", f"{CSE},reverse_pass", "--load", planted,
                     "--feed", str(tmp_path / "feed.npz")]
        assert main(arguments) == 1
        out = capsys.readouterr().out
        # with its own parameters and inputs: the numbers are those of the layer
        np.testing.assert_allclose(numbers_in(out), [want[0, 0], -want[0, 0]], rtol=1e-5)
    assert main(["bisect", str(tmp_path / "net")]) == 0             # the pipeline of inference is right
    assert "constant_folding_pass" in capsys.readouterr().out
    assert main(["bisect", str(tmp_path / "net"), "--size", "S0=7", "--seed", "5"]) == 0


def test_bisect_a_model_without_the_file_of_its_parameters(planted, tmp_path, capsys):
    paddle.jit.save(Net(), str(tmp_path / "net"), [paddle.static.InputSpec([2, 4])])
    (tmp_path / "net.pdiparams").rename(tmp_path / "elsewhere.pdiparams")
    arguments = ["bisect", str(tmp_path / "net.json"), "-p", "reverse_pass", "--load", planted]
    assert main(arguments) == 1
    random = capsys.readouterr().out
    assert main([*arguments, "--params", str(tmp_path / "elsewhere.pdiparams")]) == 1
    assert capsys.readouterr().out != random


@pytest.mark.parametrize("arguments, says", [
    (["none.pir"], "no such file"),
    (["net.pir", "--feed", "none.npz"], "expected arrays by name, as numpy.savez writes them"),
    (["net.pir", "--size", "S0"], "expected a size such as S0=8, got 'S0'"),
    (["net.pir", "--passes", "dead_pass"], "expected the name of a pass, got 'dead_pass'"),
    (["net.pir", "--load", "none.py"], "expected a Python file that registers passes, got none.py"),
])
def test_what_cannot_be_bisected_is_refused(arguments, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.pir").write_text(traced(sums, (2, 3), (2, 3)).to_string("exact"))
    assert main(["bisect", *arguments]) == 2
    assert says in capsys.readouterr().err
