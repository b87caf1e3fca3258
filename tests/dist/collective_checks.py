"""Checks of every method of a communicator, for whatever backend: simulated ranks call `check_all`, and so does this
file as a script that MPI starts.

Each rank can work out what the others put in, so it knows the answer; the answers are reckoned in another way than the
backends do (accumulate, stack, index arithmetic).  `check_all` returns a digest of all results, in which two backends
must agree to the bit.
"""

import hashlib
import sys

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(t) for t in ("float16", "float32", "float64")] + [BF16]
DTYPES = [*FLOATS, *(np.dtype(t) for t in ("bool", "int8", "uint8", "int16", "int32", "int64", "complex64"))]
ACCUMULATE = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


def data(rank, shape, dtype=np.float64, seed=0):
    """What `rank` puts in: the same whoever asks."""
    rng = np.random.default_rng([seed, rank])
    if dtype == np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype in FLOATS:
        return np.asarray(rng.standard_normal(shape) * 3).astype(dtype)
    return np.asarray(rng.integers(-4 if dtype.kind == "i" else 0, 9, shape)).astype(dtype)


def reduced(arrays, op):
    """The arrays combined from the first to the last."""
    stack = np.stack(arrays)
    wide = stack.astype(np.float32) if stack.dtype.itemsize == 2 and stack.dtype in FLOATS else stack
    return ACCUMULATE[op].accumulate(wide, axis=0, dtype=wide.dtype)[-1].astype(stack.dtype)


def ceil_sizes(n, parts):
    chunk = -(-n // parts)
    return tuple(max(0, min(n, chunk * (i + 1)) - chunk * i) for i in range(parts))


def part(x, axis, sizes, i):
    start = sum(sizes[:i])
    return np.take(x, range(start, start + sizes[i]), axis)


def groups_of(comm):
    """Groups with this rank: all, all in reverse, a pair (of the first two, or of the rest), itself."""
    everyone = tuple(range(comm.size))
    pairs = [everyone[i:i + 2] for i in range(0, comm.size, 2)]
    return [everyone, everyone[::-1], next(p for p in pairs if comm.rank in p), (comm.rank,)]


class Results:
    """Compares to the bit, checks what holds for every result, and keeps a digest."""

    def __init__(self):
        self.digest = hashlib.sha256()

    def equal(self, got, want, *inputs):
        assert type(got) is np.ndarray and got.dtype == want.dtype and got.shape == want.shape, (got, want)
        assert got.tobytes() == want.tobytes(), (got, want)
        assert got.flags.c_contiguous and got.flags.writeable
        assert not any(np.shares_memory(got, x) for x in inputs)
        self.digest.update(got.tobytes())


def check_all_reduce(comm, results):
    for group in groups_of(comm):
        for dtype in DTYPES:
            for op in ACCUMULATE if dtype.kind != "c" else ("sum",):
                for shape in ((3, 5), (), (0, 2), (7,)):
                    x = data(comm.rank, shape, dtype)
                    want = reduced([data(r, shape, dtype) for r in group], op)
                    results.equal(comm.all_reduce(x, group, op), want, x)
                    assert x.tobytes() == data(comm.rank, shape, dtype).tobytes()


def check_layouts(comm, results):
    """Inputs that are transposed, strided, broadcast, a scalar of numpy, or large enough for another algorithm."""
    everyone = tuple(range(comm.size))
    for view in (lambda x: x.T, lambda x: x[::2], lambda x: x[:, ::-1], lambda x: np.broadcast_to(x[:1], (9, 4))):
        x = view(data(comm.rank, (6, 4)))
        others = [view(data(r, (6, 4))) for r in everyone]
        results.equal(comm.all_reduce(x, everyone), reduced(others, "sum"), x)
        sizes = (x.shape[1],) * comm.size
        results.equal(comm.all_gather(x, everyone, 1, sizes), np.hstack(others), x)
    results.equal(comm.all_reduce(np.float64(comm.rank), everyone), np.asarray(float(sum(everyone))))
    for dtype in (np.dtype("float32"), BF16, np.dtype("bool")):
        for size in (140_003, 1_100_001):
            x = data(comm.rank, size, dtype)
            results.equal(comm.all_reduce(x, everyone), reduced([data(r, x.shape, dtype) for r in everyone], "sum"), x)


def check_chunks(comm, results):
    """all_gather and reduce_scatter, even and uneven, with members that have nothing, along each axis."""
    for group in groups_of(comm):
        n, i = len(group), group.index(comm.rank)
        for dtype in (np.dtype("float32"), BF16, np.dtype("int64"), np.dtype("bool")):
            for sizes in {ceil_sizes(n * 2, n), ceil_sizes(n + 1, n), ceil_sizes(1, n), (0,) * n, tuple(range(n))}:
                for axis in (0, 1, 2):
                    shape = [2, 3, 4]
                    shape[axis] = sum(sizes)
                    wholes = [data(r, shape, dtype) for r in group]
                    mine = part(wholes[0], axis, sizes, i)
                    results.equal(comm.all_gather(mine, group, axis, sizes), wholes[0], mine)
                    want = part(reduced(wholes, "sum"), axis, sizes, i)
                    results.equal(comm.reduce_scatter(wholes[i], group, axis, sizes), want, wholes[i])
                    want = part(reduced(wholes, "max"), axis, sizes, i)
                    results.equal(comm.reduce_scatter(wholes[i], group, axis, sizes, "max"), want, wholes[i])


def check_all_to_all(comm, results):
    for group in groups_of(comm):
        n, i = len(group), group.index(comm.rank)
        for dtype in (np.dtype("float64"), BF16):
            for split, concat in ((0, 1), (1, 0), (2, 0), (0, 2)):
                for rows, columns in ((n, 2 * n), (n + 1, n + 2), (1, 3), (0, 2)):
                    shape = [2, 2, 2]
                    shape[split], shape[concat] = rows, columns
                    whole = data(0, shape, dtype)                       # sharded along concat; wanted: along split
                    split_sizes, concat_sizes = ceil_sizes(rows, n), ceil_sizes(columns, n)
                    mine = part(whole, concat, concat_sizes, i)
                    want = part(whole, split, split_sizes, i)
                    got = comm.all_to_all(mine, group, split, concat, split_sizes, concat_sizes)
                    results.equal(got, want, mine)
            # One axis: member a sends member b  (a + 2 b) % 3  rows.
            sent = [[(a + 2 * b) % 3 for b in range(n)] for a in range(n)]
            wholes = [data(r, (sum(s), 2), dtype) for r, s in zip(group, sent, strict=True)]
            want = np.concatenate([part(wholes[a], 0, sent[a], i) for a in range(n)])
            got = comm.all_to_all(wholes[i], group, 0, 0, sent[i], [sent[a][i] for a in range(n)])
            results.equal(got, want, wholes[i])


def check_broadcast(comm, results):
    for group in groups_of(comm):
        for root in group:
            for shape in ((3, 2), (), (0,), (1000, 50)):
                for dtype in (np.dtype("float32"), BF16):
                    x = data(comm.rank, shape, dtype)
                    results.equal(comm.broadcast(x, root, group), data(root, shape, dtype), x)
    x = data(0, (4, 6)).T
    results.equal(comm.broadcast(x, 0, tuple(range(comm.size))), data(0, (4, 6)).T.copy(), x)


def check_messages(comm, results):
    """A ring in which all send first, large messages too; messages are kept apart by tag, and in order within one."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for shape in ((3, 2), (), (0, 5), (300, 400)):
        for dtype in DTYPES:
            x = data(comm.rank, shape, dtype)
            comm.send(x, after)
            x[...] = 0
            results.equal(comm.recv(before), data(before, shape, dtype), x)
    for k in range(3):
        comm.send(np.array([k]), after, tag=5)
    comm.send(np.array([100]), after, tag=6)
    assert comm.recv(before, tag=6) == 100
    assert [int(comm.recv(before, tag=5)[0]) for _ in range(3)] == [0, 1, 2]


def check_started(comm, results):
    """What is started may be waited for in any order, with other calls in between; `done` leads there as well."""
    for group in groups_of(comm):
        n, i = len(group), group.index(comm.rank)
        for size in (3, 200_001):                                       # the large one takes two rounds
            wholes = [data(r, (size,), np.dtype("float32")) for r in group]
            mine = wholes[i]
            sizes = ceil_sizes(size, n)
            total = reduced(wholes, "sum")
            requests = [comm.start("all_reduce", mine, group), comm.start("all_reduce", mine, group, op="max"),
                        comm.start("all_gather", mine, group, 0, (size,) * n),
                        comm.start("reduce_scatter", mine, group, 0, sizes),
                        comm.start("broadcast", mine, group[-1], group),
                        comm.start("all_to_all", mine, group, 0, 0, sizes, (sizes[i],) * n),
                        comm.start("barrier", group)]
            results.equal(comm.all_reduce(mine, group), total, mine)
            while not requests[3].done():
                pass
            wants = [total, reduced(wholes, "max"), np.concatenate(wholes), part(total, 0, sizes, i), wholes[-1],
                     np.concatenate([part(x, 0, sizes, i) for x in wholes])]
            for request, want in reversed(list(zip(requests, wants, strict=False))):
                results.equal(request.wait(), want, mine)
                assert request.done() and request.wait() is request.wait()
            assert requests[6].wait() is None
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in (2, 100_000):
        receives = [comm.start("recv", before, tag=tag) for tag in (1, 2, 1)]
        for k, tag in enumerate((1, 1, 2)):
            assert comm.start("send", np.full(size, k), after, tag).wait() is None
        for request, k in zip(reversed(receives), (1, 2, 0), strict=True):
            results.equal(request.wait(), np.full(size, k))
        # one that is started, and one that is waited for in between
        first = comm.start("recv", before)
        for k in range(2):
            comm.send(np.full(size, k), after)
        results.equal(comm.recv(before), np.full(size, 1))
        results.equal(first.wait(), np.full(size, 0))


def check_objects(comm, results):
    for group in groups_of(comm):
        mine = {"rank": comm.rank, "list": [1, (2, None)]}
        got = comm.all_gather_object(mine, group)
        assert got == [{"rank": r, "list": [1, (2, None)]} for r in group]
        assert all(x is not mine for x in got)
        comm.barrier(group)
    assert comm.all_gather_object("x" * comm.rank) == ["x" * r for r in range(comm.size)]
    comm.barrier()


CHECKS = [check_all_reduce, check_layouts, check_chunks, check_all_to_all, check_broadcast, check_messages,
          check_started, check_objects]


def check_all(comm):
    """Run every check; returns (digest of all results, counts, bytes moved)."""
    results = Results()
    for check in CHECKS:
        check(comm, results)
    return results.digest.hexdigest(), dict(comm.counts), dict(comm.moved)


if __name__ == "__main__":
    from minipd.dist.comm.connect import connect

    with connect() as comm:
        outcomes = comm.all_gather_object(check_all(comm))
        if comm.rank == 0:
            print(repr(outcomes), file=open(sys.argv[1], "w"))
