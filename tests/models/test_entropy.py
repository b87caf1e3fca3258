"""Entropies of counting models, worked by hand and by plain loops."""

import math
from collections import Counter

import numpy as np
import pytest

from minipd.models.entropy import bigram_entropy, unigram_entropy


def test_unigram_by_hand():
    train, held_out = np.array([0, 0, 0, 1]), np.array([0, 1, 2, 2])
    # p(0) = (3 + 1) / (4 + 3), p(1) = 2/7, p(2) = 1/7
    expected = -(math.log(4 / 7) + math.log(2 / 7) + 2 * math.log(1 / 7)) / 4
    assert unigram_entropy(train, held_out, 3) == pytest.approx(expected, rel=1e-14)


def test_bigram_by_hand():
    train, held_out = np.array([0, 1, 0, 1, 0, 2]), np.array([2, 0, 1])
    # Unigram, V = 3, N = 6: p = 4/9, 3/9, 2/9.
    # Pairs: 01 twice, 10 twice, 02 once; so c(0) = 3, T(0) = 2; c(1) = 2, T(1) = 1; nothing follows 2.
    # Asked: 2 2 -> p(2) = 2/9; 2 0 -> p(0) = 4/9; 0 1 -> (2 + 2 * 3/9) / (3 + 2) = 8/15.
    expected = -(math.log(2 / 9) + math.log(4 / 9) + math.log(8 / 15)) / 3
    assert bigram_entropy(train, held_out, 3) == pytest.approx(expected, rel=1e-14)


def test_bigram_is_a_distribution():
    # The probabilities of all tokens after any one add up to 1, also after a token with no follower and an unseen one.
    train = np.array([0, 1, 2, 0, 1, 1, 3])
    for before in range(5):
        total = sum(math.exp(-bigram_entropy(np.append(train, before), np.array([after]), 5)) for after in range(5))
        assert total == pytest.approx(1, rel=1e-12)


def test_bigram_equals_plain_loops():
    random = np.random.default_rng(7)
    tokens = (random.random(600) ** 2 * 20).astype(np.int32)
    train, held_out, vocab_size = tokens[:500], tokens[500:], 23
    single, pair = Counter(train.tolist()), Counter(zip(train.tolist(), train[1:].tolist(), strict=False))
    loss, a = 0.0, int(train[-1])
    for b in held_out.tolist():
        followers = [n for (first, _), n in pair.items() if first == a]
        p = (single[b] + 1) / (len(train) + vocab_size)
        if followers:
            p = (pair[a, b] + len(followers) * p) / (sum(followers) + len(followers))
        loss, a = loss - math.log(p), b
    assert bigram_entropy(train, held_out, vocab_size) == pytest.approx(loss / len(held_out), rel=1e-12)


def test_repetition_costs_almost_nothing():
    tokens = np.tile(np.arange(4), 1000)
    assert unigram_entropy(tokens, tokens, 4) == pytest.approx(math.log(4), rel=1e-3)
    assert 0 < bigram_entropy(tokens, tokens, 4) < 0.01
