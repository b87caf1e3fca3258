"""Oracle: for tensors, what Paddle answers (`tests/golden/promotion.json`); for two ints, numpy's table."""

import json
from pathlib import Path

import minipd as paddle
from tools.course.checking import check

GOLDEN = json.loads((Path(__file__).parents[3] / "tests" / "golden" / "promotion.json").read_text())
DTYPES = GOLDEN["dtypes"]


def result(a, b):
    return lambda: (paddle.ones([2], a) + paddle.ones([2], b)).dtype.name


def test_equal_dtypes_stay():
    for d in DTYPES:
        check(d, result(d, d), f"{d} + {d}")


def test_two_floats():
    check("float32", result("float16", "float32"), "float16 + float32")
    check("float32", result("float32", "float16"), "float32 + float16")
    check("float64", result("bfloat16", "float64"), "bfloat16 + float64")
    check("float32", result("float16", "bfloat16"), "float16 + bfloat16, of which neither holds the other")


def test_an_int_beside_a_float():
    check("float32", result("int64", "float32"), "int64 + float32")
    check("float16", result("float16", "int32"), "float16 + int32")
    check("bfloat16", result("bool", "bfloat16"), "bool + bfloat16")


def test_two_ints():
    check("int64", result("int32", "int64"), "int32 + int64")
    check("int32", result("bool", "int32"), "bool + int32")
    check("int16", result("uint8", "int8"), "uint8 + int8, of which neither holds the other")


def test_complex_numbers():
    check("complex64", result("complex64", "float32"), "complex64 + float32")
    check("complex128", result("float64", "complex64"), "float64 + complex64, whose two parts are float32")
    check("complex64", result("int64", "complex64"), "int64 + complex64")
    check("complex128", result("complex64", "complex128"), "complex64 + complex128")


def test_everything_that_paddle_answers():
    for a, row in GOLDEN["pairs"]["add, vector and vector"].items():
        for b, want in zip(DTYPES, row, strict=True):
            if want not in ("refused", "no kernel"):
                check(want, result(a, b), f"{a} + {b}")
