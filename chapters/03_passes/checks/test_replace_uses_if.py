"""Some uses of a value become uses of another."""

from minipd.framework.row import ROWS
from minipd.ir.program import Program
from minipd.ir.verify import verify
from minipd.passes.pattern import Listener, PatternRewriter
from minipd.passes.show import brief, program_of
from minipd.static.nn import cond
from tools.course.checking import check


class Log(Listener):
    """Notes who uses the old value when it is told."""

    def __init__(self):
        self.told = []

    def replaced(self, old, new):
        self.told.append([op.name().partition(".")[2] for op in old.all_used_ops()])


def program(*readers):
    """(program, old, new): x, old = exp(x), new = tanh(x), and readers of old, by operator, or "both": old * old."""
    made = Program()
    build = PatternRewriter(made)
    x = build.data("x", (2,), "float32")
    old, = build.call(ROWS["exp"], (x,), {})
    new, = build.call(ROWS["tanh"], (x,), {})
    for i, reader in enumerate(readers):
        row, operands = ("multiply", (old, old)) if reader == "both" else (reader, (old,))
        result, = build.call(ROWS[row], operands, {})
        build.output(f"y{i}", result)
    return made, old, new


def replaced(made, old, new, condition):
    """(what it returns, what listeners were told, how many changes were counted, the program then)."""
    log = Log()
    rewriter = PatternRewriter(made, [log])
    number = rewriter.replace_uses_if(old, new, condition)
    verify(made)
    return number, log.told, rewriter.changes, brief(made)


def text(*lines):
    return "\n".join(["a = exp(x)", "b = tanh(x)", *lines])


def test_one_of_two():
    made, old, new = program("abs", "square")
    want = 1, [["abs", "square"]], 1, text("c = abs(a)", "d = square(b)", "return c, d")
    check(want, lambda: replaced(made, old, new, lambda use: use.owner().name() == "pd_op.square"),
          "(number, whom listeners see using `old` when they are told, changes, program) of c = abs(a); d = square(a), "
          "where the uses of a by square become uses of b")


def test_none():
    made, old, new = program("abs", "square")
    want = 0, [], 0, text("c = abs(a)", "d = square(a)", "return c, d")
    check(want, lambda: replaced(made, old, new, lambda use: False),
          "(number, whom listeners see using `old` when they are told, changes, program) where no use becomes another")


def test_all():
    made, old, new = program("abs", "square", "abs", "square")
    want = 4, [["abs", "square", "abs", "square"]], 1, text(
        "c = abs(b)", "d = square(b)", "e = abs(b)", "f = square(b)", "return c, d, e, f")
    check(want, lambda: replaced(made, old, new, lambda use: True),
          "(number, whom listeners see using `old` when they are told, changes, program) where "
          "all four uses become others")


def test_one_operand_of_two():
    for index, line in ((0, "c = multiply(b, a)"), (1, "c = multiply(a, b)")):
        made, old, new = program("both")
        got = lambda m=made, o=old, n=new, i=index: replaced(m, o, n, lambda use: use.index() == i)  # noqa: E731
        check((1, text(line, "return c")), lambda got=got: (lambda r: (r[0], r[3]))(got()),
              f"(number, program) of c = multiply(a, a), where operand {index} becomes b")


def test_in_a_branch():
    def f(x):
        y, z = x.exp(), x.tanh()
        return cond(x.sum() > 0.0, lambda: y.abs() + z, lambda: x), y.square()
    made = program_of(f, "f32[2]")
    old, new = (next(op for op in made.walk() if op.name() == f"pd_op.{name}").result(0) for name in ("exp", "tanh"))
    number = PatternRewriter(made).replace_uses_if(old, new, lambda use: use.owner().parent is not made.global_block())
    verify(made)
    check(1, number, "how many uses of y = exp(x) there are in the branches of cond(..., abs(y) + z, x)")
    check(True, "abs(b)" in brief(made) and "square(a)" in brief(made),
          "whether abs, in the branch, reads z, and square, outside, still y")
