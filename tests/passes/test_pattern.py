"""The greedy driver: it ends, or says which rules do not let it."""

from functools import partial

import numpy as np
import pytest

from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir.schema import constant_of, op_attrs, tensor_operands
from minipd.ir.traced import trace
from minipd.ir.verify import VerifyError
from minipd.passes import PassManager
from minipd.passes.drr import drr
from minipd.passes.pattern import RewriteError, RewritePattern, apply_patterns_greedily, watching_rewrites
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
    assert "After every 2 of them the program is what it was." in str(error.value)


def test_b10_ping_pong_names_both_rules():
    with pytest.raises(RewriteError, match=r"more than max_rewrites=140. Of the last 12: \w+ \(6 times\), \w+ \(6 "
                                           r"times\); .* After every 2 of them the program is what it was"):
        apply_patterns_greedily(program(lambda x: x.scale(2.0), (2,)), [TwiceIsSum(), SumIsTwice()])


def test_b10_a_fold_that_makes_the_same_constant_again():
    class Fold(RewritePattern):
        roots = ("pd_op.full",)

        def match_and_rewrite(self, op, rewriter):
            a = op.attrs()
            rewriter.replace_op(op, [rewriter.full(a["shape"], a["value"], a["dtype"])])
            return True
    with pytest.raises(RewriteError, match=r"Fold \(12 times\); the very last by Fold at pd_op.full -> .* That one "
                                           "left the program as it was: Fold reports a change that is none"):
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


def test_b10_a_rule_that_changes_and_does_not_say_so_is_flagged_in_debug_mode():
    class Secretive(RewritePattern):
        roots = ("pd_op.scale",)

        def match_and_rewrite(self, op, rewriter):
            op.set_attr("bias", 1.0)
            return False

    changed = program(lambda x: x.scale(2.0), (2,))
    with pytest.raises(RewriteError, match="pattern Secretive: expected no change, since it returned False, got "
                                           "another pd_op.scale; return True after a change"):
        apply_patterns_greedily(changed, [Secretive()], debug=True)


def test_what_a_rule_raises_says_which_rule_and_where():
    class Broken(RewritePattern):
        roots = ("pd_op.exp",)

        def match_and_rewrite(self, op, rewriter):
            raise KeyError("axis")

    with pytest.raises(KeyError) as error:
        apply_patterns_greedily(program(lambda x: x.exp(), (2,)), [Broken()])
    note, = error.value.__notes__
    assert note.startswith("in pattern Broken at pd_op.exp -> tensor<2xf32> (from ") and "test_pattern.py" in note


@pytest.mark.parametrize("roots, says", [("pd_op.exp", "got 'pd_op.exp'; write roots = .'pd_op.exp',."),
                                         (("exp",), "got .'exp',.; write roots = .'pd_op.exp',.")])
def test_roots_that_match_nothing_are_refused(roots, says):
    pattern = type("Mine", (RewritePattern,), {"roots": roots})()
    with pytest.raises(TypeError, match="pattern Mine: expected roots to be names of operations with their dialect, "
                                        + says):
        apply_patterns_greedily(program(lambda x: x, (2,)), [pattern])


def test_what_is_no_pattern_is_refused():
    with pytest.raises(TypeError, match="expected rules of drr, or objects of classes of RewritePattern, got "
                                        "TwiceIsSum; write TwiceIsSum.."):
        apply_patterns_greedily(program(lambda x: x, (2,)), [TwiceIsSum])
    with pytest.raises(TypeError, match="got 3$"):
        apply_patterns_greedily(program(lambda x: x, (2,)), [3])


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


def test_b10_a_circle_of_three_is_told_from_one_that_grows():
    class Turn(RewritePattern):
        """exp -> tanh -> abs -> exp"""
        roots = ("pd_op.exp", "pd_op.tanh", "pd_op.abs")

        def match_and_rewrite(self, op, rewriter):
            after = {"exp": "tanh", "tanh": "abs", "abs": "exp"}[op.row.name]
            rewriter.replace_op_with(op, ROWS[after], tensor_operands(op))
            return True

    class Grow(RewritePattern):
        """exp(x) -> exp(exp(x))"""
        roots = ("pd_op.exp",)

        def match_and_rewrite(self, op, rewriter):
            y, = rewriter.call(ROWS["exp"], tensor_operands(op), {})
            op.operand(0).set_source(y)
            rewriter.modified(op)
            return True
    with pytest.raises(RewriteError, match="After every 3 of them the program is what it was"):
        apply_patterns_greedily(program(lambda x: x.exp(), (2,)), [Turn()])
    with pytest.raises(RewriteError) as error:
        apply_patterns_greedily(program(lambda x: x.exp(), (2,)), [Grow()], max_rewrites=30)
    assert "got 31 rewrites" in str(error.value) and "the program" not in str(error.value).partition("Of the last")[2]


def test_b10_the_manager_names_the_pass_whose_rules_do_not_end():
    @drr()
    class Swap:
        def source(a, b):
            return a + b

        def result(a, b):
            return b + a
    manager = PassManager()
    manager.add_pass("dead_code_elimination_pass")
    manager.register_pass("swap_pass", Swap)
    with pytest.raises(RewriteError, match="rules that come to an end") as error:
        manager.run(program(lambda x, y: x + y, (2,), (2,)))
    assert error.value.__notes__ == ["in swap_pass, pass 2 of 2"]


def test_b10_a_rule_that_ends_may_need_many_rewrites():
    """The limit is for each operation ten, so long chains of rewrites that end are no error."""
    def chain(x):
        for _ in range(50):
            x = x.scale(2.0)
        return x

    class Countdown(RewritePattern):
        """2 x -> 1.9 x -> ... -> x"""
        roots = ("pd_op.scale",)

        def match_and_rewrite(self, op, rewriter):
            tenths = round(op_attrs(op)["scale"] * 10)
            if tenths <= 12:
                return False
            rewriter.replace_op_with(op, ROWS["scale"], tensor_operands(op), {"scale": (tenths - 1) / 10})
            return True
    changed = program(chain, (2,))
    assert apply_patterns_greedily(changed, [Countdown()]) == 50 * 8
    with pytest.raises(RewriteError, match="more than max_rewrites=399"):
        apply_patterns_greedily(program(chain, (2,)), [Countdown()], max_rewrites=399)


# ------------------------------------------------------------------------------------------------ order and work
def test_the_largest_benefit_wins_among_patterns_of_any_root():
    tried = []

    def pattern(name, gain, at):
        class Note(RewritePattern):
            benefit, roots = gain, at

            def match_and_rewrite(self, op, rewriter):
                if op.name() == "pd_op.exp":
                    tried.append(name)
                return False
        return Note()
    patterns = [pattern("one", 1, None), pattern("five", 5, ("pd_op.exp", "pd_op.tanh")), pattern("two", 2, None),
                pattern("other", 9, ("pd_op.tanh",)), pattern("also five", 5, None)]
    assert apply_patterns_greedily(program(lambda x: x.exp(), (2,)), patterns) == 0
    assert tried == ["five", "also five", "two", "one"]         # of equals, the one that stands first


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_looks_at_each_operation_a_bounded_number_of_times(shape):
    """Counted, not timed: a value that everything reads must not be looked at again with all its readers whenever one
    of these goes."""
    class Counting(TwiceIsSum):
        looks = 0

        def match_and_rewrite(self, op, rewriter):
            Counting.looks += 1
            return super().match_and_rewrite(op, rewriter)

    def chain(x, n):
        for _ in range(n):
            x = x.scale(2.0)
        return x

    def star(x, n):
        return [x.scale(2.0) for _ in range(n)]
    looks = []
    for n in (50, 400):
        Counting.looks = 0
        assert apply_patterns_greedily(program(partial({"chain": chain, "star": star}[shape], n=n), (2,)),
                                       [Counting()]) == n
        looks.append(Counting.looks / n)
    assert looks[1] <= looks[0] + 0.5 and looks[1] < 12


# ------------------------------------------------------------------------------------------------ looking on
def test_a_limit_ends_rewriting_as_if_nothing_matched():
    def f(x):
        for _ in range(5):
            x = x.scale(2.0)
        return x
    for limit in range(7):
        changed = program(f, (2,))
        with watching_rewrites(limit=limit, debug=True) as watch:
            assert apply_patterns_greedily(changed, [TwiceIsSum()]) == min(limit, 5) == watch.rewrites
        assert names(changed).count("add") == min(limit, 5)
    with watching_rewrites(limit=3):
        assert sum(apply_patterns_greedily(program(f, (2,)), [TwiceIsSum()]) for _ in range(2)) == 3    # in all
    assert apply_patterns_greedily(program(f, (2,)), [TwiceIsSum()]) == 5


def test_watching_from_around_watches_what_is_inside_too():
    with watching_rewrites(debug=True), watching_rewrites(), pytest.raises(VerifyError):
        apply_patterns_greedily(program(lambda x: x.exp(), (2,)), [Broken()])


class Broken(RewritePattern):
    """Leaves the program broken."""

    roots = ("pd_op.exp",)

    def match_and_rewrite(self, op, rewriter):
        rewriter.move_op_before(op, op.parent.front())
        return True
