"""Channels last inside of a program: transpositions wander to its ends, and the program means the same."""

import pytest

import minipd as paddle
from minipd.ir.verify import verify
from minipd.nn import AdaptiveAvgPool2D, BatchNorm2D, Conv1D, Conv2D, Layer, Linear, MaxPool2D, ReLU, Sequential
from minipd.passes import create_pass
from minipd.passes.compare import difference, outcome, random_feed, random_state
from minipd.passes.show import program_of
from minipd.static.nn import cond
from tests.passes.meaning import names

F = paddle.nn.functional


def arranged(function, *specs, name="auto_layout_pass"):
    """The operations after the pass, and the number of changes, checked."""
    program = program_of(function, *specs)
    changed, state, made = program.clone(), random_state(program), create_pass(name)
    count = made.run(changed)
    verify(changed)
    found = difference(outcome(program, random_feed(program), state), outcome(changed, random_feed(changed), state),
                       0.0 if made.exact else None)
    assert found is None, found
    assert (count == 0) == (changed == program) and made.run(changed) == 0
    state = dict(state)                     # weights are transposed, which is folded
    create_pass("constant_folding_pass", {"param_scope": state}).run(changed)
    return names(changed), count


def conv(a, b, size=1):
    return Conv2D(a, b, size, data_format="NHWC", bias_attr=False)


class Of(Layer):
    def __init__(self, function, **layers):
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            setattr(self, name, layer)
        self.eval()

    def forward(self, x):
        return self.function(self, x)


def test_a_network_transposes_at_its_ends():
    net = Sequential(conv(3, 4, 3), BatchNorm2D(4, data_format="NHWC"), ReLU(), MaxPool2D(2, 2, data_format="NHWC"),
                     conv(4, 2))
    net.eval()
    left, count = arranged(net, (2, 8, 8, 3))
    assert left.count("transpose") == 2 and left[0] == left[-1] == "transpose" and count >= 4
    one_dimension = Sequential(Conv1D(3, 4, 3, data_format="NLC"), ReLU(), Conv1D(4, 2, 1, data_format="NLC"))
    assert arranged(one_dimension, (2, 8, 3))[0].count("transpose") == 2


def test_channels_first_have_nothing_to_do():
    assert arranged(Sequential(Conv2D(3, 4, 3), ReLU(), Conv2D(4, 2, 1)), (2, 3, 8, 8))[1] == 0


def test_a_mean_over_the_image_ends_it():
    net = Of(lambda s, x: s.linear(s.c(x).mean([1, 2])), c=conv(3, 4), linear=Linear(4, 2))
    left, count = arranged(net, (2, 5, 6, 3))
    assert left.count("transpose") == 1 and count == 1


@pytest.mark.parametrize("axis, keepdim", [([1, 2], True), ([1, 2], False), (3, True), (3, False), (1, False),
                                           (2, True), ([1, 3], False), (None, False)])
def test_reductions(axis, keepdim):
    net = Of(lambda s, x: s.c(x).max(axis, keepdim), c=conv(3, 4))
    arranged(net, (2, 5, 6, 3), name="auto_layout_insert_pass")


def test_a_residual_that_is_read_transposed_back_already():
    def f(s, x):
        y = s.a(x)
        return s.c(F.relu(s.b(F.relu(y)) + y))
    left, _ = arranged(Of(f, a=conv(3, 4), b=conv(4, 4), c=conv(4, 2)), (2, 5, 5, 3))
    assert left.count("transpose") == 2

    def g(s, x):
        return s.b(s.a(x) + x)              # the input is needed in both layouts anyway
    left, _ = arranged(Of(g, a=conv(3, 3), b=conv(3, 2)), (2, 5, 5, 3))
    assert left.count("transpose") == 2


def test_what_is_concatenated():
    def f(s, x):
        return s.c(paddle.concat([s.a(x), F.relu(s.b(x))], -1))
    left, _ = arranged(Of(f, a=conv(3, 4), b=conv(3, 2), c=conv(6, 2)), (2, 5, 5, 3))
    assert left.count("transpose") == 3      # the input for either convolution (CSE merges them), and the result


def test_a_number_a_vector_and_another_activation():
    net = Of(lambda s, x: s.b(s.a(x) * 2.0 + s.bias.weight), a=conv(3, 4), b=conv(4, 2), bias=Linear(4, 1))
    net.function = lambda s, x: s.b(s.a(x) * 2.0 + s.bias.weight.flatten())
    assert arranged(net, (2, 5, 5, 3))[0].count("transpose") == 2

    def mixed(s, x):
        y = s.a(x)
        return s.b(y * paddle.exp(x))       # another activation, channels last: a transposition of it is no less
    assert arranged(Of(mixed, a=conv(3, 3), b=conv(3, 2)), (2, 5, 5, 3))[1] == 0


def test_it_stays_where_it_would_be_no_fewer():
    assert arranged(Of(lambda s, x: F.relu(s.a(x)), a=conv(3, 4)), (2, 5, 5, 3))[1] == 0

    def several(s, x):
        y = s.a(x)
        return y.exp(), y.tanh(), y.flatten(1)
    assert arranged(Of(several, a=conv(3, 4)), (2, 5, 5, 3))[1] == 0


def test_pooling_and_branches():
    def f(s, x):
        y = s.a(x)
        return cond(y.sum() > 0.0, lambda: s.b(F.relu(y)), lambda: s.b(y))
    left, _ = arranged(Of(f, a=conv(3, 4), b=conv(4, 2)), (2, 5, 5, 3))
    assert left.count("transpose") <= 4
    net = Sequential(conv(3, 4), AdaptiveAvgPool2D(1, data_format="NHWC"))
    arranged(net, (2, 6, 6, 3))


def test_simplify_also_where_the_first_one_is_read():
    def f(x):
        y = x.transpose([0, 2, 3, 1])
        return y.exp(), y.transpose([0, 3, 1, 2]).tanh()
    left, count = arranged(f, (2, 3, 4, 5), name="auto_layout_simplify_pass")
    assert left == ["transpose", "exp", "tanh"] and count == 1
    assert arranged(lambda x: x.transpose([0, 2, 1]).transpose([1, 0, 2]), (2, 3, 4),
                    name="auto_layout_simplify_pass")[1] == 0


def test_a_transposition_that_undoes_itself_goes_one_way():
    """Of three dimensions, channels first to last is last to first: operands must not take turns."""
    class Tokens(Layer):
        def __init__(self):
            super().__init__()
            self.patches, self.token = Conv2D(3, 4, 2, 2), self.create_parameter([1, 1, 4])

        def forward(self, x):
            y = self.patches(x).flatten(2).transpose([0, 2, 1])
            return paddle.concat([self.token, y], 1) + y.mean(1, keepdim=True)
    assert arranged(Tokens(), (1, 3, 4, 4))[1] == 0

    def either(x, y):
        z = x.transpose([0, 2, 1]) + y
        return z, y.transpose([0, 2, 1]) + x
    assert arranged(either, (2, 3, 3), (2, 3, 3), name="auto_layout_insert_pass")[1] == 0
