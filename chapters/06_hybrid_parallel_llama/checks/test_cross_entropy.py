"""(softmax, loss) of operators on global tensors; over a split vocabulary three small reductions."""

import numpy as np

import minipd.distributed as dist
from minipd.dist.placements import Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.ops.creation import to_tensor
from tools.course.checking import check


def rule(logits, label, axis=-1, **attrs):
    z = np.array(logits, "float64")
    y = np.expand_dims(np.array(label), axis)
    softmax, loss = ROWS["cross_entropy_with_softmax"].columns["decompose"](
        Tensor(z), Tensor(y), axis=axis % z.ndim, **attrs)
    return softmax.numpy(), np.squeeze(loss.numpy(), axis)


def test_four_equal_logits():
    """Each class has probability 1/4: the loss is log 4."""
    check(([0.25] * 4, np.log(4.0)), lambda: rule([0, 0, 0, 0], 0), "logits [0, 0, 0, 0], label 0: softmax and loss")


def test_by_hand():
    e = np.exp([0.0, 1.0, 2.0, 3.0])
    check((e / e.sum(), np.log(e.sum()) - 2.0), lambda: rule([0, 1, 2, 3], 2), "logits [0, 1, 2, 3], label 2")


def test_a_constant_added_to_all_logits_changes_nothing():
    check(np.log(4.0), lambda: rule([5, 5, 5, 5], 1)[1], "logits [5, 5, 5, 5], label 1: the loss")


def test_large_logits():
    check(([1.0, 0.0], 0.0), lambda: rule([1e4, 0], 0),
          "logits [10000, 0], label 0: exp(10000) is too large for a float")


def test_a_label_that_is_far_behind():
    check(1e4, lambda: rule([1e4, 0], 1)[1],
          "logits [10000, 0], label 1: its probability is too small for a float, the "
          "loss is not")


def test_ignored_labels():
    check([np.log(2.0), 0.0], lambda: rule([[0, 0], [3, 4]], [1, -100])[1],
          "logits [[0, 0], [3, 4]], labels [1, -100]: the losses")
    check([0.0, np.log(2.0)], lambda: rule([[0, 1], [0, 0]], [1, 0], ignore_index=1)[1],
          "logits [[0, 1], [0, 0]], labels [1, 0], ignore_index=1: the losses")


def test_another_axis():
    z = np.array([[[0.0, 1.0], [0.0, 3.0], [0.0, 2.0]]])                    # [1, 3 classes, 2 positions]
    e = np.exp(z)
    loss = np.log(e.sum(1)) - np.array([[0.0, 3.0]])
    check((e / e.sum(1, keepdims=True), loss), lambda: rule(z, [[2, 1]], axis=1),
          "logits of shape [1, 3 classes, 2 positions], labels [[2, 1]], axis=1")


def on_ranks(logits, labels, ways):
    log = []

    def run(mesh):
        z = dist.shard_tensor(np.array(logits, "float32"), mesh, [Shard(1)])
        return F.cross_entropy(z, to_tensor(labels), reduction="none").numpy()
    return simulate(f"tp={ways}", run, log=log), log


def test_over_a_split_vocabulary():
    """Were the sum of exponentials added up twice, it would be log 8 = 2.079."""
    losses, _ = on_ranks([[0, 0, 0, 0]], [0], 2)
    check([[np.log(4.0)]] * 2, losses, "logits [0, 0, 0, 0] over two ranks, label 0: the loss on each")


def test_labels_on_every_shard():
    z = [[0.0, 1.0, 2.0, 3.0, 4.0]] * 5
    expected = np.log(np.exp(z[0]).sum()) - np.array(z[0])
    for ways in (2, 3, 4):
        losses, _ = on_ranks(z, [0, 1, 2, 3, 4], ways)
        check(expected, losses[0], f"logits [0, 1, 2, 3, 4] over {ways} ranks, labels 0 to 4: the losses", rtol=1e-5)


def test_large_logits_on_another_rank():
    losses, _ = on_ranks([[0, 0, 1e4, 0]], [0], 2)
    check([[1e4]] * 2, losses, "logits [0, 0 | 10000, 0] over two ranks, label 0: the loss on each")


def test_what_it_costs():
    """The maximum, the sum, the logit of the label: one number per position each.  The logits stay where they are."""
    _, log = on_ranks(np.zeros((3, 8)), [0, 1, 7], 2)
    names = [line.partition("#")[0] for line in log]
    check(["all_reduce"] * 3, names, "three positions, 8 classes over two ranks: what ran")
    check([True] * 3, ["f32[3, 1]" in line for line in log], f"three positions, 8 classes over two ranks: whether each "
          f"reduction is of one number per position; they are {log}")


def test_rows_that_are_split_do_not_matter():
    def run(mesh):
        z = dist.shard_tensor(np.zeros((4, 4), "float32"), mesh, [Shard(0), Shard(1)])
        y = dist.shard_tensor(np.array([0, 1, 2, 3]), mesh, [Shard(0), Replicate()])
        return F.cross_entropy(z, y).item()
    check([1.386294] * 4, lambda: simulate("dp=2,tp=2", run),
          "logits zeros(4, 4) on dp=2,tp=2, split over both: the mean "
          "loss on each rank, log 4", rtol=1e-5)
