"""Llama against an independent numpy implementation, and a task that only working attention can learn."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import minipd as paddle
from minipd.models.llama import LlamaForCausalLM
from minipd.optimizer import AdamW
from tests.models.llamas import SMALL, TIED, batch, filled, oracle_config
from tests.oracles import llama_numpy as oracle


@pytest.fixture
def float64():
    before = paddle.get_default_dtype()
    paddle.set_default_dtype("float64")
    yield
    paddle.set_default_dtype(before)


@pytest.mark.parametrize("config", [SMALL, TIED], ids=["grouped", "tied"])
@pytest.mark.parametrize("uneven", [False, True])
def test_forward_and_gradients_equal_numpy(float64, config, uneven):
    c = oracle_config(config)
    params = oracle.random_parameters(c, seed=3)
    ids, labels = batch(config, uneven=uneven)
    model = filled(config, params)
    np.testing.assert_allclose(model(paddle.to_tensor(ids)).numpy(), oracle.forward(params, ids, c), atol=1e-12)
    n = paddle.to_tensor(np.float64((labels != -100).sum()))
    loss = model.loss(paddle.to_tensor(ids), paddle.to_tensor(labels), n)
    loss.backward()
    expected, gradients = oracle.loss_and_grads(params, ids, labels, c)
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    for name, p in model.named_parameters():
        scale = np.abs(gradients[name]).max()
        np.testing.assert_allclose(p.grad.numpy(), gradients[name], atol=1e-11 * scale, err_msg=name)


def test_names_and_shapes_are_those_of_the_field(float64):
    model = LlamaForCausalLM(SMALL)
    assert {n: tuple(p.shape) for n, p in model.named_parameters()} == oracle.parameter_shapes(oracle_config(SMALL))
    assert model.lm_head is not None and LlamaForCausalLM(TIED).lm_head is None


def test_a_repeated_random_sequence_is_copied():
    """The second half of a sequence repeats the first: only attention to what stood there can know it."""
    paddle.seed(0)
    config = dataclasses.replace(TIED, vocab_size=16, dim=48, ffn_dim=64, layers=2, max_seq=16)
    model = LlamaForCausalLM(config)
    optimizer = AdamW(1e-2, parameters=model.parameters(), weight_decay=0.0)
    r = np.random.default_rng(0)
    for _ in range(300):
        half = r.integers(0, 16, (32, 8))
        text = np.concatenate([half, half], axis=1)
        ids, labels = text[:, :-1], text[:, 1:].copy()
        labels[:, :7] = -100
        n = paddle.to_tensor(np.float32((labels != -100).sum()))
        loss = model.loss(paddle.to_tensor(ids), paddle.to_tensor(labels), n)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    assert loss.item() < 0.05
