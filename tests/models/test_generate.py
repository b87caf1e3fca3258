"""Generation: what is written is what the model says, and only what the tokenizer can read."""

from __future__ import annotations

import numpy as np
import pytest

import minipd as paddle
from minipd.models.generate import generate
from minipd.models.llama import LlamaForCausalLM
from tests.models.llamas import SMALL

PROMPT = np.array([3, 1, 4])


@pytest.fixture
def model():
    paddle.seed(0)
    return LlamaForCausalLM(SMALL)


def test_at_temperature_zero_each_token_is_the_likeliest_after_those_before_it(model):
    written = generate(model, PROMPT, 8, 0.0, seed=0)
    assert written.dtype == np.int64 and written[:3].tolist() == PROMPT.tolist() and len(written) == 11
    for i in range(3, 11):                              # the model takes 8 tokens: beyond that it sees the last ones
        logits = model(paddle.to_tensor(written[max(0, i - SMALL.max_seq):i][None])).numpy()[0, -1]
        assert written[i] == logits.argmax()


def test_a_sample_depends_on_the_seed_alone(model):
    first, again, other = (generate(model, PROMPT, 8, 1.0, seed).tolist() for seed in (5, 5, 6))
    assert first == again != other


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_ids_that_the_tokenizer_has_not_are_never_written(model, temperature):
    free = generate(model, PROMPT, 40, temperature, seed=0)
    assert free[3:].max() >= 5
    assert generate(model, PROMPT, 40, temperature, seed=0, known=5)[3:].max() < 5
