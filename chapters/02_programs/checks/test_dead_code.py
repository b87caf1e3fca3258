"""Oracle: which operations must be left, told by hand."""

import numpy as np

import minipd  # noqa: F401  (fills the operator table)
from minipd.executor import Executor, Scope
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.builder import Builder
from minipd.ir.dce import remove_dead_ops
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.static.nn import cond
from tools.course.checking import check

X = Meta((2,), np.dtype("float32"))


def left(f, *specs):
    """What `remove_dead_ops` says, and the operations that it leaves of the program of f."""
    def run():
        program = trace(f, *specs).program
        gone = remove_dead_ops(program)
        return gone, [op.name().partition(".")[2] for op in verify(program).walk()]
    return run


def test_nothing_is_dead():
    check((0, ["data", "exp", "shadow_output"]), left(lambda x: x.exp(), X),
          "how many are gone, and what is left, of exp(x)")


def test_one_operation():
    def f(x):
        x.tanh()
        return x.exp()
    check((1, ["data", "exp", "shadow_output"]), left(f, X), "tanh(x), whose result nobody reads; return exp(x)")


def test_a_chain():
    def f(x):
        x.tanh().sqrt().abs()
        return x.exp()
    check((3, ["data", "exp", "shadow_output"]), left(f, X), "abs(sqrt(tanh(x))), which nobody reads; return exp(x)")


def test_what_the_dead_share_with_the_living_stays():
    def f(x):
        h = x.exp()
        h.tanh()
        return h
    check((1, ["data", "exp", "shadow_output"]), left(f, X), "h = exp(x); tanh(h), which nobody reads; return h")


def test_inputs_stay():
    check((1, ["data", "data", "exp", "shadow_output"]), left(lambda x, y: (x.exp(), y.tanh())[0], X, X),
          "f(x, y) = exp(x), with a dead tanh(y): y stays, for it is an input of the program")


def test_writes_of_state_stay():
    def f():
        program = Program()
        build = Builder(program.global_block())
        w = build.parameter("w", (2,), "float32")
        new, = build.call(ROWS["exp"], (w,), {})
        build.call(ROWS["tanh"], (w,), {})
        build.set_parameter("w", new)
        gone = remove_dead_ops(program)
        scope = Scope(w=np.zeros(2, "float32"))
        Executor(program).run({}, scope)
        return gone, scope["w"].tolist()
    check((1, [1.0, 1.0]), f, "w = exp(w) as program state, and a dead tanh(w): how many are gone, and w after a run")


def test_in_branches():
    def f(x):
        def true():
            x.exp().tanh()
            return x
        return cond(x.sum() > 0.0, true, lambda: -x)
    gone, names = left(f, X)()
    check((2, False, False), (gone, "exp" in names, "tanh" in names),
          "how many are gone, and whether exp and tanh are left, of a branch with a dead tanh(exp(x))")


def test_what_only_a_dead_part_of_a_branch_read():
    def f(x):
        h = x.exp()

        def true():
            h.tanh()
            return x
        return cond(x.sum() > 0.0, true, lambda: -x)
    gone, names = left(f, X)()
    check((2, False), (gone, "exp" in names), "h = exp(x) outside, a dead tanh(h) in a branch: how many are gone, and "
                                              "whether exp is left")


def test_a_whole_branch():
    def f(x):
        cond(x.sum() > 0.0, lambda: x.exp(), lambda: -x)
        return x * x
    program = trace(f, X).program
    before = program.num_ops()
    gone = remove_dead_ops(program)
    check(["data", "multiply", "shadow_output"], [op.name().partition(".")[2] for op in program.walk()],
          "what is left where a whole cond is dead")
    check(before - 3, gone, "the number that is returned counts what was in the branches, too")


def test_a_long_program():
    def f(x):
        y = x
        for i in range(900):
            y = y + 1.0
            if i % 3 == 0:
                y.tanh()
        return y
    program = trace(f, X).program
    check(300, lambda: remove_dead_ops(program), "900 additions with a dead tanh after every third")
    check(0, lambda: remove_dead_ops(program), "the same program again")
    out = Executor(program).run({"input_0": np.zeros(2, "float32")})
    check([900.0, 900.0], out["output_0"], "x + 1 + 1 + ... (900 times) at x = 0, after dead code was removed")
