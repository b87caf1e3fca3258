"""The interface through which ranks talk: `Communicator`.

The public methods check their arguments, count, and describe the call.  How data travels is in `_link`, `_collect`,
`_begin`, `_send`, `_recv` and `_begin_recv`, which the backends fill in.

A *group* is a tuple of global ranks; its order is the order of chunks and of summation.  All members make the same
calls for it, in the same order.  *sizes* are the extents of the members' chunks along an axis, one per member in the
order of the group; they may differ and may be 0.
"""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.comm.arguments import (
    as_array,
    bad_op,
    check_axis,
    check_dtype,
    check_peer,
    check_sizes,
    cut,
    without,
)
from minipd.dist.comm.calls import Call
from minipd.dist.comm.errors import CommError
from minipd.dist.comm.reduction import REDUCTIONS
from minipd.dist.comm.request import Finished, Request

__all__ = ["Communicator"]

#: Collectives that `start` knows.
STARTABLE = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "barrier")

#: The call of a group of one: nobody hears of it, and its operand is the answer.
_ALONE: Call = ()


class Group:
    """A group as one of its members sees it: the ranks, this rank's index among them, and the backend's `link`."""

    __slots__ = ("index", "link", "ranks", "size")

    def __init__(self, ranks: tuple[int, ...], index: int, link: Any):
        self.ranks, self.size, self.index, self.link = ranks, len(ranks), index, link


#: A collective whose arguments have been checked: group, call, operand for the backend, bytes that this rank gives.
Prepared = tuple[Group, Call, Any, int]


class Communicator:
    """What one rank holds to talk to the others.

    Arrays are of any dtype of minipd and any shape, also without elements; they need not be contiguous.  Results are
    new C-ordered arrays that share memory with nothing.  Reductions are added up in the order of the group: every
    member gets the same bits, in every run and from every backend; float16 and bfloat16 are added in float32.

    In a group of one rank a collective is a copy: no message, not counted.

    Attributes:
        rank, size: this rank, and how many there are.
        counts: how many times this rank called each method, by name.
        moved: bytes that this rank gave to each method (for `recv`, and for a `broadcast` of another rank, that it
            got), by name.
        threads: whether a thread of this rank other than the one that made it may communicate, one at a time.
        on_event: None, or a function that is called after each call with (name, group, bytes, seconds).  Seconds
            include waiting for the others; of what was started, the time in `start` and `wait`.

    Raises: CommError when ranks do not fit together; ValueError or TypeError for arguments wrong in themselves.
    """

    threads = False

    _array = staticmethod(as_array)                     # checks what is given; a backend may take other arrays, too

    def __init__(self, rank: int, size: int):
        self.rank, self.size = rank, size
        self.counts: Counter[str] = Counter()
        self.moved: Counter[str] = Counter()
        self.on_event: Callable[[str, tuple[int, ...], int, float], None] | None = None
        self._groups: dict[tuple[int, ...], Group] = {}
        self._everyone = tuple(range(size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rank={self.rank}, size={self.size})"

    # ---- collectives

    def all_reduce(self, x: np.ndarray, group: tuple[int, ...], op: str = "sum") -> np.ndarray:
        """The members' arrays, equal in shape and dtype, combined element-wise: sum, max, min or prod.

        >>> from minipd.dist.comm.sim import World
        >>> World(3).run(lambda comm: comm.all_reduce(np.array([comm.rank + 1]), (0, 1, 2)))
        [array([6]), array([6]), array([6])]
        """
        return self._perform(*self._prepare_all_reduce(x, group, op))

    def _prepare_all_reduce(self, x: np.ndarray, group: tuple[int, ...], op: str = "sum") -> Prepared:
        g, x = self._group(group), self._array(x)
        if op not in REDUCTIONS:
            raise bad_op(op)
        if g.size == 1:
            return g, _ALONE, x.copy(), 0
        return g, ("all_reduce", x.shape, x.dtype, op), x, x.nbytes

    def all_gather(self, x: np.ndarray, group: tuple[int, ...], axis: int, sizes: Sequence[int]) -> np.ndarray:
        """The members' chunks in the order of the group, one after the other along `axis`.

        >>> from minipd.dist.comm.sim import World
        >>> World(2).run(lambda comm: comm.all_gather(np.full(2 - comm.rank, comm.rank), (0, 1), 0, (2, 1)))
        [array([0, 0, 1]), array([0, 0, 1])]
        """
        return self._perform(*self._prepare_all_gather(x, group, axis, sizes))

    def _prepare_all_gather(self, x: np.ndarray, group: tuple[int, ...], axis: int, sizes: Sequence[int]) -> Prepared:
        g, x = self._group(group), self._array(x)
        check_axis(x, axis)
        sizes = check_sizes(g.ranks, sizes)
        if x.shape[axis] != sizes[g.index]:
            raise CommError(f"all_gather: rank {self.rank} has {x.shape[axis]} along axis {axis} of {x.shape}, but "
                            f"sizes {sizes} give it {sizes[g.index]}")
        if g.size == 1:
            return g, _ALONE, x.copy(), 0
        return g, ("all_gather", without(x.shape, axis), x.dtype, axis, sizes), x, x.nbytes

    def reduce_scatter(self, x: np.ndarray, group: tuple[int, ...], axis: int, sizes: Sequence[int],
                       op: str = "sum") -> np.ndarray:
        """The members' arrays combined, of which each member gets its chunk along `axis`.

        >>> from minipd.dist.comm.sim import World
        >>> World(2).run(lambda comm: comm.reduce_scatter(np.array([1, 2, 3]), (0, 1), 0, (2, 1)))
        [array([2, 4]), array([6])]
        """
        return self._perform(*self._prepare_reduce_scatter(x, group, axis, sizes, op))

    def _prepare_reduce_scatter(self, x: np.ndarray, group: tuple[int, ...], axis: int, sizes: Sequence[int],
                                op: str = "sum") -> Prepared:
        g, x = self._group(group), self._array(x)
        check_axis(x, axis)
        if op not in REDUCTIONS:
            raise bad_op(op)
        sizes = check_sizes(g.ranks, sizes, x, axis)
        if g.size == 1:
            return g, _ALONE, x.copy(), 0
        return g, ("reduce_scatter", x.shape, x.dtype, axis, sizes, op), cut(x, axis, sizes), x.nbytes

    def all_to_all(self, x: np.ndarray, group: tuple[int, ...], split_axis: int, concat_axis: int,
                   split_sizes: Sequence[int], concat_sizes: Sequence[int]) -> np.ndarray:
        """Cut x along `split_axis`, give piece i to member i, join what the members give along `concat_axis`.

        concat_sizes[i] is the extent along `concat_axis` of what member i gives.  For different axes both sizes are
        the same on all members, and `concat_sizes` has x's own extent at this rank's place.  For one axis, each
        member has its own sizes: what it sends to each, and what it gets from each.

        >>> from minipd.dist.comm.sim import World
        >>> rows = np.arange(6).reshape(2, 3)                       # sharded by rows; wanted: by columns
        >>> World(2).run(lambda comm: comm.all_to_all(rows[comm.rank:comm.rank + 1], (0, 1), 1, 0, (2, 1), (1, 1)))
        [array([[0, 1],
               [3, 4]]), array([[2],
               [5]])]
        """
        return self._perform(*self._prepare_all_to_all(x, group, split_axis, concat_axis, split_sizes, concat_sizes))

    def _prepare_all_to_all(self, x: np.ndarray, group: tuple[int, ...], split_axis: int, concat_axis: int,
                            split_sizes: Sequence[int], concat_sizes: Sequence[int]) -> Prepared:
        g, x = self._group(group), self._array(x)
        check_axis(x, split_axis)
        check_axis(x, concat_axis)
        split_sizes = check_sizes(g.ranks, split_sizes, x, split_axis)
        concat_sizes = check_sizes(g.ranks, concat_sizes)
        own = split_sizes[g.index] if split_axis == concat_axis else x.shape[concat_axis]
        if concat_sizes[g.index] != own:
            raise CommError(f"all_to_all: rank {self.rank} gives itself {own} along axis {concat_axis} of {x.shape}, "
                            f"but concat_sizes {concat_sizes} say {concat_sizes[g.index]}")
        if g.size == 1:
            return g, _ALONE, x.copy(), 0
        common = (None, None) if split_axis == concat_axis else (split_sizes, concat_sizes)
        call = ("all_to_all", without(x.shape, concat_axis), x.dtype, split_axis, concat_axis, *common)
        return g, call, (cut(x, split_axis, split_sizes), concat_sizes), x.nbytes

    def broadcast(self, x: Any, root: int, group: tuple[int, ...]) -> np.ndarray:
        """The array of rank `root` (a global rank, a member), on every member.

        The others pass anything with the same shape and dtype; their values do not matter.
        """
        return self._perform(*self._prepare_broadcast(x, root, group))

    def _prepare_broadcast(self, x: Any, root: int, group: tuple[int, ...]) -> Prepared:
        g = self._group(group)
        if root not in g.ranks:
            raise ValueError(f"broadcast: root {root} is no member of the group {g.ranks}")
        if root == self.rank:
            x = self._array(x)
            if g.size == 1:
                return g, _ALONE, x.copy(), 0
        shape, dtype = tuple(x.shape), check_dtype(x)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return g, ("broadcast", shape, dtype, root), x, nbytes

    def all_gather_object(self, obj: Any, group: tuple[int, ...] | None = None) -> list[Any]:
        """Each member's object, in the order of the group (None: all ranks); they travel pickled, so all are copies."""
        g = self._group(self._everyone if group is None else group)
        text = pickle.dumps(obj, pickle.HIGHEST_PROTOCOL)
        if g.size == 1:
            return [pickle.loads(text)]
        texts = self._perform(g, ("all_gather_object", None, None), text, len(text))
        return [pickle.loads(t) for t in texts]

    def barrier(self, group: tuple[int, ...] | None = None) -> None:
        """Return when every member (None: every rank) has come here."""
        self._perform(*self._prepare_barrier(group))

    def _prepare_barrier(self, group: tuple[int, ...] | None = None) -> Prepared:
        g = self._group(self._everyone if group is None else group)
        return g, ("barrier", None, None), None, 0

    # ---- between two ranks

    def send(self, x: np.ndarray, dst: int, tag: int = 0) -> None:
        """Give a copy of x to rank `dst`.  Never waits: x may be changed at once, and rings of sends do not lock up.

        Every message must be received before the ranks end.
        """
        x = self._array(x)
        check_peer(self.size, dst, tag)
        start = time.perf_counter()
        self._send(x, dst, tag)
        self._note("send", dst, x.nbytes, time.perf_counter() - start)

    def recv(self, src: int, tag: int = 0) -> np.ndarray:
        """The next array that rank `src` sent to this rank under `tag`; its shape and dtype travel with it.

        >>> from minipd.dist.comm.sim import World
        >>> def swap(comm):
        ...     comm.send(np.full(comm.rank + 1, comm.rank), dst=1 - comm.rank)
        ...     return comm.recv(src=1 - comm.rank)
        >>> World(2).run(swap)
        [array([1, 1]), array([0])]
        """
        check_peer(self.size, src, tag)
        start = time.perf_counter()
        x = self._recv(src, tag)
        self._note("recv", src, x.nbytes, time.perf_counter() - start)
        return x

    # ---- started, not waited for

    def start(self, kind: str, *arguments: Any, **named: Any) -> Request:
        """Begin what the method named `kind` does, with the same arguments; the request's `wait` gives its result.

        kind: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, barrier, send or recv.

        Members may wait for what they started in any order, and make other calls in between; but all of them make, or
        start, the calls of a group in the same order, and receives of one rank and tag get its messages in the order in
        which they were started.  What was given must not change before it is done.  Every request must be waited for.

        >>> from minipd.dist.comm.sim import World
        >>> def overlap(comm):
        ...     request = comm.start("all_reduce", np.array([comm.rank + 1]), (0, 1))
        ...     meanwhile = comm.rank * 10                          # any work
        ...     return meanwhile, request.wait()
        >>> World(2).run(overlap)
        [(0, array([3])), (10, array([3]))]
        """
        if kind in ("send", "recv"):
            return self._start_message(kind, *arguments, **named)
        if kind not in STARTABLE:
            raise ValueError(f"start: expected one of {', '.join(STARTABLE)}, send, recv; got {kind!r}")
        group, call, operand, nbytes = getattr(self, "_prepare_" + kind)(*arguments, **named)
        if group.size == 1:
            return Finished(operand)
        self.counts[kind] += 1
        self.moved[kind] += nbytes
        start = time.perf_counter()
        request = self._begin(group, call, operand)

        def over(_: Any, seconds: float) -> None:
            if self.on_event is not None:
                self.on_event(kind, group.ranks, nbytes, seconds)
        return request._when_over(over, start)

    # ---- for the backends

    def _link(self, ranks: tuple[int, ...]) -> Any:
        """Whatever the backend needs to know of a group that this rank meets for the first time."""
        raise NotImplementedError

    def _collect(self, group: Group, call: Call, operand: Any) -> Any:
        """Carry out a collective of a group of at least two.

        `operand` by kind: all_reduce, all_gather, broadcast: the array.  reduce_scatter: its chunks, one per member.
        all_to_all: (its pieces, concat_sizes).  all_gather_object: bytes, and the result is a list of bytes.
        """
        raise NotImplementedError

    def _agree(self, group: Group, call: Call) -> None:
        """Compare the call with those of the other members, if this communicator was asked to do so."""

    def _begin(self, group: Group, call: Call, operand: Any) -> Request:
        """Start what `_collect` does."""
        raise NotImplementedError

    def _send(self, x: np.ndarray, dst: int, tag: int) -> None:
        raise NotImplementedError

    def _recv(self, src: int, tag: int) -> np.ndarray:
        raise NotImplementedError

    def _begin_recv(self, src: int, tag: int) -> Request:
        """Start what `_recv` does."""
        raise NotImplementedError

    # ---- inside

    def _group(self, ranks: tuple[int, ...]) -> Group:
        try:
            return self._groups[ranks]
        except (KeyError, TypeError):
            return self._meet(ranks)

    def _meet(self, ranks: Sequence[int]) -> Group:
        """Check a group on its first use, and remember it."""
        ranks = tuple(int(r) for r in ranks)
        if not ranks or len(set(ranks)) != len(ranks) or not all(0 <= r < self.size for r in ranks):
            raise ValueError(f"a group is a tuple of different ranks from 0 to {self.size - 1}; got {ranks}")
        if self.rank not in ranks:
            raise ValueError(f"rank {self.rank} called a collective of the group {ranks}, of which it is no member")
        if ranks not in self._groups:
            self._groups[ranks] = Group(ranks, ranks.index(self.rank), self._link(ranks) if len(ranks) > 1 else None)
        return self._groups[ranks]

    def _perform(self, group: Group, call: Call, operand: Any, nbytes: int) -> Any:
        if group.size == 1:
            return operand
        kind = call[0]
        self.counts[kind] += 1
        self.moved[kind] += nbytes
        if self.on_event is None:
            return self._collect(group, call, operand)
        start = time.perf_counter()
        result = self._collect(group, call, operand)
        self.on_event(kind, group.ranks, nbytes, time.perf_counter() - start)
        return result

    def _start_message(self, kind: str, *arguments: Any, **named: Any) -> Request:
        if kind == "send":
            self.send(*arguments, **named)
            return Finished(None)
        src, tag = _recv_arguments(*arguments, **named)
        check_peer(self.size, src, tag)
        start = time.perf_counter()

        def over(x: np.ndarray, seconds: float) -> None:
            self._note("recv", src, x.nbytes, seconds)
        return self._begin_recv(src, tag)._when_over(over, start)

    def _note(self, kind: str, peer: int, nbytes: int, seconds: float) -> None:
        self.counts[kind] += 1
        self.moved[kind] += nbytes
        if self.on_event is not None:
            self.on_event(kind, (self.rank, peer), nbytes, seconds)


def _recv_arguments(src: int, tag: int = 0) -> tuple[int, int]:
    return src, tag
