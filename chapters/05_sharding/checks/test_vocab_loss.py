"""The loss of logits whose classes are split: a few numbers for each row go round, and the logits stay in place."""

import math
import re

import numpy as np

from minipd.dist.api import shard_tensor
from minipd.dist.placements import Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.ops.loss import cross_entropy_with_softmax
from tools.course.checking import check

R, S = Replicate(), Shard


def both(logits, labels, mesh="tp=2", ignore_index=-100, placed=None):
    """(softmax, loss, how the softmax is placed, the messages before anybody has asked for a value)."""
    x, label = np.asarray(logits, "float64"), np.asarray(labels)[..., None]
    log, ran = [], []

    def run(grid):
        t = shard_tensor(x, grid, [S(x.ndim - 1)] * grid.ndim if placed is None else placed)
        softmax, loss = cross_entropy_with_softmax(t, shard_tensor(label, grid, [R] * grid.ndim), ignore_index)
        where, loss = softmax.placements, loss.numpy()
        ran[:] = log
        return softmax.numpy(), loss[..., 0], where
    with np.errstate(all="ignore"):
        softmax, loss, where = simulate(mesh, run, "float64", log=log)[0]
    return softmax, loss, where, log[:-1]           # the last one has gathered the softmax


def by_hand(row, label):
    """log sum_j e^(x[j] - x[label])."""
    top = max(v - row[label] for v in row)
    return top + math.log(sum(math.exp(v - row[label] - top) for v in row))


def loss(logits, labels, **how):
    return lambda: both(logits, labels, **how)[1]


def test_two_classes_on_two_ranks():
    check([math.log(2)], loss([[0.0, 0.0]], [0]), "the loss of logits [[0 | 0]] and label 0, a class for each rank")


def test_the_label_is_on_the_other_rank():
    x = [[1.0, 2.0, 3.0, 4.0]]
    for label in range(4):
        check([by_hand(x[0], label)], loss(x, [label]), f"the loss of logits [[1, 2 | 3, 4]] and label {label}")


def test_the_softmax():
    check([[0.0900305731, 0.2447284711, 0.6652409558]], lambda: both([[1.0, 2.0, 3.0]], [0])[0],
          "the softmax of logits [[1, 2 | 3]]")


def test_the_softmax_stays_split():
    check([S(1)], lambda: list(both([[1.0, 2.0, 3.0]], [0])[2]),
          "how the softmax of logits [[1, 2 | 3]] is placed")


def numbers(line):
    """How many numbers a message of the log has."""
    shape = re.search(r"\w+\[([\d, ]*)\]", line).group(1)
    return math.prod(map(int, shape.split(","))) if shape else 1


def test_what_is_sent():
    """For each row a maximum, a sum and the logit of the label: 3 numbers, however many classes there are."""
    x, labels = np.arange(16.0).reshape(2, 8), [7, 0]
    *_, sent = both(x, labels)
    told = ", ".join(line.partition(" by")[0] for line in sent)
    check([], [line for line in sent if "all_reduce" not in line],
          "logits of 2 rows and 8 classes on tp=2: the messages that are no all_reduce")
    check(True, sum(map(numbers, sent)) <= 6,
          f"logits of 2 rows and 8 classes on tp=2: whether at most 3 numbers for each row are sent; it was {told}")


def test_an_improbable_label():
    """Its probability, e^-800, is 0 in float64, and the loss is 800 all the same."""
    check([800.0], loss([[0.0, 800.0]], [0]), "the loss of logits [[0 | 800]] and label 0")


def test_large_logits():
    check([by_hand([1000, 1001], 0)], loss([[1000.0, 1001.0]], [0]), "the loss of logits [[1000 | 1001]] and label 0")


def test_ignored_labels():
    x = [[1.0, 2.0], [3.0, 4.0]]
    check([0.0, by_hand(x[1], 0)], loss(x, [-100, 0]), "the loss of logits [[1 | 2], [3 | 4]] and labels [-100, 0]; "
          "-100 is ignored")
    check([0.0, by_hand(x[1], 0)], loss(x, [1, 0], ignore_index=1),
          "the loss of logits [[1 | 2], [3 | 4]] and labels [1, 0], with ignore_index=1")


def test_five_classes_over_four_ranks():
    """The chunks are 2, 2, 1 and 0 classes."""
    x = [[1.0, 2.0, 3.0, 4.0, 5.0], [5.0, 0.0, -5.0, 0.0, 5.0]]
    for mesh in ("tp=4", "dp=2,tp=2"):
        check([by_hand(x[0], 4), by_hand(x[1], 1)], loss(x, [4, 1], mesh=mesh),
              f"the loss of logits {x} and labels [4, 1], classes split over {mesh}")


def test_rows_and_classes():
    rng = np.random.default_rng(5)
    x, labels = rng.standard_normal((5, 7)) * 100, rng.integers(0, 7, 5)
    check([by_hand(r, label) for r, label in zip(x.tolist(), labels.tolist(), strict=True)],
          loss(x, labels, mesh="dp=2,tp=2", placed=[S(0), S(1)]),
          "the loss of random logits of size 100, 5 rows over dp and 7 classes over tp")
