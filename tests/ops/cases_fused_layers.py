"""Cases of operators that are several others: products and convolutions with what follows them, norms, attention."""

import math

import numpy as np

from minipd.framework import draws
from minipd.framework import dtype as dtypes
from tests.ops.case import Case, cases

#: activations on float64 arrays, written with the library of Python's floats
ACTIVATIONS = {
    "none": lambda z: z, "relu": lambda z: max(z, 0.0), "relu6": lambda z: min(max(z, 0.0), 6.0),
    "gelu": lambda z: z * math.erfc(-z / math.sqrt(2)) / 2, "silu": lambda z: z / (1 + math.exp(-z)),
    "gelu_tanh": lambda z: z * (1 + math.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z ** 3))) / 2,
    "quick_gelu": lambda z: z / (1 + math.exp(-1.702 * z)), "sigmoid": lambda z: 1 / (1 + math.exp(-z)),
    "tanh": math.tanh, "hardswish": lambda z: z * min(max(z + 3, 0.0), 6.0) / 6,
}
#: the gradient of these has jumps: no second derivatives
KINKED = ("relu", "relu6", "hardswish")


def activated(name, z):
    return np.vectorize(ACTIVATIONS[name], otypes=[np.float64])(z) if z.size else z


@cases("fused_gemm_epilogue")
def _(d):
    def want(x, y, bias, trans_x=False, trans_y=False, activation="none"):
        x, y = (np.swapaxes(a, -1, -2) if t else a for a, t in ((x, trans_x), (y, trans_y)))
        return activated(activation, np.einsum("...mk,...kn->...mn", x, y) + bias)

    for name in ACTIVATIONS:
        yield Case((d.floats(3, 4), d.floats(4, 5), d.floats(5)), want, {"activation": name},
                   smooth=name not in KINKED)
    yield Case((d.floats(2, 3, 4), d.floats(4, 5), d.floats(5)), want, {"activation": "silu"})
    yield Case((d.floats(2, 4, 3), d.floats(5, 4), d.floats(5)), want,
               {"trans_x": True, "trans_y": True, "activation": "tanh"})
    yield Case((d.floats(2, 3, 2), d.floats(2, 2, 4), d.floats(4)), want)
    yield Case((d.floats(0, 3), d.floats(3, 2), d.floats(2)), want, {"activation": "gelu"})
    yield Case((d.floats(3, 0), d.floats(0, 2), d.floats(2)), want)


def convolved(x, w, strides, paddings, dilations, groups):
    top, bottom, left, right = paddings
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    n, c, height, width = x.shape
    o, _, kh, kw = w.shape
    h, v = ((size - d * (k - 1) - 1) // s + 1 for size, d, k, s in zip((height, width), dilations, (kh, kw), strides,
                                                                      strict=True))
    out = np.zeros((n, o, h, v))
    for f in range(o):
        first = f // (o // groups) * (c // groups)
        for i in range(h):
            for j in range(v):
                window = x[:, first:first + c // groups, i * strides[0]:i * strides[0] + dilations[0] * kh:dilations[0],
                           j * strides[1]:j * strides[1] + dilations[1] * kw:dilations[1]][:, :, :kh, :kw]
                out[:, f, i, j] = (window * w[f]).sum((1, 2, 3))
    return out


def conv_attrs(strides=(1, 1), paddings=(0, 0, 0, 0), dilations=(1, 1), groups=1, **more):
    return {"strides": strides, "paddings": paddings, "dilations": dilations, "groups": groups, **more}


@cases("fused_conv2d_add_act")
def _(d):
    def want(x, w, bias, activation="none", **attrs):
        return activated(activation, convolved(x, w, **attrs) + bias[:, None, None])

    for n in (1, 2):
        yield Case((d.floats(n, 2, 4, 3), d.floats(3, 2, 3, 2), d.floats(3)), want,
                   conv_attrs(paddings=(1, 1, 0, 1), activation="silu"), fixed=((1, 2), (1, 3)))
    yield Case((d.floats(2, 2, 3, 3), d.floats(4, 1, 2, 2), d.floats(4)), want,
               conv_attrs((2, 1), (1, 0, 0, 0), (1, 2), 2, activation="relu"), smooth=False, fixed=((1, 2), (1, 3)))
    yield Case((d.floats(3, 2, 2, 2), d.floats(3, 2, 1, 1), d.floats(3)), want, conv_attrs())
    yield Case((d.floats(0, 2, 3, 3), d.floats(3, 2, 2, 2), d.floats(3)), want, conv_attrs(activation="gelu"))


@cases("fused_conv2d_residual_add_act")
def _(d):
    def want(x, w, bias, residual, activation="none", **attrs):
        return activated(activation, convolved(x, w, **attrs) + bias[:, None, None] + residual)

    for n, name in ((1, "relu"), (2, "hardswish"), (2, "none")):
        yield Case((d.floats(n, 2, 3, 4), d.floats(3, 2, 2, 3), d.floats(3), d.floats(n, 3, 2, 2)), want,
                   conv_attrs(activation=name), smooth=name not in KINKED, fixed=((1, 2), (1, 3)))


# ------------------------------------------------------------------------------------------------ norms
def normed(x, scale, bias, epsilon=1e-5):
    def row(v):
        mean = math.fsum(v) / len(v)
        root = math.sqrt(math.fsum((u - mean) ** 2 for u in v) / len(v) + epsilon)
        return np.array([(u - mean) / root for u in v])
    rows = x.reshape(*x.shape[:x.ndim - scale.ndim], scale.size)
    return (np.apply_along_axis(row, -1, rows).reshape(x.shape) if x.size else x) * scale + bias


def rms_normed(x, scale, epsilon=1e-5):
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + epsilon) * scale


NORM_SHAPES = (((5,), 1), ((2, 3), 1), ((2, 3, 4), 1), ((2, 3, 4), 2), ((0, 3), 1))


@cases("layer_norm")
def _(d):
    for shape, n in (*NORM_SHAPES, ((3, 0), 1)):
        inner = shape[len(shape) - n:]
        yield Case((d.floats(*shape), d.floats(*inner), d.floats(*inner)), normed, {"epsilon": 0.125})


@cases("skip_layernorm")
def _(d):
    def want(x, y, scale, bias, epsilon=1e-5):
        return normed(x + y, scale, bias, epsilon)

    for shape, n in NORM_SHAPES:
        inner = shape[len(shape) - n:]
        yield Case((d.floats(*shape), d.floats(*shape), d.floats(*inner), d.floats(*inner)), want, {"epsilon": 0.125})


@cases("fused_bias_residual_layernorm")
def _(d):
    def want(x, residual, scale, bias, epsilon=1e-5):
        return normed(x + residual, scale, bias, epsilon), x + residual

    for shape, n in NORM_SHAPES:
        inner = shape[len(shape) - n:]
        yield Case((d.floats(*shape), d.floats(*shape), d.floats(*inner), d.floats(*inner)), want, {"epsilon": 0.125})


@cases("fused_rms_norm_residual")
def _(d):
    def want(x, residual, scale, epsilon=1e-5):
        return rms_normed(x + residual, scale, epsilon), x + residual

    for shape in ((5,), (2, 3), (2, 3, 4), (0, 3)):
        yield Case((d.floats(*shape), d.floats(*shape), d.floats(*shape[-1:])), want, {"epsilon": 0.125})


@cases("add_group_norm_silu")
def _(d):
    def want(x, scale, bias, groups, epsilon=1e-5, activation="silu"):
        n, c = x.shape[:2]
        ones, zeros = np.ones(x.size // (n * groups or 1)), 0.0
        out = normed(x.reshape(n * groups, -1), ones, zeros, epsilon).reshape(x.shape) if x.size else x
        column = (c, *[1] * (x.ndim - 2))
        return activated(activation, out * scale.reshape(column) + bias.reshape(column))

    for shape, groups in (((2, 4, 3), 2), ((1, 4, 2, 3), 4), ((3, 6), 2), ((0, 4, 2), 2)):
        for name in ("silu", "none"):
            yield Case((d.floats(*shape), d.floats(shape[1]), d.floats(shape[1])), want,
                       {"groups": groups, "epsilon": 0.125, "activation": name}, fixed=((0, 1), (1, 0), (2, 0)))


# ------------------------------------------------------------------------------------------------ attention
def attended(q, k, v, see, scale):
    """see(b, h, i, scores) -> the scores of one query, or None for a query that gets zeros."""
    out = np.zeros((*q.shape[:3], v.shape[3]))
    group = q.shape[2] // k.shape[2]
    for b, i, h in np.ndindex(*q.shape[:3]):
        scores = see(b, h, i, scale * (k[b, :, h // group] @ q[b, i, h]))
        if scores is not None:
            e = np.exp(scores - scores.max(initial=-math.inf))
            out[b, i, h] = e / e.sum() @ v[b, :, h // group]
    return out


SIZES = ((1, 3, 3, 2, 2, 3, 3), (2, 4, 3, 4, 2, 2, 3), (1, 2, 4, 1, 1, 2, 1), (0, 2, 2, 1, 1, 2, 2))


def heads(d, b, sq, sk, h, kv, dim, width):
    return d.floats(b, sq, h, dim), d.floats(b, sk, kv, dim), d.floats(b, sk, kv, width)


@cases("flash_attn")
def _(d):
    def want(q, k, v, scale=1.0, causal=False):
        def see(b, h, i, scores):
            return np.where(np.arange(len(scores)) <= i, scores, -math.inf) if causal else scores
        return attended(q, k, v, see, scale)

    for sizes in SIZES:
        for causal in (False, True):
            yield Case(heads(d, *sizes), want, {"scale": 0.7, "causal": causal}, fixed=((0, 2), (1, 2), (2, 2)))


@cases("fused_dot_product_attention")
def _(d):
    def want(q, k, v, bias, scaling_factor=1.0, hidden=-math.inf, zeros=True):
        wide = np.broadcast_to(bias, (q.shape[0], q.shape[2], q.shape[1], k.shape[1]))

        def see(b, h, i, scores):
            row = wide[b, h, i]
            scores = np.where(row, scores, hidden) if row.dtype == bool else scores + row
            return None if zeros and (scores == -math.inf).all() else scores
        return attended(q, k, v, see, scaling_factor)

    fixed = ((0, 2), (1, 2), (2, 2))
    for sizes in SIZES:
        b, sq, sk, h = sizes[:4]
        yield Case((*heads(d, *sizes), d.floats(b, 1, sq, sk)), want, {"scaling_factor": 0.7}, fixed=fixed)
        yield Case((*heads(d, *sizes), d.floats(sq, sk)), want, {"zeros": False}, fixed=fixed)
        mask = d.bools(b, h, sq, sk)
        mask[..., :1] |= np.arange(sq)[:, None] > 0                 # only the first query may see nothing
        yield Case((*heads(d, *sizes), mask), want, {}, fixed=fixed)
        yield Case((*heads(d, *sizes), mask), want, {"hidden": -3.0, "zeros": False}, fixed=fixed)
    nothing = np.where([[True, False, True], [True, True, True]], -math.inf, 0.5)
    yield Case((*heads(d, 1, 2, 3, 2, 2, 2, 2), nothing), want, wrt=(0, 1, 2), fixed=fixed)


# ------------------------------------------------------------------------------------------------ the rest
@cases("fused_embedding_eltwise_layernorm")
def _(d):
    def want(bias, scale, *looked_up, epsilon=1e-5):
        total = sum(table[ids] for ids, table in zip(looked_up[::2], looked_up[1::2], strict=True))
        return normed(total, scale, bias, epsilon)

    for shapes in (((2, 3), (1, 3)), ((2, 3), (2, 3), (2, 3)), ((3,),), ((1, 3), (2, 1)), ((0, 2), (1, 2))):
        looked_up = [x for rows, shape in zip((7, 4, 2), shapes, strict=False)
                     for x in (d.ints(rows, *shape), d.floats(rows, 5))]
        yield Case((d.floats(5), d.floats(5), *looked_up), want, {"epsilon": 0.125})


@cases("fused_dropout_add")
def _(d):
    def want(x, y, key, p, mode="upscale_in_train", window=None):
        kept = draws.uniform(key, x.shape, 0.0, 1.0, dtypes.float32.np, window) >= p
        return x * kept / (1 - p if mode == "upscale_in_train" else 1) + y

    key = np.array([3, 5])
    for shape in ((4,), (2, 3), (0, 2)):
        yield Case((d.floats(*shape), d.floats(*shape), key), want, {"p": 0.25})
    yield Case((d.floats(3, 5), d.floats(3, 5), key), want, {"p": 0.5, "mode": "downscale_in_infer"})
