"""Two transpositions become one."""

import itertools

import numpy as np

from minipd.passes.compare import outcome
from minipd.passes.library.remove_redundant_transpose import TransposeOfTranspose
from minipd.passes.pattern import apply_patterns_greedily
from minipd.passes.show import program_of
from tools.course.checking import check

SIZES = 2, 3, 4, 5


def rewritten(*perms, rank=3):
    """(how often the rule fires, perm of each transposition that is left, the values), of an array that counts."""
    x = np.arange(np.prod(SIZES[:rank]), dtype=np.float32).reshape(SIZES[:rank])

    def f(x):
        for perm in perms:
            x = x.transpose(list(perm))
        return x
    program = program_of(f, list(x.shape))
    fired = apply_patterns_greedily(program, [TransposeOfTranspose], max_rewrites=10)
    left = [op.attributes["perm"].value for op in program.walk() if op.name() == "pd_op.transpose"]
    return fired, [tuple(p) for p in left], outcome(program, {"x": x})["output_0"]


def of(*perms, rank=3):
    """What numpy says: the values, and the dimensions of x in the order of the result's."""
    x = np.arange(np.prod(SIZES[:rank])).reshape(SIZES[:rank])
    dims = list(range(rank))
    for perm in perms:
        x, dims = np.transpose(x, perm), [dims[i] for i in perm]
    return x, tuple(dims)


def becomes_one(*perms, rank=3):
    values, dims = of(*perms, rank=rank)
    on = f"x, of shape {list(SIZES[:rank])}, transposed by {', then by '.join(map(str, perms))}"
    check((len(perms) - 1, [dims]), lambda: rewritten(*perms, rank=rank)[:2],
          f"(how often the rule fires, perm of what is left) of {on}")
    check(values, lambda: rewritten(*perms, rank=rank)[2], f"the values of {on}")


def test_round_and_round():
    """x[2, 3, 4] -> [3, 4, 2] -> [4, 2, 3]."""
    becomes_one((1, 2, 0), (1, 2, 0))


def test_which_is_first():
    becomes_one((1, 0, 2), (2, 0, 1))
    becomes_one((2, 0, 1), (1, 0, 2))


def test_back():
    becomes_one((1, 2, 0), (2, 0, 1))


def test_three_in_a_row():
    becomes_one((1, 2, 0), (1, 0, 2), (0, 2, 1))


def test_every_pair():
    for first, second in itertools.product(itertools.permutations(range(3)), repeat=2):
        becomes_one(first, second)


def test_four_dimensions():
    becomes_one((3, 1, 0, 2), (2, 0, 3, 1), rank=4)


def test_the_first_has_another_reader():
    def f(x):
        y = x.transpose([1, 0, 2])
        return y.transpose([2, 0, 1]), y.exp()
    program = program_of(f, [2, 3, 4])
    check(0, apply_patterns_greedily(program, [TransposeOfTranspose], max_rewrites=10),
          "how often the rule fires where exp reads the first transposition, too")
