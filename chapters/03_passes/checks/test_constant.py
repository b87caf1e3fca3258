"""The constant that holds exactly an array."""

import ml_dtypes
import numpy as np
import pytest

from minipd.framework.context import Kernels
from minipd.framework.row import ROWS
from minipd.ir.traced import trace
from minipd.passes import create_pass
from minipd.passes.library.constant_folding import MAX_LISTED, constant_holding
from minipd.static import InputSpec
from tools.course.checking import check

F32 = np.float32


def shown(array):
    return f"{array!r} (bytes {array.tobytes().hex(' ')})" if array.size < 8 else f"{array.dtype} of {array.shape}"


def exact(array):
    """The array of the constant must be this one."""
    on = f"constant_holding({shown(array)})"
    found = constant_holding(array)
    check(True, found is not None, f"{on}: whether there is a constant")
    name, attrs = found
    made = Kernels().run(ROWS[name], [], dict(attrs))
    check((array.shape, str(array.dtype)), (made.shape, str(made.dtype)), f"{on}: shape and dtype of the {name}")
    check(array.tobytes().hex(" "), made.tobytes().hex(" "), f"{on}: the bytes of the {name}")


def none(array):
    check(None, constant_holding(array), f"constant_holding({shown(array)})")


def test_one_number_everywhere():
    exact(np.array([1.5, 1.5], F32))


def test_several_numbers():
    none(np.array([1.5, 2.5], F32))


def test_signed_zeros():
    exact(np.array([-0.0, -0.0], F32))
    none(np.array([0.0, -0.0], F32))


def test_nan():
    exact(np.array([np.nan, np.nan], F32))
    none(np.array([np.nan, 1.0], F32))


def test_a_number():
    exact(np.array(0.1, np.float64))


def test_nothing():
    exact(np.empty((0,), F32))
    exact(np.empty((2, 0), np.float64))


def test_lists_of_int64():
    exact(np.array([3, 1, 2]))
    exact(np.array([7, 7]))
    exact(np.arange(MAX_LISTED))
    none(np.arange(MAX_LISTED + 1))
    none(np.array([[1, 2], [3, 4]]))


def test_other_lists():
    none(np.array([3, 1, 2], np.int32))
    none(np.array([0.0, 1.0]))
    none(np.array([True, False]))


def test_big_ints():
    exact(np.array(2 ** 62 + 1))
    exact(np.full((100,), 2 ** 53 + 1))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.uint8, bool])
def test_every_dtype(dtype):
    exact(np.full((2, 3), 1, dtype))
    exact(np.full((), 0, dtype))


def test_memory_in_another_order():
    exact(np.full((3, 2), 2.5, F32).T)
    none(np.arange(6, dtype=F32).reshape(3, 2).T)


def test_in_the_pass():
    """-0.0 stays -0.0 when x + 0.0 * -1.0 is folded."""
    import minipd as paddle
    program = trace(lambda x: x + paddle.full([2], 0.0) * -1.0, InputSpec([2], "float32", "x")).program
    check(1, create_pass("constant_folding_pass").run(program), "how many operations are folded in x + 0.0 * -1.0")
    values = [str(op.attributes["value"].value) for op in program.walk() if op.name() == "pd_op.full"]
    check(["-0.0"], values, "the constant in x + 0.0 * -1.0")
