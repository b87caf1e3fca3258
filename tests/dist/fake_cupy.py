"""A CuPy without a GPU, for threads that play ranks: arrays are numpy's, and NCCL waits for all to call, then checks.

What it checks, as NCCL requires or would hang without: the members of a communicator make the same calls, with equal
counts, types, operations and roots; inside of a group each send has its receive of the same size; streams exist;
pointers are of arrays that are large enough.  Every call is noted in `Nccl.calls`.
"""

import ctypes
import itertools
import threading
from collections import defaultdict
from types import SimpleNamespace

import ml_dtypes
import numpy as np

LIMIT = 20
SIZES = {0: 1, 1: 1, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2}
TYPES = {0: np.int8, 1: np.uint8, 2: np.int32, 4: np.int64, 6: np.float16, 7: np.float32, 8: np.float64,
         9: ml_dtypes.bfloat16}
OPS = {0: np.add, 1: np.multiply, 2: np.maximum, 3: np.minimum}


class ndarray(np.ndarray):
    """An array "on the device"."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def device(x):
    return np.asarray(x).view(ndarray)


class Event:
    done = True


class Stream:
    """Work is done at once, so there is nothing to wait for; who waits for whom is noted."""

    numbers = itertools.count(1000)
    local = threading.local()

    def __init__(self, non_blocking=False):
        self.ptr, self.waits, self.outer = next(self.numbers), 0, []

    def record(self):
        return Event()

    def wait_event(self, event):
        assert isinstance(event, Event)
        self.waits += 1

    def synchronize(self):
        pass

    def __enter__(self):
        self.outer.append(Stream.current())
        Stream.local.stream = self

    def __exit__(self, *_):
        Stream.local.stream = self.outer.pop()

    @classmethod
    def current(cls):
        if not hasattr(cls.local, "stream"):
            cls.local.stream = Stream()
        return cls.local.stream


class Nccl:
    """The module `cupy.cuda.nccl` of one test: all ranks' communicators."""

    available = True
    NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG = range(5)
    NCCL_INT8, NCCL_UINT8, NCCL_INT32, NCCL_UINT32, NCCL_INT64, NCCL_UINT64 = range(6)
    NCCL_FLOAT16, NCCL_FLOAT32, NCCL_FLOAT64, NCCL_BFLOAT16 = 6, 7, 8, 9

    def __init__(self):
        self.numbers = itertools.count()
        self.meetings = defaultdict(dict)               # by number: of each rank, what it brings
        self.changed = threading.Condition()
        self.local = threading.local()
        self.calls = []
        self.NcclCommunicator = lambda *args: Communicator(self, *args)

    def get_unique_id(self):
        n = next(self.numbers)
        return (n - 100, -128, 127, *[0] * 125)

    def groupStart(self):
        assert not getattr(self.local, "group", None), "groups may not be nested here"
        self.local.group = []

    def groupEnd(self):
        group, self.local.group = self.local.group, None
        assert len({id(comm) for comm, _ in group}) <= 1
        if group:
            group[0][0].meet(("group", [call for _, call in group]))

    def put(self, comm, *call):
        if getattr(self.local, "group", None) is not None:
            self.local.group.append((comm, call))
        else:
            comm.meet(call)

    def meet(self, key, rank, size, what):
        """What all ranks bring to a meeting, by rank, once they have come; those of a pair need not be alike."""
        with self.changed:
            self.meetings[key][rank] = what
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: len(self.meetings[key]) == size, LIMIT), \
                f"rank {rank} waited for ever at {key} with {what}"
            return self.meetings[key]


def memory(ptr, nbytes):
    return np.frombuffer((ctypes.c_char * nbytes).from_address(ptr), np.uint8) if nbytes else np.empty(0, np.uint8)


class Communicator:
    """`cupy.cuda.nccl.NcclCommunicator`: the same methods and order of arguments."""

    def __init__(self, nccl, ndev, commId, rank):
        assert type(commId) is tuple and len(commId) == 128 and all(type(n) is int for n in commId)
        assert 0 <= rank < ndev
        self.nccl, self.size, self.number, self.rank, self.count = nccl, ndev, commId, rank, itertools.count()
        nccl.meet((commId, "init"), rank, ndev, ndev)

    def allReduce(self, sendbuf, recvbuf, count, datatype, op, stream):
        self.nccl.put(self, "allReduce", (count, datatype, op), sendbuf, recvbuf, stream)

    def reduceScatter(self, sendbuf, recvbuf, recvcount, datatype, op, stream):
        self.nccl.put(self, "reduceScatter", (recvcount, datatype, op), sendbuf, recvbuf, stream)

    def allGather(self, sendbuf, recvbuf, count, datatype, stream):
        self.nccl.put(self, "allGather", (count, datatype), sendbuf, recvbuf, stream)

    def broadcast(self, sendbuff, recvbuff, count, datatype, root, stream):
        self.nccl.put(self, "broadcast", (count, datatype, root), sendbuff, recvbuff, stream)

    def send(self, sendbuf, count, datatype, peer, stream):
        self.nccl.put(self, "send", (count, datatype, peer), sendbuf, None, stream)

    def recv(self, recvbuf, count, datatype, peer, stream):
        self.nccl.put(self, "recv", (count, datatype, peer), None, recvbuf, stream)

    def check_async_error(self):
        pass

    def meet(self, call):
        """Carry out a call, or a group of them, together with the other ranks."""
        n = next(self.count)
        for name, numbers, *_, stream in [call] if call[0] != "group" else call[1]:
            assert stream >= 1000 and all(type(i) is int for i in numbers), (name, numbers, stream)
            self.nccl.calls.append((self.rank, self.number[0], n, name, *numbers, stream))
        met = self.nccl.meet((self.number, n), self.rank, self.size, call)
        result = self.result(call, [met[r] for r in range(self.size)])
        self.nccl.meet((self.number, n, "read"), self.rank, self.size, None)      # all have read, now all write
        for ptr, data in result:
            memory(ptr, data.nbytes)[:] = data.reshape(-1).view(np.uint8)
        self.nccl.meet((self.number, n, "written"), self.rank, self.size, None)

    def result(self, call, calls):
        """[(pointer, what comes to stand there)] for this rank."""
        if call[0] in ("group", "send", "recv"):
            of = [c[1] if c[0] == "group" else [c] for c in calls]
            return [(c[3], self.sent(of, c)) for c in of[self.rank] if c[0] == "recv"]
        name, numbers, *_ = call
        assert all((c[0], c[1]) == (name, numbers) for c in calls), f"calls do not match: {calls}"
        count, datatype = numbers[:2]
        out = call[3]
        if name == "broadcast":
            return [(out, memory(calls[numbers[2]][2], count * SIZES[datatype]).copy())]
        if name == "allGather":
            return [(out, np.concatenate([memory(c[2], count * SIZES[datatype]) for c in calls]))]
        many = count * (self.size if name == "reduceScatter" else 1)
        given = [memory(c[2], many * SIZES[datatype]).view(TYPES[datatype]) for c in calls]
        total = given[-1].copy()                        # in an order of its own
        for x in given[-2::-1]:
            total = OPS[numbers[2]](total, x)
        return [(out, total[self.rank * count:(self.rank + 1) * count] if name == "reduceScatter" else total)]

    def sent(self, of, receive):
        """What the nth receive from a peer gets: its nth send to this rank."""
        count, datatype, peer = receive[1]
        sends = [c for c in of[peer] if c[0] == "send" and c[1][2] == self.rank]
        receives = [c for c in of[self.rank] if c[0] == "recv" and c[1][2] == peer]
        assert [c[1][:2] for c in sends] == [c[1][:2] for c in receives], f"unmatched: {sends} and {receives}"
        return memory(sends[receives.index(receive)][2], count * SIZES[datatype]).copy()


def make():
    """A module `cupy` for the ranks of a test."""
    nccl, used = Nccl(), []

    def use(number):
        return SimpleNamespace(use=lambda: used.append(number))
    cuda = SimpleNamespace(nccl=nccl, Stream=Stream, get_current_stream=Stream.current, Device=use, used=used,
                           runtime=SimpleNamespace(getDeviceCount=lambda: 2))

    def new(function):
        return lambda *args, **named: device(function(*args, **named))
    return SimpleNamespace(ndarray=ndarray, cuda=cuda, asnumpy=lambda x: np.array(x).view(np.ndarray), **{
        name: new(getattr(np, name)) for name in ("empty", "empty_like", "zeros", "array", "asarray", "concatenate",
                                                  "ascontiguousarray")})
