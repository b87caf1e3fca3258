"""A schedule on a device's own streams: on a GPU, CUDA's.

The host goes through the instructions in the order of the program and hands each to its stream; before it, the stream
waits for the events that the schedule names, and behind it, it records its own.  The device runs the streams side by
side; the host waits for all of them once, at the end of the run.

A backend says with `register_streams` that it has streams, and gives an object with the methods of `Streams`; cupy's do
for the GPU (`use_cupy`), which also has kernels there for every row that is written for any array module.  Nothing here
asks what device it is, so another one that keeps numpy's arrays shows every step (see the tests).

Memory: a pool that hands out again what one stream has let go of does not know what others still read.  So what more
than one stream touches is let go of at the end, when all is done.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Protocol

from minipd.executor.binding import Binding
from minipd.executor.frame import Steps
from minipd.executor.kernel.table import register_array_module, register_transfer
from minipd.executor.preparation import results_of
from minipd.executor.schedule.dependencies import Dependencies
from minipd.executor.schedule.streams import Schedule, schedule

__all__ = ["Streams", "register_streams", "use_cupy"]


class Streams(Protocol):
    """What a backend's streams can do.  `on` is a context in which kernels go to a stream."""

    def on(self, stream: str) -> contextlib.AbstractContextManager: ...
    def record(self, stream: str, event: int) -> None: ...
    def wait(self, stream: str, event: int) -> None: ...
    def synchronize(self) -> None: ...


#: backend -> what makes the streams of an executor
STREAMS: dict[str, Callable[[], Streams]] = {}


def register_streams(backend: str, make: Callable[[], Streams]) -> None:
    """State that a backend has streams.

    Raises: ValueError if that is known already.
    """
    if backend in STREAMS:
        raise ValueError(f"register_streams: {backend} has streams already, {STREAMS[backend]}")
    STREAMS[backend] = make


def on_streams(bound: Binding, backend: str) -> Steps:
    """The program of `bound`, its instructions on the backend's streams."""
    found = schedule(Dependencies(bound.prepared, bound.layout))
    return handed_out(bound, found, STREAMS[backend]())


def handed_out(bound: Binding, schedule: Schedule, streams: Streams) -> Steps:
    """What the host does for a schedule."""
    steps, frame = Steps(), bound.frame
    waits: dict[int, list[int]] = {}
    for event in schedule.events:
        for i in event.waits:
            waits.setdefault(i, []).append(event.number)
    records = {event.after: event.number for event in schedule.events}
    touched: dict[int, set[str]] = {}           # slot -> the streams that read or write it
    for instruction, name in zip(schedule.graph.instructions, schedule.stream, strict=True):
        item = instruction.item
        for value in (*item.reads(), *results_of(item)):
            touched.setdefault(bound.slot(value), set()).add(name)
    late = []
    for instruction, part in zip(schedule.graph.instructions, bound.program.parts, strict=True):
        i, name = instruction.index, schedule.stream[instruction.index]
        late += [slot for slot in part.dead if len(touched.get(slot, ())) > 1]
        dead = tuple(slot for slot in part.dead if len(touched.get(slot, ())) <= 1)
        handed = _handed(part.function, streams, name, waits.get(i, ()), records.get(i))
        steps.add(part._replace(function=handed, dead=dead), frame)

    def finish() -> None:
        streams.synchronize()
        frame.empty(late)
    steps.functions.append(finish)
    return steps


def _handed(function: Callable, streams: Streams, name: str, waits: Any, record: int | None) -> Callable[[], None]:
    def step() -> None:
        for event in waits:
            streams.wait(name, event)
        with streams.on(name):
            function()
        if record is not None:
            streams.record(name, record)
    return step


class CupyStreams:
    """CUDA streams and events, by cupy."""

    def __init__(self, cuda: Any):
        self.cuda = cuda
        self.streams: dict[str, Any] = {}
        self.events: dict[int, Any] = {}

    def stream(self, name: str) -> Any:
        """The CUDA stream of a name, made when it is first asked for."""
        if name not in self.streams:
            self.streams[name] = self.cuda.Stream(non_blocking=True)
        return self.streams[name]

    def on(self, stream: str) -> contextlib.AbstractContextManager:
        return self.stream(stream)

    def record(self, stream: str, event: int) -> None:
        if event not in self.events:
            self.events[event] = self.cuda.Event(disable_timing=True)
        self.events[event].record(self.stream(stream))

    def wait(self, stream: str, event: int) -> None:
        self.stream(stream).wait_event(self.events[event])

    def synchronize(self) -> None:
        for stream in self.streams.values():
            stream.synchronize()


def use_cupy() -> None:
    """Give the backend "GPU" cupy's kernels, transfers and streams.

    Raises: RuntimeError where there is no cupy, or no GPU that it can use.
    """
    try:
        import cupy
        cupy.cuda.runtime.getDevice()
    except Exception as error:              # cupy raises errors of its own where it finds no driver
        raise RuntimeError(f"use_cupy: expected cupy and a GPU that it can use, got {type(error).__name__}: {error}; "
                           "programs run on the CPU without it") from error
    register_array_module("GPU", cupy)
    register_transfer("GPU", cupy.asarray, cupy.asnumpy)
    register_streams("GPU", lambda: CupyStreams(cupy.cuda))
