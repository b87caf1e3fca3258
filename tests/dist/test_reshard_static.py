"""Reshards in programs: each rank's local program, run by the executor, gives what the eager reshard gives, with the
same collectives and messages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd.dist.comm.sim import World
from minipd.dist.completion import complete
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.partition import partition
from minipd.dist.placements import Partial, Replicate, Shard, canonical
from minipd.dist.reshard.between import plan_between
from minipd.dist.reshard.run import run_between, run_plan
from minipd.dist.value import DistValue
from minipd.executor import Executor
from minipd.framework.context import Kernels, RankContext, using
from minipd.framework.meta import Meta
from minipd.framework.rank import enter, leave
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.ir.verify import verify
from tests.dist.layouts import meshes, pieces, placed, tensors, value

R, P, S = Replicate(), Partial(), Shard


def global_program(x, mesh, placements):
    """y = reshard(x) to a mesh and placements, on global values."""
    program = Program()
    trace = Trace(program)
    with using(ground=trace, middle=None, grad=False):
        t = Tensor(trace.input("x", Meta(x.shape, x.dtype)))
        trace.build.output("y", ROWS["reshard"](t, mesh=mesh, placements=placements).payload)
    return program


def on_ranks(size, function):
    def rank(comm):
        token = enter(RankContext(comm.rank, comm.size, comm))
        try:
            return function(comm.rank)
        finally:
            leave(token)
    world = World(size, record=True)
    return world.run(rank), world.log


def check(x, a, src, b, dst, seed=0):
    src, dst = canonical(src), canonical(dst)
    given = pieces(x, a, src, np.random.default_rng(seed))
    whole = complete(global_program(x, b, dst), a, lambda op: src)
    size = max(*a.process_ids, *b.process_ids) + 1

    def compiled(rank):
        local = verify(partition(whole, a, rank))
        feed = {"x": given[rank].copy()} if a.contains(rank) else {}
        return Executor(local).run(feed).get("y") if a.contains(rank) or b.contains(rank) else None

    def eager(rank):
        if not (a.contains(rank) or b.contains(rank)):
            return None
        v = DistValue(given.get(rank), x.shape, x.dtype, a, src)
        if a == b:
            return run_plan(v, dst, Kernels().run, rank)
        return run_between(v, b, plan_between(a, src, b, dst, x.shape), Kernels().run, rank)
    (found, log), (expected, log_eager) = on_ranks(size, compiled), on_ranks(size, eager)
    for rank in b.process_ids:
        np.testing.assert_array_equal(found[rank], expected[rank])
    np.testing.assert_allclose(value({r: found[r] for r in b.process_ids}, b, dst, x.shape, x.dtype), x, rtol=1e-12)
    assert sorted(log) == sorted(log_eager)


X = np.arange(35.0, dtype="float32").reshape(5, 7)


@pytest.mark.parametrize("src, dst", [(S(0), P), (S(1), Partial("max")), (Partial("max"), S(0)), (Partial("min"), S(1)),
                                      (Partial("prod"), R), (Partial("avg"), S(0)), (S(0), S(1)), (R, Partial("max"))])
def test_what_paddles_pass_lacks(src, dst):
    """S -> P and P(max) -> S, among others, and uneven."""
    mesh = parse_mesh("x=3")
    check(X, mesh, (src,), mesh, (dst,))


@given(st.data())
@settings(max_examples=25)
def test_on_one_mesh(data):
    x, dtype = data.draw(tensors())
    mesh = data.draw(meshes(6))
    src, dst = (data.draw(placed(mesh, x.shape, dtype)) for _ in range(2))
    check(x, mesh, src, mesh, dst, data.draw(st.integers(0, 99)))


@given(st.data())
@settings(max_examples=25)
def test_from_mesh_to_mesh(data):
    x, dtype = data.draw(tensors())
    a, b = (data.draw(meshes(5, range(5))) for _ in range(2))
    check(x, a, data.draw(placed(a, x.shape, dtype)), b, data.draw(placed(b, x.shape, dtype)),
          data.draw(st.integers(0, 99)))


def test_a_program_of_two_meshes_is_a_program_of_each_rank():
    """The source sends, the target receives, who is of neither does nothing."""
    first, second = ProcessMesh([0, 1]), ProcessMesh([2, 3])
    whole = complete(global_program(X, second, (R,)), first, lambda op: (S(0),))
    names = [[op.name() for op in partition(whole, first, rank).global_block()] for rank in range(5)]
    assert [n for n in names[0] if "p2p" in n] == ["pd_op.p2p_send"]
    assert [n for n in names[2] if n != "builtin.shadow_output"] == ["pd_op.p2p_recv", "pd_op.all_gather"]
    assert names[4] == []
