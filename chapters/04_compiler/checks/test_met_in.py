"""Where the iterations of a loop meet."""

import itertools

import numpy as np

from minipd.cinn.ir.ast import (
    INT64,
    Alloc,
    Const,
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
from minipd.cinn.ir.build import binary
from minipd.cinn.ir.printer import text
from minipd.cinn.schedule.dependences import met_in
from minipd.cinn.schedule.nests import Nests, inside
from tools.course.checking import check

F64 = np.dtype("float64")
FOUR, ZERO = Const(4, INT64), Const(0, INT64)
I, J = Var("vi"), Var("vj")


def load(buffer, *index):
    return Load(buffer, index, F64)


def block(name, body, over="i"):
    """A block in loops over these letters: vi is i, vj is j."""
    iter_vars = tuple(IterVar(f"v{c}", FOUR) for c in over)
    return ScheduleBlock(name, iter_vars, tuple(Var(c if c == "i" else f"{c}_{name}") for c in over), body)


def row(name, body):
    """A block in a loop over j of its own."""
    return For(f"j_{name}", FOUR, block(name, body, "ij"))


def function(*stmts, extent=FOUR):
    """for (i, 0, 4) { stmts }: x and z are inputs, y and t are written; with 2 axes as with 1."""
    body = For("i", extent, Seq(stmts) if len(stmts) > 1 else stmts[0])
    params = (Param("x", F64, 2), Param("y", F64, 2, True))
    return Function("f", params, Seq((Alloc("t", (FOUR, FOUR), F64), Alloc("s", (FOUR,), F64), body)))


def met(f, reduces):
    nests = Nests(f)
    loop = nests.loop("i", "")
    return {a.buffer for a, _ in met_in(nests, "i", [b.name for b in inside(loop)], reduces)}


def meets(want, *stmts, reduces=True, extent=FOUR):
    f = function(*stmts, extent=extent)
    said = "" if reduces else "; that two iterations add to one element does not count"
    check(set(want), lambda: met(f, reduces),
          f"the loop over i of\n{text(f)}in which buffers its iterations meet{said}")


def test_each_its_own_element():
    meets([], block("a", Store("y", (I,), load("x", I))))


def test_all_write_one_element():
    meets("y", block("a", Store("y", (ZERO,), load("x", I))))


def test_reads_what_the_one_before_wrote():
    meets("y", block("a", Store("y", (I,), load("y", binary("sub", I, 1)))))


def test_reads_its_own_element_again():
    meets([], block("a", Store("y", (I,), binary("add", load("y", I), load("x", I)))))


def test_inputs_meet_nobody():
    turned = load("x", binary("sub", Const(3, INT64), I))
    meets([], block("a", Store("y", (I,), binary("add", load("x", ZERO), turned))))


def test_a_sum():
    meets("s", block("a", Reduce("s", (ZERO,), "add", load("x", I))))


def test_a_sum_in_lanes():
    """A vector may have a partial sum in each lane."""
    meets([], block("a", Reduce("s", (ZERO,), "add", load("x", I))), reduces=False)


def test_two_ways_of_folding():
    """A sum and a product of one element: in lanes, either, but not both."""
    meets("s", block("a", Reduce("s", (ZERO,), "add", load("x", I))),
          block("b", Reduce("s", (ZERO,), "mul", load("x", I))), reduces=False)


def test_a_store_in_lanes():
    meets("y", block("a", Store("y", (ZERO,), load("x", I))), reduces=False)


def test_a_sum_that_is_read():
    meets("s", block("a", Reduce("s", (ZERO,), "add", load("x", I))), block("b", Store("y", (I,), load("s", ZERO))),
          reduces=False)


def test_rows():
    meets([], row("a", Store("y", (I, J), load("x", J, I))))


def test_columns():
    meets([], row("a", Store("y", (J, I), load("x", I, J))))


def test_every_row_adds_to_all_columns():
    meets("s", row("a", Reduce("s", (J,), "add", load("x", I, J))))


def test_two_ways_of_indexing():
    """y[i, j] and y[j, i]."""
    meets("y", row("a", Store("y", (I, J), load("y", J, I))))


def test_another_block_reads():
    meets("t", row("a", Store("t", (I, J), load("x", I, J))),
          row("b", Store("y", (I, J), load("t", binary("sub", Const(3, INT64), I), J))))


def test_a_row_that_is_handed_on():
    meets([], row("a", Store("t", (I, J), load("x", I, J))), row("b", Store("y", (I, J), load("t", I, ZERO))))


def test_one_row_for_all():
    meets("t", row("a", Store("t", (ZERO, J), load("x", I, J))), row("b", Store("y", (I, J), load("t", ZERO, J))))


def test_a_loop_of_one_iteration():
    meets([], block("a", Store("y", (ZERO,), load("x", I))), extent=Const(1, INT64))


def test_loops_around():
    """Within one iteration of a loop around it, each iteration of j writes its own element; over i they meet."""
    f = function(row("a", Store("t", (ZERO, J), load("x", I, J))))
    nests = Nests(f)
    check(set(), lambda: {a.buffer for a, _ in met_in(nests, "j_a", ["a"], True)},
          f"the loop over j_a of\n{text(f)}in which buffers its iterations meet")


def test_only_these_blocks():
    f = function(block("a", Store("y", (I,), load("x", I))), block("b", Store("t", (ZERO, ZERO), load("x", I))))
    nests = Nests(f)
    check(set(), lambda: {a.buffer for a, _ in met_in(nests, "i", ["a"], True)},
          f"the block a alone, of\n{text(f)}in which buffers the iterations of i meet")


def touched(index, i, j):
    """The element of an index made of vi, vj, numbers and sums of these."""
    known = {"vi": i, "vj": j}

    def number(e):
        if isinstance(e, Const):
            return e.value
        if isinstance(e, Var):
            return known[e.name]
        return number(e.x) + number(e.y)
    return tuple(map(number, index))


def test_random_accesses():
    """Where two iterations touch one element, and one of them writes it, the loop must be said to meet."""
    rng = np.random.default_rng(0)
    parts = (I, J, ZERO, binary("add", I, J), binary("add", I, 1))
    for _ in range(200):
        stored, loaded = ([parts[int(k)] for k in rng.integers(0, len(parts), 2)] for _ in range(2))
        f = function(row("a", Store("t", tuple(stored), load("x", I, J))),
                     row("b", Store("y", (I, J), load("t", *loaded))))
        writes = {(i, touched(stored, i, j)) for i, j in itertools.product(range(4), repeat=2)}
        touches = writes | {(i, touched(loaded, i, j)) for i, j in itertools.product(range(4), repeat=2)}
        if any(a == b and i != k for i, a in writes for k, b in touches):
            check(True, lambda f=f: "t" in met(f, True), f"whether iterations of i meet in t in\n{text(f)}")
        check(False, lambda f=f: bool(met(f, True) - {"t"}), f"whether iterations of i meet in x or y in\n{text(f)}")
