"""Batches are a pure function of (seed, step), labels are the next tokens, windows stay inside the text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd.framework.errors import InputError
from minipd.models.batches import Batches, validation_batches

TOKENS = np.arange(1000, dtype=np.int32)  # a token is its own place, so a window can be read off


def test_the_same_step_gives_the_same_batch_whatever_came_before():
    batches = Batches(TOKENS, batch=4, seq_len=8, seed=5)
    in_order = [batches(step) for step in range(6)]
    resumed = Batches(TOKENS, batch=4, seq_len=8, seed=5)
    for step in (5, 0, 3):
        np.testing.assert_array_equal(resumed(step)[0], in_order[step][0])
        np.testing.assert_array_equal(resumed(step)[1], in_order[step][1])


def test_the_numbers_themselves():
    # The stream of numpy's Philox is fixed for good: a change here is a change of every run ever made.
    ids, _ = Batches(TOKENS, batch=4, seq_len=8, seed=0)(0)
    assert ids[:, 0].tolist() == [731, 338, 281, 796]


@given(st.integers(0, 2**63), st.integers(0, 10**9), st.integers(2, 40), st.integers(1, 8))
def test_windows(seed, step, length, seq_len):
    if length < seq_len + 1:
        length = seq_len + 1
    ids, labels = Batches(np.arange(length), batch=3, seq_len=seq_len, seed=seed)(step)
    assert ids.dtype == labels.dtype == np.int64
    assert ids.shape == labels.shape == (3, seq_len)
    np.testing.assert_array_equal(labels, ids + 1)
    np.testing.assert_array_equal(np.diff(ids, axis=1), 1)
    assert ids.min() >= 0 and labels.max() < length


def test_seeds_and_steps_differ():
    starts = {
        tuple(Batches(TOKENS, batch=4, seq_len=8, seed=seed)(step)[0][:, 0]) for seed in range(5) for step in range(20)
    }
    assert len(starts) == 100


def test_every_window_is_drawn_and_none_much_more_often():
    batches = Batches(np.arange(14), batch=100, seq_len=4, seed=1)  # ten windows
    counts = np.bincount(np.concatenate([batches(step)[0][:, 0] for step in range(100)]), minlength=10)
    assert counts.shape == (10,) and counts.sum() == 10_000
    assert abs(counts - 1000).max() < 150  # five standard deviations of 30


def test_validation_covers_the_text_evenly():
    batches = validation_batches(TOKENS, batch=4, seq_len=8, count=5)
    assert len(batches) == 5
    starts = np.concatenate([ids[:, 0] for ids, _ in batches])
    assert starts[0] == 0 and starts[-1] == 1000 - 9
    assert set(np.diff(starts)) <= {52, 53}
    for ids, labels in batches:
        assert ids.shape == (4, 8) and ids.dtype == np.int64
        np.testing.assert_array_equal(labels, ids + 1)


def test_a_text_of_one_window():
    ids, labels = Batches(np.arange(9), batch=2, seq_len=8, seed=0)(3)
    np.testing.assert_array_equal(ids, [np.arange(8)] * 2)
    np.testing.assert_array_equal(labels, [np.arange(1, 9)] * 2)


def test_a_text_shorter_than_a_window():
    with pytest.raises(InputError, match=r"at least 9 tokens.*got 8 tokens: use a longer corpus or a smaller"):
        Batches(np.arange(8), batch=2, seq_len=8, seed=0)
    with pytest.raises(InputError, match="at least 9 tokens"):
        validation_batches(np.arange(8), batch=2, seq_len=8, count=1)
