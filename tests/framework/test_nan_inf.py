"""FLAGS_check_nan_inf: the operator that made the first NaN or infinity is named, eagerly and in programs."""

import numpy as np
import pytest

import minipd as paddle


@pytest.fixture
def watching():
    paddle.set_flags({"FLAGS_check_nan_inf": True})
    yield
    paddle.set_flags({"FLAGS_check_nan_inf": False, "FLAGS_check_nan_inf_level": 0})


def loss(x):
    return (paddle.log(x * 2.0) + 1.0).sum()


def test_the_first_operator_is_named(watching):
    x = paddle.to_tensor([[1.0, -1.0], [0.0, 2.0]])
    with pytest.raises(FloatingPointError, match=r"log: result 0 f32\[2, 2\] has 1 NaN and 1 infinities, the first at "
                                                 r"\[0, 1\]; all its operands are finite, so it begins here"):
        loss(x)


def test_operands_that_were_bad_already_are_told(watching):
    with pytest.raises(FloatingPointError, match=r"scale: .*operands that are not finite already: f32\[1\]"):
        paddle.scale(paddle.to_tensor([np.inf]), 2.0)


def test_backward_is_watched_too(watching):
    x = paddle.to_tensor([0.0], stop_gradient=False)
    y = paddle.sqrt(x)
    with pytest.raises(FloatingPointError, match="divide: result 0"):
        y.backward()


def test_finite_and_int_results_pass(watching):
    assert loss(paddle.to_tensor([1.0])).item() == pytest.approx(np.log(2.0) + 1)
    assert (paddle.to_tensor([1]) + 1).tolist() == [2]


def test_a_level_above_0_warns_and_goes_on(watching):
    paddle.set_flags({"FLAGS_check_nan_inf_level": 1})
    with pytest.warns(RuntimeWarning, match="log: result 0"):
        assert np.isnan(loss(paddle.to_tensor([-1.0])).item())


def test_programs_are_watched(watching):
    compiled = paddle.jit.to_static(loss)
    assert compiled(paddle.to_tensor([1.0])).item() == pytest.approx(np.log(2.0) + 1)
    with pytest.raises(FloatingPointError, match=r"result 0 f32\[.*has 1 NaN and 0 infinities") as caught:
        compiled(paddle.to_tensor([-1.0]))
    assert any("while running this operation" in note for note in caught.value.__notes__)


def test_without_the_flag_nobody_looks():
    assert np.isnan(loss(paddle.to_tensor([-1.0])).item())
