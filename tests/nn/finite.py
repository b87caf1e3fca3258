"""Gradients by central differences, the oracle that knows no gradient rule."""

import numpy as np

import minipd as paddle

STEP = 1e-6


def check_gradients(function, *arrays, rtol=1e-6):
    """`function` of float64 tensors gives the gradients that differences of it show, for a random combination of its
    results."""
    arrays = [np.array(a, np.float64) for a in arrays]
    tensors = [paddle.to_tensor(a, stop_gradient=False) for a in arrays]
    out = function(*tensors)
    weights = np.random.default_rng(0).normal(size=out.shape)
    (out * paddle.to_tensor(weights)).sum().backward()

    def value():
        return float((function(*map(paddle.to_tensor, arrays)).numpy() * weights).sum())

    for n, (a, t) in enumerate(zip(arrays, tensors, strict=True)):
        want = np.empty_like(a)
        for i in np.ndindex(a.shape):
            middle = a[i]
            a[i] = middle + STEP
            up = value()
            a[i] = middle - STEP
            want[i] = (up - value()) / (2 * STEP)
            a[i] = middle
        got = np.zeros_like(a) if t.grad is None else t.grad.numpy()
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * max(1.0, np.abs(want).max()),
                                   err_msg=f"operand {n}")
