"""What the driver looks at again when an operation goes."""

from minipd.framework.row import ROWS
from minipd.ir.program import Program
from minipd.passes.pattern import PatternRewriter, RewritePattern, Touched, apply_patterns_greedily
from minipd.passes.show import program_of
from minipd.static.nn import cond, while_loop
from tools.course.checking import check


def named(program, name):
    return next(op for op in program.walk() if op.name() == f"pd_op.{name}")


def touched(program, op):
    """The names of what is looked at again if `op` goes, without `op`."""
    listener = Touched()
    listener.erased(op)
    return sorted({each.name().partition(".")[2] for each in listener.ops if each is not op})


def looks_at(wanted, f, name, on):
    program = program_of(f, "f32[2]")
    check(wanted, lambda: touched(program, named(program, name)), f"what is looked at again when {name} goes, in {on}")


def test_what_makes_the_operand():
    looks_at(["exp"], lambda x: x.exp().tanh(), "tanh", "tanh(exp(x))")


def test_the_neighbours():
    """abs may be the only reader of exp(x) now, so that a rule matches that did not."""
    def f(x):
        e = x.exp()
        return e.tanh(), e.abs()
    looks_at(["abs", "exp"], f, "tanh", "e = exp(x); return tanh(e), abs(e)")


def test_two_operands():
    looks_at(["exp", "square"], lambda x: x.exp() + x.square(), "add", "exp(x) + square(x)")


def test_inside_of_a_branch():
    """The branch reads e; what is in the branch goes with it."""
    def f(x):
        e = x.exp()
        return cond(x.sum() > 0.0, lambda: e.tanh(), lambda: x), e.abs()
    program = program_of(f, "f32[2]")
    got = touched(program, named(program, "if"))
    for name, why in (("exp", "which tanh, in the branch, reads"), ("abs", "the other reader of what tanh reads"),
                      ("greater_than", "the condition")):
        check(True, name in got, f"whether {name} is looked at again, {why}, when the if goes: e = exp(x); "
              "return cond(sum(x) > 0, tanh(e), x), abs(e)")


def test_another_result_of_what_makes_the_operand():
    program = Program()
    build = PatternRewriter(program)
    values = build.data("x", (2, 3), "float64"), build.data("label", (2, 1), "int64")
    softmax, loss = build.call(ROWS["cross_entropy_with_softmax"], values, {"axis": 1, "ignore_index": -100})
    build.call(ROWS["tanh"], (softmax,), {})
    build.call(ROWS["abs"], (loss,), {})
    check(["abs", "cross_entropy_with_softmax"], lambda: touched(program, named(program, "tanh")),
          "what is looked at again when tanh goes, in s, l = cross_entropy_with_softmax(x, label); tanh(s); abs(l)")


def test_a_block_argument():
    """Of a loop's variable, nothing in the program is the maker."""
    program = program_of(lambda x: while_loop(lambda y: y.sum() < 9.0, lambda y: [y.tanh()], [x])[0], "f32[2]")
    check([], lambda: [n for n in touched(program, named(program, "tanh")) if n == "data"],
          "whether `data` is looked at again when tanh goes, which reads the variable of a loop")


def test_a_value_that_everybody_reads():
    def f(x):
        e = x.exp()
        return [e.tanh(), *(e.abs() for _ in range(100))]
    looks_at(["exp"], f, "tanh", "e = exp(x), which tanh and 100 times abs read: too many to look at at each rewrite")


# ---------------------------------------------------------------------------------------------- what it is good for
class Unread(RewritePattern):
    """A tanh that nobody reads goes.  Counts how often it is asked."""

    roots = ("pd_op.tanh",)
    asked = 0

    def match_and_rewrite(self, op, rewriter):
        self.asked += 1
        if not op.result(0).use_empty():
            return False
        rewriter.erase_op(op)
        return True


class Lonely(RewritePattern):
    """abs(exp(x)) becomes exp(x) if nobody else reads exp(x)."""

    roots = ("pd_op.abs",)
    asked = 0

    def match_and_rewrite(self, op, rewriter):
        self.asked += 1
        source = op.operand_source(0)
        if source.get_defining_op().name() != "pd_op.exp" or not source.has_one_use():
            return False
        rewriter.replace_op(op, [source])
        return True


def test_a_chain_goes_in_one_sweep():
    """The last of 40 goes first, then the one before it is the last: about two questions for each, not 40."""
    def f(x):
        y = x
        for _ in range(40):
            y = y.tanh()
        return x.exp()
    program, rule = program_of(f, "f32[2]"), Unread()
    check(40, lambda: apply_patterns_greedily(program, [rule]), "how many of a chain of 40 tanh that nobody reads go")
    check(True, rule.asked <= 120, f"whether at most 120 questions are asked for a chain of 40 ({rule.asked} were)")


def test_the_neighbour_is_asked_again_at_once():
    """e = exp(x); abs(e); tanh(e), tanh unread: abs is asked, then tanh goes, then abs is asked again, and fires."""
    def f(x):
        e = x.exp()
        y = e.abs()
        e.tanh()
        return y
    seen = []

    class Seen(Lonely):
        def match_and_rewrite(self, op, rewriter):
            seen.append(rewriter.sweep)
            return super().match_and_rewrite(op, rewriter)
    fired = apply_patterns_greedily(program_of(f, "f32[2]"), [Seen(), Unread()])
    check((2, [1, 1]), (fired, seen[:2]), "(rewrites, in which sweep the rule of abs is asked) in "
          "e = exp(x); y = abs(e); tanh(e), which nobody reads; return y")
