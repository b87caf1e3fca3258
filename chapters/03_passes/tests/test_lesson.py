"""What the lesson claims, and its examples do not show."""

import itertools
import re
import runpy
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle
from minipd.executor import Executor, Scope
from minipd.framework.row import ROWS
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.parser import parse
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.ir.verify import VerifyError, verify
from minipd.nn import functional as F
from minipd.passes import Listener, PassManager, apply_patterns_greedily, create_pass, fuse_forward, pass_names
from minipd.passes.drr import drr, ops
from minipd.passes.show import brief, program_of
from minipd.static import InputSpec
from minipd.static.nn import cond

IMG = Path(__file__).parents[1] / "img"
X = np.array([[0.5, -1.0, 0.25], [2.0, 0.0, -0.5]])


def traced(f):
    return trace(f, InputSpec([2, 3], "float64", "x")).program


def run(program):
    return Executor(program).run({"x": X}, Scope())


# ----------------------------------------------------------------------------------------- what a pass promises
def branch(x):
    y = x.exp()
    return cond(x.sum() > 0.0, lambda: x.exp() + y.tanh(), lambda: y * 2.0), x.exp()


def norms(x):
    w = paddle.full([3], 0.5) + 1.0
    return F.rms_norm(x, [3], w) + x * F.sigmoid(x), F.silu(x) * x.tanh()


def identities(x):
    return x.reshape([2, 3]).transpose([0, 1]) * 1.0 + x.cast("float64"), x + paddle.full([3], 0.0) * -1.0


@pytest.mark.parametrize("f", [branch, norms, identities])
@pytest.mark.parametrize("name", pass_names())
def test_every_pass_keeps_the_meaning_and_the_form(name, f):
    program = traced(f)
    before = run(program)
    create_pass(name).run(program)
    verify(program)
    after = run(program)
    assert before.keys() == after.keys()
    for output, want in before.items():
        np.testing.assert_allclose(after[output], want, rtol=1e-12)


def test_a_second_run_finds_nothing_more():
    manager = PassManager()
    for name in pass_names():
        manager.add_pass(name)
    for f in (branch, norms, identities):
        program = traced(f)
        while manager.run(program):
            pass
        assert [r.changes for r in manager.statistics] == [0] * len(pass_names())


def test_the_manager_names_the_pass_that_breaks_a_program():
    class Careless:
        """Puts the last operation first."""

        name = "careless_pass"

        def run(self, program):
            block = program.global_block()
            block.back().move_before(block.front())
            return 1

    manager = PassManager(debug=True)
    manager.add_pass("dead_code_elimination_pass")
    manager.add_pass(Careless())
    with pytest.raises(VerifyError) as caught:
        manager.run(traced(lambda x: x.exp()))
    assert "after careless_pass" in "".join(caught.value.__notes__)


def test_printed_programs_can_be_read_back(tmp_path):
    manager = PassManager()
    manager.add_pass("common_subexpression_elimination_pass")
    manager.enable_ir_printing(tmp_path)
    program = traced(branch)
    before = program.clone()
    manager.run(program)
    files = sorted(tmp_path.iterdir())
    assert [f.name for f in files] == [f"00_common_subexpression_elimination_pass.{when}.pir"
                                       for when in ("after", "before")]
    assert parse(files[1].read_text()) == before and parse(files[0].read_text()) == program


# --------------------------------------------------------------------------------------------------- dead code
def test_one_walk_removes_a_chain_of_dead_operations():
    def f(x):
        y = x
        for _ in range(50):
            y = y.tanh()
        return x.exp()
    assert create_pass("dead_code_elimination_pass").run(traced(f)) == 50


def test_a_write_without_readers_stays():
    program = Program()
    build = Builder(program.global_block())
    new, = build.call(ROWS["exp"], (build.parameter("w", (2,), "float64"),), {})
    build.set_parameter("w", new)
    assert create_pass("dead_code_elimination_pass").run(program) == 0


# ------------------------------------------------------------------------------------------- does it end, and where
@drr()
class Quotient:
    def source(x, y):
        return x / ops.exp(y)

    def result(x, y):
        return x * ops.exp(-y)


@drr()
class QuotientOfPowers:
    def source(x, y):
        return ops.exp(x) / ops.exp(y)

    def result(x, y):
        return ops.exp(x - y)


@drr()
class ProductOfPowers:
    def source(x, y):
        return ops.exp(x) * ops.exp(y)

    def result(x, y):
        return ops.exp(x + y)


@drr()
class PlusMinus:
    def source(x, y):
        return x + (-y)

    def result(x, y):
        return x - y


def measure(program):
    """(divisions, operations); constants aside, which stand where they are used."""
    names = [op.name() for op in program.walk() if op.num_operands()]
    return names.count("pd_op.divide"), len(names)


class Falls(Listener):
    """Each rewrite makes the measure smaller."""

    def __init__(self, program):
        self.program, self.last = program, measure(program)

    def applied(self, rule, at):
        now = measure(self.program)
        assert now < self.last, rule
        self.last = now


@pytest.mark.parametrize("f", [
    lambda x, y: x.exp() / y.exp(), lambda x, y: (x.exp() / y.exp()) / (x + y).exp(),
    lambda x, y: x.exp() / (y.exp() / x.exp()), lambda x, y: (x.tanh() / y.exp()) * x.exp()])
def test_completed_rules_end_at_one_program_in_whatever_order_they_stand(f):
    ends = set()
    for rules in itertools.permutations([Quotient, QuotientOfPowers, ProductOfPowers, PlusMinus]):
        program = program_of(f, "f64[2]", "f64[2]")
        apply_patterns_greedily(program, rules, listeners=[Falls(program)])
        ends.add(brief(program))
    assert len(ends) == 1


# ------------------------------------------------------------------------------------------------------ fusion
def test_the_gradient_of_the_fused_norm_is_that_of_the_composed_one():
    def loss(x):
        return (x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * paddle.full([3], 1.5)).sum()
    grads = []
    for fused in (False, True):
        traced_loss = trace(loss, InputSpec([2, 3], "float64", "x", stop_gradient=False))
        program, value = traced_loss.program, traced_loss.output_values[0]
        if fused:
            value, = fuse_forward(program, [value])
        grad, = append_backward(program, [value], traced_loss.input_values)
        Builder(program.global_block()).output("grad", grad)
        assert any(op.name() == "pd_op.rms_norm" for op in program.walk()) == fused
        grads.append(run(program)["grad"])
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------------------------------------------- pictures
def test_the_pictures_are_what_the_script_draws():
    for name, picture in runpy.run_path(str(IMG / "draw.py"))["pictures"]().items():
        drawn = (IMG / name).read_text(encoding="utf-8")
        ElementTree.fromstring(drawn)
        drawn = re.sub("<style>.*?</style>\n", "", drawn, flags=re.S)      # the look may change
        assert drawn == picture.inline(), f"{name} is old: python chapters/03_passes/img/draw.py"
