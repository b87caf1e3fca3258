"""Networks that look through windows, as programs: of a batch whose size only the run knows."""

import numpy as np

import minipd as paddle
from minipd import nn
from minipd.nn import functional as F
from minipd.static import InputSpec


class Windows(nn.Layer):
    """Convolution, interpolation, pooling, transposed convolution, padding and shuffles of [N, 2, 6, 6]."""

    def __init__(self):
        super().__init__()
        self.narrow, self.wide = nn.Conv2D(2, 4, 3, padding="SAME"), nn.Conv2DTranspose(4, 2, 2, stride=2)

    def forward(self, x):
        x = F.interpolate(self.narrow(x), scale_factor=2, mode="bilinear")
        x = F.max_pool2d(x, 3, 2, 1) + F.adaptive_avg_pool2d(x, 6) + F.avg_pool2d(x, 2)
        x = F.pad(self.wide(x), [1, 1, 1, 1], "reflect")
        x = F.pixel_shuffle(paddle.concat([x, x], 1), 2)
        return F.fold(F.unfold(x, 2, 2), [28, 28], 2, 2)


def test_a_program_for_any_batch_computes_and_learns_what_eager_calls_do():
    paddle.seed(0)
    model, x = Windows(), paddle.rand([3, 2, 6, 6])

    def step(forward, images):
        out = forward(images)
        (out * out).mean().backward()
        gradients = [p.grad.numpy() for p in model.parameters()]
        model.clear_gradients()
        return out.numpy(), gradients

    want = [step(model.forward, x[:n]) for n in (3, 1)]
    traced = paddle.jit.to_static(Windows.forward.__get__(model), input_spec=[InputSpec([None, 2, 6, 6], "float32")])
    for n, (out, gradients) in zip((3, 1), want, strict=True):
        got, found = step(traced, x[:n])
        np.testing.assert_allclose(got, out, rtol=1e-5, atol=1e-6)
        for g, expected in zip(found, gradients, strict=True):
            np.testing.assert_allclose(g, expected, rtol=1e-4, atol=1e-6)
