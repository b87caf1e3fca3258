"""The greedy driver: it ends, or says which rules do not let it."""

import numpy as np
import pytest

from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir.schema import constant_of, op_attrs, tensor_operands
from minipd.ir.traced import trace
from minipd.ir.verify import VerifyError
from minipd.passes.drr import drr
from minipd.passes.pattern import RewriteError, RewritePattern, apply_patterns_greedily
from tests.passes.meaning import names, same


def program(f, *shapes):
    return trace(f, *(Meta(s, np.dtype("float32")) for s in shapes)).program


class TwiceIsSum(RewritePattern):
    """2 x -> x + x"""

    roots = ("pd_op.scale",)

    def match_and_rewrite(self, op, rewriter):
        if op_attrs(op) != {"scale": 2.0, "bias": 0.0, "bias_after_scale": True}:
            return False
        x, = tensor_operands(op)
        rewriter.replace_op(op, rewriter.call(ROWS["add"], (x, x), {}))
        return True


class SumIsTwice(RewritePattern):
    """x + x -> 2 x"""

    roots = ("pd_op.add",)

    def match_and_rewrite(self, op, rewriter):
        x, y = tensor_operands(op)
        if x is not y:
            return False
        rewriter.replace_op(op, rewriter.call(ROWS["scale"], (x,), {"scale": 2.0}))
        return True


def test_a_rule_is_applied_everywhere_and_its_constants_go_with_it():
    before = program(lambda x: x.scale(2.0).scale(2.0).scale(3.0), (2,))
    changed, rewrites = same(before, lambda p: apply_patterns_greedily(p, [TwiceIsSum()], debug=True))
    assert rewrites == 2 and names(changed) == ["add", "add", "scale"]
    assert [constant_of(op.result(0)) for op in changed.walk() if op.name() == "pd_op.full"] == [3.0]


def test_in_branches_too():
    from minipd.static.nn import cond
    before = program(lambda x: cond(x.sum() > 0.0, lambda: x.scale(2.0), lambda: x), (2,))
    changed, rewrites = same(before, lambda p: apply_patterns_greedily(p, [TwiceIsSum()], debug=True))
    assert rewrites == 1 and "add" in names(changed)


def test_the_larger_benefit_is_tried_first():
    class Better(TwiceIsSum):
        benefit = 2

        def match_and_rewrite(self, op, rewriter):
            rewriter.replace_op(op, tensor_operands(op))
            return True
    changed = program(lambda x: x.scale(2.0).exp(), (2,))
    assert apply_patterns_greedily(changed, [TwiceIsSum(), Better()]) == 1
    assert names(changed) == ["exp"]


# ------------------------------------------------------------------------------------------------ B10
def test_b10_swapping_never_ends():
    """xdsl #1908: add(a, b) -> add(b, a)."""
    @drr()
    class Swap:
        def source(a, b):
            return a + b

        def result(a, b):
            return b + a

    with pytest.raises(RewriteError) as error:
        apply_patterns_greedily(program(lambda x, y: x + y, (2,), (2,)), [Swap], max_rewrites=20)
    assert "got 21 rewrites, more than max_rewrites=20. Of the last 12: Swap (12 times); the very last by Swap at " \
           "pd_op.add -> tensor<2xf32> (from " in str(error.value)
    assert "test_pattern.py" in str(error.value)        # the user's line


def test_b10_ping_pong_names_both_rules():
    with pytest.raises(RewriteError, match=r"more than max_rewrites=140. Of the last 12: \w+ \(6 times\), \w+ \(6 "
                                           "times"):
        apply_patterns_greedily(program(lambda x: x.scale(2.0), (2,)), [TwiceIsSum(), SumIsTwice()])


def test_b10_a_fold_that_makes_the_same_constant_again():
    class Fold(RewritePattern):
        roots = ("pd_op.full",)

        def match_and_rewrite(self, op, rewriter):
            a = op.attrs()
            rewriter.replace_op(op, [rewriter.full(a["shape"], a["value"], a["dtype"])])
            return True
    with pytest.raises(RewriteError, match=r"Fold \(12 times\)"):
        apply_patterns_greedily(program(lambda x: x + 1.0, (2,)), [Fold()])


def test_b10_a_rule_that_says_it_changed_something_is_flagged():
    """adobe/aem-modernize-tools #99: an endless loop if a rule does not change the node."""
    class Liar(RewritePattern):
        def match_and_rewrite(self, op, rewriter):
            return True

    class Silent(RewritePattern):
        roots = ("pd_op.exp",)

        def match_and_rewrite(self, op, rewriter):
            rewriter.call(ROWS["exp"], tensor_operands(op), {})
            return False

    with pytest.raises(RewriteError, match="pattern Liar at pd_op.data .*expected a change, since it returned True"):
        apply_patterns_greedily(program(lambda x: x.exp(), (2,)), [Liar()])
    with pytest.raises(RewriteError, match="pattern Silent: expected no change, since it returned False, got 1"):
        apply_patterns_greedily(program(lambda x: x.exp(), (2,)), [Silent()])


def test_in_debug_mode_the_rule_that_breaks_a_program_is_named():
    class Careless(RewritePattern):
        roots = ("pd_op.exp",)

        def match_and_rewrite(self, op, rewriter):
            op.move_before(op.parent.front())
            rewriter.modified(op)
            return True
    with pytest.raises(VerifyError) as caught:
        apply_patterns_greedily(program(lambda x: x.exp(), (2,)), [Careless()], debug=True)
    assert caught.value.__notes__[0].startswith("after a rewrite by pattern Careless at pd_op.exp")
