"""The picture of a memory plan: every buffer a box where the plan has it."""

import re

import numpy as np
import pytest

import minipd as paddle
from minipd import viz
from minipd.executor import Executor
from minipd.framework.meta import Meta
from minipd.ir.traced import trace
from minipd.static.input import InputSpec

F32 = np.dtype(np.float32)
BOX = re.compile(r'<rect class="p\d" x="([\d.-]+)" y="([\d.-]+)" width="([\d.-]+)" height="([\d.-]+)" rx="2">'
                 r"<title>([^<]*)</title>")


def boxes(svg):
    return [(*map(float, found[:4]), found[4]) for found in BOX.findall(svg)]


def chain(x, w):
    a = paddle.matmul(x, w)
    b = paddle.matmul(a, w)
    c = paddle.matmul(b, w)
    return (a + paddle.matmul(c, w)).sum()


def test_boxes_are_where_the_plan_has_them():
    executor = Executor(trace(chain, Meta((8, 8), F32), Meta((8, 8), F32)).program)
    found = boxes(viz.memory(executor).svg)
    assert [tip for *_, tip in found] == [
        "%2 matmul: f32[8, 8], then %6 add: f32[8, 8]; 256 B at byte 0, from position 2 to 7",
        "%3 matmul: f32[8, 8]; 256 B at byte 256, from position 3 to 4",
        "%4 matmul: f32[8, 8]; 256 B at byte 512, from position 4 to 5",
        "%5 matmul: f32[8, 8]; 256 B at byte 256, from position 5 to 6"]
    assert [(round(w), round(h)) for _, _, w, h, _ in found] == [(478, 99), (158, 99), (158, 99), (158, 99)]
    for i, (x, y, w, h, _) in enumerate(found):             # no byte is two buffers' at once
        for other_x, other_y, other_w, other_h, _ in found[:i]:
            assert x + w <= other_x or other_x + other_w <= x or y + h <= other_y or other_y + other_h <= y
    assert "bound 768 B" in viz.memory(executor).svg


def test_the_plan_of_open_sizes_is_drawn_for_given_ones():
    program = trace(lambda x: (x @ x.transpose([1, 0])).sum(), InputSpec([None, 8], "float32", "x")).program
    executor = Executor(program)
    assert "bound 256 B" in viz.memory(executor, S0=8).svg and "bound 4 KiB" in viz.memory(executor, S0=32).svg
    assert executor._repr_svg_() is None
    assert "memory plan" in Executor(trace(lambda x: x.exp().sum(), Meta((4,), F32)).program)._repr_svg_()


@pytest.mark.parametrize("function", [lambda x: x, lambda x: x.exp()])
def test_a_run_without_buffers_is_an_empty_arena(function):
    svg = viz.memory(Executor(trace(function, Meta((4,), F32)).program)).svg
    assert boxes(svg) == [] and "bound 0 B" in svg
