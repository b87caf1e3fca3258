"""Simulated ranks: every collective, and what happens when ranks do not fit together."""

import contextvars
import gc
import threading
import traceback
import weakref
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd.dist.comm.errors import CommError, DeadlockError, MismatchError, RankStopped
from minipd.dist.comm.sim import World
from minipd.framework.context import RankContext
from minipd.framework.meta import Meta
from minipd.framework.rank import current, enter
from tests.dist.collective_checks import BF16, CHECKS, Results, check_all, data, reduced

X = np.ones(3)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_method(size, check):
    World(size).run(lambda comm: check(comm, Results()))


def test_two_runs_agree_to_the_bit():
    assert World(4).run(check_all) == World(4).run(check_all)


@given(st.integers(1, 5), st.data())
def test_any_sizes_along_any_axis(n, draw):
    sizes = draw.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    shape = draw.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    axis = draw.draw(st.integers(0, len(shape) - 1))
    shape[axis] = sum(sizes)
    group = tuple(draw.draw(st.permutations(range(n))))
    wholes = [data(r, shape, np.dtype("float32")) for r in range(n)]
    cuts = np.cumsum(sizes)[:-1]

    def run(comm):
        i = group.index(comm.rank)
        chunk = np.split(wholes[0], cuts, axis)[i]
        return (comm.all_gather(chunk, group, axis, sizes),
                comm.reduce_scatter(wholes[comm.rank], group, axis, tuple(sizes), "sum"))

    scattered = np.split(reduced([wholes[r] for r in group], "sum"), cuts, axis)
    for rank, (gathered, mine) in enumerate(World(n).run(run)):
        np.testing.assert_array_equal(gathered, wholes[0])
        np.testing.assert_array_equal(mine, scattered[group.index(rank)])


def test_reductions_add_in_the_order_of_the_group():
    values = [2.0 ** 53, 1.0, 1.0, -(2.0 ** 53)]

    def run(comm):
        x = np.array([values[comm.rank]])
        return [float(comm.all_reduce(x, group)[0]) for group in ((0, 1, 2, 3), (1, 2, 0, 3), (0, 3, 1, 2))]
    assert World(4).run(run) == [[0.0, 2.0, 2.0]] * 4


def test_low_precision_is_added_in_float32_and_rounded_once():
    def run(comm):
        x = np.full(1, 1.0 if comm.rank == 0 else 2.0 ** -8, BF16)      # 1 + 2^-8 rounds back to 1 in bfloat16
        return float(comm.all_reduce(x, tuple(range(5)))[0])
    assert World(5).run(run) == [1 + 4 * 2.0 ** -8] * 5


def test_bool_sum_is_any_and_prod_is_all():
    def run(comm):
        x = np.array([True, comm.rank == 0, False])
        return comm.all_reduce(x, (0, 1)).tolist(), comm.all_reduce(x, (0, 1), "prod").tolist()
    assert World(2).run(run) == [([True, True, False], [True, False, False])] * 2


def test_max_passes_nan_on():
    def run(comm):
        return comm.all_reduce(np.array([np.nan if comm.rank else 1.0]), (0, 1), "max")
    assert all(np.isnan(x) for x in World(2).run(run))


def test_results_belong_to_one_rank():
    def run(comm):
        x = np.zeros(2)
        y, z = comm.all_reduce(x, (0, 1)), comm.broadcast(x, 0, (0, 1))
        y += comm.rank + 1
        z += comm.rank + 1
        comm.barrier()
        return y.tolist(), z.tolist(), x.tolist()
    assert World(2).run(run) == [([1, 1], [1, 1], [0, 0]), ([2, 2], [2, 2], [0, 0])]


def test_broadcast_needs_only_shape_and_dtype_from_the_others():
    def run(comm):
        x = np.arange(3) if comm.rank == 1 else Meta((3,), np.dtype("int64"))
        return comm.broadcast(x, 1, (0, 1)).tolist()
    assert World(2).run(run) == [[0, 1, 2]] * 2


def test_counts_bytes_and_events():
    def run(comm):
        events = []
        comm.on_event = lambda *event: events.append(event)
        comm.all_reduce(np.ones(4, np.float32), (0, 1))
        comm.all_reduce(np.ones(4, np.float32), (comm.rank,))           # alone: no message
        comm.all_gather(np.ones(1 + comm.rank), (0, 1), 0, (1, 2))
        comm.send(np.ones(2), 1 - comm.rank)
        comm.recv(1 - comm.rank)
        comm.barrier()
        return events
    world = World(2)
    events = world.run(run)
    expected = Counter(all_reduce=1, all_gather=1, send=1, recv=1, barrier=1)
    assert [c.counts for c in world.comms] == [expected, expected]
    assert [c.moved["all_gather"] for c in world.comms] == [8, 16]
    assert world.comms[0].moved == Counter(all_reduce=16, all_gather=8, send=16, recv=16)
    assert [(name, group, nbytes) for name, group, nbytes, _ in events[1]] == [
        ("all_reduce", (0, 1), 16), ("all_gather", (0, 1), 16), ("send", (1, 0), 16), ("recv", (1, 0), 16),
        ("barrier", (0, 1), 0)]
    assert all(seconds >= 0 for *_, seconds in events[1])


def test_the_log_is_the_same_in_every_run():
    def run(comm):
        pair = (comm.rank // 2 * 2, comm.rank // 2 * 2 + 1)
        for _ in range(2):
            comm.all_reduce(X, pair)
        comm.send(X, (comm.rank + 1) % 4)
        comm.recv((comm.rank - 1) % 4)
        comm.barrier()
    logs = []
    for _ in range(2):
        world = World(4, record=True)
        world.run(run)
        logs.append(world.log)
    assert logs[0] == logs[1]
    assert logs[0][:4] == ["all_reduce#0(f64[3], op=sum) by (0, 1)", "all_reduce#0(f64[3], op=sum) by (2, 3)",
                           "all_reduce#1(f64[3], op=sum) by (0, 1)", "send(f64[3], tag=0) from 0 to 1"]
    assert logs[0][-1] == "barrier#0() by (0, 1, 2, 3)" and len(logs[0]) == 4 + 4 + 1


def test_the_baton_passes_only_inside_of_calls():
    order = []

    def run(comm):
        order.append(comm.rank)
        order.append(comm.rank)
        comm.barrier()
        order.append(comm.rank)
        order.append(comm.rank)
    World(3).run(run)
    assert order == [0, 0, 1, 1, 2, 2, 2, 2, 0, 0, 1, 1]


# ---- ranks that do not fit together


def test_a_mismatch_raises_in_every_member_and_shows_the_calls():
    seen = {}

    def run(comm):
        comm.barrier()
        try:
            comm.all_reduce(np.ones(3 + (comm.rank == 1), np.float32), (0, 1, 2))
        except MismatchError as error:
            seen[comm.rank] = str(error)
            raise
    with pytest.raises(MismatchError) as caught:
        World(3).run(run)
    text = str(caught.value)
    assert "  rank 0 called all_reduce#1(f32[3], op=sum) of the group (0, 1, 2), at test_comm_sim.py:" in text
    assert "  rank 1 called all_reduce#1(f32[4], op=sum) of the group (0, 1, 2), at test_comm_sim.py:" in text
    assert "  rank 2 called all_reduce#1(f32[3], op=sum) of the group (0, 1, 2), at test_comm_sim.py:" in text
    assert "They differ in shape: (3,) and (4,)." in text and "in run" in text
    assert seen == {0: text, 1: text, 2: text}


@pytest.mark.parametrize("calls, difference", [
    ((lambda c: c.all_reduce(X, (0, 1)), lambda c: c.barrier()), "kind: all_reduce and barrier"),
    ((lambda c: c.all_reduce(X, (0, 1)), lambda c: c.all_reduce(X, (0, 1), "max")), "op: sum and max"),
    ((lambda c: c.all_reduce(X, (0, 1)), lambda c: c.all_reduce(np.ones(3, "f4"), (0, 1))),
     "dtype: float64 and float32"),
    ((lambda c: c.all_gather(X, (0, 1), 0, (3, 3)), lambda c: c.all_gather(X, (0, 1), 0, (2, 3))),
     "sizes: (3, 3) and (2, 3)"),
    ((lambda c: c.all_gather(np.ones((1, 2)), (0, 1), 0, (1, 1)),
      lambda c: c.all_gather(np.ones((1, 3)), (0, 1), 0, (1, 1))),
     "shape: (None, 2) and (None, 3)"),
    ((lambda c: c.broadcast(X, 0, (0, 1)), lambda c: c.broadcast(X, 1, (0, 1))), "root: 0 and 1"),
    ((lambda c: c.reduce_scatter(X, (0, 1), 0, (2, 1)), lambda c: c.reduce_scatter(X, (0, 1), 0, (1, 2))),
     "sizes: (2, 1) and (1, 2)"),
])
def test_what_differs_is_named(calls, difference):
    with pytest.raises(MismatchError) as caught:
        World(2).run(lambda comm: calls[comm.rank](comm))
    assert f"They differ in {difference}." in str(caught.value)


def test_pieces_of_one_axis_that_do_not_fit():
    def run(comm):
        comm.all_to_all(X, (0, 1), 0, 0, (1, 2) if comm.rank == 0 else (2, 1), (1, 1))
    with pytest.raises(MismatchError, match=r"rank 0 expects \(1, 1\) along axis 0 from the ranks \(0, 1\), but they "
                                            r"give it \(1, 2\)"):
        World(2).run(run)


def test_a_deadlock_says_who_waits_for_what():
    def run(comm):
        if comm.rank == 0:
            comm.all_gather(X, (0, 1, 2), 0, (3, 3, 3))
        elif comm.rank == 1:
            comm.recv(src=3, tag=7)
        elif comm.rank == 2:
            comm.barrier((2, 3))
    with pytest.raises(DeadlockError) as caught:
        World(4).run(run)
    lines = str(caught.value).splitlines()
    assert lines[0] == "no rank can run:"
    assert lines[1].startswith("  rank 0 waits in all_gather#0(f64[?], axis=0, sizes=(3, 3, 3)) of the group (0, 1, 2) "
                               "for ranks 1, 2, at test_comm_sim.py:")
    assert lines[2].startswith("  rank 1 waits in recv(src=3, tag=7) for a message from rank 3, at test_comm_sim.py:")
    assert lines[3].startswith("  rank 2 waits in barrier#0() of the group (2, 3) for rank 3, at test_comm_sim.py:")
    assert lines[4] == "  rank 3 has returned"


def test_groups_in_another_order_are_other_groups():
    with pytest.raises(DeadlockError, match=r"(?s)of the group \(0, 1\) for rank 1.*of the group \(1, 0\) for rank 0"):
        World(2).run(lambda comm: comm.all_reduce(X, (0, 1) if comm.rank == 0 else (1, 0)))


def test_a_rank_may_catch_the_deadlock_but_not_go_on():
    def run(comm):
        for _ in range(2):
            try:
                comm.recv(1 - comm.rank)
            except DeadlockError:
                heard.append(comm.rank)
        return "fine"
    heard = []
    with pytest.raises(DeadlockError):
        World(2).run(run)
    assert heard == [1, 1, 0, 0]


def test_a_rank_that_raises_ends_the_world():
    cleaned, after = [], []

    def fails():
        raise ValueError("boom")

    def run(comm):
        try:
            if comm.rank == 1:
                fails()
            comm.barrier()
            after.append(comm.rank)
        except Exception as error:              # the end of a rank is no Exception: it passes
            assert comm.rank == 1, error
            raise
        except RankStopped as stop:
            assert str(stop) == "rank 1 raised ValueError('boom')"
            raise
        finally:
            cleaned.append(comm.rank)
    with pytest.raises(ValueError, match="boom") as caught:
        World(3).run(run)
    assert cleaned == [1, 0] and after == []            # rank 2 had not begun
    assert caught.value.__notes__ == ["raised by rank 1 of 3"]
    assert [f.name for f in traceback.extract_tb(caught.value.__traceback__)][-2:] == ["run", "fails"]


def test_a_stopped_rank_cannot_communicate_in_its_finally():
    def run(comm):
        if comm.rank == 1:
            raise KeyboardInterrupt
        try:
            comm.recv(1)
        finally:
            comm.send(X, 1)
    with pytest.raises(KeyboardInterrupt):
        World(2).run(run)


def test_a_message_that_nobody_receives():
    with pytest.raises(CommError, match=r"never received: f64\[3\] from rank 0 to rank 1, tag 2"):
        World(2).run(lambda comm: comm.send(X, 1, tag=2) if comm.rank == 0 else None)


def test_a_communicator_is_of_no_use_to_others():
    kept = []

    def run(comm):
        kept.append(comm)
        comm.barrier()
        if comm.rank == 1:
            kept[0].send(X, 1)
    with pytest.raises(CommError, match="the communicator of rank 0 was used outside of that rank's own function"):
        World(2).run(run)
    for comm in kept:
        with pytest.raises(CommError):
            comm.barrier()


@pytest.mark.parametrize("call, error, text", [
    (lambda c: c.all_reduce([1.0], (0, 1)), TypeError, "moves numpy arrays, got list"),
    (lambda c: c.all_reduce(np.ones(2, "S3"), (0, 1)), TypeError, "got dtype dtype('S3')"),
    (lambda c: c.all_reduce(np.ones(2, ">f4"), (0, 1)), TypeError, "got dtype dtype('>f4')"),
    (lambda c: c.all_reduce(np.array([None]), (0, 1)), TypeError, "got dtype dtype('O')"),
    (lambda c: c.all_reduce(X, (0, 1), "mean"), ValueError, "a reduction is one of sum, max, min, prod; got 'mean'"),
    (lambda c: c.all_reduce(X, (0, 2)), ValueError, "a tuple of different ranks from 0 to 1; got (0, 2)"),
    (lambda c: c.all_reduce(X, (0, 0)), ValueError, "got (0, 0)"),
    (lambda c: c.all_reduce(X, ()), ValueError, "got ()"),
    (lambda c: c.all_reduce(X, (1,)), ValueError,
     "rank 0 called a collective of the group (1,), of which it is no member"),
    (lambda c: c.all_gather(X, (0, 1), 1, (3, 3)), ValueError,
     "axis 1 is not one of the 1 axes of an array of shape (3,)"),
    (lambda c: c.all_gather(X, (0, 1), -1, (3, 3)), ValueError, "axis -1"),
    (lambda c: c.all_gather(X, (0, 1), 0, (2, 3)), CommError,
     "rank 0 has 3 along axis 0 of (3,), but sizes (2, 3) give it 2"),
    (lambda c: c.all_gather(X, (0, 1), 0, (3,)), ValueError,
     "one extent per member of the group (0, 1), none negative; got (3,)"),
    (lambda c: c.reduce_scatter(X, (0, 1), 0, (4, -1)), ValueError, "got (4, -1)"),
    (lambda c: c.reduce_scatter(X, (0, 1), 0, (2, 2)), CommError,
     "sizes (2, 2) add up to 4, but axis 0 of an array of shape (3,) has 3"),
    (lambda c: c.all_to_all(np.ones((2, 3)), (0, 1), 0, 1, (1, 1), (2, 3)), CommError,
     "rank 0 gives itself 3 along axis 1 of (2, 3), but concat_sizes (2, 3) say 2"),
    (lambda c: c.broadcast(X, 1, (0,)), ValueError, "root 1 is no member of the group (0,)"),
    (lambda c: c.send(X, 2), ValueError, "there is no rank 2: ranks are 0 to 1"),
    (lambda c: c.recv(1, tag=-1), ValueError, "a tag is a whole number from 0 to 32767, got -1"),
])
def test_wrong_arguments(call, error, text):
    with pytest.raises(error) as caught:
        World(2).run(lambda comm: call(comm) if comm.rank == 0 else None)
    assert text in str(caught.value)


def test_a_world_has_ranks():
    with pytest.raises(ValueError, match="at least one rank, got 0"):
        World(0)


def test_groups_given_as_lists_are_the_same_groups():
    assert World(2).run(lambda comm: comm.all_reduce(X, [0, 1] if comm.rank else (0, 1)).tolist()) == [[2.0] * 3] * 2


# ---- what belongs to a rank


def test_a_rank_has_its_own_context_variables():
    variable = contextvars.ContextVar("variable")
    variable.set("caller")

    def run(comm):
        before = variable.get()
        variable.set(comm.rank)
        comm.barrier()
        seen = variable.get()
        variable.set(-1)
        comm.barrier()
        return before, seen
    assert World(3).run(run) == [("caller", 0), ("caller", 1), ("caller", 2)]
    assert variable.get() == "caller"


def test_a_rank_context_stays_with_its_rank():
    outside = current()

    def run(comm):
        enter(RankContext(comm.rank, comm.size, comm))
        comm.barrier()
        with np.errstate(divide="raise" if comm.rank else "ignore"):
            comm.barrier()
            return current().rank, current().comm is comm, np.geterr()["divide"]
    assert World(2).run(run) == [(0, True, "ignore"), (1, True, "raise")]
    assert current() is outside


def test_a_world_inside_of_a_rank():
    def inner(comm):
        return float(comm.all_reduce(np.array(1.0), (0, 1, 2)))

    def outer(comm):
        comm.barrier()
        total = sum(World(3).run(inner))
        return float(comm.all_reduce(np.array(total), (0, 1)))
    assert World(2).run(outer) == [18.0, 18.0]


def test_the_outer_communicator_is_refused_inside_of_an_inner_world():
    def outer(comm):
        World(2).run(lambda inner: comm.barrier())
    with pytest.raises(CommError, match="inside of another world"):
        World(2).run(outer)


def test_worlds_in_two_threads():
    def run(comm):
        return [float(comm.all_reduce(np.array(1.0), (0, 1, 2))) for _ in range(200)]

    def work():
        results.append(World(3).run(run))
    results = []
    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [[[3.0] * 200] * 3] * 2


def test_nothing_is_kept_after_a_run():
    class Thing:
        pass

    def run(comm):
        thing = Thing()
        alive.append(weakref.ref(thing))
        comm.barrier()
        if comm.rank == 0:
            raise ValueError
        comm.barrier()
    alive = []
    with pytest.raises(ValueError):
        World(2).run(run)
    gc.collect()
    assert [ref() for ref in alive] == [None, None]


def test_the_same_world_runs_again():
    world = World(2)
    with pytest.raises(ValueError):
        world.run(lambda comm: comm.all_reduce(X, (0, 1), "?"))
    assert world.run(lambda comm, a, b: a + b + comm.rank, 1, 2) == [3, 4]
    assert world.comms[0].counts == Counter()


# ---- started, not waited for


def test_what_is_started_is_over_when_the_others_have_come():
    def run(comm):
        if comm.rank == 0:
            request = comm.start("all_reduce", X, (0, 1))
            early = request.done()                                      # gives rank 1 its turn
            return early, request.done(), request.wait().tolist()
        return comm.all_reduce(X, (0, 1)).tolist()
    assert World(2).run(run) == [(True, True, [2, 2, 2]), [2, 2, 2]]


def test_what_is_started_is_counted_and_told_once():
    def run(comm):
        events = []
        comm.on_event = lambda *event: events.append(event[:3])
        requests = [comm.start("all_reduce", X, (0, 1)), comm.start("recv", 1 - comm.rank)]
        comm.start("send", np.ones(2), 1 - comm.rank).wait()
        for request in requests * 2:
            request.wait()
        return events
    world = World(2)
    assert world.run(run)[1] == [("send", (1, 0), 16), ("all_reduce", (0, 1), 24), ("recv", (1, 0), 16)]
    assert world.comms[1].counts == Counter(all_reduce=1, send=1, recv=1)
    assert world.comms[1].moved == Counter(all_reduce=24, send=16, recv=16)


def test_opposite_orders_of_waiting_do_not_lock_up():
    def run(comm):
        requests = [comm.start("all_reduce", X * k, (0, 1)) for k in (1, 2, 3)]
        return [r.wait()[0] for r in (requests if comm.rank else reversed(requests))]
    assert World(2).run(run) == [[6, 4, 2], [2, 4, 6]]


def test_what_was_given_must_not_change():
    def run(comm):
        x = np.ones(3)
        request = comm.start("all_reduce", x, (0, 1))
        if comm.rank == 0:
            x[1] = 5
        return request.wait()
    with pytest.raises(CommError) as caught:
        World(2).run(run)
    assert str(caught.value) == ("rank 0 wrote to the array that it had given to all_reduce#0(f64[3], op=sum) of the "
                                 "group (0, 1), before it waited for the request")


@pytest.mark.parametrize("body, text", [
    (lambda c: c.start("all_reduce", X, (0, 1)) if c.rank == 0 else None,
     "rank 0 started what waits in all_reduce#0(f64[3], op=sum) of the group (0, 1) for rank 1"),
    (lambda c: c.start("recv", 1, tag=2) if c.rank == 0 else None,
     "rank 0 started what waits in recv(src=1, tag=2) for a message from rank 1"),
])
def test_what_is_never_over(body, text):
    with pytest.raises(CommError) as caught:
        World(2).run(body)
    assert text in str(caught.value)


def test_asking_for_ever_is_a_deadlock():
    def run(comm):
        request = comm.start("recv", 1 - comm.rank)
        while not request.done():
            pass
    with pytest.raises(DeadlockError, match="rank 1 asks again and again whether something is done, at test_comm_sim"):
        World(2).run(run)


def test_started_calls_that_do_not_match():
    def run(comm):
        first = comm.start("all_reduce", X, (0, 1))
        second = comm.start(*(("all_reduce", X, (0, 1)) if comm.rank else ("all_gather", X, (0, 1), 0, (3, 3))))
        second.wait()
        first.wait()
    with pytest.raises(MismatchError, match=r"(?s)rank 0 called all_gather#1.*rank 1 called all_reduce#1"):
        World(2).run(run)


@pytest.mark.parametrize("call, error, text", [
    (lambda c: c.start("all_gather_object", 1), ValueError, "start: expected one of all_reduce, "),
    (lambda c: c.start("recv", 7), ValueError, "there is no rank 7"),
    (lambda c: c.start("all_reduce", X, (0, 1), "mean"), ValueError, "a reduction is one of"),
])
def test_what_cannot_be_started(call, error, text):
    with pytest.raises(error) as caught:
        World(2).run(lambda comm: call(comm) if comm.rank == 0 else None)
    assert text in str(caught.value)


def test_alone_what_is_started_is_a_copy():
    def run(comm):
        request = comm.start("all_reduce", X, (comm.rank,))
        return request.done(), request.wait() is not X, comm.counts
    assert World(2).run(run) == [(True, True, Counter())] * 2
