"""Ranks whose arrays are on GPUs: NCCL, through CuPy.  Arrays stay on the device, results are CuPy arrays.

A rank is a process of MPI, as in `mpi.py`, and has one GPU of its machine.  MPI carries what is needed to set NCCL up,
objects, barriers, and arrays of numpy; NCCL carries arrays of CuPy.

Calls only put work into streams, as everything does on a GPU.  A collective goes into the current stream, so that what
follows there sees its result; what was started goes into a stream of its own, and `wait` makes the current stream wait
for it, not the rank.

Where this differs from the other backends: NCCL adds up in an order of its own, which depends on the machine and the
size of the array.  All ranks get the same bits, but not those of simulated ranks.
"""

from __future__ import annotations

import importlib
import queue
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.comm.arguments import MAX_TAG, as_array, check_dtype
from minipd.dist.comm.base import Communicator, Group
from minipd.dist.comm.calls import Call
from minipd.dist.comm.request import Request
from minipd.framework import dtype as dtypes
from minipd.framework.errors import InputError

__all__ = ["NcclCommunicator"]

#: How to get it, for whoever lacks it.
INSTALL = "install CuPy for your version of CUDA (pip install cupy-cuda12x) on a machine with a GPU, or use \"mpi\""

#: NCCL's codes, as `cupy.cuda.nccl` names them, of what it can add up by itself.  Of the others: int16 is added up as
#: int32, which wraps around at the same places; bool is 0 and 1 in bytes; complex numbers are two floats each.
CODES = {"int8": "NCCL_INT8", "uint8": "NCCL_UINT8", "int32": "NCCL_INT32", "int64": "NCCL_INT64",
         "float16": "NCCL_FLOAT16", "float32": "NCCL_FLOAT32", "float64": "NCCL_FLOAT64", "bfloat16": "NCCL_BFLOAT16"}
OPS = {"sum": "NCCL_SUM", "prod": "NCCL_PROD", "max": "NCCL_MAX", "min": "NCCL_MIN"}

#: The tag under which messages are announced to the communicator below.
ANNOUNCED = MAX_TAG

_NP_OF_CODE = {t.code: t.np for t in dtypes.ALL}


def load() -> Any:
    """The module `cupy`, with a GPU and NCCL.

    Raises: InputError if one of them is missing.
    """
    try:
        cupy = importlib.import_module("cupy")
        importlib.import_module("cupy.cuda.nccl")
        devices = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:                          # CUDA's own errors, too: no driver, no device
        raise InputError("CuPy with NCCL and a GPU, for backend \"nccl\"", f"none ({error})", INSTALL) from error
    if not cupy.cuda.nccl.available or not devices:
        raise InputError("CuPy with NCCL and a GPU, for backend \"nccl\"",
                         f"{devices} GPUs, NCCL {'there' if cupy.cuda.nccl.available else 'missing'}", INSTALL)
    return cupy


class NcclCommunicator(Communicator):
    """A communicator over another one, `below`, which reaches all ranks and takes what is not on a GPU.

    Args:
        below: the ranks, their objects, their numpy arrays.
        cupy: the module.
        local: this rank's number on its machine, hence its GPU: the ranks share them in turns.
    """

    def __init__(self, below: Communicator, cupy: Any, local: int):
        super().__init__(below.rank, below.size)
        self.threads = below.threads
        self._below, self._xp, self._nccl = below, cupy, cupy.cuda.nccl
        self._device = local % cupy.cuda.runtime.getDeviceCount()
        cupy.cuda.Device(self._device).use()
        self._side = cupy.cuda.Stream(non_blocking=True)        # for what was started
        self._outgoing: dict[int, _Outgoing] = {}
        self._incoming: dict[int, tuple[Any, Any]] = {}         # by sender: NCCL's communicator, a stream
        self._next: dict[int, Request] = {}                     # by sender: its next announcement
        self._come: defaultdict[tuple[int, int], deque[Any]] = defaultdict(deque)           # by sender and tag
        self._awaited: defaultdict[tuple[int, int], deque[_Awaited]] = defaultdict(deque)   # likewise

    def __enter__(self) -> NcclCommunicator:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()

    def close(self, last: bool = True) -> None:
        """Wait until what this rank sent is on its way and what it put into streams is done, then for all ranks.

        last: as for MPI's communicator.

        Raises: cupy's NcclError if NCCL met one on the way; CommError as the communicator below.
        """
        for outgoing in self._outgoing.values():
            outgoing.finish()
        self._side.synchronize()
        self._xp.cuda.get_current_stream().synchronize()
        for group in self._groups.values():
            if group.link is not None and group.link.comm is not None:
                group.link.comm.check_async_error()
        close = getattr(self._below, "close", None)
        if close is None:
            self._below.barrier()
        else:
            close(last)

    def _array(self, x: Any) -> Any:                    # type: ignore[override]
        if isinstance(x, self._xp.ndarray):
            check_dtype(x)
            return x
        return as_array(x)

    # ---- collectives

    def _link(self, ranks: tuple[int, ...]) -> _Ring:
        return _Ring()

    def _ring(self, group: Group) -> Any:
        """NCCL's communicator of a group; its members make it at its first collective."""
        if group.link.comm is None:
            # any member can make the number by which NCCL's communicators find each other: the first does
            number = self._nccl.get_unique_id() if group.index == 0 else None
            number = self._below.all_gather_object(number, group.ranks)[0]
            group.link.comm = self._nccl.NcclCommunicator(group.size, number, group.index)
        return group.link.comm

    def _collect(self, group: Group, call: Call, operand: Any) -> Any:
        below = self._below._group(group.ranks)
        if self._elsewhere(call, operand):
            return self._below._collect(below, call, operand)
        self._below._agree(below, call)
        return self._put(group, call, operand, self._xp.cuda.get_current_stream())

    def _begin(self, group: Group, call: Call, operand: Any) -> Request:
        below = self._below._group(group.ranks)
        if self._elsewhere(call, operand):
            return self._below._begin(below, call, operand)
        self._below._agree(below, call)
        here = self._xp.cuda.get_current_stream()
        self._side.wait_event(here.record())            # what is given may still be on its way to being computed
        with self._side:                                # memory that is taken and copied to belongs to this stream
            result = self._put(group, call, operand, self._side)
        return _Enqueued(self._xp, result, self._side.record(), operand)

    def _elsewhere(self, call: Call, operand: Any) -> bool:
        """Whether this is for the communicator below: it has no array of a GPU."""
        while isinstance(operand, tuple | list):
            operand = operand[0]
        return call[1] is None or isinstance(operand, np.ndarray) and not isinstance(operand, self._xp.ndarray)

    def _put(self, group: Group, call: Call, operand: Any, stream: Any) -> Any:
        """Put the collective into a stream; the result is there when the stream gets to it."""
        kind, _, _, *parameters = call
        return getattr(self, "_put_" + kind)(group, self._ring(group), stream.ptr, operand, *parameters)

    def _put_all_reduce(self, g: Group, ring: Any, stream: int, x: Any, op: str) -> Any:
        given, code, finish = self._addable(x, op)
        out = self._xp.empty_like(given)
        ring.allReduce(given.data.ptr, out.data.ptr, given.size, code, self._op(x.dtype, op), stream)
        return finish(out).reshape(x.shape)

    def _put_reduce_scatter(self, g: Group, ring: Any, stream: int, chunks: list, axis: int, sizes: Sequence[int],
                            op: str) -> Any:
        # NCCL gives all members equally much: chunks are filled up to the size of the largest
        xp, mine = self._xp, chunks[g.index]
        most = max(chunk.size for chunk in chunks)
        rows = xp.zeros((g.size, most), mine.dtype)
        for row, chunk in zip(rows, chunks, strict=True):
            row[:chunk.size] = chunk.reshape(-1)
        given, code, finish = self._addable(rows, op)
        out = xp.empty(given.size // g.size, given.dtype)
        ring.reduceScatter(given.data.ptr, out.data.ptr, out.size, code, self._op(mine.dtype, op), stream)
        return finish(out)[:mine.size].reshape(mine.shape).copy()

    def _put_all_gather(self, g: Group, ring: Any, stream: int, x: Any, axis: int, sizes: Sequence[int]) -> Any:
        xp, given = self._xp, self._xp.ascontiguousarray(x)
        shapes = [(*x.shape[:axis], size, *x.shape[axis + 1:]) for size in sizes]
        if len(set(sizes)) == 1:
            rows = xp.empty((g.size, *x.shape), x.dtype)
            ring.allGather(given.data.ptr, rows.data.ptr, given.nbytes, self._nccl.NCCL_UINT8, stream)
            chunks = list(rows)
        else:
            chunks = [given if i == g.index else xp.empty(shape, x.dtype) for i, shape in enumerate(shapes)]
            self._exchange(g, ring, stream, [given] * g.size, chunks)
        return xp.ascontiguousarray(xp.concatenate(chunks, axis))

    def _put_all_to_all(self, g: Group, ring: Any, stream: int, operand: tuple, split_axis: int, concat_axis: int,
                        *_: Any) -> Any:
        xp = self._xp
        pieces, sizes = [xp.ascontiguousarray(piece) for piece in operand[0]], operand[1]
        shape = pieces[g.index].shape
        chunks = [pieces[g.index] if i == g.index else
                  xp.empty((*shape[:concat_axis], size, *shape[concat_axis + 1:]), pieces[0].dtype)
                  for i, size in enumerate(sizes)]
        self._exchange(g, ring, stream, pieces, chunks)
        return xp.ascontiguousarray(xp.concatenate(chunks, concat_axis))

    def _put_broadcast(self, g: Group, ring: Any, stream: int, x: Any, root: int) -> Any:
        xp = self._xp
        out = xp.array(x, order="C") if root == self.rank else xp.empty(x.shape, x.dtype)
        ring.broadcast(out.data.ptr, out.data.ptr, out.nbytes, self._nccl.NCCL_UINT8, g.ranks.index(root), stream)
        return out

    def _exchange(self, g: Group, ring: Any, stream: int, outgoing: Sequence[Any], incoming: Sequence[Any]) -> None:
        """Give outgoing[i] to member i, and fill incoming[i] with what it gives: as one group of calls, because a send
        and a receive that come one after the other would wait for each other for ever."""
        self._nccl.groupStart()
        try:
            for i in range(g.size):
                if i != g.index and outgoing[i].size:
                    ring.send(outgoing[i].data.ptr, outgoing[i].nbytes, self._nccl.NCCL_UINT8, i, stream)
                if i != g.index and incoming[i].size:
                    ring.recv(incoming[i].data.ptr, incoming[i].nbytes, self._nccl.NCCL_UINT8, i, stream)
        finally:
            self._nccl.groupEnd()

    def _addable(self, x: Any, op: str) -> tuple[Any, int, Callable[[Any], Any]]:
        """(x as NCCL can add it up, its code, how to make the sum what x is)."""
        xp, dtype = self._xp, x.dtype
        given = xp.ascontiguousarray(x).reshape(-1)
        if dtype == np.bool_:
            return given.view(np.uint8), self._nccl.NCCL_UINT8, lambda out: out.view(np.bool_)
        if dtype == np.int16:
            return given.astype(np.int32), self._nccl.NCCL_INT32, lambda out: out.astype(np.int16)
        if dtype.kind == "c":
            if op != "sum":
                raise TypeError(f"NCCL adds complex numbers and nothing else; got op {op!r} for {dtype}")
            part = np.dtype(f"f{dtype.itemsize // 2}")
            return given.view(part), getattr(self._nccl, CODES[part.name]), lambda out: out.view(dtype)
        return given, getattr(self._nccl, CODES[dtype.name]), lambda out: out

    def _op(self, dtype: Any, op: str) -> int:
        if dtype == np.bool_:                           # any and all, of bytes that are 0 or 1
            op = {"sum": "max", "prod": "min"}.get(op, op)
        return getattr(self._nccl, OPS[op])

    # ---- between two ranks

    # NCCL carries out the calls of one communicator one after the other, so messages that cross would wait for each
    # other.  Each direction between two ranks therefore has a communicator of its own.  To make it both must be there;
    # for a send that never waits, a thread waits in its place.  What is sent, and under which tag, is announced through
    # the communicator below, and a receiver takes all messages of a rank in the order in which they were announced.

    def _send(self, x: Any, dst: int, tag: int) -> None:
        if not isinstance(x, self._xp.ndarray) or dst == self.rank:
            on_device = isinstance(x, self._xp.ndarray)
            self._below._send(np.array([tag, -2 if on_device else -1]), dst, ANNOUNCED)
            self._below._send(self._xp.asnumpy(x) if on_device else x, dst, ANNOUNCED)
            return
        number: tuple[int, ...] = ()
        if dst not in self._outgoing:
            self._outgoing[dst] = _Outgoing(self._xp, self._device)
            number = self._outgoing[dst].number
        self._below._send(np.array([tag, dtypes.of(x.dtype).code, x.ndim, *x.shape, *number]), dst, ANNOUNCED)
        self._outgoing[dst].put(self._xp.array(x, order="C"), self._xp.cuda.get_current_stream().record())

    def _recv(self, src: int, tag: int) -> Any:
        return self._begin_recv(src, tag)._finish()

    def _begin_recv(self, src: int, tag: int) -> Request:
        request = _Awaited(self, src)
        if self._come[src, tag]:
            request.arrive(self._come[src, tag].popleft())
        else:
            self._awaited[src, tag].append(request)
        return request

    def _look(self, src: int, wait: bool) -> None:
        """Take in the next announcement of a rank, if it has come or one is to wait for it."""
        request = self._next.get(src)
        if request is None:
            request = self._next[src] = self._below._begin_recv(src, ANNOUNCED)
        if wait or request.done():
            head = self._next.pop(src).wait()
            tag = int(head[0])
            x = self._receive(head, src)
            if self._awaited[src, tag]:
                self._awaited[src, tag].popleft().arrive(x)
            else:
                self._come[src, tag].append(x)

    def _receive(self, head: np.ndarray, src: int) -> Any:
        """The array that was announced."""
        code = int(head[1])
        if code < 0:
            x = self._below._recv(src, ANNOUNCED)
            return self._xp.asarray(x) if code == -2 else x
        ndim = int(head[2])
        shape, number = tuple(map(int, head[3:3 + ndim])), tuple(map(int, head[3 + ndim:]))
        if number:
            self._incoming[src] = self._nccl.NcclCommunicator(2, number, 1), self._xp.cuda.Stream(non_blocking=True)
        pair, stream = self._incoming[src]
        out = self._xp.empty(shape, _NP_OF_CODE[code])
        here = self._xp.cuda.get_current_stream()
        stream.wait_event(here.record())                # the memory may have been in use there
        if out.size:
            pair.recv(out.data.ptr, out.nbytes, self._nccl.NCCL_UINT8, 0, stream.ptr)
        here.wait_event(stream.record())
        return out


class _Ring:
    """A group's communicator of NCCL, once it has one."""

    def __init__(self) -> None:
        self.comm: Any = None


class _Outgoing:
    """Messages from this rank to another, sent by a thread of their own in the order in which they are put."""

    def __init__(self, cupy: Any, device: int):
        self.number = cupy.cuda.nccl.get_unique_id()
        self._xp, self._device = cupy, device
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, x: Any, ready: Any) -> None:
        """Send x, which is there once the event `ready` is."""
        self._messages.put((x, ready))

    def finish(self) -> None:
        """Return when everything has been sent.

        Raises: what went wrong in the thread.
        """
        self._messages.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            cuda = self._xp.cuda
            cuda.Device(self._device).use()
            pair, stream = cuda.nccl.NcclCommunicator(2, self.number, 0), cuda.Stream(non_blocking=True)
            while (message := self._messages.get()) is not None:
                x, ready = message
                stream.wait_event(ready)
                if x.size:
                    pair.send(x.data.ptr, x.nbytes, cuda.nccl.NCCL_UINT8, 1, stream.ptr)
                stream.synchronize()                    # before x is let go of
        except BaseException as error:
            self._error = error


class _Enqueued(Request):
    """A collective in a stream of its own.  What it reads and writes must stay until it is over."""

    def __init__(self, cupy: Any, result: Any, event: Any, operand: Any):
        super().__init__()
        self._xp, self._result, self._event, self._operand = cupy, result, event, operand

    def _poll(self) -> bool:
        return bool(self._event.done)

    def _finish(self) -> Any:
        self._xp.cuda.get_current_stream().wait_event(self._event)
        return self._result


class _Awaited(Request):
    """A message that was asked for."""

    def __init__(self, comm: NcclCommunicator, src: int):
        super().__init__()
        self._comm, self._src, self._here = comm, src, False
        self._result: Any = None

    def arrive(self, x: Any) -> None:
        self._result, self._here = x, True

    def _poll(self) -> bool:
        if not self._here:
            self._comm._look(self._src, wait=False)
        return self._here

    def _finish(self) -> Any:
        while not self._here:
            self._comm._look(self._src, wait=True)
        return self._result
