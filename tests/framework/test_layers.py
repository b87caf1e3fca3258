"""The stack: its order, and that a layer that is off is not there."""

import pytest

import minipd as paddle
from minipd.autograd.tape import tape
from minipd.framework import context as module
from minipd.framework.context import Kernels, RankContext, using, without_tape
from minipd.framework.events import record
from minipd.framework.rank import current


class Layer:
    """A layer that writes down its name and calls the one below; it fits in every place."""

    def __init__(self, name, calls):
        self.name, self.calls = name, calls

    def over(self, below):
        def call(row, inputs, attrs):
            self.calls.append(self.name)
            return below(row, inputs, attrs)
        return call


def test_the_order_of_the_stack(monkeypatch):
    """amp -> tape -> dist -> events -> kernel (decision 1): amp and tape see handles, the rest payloads."""
    calls = []

    class Ground(Kernels):
        def run(self, row, payloads, attrs):
            calls.append("kernel")
            return super().run(row, payloads, attrs)

    monkeypatch.setattr(module, "_tape", lambda run, hooks: Layer("tape", calls).over(tape(run, hooks)))
    with using(ground=Ground(), middle=Layer("dist", calls), amp=Layer("amp", calls), events=Layer("events", calls)):
        x = paddle.to_tensor([1.0], stop_gradient=False)
        y = x * 2.0
        assert calls == ["amp", "tape", "dist", "events", "kernel"]
        calls.clear()
        with paddle.no_grad():
            x * 2.0
        assert calls == ["amp", "dist", "events", "kernel"]
        calls.clear()
        y.backward()
        assert "tape" not in calls and calls.count("kernel") == calls.count("dist") >= 1
    calls.clear()
    monkeypatch.undo()
    current().compose()
    x * 2.0
    assert calls == []


def test_layers_that_are_off_are_not_in_the_call(monkeypatch):
    """Nothing stands between: the handler is the tape's own, and it calls the kernels' own function."""
    made = []

    def spied(factory):
        def make(run, *hooks):
            made.append((run, factory(run, *hooks)))
            return made[-1][1]
        return make

    monkeypatch.setattr(module, "_tape", spied(tape))
    monkeypatch.setattr(module, "without_tape", spied(without_tape))
    context = RankContext()
    (run_without, without), (run_with, recording) = made
    assert context.run == run_without == run_with == context.ground.run
    assert context.handler is recording
    context.set_grad_enabled(False)
    assert context.handler is without


@pytest.mark.parametrize("name", ["amp", "middle", "events"])
def test_a_layer_leaves_nothing_behind(name):
    context = current()
    run, code = context.run, context.handler.__code__
    with using(**{name: Layer(name, [])}):
        assert (context.run != run) == (name != "amp")
        assert (context.handler.__code__ is not code) == (name == "amp")
    assert context.run == run == context.ground.run and context.handler.__code__ is code


def test_switching_gradients_builds_nothing():
    """Two handlers are there: no_grad is an assignment."""
    context = current()
    handlers = list(context.handlers)
    with paddle.no_grad():
        assert context.handler is handlers[0]
        with paddle.enable_grad():
            assert context.handler is handlers[1]
    assert context.handler is handlers[1] and context.handlers == handlers


def test_events():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    with record() as events:
        y = (x * x).sum()
        y.backward()
    names = [e.name for e in events]
    assert names[:2] == ["multiply", "sum"] and names.count("multiply") == 3 and "expand_as" in names
    assert all(e.seconds >= 0 for e in events) and [e.start for e in events] == sorted(e.start for e in events)
    count = len(events)
    x * x
    assert len(events) == count                 # it is over


def test_events_inside_events():
    x = paddle.ones([2])
    with record() as outer:
        x + x
        with record() as inner:
            x * x
        x - x
    assert [e.name for e in outer] == ["add", "multiply", "subtract"] and [e.name for e in inner] == ["multiply"]


def test_an_operator_that_fails_ends_the_recording_cleanly():
    run = current().run
    with pytest.raises(ValueError, match="cannot broadcast"):
        with record() as events:
            paddle.ones([2]) + paddle.ones([3])
    assert [e.name for e in events] == ["full", "full"] and current().run == run
