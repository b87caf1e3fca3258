"""Arrays on GPUs: the calls that NCCL would get, by a stand-in for CuPy that carries them out among threads."""

import queue
import threading
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from minipd.dist.comm.base import Communicator
from minipd.dist.comm.connect import connect
from minipd.dist.comm.nccl import NcclCommunicator, load
from minipd.dist.comm.request import Finished, Request
from minipd.framework.errors import InputError
from minipd.framework.meta import Meta
from tests.dist import fake_cupy
from tests.dist.collective_checks import DTYPES, data, part
from tests.dist.fake_cupy import device

BF16 = np.dtype(ml_dtypes.bfloat16)


class Below(Communicator):
    """What MPI is to NCCL: threads that put objects into queues."""

    def __init__(self, rank, size, room):
        super().__init__(rank, size)
        self.room = room

    def _link(self, ranks):
        with self.room.lock:
            barrier = threading.Barrier(len(ranks), timeout=20)
            return self.room.barriers.setdefault(ranks, (barrier, [None] * len(ranks)))

    def _collect(self, group, call, operand):
        barrier, places = group.link
        places[group.index] = operand
        barrier.wait()
        out = list(places)
        barrier.wait()
        return sum(out) if call[0] == "all_reduce" else out

    def _begin(self, group, call, operand):
        return Finished(self._collect(group, call, operand))

    def _mail(self, src, dst, tag):
        with self.room.lock:
            return self.room.mail.setdefault((src, dst, tag), queue.SimpleQueue())

    def _send(self, x, dst, tag):
        assert type(x) is np.ndarray
        self._mail(self.rank, dst, tag).put(x.copy())

    def _recv(self, src, tag):
        return self._mail(src, self.rank, tag).get(timeout=20)

    def _begin_recv(self, src, tag):
        mail, comm = self._mail(src, self.rank, tag), self

        class Later(Request):
            def _poll(self):
                return not mail.empty()

            def _finish(self):
                return comm._recv(src, tag)
        return Later()


def run(size, function, local=lambda rank: rank):
    """`function(comm)` on threads that play ranks; (results by rank, the stand-in)."""
    cupy, results = fake_cupy.make(), [None] * size
    room = SimpleNamespace(lock=threading.Lock(), barriers={}, mail={})

    def rank(r):
        try:
            with NcclCommunicator(Below(r, size, room), cupy, local(r)) as comm:
                results[r] = function(comm)
        except BaseException as error:
            results[r] = error
    threads = [threading.Thread(target=rank, args=(r,), daemon=True) for r in range(size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    for r in results:
        if isinstance(r, BaseException):
            raise r
    return results, cupy


def same(got, want):
    assert type(got) is fake_cupy.ndarray and got.dtype == want.dtype and got.shape == want.shape
    assert got.flags.c_contiguous
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reductions_of_every_dtype(dtype):
    combine = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
    ops = ["sum"] if dtype.kind == "c" else list(combine)
    code = {"bool": 1, "int8": 0, "uint8": 1, "int16": 2, "int32": 2, "int64": 4, "float16": 6, "float32": 7,
            "float64": 8, "bfloat16": 9, "complex64": 7}[dtype.name]

    def rank(comm):
        for op in ops:
            wholes = [data(r, (4, 3), dtype) for r in range(3)]
            want = combine[op](combine[op](wholes[2], wholes[1]), wholes[0])
            same(comm.all_reduce(device(wholes[comm.rank]), (0, 1, 2), op), want)
            same(comm.all_reduce(device(wholes[comm.rank]).T, (0, 1, 2), op), want.T)
            for axis, sizes in ((0, (2, 0, 2)), (1, (1, 1, 1)), (1, (0, 3, 0))):
                same(comm.reduce_scatter(device(wholes[comm.rank]), (0, 1, 2), axis, sizes, op),
                     part(want, axis, sizes, comm.rank))
    _, cupy = run(3, rank)
    assert {call[5] for call in cupy.cuda.nccl.calls} == {code}
    counts = {call[4] for call in cupy.cuda.nccl.calls if call[3] == "allReduce"}
    assert counts == {24 if dtype.kind == "c" else 12}
    if dtype.kind != "c":
        codes = [call[6] for call in cupy.cuda.nccl.calls if call[0] == 0 and call[3] == "allReduce"][::2]
        assert codes == ([2, 2, 3, 3] if dtype == np.bool_ else [0, 2, 3, 1])


def test_complex_numbers_are_only_added():
    with pytest.raises(TypeError, match="NCCL adds complex numbers and nothing else; got op 'max' for complex64"):
        run(2, lambda comm: comm.all_reduce(device(np.ones(2, np.complex64)), (0, 1), "max"))


@pytest.mark.parametrize("dtype", [np.dtype("float32"), BF16, np.dtype("bool")], ids=str)
def test_chunks_and_pieces(dtype):
    def rank(comm):
        everyone = tuple(range(3))
        for sizes in ((2, 2, 2), (3, 0, 1), (0, 0, 0)):
            for axis in (0, 1, 2):
                shape = [2, 3, 4]
                shape[axis] = sum(sizes)
                whole = data(0, shape, dtype)
                same(comm.all_gather(device(part(whole, axis, sizes, comm.rank)), everyone, axis, sizes), whole)
                same(comm.all_gather(device(part(whole.T, 2 - axis, sizes, comm.rank).copy()).T, everyone, axis, sizes),
                     whole)
        split, concat = (2, 1, 1), (3, 0, 2)
        whole = data(0, (4, 5), dtype)
        same(comm.all_to_all(device(part(whole, 1, concat, comm.rank)), everyone, 0, 1, split, concat),
             part(whole, 0, split, comm.rank))
        for root in everyone:
            x = data(root, (3, 2), dtype)
            given = device(x.copy()) if comm.rank == root else Meta((3, 2), dtype)
            same(comm.broadcast(given, root, everyone[::-1]), x)
    _, cupy = run(3, rank)
    assert {call[5] for call in cupy.cuda.nccl.calls} == {fake_cupy.Nccl.NCCL_UINT8}    # moved as bytes
    assert all(call[4] > 0 for call in cupy.cuda.nccl.calls if call[3] in ("send", "recv"))


def test_all_ranks_make_the_same_calls_in_the_same_order():
    def rank(comm):
        x = device(data(comm.rank, (6,), np.dtype("float32")))
        pair = (comm.rank // 2 * 2, comm.rank // 2 * 2 + 1)
        comm.all_reduce(x, pair)
        comm.all_gather(x, (0, 1, 2, 3), 0, (6,) * 4)
        comm.reduce_scatter(x, pair, 0, (3, 3))
        comm.broadcast(x, 3, (3, 2, 1, 0))
        return comm.counts
    counts, cupy = run(4, rank)
    calls = cupy.cuda.nccl.calls
    order = [[(name, *numbers) for of, _, _, name, *numbers, _ in calls if of == r and name != "broadcast"]
             for r in (0, 1)]                           # of NCCL's ranks: each is one of two, or of four
    assert set(order[0]) == {("allReduce", 6, 7, 0), ("allGather", 24, 1), ("reduceScatter", 3, 7, 0)}
    assert [c[3:7] for c in calls if c[3] == "broadcast"] == [("broadcast", 24, 1, 0)] * 4
    assert counts == [dict(all_reduce=1, all_gather=1, reduce_scatter=1, broadcast=1)] * 4
    assert sorted(cupy.cuda.used) == [0, 0, 1, 1]       # four ranks on a machine with two GPUs


def test_streams():
    def rank(comm):
        mine = fake_cupy.Stream.current()
        x = device(np.full(3, comm.rank + 1.0))
        comm.all_reduce(x, (0, 1))
        before = mine.waits
        request = comm.start("all_reduce", x, (0, 1))
        assert request.done() and fake_cupy.Stream.current() is mine and mine.waits == before
        same(request.wait(), np.full(3, 3.0))
        assert mine.waits == before + 1 and comm._side.waits == 1       # each waits for the other once
        return mine.ptr, comm._side.ptr
    streams, cupy = run(2, rank)
    for r in (0, 1):
        assert [call[-1] for call in cupy.cuda.nccl.calls if call[0] == r] == list(streams[r])


def test_messages_cross_and_keep_their_order():
    def rank(comm):
        after, before = (comm.rank + 1) % 3, (comm.rank - 1) % 3
        requests = [comm.start("recv", before, tag) for tag in (2, 1, 2)]
        for tag, k in ((1, 10), (2, 20), (2, 21)):
            x = device(np.full((2, k), k, BF16)).T
            comm.send(x, after, tag)
            x[...] = 0                                  # it was copied
        comm.send(np.arange(3), after, 5)               # not on a GPU
        comm.send(device(np.zeros((0, 4))), after, 6)
        comm.send(device(np.ones(2)), comm.rank, 7)     # to itself
        same(comm.recv(before, 6), np.zeros((0, 4)))
        assert type(comm.recv(before, 5)) is np.ndarray
        same(comm.recv(comm.rank, 7), np.ones(2))
        for request, k in zip(reversed(requests), (21, 10, 20), strict=True):
            while not request.done():
                pass
            same(request.wait(), np.full((k, 2), k, BF16))
        return comm.counts["recv"]
    counts, cupy = run(3, rank)
    assert counts == [6] * 3
    sends = [call for call in cupy.cuda.nccl.calls if call[3] == "send"]
    assert sorted(call[4] for call in sends) == sorted([40, 80, 84] * 3)
    assert len({call[1] for call in sends}) == 3        # each direction has a communicator of its own


def test_what_is_not_on_a_gpu_goes_below():
    def rank(comm):
        alone = comm.all_reduce(device(np.ones(2)), (comm.rank,))
        same(alone, np.ones(2))
        comm.barrier()
        return (comm.all_reduce(np.ones(2), (0, 1)).tolist(),
                comm.start("all_reduce", np.ones(2), (0, 1)).wait().tolist(), comm.all_gather_object(comm.rank))
    results, cupy = run(2, rank)
    assert results == [([2, 2], [2, 2], [0, 1])] * 2 and not cupy.cuda.nccl.calls


def test_without_cupy_it_says_what_to_install():
    with pytest.raises(InputError, match='expected CuPy with NCCL and a GPU, for backend "nccl", got none .*: install'):
        load()


def test_the_stand_in_sees_calls_that_do_not_match():
    with pytest.raises(AssertionError, match="calls do not match"):
        run(2, lambda comm: comm.all_reduce(device(np.ones(2 + comm.rank)), (0, 1)))


def test_a_backend_that_is_not_there():
    with pytest.raises(InputError, match='expected backend "mpi" or "nccl", got \'gloo\''):
        connect("gloo")
