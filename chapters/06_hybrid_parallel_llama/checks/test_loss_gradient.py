"""softmax minus one at the label, times the gradient of the loss; on a shard, the columns that are here."""

import numpy as np

import minipd.distributed as dist
from minipd.dist.placements import Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.nn import functional as F
from minipd.ops.creation import to_tensor
from tools.course.checking import check

QUARTER = [[0.25, 0.25, 0.25, 0.25]]


def gradient(softmax, labels, loss_grad=None, window=None, ignore_index=-100, axis=-1):
    """For softmax [..., classes, ...]; labels and loss_grad without that dimension."""
    p = np.array(softmax, "float64")
    y = np.expand_dims(np.array(labels), axis)
    g = np.ones(y.shape) if loss_grad is None else np.expand_dims(np.array(loss_grad, "float64"), axis)
    return ROWS["cross_entropy_with_softmax_grad"].kernel(y, p, g, ignore_index=ignore_index, axis=axis % p.ndim,
                                                          window=window)


def test_all_classes_are_here():
    check([[-0.75, 0.25, 0.25, 0.25]], lambda: gradient(QUARTER, [0]), "softmax [1/4, 1/4, 1/4, 1/4], label 0")
    check([[0.25, 0.25, -0.75, 0.25]], lambda: gradient(QUARTER, [2]), "softmax [1/4, 1/4, 1/4, 1/4], label 2")


def test_times_the_gradient_of_the_loss():
    """The loss is divided by the number of tokens: so is every part of its gradient."""
    check([[-0.375, 0.125, 0.125, 0.125]], lambda: gradient(QUARTER, [0], [0.5]),
          "softmax [1/4, 1/4, 1/4, 1/4], label 0, gradient of the loss 0.5")


def test_each_row_has_its_own_label():
    check([[-0.5, 0.5], [1.0, -1.0]], lambda: gradient([[0.5, 0.5], [0.5, 0.5]], [0, 1], [1.0, 2.0]),
          "softmax [[1/2, 1/2], [1/2, 1/2]], labels [0, 1], gradients of the losses [1, 2]")


def test_the_label_is_here():
    check([[0.25, -0.75]], lambda: gradient([[0.25, 0.25]], [3], window=(4, 2)),
          "the columns 2 and 3 of 4, softmax [1/4, 1/4] there, label 3")


def test_the_label_is_elsewhere():
    check([[0.25, 0.25]], lambda: gradient([[0.25, 0.25]], [0], window=(4, 2)),
          "the columns 2 and 3 of 4, softmax [1/4, 1/4] there, label 0")
    check([[0.25, 0.25]], lambda: gradient([[0.25, 0.25]], [2], window=(4, 0)),
          "the columns 0 and 1 of 4, softmax [1/4, 1/4] there, label 2")


def test_ignored_labels():
    check([[0.0, 0.0], [0.5, -0.5]], lambda: gradient([[0.5, 0.5], [0.5, 0.5]], [-100, 1]),
          "softmax [[1/2, 1/2], [1/2, 1/2]], labels [-100, 1]")
    check([[0.0, 0.0]], lambda: gradient([[0.5, 0.5]], [1], ignore_index=1),
          "softmax [1/2, 1/2], label 1, ignore_index=1")
    check([[0.0, 0.0]], lambda: gradient([[0.25, 0.25]], [-100], window=(4, 2)),
          "the columns 2 and 3 of 4, softmax [1/4, 1/4] there, label -100")


def test_what_nobody_has_is_an_error():
    def refused(**how):
        try:
            return gradient([[0.25, 0.25]], [4], **how)
        except ValueError:
            return "ValueError"
    check("ValueError", lambda: refused(), "two classes, label 4")
    check("ValueError", lambda: refused(window=(4, 2)), "the columns 2 and 3 of 4 classes, label 4")


def test_softmax_is_left_as_it_is():
    p = np.array(QUARTER)
    row = ROWS["cross_entropy_with_softmax_grad"]
    row.kernel(np.array([[0]]), p, np.array([[1.0]]), ignore_index=-100, axis=1, window=None)
    check(QUARTER, p, "softmax [1/4, 1/4, 1/4, 1/4] after the gradient for label 0 was computed")


def test_a_shard_without_columns():
    check((2, 0), lambda: gradient(np.zeros((2, 0)), [0, 3], window=(4, 4)).shape,
          "no columns of 4, labels [0, 3]: the shape of the gradient")


def test_another_axis():
    p = np.full((1, 2, 3), 0.5)                                             # 2 classes, 3 positions
    check([[[-0.5, 0.5, 0.0], [0.5, -0.5, 0.0]]], lambda: gradient(p, [[0, 1, -100]], axis=1),
          "softmax 1/2 of shape [1, 2 classes, 3 positions], labels [[0, 1, -100]], axis=1")


def on_ranks(logits, labels, mesh, placements):
    """(the gradient of the mean loss, whole; how many messages backward took) on every rank."""
    def run(grid):
        z = dist.shard_tensor(np.array(logits, "float64"), grid, placements, stop_gradient=False)
        loss = F.cross_entropy(z, to_tensor(labels))
        before = sum(current().comm.counts.values())
        loss.backward()
        took = sum(current().comm.counts.values()) - before
        return z.grad.numpy(), took
    return simulate(mesh, run, np.dtype("float64"))


def test_parts_of_all_ranks_make_the_whole():
    random = np.random.default_rng(6)
    z, y = random.normal(size=(4, 7)), [6, 0, -100, 3]
    e = np.exp(z)
    expected = e / e.sum(1, keepdims=True)
    expected[[0, 1, 3], [6, 0, 3]] -= 1
    expected[2] = 0
    for mesh, placements in (("tp=2", [Shard(1)]), ("tp=4", [Shard(1)]), ("dp=2,tp=3", [Replicate(), Shard(1)])):
        for got, _ in on_ranks(z, y, mesh, placements):
            check(expected / 3, got, f"4 tokens, 7 classes over {mesh}, labels {y}: the gradient of the mean loss")


def test_backward_takes_no_message():
    check([0, 0], lambda: [took for _, took in on_ranks(np.zeros((2, 4)), [0, 3], "tp=2", [Shard(1)])],
          "two tokens, 4 classes over two ranks: the messages that backward takes on each")
