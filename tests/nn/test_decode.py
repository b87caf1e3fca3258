"""Beam search against the search that keeps every sequence, and decoders of one's own."""

import itertools
import math

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.nn.decode import Decoder

V, END = 4, 1


class Bigram(nn.Layer):
    """The next number's scores depend on the last number only; the state counts the steps."""

    def __init__(self, table):
        super().__init__()
        self.table = paddle.to_tensor(table)

    def forward(self, inputs, states):
        return self.table[inputs], states + 1


def search(table, beams, **kwargs):
    decoder = nn.BeamSearchDecoder(Bigram(table), 0, END, beams)
    return nn.dynamic_decode(decoder, paddle.zeros([2, 1]), **kwargs)


def test_the_widest_beam_finds_the_best_sequences():
    table = np.random.RandomState(0).randn(V, V).astype("float32") * 3
    steps = 3
    (ids, states, lengths) = search(table, V ** steps, max_step_num=steps - 1, return_length=True)
    log_p = table - np.log(np.exp(table).sum(1, keepdims=True))
    scores = {}
    for seq in itertools.product(range(V), repeat=steps):
        total, last = 0.0, 0
        for token in seq:
            total += (0.0 if token == END else -1e9) if last == END else log_p[last, token]
            last = token
        scores[seq] = total
    found = [tuple(ids.numpy()[1, :, k].tolist()) for k in range(8)]
    best = sorted(scores.values(), reverse=True)[:8]
    assert ids.dtype == "int64" and len(set(found)) == 8
    np.testing.assert_allclose([scores[s] for s in found], best, rtol=1e-5)
    np.testing.assert_allclose(states.log_probs.numpy()[0, :8], best, rtol=1e-5)
    assert lengths.numpy()[1, :8].tolist() == [(s + (END,)).index(END) + (END in s) for s in found]


def test_it_stops_when_all_beams_have_ended():
    table = np.full((V, V), -20.0, "float32")
    table[:, END], table[:, 2] = 1.0, 0.0
    ids, states = search(table, 2)
    assert ids.shape[1] < 60 and states.finished.numpy().all()
    best = ids.numpy()[0, :, 0].tolist()
    assert best == [END] * len(best) and states.log_probs.numpy()[0, 0] == pytest.approx(-math.log1p(math.exp(-1)),
                                                                                       abs=1e-4)
    assert search(table, 2, output_time_major=True)[0].shape == [ids.shape[1], 2, 2]


def test_the_first_steps():
    decoder = nn.BeamSearchDecoder(Bigram(np.eye(V, dtype="float32")), 3, END, 2, embedding_fn=lambda ids: ids * 1,
                                   output_fn=lambda x: x * 2)
    inputs, states, finished = decoder.initialize((paddle.ones([2, 1]),))
    assert inputs.tolist() == [[3, 3], [3, 3]] and states.log_probs.tolist() == [[0, -1e9], [0, -1e9]]
    assert states.cell_states[0].shape == [2, 2, 1] and not finished.numpy().any()
    x = paddle.arange(6.0).reshape([2, 3])
    assert nn.BeamSearchDecoder.tile_beam_merge_with_batch(x, 2)[:, 0].tolist() == [0, 0, 3, 3]


class Doubling(Decoder):
    """Each entry is doubled until it is greater than 20; the state counts."""

    def initialize(self, inits):
        return inits, paddle.zeros(inits.shape), paddle.zeros(inits.shape, "bool")

    def step(self, time, inputs, states, offset=0):
        return inputs * 2 + offset, states + 1, inputs * 2, inputs * 2 > 20

    def finalize(self, outputs, final_states, sequence_lengths):
        return outputs, final_states


def test_a_decoder_of_ones_own():
    start = paddle.to_tensor([1.0, 8.0])
    out, states, lengths = nn.dynamic_decode(Doubling(), start, return_length=True)
    assert out.tolist() == [[2, 4, 8, 16, 32], [16, 32, 64, 128, 256]] and states.tolist() == [5, 5]
    assert lengths.tolist() == [4, 1]
    out, states = nn.dynamic_decode(Doubling(), start, max_step_num=2, impute_finished=True, offset=1)
    assert out.tolist() == [[3, 5, 9], [17, 33, 65]] and states.tolist() == [3, 2]
    with pytest.raises(NotImplementedError, match=r"Decoder defines no initialize\(inits\)"):
        nn.dynamic_decode(Decoder())
