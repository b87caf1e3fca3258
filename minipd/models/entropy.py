"""What counting alone achieves: the losses of a unigram and a bigram model, the lines for a model to get below."""

import numpy as np
from numpy.typing import NDArray


def unigram_entropy(train: NDArray[np.integer], held_out: NDArray[np.integer], vocab_size: int) -> float:
    """Mean of -log p(token) over `held_out`, in nats per token, p from the counts in `train`.

    p(b) = (c(b) + 1) / (N + V): add-one smoothing, so that a token that `train` lacks costs a finite amount.

    >>> unigram_entropy(np.array([0, 0, 0, 1]), np.array([0]), 2) == -np.log(4 / 6)  # p(0) = (3 + 1) / (4 + 2)
    np.True_
    """
    return float(-np.log(_unigram(train, vocab_size)[held_out]).mean())


def bigram_entropy(train: NDArray[np.integer], held_out: NDArray[np.integer], vocab_size: int) -> float:
    """Mean of -log p(token | token before it) over `held_out` (whose first token follows the last of `train`), in nats.

    Pairs are counted in `train`, and back off to the unigram p(b) by the rule of Witten and Bell:

        p(b | a) = (c(a b) + T(a) p(b)) / (c(a) + T(a))

    T(a) is how many different tokens have followed a: the more there were, the likelier is one never seen there. Where
    nothing has followed a, p(b) is left alone. There is no parameter to tune.

    Source: Witten and Bell, "The zero-frequency problem" (1991), method C, as interpolated by Chen and Goodman, "An
    Empirical Study of Smoothing Techniques for Language Modeling" (1998), section 2.5.

    >>> train = np.array([0, 1, 0, 1, 0])  # p(1) = (2 + 1) / (5 + 2); after 0 came 1, twice
    >>> bigram_entropy(train, np.array([1]), 2) == -np.log((2 + 1 * 3 / 7) / (2 + 1))
    np.True_
    """
    unigram = _unigram(train, vocab_size)
    pairs, counts = np.unique(_pairs(train, vocab_size), return_counts=True)  # sorted; only pairs that occur
    first = pairs // vocab_size
    followers = np.bincount(first, minlength=vocab_size)  # T(a)
    followed = np.bincount(first, weights=counts, minlength=vocab_size)  # c(a), where a token follows

    asked = _pairs(np.concatenate([train[-1:], held_out]), vocab_size)
    a, b = asked // vocab_size, asked % vocab_size
    if len(pairs):
        place = np.minimum(np.searchsorted(pairs, asked), len(pairs) - 1)
        seen = np.where(pairs[place] == asked, counts[place], 0)  # c(a b)
    else:
        seen = np.zeros(len(asked))
    backed_off = (seen + followers[a] * unigram[b]) / np.maximum(followed[a] + followers[a], 1)
    return float(-np.log(np.where(followed[a] > 0, backed_off, unigram[b])).mean())


def _unigram(train: NDArray[np.integer], vocab_size: int) -> NDArray[np.float64]:
    return (np.bincount(train, minlength=vocab_size) + 1) / (len(train) + vocab_size)


def _pairs(tokens: NDArray[np.integer], vocab_size: int) -> NDArray[np.int64]:
    """Neighbours as one number each, a * V + b: int64[number of tokens - 1]."""
    wide = tokens.astype(np.int64)
    return wide[:-1] * vocab_size + wide[1:]
