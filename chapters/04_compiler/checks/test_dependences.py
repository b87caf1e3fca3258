"""Where the iterations of a loop meet."""

import itertools

import numpy as np

from minipd.cinn.ir.ast import INT64, Accumulate, Alloc, Const, For, Init, Let, Load, Seq, Store, Var
from minipd.cinn.ir.build import binary
from minipd.cinn.ir.printer import text
from minipd.cinn.schedule.loops import dependences
from tools.course.checking import check

F32 = np.dtype("float32")
I, J, A = Var("i"), Var("j"), Var("a")
N = Const(4, INT64)


def load(buffer, *index):
    return Load(buffer, index, F32)


def meets(want, *stmts):
    """The loop over i of these statements, in which i meets itself in the buffers and accumulators `want`."""
    loop = For("i", N, Seq(stmts) if len(stmts) > 1 else stmts[0])
    check(set(want), lambda: set(dependences(loop)), f"the loop\n{text(loop)}\n")


def over_j(*stmts):
    return For("j", N, Seq(stmts) if len(stmts) > 1 else stmts[0])


def test_each_its_own_element():
    meets([], Store("y", (I,), load("x", I)))


def test_one_accumulator():
    meets("s", Accumulate("s", "add", load("x", I)))


def test_all_write_one_element():
    meets("y", Store("y", (Const(0, INT64),), load("x", I)))


def test_reads_what_another_wrote():
    meets("y", Store("y", (I,), load("y", binary("sub", I, 1))))


def test_reads_its_own_element_again():
    meets([], Store("y", (I,), binary("add", load("y", I), load("x", I))))


def test_inputs_meet_nobody():
    turned = load("x", binary("sub", Const(3, INT64), I))
    meets([], Store("y", (I,), binary("add", load("x", Const(0, INT64)), turned)))


def test_rows():
    meets([], over_j(Store("y", (I, J), load("x", J, I))))


def test_columns():
    meets([], over_j(Store("y", (J, I), load("x", I, J))))


def test_every_row_adds_to_all_columns():
    meets("y", over_j(Store("y", (J,), binary("add", load("y", J), load("x", I, J)))))


def test_two_ways_of_indexing():
    """y[i, j] and y[j, i]: the variable is there both times, but not on one axis."""
    meets("y", over_j(Store("y", (I, J), load("y", J, I))))


def test_another_statement_reads():
    meets("y", Store("y", (I,), load("x", I)), Store("z", (I,), load("y", binary("sub", Const(3, INT64), I))))


def test_what_is_new_in_every_iteration():
    row = Alloc("row", (N,), F32)
    meets([], row, over_j(Store("row", (J,), load("x", I, J))), over_j(Store("y", (I, J), load("row", J))))
    meets([], Init("s", Const(0.0, F32)), over_j(Accumulate("s", "add", load("x", I, J))),
          Store("y", (I,), Var("s", F32)))


def test_a_row_from_outside():
    meets(["row"], over_j(Store("row", (J,), load("x", I, J))), over_j(Store("y", (I, J), load("row", J))))


def test_several():
    meets(["s", "t", "y"], Accumulate("s", "add", load("x", I)), Accumulate("t", "max", load("x", I)),
          Store("y", (Const(1, INT64),), load("x", I)), Store("z", (I,), load("x", I)))


def test_an_index_with_a_name():
    """k is i * 0: every iteration writes y[0]."""
    loop = For("i", N, Seq((Let("k", binary("mul", I, 0)), Store("y", (Var("k"),), load("x", I)))))
    check(True, lambda: "y" in dependences(loop), f"whether iterations meet in y in\n{text(loop)}\n")


def touched(index, i, j):
    """The element of an index made of i, j, numbers and sums of these."""
    known = {"i": i, "j": j}

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
    parts = (I, J, Const(0, INT64), binary("add", I, J), binary("add", I, 1))
    for _ in range(300):
        indices = [tuple(parts[int(k)] for k in rng.integers(0, len(parts), 2)) for _ in range(3)]
        stored, loaded, other = indices
        body = over_j(Store("y", stored, load("y", *loaded)), Store("z", (I, J), load("y", *other)))
        loop = For("i", N, body)
        writes = {(i, touched(stored, i, j)) for i, j in itertools.product(range(4), repeat=2)}
        touches = writes | {(i, touched(x, i, j)) for x in (loaded, other)
                            for i, j in itertools.product(range(4), repeat=2)}
        really = any(a == b and i != k for i, a in writes for k, b in touches)
        found = dependences(loop)
        if really:
            check(True, "y" in found, f"whether iterations meet in y in\n{text(loop)}\n")
        check(False, "z" in found or "x" in found, f"whether iterations meet in z in\n{text(loop)}\n")
