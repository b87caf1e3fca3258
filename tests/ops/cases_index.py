"""Cases of creation, look-ups, the loss, random operators and optimizer steps."""

import math

import numpy as np

from minipd.framework import philox
from tests.ops.case import SHAPES, Case, cases
from tests.oracles.llama_numpy import adamw_reference

F64, I64 = np.dtype("float64"), np.dtype("int64")


# ------------------------------------------------------------------------------------------------ creation
@cases("full")
def _(d):
    for shape in SHAPES:
        yield Case((), lambda shape, value, dtype: np.ones(shape) * value, {"shape": shape, "value": 2.5, "dtype": F64},
                   symbolic=lambda s, shape=shape: {"shape": tuple(map(s, shape)), "value": 2.5, "dtype": F64})
    for dtype, value in (("int64", -3), ("bool", True), ("uint8", 200), ("float32", 1)):
        yield Case((), lambda shape, value, dtype: np.array([[value] * 3] * 2, dtype),
                   {"shape": (2, 3), "value": value, "dtype": np.dtype(dtype)})


@cases("shape_only")
def _(d):
    for shape in SHAPES:
        yield Case((), lambda shape, dtype: np.zeros(shape), {"shape": shape, "dtype": F64},
                   symbolic=lambda s, shape=shape: {"shape": tuple(map(s, shape)), "dtype": F64})


@cases("dim")
def _(d):
    for size in (0, 1, 7):
        yield Case((), lambda size: np.full((), size, I64), {"size": size},
                   symbolic=lambda s, size=size: {"size": s(size)})


@cases("full_int_array")
def _(d):
    for value in ((), (1,), (2, -3, 4)):
        yield Case((), lambda value, dtype: np.array([*value, 0], dtype)[:-1], {"value": value, "dtype": I64})


@cases("full_like", "any")
def _(d):
    for shape in SHAPES:
        yield Case((d.floats(*shape),), lambda like, value: like * 0 + value, {"value": 1})
    yield Case((d.floats(2, 3),), lambda like, value, dtype: np.array([[7] * 3] * 2, dtype),
               {"value": 7, "dtype": np.dtype("int32")})


@cases("arange")
def _(d):
    def want(start, stop, step, dtype):
        out = []
        while start + len(out) * step < stop if step > 0 else start + len(out) * step > stop:
            out.append(start + len(out) * step)
        return np.array(out, dtype)

    for start, stop, step, dtype in ((0, 5, 1, "int64"), (1, 10, 4, "int32"), (5, 0, -2, "int64"), (3, 3, 1, "int64"),
                                     (4, 2, 1, "int64"), (0.0, 1.0, 0.25, "float64"), (1, 2, 0.3, "float64")):
        yield Case((), want, {"start": start, "stop": stop, "step": step, "dtype": np.dtype(dtype)})
    yield Case((), want, {"start": 0, "stop": 7, "step": 1, "dtype": np.dtype("int64")},
               symbolic=lambda s: {"start": 0, "stop": s(7), "step": 1, "dtype": np.dtype("int64")})


# ------------------------------------------------------------------------------------------------ look-ups
def one_hot(rows, n, start=0):
    return (np.asarray(rows)[..., None] == np.arange(start, start + n)).astype(float)


@cases("embedding", "any")
def _(d):
    def want(x, weight, window=(0, 0)):
        return np.tensordot(one_hot(x, weight.shape[0], window[1]), weight, 1)

    for shape in ((), (4,), (2, 3), (0,)):
        yield Case((d.ints(5, *shape), d.floats(5, 3)), want)
    yield Case((np.array([3, 3, 3]), d.floats(7, 1)), want)
    yield Case((np.array([], int), d.floats(0, 3)), want)
    # a shard that holds rows 4 .. 6 of a table of 10: other rows give 0
    yield Case((np.array([[0, 4, 6], [7, 5, 9]]), d.floats(3, 2)), want, {"window": (10, 4)}, wrt=())
    yield Case((np.array([1, 2]), d.floats(0, 2)), want, {"window": (4, 4)}, wrt=())


@cases("embedding_grad", "ints")
def _(d):
    def want(x, g, like, window=(0, 0)):
        n, width = like.shape
        return one_hot(x, n, window[1]).reshape(-1, n).T @ g.reshape(-1, width)

    for shape in ((), (4,), (2, 3), (0,)):
        yield Case((d.ints(5, *shape), d.floats(*shape, 3), d.floats(5, 3)), want, wrt=(1,))
    yield Case((np.array([3, 3, 0, 3]), d.floats(4, 2), d.floats(7, 2)), want, wrt=(1,))
    yield Case((np.array([0, 4, 6, 7]), d.floats(4, 2), d.floats(3, 2)), want, {"window": (10, 4)}, wrt=())


@cases("take_along_axis", "any")
def _(d):
    def want(x, indices, axis, window=(0, 0)):
        out = np.zeros(indices.shape)
        for at in np.ndindex(indices.shape):
            row = indices[at] - window[1]
            if 0 <= row < x.shape[axis]:
                out[at] = x[(*at[:axis], row, *at[axis + 1:])]
        return out

    for shape, axis, n in (((5,), 0, 3), ((2, 5), 1, 1), ((4, 3), 0, 2), ((2, 3, 5), 1, 4), ((2, 3), 1, 0)):
        indices = d.ints(shape[axis], *shape[:axis], n, *shape[axis + 1:])
        yield Case((d.floats(*shape), indices), want, {"axis": axis})
    yield Case((d.floats(2, 3), np.array([[0, 4], [6, 7]])), want, {"axis": 1, "window": (10, 4)}, wrt=())
    yield Case((np.array([[np.inf, 1.0]]), np.array([[0, 5]])), want, {"axis": 1, "window": (10, 4)}, wrt=())


@cases("take_along_axis_grad", "ints")
def _(d):
    def want(g, indices, like, axis, window=(0, 0)):
        out = np.zeros(like.shape)
        for at in np.ndindex(indices.shape):
            row = indices[at] - window[1]
            if 0 <= row < like.shape[axis]:
                out[(*at[:axis], row, *at[axis + 1:])] += g[at]
        return out

    for shape, axis, n in (((5,), 0, 3), ((2, 5), 1, 1), ((4, 3), 0, 2), ((2, 3, 5), 1, 4), ((2, 3), 1, 0)):
        indices = d.ints(shape[axis], *shape[:axis], n, *shape[axis + 1:])
        yield Case((d.floats(*indices.shape), indices, d.floats(*shape)), want, {"axis": axis}, wrt=(0,))
    yield Case((d.floats(2, 2), np.array([[0, 4], [6, 7]]), d.floats(2, 3)), want, {"axis": 1, "window": (10, 4)},
               wrt=())


# ------------------------------------------------------------------------------------------------ loss
def log_softmax(v):
    top = max(v)
    total = math.log(math.fsum(math.exp(u - top) for u in v))
    return np.array([u - top - total for u in v])


def labels_for(d, shape, axis, ignored=()):
    label = d.ints(shape[axis], *shape[:axis], 1, *shape[axis + 1:])
    label.reshape(-1)[list(ignored)] = -100
    return label


@cases("cross_entropy_with_softmax")
def _(d):
    def want(logits, label, ignore_index=-100, axis=-1):
        if not logits.size:
            return logits, np.zeros(label.shape)
        log_p = np.apply_along_axis(log_softmax, axis, logits)
        hot = np.moveaxis(one_hot(np.take(label, 0, axis), logits.shape[axis]), -1, axis)
        loss = np.where(label == ignore_index, 0.0, -np.sum(np.where(hot > 0, log_p, 0.0), axis=axis, keepdims=True))
        return np.exp(log_p), loss

    for shape, axis, ignored in (((4, 5), 1, ()), ((4, 5), 1, (0, 2)), ((3, 4), 0, (1,)), ((2, 7, 3), 1, (2, 5)),
                                 ((3, 1), 1, ()), ((0, 5), 1, ()), ((2, 3), 1, (0, 1))):
        yield Case((d.floats(*shape), labels_for(d, shape, axis, ignored)), want, {"axis": axis})
    yield Case((d.floats(3, 5), np.array([[2], [0], [2]])), want, {"axis": 1, "ignore_index": 2})
    yield Case((np.array([[1e4, -1e4, 0.0]]), np.array([[1]])), want, {"axis": 1}, wrt=())


@cases("cross_entropy_with_softmax_grad")
def _(d):
    def want(label, softmax, loss_grad, ignore_index=-100, axis=-1, window=(0, 0)):
        hot = np.moveaxis(one_hot(np.take(label, 0, axis), softmax.shape[axis], window[1]), -1, axis)
        return np.where(label == ignore_index, 0.0, (softmax - hot) * loss_grad)

    for shape, axis, ignored in (((4, 5), 1, ()), ((4, 5), 1, (0, 2)), ((3, 4), 0, (1,)), ((2, 7, 3), 1, (2, 5)),
                                 ((3, 1), 1, ()), ((0, 5), 1, ()), ((2, 3), 1, (0, 1))):
        label = labels_for(d, shape, axis, ignored)
        yield Case((label, d.positive(*shape), d.floats(*label.shape)), want, {"axis": axis})
    yield Case((np.array([[0], [4], [6]]), d.positive(3, 3), d.floats(3, 1)), want, {"axis": 1, "window": (10, 4)},
               wrt=())


# ------------------------------------------------------------------------------------------------ random numbers
KEY = philox.key_of(1, "case")


@cases("uniform")
def _(d):
    for shape in SHAPES:
        attrs = {"shape": shape, "dtype": F64, "min": -1.0, "max": 2.0}
        yield Case((KEY,), lambda key, shape, dtype, min, max: philox.uniform(key, shape, min, max, dtype), attrs,
                   symbolic=lambda s, attrs=attrs: attrs | {"shape": tuple(map(s, attrs["shape"]))})
    yield Case((KEY,), lambda key, shape, dtype, window: philox.uniform(key, (4, 6), dtype=dtype)[1:3, 2:5],
               {"shape": (2, 3), "dtype": F64, "window": ((4, 6), (1, 2))})


@cases("gaussian")
def _(d):
    for shape in SHAPES:
        attrs = {"shape": shape, "dtype": F64, "mean": 1.0, "std": 0.5}
        yield Case((KEY,), lambda key, shape, dtype, mean, std: philox.normal(key, shape, mean, std, dtype), attrs,
                   symbolic=lambda s, attrs=attrs: attrs | {"shape": tuple(map(s, attrs["shape"]))})
    yield Case((KEY,), lambda key, shape, dtype, window: philox.normal(key, (4, 6), dtype=dtype)[1:3, 2:5],
               {"shape": (2, 3), "dtype": F64, "window": ((4, 6), (1, 2))})


@cases("dropout")
def _(d):
    def want(x, key, p, mode="upscale_in_train", window=None):
        whole, offsets = window or (x.shape, (0,) * x.ndim)
        part = tuple(slice(o, o + n) for o, n in zip(offsets, x.shape, strict=True))
        kept = philox.uniform(key, whole)[part] >= np.float32(p)
        return np.where(kept, x / (1 - p) if mode == "upscale_in_train" and p < 1 else x, 0.0)

    for shape in SHAPES:
        yield Case((d.positive(*shape), KEY), want, {"p": 0.3}, wrt=(0,))
    yield Case((d.positive(5, 5), KEY), want, {"p": 0.5, "mode": "downscale_in_infer"}, wrt=(0,))
    yield Case((d.positive(5, 5), KEY), want, {"p": 0.0}, wrt=(0,))
    yield Case((d.positive(5, 5), KEY), want, {"p": 1.0}, wrt=(0,))
    yield Case((d.positive(2, 3), KEY), want, {"p": 0.5, "window": ((4, 6), (1, 2))}, wrt=(0,))


# ------------------------------------------------------------------------------------------------ optimizer steps
@cases("sgd")
def _(d):
    for shape in SHAPES:
        for skip in (False, True):
            yield Case((d.floats(*shape), d.floats(*shape), np.array(0.25), np.array(skip)),
                       lambda p, g, lr, skip: p if skip else p - lr * g, wrt=())


@cases("adamw")
def _(d):
    def want(p, g, m, v, step, lr, skip, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01):
        return (p, m, v) if skip else adamw_reference(p, g, m, v, step, lr, beta1, beta2, epsilon, weight_decay)

    for shape in SHAPES:
        state = d.floats(*shape), d.floats(*shape), d.floats(*shape), d.positive(*shape)
        yield Case((*state, np.array(3), np.array(0.25), np.array(False)), want, wrt=())
        yield Case((*state, np.array(3), np.array(0.25), np.array(True)), want, wrt=())
        yield Case((*state, np.array(1), np.array(0.25), np.array(False)), want,
                   {"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-5, "weight_decay": 0.0}, wrt=())
