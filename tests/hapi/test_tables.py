"""The tables of `summary` and `flops`, as Paddle 3.3.1 prints them."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.framework.context import RankContext
from minipd.framework.rank import enter, leave


@pytest.fixture(autouse=True)
def names_begin_anew():
    token = enter(RankContext())
    yield
    leave(token)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(nn.Conv2D(1, 6, 3, padding=1), nn.BatchNorm2D(6), nn.ReLU(), nn.AvgPool2D(2, 2))
        self.pool = nn.AdaptiveAvgPool2D(2)
        self.back = nn.Linear(24, 5)
        self.drop = nn.Dropout()

    def forward(self, x):
        return self.back(self.drop(paddle.flatten(self.pool(self.front(x)), 1)))


def test_summary(capsys):
    net = Net()
    net.drop.eval()
    got = paddle.summary(net, (None, 1, 8, 8))
    table = """
-------------------------------------------------------------------------------
   Layer (type)         Input Shape          Output Shape         Param #
===============================================================================
     Conv2D-1          [[1, 1, 8, 8]]        [1, 6, 8, 8]           60
   BatchNorm2D-1       [[1, 6, 8, 8]]        [1, 6, 8, 8]           24
      ReLU-1           [[1, 6, 8, 8]]        [1, 6, 8, 8]            0
    AvgPool2D-1        [[1, 6, 8, 8]]        [1, 6, 4, 4]            0
AdaptiveAvgPool2D-1    [[1, 6, 4, 4]]        [1, 6, 2, 2]            0
     Dropout-1           [[1, 24]]             [1, 24]               0
     Linear-1            [[1, 24]]              [1, 5]              125
===============================================================================
Total params: 209
Trainable params: 197
Non-trainable params: 12
-------------------------------------------------------------------------------
Input size (MB): 0.00
Forward/backward pass size (MB): 0.01
Params size (MB): 0.00
Estimated Total Size (MB): 0.01
-------------------------------------------------------------------------------

"""
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [line.rstrip() for line in table.splitlines()[1:]]
    assert repr(got) == "{'total_params': np.int64(209), 'trainable_params': np.int64(197)}"
    assert net.training and not net.drop.training, "each layer is in the mode that it was in"
    assert not net.back._post_hooks


def test_summary_of_layers_that_return_tuples(capsys):
    got = paddle.summary(nn.LSTM(3, 4, 2), (2, 5, 3))
    out = capsys.readouterr().out.splitlines()
    assert out[3] == "    LSTM-1          [[2, 5, 3]]      [[2, 5, 4], [[2, 2, 4], [2, 2, 4]]]       304      "
    assert got["total_params"] == 304
    paddle.summary(nn.TransformerEncoderLayer(8, 2, 16), (2, 4, 8))
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[3:15]]
    assert names == ["Linear-1", "Linear-2", "Linear-3", "Linear-4", "MultiHeadAttention-1", "Dropout-2",
                     "LayerNorm-1", "Linear-5", "Dropout-1", "Linear-6", "Dropout-3", "LayerNorm-2"]


class Inputs(nn.Layer):
    def __init__(self):
        super().__init__()
        self.table, self.back = nn.Embedding(10, 3), nn.Linear(3, 4)
        self.back.weight.stop_gradient = True

    def forward(self, ids, x=None):
        ids, x = (ids["ids"], ids["x"]) if isinstance(ids, dict) else (ids, x)
        return self.back(self.table(ids) + x), self.back(x)


def test_several_inputs(capsys):
    net = Inputs()
    for got in (paddle.summary(net, [(2, 5), (2, 5, 3)], dtypes=["int64", "float32"]),
                paddle.summary(net, [paddle.static.InputSpec([2, 5], "int64"), paddle.static.InputSpec([2, 5, 3])]),
                paddle.summary(net, input={"ids": paddle.zeros([2, 5], "int64"), "x": paddle.ones([2, 5, 3])})):
        assert got == {"total_params": 46, "trainable_params": 34}
    assert capsys.readouterr().out.count("  Embedding-1 ") == 3
    model = paddle.Model(nn.Linear(3, 4), paddle.static.InputSpec([None, 3]))
    assert model.summary()["total_params"] == 16 == model.summary((2, 3))["total_params"]
    for call, message in ((lambda: paddle.summary(net), "expected input_size or input, got neither"),
                          (lambda: paddle.summary(net, (2, -1)), r"expected sizes greater than 0 .* got \(2, -1\)"),
                          (lambda: paddle.summary(net, [(2,), (3,)], dtypes=["int64"]), "a dtype for each of 2")):
        with pytest.raises(ValueError, match=message):
            call()


def test_flops(capsys):
    n = paddle.flops(Net(), [1, 1, 8, 8], print_detail=True)
    by_hand = [10 * 6 * 64, 2 * 6 * 64, 0, 6 * 16, (4 + 1) * 24, 24 * 5, 0]
    out = capsys.readouterr().out
    assert n == sum(by_hand) == 4944
    assert out[out.index("+"):] == """\
+-----------------------+--------------+--------------+--------+-------+
|       Layer Name      | Input Shape  | Output Shape | Params | Flops |
+-----------------------+--------------+--------------+--------+-------+
|        conv2d_0       | [1, 1, 8, 8] | [1, 6, 8, 8] |   60   |  3840 |
|     batch_norm2d_0    | [1, 6, 8, 8] | [1, 6, 8, 8] |   24   |  768  |
|        re_lu_0        | [1, 6, 8, 8] | [1, 6, 8, 8] |   0    |   0   |
|      avg_pool2d_0     | [1, 6, 8, 8] | [1, 6, 4, 4] |   0    |   96  |
| adaptive_avg_pool2d_0 | [1, 6, 4, 4] | [1, 6, 2, 2] |   0    |  120  |
|        linear_0       |   [1, 24]    |    [1, 5]    |  125   |  120  |
|       dropout_0       |   [1, 24]    |   [1, 24]    |   0    |   0   |
+-----------------------+--------------+--------------+--------+-------+
Total Flops: 4944     Total Params: 209
"""
    assert "Conv2D'>'s flops has been counted\n" in out


def test_flops_counted_by_the_user(capsys):
    def count(layer, inputs, output):
        layer.total_ops += int(np.prod(output.shape))
    net = nn.Sequential(nn.Linear(3, 4), nn.Softmax(), nn.Sigmoid())
    assert paddle.flops(net, [2, 3], custom_ops={nn.Softmax: count}) == 24 + 8
    out = capsys.readouterr().out
    assert "Customize Function has been applied to <class 'minipd.nn.activation.Softmax'>" in out
    assert "Cannot find suitable count function for <class 'minipd.nn.activation.Sigmoid'>. Treat it as zero" in out
    assert not hasattr(net[1], "total_ops")


@pytest.mark.parametrize("table", [paddle.summary, paddle.flops])
def test_a_call_that_fails_leaves_the_network_as_it_was(table, capsys):
    net = nn.Sequential(nn.ReLU(), nn.Linear(3, 4))
    with pytest.raises(ValueError, match="matmul"):
        table(net, [2, 5])
    for layer in net.sublayers(include_self=True):
        assert layer.training and not layer._post_hooks
