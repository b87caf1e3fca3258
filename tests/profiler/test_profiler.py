"""The profiler: what it records, when, and how it tells."""

import json
import re
import time

import pytest

import minipd as paddle
from minipd import amp, nn, profiler
from minipd.framework.errors import InputError
from minipd.framework.rank import current
from minipd.profiler import Profiler, ProfilerState, RecordEvent, SortedKeys, SummaryView, TracerEventType


def names(prof, kind=TracerEventType.Operator):
    return [s.name for s in prof.spans if s.kind is kind]


# -------------------------------------------------------------------------------------------------------- schedules
def test_schedules_by_hand():
    """The states are those of PaddlePaddle 3.3.1."""
    def states(n, **options):
        schedule = profiler.make_scheduler(**options)
        return " ".join(schedule(i).name for i in range(n))
    assert states(12, closed=1, ready=1, record=2, repeat=2, skip_first=1) == (
        "CLOSED CLOSED READY RECORD RECORD_AND_RETURN CLOSED READY RECORD RECORD_AND_RETURN CLOSED CLOSED CLOSED")
    assert states(7, closed=1, ready=1, record=1) == (
        "CLOSED READY RECORD_AND_RETURN CLOSED READY RECORD_AND_RETURN CLOSED")
    for options in ({"closed": -1, "ready": 0, "record": 1}, {"closed": 0, "ready": 0, "record": 0}):
        with pytest.raises(ValueError, match="make_scheduler: expected closed, ready, repeat and skip_first >= 0"):
            profiler.make_scheduler(**options)


def traces(steps, **options):
    """Of each trace that is handed over, the numbers of its steps and how many operators it has."""
    found = []

    def ready(prof):
        paddle.ones([1])                                # what the callback does is not recorded
        found.append(([int(n.partition("#")[2]) for n in names(prof, TracerEventType.ProfileStep)], len(names(prof))))
    with Profiler(on_trace_ready=ready, **options) as prof:
        for _ in range(steps):
            paddle.ones([1])
            prof.step()
    return found


def test_traces_follow_the_schedule():
    assert traces(6, scheduler=(2, 4)) == [([2, 3], 2)]
    assert traces(6, scheduler=(0, 1)) == [([0], 1)]
    assert traces(7, scheduler=profiler.make_scheduler(closed=1, ready=1, record=1, repeat=2)) == [([2], 1), ([5], 1)]
    assert traces(3) == [([0, 1, 2], 3)]
    assert traces(2, scheduler=lambda step: ProfilerState.CLOSED) == traces(2, timer_only=True) == []
    for scheduler, error in ((3, TypeError), ((3, 1), ValueError), ((1, 2, 3), TypeError)):
        with pytest.raises(error, match="Profiler: expected"):
            Profiler(scheduler=scheduler)


def test_nothing_is_left_behind():
    """Between the steps that are recorded, and after an error, the handlers are those of before."""
    before = current().handler.__code__, current().run, current().events
    prof = Profiler(scheduler=(2, 3), on_trace_ready=lambda prof: None)
    prof.start()
    assert current().run == before[1] and current().events is None
    for _ in range(2):                                  # to get warm, and the one that counts
        prof.step()
        assert current().events is not None
    prof.step()
    assert current().run == before[1] and current().events is None
    prof.stop()
    with pytest.raises(KeyError), Profiler(on_trace_ready=lambda prof: None):
        raise KeyError
    assert current().events is None and current().handler.__code__ is before[0]
    RecordEvent("nobody sees it").end()
    with RecordEvent("nobody sees it"):
        pass


# ------------------------------------------------------------------------------------------------------- recording
def test_what_is_recorded():
    """Operators of forward and backward passes and of optimizers, under auto_cast too; a compiled call is one span."""
    net = nn.Linear(2, 2)
    static = paddle.jit.to_static(lambda x: (x * x).sum())
    sgd = paddle.optimizer.SGD(0.1, net.parameters())
    x = paddle.ones([1, 2])
    with Profiler(on_trace_ready=lambda prof: None) as prof:
        with RecordEvent("forward"), amp.auto_cast(dtype="bfloat16"):
            loss = net(x).sum()
        loss.backward()
        sgd.step()
        static(net.weight.detach())
    found = names(prof)
    assert found.index("matmul") < found.index("sum") < found.index("sgd") and found.count("sgd") == 2
    assert found.count("matmul") == 2 and "cast" in found, "forward and the gradient of the weight"
    assert names(prof, TracerEventType.PythonUserDefined) == ["forward"]
    assert [n.rpartition(" ")[2] for n in names(prof, TracerEventType.Forward)] == ["(compiled)"]
    mine = next(s for s in prof.spans if s.name == "forward")
    inside = [s for s in prof.spans if mine.start <= s.start and s.start + s.seconds <= mine.start + mine.seconds]
    assert {"matmul", "cast", "sum"} <= {s.name for s in inside} and "sgd" not in {s.name for s in inside}


def test_shapes_and_bytes():
    with Profiler(on_trace_ready=lambda prof: None, record_shapes=True, profile_memory=True) as prof:
        paddle.ones([2, 3]) + 1.0
    add = next(s for s in prof.spans if s.name == "add")
    assert add.detail["bytes"] == 24 and add.detail["inputs"][0] == "f32[2, 3]"


def test_spans_of_ones_own():
    @RecordEvent("decorated")
    def f(n):
        """Kept."""
        return f(n - 1) if n else 7
    event = RecordEvent("by hand")
    with Profiler(on_trace_ready=lambda prof: None) as prof:
        assert f(2) == 7 and f.__doc__ == "Kept."
        event.begin()
        event.end()
        event.end()
    assert names(prof, TracerEventType.PythonUserDefined) == ["decorated"] * 3 + ["by hand"]


# --------------------------------------------------------------------------------------------------------- results
def profiled(**options):
    with Profiler(on_trace_ready=lambda prof: None, **options) as prof:
        for _ in range(2):
            with RecordEvent("mine"):
                paddle.ones([4]) * 2.0
            prof.step()
    return prof


def test_trace_files(tmp_path):
    """One complete event for each span, in microseconds; what is written can be read again."""
    prof = profiled(record_shapes=True)
    prof.export(str(tmp_path / "a" / "trace.json"))
    trace = json.loads((tmp_path / "a" / "trace.json").read_text())
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert len(events) == len(prof.spans) and {e["cat"] for e in events} == {
        "Operator", "ProfileStep", "PythonUserDefined"}
    assert min(e["ts"] for e in events) == 0 and all(e["dur"] >= 0 for e in events)
    back = profiler.load_profiler_result(str(tmp_path / "a" / "trace.json"))
    assert sorted(s.name for s in back) == sorted(s.name for s in prof.spans)
    first = next(s for s in prof.spans if s.name == "multiply")
    again = next(s for s in back if s.name == "multiply")
    assert again.seconds == pytest.approx(first.seconds, abs=1e-8) and again.detail == first.detail
    for path, format in (("", "json"), ("x", "pb")):
        with pytest.raises(ValueError, match="export: expected a path, and format 'json'"):
            prof.export(path, format)
    (tmp_path / "no.json").write_text("[]")
    for path, said in ((tmp_path / "no.json", "expected a trace that a profiler has written"),
                       (tmp_path / "none.json", "expected a trace file")):
        with pytest.raises(InputError, match=said):
            profiler.load_profiler_result(str(path))


def test_traces_are_written_when_they_are_ready(tmp_path):
    schedule = profiler.make_scheduler(closed=0, ready=0, record=1, repeat=2)
    with Profiler(scheduler=schedule, on_trace_ready=profiler.export_chrome_tracing(str(tmp_path), "w")) as prof:
        for _ in range(3):
            paddle.ones([1])
            prof.step()
            time.sleep(0.002)           # names tell milliseconds
    files = sorted(p.name for p in tmp_path.iterdir())
    assert len(files) == 2 and all(re.fullmatch(r"w_time_[\d_]+\.paddle_trace\.json", f) for f in files)


def test_tables(capsys):
    prof = profiled(profile_memory=True)
    prof.summary(time_unit="us")
    text = capsys.readouterr().out
    titles = re.findall(r"- (\w+ Summary) -", text)
    assert titles == ["Overview Summary", "Operator Summary", "UserDefined Summary", "Memory Summary"]
    rows = {m[0]: m[1:] for m in re.findall(r"^(\w+) +(\d+) +([\d.]+)", text, re.M)}
    assert rows["mine"][0] == "2" and rows["multiply"][0] == "2"
    assert re.search(r"multiply +2 +32\n", text), "bytes of results"
    prof.summary(views=SummaryView.UDFView, sorted_by=SortedKeys.CPUMax)
    only = capsys.readouterr().out
    assert "UserDefined" in only and "Operator Summary" not in only and "Total (ms)" in only
    with pytest.raises(ValueError, match="time_unit to be one of s, ms, us, ns, got 'min'"):
        prof.summary(time_unit="min")


def test_step_info():
    prof = Profiler(timer_only=True)
    prof.start()
    assert prof.step_info() == ""
    for _ in range(3):
        time.sleep(0.002)
        prof.step(num_samples=4)
    cost, ips = re.fullmatch(r" batch_cost: ([\d.]+) s ips: ([\d.]+) images/s", prof.step_info("images")).groups()
    assert float(cost) >= 0.002 and float(ips) == pytest.approx(4 / float(cost), rel=0.02)
    assert prof.step_info() == "", "since the last call"
    prof.step()
    assert prof.step_info().endswith("steps/s")
    prof.stop()
