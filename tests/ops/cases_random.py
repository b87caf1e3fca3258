"""Cases of draws: what each element is for a given key.  That they are distributed as they should be is tested in
test_random.py."""

import bisect
import itertools
import math

import numpy as np

from minipd.framework import philox
from tests.ops.case import SHAPES, Case, cases

KEY = np.asarray(philox.key_of(3, "cases"))
I64 = np.dtype("int64")


@cases("randint")
def _(d):
    def want(key, shape, dtype, low, high, window=None):
        whole = window[0] if window else shape
        words = philox.words64(key, np.zeros(1, np.int64), math.prod(whole)).tolist()
        drawn = np.array([low + w % (high - low) for w in words], I64).reshape(whole)
        return drawn[1:3, 2:5] if window else drawn

    for shape in SHAPES:
        attrs = {"shape": shape, "dtype": I64, "low": -3, "high": 7}
        yield Case((KEY,), want, attrs, symbolic=lambda s, a=attrs: a | {"shape": tuple(map(s, a["shape"]))})
    yield Case((KEY,), want, {"shape": (2, 3), "dtype": I64, "low": 0, "high": 2**40, "window": ((4, 6), (1, 2))})
    yield Case((KEY,), want, {"shape": (5,), "dtype": np.dtype("int8"), "low": -128, "high": 128})


@cases("randperm")
def _(d):
    def want(key, n, dtype):
        words = philox.words64(key, np.zeros(1, np.int64), n).tolist()
        return np.array(sorted(range(n), key=words.__getitem__), I64)

    for n in (0, 1, 7):
        yield Case((KEY,), want, {"n": n, "dtype": I64})


@cases("multinomial")
def _(d):
    def with_replacement(x, key, num_samples, replacement):
        rows = x.reshape(-1, x.shape[-1])
        u = philox.uniform(key, (len(rows), num_samples), dtype=np.float64)
        drawn = [[bisect.bisect([s / sum(row) for s in itertools.accumulate(row)], v) for v in vs]
                 for row, vs in zip(rows.tolist(), u.tolist(), strict=True)]
        return np.array(drawn).reshape(*x.shape[:-1], num_samples)

    def without(x, key, num_samples):
        u = philox.uniform(key, x.shape, dtype=np.float64)
        rows = zip(x.reshape(-1, x.shape[-1]).tolist(), u.reshape(-1, x.shape[-1]).tolist(), strict=True)
        order = [sorted(range(x.shape[-1]), key=lambda i, r=row, v=v: -math.log1p(-v[i]) / r[i] if r[i] else math.inf)
                 for row, v in rows]
        return np.array(order)[:, :num_samples].reshape(*x.shape[:-1], num_samples)

    for shape in ((4,), (2, 5)):
        x = d.positive(*shape)
        yield Case((x, KEY), with_replacement, {"num_samples": 6, "replacement": True}, wrt=())
        yield Case((x, KEY), without, {"num_samples": 3}, wrt=())
    yield Case((np.array([0.0, 1.0, 0.0, 2.0]), KEY), without, {"num_samples": 2}, wrt=())
    yield Case((np.array([0.0, 1.0, 0.0]), KEY), lambda x, key, **_: np.ones(4, I64),
               {"num_samples": 4, "replacement": True}, wrt=())


@cases("poisson")
def _(d):
    for shape in SHAPES:
        yield Case((d.positive(*shape), KEY), lambda x, key: philox.generator(key).poisson(x), wrt=())
    yield Case((np.zeros(3), KEY), lambda x, key: np.zeros(3), wrt=())


@cases("binomial")
def _(d):
    def want(count, prob, key):
        return philox.generator(key).binomial(count, prob)

    for a, b in (((3,), (3,)), ((2, 1), (3,)), ((), (2, 2)), ((0,), (0,))):
        yield Case((d.ints(20, *a), d.floats(*b, low=0.0, high=1.0), KEY), want, wrt=())
    yield Case((np.array([5, 6]), np.array([0.0, 1.0]), KEY), lambda n, p, key: n * (p == 1), wrt=())


@cases("standard_gamma")
def _(d):
    for shape in SHAPES:
        yield Case((d.positive(*shape), KEY), lambda x, key: philox.generator(key).standard_gamma(x), wrt=())
    yield Case((np.zeros(3), KEY), lambda x, key: np.zeros(3), wrt=())
