"""What `check` takes for equal, and what it says."""

import numpy as np
import pytest

import minipd as paddle
from tools.course.checking import Mismatch, check

EQUAL = [
    (1, 1.0), (0.1 + 0.2, 0.3), (True, 1), ("a", "a"), (None, None), ((1, 2), [1, 2]), ({"a": (1.0,)}, {"a": (1,)}),
    ([1.0, 2.0], np.array([1, 2])), (np.float32(0.1), 0.1), (float("nan"), np.float64("nan")),
    ([np.inf, 1.0], np.array([np.inf, 1.0])), (np.zeros((0, 3)), np.ones((0, 3))), (np.array(["a"]), np.array(["a"])),
    (np.array([1e8, 1.0], np.float32), np.array([1e8, 2.0], np.float32)),       # as a share of the largest
]
DIFFERENT = [
    (1, 2), (1.0, 1.0 + 1e-8), (1, "1"), ("1", 1), (None, 0), (0, None), ((1, 2), (1,)), ([1], np.array([[1]])),
    ({"a": 1}, {"b": 1}), (float("nan"), 0.0), (np.inf, -np.inf), ([0.0], np.array([np.nan])),
    (np.zeros(3), np.zeros((3, 1))), (np.float32(1), np.float32(1.001)), ([1, 2], [[1], [2, 3]]), (np.zeros(1), None),
    (np.array([0.0]), np.array([{}], object)),
]


@pytest.mark.parametrize(("expected", "got"), EQUAL, ids=str)
def test_equal(expected, got):
    check(expected, got, "x")
    check([expected], [got], "x")


@pytest.mark.parametrize(("expected", "got"), DIFFERENT, ids=str)
def test_different(expected, got):
    for e, g in ((expected, got), ([expected], [got])):
        with pytest.raises(Mismatch):
            check(e, g, "x")


def test_nothing_equals_everything():
    class Always:
        __array_priority__ = 1000

        def __eq__(self, other):
            return True

    for expected in (1, "a", (1,), np.zeros(2), None):
        with pytest.raises(Mismatch):
            check(expected, Always(), "x")


def test_tensors_are_their_values():
    check([[1.0, 2.0]], paddle.to_tensor([[1.0, 2.0]]), "x")
    check((paddle.ones([2]), 3), (np.ones(2), 3), "x")
    with pytest.raises(Mismatch, match=r"expected \[1.0\], got \[2.\]  \(shape \(1,\), float32\)"):
        check([1.0], paddle.to_tensor([2.0]), "x")


def test_tolerances():
    check(100.0, 101.0, "x", rtol=0.011)
    check(0.0, 1e-7, "x", atol=1e-6)
    check(paddle.ones([1], "bfloat16"), [1.005], "x")
    with pytest.raises(Mismatch):
        check(0.0, 1e-7, "x")


def test_where_a_large_value_differs_is_told():
    with pytest.raises(Mismatch) as caught:
        check({"a": np.zeros((10, 10))}, {"a": np.eye(10)[::-1]}, "x")
    assert caught.value.where == "['a'][0, 9]"
    assert caught.value.on == "x"


def test_an_error_is_told_with_the_input():
    with pytest.raises(Mismatch, match=r"on f\(0\): expected 1, got ZeroDivisionError: division by zero") as caught:
        check(1, lambda: 1 / 0, "f(0)")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_texts_of_several_lines_are_compared_by_line():
    with pytest.raises(Mismatch) as caught:
        check("a\nb\nc", "a\nB\nc", "the program")
    assert caught.value.got.endswith("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c")
