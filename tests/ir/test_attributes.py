"""Types and attributes: what they compare by, and how they are spelled."""

import math

import ml_dtypes
import numpy as np
import pytest

from minipd.framework import dtype as dtypes
from minipd.framework.dim import symbol
from minipd.ir import DenseTensorType, VectorType, attribute
from minipd.ir.attributes import DoubleAttribute, FloatAttribute, Int32Attribute, PlaceAttribute


def test_equal_types_are_interchangeable():
    a, b = DenseTensorType((2, symbol("S0")), np.dtype("float32")), DenseTensorType((2, symbol("S0")), "float32")
    assert a == b and hash(a) == hash(b) and a is b
    assert a != DenseTensorType((2, symbol("S1")), "float32")
    assert a != DenseTensorType((2, symbol("S0")), "float64")
    assert VectorType((a, b)) == VectorType((b, a)) and VectorType((a,)) != a


@pytest.mark.parametrize("dtype, text", [
    ("bool", "b"), ("int8", "i8"), ("uint8", "u8"), ("int16", "i16"), ("int32", "i32"), ("int64", "i64"),
    ("float16", "f16"), ("bfloat16", "bf16"), ("float32", "f32"), ("float64", "f64")])
def test_dtypes_are_spelled_as_paddle_does(dtype, text):
    assert str(DenseTensorType((2, 3), dtype)) == f"tensor<2x3x{text}>"


def test_dimensions_by_name_or_as_minus_one():
    s = symbol("S0")
    t = DenseTensorType((s, 2 * s + 1, (s + 1) / 2, 16), "float32")
    assert t.text(exact=True) == "tensor<S0x(2*S0+1)x((S0+1)/2)x16xf32>"
    assert t.text(exact=False) == "tensor<-1x-1x-1x16xf32>"


def test_a_size_of_minus_one_is_refused():
    with pytest.raises(ValueError, match=r"got -1 in shape \[-1, 8\]; name an unknown size with symbol\('S0'\)"):
        DenseTensorType((-1, 8), "float32")


@pytest.mark.parametrize("value, exact, paddle", [
    (True, "true", "true"),
    (3, "i64(3)", "3"),
    (np.int32(3), "i32(3)", "3"),
    (1e-6, "f64(1e-06)", "1e-06"),
    (2**0.5 / 2, "f64(0.7071067811865476)", "0.707107"),
    (np.float32(0.1), "f32(0.1)", "0.1"),
    (123456789.0, "f64(123456789.0)", "1.23457e+08"),
    (math.inf, "f64(inf)", "inf"),
    (-math.inf, "f64(-inf)", "-inf"),
    (math.nan, "f64(nan)", "nan"),
    (-0.0, "f64(-0.0)", "-0"),
    (1.5 - 2j, "c128(1.5, -2.0)", "(1.5,-2)"),
    ('a"b\n', '"a\\"b\\n"', '"a\\"b\n"'),
    ((2, -1), "ints(2, -1)", "[2,-1]"),
    ((), "ints()", "[]"),
    ((symbol("S0"), 16), "ints(S0, 16)", "[-1,16]"),
    (2 * symbol("S0"), "dim(2*S0)", "-1"),
    ((True, False), "[true, false]", "[true,false]"),
    (("x", 1.5, (1, 2)), '["x", f64(1.5), ints(1, 2)]', '["x",1.5,[1,2]]'),
    (np.dtype(ml_dtypes.bfloat16), "dtype(bfloat16)", "bfloat16"),
    (dtypes.float32, "dtype(float32)", "float32"),
    (PlaceAttribute("cpu"), "Place(cpu)", "Place(cpu)"),
])
def test_spellings(value, exact, paddle):
    assert attribute(value).text(exact=True) == exact
    assert attribute(value).text(exact=False) == paddle


@pytest.mark.parametrize("value", [True, 3, -2**63, 0.1, "text", (1, 2), (), (1.5, "a", (2, 3)), symbol("S0") * 3,
                                   np.dtype("int8"), (True,), ((8, 4), (0, 2))])
def test_the_python_value_comes_back(value):
    back = attribute(value).value
    assert back == value and type(back) is type(value)


def test_equality_is_by_kind_and_bits():
    assert attribute(math.nan) == attribute(-math.nan) and hash(attribute(math.nan)) == hash(attribute(-math.nan))
    assert attribute(0.0) != attribute(-0.0)
    assert attribute(1) != attribute(1.0) and attribute(1) != attribute(True) and attribute(1) != Int32Attribute(1)
    assert FloatAttribute(0.5) != DoubleAttribute(0.5)


def test_a_float_is_not_rounded_unless_asked():
    assert attribute(0.1).value == 0.1
    assert attribute(0.1, "f32").value == float(np.float32(0.1)) != 0.1


def test_what_does_not_fit_is_refused():
    with pytest.raises(OverflowError, match="expected an integer of 64 bits, got 9223372036854775808"):
        attribute(2**63)
    with pytest.raises(OverflowError, match="32 bits"):
        attribute(2**31, "i32")
    with pytest.raises(TypeError, match="got <object object"):
        attribute(object())
    with pytest.raises(TypeError, match="expected one of the kinds .*, got 'complex'"):
        attribute(1, "complex")
