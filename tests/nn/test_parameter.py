"""First values: by the order of creation, lazily, and in parts."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.framework.context import MetaOnly, using
from minipd.framework.philox import key_of, normal, uniform
from minipd.framework.rank import current
from minipd.nn import initializer as init
from minipd.nn.initializer.given import ZeroRow


def model():
    paddle.seed(11)
    return nn.Sequential(nn.Embedding(5, 4, padding_idx=-1), nn.RMSNorm(4), nn.Linear(4, 3),
                         nn.Linear(3, 2, weight_attr=nn.initializer.Normal(0.0, 0.02)))


def test_the_nth_parameter_draws_from_the_nth_stream():
    m = model()
    assert current().rng.created == 6
    limit = np.sqrt(6.0 / (4 + 3))
    np.testing.assert_array_equal(m[2].weight.numpy(), uniform(key_of(11, "init", 2), (4, 3), -limit, limit))
    np.testing.assert_array_equal(m[3].weight.numpy(), normal(key_of(11, "init", 4), (3, 2), 0.0, 0.02))
    assert m[1].weight.tolist() == [1.0] * 4 and m[2].bias.tolist() == [0.0] * 3
    assert m[0].weight.numpy()[4].tolist() == [0.0] * 4 and m[0].weight.numpy()[:4].all()


def test_lazy_parameters_get_the_values_they_would_have_had():
    eager = model()
    with paddle.LazyGuard():
        lazy = model()
    assert all(type(p.payload).__name__ == "Unfilled" for p in lazy.parameters())
    for p in reversed(lazy.parameters()):               # in any order
        p.initialize()
        assert p.initialize is None
    for (name, a), b in zip(eager.named_parameters(), lazy.parameters(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=name)


@pytest.mark.parametrize("offsets,local", [((0, 0), (2, 4)), ((2, 1), (3, 2)), ((3, 0), (2, 4)), ((5, 0), (0, 4)),
                                           ((0, 0), (5, 4))])
def test_a_part_is_a_part_of_the_whole(offsets, local):
    initializers = [init.Uniform(-2, 3), init.Normal(1, 2), init.XavierUniform(), init.XavierNormal(),
                    init.KaimingUniform(), init.KaimingNormal(mode="fan_out"), init.Constant(3),
                    init.Assign(np.arange(20.0).reshape(5, 4)), init.TruncatedNormal(), init.Orthogonal(),
                    ZeroRow(init.Normal(), 3)]
    for i in initializers:
        values = []
        for window in (None, ((5, 4), offsets, local)):
            paddle.seed(3)
            with paddle.LazyGuard():
                p = paddle.create_parameter([5, 4], "float64", default_initializer=i)
            p.initialize(window)
            values.append(p.numpy())
        part = tuple(slice(o, o + n) for o, n in zip(offsets, local, strict=True))
        np.testing.assert_array_equal(values[1], values[0][part], err_msg=repr(i))


def test_a_window_of_another_shape_is_refused():
    with paddle.LazyGuard():
        p = paddle.create_parameter([5, 4], name="w")
    with pytest.raises(ValueError, match=r"initialize of w: expected a window of global shape \[5, 4\], got \[4, 4\]"):
        p.initialize(((4, 4), (0, 0), (2, 4)))


def test_an_unfilled_parameter_is_no_operand():
    with paddle.LazyGuard():
        layer = nn.Linear(2, 3)
    said = (r"parameter linear_\d+.w_0 f32\[2, 3\] was made under LazyGuard and has no values yet: call its "
            r"initialize\(\) first, or give it placements with shard_tensor")
    for use in (lambda: layer(paddle.ones([1, 2])), lambda: layer.weight.numpy(), lambda: layer.weight + 1.0,
                lambda: layer.weight.sum(), lambda: layer.weight[0], lambda: layer.weight.astype("float64"),
                lambda: nn.functional.embedding(paddle.to_tensor([0]), layer.weight)):
        with pytest.raises(RuntimeError, match=said):
            use()
    assert layer.weight.shape == [2, 3] and "f32[2, 3]" in repr(layer.weight)


def test_loading_fills():
    with paddle.LazyGuard():
        layer = nn.Linear(1, 1)
    source = np.full((1, 1), 2.0, "float32")
    value = paddle.to_tensor(source)
    layer.set_state_dict({"weight": value, "bias": np.zeros(1, "float32")})
    value.zero_()
    assert layer.weight.initialize is None
    assert layer(paddle.ones([1, 1])).item() == 2.0


def test_lazy_parameters_change_dtype_before_they_are_filled():
    with paddle.LazyGuard():
        layer = nn.Linear(2, 2).to(dtype="float64")
    layer.weight.initialize()
    assert layer.weight.dtype == "float64"


def test_only_shapes_are_reckoned_where_only_shapes_are_asked_for():
    with using(ground=MetaOnly()):
        layer = nn.Linear(1 << 20, 1 << 20)             # 4 TiB
        out = layer(paddle.ones([8, 1 << 20]))
    assert out.shape == [8, 1 << 20]
    with pytest.raises(TypeError, match=r"numpy\(\): expected a tensor with values, got f32\[8, 1048576\]"):
        out.numpy()


def test_param_attr():
    attr = paddle.ParamAttr(name="w", initializer=init.Constant(2.0), learning_rate=0.5, trainable=False,
                            need_clip=False, regularizer=paddle.regularizer.L2Decay(0.1))
    p = nn.Linear(1, 2, weight_attr=attr).weight
    assert (p.name, p.tolist(), p.trainable, p.need_clip) == ("w", [[2.0, 2.0]], False, False)
    assert p.optimize_attr == {"learning_rate": 0.5} and p.regularizer is attr.regularizer
    assert nn.Linear(1, 2, bias_attr=False).bias is None
    with pytest.raises(TypeError, match="parameter attribute: expected a ParamAttr, a name, an Initializer"):
        nn.Linear(1, 2, weight_attr=3.0)


def test_default_dtype():
    paddle.set_default_dtype("float64")
    try:
        assert nn.Linear(1, 1).weight.dtype == "float64"
        assert nn.Layer(dtype="float32").create_parameter([1]).dtype == "float32"
    finally:
        paddle.set_default_dtype("float32")
