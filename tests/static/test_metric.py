"""Metrics as operators: the same in a program as eagerly."""

import numpy as np
import pytest

import minipd as paddle
from minipd import static
from minipd.metric import Auc


def test_auc_is_that_of_the_metric():
    rng = np.random.default_rng(0)
    yes, labels = rng.uniform(size=50), rng.integers(0, 2, 50)
    m = Auc()
    m.update(yes, labels)
    both = paddle.to_tensor(np.stack([1 - yes, yes], 1))
    for shape in ([50], [50, 1]):
        area, again, counts = static.auc(both, paddle.to_tensor(labels).reshape(shape))
        assert area.item() == again.item() == pytest.approx(m.accumulate(), rel=1e-12)
        assert area.shape == [] and area.dtype == "float64"
        assert counts[0].sum().item() == labels.sum()
    assert static.auc(both, paddle.to_tensor(np.ones(50)))[0].item() == 0.0
    halved = static.auc(both, paddle.to_tensor(labels), ins_tag_weight=paddle.full([50], 0.5))[0]
    assert halved.item() == pytest.approx(m.accumulate(), rel=1e-12)
    with pytest.raises(ValueError, match="auc: expected curve='ROC', topk=1 and slide_steps=1, got 'PR', 1 and 1"):
        static.auc(both, paddle.to_tensor(labels), curve="PR")


def test_metrics_in_a_program():
    @paddle.jit.to_static
    def both(scores, labels):
        return static.accuracy(scores, labels, k=1), static.auc(scores, labels)[0]

    scores = paddle.to_tensor(np.array([[0.3, 0.7], [0.6, 0.4], [0.2, 0.8]], "float32"))
    right, area = both(scores, paddle.to_tensor([[1], [0], [0]]))
    assert right.item() == pytest.approx(2 / 3) and area.item() == 0.5
