"""Pictures of runs: dependencies, streams with their events, and what a profiler has measured."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import minipd as paddle
from minipd import viz
from minipd.executor import Executor
from minipd.executor.schedule import schedule
from minipd.framework.meta import Meta
from minipd.ir.traced import trace
from minipd.profiler import Profiler
from minipd.profiler.chrome import load_profiler_result
from minipd.profiler.recording import TracerEventType
from minipd.viz.executor.dependencies import dependency_graph

SVG = "{http://www.w3.org/2000/svg}"
F32 = np.dtype("float32")


def boxes(picture):
    """Tip -> (x, y, width) of the boxes."""
    found = ElementTree.fromstring(picture.svg).iter(f"{SVG}rect")
    return {e[0].text: tuple(float(e.get(k)) for k in ("x", "y", "width")) for e in found if len(e)}


def program():
    return trace(lambda x: x.exp() + x.tanh().sin(), Meta((4,), F32)).program


def test_streams_and_their_events():
    found = schedule(Executor(program()).dependencies(), lambda i: "side" if i.label.startswith("exp") else "compute")
    cost = {"exp": 4e-6, "tanh": 1e-6, "sin": 1e-6, "add": 2e-6}
    picture = viz.streams(found, lambda i: cost.get(i.label.split()[0], 0.0))
    at = boxes(picture)
    exp, add = at["1: exp %1: 0 to 4 us"], at["4: add %4: 4 to 6 us"]
    assert exp[1] != add[1] and exp[0] + exp[2] == pytest.approx(add[0], abs=0.2)
    assert "event 1: 4: add %4 waits for 1: exp %1" in picture.svg
    assert {"compute is at work 67% of the time", "side is at work 67% of the time"} <= at.keys()
    assert found._repr_svg_().count("<rect") == picture.svg.count("<rect")


def test_dependencies():
    graph = Executor(program()).dependencies()
    drawn = dependency_graph(graph)
    assert [n.label.split("\n")[0] for n in drawn.root.nodes] == [i.label for i in graph.instructions]
    assert {(e.source, e.target) for e in drawn.edges} == {
        ("i0", "i1"), ("i0", "i2"), ("i2", "i3"), ("i1", "i4"), ("i3", "i4"), ("i4", "i5")}
    assert "true: %0" in graph._repr_svg_()


def test_a_profiler_sees_every_instruction(tmp_path):
    static = paddle.jit.to_static(lambda x: (x.exp() + x).matmul(x))
    x = paddle.ones([3, 3])
    with paddle.no_grad():
        static(x)
        with Profiler(on_trace_ready=lambda prof: prof.export(str(tmp_path / "t.json"))) as prof:
            static(x)
    spans = {s.name: s for s in prof.spans}
    assert [s.name for s in prof.spans if s.kind is TracerEventType.Operator] == [
        "data", "exp", "add", "matmul", "shadow_output"]
    assert spans["matmul"].detail == {"op": "pd_op.matmul", "kernel": "<backend:CPU|layout:NCHW|dtype:float32>",
                                      "bytes": 36}
    whole = next(s for s in prof.spans if s.kind is TracerEventType.Forward)
    inside = [s for s in prof.spans if whole.start <= s.start and s.start + s.seconds <= whole.start + whole.seconds]
    assert {"exp", "add", "matmul"} <= {s.name for s in inside}
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert next(e for e in events if e["name"] == "exp")["args"]["op"] == "pd_op.exp"
    picture = viz.run(load_profiler_result(str(tmp_path / "t.json")))
    tips = boxes(picture)
    outer = next(at for tip, at in tips.items() if tip.endswith("us") and "(compiled)" in tip)
    inner = next(at for tip, at in tips.items() if tip.startswith("matmul, op pd_op.matmul"))
    assert inner[1] > outer[1] and outer[0] <= inner[0] and inner[0] + inner[2] <= outer[0] + outer[2] + 1


def test_a_run_without_spans_is_refused():
    with pytest.raises(ValueError, match="expected spans that a profiler has recorded, got none"):
        viz.run([])


def test_nobody_looks_on_unless_asked():
    executor = Executor(program())
    executor.run({"input_0": np.ones(4, F32)})
    bound, = executor._arena.bindings.values()
    assert bound.frame.around is None
