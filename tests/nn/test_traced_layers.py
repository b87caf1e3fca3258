"""Recurrent and attention layers as programs: the same results and gradients, also with an open batch size."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.static import InputSpec


class Ragged(nn.Layer):
    def __init__(self):
        super().__init__()
        self.inner, self.lengths = nn.GRU(3, 4, direction="bidirect"), paddle.to_tensor([5, 3])

    def forward(self, x):
        return self.inner(x, sequence_length=self.lengths)


CASES = {
    "LSTM": (lambda: nn.LSTM(3, 4, 2, direction="bidirect"), [2, 5, 3], [None, 5, 3]),
    "GRU": (lambda: nn.GRU(3, 4, time_major=True), [5, 2, 3], [5, None, 3]),
    "RNN": (lambda: nn.RNN(nn.SimpleRNNCell(3, 4)), [2, 5, 3], [None, 5, 3]),
    "ragged": (Ragged, [2, 5, 3], [2, 5, 3]),
    "attention": (lambda: nn.MultiHeadAttention(6, 2), [2, 5, 6], [None, None, 6]),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0), 2), [2, 5, 6], [None, None, 6]),
    "weight_norm": (lambda: nn.utils.weight_norm(nn.Linear(3, 4)), [2, 3], [None, 3]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_program_computes_what_the_layer_computes(name):
    make, shape, spec = CASES[name]
    model = make()
    x = paddle.to_tensor(np.random.RandomState(0).randn(*shape).astype("float32"), stop_gradient=False)

    def first(x):
        out = model(x)
        return out[0] if isinstance(out, tuple) else out

    def results(function):
        model.clear_gradients(set_to_zero=False)
        x.grad = None
        out = function(x)
        (out * out).sum().backward()
        return [out.numpy(), *(t.grad.numpy() for t in (x, *model.parameters()))]
    traced = paddle.jit.to_static(first, input_spec=[InputSpec(spec)])
    for got, want in zip(results(traced), results(first), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
