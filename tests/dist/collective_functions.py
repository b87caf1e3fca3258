"""Checks of every function for collectives and messages, for whatever ranks: simulated ones call `check_functions`,
and so does this file as a script that MPI starts.

Every rank draws the same case from a seed, and can work out what the others put in; the answers are numpy's.
"""

import sys

import ml_dtypes
import numpy as np

import minipd as paddle
import minipd.distributed as dist
from tests.dist.collective_checks import ACCUMULATE, reduced

BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = [np.dtype(t) for t in ("float16", "float32", "float64", "bool", "int8", "uint8", "int16", "int32", "int64",
                                "complex64", "complex128")] + [BF16]
OP = dist.ReduceOp
NAMES = {OP.SUM: "sum", OP.MAX: "max", OP.MIN: "min", OP.PROD: "prod"}


class Case:
    """A group, a dtype, a shape, and whether calls are over when they return; `draw` gives more, alike on all ranks."""

    def __init__(self, seed):
        self.seed, self.draw = seed, np.random.default_rng(seed)
        self.rank, size = dist.get_rank(), dist.get_world_size()
        self.ranks = sorted(self.draw.permutation(size)[:self.draw.integers(1, size + 1)].tolist())
        self.group = None if len(self.ranks) == size and self.draw.random() < 0.5 else dist.new_group(self.ranks)
        self.dtype = DTYPES[self.draw.integers(len(DTYPES))]
        self.shape = tuple(self.draw.integers(0, 4, self.draw.integers(0, 4)).tolist())
        self.sync = bool(self.draw.random() < 0.5)
        self.views = bool(self.draw.random() < 0.5)
        self.n, self.i = len(self.ranks), self.ranks.index(self.rank) if self.rank in self.ranks else -1
        self.made = 0

    def root(self):
        return int(self.draw.choice(self.ranks))

    def data(self, rank, *shape, salt=0):
        """What `rank` puts in."""
        draw = np.random.default_rng([self.seed, rank, salt])
        if self.dtype == np.bool_:
            return np.asarray(draw.random(shape) < 0.5)
        x = draw.integers(0 if self.dtype.kind == "u" else -4, 9, shape)
        return np.asarray(x + 1j * x[::-1] if self.dtype.kind == "c" and x.ndim else x / 2 if self.dtype.kind in "fV"
                          else x).astype(self.dtype)

    def tensor(self, array):
        """The array as a tensor, which may be a view whose elements do not follow each other in memory."""
        self.made += 1
        if self.views and array.ndim > 1:
            axes = list(range(array.ndim))[::-1]
            return paddle.to_tensor(np.ascontiguousarray(array.transpose(axes))).transpose(axes)
        if self.views and array.ndim:
            return paddle.to_tensor(np.repeat(array, 2, axis=0))[::2]
        return paddle.to_tensor(array)

    def blank(self, *shape):
        return self.tensor(np.ones(shape, self.dtype))

    def over(self, task, tensor):
        """Wait for it, in one of the ways there are."""
        if self.sync:
            assert task.is_completed()
        elif self.draw.random() < 0.5:
            assert task.wait() is True
        else:
            dist.wait(tensor)
        assert task.is_completed()

    def equal(self, tensor, want):
        got = tensor.numpy()
        assert got.dtype == want.dtype and got.shape == want.shape, (got, want)
        assert got.tobytes() == want.tobytes(), (self.seed, got, want)


def check_all_reduce(c):
    everyone = [c.data(r, *c.shape) for r in c.ranks]
    for op, name in NAMES.items():
        if c.dtype.kind == "c" and op in (OP.MAX, OP.MIN):
            continue
        x = c.tensor(everyone[c.i])
        c.over(dist.all_reduce(x, op, c.group, c.sync), x)
        c.equal(x, reduced(everyone, name))
    if c.dtype.kind in "fcV":
        x = c.tensor(everyone[c.i])
        c.over(dist.all_reduce(x, OP.AVG, c.group, c.sync), x)
        c.equal(x, reduced(everyone, "sum") / c.dtype.type(c.n))


def check_all_gather(c):
    everyone = [c.data(r, *c.shape) for r in c.ranks]
    given = [c.blank(*c.shape) for _ in c.ranks]
    for into in ([], given):
        x = c.tensor(everyone[c.i])
        c.over(dist.all_gather(into, x, c.group, c.sync), x)
        assert len(into) == c.n
        for tensor, want in zip(into, everyone, strict=True):
            c.equal(tensor, want)
    if c.shape:
        whole = c.blank(c.shape[0] * c.n, *c.shape[1:])
        c.over(dist.all_gather(whole, c.tensor(everyone[c.i]), c.group, c.sync), whole)
        c.equal(whole, np.concatenate(everyone))


def check_reduce_scatter(c):
    given = {r: [c.data(r, *c.shape, salt=i) for i in range(c.n)] for r in c.ranks}
    for op, name in ((OP.SUM, "sum"), (OP.PROD, "prod")):
        out = c.blank(*c.shape)
        c.over(dist.reduce_scatter(out, [c.tensor(a) for a in given[c.rank]], op, c.group, c.sync), out)
        c.equal(out, reduced([given[r][c.i] for r in c.ranks], name))
    if c.shape:
        out = c.blank(*c.shape)
        c.over(dist.reduce_scatter(out, c.tensor(np.concatenate(given[c.rank])), OP.SUM, c.group, c.sync), out)
        c.equal(out, reduced([given[r][c.i] for r in c.ranks], "sum"))


def check_alltoall(c):
    def goes(r, to):                                    # from rank r to rank `to`: each pair has a shape of its own
        return c.data(r, (r + 2 * to) % 3, 2, salt=to)
    given = [c.tensor(goes(c.rank, to)) for to in c.ranks]
    into = [c.blank(*goes(r, c.rank).shape) for r in c.ranks]
    c.over(dist.alltoall(into, given, c.group, c.sync), into[0])
    for tensor, r in zip(into, c.ranks, strict=True):
        c.equal(tensor, goes(r, c.rank))
    empty = []
    c.over(dist.alltoall(empty, [c.tensor(c.data(c.rank, *c.shape, salt=to)) for to in c.ranks], c.group, True), None)
    for tensor, r in zip(empty, c.ranks, strict=True):
        c.equal(tensor, c.data(r, *c.shape, salt=c.rank))


def check_alltoall_single(c):
    rows = int(c.draw.integers(0, 3))
    wholes = {r: c.data(r, rows * c.n, 2) for r in c.ranks}
    for function in (dist.alltoall_single, dist.alltoall):
        out, mine = c.blank(rows * c.n, 2), c.tensor(wholes[c.rank])
        c.over(function(out, mine, group=c.group, sync_op=c.sync), out)
        c.equal(out, np.concatenate([wholes[r][rows * c.i:rows * (c.i + 1)] for r in c.ranks]))
    table = c.draw.integers(0, 4, (c.n, c.n))           # row a: how much a sends to each
    starts = np.concatenate([np.zeros((c.n, 1), int), np.cumsum(table, 1)], 1)
    wholes = [c.data(r, int(table[a].sum()), 3) for a, r in enumerate(c.ranks)]
    out = c.blank(int(table[:, c.i].sum()), 3)
    c.over(dist.alltoall_single(out, c.tensor(wholes[c.i]), table[c.i].tolist(), table[:, c.i].tolist(), c.group,
                                c.sync), out)
    c.equal(out, np.concatenate([wholes[a][starts[a, c.i]:starts[a, c.i + 1]] for a in range(c.n)]))


def check_roots(c):
    root, everyone = c.root(), [c.data(r, *c.shape) for r in c.ranks]
    x = c.tensor(everyone[c.i])
    c.over(dist.broadcast(x, root, c.group, c.sync), x)
    c.equal(x, everyone[c.ranks.index(root)])
    x = c.tensor(everyone[c.i])
    c.over(dist.reduce(x, root, OP.PROD, c.group, c.sync), x)
    c.equal(x, reduced(everyone, "prod") if c.rank == root else everyone[c.i])
    into = [] if c.rank == root else None
    x = c.tensor(everyone[c.i])
    c.over(dist.gather(x, into, root, c.group, c.sync), x)
    for tensor, want in zip(into or [], everyone, strict=c.rank == root):
        c.equal(tensor, want)
    parts = [c.data(root, *c.shape, salt=i) for i in range(c.n)]
    out = c.blank(*c.shape)
    c.over(dist.scatter(out, [c.tensor(a) for a in parts] if c.rank == root else None, root, c.group, c.sync), out)
    c.equal(out, parts[c.i])
    if c.shape:
        out = c.blank(*c.shape)
        whole = c.tensor(np.concatenate(parts)) if c.rank == root else None
        c.over(dist.communication.stream.scatter(out, whole, root, c.group, c.sync), out)
        c.equal(out, parts[c.i])


def check_messages(c):
    if c.n < 2:
        return
    after, before = c.ranks[(c.i + 1) % c.n], c.ranks[c.i - 1]
    x, y, z = c.tensor(c.data(c.rank, *c.shape)), c.blank(*c.shape), c.blank(*c.shape)
    task = dist.irecv(y, before, c.group)
    dist.send(x, after, c.group)
    dist.isend(x, after, c.group).wait()
    dist.recv(z, before, c.group)                       # messages come in the order in which they were asked for
    assert task.wait()
    c.equal(y, c.data(before, *c.shape))
    c.equal(z, c.data(before, *c.shape))
    there, back = c.blank(*c.shape), c.blank(*c.shape)
    tasks = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, x, after, c.group), dist.P2POp(dist.irecv, there, before, c.group),
        dist.P2POp(dist.isend, x, before, c.group), dist.P2POp(dist.irecv, back, after, c.group)])
    for task in tasks:
        task.wait()
    if c.n > 2:                                         # of two ranks, one is before and after the other
        c.equal(there, c.data(before, *c.shape))
    c.equal(back, c.data(after, *c.shape))


def check_objects(c):
    root, found = c.root(), ["there before"]
    dist.all_gather_object(found, {"rank": c.rank}, c.group)
    assert found == ["there before", *({"rank": r} for r in c.ranks)]
    objects = [root, "text", None] if c.rank == root else [0, 0, 0]
    dist.broadcast_object_list(objects, root, c.group)
    assert objects == [root, "text", None]
    mine = ["old", "older"]
    dist.scatter_object_list(mine, ["x" * r for r in c.ranks] if c.rank == root else None, root, c.group)
    assert mine == ["x" * c.rank]
    if c.n > 1:
        after, before = (c.i + 1) % c.n, (c.i - 1) % c.n
        dist.send_object_list([c.rank, [c.rank]], group=c.group, dst_in_group=after)
        got = [None, None]
        dist.recv_object_list(got, c.ranks[before], c.group)
        assert got == [c.ranks[before], [c.ranks[before]]]
    dist.barrier(c.group)


CHECKS = [check_all_reduce, check_all_gather, check_reduce_scatter, check_alltoall, check_alltoall_single, check_roots,
          check_messages, check_objects]


def check_functions(seeds):
    """Run every check for each seed; how many tensors there were."""
    made = 0
    for seed in seeds:
        c = Case(seed)
        if c.i >= 0:
            for check in CHECKS:
                check(c)
        made += c.made
    assert set(NAMES.values()) == set(ACCUMULATE)
    return made


if __name__ == "__main__":
    made = check_functions(range(int(sys.argv[1])))
    counts = []
    dist.all_gather_object(counts, made)
    if dist.get_rank() == 0:
        print("checked", len(counts), min(counts) > 100)
