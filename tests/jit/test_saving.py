"""What a compiled function saves for its gradient: less where the backend fuses, with the same gradients."""

import numpy as np
import pytest

import minipd as paddle
from minipd.jit import to_static
from minipd.static import InputSpec
from tests.jit.test_to_static import agree, softmax, tensor


def saved(f, *tensors, backend="CINN", input_spec=None):
    """The shapes of what the forward program saves, and the names of the inputs that the backward program reads."""
    g = to_static(f, input_spec, backend=backend)
    g(*tensors)
    program = g.last.joint.forward
    shapes = [tuple(program.get_output_value_by_name(n).shape) for n in g.last.joint.saved]
    return sorted(shapes, key=str), sorted(g.last.joint.feeds)


def rms_norm(x, w):
    return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w


def cross_entropy(x, label):
    z = x - x.max(axis=-1, keepdim=True)
    return (paddle.log(paddle.exp(z).sum(-1, keepdim=True)) - paddle.take_along_axis(z, label, -1)).mean()


def swiglu(gate, up):
    return gate * paddle.sigmoid(gate) * up


def test_a_fused_gradient_saves_one_number_per_row():
    x, w = tensor(5, 7, wants=True), tensor(7, wants=True)
    label = paddle.to_tensor(np.array([[0], [6], [3], [3], [1]]))
    assert saved(rms_norm, x, w) == ([(5, 1)], ["input_0", "input_1"])
    assert saved(softmax, x) == ([(5, 1), (5, 1)], ["input_0"])
    assert saved(cross_entropy, x, label) == ([(5, 1), (5, 1)], ["input_0", "input_1"])
    assert saved(swiglu, x, tensor(5, 7, wants=True)) == ([], ["input_0", "input_1"])
    for f, arguments in ((rms_norm, (x, w)), (softmax, (x,)), (swiglu, (x, tensor(5, 7, wants=True)))):
        agree(f, *arguments, backend="CINN")
    for backend in (None, "CINN"):
        agree(lambda x: cross_entropy(x, label), x, backend=backend)


def test_library_kernels_save_what_they_have_computed():
    shapes, _ = saved(softmax, tensor(5, 7, wants=True), backend=None)
    assert (5, 7) in shapes


def test_products_and_random_numbers_are_not_computed_again():
    def mlp(x, w):
        return paddle.tanh(paddle.nn.functional.dropout(x.matmul(w), 0.5)) * 2.0
    shapes, feeds = saved(mlp, tensor(5, 7, wants=True), tensor(7, 3, wants=True))
    assert shapes == [(5, 3)] and feeds == ["input_0", "input_1", "key_0"]     # what dropout gave: tanh of it is cheap


def test_what_takes_as_much_to_compute_again_is_saved():
    def f(x, y):
        return paddle.tanh(x.matmul(y) + y.matmul(x)) * 2.0
    assert saved(f, tensor(4, 4, wants=True), tensor(4, 4, wants=True))[0] == [(4, 4)]      # and not both products


def test_open_dimensions():
    spec = [InputSpec([-1, 7], "float64", stop_gradient=False)]
    shapes, feeds = saved(softmax, tensor(5, 7, wants=True), input_spec=spec)
    assert len(shapes) == 2 and all(len(s) == 2 and s[1] == 1 for s in shapes) and feeds == ["input_0"]


@pytest.mark.parametrize("backend", [None, "CINN"])
def test_state_that_changes_in_the_call_has_its_old_value_in_the_gradient(backend):
    layer = paddle.nn.Layer()
    layer.register_buffer("count", paddle.to_tensor(np.float64(2)))

    @to_static(backend=backend)
    def f(x):
        y = paddle.exp(x * layer.count)
        layer.count.add_(paddle.to_tensor(np.float64(1)))
        return y.sum()
    x = tensor(3, wants=True)
    f(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2 * x.numpy()), rtol=1e-12)
    assert layer.count.item() == 3


def test_a_sum_of_several_is_computed_again_from_its_parts():
    """Its operands are a bundle, which is no value to save."""
    def f(x):
        return paddle.exp(paddle.add_n([x, x * 2.0]))
    shapes, feeds = saved(f, tensor(3, wants=True))
    assert shapes == [] and feeds == ["input_0"]
    x = tensor(3, wants=True)
    to_static(f, backend="CINN")(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * np.exp(3 * x.numpy()), rtol=1e-12)
