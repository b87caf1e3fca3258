"""InputSpec."""

import pytest

from minipd.framework.dim import symbol
from minipd.ir.traced import trace
from minipd.ops.creation import ones
from minipd.static import InputSpec


def test_dimensions():
    spec = InputSpec([None, "B", -1, 3], "int64", name="ids")
    assert spec.shape == (-1, symbol("B"), -1, 3) and spec.dtype == "int64"
    assert spec == InputSpec((-1, symbol("B"), None, 3), "int64", "ids") and spec != InputSpec([3])
    with pytest.raises(ValueError, match=r"expected sizes of at least 0, or -1 for any size, got -2 in \[-2\]"):
        InputSpec([-2])


def test_dimensions_of_one_name_have_one_size():
    traced = trace(lambda x, y: x + y, InputSpec(["B", 2], name="x"), InputSpec(["B", 2], name="y"))
    assert traced.inputs == ("x", "y")
    assert traced.output_values[0].shape == (symbol("B"), 2)


def test_unknown_dimensions_are_each_their_own():
    traced = trace(lambda x, y: (x, y), InputSpec([None]), InputSpec([None, "S0"]))
    assert [v.shape for v in traced.input_values] == [(symbol("S1"),), (symbol("S2"), symbol("S0"))]


def test_from_tensor():
    assert InputSpec.from_tensor(ones([2, 3]), "x") == InputSpec([2, 3], "float32", "x")
