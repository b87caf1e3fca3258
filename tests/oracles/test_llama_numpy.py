"""The oracle is itself checked: gradients by finite differences, pieces by hand."""

import math

import numpy as np
import pytest

from tests.oracles import llama_numpy as oracle
from tests.oracles.llama_numpy import IGNORE, Config

CONFIGS = {
    "grouped": Config(vocab=11, dim=12, layers=2, heads=6, kv_heads=3, hidden=7),
    "tied": Config(vocab=7, dim=8, layers=1, heads=2, kv_heads=2, hidden=5, tied=True, rope_base=100.0),
    "one key head": Config(vocab=5, dim=8, layers=1, heads=4, kv_heads=1, hidden=3, eps=0.1),
}


def batch(c, seed=0):
    rng = np.random.default_rng(seed)
    ids, labels = rng.integers(0, c.vocab, (2, 2, 5))
    labels[0, 2:4] = IGNORE
    return ids, labels


@pytest.mark.parametrize("name", CONFIGS)
def test_every_gradient_against_finite_differences(name):
    c = CONFIGS[name]
    params = oracle.random_parameters(c, seed=1)
    ids, labels = batch(c)
    loss, grads = oracle.loss_and_grads(params, ids, labels, c)
    assert grads.keys() == params.keys()
    h = 3e-4
    for parameter, value in params.items():
        numeric = np.zeros_like(value)
        for at in np.ndindex(value.shape):
            old = value[at]
            for steps, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):  # the central difference of order h^4
                value[at] = old + steps * h
                numeric[at] += weight / (12 * h) * oracle.cross_entropy(oracle.forward(params, ids, c), labels)[0]
            value[at] = old
        np.testing.assert_allclose(grads[parameter], numeric, rtol=1e-8, atol=1e-9, err_msg=parameter)


def test_the_loss_is_weighted_by_token():
    c = CONFIGS["grouped"]
    params = oracle.random_parameters(c, seed=2)
    ids, labels = batch(c)
    logits = oracle.forward(params, ids, c)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    counted = [-log_p[b, s, labels[b, s]] for b in range(2) for s in range(5) if labels[b, s] != IGNORE]
    assert len(counted) == 8
    assert oracle.loss_and_grads(params, ids, labels, c)[0] == pytest.approx(sum(counted) / 8, rel=1e-14)


def test_no_token_counts():
    c = CONFIGS["tied"]
    params = oracle.random_parameters(c, seed=2)
    ids, labels = batch(c)
    loss, grads = oracle.loss_and_grads(params, ids, np.full_like(labels, IGNORE), c)
    assert loss == 0 and all((g == 0).all() for g in grads.values())


def test_attention_is_causal():
    c = CONFIGS["grouped"]
    params = oracle.random_parameters(c, seed=3)
    ids, _ = batch(c)
    changed = ids.copy()
    changed[:, 3] = (ids[:, 3] + 1) % c.vocab
    before, after = oracle.forward(params, ids, c), oracle.forward(params, changed, c)
    np.testing.assert_allclose(before[:, :3], after[:, :3], rtol=1e-13)
    assert (np.abs(before[:, 3:] - after[:, 3:]).max(axis=(0, 2)) > 1e-3).all()


def test_rope_by_hand():
    """d = 4, base 100: pairs (0, 2) and (1, 3) turn by position times 1 and 1/10."""
    x = np.array([1.0, 2.0, 3.0, 4.0])
    turned = oracle.rope(np.tile(x, (1, 3, 1, 1)), 100.0)[0, 2, 0]
    c, s, c2, s2 = math.cos(2), math.sin(2), math.cos(0.2), math.sin(0.2)
    np.testing.assert_allclose(turned, [c - 3 * s, 2 * c2 - 4 * s2, 3 * c + s, 4 * c2 + 2 * s2], rtol=1e-14)
    q, k = np.random.default_rng(0).normal(size=(2, 8))
    rows = oracle.rope(np.tile(q, (1, 6, 1, 1)), 1e4)[0, :, 0] @ oracle.rope(np.tile(k, (1, 6, 1, 1)), 1e4)[0, :, 0].T
    np.testing.assert_allclose(rows[1:, 1:], rows[:-1, :-1], rtol=1e-12)  # only the distance of positions matters


def test_grouped_heads_equal_repeated_heads():
    c = CONFIGS["grouped"]
    params = oracle.random_parameters(c, seed=4)
    full = Config(vocab=c.vocab, dim=c.dim, layers=c.layers, heads=c.heads, kv_heads=c.heads, hidden=c.hidden)
    repeated = dict(params)
    for name, value in params.items():
        if "k_proj" in name or "v_proj" in name:
            repeated[name] = np.repeat(value.reshape(c.dim, 3, c.head_dim), 2, axis=1).reshape(c.dim, c.dim)
    ids, _ = batch(c)
    np.testing.assert_allclose(oracle.forward(params, ids, c), oracle.forward(repeated, ids, full), rtol=1e-13)


def test_rms_norm_has_eps_inside_the_root():
    y, _ = oracle.rms_norm(np.array([3.0, 4.0]), np.array([1.0, 2.0]), 12.5)
    np.testing.assert_allclose(y, [3 / 5, 8 / 5], rtol=1e-15)


def test_swiglu_by_hand():
    y, _ = oracle.swiglu(np.array([math.log(3.0)]), np.array([2.0]))
    np.testing.assert_allclose(y, [math.log(3) * 0.75 * 2], rtol=1e-15)


def test_adamw_by_hand():
    """Step 1: m_hat = g and v_hat = g^2, so the step is lr * sign(g) (eps 0), after the decay."""
    p, m, v = oracle.adamw_reference(np.array([2.0, -1.0]), np.array([0.5, -3.0]), 0.0, 0.0, 1, 0.1, eps=0.0)
    np.testing.assert_allclose(p, [2.0 * 0.999 - 0.1, -0.999 + 0.1], rtol=1e-14)
    np.testing.assert_allclose(m, [0.05, -0.3], rtol=1e-14)
    np.testing.assert_allclose(v, [0.00025, 0.009], rtol=1e-14)
    p, _, _ = oracle.adamw_reference(p, np.array([0.0, 0.0]), m, v, 2, 0.1, eps=1e-8, weight_decay=0.0)
    step = 0.1 * (0.9 / (1 - 0.81)) * 0.1 / math.sqrt(0.999 * 0.001 / (1 - 0.999**2))
    np.testing.assert_allclose(p, [2.0 * 0.999 - 0.1 - step, -0.999 + 0.1 + step], rtol=1e-6)


def test_clip_by_hand():
    """The norm is over all tensors together: (3, 4) -> 5; gradients below the limit stay."""
    grads = {"a": np.array([3.0]), "b": np.array([0.0, 4.0])}
    clipped, norm = oracle.clip_reference(grads, 1.0)
    assert norm == 5.0
    np.testing.assert_allclose(clipped["b"], [0.0, 0.8], rtol=1e-15)
    assert oracle.clip_reference(grads, 7.0)[0]["a"] == 3.0
