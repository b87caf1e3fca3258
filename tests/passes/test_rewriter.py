"""The rewriter: insertion points, uses, and what listeners are told."""

import numpy as np
import pytest
from hypothesis import given, settings

from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir.operation import walk_inside
from minipd.ir.schema import tensor_operands
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.passes import Listener, PatternRewriter, RewritePattern, apply_patterns_greedily, create_pass
from minipd.passes.show import brief
from minipd.static.nn import cond
from tests.ir.random_programs import programs
from tests.passes.meaning import observed


def program(f, *shapes):
    return trace(f, *(Meta(s, np.dtype("float32")) for s in shapes)).program


def named(program, name):
    return next(op for op in program.walk() if op.name() == f"pd_op.{name}")


def rewriter_at(program, name, *listeners):
    rewriter = PatternRewriter(program, listeners)
    rewriter.start(named(program, name))
    return rewriter


class Mirror(Listener):
    """Knows which operations there are, and who uses what, from what it is told alone."""

    def __init__(self, program):
        self.program = program
        self.ops = set(program.walk())
        self.told = []

    def inserted(self, op):
        assert op.parent is not None and op not in self.ops
        self.ops |= set(walk_inside(op))
        self.told.append(("inserted", op.name()))

    def erased(self, op):
        assert op.parent is not None and all(r.use_empty() for r in op.results())      # it is still there
        self.ops -= set(walk_inside(op))
        self.told.append(("erased", op.name()))

    def replaced(self, old, new):
        assert old is not new and old.type() == new.type()
        self.told.append(("replaced", old.get_defining_op().name()))

    def modified(self, op):
        self.told.append(("modified", op.name()))

    def applied(self, rule, at):
        assert self.ops == set(self.program.walk())
        self.told.append((rule, at.partition(" ")[0]))


# ------------------------------------------------------------------------------------------------ listeners
@given(programs(symbolic=False).map(observed))
@settings(max_examples=40)
def test_a_listener_can_follow_all_that_happens(program):
    mirror = Mirror(program)
    rules = create_pass("identity_op_clean_pass").rules
    rewrites = apply_patterns_greedily(program, [*rules, SplitScale()], listeners=[mirror], debug=True)
    assert mirror.ops == set(program.walk())
    assert sum(what in ("RemoveIdentity", "SplitScale") for what, _ in mirror.told) == rewrites


class SplitScale(RewritePattern):
    """a x + b  ->  (a x) + b"""

    roots = ("pd_op.scale",)

    def match_and_rewrite(self, op, rewriter):
        attrs = op.attrs()
        if attrs["bias"] == 0 or not attrs["bias_after_scale"] or attrs["bias"] != attrs["bias"]:
            return False
        x, = tensor_operands(op)
        with rewriter.insertion_guard():
            y, = rewriter.call(ROWS["assign"], (x,), {})
        op.operand(0).set_source(y)
        op.set_attr("bias", 0.0)
        rewriter.modified(op)
        return True


def test_what_is_told_and_in_which_order():
    changed = program(lambda x: x.scale(1.0).exp(), (2,))
    mirror = Mirror(changed)
    apply_patterns_greedily(changed, create_pass("identity_op_clean_pass").rules, listeners=[mirror])
    assert mirror.told == [("replaced", "pd_op.scale"), ("erased", "pd_op.scale"), ("erased", "pd_op.full"),
                           ("RemoveIdentity", "pd_op.scale")]


# ------------------------------------------------------------------------------------------------ replacing
def test_an_operation_is_replaced_by_a_call_that_takes_over_its_facts():
    changed = program(lambda x: x.exp().tanh(), (2,))
    op = named(changed, "exp")
    line, op.attributes["chunk_id"] = op.attributes["op_callstack"], op.attributes["stop_gradient"].items[0]
    mirror = Mirror(changed)
    rewriter = rewriter_at(changed, "exp", mirror)
    y, = rewriter.replace_op_with(op, ROWS["scale"], tensor_operands(op), {"scale": 3.0})
    new = y.get_defining_op()
    assert brief(changed) == "a = scale(input_0, scale=3.0)\nb = tanh(a)\nreturn b"
    assert new.attributes["op_callstack"] is line and "chunk_id" in new.attributes and op in rewriter.erased
    assert mirror.told == [("inserted", "pd_op.full"), ("inserted", "pd_op.scale"), ("replaced", "pd_op.exp"),
                           ("erased", "pd_op.exp")]
    rewriter.call(ROWS["abs"], (y,), {})            # the place of the operation that is gone is behind the new one
    assert brief(verify(changed)) == "a = scale(input_0, scale=3.0)\nb = abs(a)\nc = tanh(a)\nreturn c"


def test_some_uses_are_replaced():
    changed = program(lambda x: (x.exp(), x.exp() + x, x.tanh()), (2,))
    mirror = Mirror(changed)
    rewriter = rewriter_at(changed, "exp", mirror)
    x, y = named(changed, "exp").operand_source(0), named(changed, "exp").result(0)
    assert rewriter.replace_uses_if(x, y, lambda use: use.owner().name() in ("pd_op.add", "pd_op.tanh")) == 2
    assert brief(verify(changed)) == "a = exp(input_0)\nb = exp(input_0)\nc = add(b, a)\nd = tanh(a)\nreturn a, c, d"
    assert rewriter.changes == 1 and mirror.told == [("replaced", "pd_op.data")]
    assert rewriter.replace_uses_if(x, y, lambda use: False) == 0 and rewriter.changes == 1


def test_what_is_still_used_is_not_erased_and_nobody_is_told():
    changed = program(lambda x: x.exp().tanh(), (2,))
    mirror = Mirror(changed)
    rewriter = rewriter_at(changed, "exp", mirror)
    with pytest.raises(ValueError, match="erase_op: expected an operation that nobody uses, got pd_op.exp, whose "
                                         "result tensor<2xf32> goes into pd_op.tanh; replace_all_uses first"):
        rewriter.erase_op(named(changed, "exp"))
    assert mirror.told == [] and rewriter.changes == 0


def test_constants_and_bundles_go_with_their_last_reader():
    import minipd as paddle
    changed = program(lambda x: [paddle.concat([x, x], 0), x][1].scale(1.0).sum(0), (2, 3))
    mirror = Mirror(changed)
    rewriter = rewriter_at(changed, "concat", mirror)
    rewriter.erase_op(named(changed, "concat"))
    assert mirror.told == [("erased", f"{name}") for name in ("pd_op.concat", "builtin.combine", "pd_op.full")]
    assert {op.name() for op in rewriter.erased} == {"pd_op.concat", "builtin.combine", "pd_op.full"}
    assert "concat" not in brief(verify(changed))


def test_an_operation_with_regions_goes_whole():
    def f(x):
        cond(x.sum() > 0.0, lambda: x.exp(), lambda: x.tanh())
        return x
    changed = program(f, (2,))
    mirror = Mirror(changed)
    rewriter = rewriter_at(changed, "if", mirror)
    rewriter.erase_op(named(changed, "if"))
    assert {"pd_op.exp", "pd_op.tanh", "cf.yield"} <= {op.name() for op in rewriter.erased}
    assert mirror.ops == set(changed.walk())


# ------------------------------------------------------------------------------------------------ places
def test_insertion_points():
    changed = program(lambda x: x.exp().tanh(), (2,))
    rewriter = rewriter_at(changed, "tanh")
    x = named(changed, "exp").operand_source(0)
    rewriter.call(ROWS["abs"], (x,), {})                                # before what is rewritten
    rewriter.set_insertion_point_after(named(changed, "tanh"))
    rewriter.call(ROWS["square"], (x,), {})
    with rewriter.insertion_guard():
        rewriter.set_insertion_point_to_start(changed.global_block())
        rewriter.full((), 1.0, "float32")
    rewriter.call(ROWS["sqrt"], (x,), {})
    assert [op.name()[6:] for op in changed.global_block()][:-1] == ["full", "data", "exp", "abs", "tanh", "square",
                                                                     "sqrt"]


def test_a_place_before_what_is_erased_is_before_what_follows():
    changed = program(lambda x: [x.exp(), x.tanh()][1], (2,))
    rewriter = rewriter_at(changed, "exp")
    x = named(changed, "exp").operand_source(0)
    rewriter.erase_op(named(changed, "exp"))
    rewriter.call(ROWS["abs"], (x,), {})
    assert [op.name()[6:] for op in changed.global_block()][:-1] == ["data", "abs", "tanh"]


def test_moving_is_a_change_that_is_told():
    changed = program(lambda x: [x.exp(), x.tanh()][1], (2,))
    mirror = Mirror(changed)
    rewriter = rewriter_at(changed, "exp", mirror)
    rewriter.move_op_before(named(changed, "tanh"), named(changed, "exp"))
    assert mirror.told == [("modified", "pd_op.tanh")] and rewriter.changes == 1
    assert brief(verify(changed)) == "a = tanh(input_0)\nb = exp(input_0)\nreturn a"
