"""Reading and writing by number along every dimension, the last one too, of tensors that are split along any."""

import numpy as np
import pytest

import minipd as paddle
from minipd.dist.api import dtensor_from_local
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.framework.rank import current
from tests.dist.every_rule import cut
from tests.dist.ranks import on_mesh

R = Replicate()
MESH = parse_mesh("x=3")
SHAPE = (5, 4, 7)
RNG = np.random.default_rng(0)
X = np.asarray(RNG.integers(-9, 10, SHAPE), float)


def numbers(axis, n, shape=None):
    return np.asarray(RNG.integers(0, SHAPE[axis], n if shape is None else shape))


def with_size(axis, n):
    return tuple(n if i == axis else d for i, d in enumerate(SHAPE))


def values(*shape):
    return np.asarray(RNG.integers(-9, 10, shape), float)


def tuples(count, n):
    return np.stack([numbers(d, n) for d in range(count)], -1)


#: name -> axis -> (function of tensors, numbers, values or None)
CALLS = {
    "gather": lambda a: (lambda x, i: paddle.gather(x, i, a), numbers(a, 6), None),
    "index_select": lambda a: (lambda x, i: paddle.index_select(x, i, a), numbers(a, 6), None),
    "take_along_axis": lambda a: (lambda x, i: paddle.take_along_axis(x, i, a), numbers(a, 0, with_size(a, 3)), None),
    "gather_nd": lambda a: (paddle.gather_nd, tuples(a + 1, 6), None),
    "index_add": lambda a: (lambda x, i, v: paddle.index_add(x, i, a, v), numbers(a, 6), values(*with_size(a, 6))),
    "put_along_axis": lambda a: (lambda x, i, v: paddle.put_along_axis(x, i, v, a), numbers(a, 0, with_size(a, 3)),
                                 values(*with_size(a, 3))),
    "put_along_axis, adding": lambda a: (lambda x, i, v: paddle.put_along_axis(x, i, v, a, "add"),
                                         numbers(a, 0, with_size(a, 3)), values(*with_size(a, 3))),
    "put_along_axis, amax": lambda a: (lambda x, i, v: paddle.put_along_axis(x, i, v, a, "amax"),
                                       numbers(a, 0, with_size(a, 3)), values(*with_size(a, 3))),
    "scatter": lambda a: (lambda x, i, v: paddle.scatter(x, i, v), RNG.permutation(5)[:3], values(3, *SHAPE[1:])),
    "scatter, adding": lambda a: (lambda x, i, v: paddle.scatter(x, i, v, overwrite=False), numbers(0, 6),
                                  values(6, *SHAPE[1:])),
    "scatter_nd_add": lambda a: (paddle.scatter_nd_add, tuples(a + 1, 6), values(6, *SHAPE[a + 1:])),
    "index_put": lambda a: (lambda x, i, v: paddle.index_put(x, tuple(i.unbind(-1)), v), tuples(a + 1, 6),
                            values(6, *SHAPE[a + 1:])),
    "index_put, adding": lambda a: (lambda x, i, v: paddle.index_put(x, tuple(i.unbind(-1)), v, accumulate=True),
                                    tuples(a + 1, 6), values(6, *SHAPE[a + 1:])),
}


def placements_of(x, kinds=()):
    return [(p,) for p in (R, *map(Shard, range(x.ndim)), *kinds)]


def run(function, arrays, place):
    """The result, and gradients of its weighted sum for all float operands."""
    xs = [place(i, a) for i, a in enumerate(arrays)]
    floats = [x for x, a in zip(xs, arrays, strict=True) if a.dtype.kind == "f"]
    for x in floats:
        x.stop_gradient = False
    out = function(*xs)
    weights = np.cos(np.arange(out.size, dtype=float)).reshape(tuple(out.shape))
    (out * paddle.to_tensor(weights)).sum().backward()
    return [out.numpy(), *(x.grad.numpy() for x in floats)]


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", CALLS)
def test_along_every_dimension_split_along_any(name, axis):
    function, index, value = CALLS[name](axis)
    arrays = [X, index] if value is None else [X, index, value]
    want = run(function, arrays, lambda i, a: paddle.to_tensor(a))
    rng = np.random.default_rng(1)
    of_x, of_index = placements_of(X, [Partial()]), placements_of(index)
    chosen = [(p, of_index[n % len(of_index)], of_values) for n, p in enumerate(of_x + of_x[::-1])
              for of_values in ([None] if value is None else [placements_of(value, [Partial()])[n % (value.ndim + 2)]])]
    for placed in chosen:
        parts = [cut(a, MESH, p, rng) for a, p in zip(arrays, placed, strict=False)]

        def place(i, a, parts=parts, placed=placed):
            return dtensor_from_local(parts[i][current().rank], MESH, placed[i], a.shape)

        for got in on_mesh(MESH, lambda mesh, place=place: run(function, arrays, place)):
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(g, w, 1e-12, 1e-12, err_msg=f"{name} along {axis}, placed {placed}")
