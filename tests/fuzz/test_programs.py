"""Damaged programs and parameters: read, or refused with a clear error; never a crash, a hang or a huge allocation."""

import faulthandler
import os
import time
import tracemalloc

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.errors import InputError
from minipd.io.combined_tensors import combined, separated
from minipd.ir.paddle import to_paddle
from minipd.ir.parser import ParseError, parse
from minipd.ir.serialize import program_json, read_program
from minipd.ir.traced import trace
from minipd.ir.verify import VerifyError, verify
from minipd.static.input import InputSpec
from minipd.static.nn import cond, while_loop
from tests.fuzz.mutations import byte_mutations, text_mutations

F = paddle.nn.functional
#: a reader may take this much memory for each byte of its file, and this much besides
BYTES_PER_BYTE, BYTES = 4000, 32 << 20
#: no damaged file of a few kilobytes takes this long to refuse
HANG = 30


def control(x, n):
    """An if in a loop, and vectors."""
    def body(i, x):
        return i + 1, cond(x.sum() > 0.0, lambda: paddle.split(x, 2)[0].tile([2, 1]),
                           lambda: paddle.concat([x[:1], x[1:]]))
    return while_loop(lambda i, x: i < n, body, [paddle.zeros([], "int64"), x])[1]


def programs(*sizes):
    """Real programs: layers, open sizes, assumptions, control flow."""
    net = paddle.nn.Sequential(paddle.nn.Conv2D(1, 2, 3, stride=2), paddle.nn.ReLU(), paddle.nn.Flatten(),
                               paddle.nn.Linear(18, 3), paddle.nn.LayerNorm(3))
    open_size = None if not sizes else sizes[0]
    return [
        trace(lambda x: F.softmax(net(x)), InputSpec([open_size, 1, 8, 8], "float32", "x")).program,
        trace(control, InputSpec([4, 3], "float32", "x"), InputSpec([], "int64", "n")).program,
        trace(lambda x, y: paddle.concat([x[::2], (x + y) * 0.1]), InputSpec([open_size, 3], "float32", "x"),
              InputSpec([open_size, 3], "float32", "y")).program,
    ]


def exact(text):
    """(what reading gives, the errors that reading may raise)"""
    return verify(parse(text), allow_unregistered=True)


def paddles(text):
    return verify(parse(text, "paddle"), allow_unregistered=True)


def saved(text):
    return read_program(text).program


TENSORS = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.int64(3), "c": np.zeros((0, 2), np.float16)}


def parameters(data):
    return separated(data, list(TENSORS))


#: kind -> (whole files, mutations, reader, what a reader may raise)
KINDS = {
    "exact": (lambda: [p.to_string("exact") for p in programs()], text_mutations, exact, (ParseError, VerifyError)),
    "paddle": (lambda: [p.to_string("paddle") for p in programs()], text_mutations, paddles, (ParseError, VerifyError)),
    "json": (lambda: [program_json(to_paddle(p)) for p in programs(4)], text_mutations, saved, (InputError,)),
    "parameters": (lambda: [combined(TENSORS)], byte_mutations, parameters, (InputError,)),
}


def fuzz(kind, seconds, seed):
    """Damage files and read them for so long; returns (how many, how many were refused)."""
    files, mutations, read, errors = KINDS[kind]
    sources = [mutations(data, np.random.default_rng([seed, i])) for i, data in enumerate(files())]
    for data in files():
        read(data)                          # what is whole is read
    end, tried, refused = time.monotonic() + seconds, 0, 0
    tracemalloc.start()
    try:
        while time.monotonic() < end:
            damaged = next(sources[tried % len(sources)])
            tried += 1
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            faulthandler.dump_traceback_later(HANG, exit=True)
            try:
                found = read(damaged)
                if kind != "parameters":
                    assert str(found) is not None and found.clone() == found
            except errors as error:
                refused += 1
                assert 10 < len(str(error)) < 4000 + 2 * len(damaged), "an error that says something, and ends"
            except Exception as error:
                error.add_note(f"{kind}, seed {seed}, number {tried}: {ascii(damaged)[:2000]}")
                raise
            finally:
                faulthandler.cancel_dump_traceback_later()
            peak = tracemalloc.get_traced_memory()[1] - before
            assert peak < BYTES + BYTES_PER_BYTE * len(damaged), (kind, seed, tried, peak, f"{damaged!r:.2000}")
    finally:
        tracemalloc.stop()
    return tried, refused


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_refused(kind):
    tried, refused = fuzz(kind, 5, seed=0)
    assert tried > refused > tried // 4 > 0


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_refused_for_minutes(kind):
    tried, refused = fuzz(kind, float(os.environ.get("FUZZ_SECONDS", 150)), seed=time.time_ns() % (1 << 32))
    assert tried > refused > tried // 4
