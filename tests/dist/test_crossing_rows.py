"""The operators of programs that cross meshes: `p2p_send`, `p2p_recv` and `broadcast`."""

import numpy as np
import pytest

from minipd.dist.comm.errors import MismatchError
from minipd.dist.comm.sim import World
from minipd.executor import Executor
from minipd.framework.context import RankContext, using
from minipd.framework.rank import current, enter, leave
from minipd.framework.row import ROWS
from minipd.ir.dce import remove_dead_ops
from minipd.ir.paddle import from_paddle, to_paddle
from minipd.ir.parser import parse
from minipd.ir.program import Program
from minipd.ir.trace import Trace

F32 = np.dtype("float32")


def call(name, *payloads, **attrs):
    return current().run(ROWS[name], list(payloads), attrs)


def rank_program(rank):
    """Rank 0 sends its x to rank 1 and gets it back squared; then rank 1 gives its own to everybody."""
    program = Program()
    trace = Trace(program)
    with using(ground=trace, grad=False):
        x = trace.build.data("x", (2, 3), F32)
        if rank == 0:
            call("p2p_send", x, dst=1, tag=7)
            y = call("p2p_recv", src=1, shape=(2, 3), dtype=F32, tag=8)
        else:
            y = call("p2p_recv", src=0, shape=(2, 3), dtype=F32, tag=7)
            call("p2p_send", call("multiply", y, y), dst=0, tag=8)
        trace.build.output("y", y)
        trace.build.output("z", call("broadcast", x, root=1, group=(0, 1)))
    remove_dead_ops(program)
    return program


def on_two_ranks(function, **world):
    def rank(comm):
        token = enter(RankContext(comm.rank, comm.size, comm))
        try:
            return function(comm)
        finally:
            leave(token)
    return World(2, **world).run(rank)


def test_two_programs_talk():
    x = np.arange(6, dtype=F32).reshape(2, 3)

    def run(comm):
        return Executor(rank_program(comm.rank)).run({"x": x + 10 * comm.rank})
    first, second = on_two_ranks(run)
    np.testing.assert_array_equal(first["y"], x * x)
    np.testing.assert_array_equal(second["y"], x)
    for found in (first, second):
        np.testing.assert_array_equal(found["z"], x + 10)


@pytest.mark.parametrize("rank", [0, 1])
def test_the_text_is_read_back_and_paddle_has_its_own_names(rank):
    program = rank_program(rank)
    text = program.to_string("exact")
    assert parse(text).to_string("exact") == text
    names = [op.name() for op in to_paddle(program).global_block()]
    assert [n for n in names if n in ("pd_op.send_v2", "pd_op.recv_v2")] == (
        ["pd_op.send_v2", "pd_op.recv_v2"] if rank == 0 else ["pd_op.recv_v2", "pd_op.send_v2"])
    assert from_paddle(to_paddle(program)).to_string("exact") == text


def test_a_message_of_another_shape_is_an_error_that_names_both():
    def run(comm):
        if comm.rank == 0:
            call("p2p_send", np.zeros((4,), F32), dst=1)
        else:
            call("p2p_recv", src=0, shape=(3,), dtype=F32)
    with pytest.raises(MismatchError, match=r"p2p_recv: rank 1 expected f32\[3\] from rank 0 under tag 0, which sent "
                                            r"f32\[4\]"):
        on_two_ranks(run)
