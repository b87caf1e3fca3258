"""Layer: what it holds under which name, hooks, modes, state."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.framework.tensor import Parameter


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 3)
        self.gain = self.create_parameter([3])
        self.blocks = nn.LayerList([nn.Embedding(4, 2), nn.Dropout(0.1)])
        self.register_buffer("table", paddle.ones([1]))
        self.register_buffer("scratch", paddle.ones([1]), persistable=False)

    def forward(self, x):
        return self.inner(x) * self.gain


def test_names_are_those_of_paddle():
    """The same class in Paddle 3.3.1 gives these names, in this order."""
    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["gain", "inner.weight", "inner.bias", "blocks.0.weight"]
    assert list(net.state_dict()) == ["gain", "table", "inner.weight", "inner.bias", "blocks.0.weight"]
    assert [name for name, _ in net.named_sublayers(include_self=True)] == ["", "inner", "blocks", "blocks.0",
                                                                           "blocks.1"]
    assert [name for name, _ in net.named_buffers("net")] == ["net.table", "net.scratch"]
    first = net.full_name()
    assert first.startswith("net_") and net.gain.name == f"{first}.w_0"
    assert net.inner.bias.name == f"{net.inner.full_name()}.b_0"
    assert repr(net) == """Net(
  (inner): Linear(in_features=2, out_features=3, dtype=float32)
  (blocks): LayerList(
    (0): Embedding(4, 2, sparse=False, scale_grad_by_freq=False)
    (1): Dropout(p=0.1, axis=None, mode=upscale_in_train, inplace=False)
  )
)"""


def test_names_count_per_rank_context():
    from minipd.framework.context import RankContext
    from minipd.framework.rank import enter, leave
    token = enter(RankContext())
    try:
        assert [nn.Linear(1, 1).weight.name for _ in range(2)] == ["linear_0.w_0", "linear_1.w_0"]
        assert nn.RMSNorm(2).full_name() == "rms_norm_0"
        assert paddle.create_parameter([1]).name == "create_parameter_0.w_0"
        assert nn.Linear(1, 1, weight_attr="mine").weight.name == "mine"
    finally:
        leave(token)


def test_a_shared_layer_is_one_layer_under_two_names():
    """In Paddle too: parameters() has the tensors once, the state_dict under every name."""
    class Tied(nn.Layer):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)
            self.b = self.a
            self.w = self.a.weight
    net = Tied()
    assert [name for name, _ in net.named_parameters()] == ["w", "a.bias"]
    assert list(net.state_dict()) == ["w", "a.weight", "a.bias", "b.weight", "b.bias"]
    assert len(list(net.named_parameters(remove_duplicate=False))) == 5
    assert len(net.sublayers()) == 1


def test_a_parameter_is_not_replaced_by_something_else():
    net = Net()
    with pytest.raises(TypeError, match=r"Net.gain is a parameter: expected a Parameter or None, got float; "
                                        r"self.gain.set_value\(...\)"):
        net.gain = 3.0
    net.gain = None
    assert "gain" not in net.state_dict()


def test_a_parameter_of_a_tensor():
    """It shares the memory, as in Paddle; a layer of another name is the same layer."""
    x = paddle.ones([2])
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.fixed = nn.Parameter(x), nn.Parameter(paddle.zeros([1]), requires_grad=False)
    net = Scaled()
    assert [name for name, _ in net.named_parameters()] == ["scale", "fixed"] and net.fixed.stop_gradient
    x[0] = 5.0
    (net.scale * 3).sum().backward()
    assert net.scale.tolist() == [5, 1] and net.scale.grad.tolist() == [3, 3] and net.scale.is_leaf
    assert nn.ModuleList is nn.LayerList and nn.ModuleDict is nn.LayerDict


def test_super_init_comes_first():
    class Early(nn.Layer):
        def __init__(self):
            self.inner = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=r"Early: super\(\).__init__\(\) should be called first, before self.inner"):
        Early()


def test_adding_by_name():
    net = Net()
    p = net.create_parameter([2], is_bias=True)
    assert net.add_parameter("extra", p) is p and net.extra is p
    assert net.add_sublayer("more", nn.Identity()) is net.more
    with pytest.raises(KeyError, match="expected a name that the layer does not use yet, got 'inner'"):
        net.add_parameter("inner", p)
    with pytest.raises(KeyError, match="got 'forward'"):
        net.register_buffer("forward", paddle.ones([1]))
    with pytest.raises(TypeError, match="add_parameter.'x'.: expected a Parameter, got Tensor; make one with"):
        net.add_parameter("x", paddle.ones([1]))
    with pytest.raises(TypeError, match="add_sublayer"):
        net.add_sublayer("x", p)
    assert net.create_parameter([2], attr=False) is None


def test_a_layer_without_forward_says_so():
    with pytest.raises(NotImplementedError, match=r"Layer defines no forward\(\)"):
        nn.Layer()(1)


def test_hooks_see_and_replace():
    layer, seen = nn.Identity(), []
    first = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs))
    second = layer.register_forward_pre_hook(lambda _, inputs: inputs[0] + 1)
    layer.register_forward_post_hook(lambda _, inputs, out: out * 10)
    layer.register_forward_post_hook(lambda _, inputs, out: out + 5, prepend=True)
    assert layer(1) == 70 and seen == [(1,)]
    first.remove()
    second.remove()
    first.remove()
    assert layer(1) == 60 and seen == [(1,)]


def test_hooks_with_keyword_arguments():
    class Scaled(nn.Layer):
        def forward(self, x, factor=1):
            return x * factor
    layer = Scaled()
    hook = layer.register_forward_pre_hook(lambda _, inputs, kwargs: (inputs, {"factor": 3}), with_kwargs=True)
    assert layer(2, factor=1) == 6
    hook.remove()
    layer.register_forward_pre_hook(lambda _, inputs, kwargs: 1, with_kwargs=True)
    with pytest.raises(TypeError, match=r"forward pre hook of scaled_\d+: expected None or \(inputs, kwargs\), got"):
        layer(2)


def test_apply_visits_inner_layers_first():
    order = []
    nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU())).apply(lambda layer: order.append(type(layer).__name__))
    assert order == ["Linear", "ReLU", "Sequential", "Sequential"]


def test_modes_reach_every_layer():
    net = Net()
    assert net.eval() is net and not net.blocks[1].training
    x = paddle.ones([4])
    assert net.blocks[1](x) is x
    net.train()
    assert net.blocks[1].training


def test_parameters_keep_their_identity_in_another_dtype():
    net = Net()
    p = net.inner.weight
    before = p.numpy()
    assert net.to(dtype="float64").inner.weight is p
    assert p.dtype == "float64" and net.table.dtype == "float64" and not p.stop_gradient
    np.testing.assert_array_equal(p.numpy(), before.astype("float64"))
    net(paddle.ones([1, 2], "float64")).sum().backward()
    assert p.grad.dtype == "float64"
    net.astype("bfloat16")
    assert p.grad.dtype == "bfloat16"
    with pytest.raises(ValueError, match="expected the device 'cpu', .*got 'gpu:0'"):
        net.to("gpu:0")


def test_clear_gradients():
    net = nn.Linear(2, 1)
    net(paddle.ones([1, 2])).sum().backward()
    net.clear_gradients()
    assert net.weight.grad.tolist() == [[0.0], [0.0]]
    net.clear_gradients(set_to_zero=False)
    assert net.weight.grad is None
    net.zero_grad(set_to_none=False)
    assert net.requires_grad_(False).weight.stop_gradient and not net.requires_grad_().weight.stop_gradient


def test_a_tensor_among_the_attributes_is_a_buffer_of_no_state():
    net = nn.Identity()
    net.table = paddle.ones([2])
    assert [name for name, _ in net.named_buffers()] == ["table"] and list(net.state_dict()) == []
    assert list(net.to_static_state_dict()) == ["table"]
    with pytest.raises(TypeError, match="Identity.table is a buffer: expected a Tensor or None, got int"):
        net.table = 3
    net.table = None
    assert net.buffers() == []


def test_by_a_dotted_name():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Identity()))
    assert model.get_sublayer("1.0") is model[1][0] and model.get_submodule("") is model
    assert model.get_parameter("0.weight") is model[0].weight
    model.set_sublayer("1.1", nn.Tanh(), strict=True)
    assert type(model[1][1]) is nn.Tanh
    model.add_module("extra", nn.ReLU())
    assert [name for name, _ in model.named_modules()] == ["", "0", "1", "1.0", "1.1", "extra"]
    assert len(list(model.modules())) == 6
    model.register_buffer("b", paddle.ones([1]))
    assert model.get_buffer("b") is model.b
    with pytest.raises(AttributeError, match="Sequential: expected a sublayer '5', there is nothing of that name"):
        model.get_sublayer("1.5")
    with pytest.raises(AttributeError, match="expected a parameter '0', there is a Linear of that name"):
        model.get_parameter("0")
    with pytest.raises(AttributeError, match="expected a sublayer '7', there is nothing of that name"):
        model.set_sublayer("7", nn.ReLU(), strict=True)


def test_dtypes_are_printed_as_they_were_given():
    net = nn.Linear(2, 2)
    assert repr(net.to(dtype="float64")) == "Linear(in_features=2, out_features=2, dtype=float64)"
    assert repr(net.float()) == "Linear(in_features=2, out_features=2, dtype=paddle.float32)"
    assert net.double().weight.dtype == "float64"
    assert net.bfloat16().bias.dtype == "bfloat16"
    with pytest.warns(UserWarning, match="the CPU does not compute in float16, the layer stays as it is"):
        assert net.half().weight.dtype == "bfloat16"
    model = nn.Sequential(nn.Linear(1, 1), nn.Embedding(2, 2)).bfloat16(excluded_layers=[nn.Linear])
    assert model[0].weight.dtype == "float32" and model[1].weight.dtype == "bfloat16"
    with pytest.raises(ValueError, match="Layer.cuda: expected the device 'cpu', .*got 'gpu'"):
        net.cuda()


def test_a_hook_is_called_where_forward_fails_if_it_always_is():
    seen = []
    layer = nn.Linear(2, 2)
    layer.register_forward_post_hook(lambda layer, inputs, out: seen.append("never"))
    layer.register_forward_hook(lambda layer, inputs, kwargs, out: seen.append(out), with_kwargs=True,
                                always_call=True)
    with pytest.raises(ValueError, match="matmul"):
        layer(paddle.ones([3, 3]))
    assert seen == [None]
    with pytest.raises(ValueError, match="a Layer has no backward"):
        layer.backward(1)


def test_tensors_named_after_the_layer():
    layer = nn.Linear(1, 1)
    x = layer.create_tensor("scratch")
    assert x.name == f"{layer.full_name()}.scratch" and x.dtype == "float32"
    assert layer.create_variable(dtype="int64").dtype == "int64"


# ---------------------------------------------------------------------------------------------------------- state
def test_what_a_state_holds():
    net = Net()
    seen = []
    hook = net.register_state_dict_hook(lambda state: seen.append(list(state)))
    state = net.state_dict(keep_vars=False, structured_name_prefix="net.")
    assert list(state) == ["net.gain", "net.table", "net.inner.weight", "net.inner.bias", "net.blocks.0.weight"]
    assert seen == [list(state)] and all(t.stop_gradient for t in state.values())
    hook.remove()
    assert list(net.state_dict({"old": 1}, include_sublayers=False)) == ["old", "gain", "table"] and len(seen) == 1
    with pytest.raises(ValueError, match="expected assign=False, got True"):
        net.load_state_dict({}, assign=True)


def test_a_state_goes_from_model_to_model():
    one, two = Net(), Net()
    assert two.set_state_dict(one.state_dict()) == ([], [])
    for (name, a), b in zip(one.state_dict().items(), two.state_dict().values(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=name)
        assert a is not b
    one.gain.set_value(np.zeros(3, "float32"))
    assert two.gain.numpy().any(), "the values were copied"


def test_a_loaded_parameter_still_trains():
    net = nn.Linear(2, 1)
    net.set_state_dict({"weight": np.ones((2, 1), "float32"), "bias": np.zeros(1, "float32")})
    net(paddle.to_tensor([[3.0, 4.0]])).sum().backward()
    assert net.weight.grad.tolist() == [[3.0], [4.0]]


def test_a_state_by_generated_names():
    net = nn.Linear(2, 1)
    net.set_state_dict({net.weight.name: np.ones((2, 1), "float32"), net.bias.name: np.zeros(1, "float32")},
                       use_structured_name=False)
    assert net.weight.tolist() == [[1.0], [1.0]]


def test_nothing_is_loaded_where_something_does_not_fit():
    net = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1))
    before = net[0].weight.numpy()
    state = {k: v.numpy() + 1 for k, v in net.state_dict().items()}
    state["1.weigth"] = state.pop("1.weight")
    state["1.bias"] = np.zeros(2, "float32")
    with pytest.raises(ValueError) as e:
        net.set_state_dict(state)
    assert str(e.value) == (
        "state of Sequential, 4 entries: missing (1): 1.weight; unexpected (1): 1.weigth (is 1.weigth meant for "
        "1.weight?); of another shape or dtype (1): 1.bias: expected f32[1], got f32[2].  Nothing was loaded; rename "
        "or convert the entries")
    np.testing.assert_array_equal(net[0].weight.numpy(), before)
    with pytest.raises(ValueError, match="of another shape or dtype .1.: bias: expected f32.1., got f64.1."):
        nn.Linear(1, 1).set_state_dict({"weight": np.ones((1, 1), "float32"), "bias": np.ones(1)})
    with pytest.raises(TypeError, match="expected a dict of name -> Tensor or array, got list"):
        net.set_state_dict([])


def test_a_part_of_a_state():
    net = nn.Linear(2, 1)
    assert net.load_state_dict({"bias": np.array([7.0], "float32"), "other": np.ones(1)}, strict=False) == (
        ["weight"], ["other"])
    assert net.bias.tolist() == [7.0]


def test_writing_into_a_parameter_leaves_it_trainable():
    """What is written carries no history, but the parameter is a leaf that wants a gradient all the same."""
    for write in (lambda p: p.set_value(np.full(2, 3.0, "float32")), lambda p: p.fill_(3.0),
                  lambda p: p.zero_().add_(3.0)):
        p = Parameter(np.ones(2, np.float32))
        with paddle.no_grad():
            write(p)
        assert not p.stop_gradient and p.is_leaf
        (p * p).sum().backward()
        assert p.grad.tolist() == [6.0, 6.0]
