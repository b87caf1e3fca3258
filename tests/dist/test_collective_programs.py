"""Collectives as operators: in programs, and along every dimension of what they move."""

import numpy as np
import pytest

import minipd as paddle
import minipd.distributed as dist
from minipd.dist.rows import AllGather, AllToAll, ReduceScatter
from minipd.framework.rank import current, dispatch
from tests.dist.ranks import on_mesh


def everything(x):
    """Calls every function that programs have."""
    rank, n = dist.get_rank(), dist.get_world_size()
    y = x * 2
    dist.all_reduce(y)
    z = x + 1
    dist.all_reduce(z, dist.ReduceOp.AVG)
    b = x * 1
    dist.broadcast(b, 1, sync_op=False).wait()
    rows, whole = [], paddle.zeros([n * x.shape[0], 2])
    dist.all_gather(rows, x)
    dist.all_gather(whole, x)
    s, t = paddle.zeros_like(x), paddle.zeros_like(x)
    dist.reduce_scatter(s, [x * i for i in range(1, n + 1)])
    dist.reduce_scatter(t, paddle.concat([x] * n), dist.ReduceOp.MAX)
    out = []
    dist.alltoall(out, [x * i for i in range(1, n + 1)])
    swapped = paddle.zeros([n, 2])
    dist.alltoall(swapped, paddle.concat([x.sum(0, keepdim=True) * i for i in range(1, n + 1)]))
    m = paddle.zeros_like(x)
    dist.send(x, (rank + 1) % n)
    dist.recv(m, (rank - 1) % n)
    return y, z, b, *rows, whole, s, t, *out, swapped, m


def test_a_program_does_what_eager_does():
    def run(mesh):
        x = paddle.to_tensor(np.arange(6, dtype="float32").reshape(3, 2) + 10 * dist.get_rank())
        eager, before = everything(x), dict(current().comm.counts)
        function = paddle.jit.to_static(everything)
        traced = function(x)
        after = {k: n - before[k] for k, n in current().comm.counts.items()}
        return [(a.numpy(), b.numpy()) for a, b in zip(eager, traced, strict=True)], before, after, function(x)[0]
    for pairs, before, after, again in on_mesh("x=3", run):
        for eager, traced in pairs:
            np.testing.assert_array_equal(eager, traced)
        assert before == after                          # the same collectives, and none while tracing
        np.testing.assert_array_equal(again.numpy(), pairs[0][0])


def test_static_mode():
    def run(mesh):
        paddle.enable_static()
        try:
            main = paddle.static.Program()
            with paddle.static.program_guard(main):
                x = paddle.static.data("x", [2], "float32")
                y = x + 1
                dist.all_reduce(y)
            text = str(main)
            found = paddle.static.Executor().run(main, feed={"x": np.full(2, dist.get_rank(), "float32")},
                                                 fetch_list=[y])
        finally:
            paddle.disable_static()
        return found[0].tolist(), ".all_reduce\"" in text
    assert on_mesh("x=2", run) == [([3.0, 3.0], True)] * 2


def test_what_programs_do_not_have():
    def run(mesh):
        @paddle.jit.to_static
        def scattered(x):
            dist.scatter(x, [x, x])
            return x

        @paddle.jit.to_static
        def wants_gradients(x):
            y = x * 2
            dist.all_reduce(y)
            return y
        with pytest.raises(TypeError, match="scatter: expected an ordinary tensor with values, got .*; a distributed "
                                            "tensor changes its placements with reshard, and programs have all_reduce"):
            scattered(paddle.ones([2]))
        with pytest.raises(RuntimeError, match="all_reduce under no_grad.* which has a gradient history"):
            wants_gradients(paddle.to_tensor([1.0], stop_gradient=False))
    on_mesh("x=2", run)


SIZES = {"even": (2, 2, 2), "uneven": (3, 0, 1)}


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_operators_along_every_dim(dim, sizes, layout):
    """Gathers and scatters along every dimension, the last too, of tensors whose elements lie in any order."""
    ranks, ends = (0, 1, 2), np.cumsum(sizes)[:-1]
    shape = [2, 3, 4]
    shape[dim] = sum(sizes)
    whole = np.random.default_rng(dim).integers(-5, 9, shape).astype("float32")
    chunks, other = np.split(whole, ends, dim), (dim + 1) % 3
    wide = np.split(whole, np.cumsum([1, 0])[:2] if shape[other] < 3 else [1, 2], other)

    def tensor(array):
        return paddle.to_tensor(array) if layout == "rows" else paddle.to_tensor(
            np.ascontiguousarray(array.transpose(2, 1, 0))).transpose([2, 1, 0])

    def run(mesh):
        rank = dist.get_rank()
        gathered = dispatch(AllGather, [tensor(chunks[rank])], {"group": ranks, "axis": dim, "sizes": sizes})
        scattered = dispatch(ReduceScatter, [tensor(whole * (rank + 1))],
                             {"group": ranks, "index": rank, "axis": dim, "sizes": sizes, "op": "sum"})
        turned = dispatch(AllToAll, [tensor(wide[rank])],
                          {"group": ranks, "index": rank, "split_axis": dim, "concat_axis": other,
                           "split_sizes": sizes, "concat_sizes": tuple(w.shape[other] for w in wide)})
        return gathered.numpy(), scattered.numpy(), turned.numpy()
    for rank, (gathered, scattered, turned) in enumerate(on_mesh("x=3", run)):
        np.testing.assert_array_equal(gathered, whole)
        np.testing.assert_array_equal(scattered, 6 * chunks[rank])
        np.testing.assert_array_equal(turned, chunks[rank])
