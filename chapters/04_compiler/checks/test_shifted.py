"""x minus its maximum: what makes softmax and cross entropy survive."""

import numpy as np

from minipd.decomposition import decompose
from minipd.executor import Executor, Scope
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.static import InputSpec
from tools.course.checking import check


def softmax(x, axis=-1):
    """By the rule: the program of a softmax, decomposed and run."""
    x = np.asarray(x, np.float64)
    program = trace(lambda x: F.softmax(x, axis), InputSpec(list(x.shape), "float64", "x")).program
    decompose(program, [])
    with np.errstate(all="ignore"):
        return Executor(program).run({"x": x}, Scope())["output_0"]


def row(values):
    """One row, number by number: p[i] = 1 / sum_j e^(x[j] - x[i])."""
    with np.errstate(over="ignore"):
        return [float(1 / sum(np.exp(np.float64(b - a)) for b in values)) for a in values]


def test_small_numbers():
    check([0.0900305731, 0.2447284711, 0.6652409558], lambda: softmax([1, 2, 3]), "softmax([1, 2, 3])")


def test_large_numbers():
    check(row([1000, 1001]), lambda: softmax([1000, 1001]), "softmax([1000, 1001])")


def test_large_negative_numbers():
    check(row([-1000, -1001]), lambda: softmax([-1000, -1001]), "softmax([-1000, -1001])")


def test_each_row_has_a_maximum_of_its_own():
    x = [[1000.0, 1001.0, 1000.5], [-1000.0, -1001.0, -1000.5]]
    check([row(r) for r in x], lambda: softmax(x), f"softmax({x})")


def test_a_square():
    x = [[1.0, 2.0], [800.0, 3.0]]
    check([row(r) for r in x], lambda: softmax(x), f"softmax({x})")


def test_another_axis():
    x = [[1.0, 900.0], [2.0, -900.0], [3.0, 0.0]]
    want = np.array([row(r) for r in np.transpose(x).tolist()]).T
    check(want, lambda: softmax(x, 0), f"softmax({x}, axis=0)")


def test_the_middle_axis():
    x = np.random.default_rng(0).standard_normal((2, 3, 4)) * 300
    want = np.apply_along_axis(lambda r: row(r.tolist()), 1, x)
    check(want, lambda: softmax(x, 1), "softmax of random numbers of shape (2, 3, 4), axis=1")


def test_no_numbers():
    check((2, 0), lambda: softmax(np.empty((2, 0))).shape, "the shape of softmax of an array of shape (2, 0)")
    check((0, 3), lambda: softmax(np.empty((0, 3))).shape, "the shape of softmax of an array of shape (0, 3)")


def test_float32():
    """e^89 is inf in float32."""
    program = trace(F.softmax, InputSpec([2], "float32", "x")).program
    decompose(program, [])
    with np.errstate(all="ignore"):
        y = Executor(program).run({"x": np.array([89, 90], np.float32)}, Scope())["output_0"]
    check(row([89, 90]), y, "softmax([89, 90]) in float32", rtol=1e-5)


def test_random_rows():
    rng = np.random.default_rng(1)
    for scale in (0.1, 10.0, 1000.0):
        x = rng.standard_normal((5, 7)) * scale + rng.standard_normal((5, 1)) * scale * 3
        check(np.array([row(r) for r in x.tolist()]), lambda x=x: softmax(x),
              f"softmax of random rows of size {scale:g}")
