"""Functions of nn.functional in compiled programs: values and gradients are the eager ones, fused or not."""

import numpy as np
import pytest

import minipd as paddle
from minipd.jit import to_static
from minipd.nn import functional as F

rng = np.random.default_rng(8)
X, Y = rng.normal(size=(4, 6)), rng.uniform(0.1, 0.9, (4, 6))

FUNCTIONS = {
    "activations": lambda x, y: F.mish(x) + F.gelu(x) * F.hardswish(y) - F.elu(x) + F.softplus(y) * F.log_sigmoid(x),
    "layer_norm": lambda x, y: F.layer_norm(x, 6, y[0], y[1]) * y,
    "group_norm": lambda x, y: F.group_norm(x, 2, data_format="NC") * y,
    "batch_norm": lambda x, y: F.batch_norm(x, paddle.zeros([6], "float64"), paddle.ones([6], "float64"), training=True)
    * y,
    "local_response_norm": lambda x, y: F.local_response_norm(x * y, 3, data_format="NC"),
    "log_softmax": lambda x, y: F.log_softmax(x) * y,
    "binary": lambda x, y: F.binary_cross_entropy_with_logits(x, y) + F.binary_cross_entropy(y, y * 0.5),
    "kl_div": lambda x, y: F.kl_div(x, y) + F.smooth_l1_loss(x, y),
    "triplet": lambda x, y: F.triplet_margin_loss(x, y, x * y),
    "ctc": lambda x, y: F.ctc_loss((x * y).unsqueeze(1), *map(paddle.to_tensor, ([[1, 2]], [4], [2]))),
}


#: what fuses in a way of its own
FUSED = ("activations", "layer_norm", "local_response_norm")


@pytest.mark.parametrize("name,backend", [*((name, None) for name in FUNCTIONS), *((name, "CINN") for name in FUSED)])
def test_a_compiled_function(name, backend):
    def run(f):
        x, y = (paddle.to_tensor(a, stop_gradient=False) for a in (X, Y))
        out = f(x, y)
        (out * out).sum().backward()
        return [out.numpy(), x.grad.numpy(), y.grad.numpy()]
    for got, want in zip(run(to_static(FUNCTIONS[name], backend=backend)), run(FUNCTIONS[name]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
