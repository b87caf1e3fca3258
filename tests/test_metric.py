"""Metrics: small cases by hand, the area under curves by ranks, and what they refuse."""

import numpy as np
import pytest

import minipd as paddle
from minipd import metric

SCORES = np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.4, 0.35, 0.25]])


def t(x, dtype=None):
    return paddle.to_tensor(x, dtype)


@pytest.mark.parametrize("labels", [[[2], [0], [2], [1]], [2, 0, 2, 1], np.eye(3)[[2, 0, 2, 1]]])
def test_accuracy(labels):
    m = metric.Accuracy(topk=(1, 2))
    correct = m.compute(t(SCORES), t(labels))
    assert correct.tolist() == [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert m.update(correct[:1]) == [0.0, 1.0]
    assert m.update(correct[1:].numpy()) == [2 / 3, 1.0]
    assert m.accumulate() == [0.5, 1.0] and m.name() == ["acc_top1", "acc_top2"]
    m.reset()
    assert m.accumulate() == [0.0, 0.0]


def test_accuracy_of_one_k_is_a_number():
    m = metric.Accuracy(name="hits")
    assert m.update(m.compute(t(SCORES), t([2, 0, 2, 1]))) == m.accumulate() == 0.5
    assert m.name() == ["hits"]
    with pytest.raises(ValueError, match="Accuracy: expected topk with numbers from 1 on"):
        metric.Accuracy(topk=())


def test_accuracy_of_a_batch():
    correct, total = paddle.zeros([1], "int32"), paddle.zeros([1], "int32")
    got = metric.accuracy(t(SCORES), t([[2], [0], [2], [1]]), 1, correct, total)
    assert got.item() == 0.5 and got.shape == [] and got.dtype == "float32"
    assert correct.tolist() == [2] and total.tolist() == [4]
    assert metric.accuracy(t(SCORES), t([2, 0, 2, 1]), k=2).item() == 1.0
    with pytest.raises(ValueError, match=r"accuracy: expected scores .* got f64\[3\] and i64\[1\]"):
        metric.accuracy(t(SCORES[0]), t([1]))


def test_precision_and_recall():
    said, true = np.array([0.9, 0.5, 0.2, 0.7]), np.array([1, 0, 1, 1])
    precision, recall = metric.Precision(), metric.Recall("r")
    for m in (precision, recall):
        assert m.accumulate() == 0.0
        m.update(said[:2].reshape(2, 1), true[:2])
        m.update(t(said[2:]), t(true[2:]))
        assert m.accumulate() == 2 / 3
        m.reset()
        assert m.accumulate() == 0.0
    assert (precision.name(), recall.name()) == ("precision", "r")
    with pytest.raises(ValueError, match="Precision: expected a label for each of 4 predictions, got 3"):
        precision.update(said, true[:3])


def test_auc_is_the_chance_to_rank_a_pair_rightly():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    yes = np.round(np.clip(0.3 * labels + rng.uniform(0, 0.7, 200), 0, 1) * 4095) / 4095        # no two in one bin
    pos, neg = yes[labels == 1], yes[labels == 0]
    want = ((pos[:, None] > neg) + 0.5 * (pos[:, None] == neg)).mean()
    m = metric.Auc()
    for part in (slice(0, 50), slice(50, 200)):
        m.update(np.stack([1 - yes[part], yes[part]], 1), labels[part, None])
    assert m.accumulate() == pytest.approx(want, rel=1e-12)
    m.reset()
    assert m.accumulate() == 0.0 and m.name() == "auc"
    m.update(yes, labels)
    assert m.accumulate() == pytest.approx(want, rel=1e-12)


def test_the_area_under_precision_and_recall():
    m = metric.Auc(curve="PR")
    m.update(np.array([0.9, 0.6, 0.3]), np.array([1, 0, 1]))
    # (recall, precision): (1/2, 1), (1/2, 1/2), (1, 2/3), from (0, 1) on
    assert m.accumulate() == pytest.approx(0.5 * 1 + 0.5 * (1 / 2 + 2 / 3) / 2)


def test_what_auc_refuses():
    with pytest.raises(ValueError, match="Auc: expected curve 'ROC' or 'PR', got 'x'"):
        metric.Auc("x")
    with pytest.raises(ValueError, match="Auc: expected probabilities from 0 to 1"):
        metric.Auc().update(np.array([1.5]), np.array([1]))


def test_a_metric_of_ones_own():
    class Mean(metric.Metric):
        def reset(self):
            self.values = []

        def update(self, value):
            self.values.append(value)

        def accumulate(self):
            return sum(self.values) / len(self.values)

        def name(self):
            return "mean"

    m = Mean()
    m.reset()
    m.update(*m.compute(3.0))
    assert m.accumulate() == 3.0
    with pytest.raises(TypeError, match="abstract"):
        metric.Metric()
