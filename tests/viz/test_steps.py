"""The strip of loop nests, one panel for each primitive."""

import re
from dataclasses import replace

import numpy as np
import pytest

import minipd as paddle
from minipd import viz
from minipd.cinn.ir.ast import Seq
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.trace import Step, Trace
from minipd.framework.meta import Meta
from minipd.ir.traced import trace
from minipd.viz.cinn.loops import places
from minipd.viz.cinn.steps import Frame, frames_of, schedules_of, strip
from tests.cinn.groups import group


def lowered():
    return group(lambda x: (x * 2.0).exp().sum(-1), ((8, 16), np.float32)).lower()


def changed(function, number, **facts):
    """With other facts of the loop that is statement `number` of the body."""
    body = [replace(s, **facts) if i == number else s for i, s in enumerate(function.body.stmts)]
    return replace(function, body=Seq(tuple(body)))


def loops_at(function):
    return [i for i, s in enumerate(function.body.stmts) if hasattr(s, "extent")]


def test_only_what_a_step_has_changed_stands_out():
    before = lowered()
    at = loops_at(before)[0]
    after = changed(before, at, kind="parallel")
    svg = strip([Frame(before), Frame(after, "s.parallel('i')", "Bind")]).svg
    yellow = svg.count('class="focus"')
    assert yellow == svg.count("parallel i_") == 1              # the loop, and not what is inside
    assert ">as lowered<" in svg and ">1  s.parallel(&#x27;i&#x27;)<" in svg and ">Bind<" in svg
    assert svg.index("as lowered") < svg.index("Bind")


def test_a_step_that_changes_nothing_is_all_grey():
    function = lowered()
    assert 'class="focus"' not in strip([Frame(function), Frame(function, "s.annotate('exp', 'k', 1)")]).svg


def test_blocks_are_short_in_panels():
    """A block speaks of its own iter vars; what these are is said where they are not loops."""
    svg = strip([Frame(lowered())]).svg
    assert re.search(r"exp_\d\[vi, vj\] = exp\(", svg) and "axis.bind" not in svg


def test_many_panels_stand_in_rows():
    function = lowered()
    wide, tall = strip([Frame(function)] * 2), strip([Frame(function)] * 12)
    assert tall.width < 1600 and tall.height > 2 * wide.height - 100


def test_places_tell_where_a_line_stands():
    found = list(places(lowered().body))
    assert any(place.endswith("; ") and place.count("; ") == 2 for place in found)
    assert len(set(found)) == len(found)


def test_a_trace_is_shown_step_by_step():
    function = lowered()
    s = IRSchedule(function)
    outer, inner = s.split(s.get_loops("exp_2")[1], [-1, 4])
    s.vectorize(inner)
    frames = list(frames_of(function, s.trace, (("Tile", 0, 1), ("Bind", 1, 1), ("Vectorize", 1, 2))))
    assert [frame.above for frame in frames] == ["", "Tile", "Vectorize"]
    assert frames[1].caption.startswith("s.split('j_exp_2'") and frames[2].function == s.function
    svg = viz.steps(function, s.trace).svg
    assert f"{outer} &lt; 4" in svg and f"vector {inner} &lt; 4" in svg


def test_the_schedules_of_a_program():
    def f(x, w):
        return paddle.nn.functional.softmax(x).matmul(w), paddle.nn.functional.softmax(x * 2.0)
    program = trace(f, *[Meta((64, 64), np.dtype("float32"))] * 2).program
    svg = viz.steps(program).svg
    assert svg.count(">as lowered<") == len(list(schedules_of(program))) >= 1
    assert "vectorize" in svg and ">ComputeAt<" in svg
    with pytest.raises(ValueError, match="stays library kernels"):
        viz.steps(trace(lambda x: x.matmul(x), Meta((8, 8), np.dtype("float32"))).program)
    with pytest.raises(ScheduleError):
        viz.steps(lowered(), Trace((Step("parallel", ("nothing",)),)))


def test_many_steps_of_one_primitive_are_one_panel():
    function = lowered()
    s = IRSchedule(function)
    for block in ("multiply_1", "exp_2"):
        s.unroll(s.get_loops(block)[1])
    s.parallel(s.get_loops("exp_2")[0])
    assert len(list(frames_of(function, s.trace))) == 4
    first, both, last = frames_of(function, s.trace, (("Unroll", 0, 2), ("Bind", 2, 3)), most=2)
    assert both.caption == "unroll of j_multiply_1, j_exp_2" and both.above == "Unroll"
    assert last.caption == "s.parallel('i_exp_2')" and last.function == s.function
