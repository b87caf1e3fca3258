"""The layers of static.nn are those of `nn`, with parameters that they create: the same losses, step by step."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn, static

RNG = np.random.default_rng(0)
N = static.nn
IMAGES = RNG.standard_normal((2, 4, 7, 6)).astype("float32")
VOLUMES = RNG.standard_normal((2, 4, 4, 5, 3)).astype("float32")
ROWS = RNG.standard_normal((5, 6)).astype("float32")
NUMBERS = RNG.integers(0, 5, (4, 3))
STEPS = RNG.standard_normal((2, 5, 3)).astype("float32")


class RowConv(nn.Layer):
    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([3, 3])

    def forward(self, x):
        padded = paddle.concat([x, paddle.zeros([2, 2, 3])], axis=1)
        return sum(padded[:, i:i + 5] * self.weight[i] for i in range(3))


class Slopes(nn.Layer):
    def __init__(self, shape):
        super().__init__()
        self.weight = self.create_parameter(shape)

    def forward(self, x):
        return paddle.maximum(x, paddle.zeros_like(x)) + self.weight * paddle.minimum(x, paddle.zeros_like(x))


def normed(dim):
    class Normed(nn.Layer):
        def __init__(self):
            super().__init__()
            self.v = self.create_parameter([6, 3])
            self.g = self.create_parameter([1, 3] if dim == 1 else [1])
            self.bias = self.create_parameter([3], is_bias=True)

        def forward(self, x):
            length = paddle.sqrt((self.v * self.v).sum(axis=0, keepdim=True) if dim == 1 else (self.v * self.v).sum())
            return x @ (self.v * self.g / length) + self.bias
    return Normed()


CASES = {
    "conv2d": (lambda x: N.conv2d(x, 6, 3, stride=2, padding=1, groups=2, act="relu"), IMAGES,
               lambda: nn.Sequential(nn.Conv2D(4, 6, 3, 2, 1, groups=2), nn.ReLU())),
    "conv2d, channels last": (lambda x: N.conv2d(x, 3, [2, 3], bias_attr=False, data_format="NHWC"), IMAGES,
                              lambda: nn.Conv2D(6, 3, [2, 3], bias_attr=False, data_format="NHWC")),
    "conv2d_transpose": (lambda x: N.conv2d_transpose(x, 3, filter_size=3, stride=2, padding=1), IMAGES,
                         lambda: nn.Conv2DTranspose(4, 3, 3, 2, 1)),
    "conv2d_transpose of a size": (lambda x: N.conv2d_transpose(x, 3, output_size=[15, 12], stride=2), IMAGES,
                                   lambda: nn.Conv2DTranspose(4, 3, [3, 2], 2)),
    "conv3d": (lambda x: N.conv3d(x, 3, 2), VOLUMES, lambda: nn.Conv3D(4, 3, 2)),
    "conv3d_transpose": (lambda x: N.conv3d_transpose(x, 3, filter_size=2), VOLUMES,
                         lambda: nn.Conv3DTranspose(4, 3, 2)),
    "batch_norm": (lambda x: N.batch_norm(x, act="relu", momentum=0.5), IMAGES,
                   lambda: nn.Sequential(nn.BatchNorm2D(4, 0.5), nn.ReLU())),
    "batch_norm, is_test": (lambda x: N.batch_norm(x, is_test=True), IMAGES,
                            lambda: nn.BatchNorm2D(4, use_global_stats=True)),
    "layer_norm": (lambda x: N.layer_norm(x, begin_norm_axis=2, act="tanh"), IMAGES,
                   lambda: nn.Sequential(nn.LayerNorm([7, 6]), nn.Tanh())),
    "layer_norm, shift only": (lambda x: N.layer_norm(x, scale=False), ROWS,
                               lambda: nn.LayerNorm(6, weight_attr=False)),
    "group_norm": (lambda x: N.group_norm(x, 2), IMAGES, lambda: nn.GroupNorm(2, 4)),
    "instance_norm": (lambda x: N.instance_norm(x), IMAGES, lambda: nn.InstanceNorm2D(4)),
    "embedding": (lambda x: N.embedding(x, [5, 3], padding_idx=2), NUMBERS, lambda: nn.Embedding(5, 3, padding_idx=2)),
    "prelu, all": (lambda x: N.prelu(x, "all"), IMAGES, lambda: Slopes([1])),
    "prelu, channel": (lambda x: N.prelu(x, "channel"), IMAGES, lambda: Slopes([1, 4, 1, 1])),
    "prelu, element": (lambda x: N.prelu(x, "element", data_format="NHWC"), IMAGES, lambda: Slopes([1, 4, 7, 6])),
    "row_conv": (lambda x: N.row_conv(x, 2), STEPS, RowConv),
    "weight norm": (lambda x: N.fc(x, 3, weight_attr=static.WeightNormParamAttr()), ROWS, lambda: normed(None)),
    "weight norm, dim 1": (lambda x: N.fc(x, 3, weight_attr=static.WeightNormParamAttr(dim=1)), ROWS,
                           lambda: normed(1)),
}


def some(shape, n):
    return (np.abs(np.random.default_rng(n).standard_normal(shape)) * 0.3 + 0.1).astype("float32")


def eager_losses(layer, x, steps):
    for n, p in enumerate(p for p in layer.parameters()):
        p.set_value(some(p.shape, n))
    opt = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
    losses = []
    for _ in range(steps):
        loss = layer(paddle.to_tensor(x)).square().mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss.item())
    layer.eval()
    return losses, layer(paddle.to_tensor(x)).square().mean().item()


@pytest.mark.parametrize("name", CASES)
def test_training_one_layer(name):
    function, x, layer = CASES[name]
    want, want_in_evaluation = eager_losses(layer(), x, 3)
    paddle.enable_static()
    try:
        with static.scope_guard(static.Scope()), static.program_guard(static.Program(), static.Program()):
            main = static.default_main_program()
            loss = function(static.data("x", [None, *x.shape[1:]], str(x.dtype))).square().mean()
            test = main.clone(for_test=True)
            paddle.optimizer.SGD(0.1).minimize(loss)
            exe = static.Executor()
            exe.run(static.default_startup_program())
            main.set_state_dict({p.name: some(p.shape, n) for n, p in enumerate(main.trainable_parameters())})
            got = [exe.run(feed={"x": x}, fetch_list=[loss])[0].item() for _ in range(3)]
            in_evaluation = exe.run(test, feed={"x": x}, fetch_list=[loss])[0].item()
    finally:
        paddle.disable_static()
    np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(in_evaluation, want_in_evaluation, rtol=1e-5)


@pytest.fixture
def programs():
    paddle.enable_static()
    try:
        with static.scope_guard(static.Scope()), static.program_guard(static.Program(), static.Program()):
            yield
    finally:
        paddle.disable_static()


def run(fetch, **feed):
    exe = static.Executor()
    exe.run(static.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch)


def test_a_weight_with_a_norm_begins_as_the_weight(programs):
    x = static.data("x", [None, 6])
    y = N.fc(x, 3, weight_attr=static.WeightNormParamAttr(dim=0, name="w", initializer=nn.initializer.Constant(-0.5)),
             bias_attr=False)
    got, g = run([y, "w_g"], x=ROWS)
    np.testing.assert_allclose(got, ROWS @ np.full((6, 3), -0.5), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(g, np.full((6, 1), 0.75 ** 0.5), rtol=1e-6)


def test_spectral_norm(programs):
    w = static.create_parameter([4, 3, 2], "float32", name="w")
    got, first = run([N.spectral_norm(w, dim=1, power_iters=50), "w"])
    largest = np.linalg.norm(first.transpose(1, 0, 2).reshape(3, 8), 2)
    np.testing.assert_allclose(got, first / largest, rtol=1e-4, atol=1e-6)
    assert [p.trainable for p in static.default_main_program().all_parameters()] == [True, False, False]


def test_a_bilinear_product(programs):
    x, y = static.data("x", [None, 6]), static.data("y", [None, 2])
    z = N.bilinear_tensor_product(x, y, 3, act="sigmoid", name="b")
    got, w = run([z, "b.w_0"], x=ROWS, y=ROWS[:, :2])
    want = np.einsum("ni,kij,nj->nk", ROWS, w, ROWS[:, :2])
    np.testing.assert_allclose(got, 1 / (1 + np.exp(-want)), rtol=1e-4)


def test_statistics_have_the_names_they_are_given(programs):
    N.batch_norm(static.data("x", [None, 4, 2, 2]), moving_mean_name="mean", moving_variance_name="variance", name="bn")
    assert list(static.default_main_program().state_dict("param", _scope())) == ["bn.w_0", "bn.b_0", "mean", "variance"]


def _scope():
    static.Executor().run(static.default_startup_program())
    return static.global_scope()


@pytest.mark.parametrize("call, words", [
    (lambda x: N.conv2d(x, 5, 3, groups=2), "groups that divide it and the 4 channels, got num_filters=5 and groups=2"),
    (lambda x: N.conv3d(x, 5, 3), "conv3d: expected an input of 5 dimensions"),
    (lambda x: N.conv2d(static.data("u", [None, None, 3, 3]), 2, 3), "dimension 1 of the input to have a size"),
    (lambda x: N.conv2d_transpose(x, 2), "expected filter_size, or an output_size and padding in numbers"),
    (lambda x: N.conv2d(x, 2, 3, act="ReLU6!"), "an activation that is the name of a function .* got 'ReLU6!'"),
    (lambda x: N.layer_norm(x, begin_norm_axis=4), "begin_norm_axis from 1 to 3, got 4"),
    (lambda x: N.prelu(x, "some"), 'mode to be "all", "channel" or "element", got \'some\''),
    (lambda x: N.spectral_norm(x, dim=9), "expected a dim of the weight"),
    (lambda x: N.embedding(static.data("i", [2], "int64"), [3]), r"expected size \[rows, width\], got \[3\]"),
    (lambda x: N.row_conv(static.data("s", [2, 3, 4]), -1), "future_context_size of at least 0, got -1"),
    (lambda x: N.fc(x, 2, weight_attr=static.WeightNormParamAttr(dim=2)), "expected dim to be None or a dimension"),
])
def test_what_layers_refuse(programs, call, words):
    with pytest.raises(ValueError, match=words):
        call(static.data("x", [None, 4, 3, 3]))


def test_a_variable_that_counts(programs):
    count = static.create_global_var([1], 3.0, "float32", persistable=True, name="count")
    count.set_value(count * 2.0)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    assert [exe.run(fetch_list=["count"])[0].item() for _ in range(3)] == [6.0, 12.0, 24.0]
    assert static.default_main_program().all_parameters() == [] and count.persistable
    with pytest.raises(ValueError, match="has state called 'count' already"):
        static.create_global_var([1], 0.0, "float32", name="count")


@pytest.mark.parametrize("limited", [False, True])
def test_moving_averages(programs, limited):
    x = static.data("x", [None, 6])
    w = static.create_parameter([6], "float32", name="w")
    loss = (x * w).sum(axis=-1).square().mean()
    paddle.optimizer.SGD(0.05).minimize(loss)
    step = static.create_global_var([1], 0.0, "float32", name="step")
    step.set_value(step + 1.0)
    ema = static.ExponentialMovingAverage(0.9, thres_steps=step if limited else None)
    ema.update()
    exe = static.Executor()
    exe.run(static.default_startup_program())
    mean, decay = np.zeros(6), 0.9
    for n in range(1, 5):
        exe.run(feed={"x": ROWS}, fetch_list=[loss])
        now = np.array(static.global_scope().find_var("w"))
        decay = min(0.9, (n + 1) / (n + 10)) if limited else 0.9
        mean = decay * mean + (1 - decay) * now
    with ema.apply(exe):
        np.testing.assert_allclose(np.array(static.global_scope().find_var("w")), mean / (1 - decay ** 4), rtol=1e-4)
    np.testing.assert_array_equal(np.array(static.global_scope().find_var("w")), now)
    with ema.apply(exe, need_restore=False):
        pass
    assert (np.array(static.global_scope().find_var("w")) != now).any()
    ema.restore(exe)
    np.testing.assert_array_equal(np.array(static.global_scope().find_var("w")), now)


def test_moving_averages_are_of_static_mode():
    with pytest.raises(RuntimeError, match="expected static mode, got eager mode"):
        static.ExponentialMovingAverage()
