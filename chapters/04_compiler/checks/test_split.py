"""A loop cut in several, with a predicate where the extents don't come out even."""

import itertools

import numpy as np

from minipd.cinn.ir.ast import (
    INT64,
    Alloc,
    Const,
    Dim,
    For,
    Function,
    IterVar,
    Load,
    Param,
    Reduce,
    ScheduleBlock,
    Seq,
    Store,
    Var,
)
from minipd.cinn.ir.interpreter import interpret
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.verify import verify
from minipd.cinn.ir.walk import statements
from minipd.cinn.optim import finalize
from minipd.cinn.schedule import IRSchedule
from tools.course.checking import check

F64 = np.dtype("float64")
VI, VJ = Var("vi"), Var("vj")


def copying(n):
    """for (i, 0, n) { y[i] = x[i] }; n: a number, or an extent."""
    n = Const(n, INT64) if isinstance(n, int) else n
    block = ScheduleBlock("y", (IterVar("vi", n),), (Var("i"),), Store("y", (VI,), Load("x", (VI,), F64)))
    return Function("copy", (Param("x", F64, 1), Param("y", F64, 1, True)), For("i", n, block))


def summing(rows, columns):
    """y[i] = sum of x[i, j] over j, by way of s."""
    n, m = Const(rows, INT64), Const(columns, INT64)
    zero = ScheduleBlock("s__reduce_init", (IterVar("vi", n),), (Var("i_0"),), Store("s", (VI,), Const(0.0, F64)))
    add = ScheduleBlock("s", (IterVar("vi", n), IterVar("vj", m, "R")), (Var("i"), Var("j")),
                        Reduce("s", (VI,), "add", Load("x", (VI, VJ), F64)))
    last = ScheduleBlock("y", (IterVar("vi", n),), (Var("k"),), Store("y", (VI,), Load("s", (VI,), F64)))
    body = Seq((Alloc("s", (n,), F64), For("i_0", n, zero), For("i", n, For("j", m, add)), For("k", n, last)))
    return Function("sums", (Param("x", F64, 2), Param("y", F64, 1, True)), body)


def split(function, loop, factors):
    s = IRSchedule(function)
    names = s.split(loop, factors)
    verify(s.function)
    return s, names


def block_of(s, name):
    return next(b for b in statements(s.function.body) if isinstance(b, ScheduleBlock) and b.name == name)


def facts(function, loop, factors, block):
    """The new loops from outside in, what the block's first iter var is, and where the block runs."""
    s, names = split(function, loop, factors)
    loops = {x.var: text(x.extent) for x in statements(s.function.body) if isinstance(x, For)}
    found = block_of(s, block)
    return {"returned": list(names), "loops": [f"{n} < {loops[n]}" for n in s.get_loops(block)],
            "position": text(found.iter_values[-1]), "where": text(found.predicate) if found.predicate else ""}


def test_six_in_two_times_three():
    check({"returned": ["i_0", "i_1"], "loops": ["i_0 < 2", "i_1 < 3"], "position": "i_0 * 3 + i_1", "where": ""},
          lambda: facts(copying(6), "i", [2, 3], "y"), "split('i', [2, 3]) of for (i, 0, 6) { y[i] = x[i] }")


def test_one_is_worked_out():
    check({"returned": ["i_0", "i_1"], "loops": ["i_0 < 3", "i_1 < 2"], "position": "i_0 * 2 + i_1", "where": ""},
          lambda: facts(copying(6), "i", [-1, 2], "y"), "split('i', [-1, 2]) of for (i, 0, 6) { y[i] = x[i] }")


def test_a_remainder():
    check({"returned": ["i_0", "i_1"], "loops": ["i_0 < 2", "i_1 < 4"], "position": "i_0 * 4 + i_1",
           "where": "i_0 * 4 + i_1 < 6"},
          lambda: facts(copying(6), "i", [-1, 4], "y"), "split('i', [-1, 4]) of for (i, 0, 6) { y[i] = x[i] }")


def run(function, x, shape):
    out = np.full(shape, np.nan)
    interpret(function, [x], [out])
    return out


def same(function, loop, factors, x, want, on):
    """The result of the blocks, and of the loops that come of them."""
    def got():
        s, _ = split(function, loop, factors)
        blocks = run(s.function, x, want.shape)
        check(blocks, run(finalize(s.function), x, want.shape), "the blocks, and the loops that come of them")
        return blocks
    check(want, got, on)


def test_every_element_once():
    x = np.arange(6.0)
    for factors in ([2, 3], [-1, 4], [4, 2], [-1, 6], [-1, 7], [1, 6]):
        same(copying(6), "i", factors, x, x, f"y of copying [0, 1, 2, 3, 4, 5], with split('i', {factors})")


def test_in_three():
    x = np.arange(30.0)
    for factors in ([2, 3, 5], [-1, 3, 5], [2, -1, 4], [3, 3, -1], [-1, 1, 8], [2, 4, 5]):
        same(copying(30), "i", factors, x, x, f"y of copying arange(30), with split('i', {factors})")


def test_what_is_folded():
    x = np.array([[1.0, 2, 3, 4, 5], [10, 20, 30, 40, 50]])
    for factors in ([-1, 2], [5, 1], [-1, 3], [-1, 8]):
        same(summing(2, 5), "j", factors, x, np.array([15.0, 150.0]),
             f"the sums of the rows of [[1, 2, 3, 4, 5], [10, 20, 30, 40, 50]], with split('j', {factors})")


def test_a_size_that_only_a_call_tells():
    function = copying(Dim("x", 0))
    for n in (0, 1, 3, 4, 5, 8):
        x = np.arange(float(n))
        same(function, "i", [-1, 4], x, x, f"y of copying arange({n}), with split('i', [-1, 4]) of a loop up to "
             "x.shape[0]")


def test_twice():
    """A predicate that is there stays."""
    def got():
        s, (outer, inner) = split(copying(23), "i", [-1, 6])
        s.split(outer, [-1, 3])
        s.split(inner, [-1, 4])
        verify(s.function)
        return run(s.function, np.arange(23.0), (23,))
    check(np.arange(23.0), got, "y of copying arange(23), with splits by 6, of the outer loop by 3, of the inner one "
          "by 4")


def test_names_are_new():
    """There is a loop i_0 already."""
    def got():
        s, names = split(summing(4, 5), "i", [2, 2])
        loops = [x.var for x in statements(s.function.body) if isinstance(x, For)]
        return len(set(loops)) == len(loops), names == s.get_loops("s")[:2]
    check((True, True), got, "whether all loops have names of their own, and the new ones are returned, where there is "
          "a loop i_0 already")


def test_random():
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(1, 40))
        factors = [int(f) for f in rng.integers(1, 6, int(rng.integers(1, 4)))]
        factors.insert(int(rng.integers(0, len(factors) + 1)), -1)
        x = rng.standard_normal(n)
        same(copying(n), "i", factors, x, x, f"y of copying {n} numbers, with split('i', {factors})")


def test_marks_stay():
    def got():
        s = IRSchedule(copying(6))
        s.annotate("i", "tile", 2)
        outer, inner = s.split("i", [2, 3])
        marks = {x.var: dict(x.annotations) for x in statements(s.function.body) if isinstance(x, For)}
        return marks[outer], marks[inner]
    check(({"tile": 2}, {}), got, "what is marked on the outer and the inner loop of a loop with the mark tile = 2")


def test_all_orders():
    for a, b in itertools.product(range(1, 8), repeat=2):
        x = np.arange(float(a * b))
        same(copying(a * b), "i", [a, b], x, x, f"y of copying {a * b} numbers, with split('i', [{a}, {b}])")
