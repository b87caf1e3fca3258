"""How tensors print: Paddle's text, character by character."""

import numpy as np
import pytest

import minipd as paddle
from minipd.framework import printing
from minipd.framework.rank import current


@pytest.fixture(autouse=True)
def default_options():
    before, current().printing = current().printing, printing.Options()
    yield
    current().printing = before


def values(x, dtype="float32"):
    """What stands below the first line, without its indentation."""
    head, _, body = str(paddle.to_tensor(np.asarray(x, dtype))).partition("\n")
    assert head == (f"Tensor(shape={list(np.shape(x))}, dtype={np.dtype(dtype).name}, place=Place(cpu), "
                    "stop_gradient=True,")
    assert body.startswith(" " * 7) and body.endswith(")")
    return "\n".join(line[7:] for line in body[:-1].split("\n"))


@pytest.mark.parametrize(("x", "dtype", "text"), [
    (3.0, "float32", "3."),
    (2.5, "float64", "2.50000000"),
    ([1.0, 2.5], "float32", "[1.        , 2.50000000]"),
    ([1.0, -1.0], "float32", "[ 1., -1.]"),
    ([1e-5, 1.0], "float32", "[0.00001000, 1.        ]"),
    ([1e5, 1e9], "float32", "[100000.    , 1000000000.]"),
    ([np.nan, np.inf, -np.inf, 1.0], "float32", "[ nan ,  inf., -inf.,  1.  ]"),
    ([0.1], "float16", "[0.09997559]"),
    ([1, -20, 300], "int64", "[ 1 , -20, 300]"),
    ([7, 250], "uint8", "[7  , 250]"),
    ([True, False], "bool", "[True , False]"),
    (True, "bool", "True"),
    (1.5 - 2j, "complex64", "(1.50000000-2.00000000j)"),
    ([1, -1 + 10j], "complex64", "[ (1.00000000+0.00000000j) , (-1.00000000+10.00000000j)]"),
    ([complex(1, -0.0)], "complex128", "[(1.00000000+-0.00000000j)]"),
    ([[1, 2], [3, 4]], "int32", "[[1, 2],\n [3, 4]]"),
    ([[[1], [2]], [[3], [4]]], "int8", "[[[1],\n  [2]],\n\n [[3],\n  [4]]]"),
    ([], "float32", "[]"),
    (np.zeros((0, 3)), "float32", "[]"),
    (np.zeros((2, 0)), "float32", "[[],\n []]"),
])
def test_elements(x, dtype, text):
    assert values(x, dtype) == text


def test_bfloat16_prints_its_value():
    x = paddle.to_tensor([0.1, 1.0]).astype("bfloat16")
    assert str(x) == ("Tensor(shape=[2], dtype=bfloat16, place=Place(cpu), stop_gradient=True,\n"
                      "       [0.10009766, 1.        ])")


def test_long_rows_are_broken():
    lines = values(np.arange(30), "int64").split("\n")
    assert lines == ["[0 , 1 , 2 , 3 , 4 , 5 , 6 , 7 , 8 , 9 , 10, 11, 12, 13, 14, 15, 16, 17,",
                     " 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29]"]


def test_the_width_is_taken_from_the_ends():
    """(The widest element is in the middle, and sticks out.)"""
    assert values([1, 2, 3, 40000, 5, 60, 7], "int64") == "[1 , 2 , 3 , 40000, 5 , 60, 7 ]"


def test_large_tensors_are_shortened():
    assert values(np.ones(1000)).count("1.") == 1000
    assert values(np.arange(1001.0)) == "[0.   , 1.   , 2.   , ..., 998. , 999. , 1000.]"
    assert values(np.arange(1200).reshape(2, 600), "int64") == ("[[0   , 1   , 2   , ..., 597 , 598 , 599 ],\n"
                                                               " [600 , 601 , 602 , ..., 1197, 1198, 1199]]")


def test_options():
    paddle.set_printoptions(precision=2, threshold=4, edgeitems=1)
    assert values([0.125, 1.0, 2.0, 3.0, 4.5]) == "[0.12, ..., 4.50]"
    paddle.set_printoptions(sci_mode=True)
    assert values([0.125, 1.0]) == "[1.25e-01, 1.00e+00]"       # what is not given stays
    paddle.set_printoptions(linewidth=18)
    assert values([0.125, 1.0]) == "[1.25e-01,\n 1.00e+00]"


@pytest.mark.parametrize(("given", "error", "message"), [
    ({"precision": "2"}, TypeError, "set_printoptions: expected precision to be an int, got '2'"),
    ({"threshold": -1}, ValueError, "set_printoptions: expected threshold >= 0, got -1"),
    ({"sci_mode": 1}, TypeError, "set_printoptions: expected sci_mode to be True or False, got 1"),
])
def test_bad_options(given, error, message):
    with pytest.raises(error) as raised:
        paddle.set_printoptions(**given)
    assert str(raised.value) == message


def test_parameters_say_so():
    p = paddle.create_parameter([2], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))
    assert str(p) == ("Parameter containing:\nTensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=False,\n"
                      "       [1., 1.])")


def test_formats():
    x = paddle.to_tensor(2.5)
    assert (f"{x:.3f}", f"{x}", f"{paddle.to_tensor([1, 2])}") == ("2.500", "2.5", str(paddle.to_tensor([1, 2])))
