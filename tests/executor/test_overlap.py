"""Collectives in a thread beside computation: results, order, errors."""

import threading
import time

import numpy as np
import pytest

from minipd.dist.comm.base import Communicator
from minipd.dist.comm.sim import World
from minipd.executor import Executor, Memory, Scope, overlap
from minipd.framework.context import RankContext
from minipd.framework.rank import enter, leave
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.builder import Builder

F32 = np.dtype(np.float32)


class Doubling(Communicator):
    """A pair of ranks of which the other gives the same; slow, and it remembers who called."""

    threads = True

    def __init__(self, fails_at=None):
        super().__init__(0, 2)
        self.calls, self.fails_at = [], fails_at

    def all_reduce(self, x, group, op="sum"):
        self.calls.append((float(x.flat[0]), threading.current_thread().name))
        time.sleep(0.002)
        if len(self.calls) == self.fails_at:
            raise ConnectionError("the other rank is gone")
        return x * 2


def program_of(rounds=3):
    """Sums over ranks of w k, each with products beside it that need it not, then an update of w by all of them."""
    program = Program()
    build = Builder(program.global_block())
    w, x = build.parameter("w", (64, 64), F32), build.data("x", (64, 64), F32)
    sums, h = [], x
    for k in range(rounds):
        part, = build.call(ROWS["scale"], (w,), {"scale": float(k + 1)})
        total, = build.call(ROWS["all_reduce"], (part,), {"group": (0, 1), "op": "sum"})
        sums.append(total)
        h, = build.call(ROWS["matmul"], (h, x), {})
        h, = build.call(ROWS["tanh"], (h,), {})
    for total in sums:
        h, = build.call(ROWS["add"], (h, total), {})
    rate, skip = build.data("rate", (), F32), build.data("skip", (), np.dtype(bool))
    new, = build.call(ROWS["sgd"], (w, h, rate, skip), {})
    build.set_parameter("w", new)
    return program


def feed_and_scope():
    r = np.random.default_rng(0)
    feed = {"x": r.standard_normal((64, 64)).astype(F32) / 8, "rate": np.float32(0.5), "skip": np.bool_(False)}
    return feed, Scope(w=np.arange(64 * 64, dtype=np.float32).reshape(64, 64))


@pytest.fixture
def rank():
    """A function that makes this the rank of a communicator."""
    tokens = []

    def become(comm):
        tokens.append(enter(RankContext(0, 2, comm)))
        return comm
    yield become
    for token in reversed(tokens):
        leave(token)


@pytest.fixture
def always(monkeypatch):
    """Whatever can be done beside a collective is worth it."""
    monkeypatch.setattr(overlap, "WORTH", 0.0)
    monkeypatch.setattr(overlap.streams_of, "__defaults__", (1e-9,))


def ran(program, comm, rank, memory=None):
    rank(comm)
    executor = Executor(program)
    feed, scope = feed_and_scope()
    for _ in range(3):
        executor.run(feed, scope, memory)
    return scope["w"], executor


def test_results_are_the_same_and_the_order_is_that_of_the_program(rank, always):
    threaded, plain = Doubling(), Doubling()
    plain.threads = False
    expected, _ = ran(program_of(), plain, rank)
    found, executor = ran(program_of(), threaded, rank)
    np.testing.assert_array_equal(found, expected)
    assert [x for x, _ in threaded.calls] == [x for x, _ in plain.calls] and len(plain.calls) == 9
    assert {name for _, name in threaded.calls} == {"minipd communication"}
    assert {name for _, name in plain.calls} == {threading.current_thread().name}
    bound, = executor._arena.bindings.values()
    assert bound.overlap.worker.idle and all(bound.frame.slots[i] is None for i in bound.passing)


def test_what_has_nothing_beside_it_stays(rank):
    """The products take less than handing over does."""
    comm = Doubling()
    ran(program_of(), comm, rank)
    assert {name for _, name in comm.calls} == {threading.current_thread().name}


def test_whoever_looks_on_sees_one_thread(rank, always):
    comm, memory = Doubling(), Memory()
    ran(program_of(), comm, rank, memory)
    assert {name for _, name in comm.calls} == {threading.current_thread().name} and memory.peak > 0


def test_an_error_of_the_thread_names_the_collective_and_changes_nothing(rank, always):
    rank(Doubling(fails_at=2))
    executor = Executor(program_of())
    feed, scope = feed_and_scope()
    before = scope["w"].copy()
    with pytest.raises(ConnectionError, match="the other rank is gone") as caught:
        executor.run(feed, scope)
    note, = caught.value.__notes__
    assert note.startswith("pd_op.all_reduce") and "while running this operation, beside others" in note
    np.testing.assert_array_equal(scope["w"], before)
    rank(Doubling())
    executor.run(feed, scope)                           # in another arena, by another thread
    assert not np.array_equal(scope["w"], before)


def test_an_error_beside_the_thread(rank, always):
    rank(Doubling())
    program = program_of()
    tanh = next(op for op in program.walk() if op.name() == "pd_op.tanh")
    tanh.set_attr("op_callstack", ("user.py:7",))
    executor = Executor(program)
    feed, scope = feed_and_scope()
    executor.run(feed, scope)
    bound, = executor._arena.bindings.values()
    steps = bound.overlap.steps
    at = next(i for i, part in enumerate(steps.parts) if part.item.origin is tanh)

    def fail():
        raise ZeroDivisionError("no")
    steps.functions[steps.functions.index(steps.parts[at].function)] = fail
    steps.parts[at] = steps.parts[at]._replace(function=fail)
    before = scope["w"].copy()
    with pytest.raises(ZeroDivisionError) as caught:
        executor.run(feed, scope)
    assert caught.value.__notes__[0].startswith("pd_op.tanh (from user.py:7)")
    np.testing.assert_array_equal(scope["w"], before)
    executor.run(feed, scope)                           # the arena that a collective may still write into is left alone
    assert executor._arena.bindings[()] is not bound


def test_simulated_ranks_have_one_thread_each(always):
    assert not World(2).run(lambda comm: comm.threads)[0]
