"""What a user is told when a public function fails."""

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.boundary import entrance
from minipd.framework.constraints import PACKAGE
from minipd.nn import functional as F


@pytest.mark.parametrize("call, words", [
    (lambda: paddle.flatten(None), "flatten: expected x to be a Tensor, got NoneType"),
    (lambda: paddle.flatten([1, 2]), r"flatten: expected x to be a Tensor, got list \[1, 2\]"),
    (lambda: paddle.squeeze("x"), "squeeze: expected x to be a Tensor, got str 'x'"),
    (lambda: F.linear(paddle.ones([2, 2]), 3.0), "linear: expected weight to be a Tensor, got float 3.0|two Tensors"),
    (lambda: paddle.ones([2]).flatten("x"), "flatten: expected axis to be an int, got 'x'"),
    (lambda: paddle.eye("x"), "eye: expected num_rows to be an int, got str 'x'"),
    (lambda: paddle.linalg.multi_dot(3.0), "multi_dot: expected x to be a list of tensors, got float 3.0"),
    (lambda: paddle.sin(paddle.ones([2]), out=1.5), "out: expected a Tensor, got float"),
    (lambda: paddle.nn.initializer.Constant()(1.5), "Constant: expected param to be a Tensor, got float 1.5"),
])
def test_an_argument_of_a_wrong_kind_is_named(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_an_error_tells_the_call_and_the_users_line():
    with pytest.raises(ValueError, match="does not stretch") as caught:
        paddle.expand(paddle.ones([2, 3]), [4, 5])
    (note,) = caught.value.__notes__
    assert note.startswith("in expand(x=f32[2, 3], shape=[4, 5]), called at ") and "test_boundary.py" in note


def test_a_layer_tells_of_its_call():
    layer = paddle.nn.Sequential(paddle.nn.Linear(3, 2))
    with pytest.raises(ValueError, match="expected 2, got 3|expected 3, got 2|inner sizes") as caught:
        layer(paddle.ones([4, 2]))
    (note,) = caught.value.__notes__
    assert "x=f32[4, 2], weight=f32[3, 2]" in note and "test_boundary.py" in note


def test_sizes_for_which_there_is_no_memory():
    with pytest.raises(MemoryError, match=r"full: expected a result that fits .*, got shape \[1099511627776\]"):
        paddle.zeros([1 << 40])


def test_it_is_told_once():
    @entrance
    def outer(x: "paddle.Tensor"):
        return paddle.matmul(x, x)

    with pytest.raises(ValueError) as caught:
        outer(paddle.ones([2, 3]))
    assert len([note for note in caught.value.__notes__ if "called at" in note]) == 1


def test_a_message_about_the_inside_is_replaced_and_chained():
    names = {"np": np}
    code = "def inside(x: 'Tensor'): return x.numpy() + np.ones((4, 5))"
    exec(compile(code, f"{PACKAGE}/library.py", "exec"), names)
    with pytest.raises(ValueError, match=r"inside: these arguments do not go together: x=f32\[2, 3\]") as caught:
        entrance(names["inside"])(paddle.ones([2, 3]))
    assert "broadcast" in str(caught.value.__cause__)


def test_errors_of_the_users_own_code_are_left_alone():
    def mine(x):
        return x.no_such_thing

    with pytest.raises(AttributeError, match="no_such_thing"):
        paddle.autograd.recompute(mine, paddle.ones([2]))


def test_a_wrong_number_of_arguments_stays_pythons_affair():
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        paddle.flatten()


@pytest.mark.parametrize("call, name", [
    (lambda x: x @ paddle.ones([5, 5]), "matmul"), (lambda x: x[9], "getitem"),
    (lambda x: x.__setitem__(9, 1.0), "setitem"), (lambda x: x + paddle.ones([5]), "add"),
    (lambda x: np.ones(5) * x, "multiply"),
])
def test_operators_tell_the_users_line_too(call, name):
    with pytest.raises((ValueError, IndexError)) as caught:
        call(paddle.ones([2, 3]))
    assert caught.value.__notes__[-1].startswith(f"in {name}(") and "test_boundary.py" in caught.value.__notes__[-1]
