"""What helps to find where numbers go wrong."""

import warnings

import pytest

import minipd as paddle
from minipd import amp, nn
from minipd.amp import debugging
from minipd.framework.rank import current


def test_one_tensor(capsys):
    bad = paddle.to_tensor([1.0, float("nan"), float("inf"), 0.0])
    with pytest.raises(FloatingPointError, match=r"\[exp\] y: numel=4, num_nan=1, num_inf=1, num_zero=1"):
        debugging.check_numerics(bad, "exp", "y")
    stats, _ = debugging.check_numerics(bad, "exp", "y", debugging.DebugMode.CHECK_NAN_INF)
    assert stats.tolist() == [1, 1, 1] and "[exp] y" in capsys.readouterr().out
    large = paddle.to_tensor([1e5])
    debugging.check_numerics(large, "exp", "y")
    assert not capsys.readouterr().out
    debugging.check_numerics(large, "exp", "y", debugging.DebugMode.CHECK_ALL_FOR_OVERFLOW)
    assert "max=1.000000e+05" in capsys.readouterr().out


def test_a_layer():
    class Log(nn.Layer):
        @debugging.check_layer_numerics
        def forward(self, x):
            return [paddle.log(x)]
    assert Log()(paddle.ones([1]))[0].item() == 0.0
    with pytest.raises(FloatingPointError, match=r"\[Log\] output 0"):
        Log()(paddle.zeros([1]))
    with pytest.raises(FloatingPointError, match=r"\[Log\] input 0"):
        Log()(paddle.to_tensor([float("inf")]))


def test_every_operator():
    before = current().handler.__code__, current().events
    debugging.enable_tensor_checker(debugging.TensorCheckerConfig(True, skipped_op_list=["divide"]))
    try:
        x = paddle.ones([1]) / 0.0
        with pytest.raises(FloatingPointError, match="multiply: result 0"):
            x * 2.0
    finally:
        debugging.disable_tensor_checker()
    assert (x * 2.0).item() == float("inf") and (current().handler.__code__, current().events) == before
    config = debugging.TensorCheckerConfig(True, debugging.DebugMode.CHECK_NAN_INF, checked_op_list=["multiply"],
                                           debug_step=[2, 3])
    debugging.enable_tensor_checker(config)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x * 2.0
        assert config.update_and_check_step_id(2)
        with pytest.warns(RuntimeWarning, match="multiply: result 0"):
            x * 2.0
    finally:
        debugging.disable_tensor_checker()
    debugging.enable_tensor_checker(debugging.TensorCheckerConfig(False))
    assert current().events is before[1]


def test_counting_operators(capsys):
    x = paddle.ones([2, 2])
    with debugging.collect_operator_stats(), amp.auto_cast(dtype="bfloat16"):
        y = x @ x
        (y + x).sum()
        paddle.greater_than(x, y)
    lines = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines() if "<" not in line}
    assert lines["matmul"] == ["0", "1", "0", "0"] and lines["add"] == ["0", "0", "1", "0"]
    assert lines["cast"] == ["0", "2", "2", "0"] and lines["greater_than"] == ["0", "0", "0", "1"]
    assert current().events is None
