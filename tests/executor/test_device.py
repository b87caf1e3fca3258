"""Programs on the streams of a device: one that keeps numpy's arrays, and cupy's, for which numpy stands in."""

import contextlib
import sys
import types

import numpy as np
import pytest

from minipd.executor import Executor, Memory, device
from minipd.executor.kernel import register_array_module, table
from minipd.framework.meta import Meta
from minipd.framework.place import Place
from minipd.ir.traced import trace

F32 = np.dtype("float32")


class Gpu(Place):
    kind = "gpu"


class Logged:
    """Streams that write down what they are told."""

    def __init__(self, log):
        self.log = log

    @contextlib.contextmanager
    def on(self, stream):
        self.log.append(f"{stream}:")
        yield

    def record(self, stream, event):
        self.log.append(f"{stream} records {event}")

    def wait(self, stream, event):
        self.log.append(f"{stream} waits for {event}")

    def synchronize(self):
        self.log.append("synchronize")


@pytest.fixture
def nothing_registered(monkeypatch):
    monkeypatch.setattr(table, "REGISTERED", {})
    monkeypatch.setattr(table, "TRANSFERS", {})
    monkeypatch.setattr(device, "STREAMS", {})
    monkeypatch.setattr("minipd.executor.executor.STREAMS", device.STREAMS)


def program():
    return trace(lambda x: (x + x).exp(), Meta((2,), F32)).program


def test_every_stream_waits_for_what_it_needs(nothing_registered):
    log = []
    register_array_module("GPU", np)
    device.register_streams("GPU", lambda: Logged(log))
    x = np.array([1, 2], np.float32)
    executor = Executor(program(), Gpu())
    for _ in range(2):
        log.clear()
        np.testing.assert_array_equal(executor.run({"input_0": x})["output_0"], np.exp(x + x))
        assert log == ["compute:", "compute records 0", "h2d waits for 0", "h2d:", "h2d records 1",      # data, copy
                       "compute waits for 1", "compute:", "compute:", "compute records 2",               # add, exp
                       "d2h waits for 2", "d2h:", "d2h records 3", "compute waits for 3", "compute:",    # copy, output
                       "synchronize"]
    with pytest.raises(ValueError, match="GPU has streams already"):
        device.register_streams("GPU", lambda: Logged(log))


def test_what_several_streams_touch_is_let_go_of_at_the_end(nothing_registered):
    log = []
    register_array_module("GPU", np)
    device.register_streams("GPU", lambda: Logged(log))
    executor = Executor(program(), Gpu())
    executor.run({"input_0": np.ones(2, F32)})
    bound, = executor._arena.bindings.values()
    plain = sum(len(part.dead) for part in bound.program.parts)
    kept = sum(len(part.dead) for part in bound.on_device.parts)
    assert 0 < kept < plain and all(bound.frame.slots[i] is None for i in bound.passing)


def test_whoever_looks_on_sees_one_stream(nothing_registered):
    log = []
    register_array_module("GPU", np)
    device.register_streams("GPU", lambda: Logged(log))
    Executor(program(), Gpu()).run({"input_0": np.ones(2, F32)}, None, Memory())
    assert not log


def test_cupy(nothing_registered, monkeypatch):
    """Its kernels, transfers, streams and events are asked for by their names."""
    told = []

    class Stream:
        def __init__(self, non_blocking):
            self.name = f"stream {len({t for t in told if t.startswith('new')})}"
            told.append(f"new {self.name}")

        def __enter__(self):
            told.append(self.name)

        def __exit__(self, *_):
            pass

        def wait_event(self, event):
            told.append(f"{self.name} waits")

        def synchronize(self):
            told.append(f"{self.name} synchronized")

    class Event:
        def __init__(self, disable_timing):
            pass

        def record(self, stream):
            told.append(f"{stream.name} records")
    cupy = types.ModuleType("cupy")
    cupy.__dict__.update({n: getattr(np, n) for n in dir(np) if not n.startswith("__")})
    cupy.asnumpy = lambda a: told.append("to numpy") or a.copy()
    cupy.cuda = types.SimpleNamespace(Stream=Stream, Event=Event,
                                      runtime=types.SimpleNamespace(getDevice=lambda: 0))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    device.use_cupy()
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(Executor(program(), Gpu()).run({"input_0": x})["output_0"], np.exp(x + x))
    assert told.count("to numpy") == 1
    assert [t for t in told if t.startswith("new")] == ["new stream 0", "new stream 1", "new stream 2"]
    assert told.index("stream 0 records") < told.index("stream 1 waits") < told.index("stream 1 records")
    assert told[-3:] == [f"stream {i} synchronized" for i in range(3)]


def test_no_cupy_is_said(nothing_registered, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(RuntimeError, match="expected cupy and a GPU that it can use, got ModuleNotFoundError"):
        device.use_cupy()
    assert not device.STREAMS and not table.REGISTERED
