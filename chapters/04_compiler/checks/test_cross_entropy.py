"""Softmax and loss, without a logarithm of a small number."""

import math

import numpy as np

from minipd.decomposition import decompose
from minipd.executor import Executor, Scope
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.program import Program
from tools.course.checking import check


def by_rule(logits, labels, dtype="float64", axis=-1, ignore_index=-100):
    """(softmax, loss) of the decomposed operator."""
    x, label = np.asarray(logits, dtype), np.asarray(labels, np.int64)
    label = np.expand_dims(label, axis)
    program = Program()
    build = Builder(program.global_block())
    values = build.data("x", x.shape, dtype), build.data("label", label.shape, "int64")
    attrs = {"ignore_index": ignore_index, "axis": axis % x.ndim}
    softmax, loss = build.call(ROWS["cross_entropy_with_softmax"], values, attrs)
    build.output("softmax", softmax)
    build.output("loss", loss)
    decompose(program, [], whitelist=["pd_op.cross_entropy_with_softmax"])      # a look-up stays one, and may raise
    with np.errstate(all="ignore"):
        out = Executor(program).run({"x": x, "label": label}, Scope())
    return out["softmax"], np.squeeze(out["loss"], axis)


def by_hand(row, label):
    """log sum_j e^(x[j] - x[label])."""
    top = max(v - row[label] for v in row)
    return top + math.log(sum(math.exp(v - row[label] - top) for v in row))


def loss(logits, labels, **options):
    return lambda: by_rule(logits, labels, **options)[1]


def test_two_equal_logits():
    check([math.log(2)], loss([[0.0, 0.0]], [0]), "the loss of logits [[0, 0]] and label 0")


def test_one_row():
    check([by_hand([1, 2, 3], 0)], loss([[1.0, 2.0, 3.0]], [0]), "the loss of logits [[1, 2, 3]] and label 0")
    check([by_hand([1, 2, 3], 2)], loss([[1.0, 2.0, 3.0]], [2]), "the loss of logits [[1, 2, 3]] and label 2")


def test_the_softmax():
    check([[0.0900305731, 0.2447284711, 0.6652409558]], lambda: by_rule([[1.0, 2.0, 3.0]], [0])[0],
          "the softmax of logits [[1, 2, 3]]")


def test_an_improbable_label():
    """Its probability, e^-800, is 0 in float64, and the loss is 800 all the same."""
    check([800.0], loss([[0.0, 800.0]], [0]), "the loss of logits [[0, 800]] and label 0")
    check([200.0], loss([[0.0, 200.0]], [0], dtype="float32"), "the loss of logits [[0, 200]] and label 0, in float32",
          rtol=1e-5)


def test_large_logits():
    check([by_hand([1000, 1001], 0)], loss([[1000.0, 1001.0]], [0]), "the loss of logits [[1000, 1001]] and label 0")


def test_rows_of_different_size():
    x = [[1000.0, 1001.0], [-1000.0, -1001.0]]
    check([by_hand(r, 1) for r in x], loss(x, [1, 1]), f"the loss of logits {x} and labels [1, 1]")


def test_ignored_labels():
    x = [[1.0, 2.0], [3.0, 4.0]]
    check([0.0, by_hand(x[1], 0)], loss(x, [-100, 0]), f"the loss of logits {x} and labels [-100, 0]; -100 is ignored")


def test_an_ignored_class():
    x = [[1.0, 2.0, 0.5], [3.0, 4.0, 0.5]]
    check([0.0, by_hand(x[1], 0)], loss(x, [1, 0], ignore_index=1),
          f"the loss of logits {x} and labels [1, 0], with ignore_index=1")


def test_an_ignored_row_that_is_not_finite():
    x = [[np.inf, 2.0], [3.0, 4.0]]
    check([0.0, by_hand(x[1], 1)], loss(x, [-100, 1]), "the loss of logits [[inf, 2], [3, 4]] and labels [-100, 1]")


def test_another_axis():
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((2, 3, 4)) * 5, rng.integers(0, 3, (2, 4))
    want = [[by_hand(x[i, :, j].tolist(), labels[i, j]) for j in range(4)] for i in range(2)]
    check(want, loss(x, labels, axis=1), "the loss of random logits of shape (2, 3, 4) along axis 1")


def test_random_rows():
    rng = np.random.default_rng(1)
    for scale in (1.0, 100.0, 1000.0):
        x, labels = rng.standard_normal((6, 5)) * scale, rng.integers(0, 5, 6)
        want = [by_hand(r, label) for r, label in zip(x.tolist(), labels.tolist(), strict=True)]
        check(want, loss(x, labels), f"the loss of random logits of size {scale:g}")
