"""Compiled functions agree with eager ones: results, gradients, state, random numbers; and when they are compiled."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.framework.context import using
from minipd.jit import enable_to_static, not_to_static, to_static
from minipd.ops.random import dropout
from minipd.static import InputSpec

R = np.random.default_rng(0)


def tensor(*shape, wants=False, dtype=np.float64):
    return paddle.to_tensor(R.standard_normal(shape).astype(dtype), stop_gradient=not wants)


def both(f, *tensors, backend=None):
    """(results, gradients) of f, eager and compiled, the sum of the results differentiated."""
    found = []
    for g in (f, to_static(f, backend=backend)):
        for x in tensors:
            x.clear_gradient()
        outs = g(*tensors)
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        total = sum((o.sum() for o in outs if not o.stop_gradient), paddle.zeros([], "float64"))
        if not total.stop_gradient:
            total.backward()
        found.append(([o.numpy() for o in outs], [None if x.grad is None else x.grad.numpy() for x in tensors]))
    return found


def agree(f, *tensors, backend=None):
    (outs, grads), (outs2, grads2) = both(f, *tensors, backend=backend)
    assert len(outs) == len(outs2)
    for a, b in zip(outs + grads, outs2 + grads2, strict=True):
        if a is None:
            assert b is None
        else:
            assert a.dtype == b.dtype
            np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------------------------------------------- agreement
def softmax(x):
    e = paddle.exp(x - x.max(axis=-1, keepdim=True))
    return e / e.sum(axis=-1, keepdim=True)


@pytest.mark.parametrize("f", [
    lambda x, y: x * y + x, lambda x, y: (x.matmul(y, transpose_y=True), x), lambda x, y: softmax(x) * y,
    lambda x, y: [x.detach() * y, (x > 0.0)], lambda x, y: x.reshape([-1])[2:5], lambda x, y: (x, x),
    lambda x, y: paddle.concat([x, y], 1).transpose([1, 0]), lambda x, y: x.mean() + y.mean() * 2.0,
    lambda x, y: paddle.split(x * y, [1, 3], 1)[1],
], ids=range(9))
def test_eager_and_compiled_agree(f):
    agree(f, tensor(3, 4, wants=True), tensor(3, 4, wants=True))
    agree(f, tensor(3, 4, wants=True), tensor(3, 4))


def test_generated_kernels_agree_too():
    def norm(x, w):
        return softmax(x / paddle.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w)
    agree(norm, tensor(5, 7, wants=True), tensor(7, wants=True), backend="CINN")
    f = to_static(norm, backend="CINN")
    f(tensor(5, 7, wants=True), tensor(7, wants=True))
    for executor in (f.last.forward, f.last.backward):
        assert any(op.name() == "cinn_runtime.jit_kernel" for op in executor.program.walk())


def test_branches_are_computed_again_for_their_gradient():
    def f(x, y):
        return paddle.static.nn.cond(x.sum() > y.sum(), lambda: paddle.tanh(x) * y, lambda: x * x - y)
    for _ in range(4):
        agree(f, tensor(2, 3, wants=True), tensor(2, 3, wants=True))


def test_a_gradient_flows_through_what_is_around():
    x = tensor(3, wants=True)
    f = to_static(lambda v: v * v)
    ((f(x * 3.0)) * 2.0).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 36 * x.numpy())


def test_a_call_is_one_node():
    x = tensor(3, wants=True)
    y = to_static(lambda v: paddle.tanh(v * v) + v)(x)
    assert y.node.row.name.endswith("<lambda>") and y.node.edges == [(x.node, 0)]
    assert paddle.grad(y, x)[0].shape == [3]


def test_second_derivatives():
    x = tensor(3, wants=True)
    y = to_static(lambda v: paddle.tanh(v) * v * v)(x)
    z = paddle.tanh(x) * x * x
    for out, want in ((y, z),):
        found = []
        for first in (out, want):
            dx, = paddle.grad(first.sum(), x, create_graph=True)
            found.append([dx.numpy(), paddle.grad(dx.sum(), x)[0].numpy()])
        np.testing.assert_allclose(*found, rtol=1e-12)


def test_only_what_backward_needs_is_saved():
    f = to_static(lambda x, y: paddle.tanh(x * y + 1.0) + y)
    f(tensor(2, wants=True), tensor(2, wants=True))
    joint = f.last.joint
    assert len(joint.saved) == 1 and sorted(joint.feeds) == ["input_0", "input_1"]     # tanh's result, x, y
    g = to_static(lambda x, y: (x + y).sum())
    g(tensor(2, wants=True), tensor(2, wants=True))
    assert g.last.joint.saved == [] and g.last.joint.feeds == []            # shapes alone


def test_writing_what_backward_needs_is_refused():
    x, y = tensor(2, wants=True), tensor(2)
    z = to_static(lambda a, b: a * b)(x, y)
    y.add_(y)
    with pytest.raises(RuntimeError, match="was written in place after the compiled function had read it"):
        z.sum().backward()


# ------------------------------------------------------------------------------------------- around the function
def test_parameters_are_read_anew_and_get_gradients():
    layer = nn.Linear(4, 2)
    f = to_static(lambda x: layer(x).sum())
    x = tensor(3, 4, dtype=np.float32)
    optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
    for _ in range(3):
        eager = layer(x).sum()
        eager.backward()
        want = [p.grad.numpy() for p in layer.parameters()]
        layer.clear_gradients()
        out = f(x)
        assert out.item() == pytest.approx(eager.item(), rel=1e-6)
        out.backward()
        for p, g in zip(layer.parameters(), want, strict=True):
            np.testing.assert_allclose(p.grad.numpy(), g, rtol=1e-6)
        optimizer.step()
        layer.clear_gradients()
    assert len(f.cache) == 1


def test_captured_tensors_are_bound_by_identity():
    held = {"scale": tensor(2, wants=True)}
    f = to_static(lambda x: x * held["scale"])
    x = paddle.ones([2], "float64")
    assert f(x).tolist() == held["scale"].tolist()
    with paddle.no_grad():
        held["scale"].set_value(np.array([5.0, 6.0]))
    y = f(x)
    assert y.tolist() == [5.0, 6.0] and len(f.cache) == 1
    y.sum().backward()
    assert held["scale"].grad.tolist() == [1.0, 1.0]


def test_layers_and_methods():
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.register_buffer("calls", paddle.zeros([]))

        @to_static
        def forward(self, x):
            self.calls.add_(paddle.ones([]))
            return self.inner(x)
    a, b = Net(), Net()
    x = tensor(2, 3, dtype=np.float32)
    for net, n in ((a, 2), (b, 1)):
        for _ in range(n):
            np.testing.assert_allclose(net(x).numpy(), net.inner(x).numpy(), rtol=1e-6)
    assert a.calls.item() == 2 and b.calls.item() == 1
    plain = nn.Linear(3, 3)
    want = plain(x).numpy()
    compiled = to_static(plain)
    assert compiled is plain and list(plain.state_dict()) == ["weight", "bias"]
    np.testing.assert_allclose(plain(x).numpy(), want, rtol=1e-6)
    assert len(plain.forward.cache) == 1
    plain.forward.rollback()
    np.testing.assert_allclose(plain(x).numpy(), want)


def test_an_outside_tensor_that_is_written_is_state():
    outside = paddle.zeros([2])
    view = outside[:1]

    @to_static
    def f(x):
        outside.add_(x)
        return outside * 10.0
    for n in (1.0, 2.0, 3.0):
        assert f(paddle.ones([2])).tolist() == [10 * n, 10 * n]
        assert outside.tolist() == [n, n] and view.tolist() == [n]


def test_a_step_with_its_optimizer():
    """Forward, gradient by the tape and update traced together; parameters are state that is written over."""
    def net():
        paddle.seed(3)
        layer = nn.Linear(3, 1)
        optimizer = paddle.optimizer.AdamW(0.1, parameters=layer.parameters())
        optimizer.prepare()
        return layer, optimizer
    (one, opt1), (two, opt2) = net(), net()
    x = tensor(5, 3, dtype=np.float32)

    def step(layer, optimizer, x):
        loss = (layer(x) * layer(x)).mean()
        grads = paddle.grad(loss, layer.parameters())
        optimizer.apply_gradients(list(zip(layer.parameters(), grads, strict=True)))
        return loss.detach()
    compiled = to_static(lambda v: step(two, opt2, v))
    for _ in range(3):
        a, b = step(one, opt1, x), compiled(x)
        assert b.item() == pytest.approx(a.item(), rel=1e-5)
    np.testing.assert_allclose(one.weight.numpy(), two.weight.numpy(), rtol=1e-5)


# ------------------------------------------------------------------------------------------------- randomness
def test_every_call_draws_anew_as_eager_does():
    x = paddle.ones([64])

    def f(v):
        return dropout(v, 0.5) + dropout(v, 0.5)
    compiled = to_static(f)
    paddle.seed(7)
    want = [f(x).numpy() for _ in range(3)]
    paddle.seed(7)
    got = [compiled(x).numpy() for _ in range(3)]
    np.testing.assert_array_equal(got, want)
    assert not np.array_equal(got[0], got[1])


def test_the_gradient_sees_the_same_mask():
    x = paddle.ones([64])
    x.stop_gradient = False
    y = to_static(lambda v: dropout(v, 0.5))(x)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.numpy())


# ------------------------------------------------------------------------------------------------------ guards
def test_when_a_function_is_compiled():
    def f(x, k=1, mode="a"):
        return x * float(k)
    g = to_static(f)
    a, b = paddle.ones([2]), paddle.ones([3])
    counts = []
    for call in (lambda: g(a), lambda: g(a), lambda: g(b), lambda: g(a, 2), lambda: g(a, k=2), lambda: g(a, 1, "b"),
                 lambda: g(a, True), lambda: g(a.astype("float64"))):
        call()
        counts.append(g.get_traced_count())
    assert counts == [1, 1, 2, 3, 4, 5, 6, 7]
    with paddle.no_grad():
        g(a)
    assert g.get_traced_count() == 8


def test_training_and_evaluation_are_two_programs():
    layer = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))
    to_static(layer)
    x = paddle.ones([2, 8])
    layer.eval()
    np.testing.assert_array_equal(layer(x).numpy(), layer(x).numpy())
    layer.train()
    assert not np.array_equal(layer(x).numpy(), layer(x).numpy())
    assert layer.forward.get_traced_count() == 2


def test_open_dimensions_are_compiled_once():
    f = to_static(lambda x, y: (x.reshape([-1, 2]) * 2.0).sum() + y.sum(), input_spec=[
        InputSpec([None, 4], "float64"), InputSpec(["N"], "float64")])
    for n, m in ((1, 3), (5, 3), (2, 7)):
        x, y = tensor(n, 4, wants=True), tensor(m, wants=True)
        out = f(x, y)
        assert out.item() == pytest.approx(2 * x.numpy().sum() + y.numpy().sum())
        out.backward()
        assert x.grad.tolist() == [[2.0] * 4] * n and y.grad.tolist() == [1.0] * m
    assert len(f.cache) == 1
    assert str(f.concrete_program.main_program).count("shape:[-1,4]") == 1
    with pytest.raises(ValueError, match="expected 4 for dimension 1"):
        f(tensor(2, 5), tensor(2))
    with pytest.raises(ValueError, match="expected InputSpec.* for tensor 0, got f32.*cast it first"):
        f(tensor(2, 4, dtype=np.float32), tensor(2))
    with pytest.raises(ValueError, match="expected 2 tensors, one for each entry of input_spec, got 1"):
        f(tensor(2, 4))


def test_a_captured_tensor_that_changes_its_shape_is_traced_again():
    held = {"t": paddle.ones([2])}
    f = to_static(lambda x: x + held["t"])
    assert f(paddle.ones([1])).shape == [2]
    held["t"].payload = np.ones(3, np.float32)
    assert f(paddle.ones([1])).shape == [3]


# ------------------------------------------------------------------------------------------------------ errors
def test_asking_a_traced_tensor_for_its_value_teaches():
    def f(x):
        scale = x.sum().item()
        return x * scale
    with pytest.raises(TypeError) as caught:
        to_static(f)(paddle.ones([2]))
    text = str(caught.value)
    assert "item(): expected a tensor with values" in text and "scale = x.sum().item()" in text
    assert f"{__file__}:" in text and "paddle.static.nn.cond" in text and "paddle.where" in text


def test_wrong_requests():
    with pytest.raises(ValueError, match="expected backend 'CINN' or None, got 'XLA'"):
        to_static(lambda x: x, backend="XLA")
    with pytest.raises(TypeError, match="expected input_spec, build_strategy, backend, full_graph, got full_grap"):
        to_static(lambda x: x, full_grap=False)
    with pytest.raises(TypeError, match="expected a function or a Layer, got 3"):
        to_static(3)
    with pytest.raises(ValueError, match="expected a call, or an input_spec, before concrete_program"):
        to_static(lambda x: x).concrete_program


# -------------------------------------------------------------------------------------------------- switching off
def test_functions_can_be_left_alone():
    def f(x):
        return x.item() + 1
    assert to_static(not_to_static(f)) is f
    compiled = to_static(f)
    enable_to_static(False)
    try:
        assert compiled(paddle.ones([])) == 2.0
    finally:
        enable_to_static(True)


def test_inside_of_another_trace_it_is_a_part_of_that():
    inner = to_static(lambda x: x * 2.0)
    outer = to_static(lambda x: inner(x) + 1.0)
    assert outer(paddle.ones([2])).tolist() == [3.0, 3.0] and not inner.cache
    assert [op.name() for op in outer.concrete_program.main_program.global_block()].count("pd_op.multiply") == 1


def test_the_program_of_a_specification():
    f = to_static(lambda x: x * 2.0, input_spec=[InputSpec([None, 3], "float32", name="x")])
    program = f.concrete_program
    assert [v.shape[1] for v in program.inputs] == [3] and program.outputs[0].shape[1] == 3
    with using(grad=False):
        assert f(paddle.ones([4, 3])).shape == [4, 3]


def test_zeros_of_both_signs_are_two_values():
    def f(x):
        if x.sum() > 0:
            z = 0.0
        else:
            z = -0.0
        return 1 / paddle.full([1], 1.0) * z
    compiled = paddle.jit.to_static(f)
    for x in (1.0, -1.0):
        assert np.signbit(compiled(paddle.to_tensor([x])).numpy()) == (x < 0)
