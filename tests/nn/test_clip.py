"""Gradient clipping."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.framework.tensor import Parameter
from minipd.nn.clip import global_norm


def pairs(*grads, **attributes):
    out = []
    for g in grads:
        p = Parameter(np.zeros_like(np.asarray(g)))
        for name, value in attributes.items():
            setattr(p, name, value)
        out.append((p, paddle.to_tensor(g)))
    return out


def values(clipped):
    return [g.tolist() for _, g in clipped]


def test_global_norm():
    got = nn.ClipGradByGlobalNorm(1.0)(pairs([3.0, 0.0], [[4.0]]))
    np.testing.assert_allclose(values(got)[0], [0.6, 0.0], rtol=1e-6)
    np.testing.assert_allclose(values(got)[1], [[0.8]], rtol=1e-6)
    assert values(nn.ClipGradByGlobalNorm(5.0)(pairs([3.0], [4.0]))) == [[3.0], [4.0]]
    assert values(nn.ClipGradByGlobalNorm(6.0)(pairs([3.0], [4.0]))) == [[3.0], [4.0]]
    assert nn.ClipGradByGlobalNorm(1.0)([]) == []


def test_each_norm_by_itself():
    assert values(nn.ClipGradByNorm(1.0)(pairs(np.array([2.0]), np.array([0.5])))) == [[1.0], [0.5]]


def test_by_value():
    assert values(nn.ClipGradByValue(1.0)(pairs([3.0, -3.0, 0.5]))) == [[1.0, -1.0, 0.5]]
    assert values(nn.ClipGradByValue(1.0, min=0.0)(pairs([3.0, -3.0, 0.5]))) == [[1.0, 0.0, 0.5]]
    with pytest.raises(ValueError, match="expected min <= max, got min=2.0 and max=1.0"):
        nn.ClipGradByValue(1.0, min=2.0)


def test_a_parameter_may_stay_out():
    free, bound = pairs([30.0], need_clip=False), pairs([3.0], [4.0])
    got = nn.ClipGradByGlobalNorm(2.5)(free + bound)
    assert values(got) == [[30.0], [1.5], [2.0]]
    assert [p for p, _ in got] == [p for p, _ in free + bound]


def test_mixed_and_low_precision():
    """256 ones and a half, squared and summed in bfloat16, would stop at 256."""
    grads = [paddle.ones([300], "bfloat16"), paddle.to_tensor([4.0])]
    assert global_norm(grads).item() == pytest.approx(np.sqrt(316.0)) and global_norm(grads).dtype == "float32"
    (_, g), _ = nn.ClipGradByGlobalNorm(1.0)(list(zip(pairs([0.0]) * 2, grads, strict=True)))
    assert g.dtype == "bfloat16"
    assert global_norm([paddle.ones([1], "float64"), grads[1]]).dtype == "float64"


def test_not_a_number_reaches_everyone():
    """One bad gradient must not pass unseen."""
    assert all(np.isnan(v) for v, in values(nn.ClipGradByGlobalNorm(1.0)(pairs([np.nan], [4.0]))))
