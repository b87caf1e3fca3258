"""Collectives in Paddle's form: its operators and attributes, and the same numbers when they are read back."""

import numpy as np
import pytest

from minipd.dist.comm.sim import World
from minipd.executor import Executor
from minipd.framework.context import RankContext, using
from minipd.framework.rank import current, enter, leave
from minipd.framework.row import ROWS
from minipd.ir.paddle import from_paddle, to_paddle
from minipd.ir.parser import parse
from minipd.ir.program import Program
from minipd.ir.trace import Trace

F64 = np.dtype("float64")
SHAPE = (4, 6, 2)
ALL = (0, 1)


def rank_program(rank, name, attrs):
    program = Program()
    trace = Trace(program)
    with using(ground=trace, grad=False):
        x = trace.build.data("x", SHAPE, F64)
        indexed = {"index": attrs["group"].index(rank)} if name in ("reduce_scatter", "all_to_all") else {}
        trace.build.output("y", current().run(ROWS[name], [x], {**attrs, **indexed}))
    return program


def on_two_ranks(function):
    def rank(comm):
        token = enter(RankContext(comm.rank, comm.size, comm))
        try:
            return function(comm.rank)
        finally:
            leave(token)
    return World(2).run(rank)


def exchange(cut, join):
    shape = list(SHAPE)
    shape[cut] //= 2
    return {"group": ALL, "split_axis": cut, "concat_axis": join, "split_sizes": (SHAPE[cut] // 2,) * 2,
            "concat_sizes": (shape[join],) * 2}


#: operator, attributes -> what Paddle 3.3.1 calls it, and its attributes as it prints them
CALLS = [
    *(("all_reduce", {"group": ALL, "op": op}, f"reduce_type:{n},ring_id:1") for n, op in enumerate(
        ("sum", "max", "min", "prod"))),
    *(("all_gather", {"group": ALL, "axis": axis, "sizes": (SHAPE[axis],) * 2}, "nranks:2,ring_id:1")
      for axis in range(3)),
    *(("reduce_scatter", {"group": (1, 0), "axis": axis, "sizes": (SHAPE[axis] // 2,) * 2, "op": "sum"},
       "nranks:2,ring_id:1") for axis in range(3)),
    *(("all_to_all", exchange(cut, join), "ring_id:1") for cut in range(3) for join in range(3)),
    ("broadcast", {"group": (1, 0), "root": 0}, "ring_id:1,root:1"),
]


@pytest.mark.parametrize("name, attrs, shown", CALLS, ids=[f"{name}-{i}" for i, (name, *_) in enumerate(CALLS)])
def test_what_is_written_and_read_back_computes_the_same(name, attrs, shown):
    def run(rank):
        program, x = rank_program(rank, name, attrs), np.random.default_rng(rank).normal(size=SHAPE)
        there = to_paddle(program)
        text = program.to_string("paddle")
        assert f'"pd_op.{name}"' in text and f"{{{shown},stop_gradient:[true]}}" in text
        assert there.rings == {1: attrs["group"]} and there.clone().rings == there.rings
        assert parse(text, "paddle").to_string("paddle") == text
        axes = {attrs.get(k, 0) for k in ("axis", "split_axis", "concat_axis")}
        back = from_paddle(there)
        if axes == {0}:
            assert back.to_string("exact") == program.to_string("exact")
        return (Executor(program).run({"x": x})["y"], Executor(back).run({"x": x})["y"])
    for want, got in on_two_ranks(run):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name, attrs", [
    ("all_gather", {"group": ALL, "axis": 0, "sizes": (4, 3)}),
    ("reduce_scatter", {"group": ALL, "axis": 0, "sizes": (3, 1), "op": "sum"}),
    ("reduce_scatter", {"group": ALL, "axis": 0, "sizes": (2, 2), "op": "max"})])
def test_what_paddle_does_not_do_stays_ours(name, attrs):
    program = rank_program(0, name, attrs)
    assert f'"minipd.{name}"' in program.to_string("paddle")
    assert from_paddle(to_paddle(program)).to_string("exact") == program.to_string("exact")


def test_a_text_does_not_say_who_is_in_a_group():
    program = rank_program(0, "all_reduce", {"group": ALL, "op": "sum"})
    read = from_paddle(parse(program.to_string("paddle"), "paddle"))
    assert "paddle.all_reduce" in [op.name() for op in read.walk()]
    with pytest.raises(NotImplementedError, match=r"paddle\.all_reduce"):
        Executor(read).run({"x": np.zeros(SHAPE)})
