"""What is multiplied after a convolution goes into its filters."""

import numpy as np

from minipd import nn
from minipd.nn import functional as F
from minipd.passes.compare import outcome
from minipd.passes.library.conv2d_bn_fuse import ScaledConvolution
from minipd.passes.pattern import apply_patterns_greedily
from minipd.passes.show import program_of
from minipd.passes.table import create_pass
from tools.course.checking import check


class Scaled(nn.Layer):
    """conv2d(x, filter) * c."""

    def __init__(self, filter, c, **how):
        super().__init__()
        self.filter, self.c, self.how = self.create_parameter(list(filter)), self.create_parameter(list(c)), how

    def forward(self, x):
        return F.conv2d(x, self.filter, **self.how) * self.c


def by_hand(x, filter, c, stride=1, padding=0, dilation=1, groups=1):
    """The convolution as sums of products, written out."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    each = filter.shape[0] // groups
    width = [(x.shape[2 + i] - dilation * (filter.shape[2 + i] - 1) - 1) // stride + 1 for i in range(2)]
    y = np.zeros((x.shape[0], filter.shape[0], *width))
    for n, o, i, j in np.ndindex(y.shape):
        first = o // each * filter.shape[1]
        for k, a, b in np.ndindex(filter.shape[1:]):
            y[n, o, i, j] += filter[o, k, a, b] * x[n, first + k, i * stride + a * dilation, j * stride + b * dilation]
    return y * c


def rewritten(program, feed, state):
    """(how often the rule fires, which operation makes the output, its values)."""
    fired = apply_patterns_greedily(program, [ScaledConvolution], max_rewrites=10)
    last = program.global_block().back().operand_source(0).get_defining_op()
    return fired, last.name(), outcome(program, feed, state)["output_0"]


def scaled(filter, c, x, on, **how):
    """The rule, on arrays: a convolution makes the output, and the numbers are what they were."""
    program = program_of(Scaled(filter.shape, c.shape, **how), list(x.shape))
    feed = {"x": x.astype(np.float32)}
    state = {"filter": filter.astype(np.float32), "c": c.astype(np.float32)}
    want = by_hand(x, filter, c, **how)
    check((1, "pd_op.conv2d", want), lambda: rewritten(program, feed, state),
          f"(how often the rule fires, the operation that makes the output, the output) of {on}", rtol=1e-4)


def test_two_channels_by_hand():
    filter = np.array([[1.0, 10.0], [100.0, 1000.0]]).reshape(2, 2, 1, 1)
    scaled(filter, np.array([2.0, 3.0]).reshape(2, 1, 1), np.ones((1, 2, 1, 1)),
           "conv2d(x, filter) * c for one pixel x = [1, 1], filter = [[1, 10], [100, 1000]], c = [2, 3]: [22, 3300]")


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def test_more_channels_come_out_than_go_in():
    scaled(random(5, 2, 1, 1), random(5, 1, 1), random(1, 2, 3, 3), "2 channels in, 5 out, c of shape [5, 1, 1]")


def test_c_of_four_dimensions():
    scaled(random(3, 3, 1, 1), random(1, 3, 1, 1), random(2, 3, 2, 2), "3 channels, c of shape [1, 3, 1, 1]")


def test_larger_filters():
    scaled(random(3, 2, 3, 3), random(3, 1, 1), random(1, 2, 5, 4), "filters of 3 x 3")


def test_how_it_is_convolved():
    for how in ({"padding": 1}, {"stride": 2}, {"dilation": 2}):
        scaled(random(3, 2, 3, 3), random(3, 1, 1), random(1, 2, 7, 7), f"filters of 3 x 3, {how}", **how)


def test_groups():
    scaled(random(4, 2, 1, 1), random(4, 1, 1), random(1, 4, 2, 2), "4 channels in 2 groups", groups=2)


def test_a_filter_that_serves_twice():
    class Twice(nn.Layer):
        def __init__(self):
            super().__init__()
            self.filter, self.c = self.create_parameter([2, 2, 1, 1]), self.create_parameter([2, 1, 1])

        def forward(self, x):
            return F.conv2d(x, self.filter) * self.c, F.conv2d(x.exp(), self.filter)

    x, filter, c = (random(*s).astype(np.float32) for s in ((1, 2, 2, 2), (2, 2, 1, 1), (2, 1, 1)))
    program = program_of(Twice(), [1, 2, 2, 2])
    fired = apply_patterns_greedily(program, [ScaledConvolution], max_rewrites=10)
    got = outcome(program, {"x": x}, {"filter": filter, "c": c})
    check(1, fired, "how often the rule fires in conv2d(x, filter) * c, conv2d(exp(x), filter)")
    check(by_hand(x, filter, c), got["output_0"],
          "the first of conv2d(x, filter) * c, conv2d(exp(x), filter)", rtol=1e-4)
    check(by_hand(np.exp(x), filter, 1.0), got["output_1"],
          "the second of conv2d(x, filter) * c, conv2d(exp(x), filter): its filter stays as it is", rtol=1e-4)


def test_a_whole_batch_norm():
    """With the other rules of the pass, and the weights folded: a convolution and a sum are left."""
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = nn.Conv2D(2, 3, 3, bias_attr=False), nn.BatchNorm2D(3)

        def forward(self, x):
            return self.bn(self.conv(x))

    program = program_of(Net().eval(), [1, 2, 5, 5])
    x, filter = random(1, 2, 5, 5).astype(np.float32), random(3, 2, 3, 3).astype(np.float32)
    state = {"conv.weight": filter, "bn.weight": np.array([1.0, 2.0, -1.0], np.float32),
             "bn.bias": np.array([0.5, 0.0, 1.0], np.float32), "bn._mean": np.array([0.1, 0.2, 0.3], np.float32),
             "bn._variance": np.array([1.0, 4.0, 0.25], np.float32)}
    root = 1 / np.sqrt(np.array([1.0, 4.0, 0.25]) + 1e-5)
    want = (by_hand(x, filter, 1.0) - np.array([0.1, 0.2, 0.3]).reshape(3, 1, 1)) * (
        root * np.array([1.0, 2.0, -1.0])).reshape(3, 1, 1) + np.array([0.5, 0.0, 1.0]).reshape(3, 1, 1)

    def run():
        create_pass("conv2d_bn_fuse_pass").run(program)
        create_pass("constant_folding_pass", {"param_scope": state}).run(program)
        create_pass("dead_code_elimination_pass").run(program)
        return outcome(program, {"x": x}, state)["output_0"]
    check(want, run, "a batch norm after a convolution, after the pass", rtol=1e-4)
    names = [op.name().partition(".")[2] for op in program.walk() if op.row is not None and op.num_operands()]
    check(["conv2d", "add"], names, "the operators that are left of a batch norm after a convolution")
