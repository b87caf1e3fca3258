"""The trace of a schedule: shown, kept as JSON, done again."""

import json

import pytest

import minipd as paddle
from minipd.cinn.ir.printer import text
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.ir_schedule import PRIMITIVES
from minipd.cinn.schedule.scheduler import schedule
from minipd.cinn.schedule.trace import Step, Trace
from tests.cinn.test_lower import rms_norm_gradient, softmax
from tests.cinn.test_primitives import Case, normal


def scheduled(fn, *arrays):
    case = Case(fn, *arrays)
    return case, schedule(case.lowered)


def test_what_tactics_did_is_done_again():
    case, done = scheduled(rms_norm_gradient, normal(6, 5), normal(5, seed=1), normal(6, 5, seed=2))
    assert len(done.trace.steps) > 10
    kept = Trace.from_json(done.trace.to_json())
    assert kept == done.trace
    assert kept.replay(case.lowered).function == done.function
    assert schedule(case.lowered, trace=kept).function == done.function


def test_every_prefix_is_a_trace():
    case, done = scheduled(softmax, normal(5, 7))
    assert Trace().replay(case.lowered).function == case.lowered
    for n in range(len(done.trace.steps)):
        case.s = Trace(done.trace.steps[:n]).replay(case.lowered)
        case.check()


def test_the_text_before_and_after_each_step():
    case, done = scheduled(softmax, normal(5, 7))
    parts = done.trace.explain(case.lowered).split("## ")[1:]
    assert [p.splitlines()[0] for p in parts] == ["before", *map(str, done.trace.steps)]
    assert text(case.lowered) in parts[0] and text(done.function) in parts[-1]


def test_a_trace_reads_as_calls():
    case = Case(softmax, normal(5, 7))
    s = case.s
    outer, inner = s.split("j_exp_2", [-1, 4])
    s.reorder([inner, outer])
    s.vectorize("j_max_0")
    s.annotate("exp_2", "note", 3)
    again = Case(softmax, normal(5, 7))
    exec(str(s.trace), {"s": again.s})
    assert again.s.function == s.function and again.s.trace == s.trace


def test_a_trace_of_another_function_is_refused():
    _, done = scheduled(softmax, normal(5, 7))
    other = Case(lambda x: paddle.exp(x) + 1.0, normal(5, 7))
    with pytest.raises(ScheduleError, match=r"step 0 of the trace, s\.\w+\(.*\), does not fit kernel: "):
        done.trace.replay(other.lowered)
    made = Trace((Step("split", ("i_exp_0", (-1, 2)), ("a", "b")),))
    with pytest.raises(ScheduleError, match="made a, b; in kernel it makes i_exp_0_0, i_exp_0_1: the trace is one of "
                                            "another function"):
        made.replay(other.lowered)


@pytest.mark.parametrize("primitive, args, message", [
    ("tile", ("i_exp_0",), "no primitive 'tile'; there are add_unit_loop"),
    ("split", ("i_exp_0",), "missing 1 required positional argument"),
    ("split", ("i_exp_0", 4), "'int'")])
def test_steps_that_are_none(primitive, args, message):
    with pytest.raises(ScheduleError, match=message):
        Trace((Step(primitive, args),)).replay(Case(lambda x: paddle.exp(x) + 1.0, normal(5)).lowered)


@pytest.mark.parametrize("broken", ["", "{}", "[1]", '[{"primitive": "split"}]', "null"])
def test_what_is_no_trace(broken):
    if broken == "{}":
        assert Trace.from_json("[]") == Trace()
        return
    with pytest.raises(ScheduleError, match="expected a trace as JSON"):
        Trace.from_json(broken)


def test_json_is_plain():
    _, done = scheduled(softmax, normal(5, 7))
    for step in json.loads(done.trace.to_json()):
        assert step.keys() == {"primitive", "args", "outputs"} and step["primitive"] in PRIMITIVES
