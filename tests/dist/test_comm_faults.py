"""Simulated ranks on which things go wrong on purpose, and their simulated clocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd.dist.comm.errors import CommError, DeadlockError, RankDiedError
from minipd.dist.comm.faults import Delay, Die, Duplicate, Lose, Raise, Slow, Truncate
from minipd.dist.comm.links import Link, Links
from minipd.dist.comm.sim import World
from minipd.dist.simulate import simulate

X = np.ones(3)
ALL = (0, 1, 2)


def ring(comm):
    """Two messages to the next rank, and a sum over all."""
    n = comm.size
    for k in (1, 2):
        comm.send(X * k, (comm.rank + 1) % n)
    first = comm.recv((comm.rank - 1) % n)
    total = comm.all_reduce(X, tuple(range(n)))
    return [float(a[0]) for a in (first, total, comm.recv((comm.rank - 1) % n))]


def fails(faults, error=CommError, run=ring):
    with pytest.raises(error) as caught:
        World(3, faults=faults).run(run)
    return str(caught.value)


def test_without_faults():
    assert World(3, faults=[]).run(ring) == [[1.0, 3.0, 2.0]] * 3


def test_a_rank_raises_in_its_nth_call():
    places = []

    def run(comm):
        comm.barrier()
        places.append(comm.rank)
        comm.barrier()
    with pytest.raises(KeyError) as caught:
        World(3, faults=[Raise(1, 2, KeyError("boom"))]).run(run)
    assert caught.value.__notes__ == ["raised by rank 1 of 3"] and set(places) == {1, 2} | set(places)
    assert fails([Raise(2)]) == "rank 2 raises this in its call number 1, as it was told"


def test_a_rank_that_dies_is_named_with_those_that_wait_for_it():
    text = fails([Die(1, 4)], RankDiedError)                            # two sends and a receive come before
    lines = text.splitlines()
    assert lines[0].startswith("rank 1 has died in its call number 4, at test_comm_faults.py:")
    assert lines[0].endswith(" in ring, so the others cannot go on:")
    assert lines[1].startswith("  rank 0 waits in all_reduce#0(f64[3], op=sum) of the group (0, 1, 2) for rank 1, at ")
    assert lines[2].startswith("  rank 2 waits in all_reduce#0(f64[3], op=sum) of the group (0, 1, 2) for rank 1, at ")


def test_a_death_that_nobody_waits_for_is_told_in_the_end():
    heard = []

    def run(comm):
        if comm.rank == 1:
            try:
                comm.recv(0)
            except Exception:
                heard.append("an Exception")
    assert "rank 1 has died in its call number 1" in fails([Die(1)], RankDiedError, run) and not heard


def test_a_lost_message():
    assert "rank 1 in recv(src=0, tag=0): message #1 has come, but #0 has not: it was lost" == fails([Lose(0, 1)])
    text = fails([Lose(0, 1, 2)], DeadlockError)                        # nothing follows, so it waits
    assert "  rank 1 waits in recv(src=0, tag=0) for a message from rank 0 (lost: #1), at test_comm_faults.py:" in text


def test_a_message_that_comes_twice():
    assert fails([Duplicate(2, 0)]) == "rank 0 in recv(src=2, tag=0): message #0 has come before; #1 was expected"
    assert fails([Duplicate(2, 0, 2)]) == ("all ranks have returned, but these were sent and never received: "
                                           "f64[3] from rank 2 to rank 0, tag 0")


def test_a_message_of_which_a_part_comes():
    assert fails([Truncate(1, 2, 2, nbytes=20)]) == ("rank 2 in recv(src=1, tag=0): message #1 has 20 bytes instead of "
                                                     "the 24 of f64[3]")


def test_an_error_of_a_message_rises_on_every_rank():
    heard = {}

    def run(comm):
        try:
            return ring(comm)
        except CommError as error:
            heard[comm.rank] = str(error)
            raise
    text = fails([Truncate(1, 2)], run=run)
    assert heard == dict.fromkeys(range(3), text)


@given(st.lists(st.builds(Delay, st.integers(0, 2), st.integers(0, 2), st.integers(1, 3)), max_size=4))
def test_delays_change_the_order_and_nothing_else(delays):
    def run(comm):
        requests = [comm.start("recv", (comm.rank - 1) % 3, tag=7) for _ in range(2)]
        comm.send(X * 5, (comm.rank + 1) % 3, tag=7)
        got = ring(comm)
        comm.send(X * 6, (comm.rank + 1) % 3, tag=7)
        while not requests[1].done():
            pass
        return got + [float(r.wait()[0]) for r in requests]
    assert World(3, faults=delays).run(run) == [[1.0, 3.0, 2.0, 5.0, 6.0]] * 3


def test_a_delayed_message_comes_when_no_rank_can_run():
    order = []

    def run(comm):
        if comm.rank == 0:
            comm.send(X, 1)
        elif comm.rank == 1:
            comm.recv(0)
            order.append(1)
        else:
            order.append(2)
    World(3, faults=[]).run(run)
    World(3, faults=[Delay(0, 1)]).run(run)
    assert order == [1, 2, 2, 1]


def test_what_is_no_fault():
    with pytest.raises(TypeError, match="a fault is one of Delay, Die, .*; got 'lose'"):
        World(2, faults=["lose"]).run(lambda comm: None)


# ---- clocks

LINKS = Links(Link(1.0, 0.5))


def clocks(run, size=2, **options):
    world = World(size, links=options.pop("links", LINKS), **options)
    world.run(run)
    return [comm.clock for comm in world.comms]


def test_a_message_takes_alpha_and_beta_a_byte():
    def run(comm):
        if comm.rank == 0:
            comm.spend(3.0)
            comm.send(X, 1)                                             # 24 bytes
            comm.send(X, 1)                                             # the link is busy for 12 seconds
        else:
            assert comm.recv(0)[0] and comm.clock == 3 + 1 + 12
            comm.recv(0)
    assert clocks(run) == [3.0, 3 + 12 + 1 + 12]
    assert clocks(run, faults=[Delay(0, 1, 2, seconds=9.0)]) == [3.0, 37.0]


def test_a_collective_begins_when_the_last_has_come():
    def run(comm):
        comm.spend(10.0 * comm.rank)
        comm.all_reduce(np.ones(4, np.float32), (0, 1))                 # 2 rounds of 8 bytes
    assert clocks(run) == [10 + 2 * (1 + 4)] * 2
    assert clocks(run, faults=[Slow(0, 30.0)]) == [30 + 10.0] * 2
    assert clocks(run, links=Links(Link(1, 0.5), {(1, 0): Link(1, 5)})) == [10 + 2 * (1 + 40)] * 2


def test_overlap_is_seen():
    def run(comm, started):
        request = comm.start("all_reduce", np.ones(4, np.float32), (0, 1))
        if not started:
            request.wait()
        comm.spend(7.0)
        request.wait()
    assert clocks(lambda comm: run(comm, False)) == [17.0] * 2
    assert clocks(lambda comm: run(comm, True)) == [10.0] * 2           # the seven seconds cost nothing


@pytest.mark.parametrize("call, seconds", [
    (lambda c: c.all_gather(np.ones(c.rank + 1), ALL, 0, (1, 2, 3)), 2 * (1 + 12)),
    (lambda c: c.reduce_scatter(np.ones(6), ALL, 0, (1, 2, 3)), 2 * (1 + 12)),
    (lambda c: c.all_to_all(np.ones(3), ALL, 0, 0, (1, 1, 1), (1, 1, 1)), 2 * (1 + 4)),
    (lambda c: c.broadcast(X, 1, ALL), 2 * (1 + 12)),
    (lambda c: c.barrier(), 2),
    (lambda c: c.all_reduce(X, (c.rank,)), 0),
])
def test_what_collectives_take(call, seconds):
    assert clocks(call, 3) == [seconds] * 3


def test_records():
    def run(comm):
        comm.all_gather(np.ones((2, comm.rank + 1), np.float32), (0, 1), 1, (1, 2))
        if comm.rank == 0:
            comm.send(X, 1, tag=4)
        else:
            comm.recv(0, tag=4)
        comm.all_gather_object("x")
    world = World(2, record=True, links=LINKS)
    world.run(run)
    gather, send, objects = world.records
    assert gather == ("all_gather", (0, 1), 0, (2, None), np.float32, {"axis": 1, "sizes": (1, 2)}, (8, 16), 0.0, 9.0)
    assert send[:7] == ("send", (0, 1), 0, (3,), np.float64, {"tag": 4}, (24,)) and send.end == 9 + 13
    assert objects.kind == "all_gather_object" and objects.shape is None and min(objects.nbytes) > 0
    assert world.log == [str(r) for r in world.records]
    assert world.log[1] == "send(f64[3], tag=4) from 0 to 1"


def test_simulate_passes_them_on():
    records = []
    out = simulate("x=2", lambda mesh: __import__("minipd").framework.rank.current().comm.clock, links=LINKS,
                   records=records)
    assert out == [0.0, 0.0] and records == []
    with pytest.raises(RankDiedError):
        simulate("x=2", lambda mesh: __import__("minipd").framework.rank.current().comm.barrier(), faults=[Die(0)])


def test_groups_of_one_neither_call_nor_fail():
    def run(comm):
        alone = (comm.rank,)
        comm.barrier(alone)
        return [comm.all_reduce(X, alone).tolist(), comm.all_gather(X, alone, 0, (3,)).tolist(),
                comm.reduce_scatter(X, alone, 0, (3,)).tolist(), comm.all_to_all(X, alone, 0, 0, (3,), (3,)).tolist(),
                comm.broadcast(X, comm.rank, alone).tolist(), comm.all_gather_object([1], alone), comm.counts.total()]
    world = World(2, record=True, faults=[Die(0), Raise(1)], links=LINKS)
    assert world.run(run) == [[[1, 1, 1]] * 5 + [[[1]], 0]] * 2
    assert world.records == []
