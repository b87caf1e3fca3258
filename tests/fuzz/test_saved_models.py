"""Saved models, damaged at random: an error that names the file, or a model that runs or says why not; never a crash, a
hang, or more memory than the files account for."""

import json
import random
import signal
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.errors import InputError
from minipd.static import InputSpec

F = paddle.nn.functional
#: what running a damaged program may raise
SAID = (ArithmeticError, IndexError, KeyError, MemoryError, NotImplementedError, TypeError, ValueError)
NUMBERS = (-1, 0, 1, 2, 3, 5, 8, 300, -(1 << 31), (1 << 31) - 1, 1 << 40, 1 << 62, 1 << 64)


class Everything(paddle.nn.Layer):
    """A bit of each: convolution, norms, a recurrence, embeddings, a branch and a loop."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = paddle.nn.Conv2D(1, 2, 2), paddle.nn.BatchNorm2D(2)
        self.norm, self.rnn = paddle.nn.LayerNorm(4), paddle.nn.GRU(4, 3)
        self.embed = paddle.nn.Embedding(5, 4)

    def forward(self, x, words):
        y = F.max_pool2d(F.relu(self.bn(self.conv(x))), 2).flatten(1)
        if y.sum() > 0:
            y = F.softmax(y) * 2
        else:
            y = y - 1
        i = paddle.zeros([], "int64")
        while i < 2:
            y = F.tanh(y)
            i = i + 1
        out, _ = self.rnn(self.norm(self.embed(words)))
        return y, out[:, -1], paddle.concat([out, out * 2], axis=-1)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    paddle.jit.save(Everything(), f"{folder}/net", [InputSpec([None, 1, 5, 5], name="x"),
                                                   InputSpec([None, 3], "int64", name="words")])
    return (folder / "net.json").read_bytes(), (folder / "net.pdiparams").read_bytes()


def damaged_document(rng, text):
    """One to three values of a document replaced, left out or doubled."""
    document = json.loads(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        node = document["program"]
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = rng.choice(keys)
            inner = node[key]
            if isinstance(inner, (dict, list)) and inner and rng.random() < 0.93:
                node = inner
                continue
            do = rng.random()
            if do < 0.1 and isinstance(node, dict):
                del node[key]
            elif do < 0.2 and isinstance(node, list):
                node.insert(key, inner)
            elif do < 0.3 and isinstance(node, list):
                del node[key]
            elif isinstance(inner, bool):
                node[key] = not inner
            elif isinstance(inner, (int, float)):
                node[key] = rng.choice(NUMBERS)
            elif isinstance(inner, str):
                node[key] = rng.choice(("", "x", "1.add", "1.matmul", "1.while", "1.slice", "0.a_i32", "0.a_array",
                                        "1.a_intarray", "float64", "0.t_i64", "0.t_vec", "p", "axis", "shape"))
            else:
                node[key] = rng.choice((None, 0, "", [], {}, [1]))
            break
    return json.dumps(document).encode()


def damaged_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.choice((rng.randrange(min(80, len(data))), rng.randrange(len(data))))
        if rng.random() < 0.3:
            del data[at:at + rng.choice((1, 7, 200, len(data)))]
        else:
            data[at:at + 1] = bytes([rng.choice((0, 255, 127, 128, rng.randrange(256)))])
        if not data:
            break
    return bytes(data)


@contextmanager
def at_most(seconds):
    def ring(*_):
        raise AssertionError(f"still running after {seconds} seconds")
    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attack(saved, folder, seed, rounds):
    """(how many were refused when loaded, how many when run, how many ran)."""
    rng, counts = random.Random(seed), [0, 0, 0]
    inputs = (np.ones((2, 1, 5, 5), "float32"), np.array([[1, 2, 3], [0, 4, 1]]))
    for _ in range(rounds):
        program, parameters = saved
        which = rng.random()
        if which < 0.6:
            program = damaged_document(rng, program)
        elif which < 0.8:
            program = damaged_bytes(rng, program)
        else:
            parameters = damaged_bytes(rng, parameters)
        (folder / "net.json").write_bytes(program)
        (folder / "net.pdiparams").write_bytes(parameters)
        with at_most(30):
            tracemalloc.start()
            try:
                layer = paddle.jit.load(f"{folder}/net")
            except InputError as error:
                assert "net." in str(error), error
                counts[0] += 1
                continue
            finally:
                held = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                assert held < 1_000_000 + 300 * (len(program) + len(parameters)), held
            try:
                layer(*inputs)
                counts[2] += 1
            except SAID:
                counts[1] += 1
    return counts


def test_damaged_models(saved, tmp_path):
    loading, running, ran = attack(saved, tmp_path, 0, 40)
    assert loading > 5 and ran > 1


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 25))
def test_many_damaged_models(saved, tmp_path, seed):
    """About ten minutes in all."""
    attack(saved, tmp_path, seed, 120)
