"""Calls of fresh shapes, by families of operators: `FAMILIES[name](rng)` is (row name, operands, attributes).

Sizes are small and odd, some of them 1, few 0; numbers are small integers where a kernel adds them up, so that sums are
exact in any order.
"""

import numpy as np

from minipd.dist.spmd.general import POINTWISE
from minipd.framework.row import ROWS
from tests.ops.all_cases import CASES

FAMILIES = {}
#: operators whose operands have one shape
ALIKE = ("add_n", "swiglu", "bce_loss", "sigmoid_cross_entropy_with_logits")
KEY = np.array([7, 11])
F64 = np.dtype("float64")


def family(draw):
    FAMILIES[draw.__name__] = draw
    return draw


# --------------------------------------------------------------------------------------------- what draws share
def one_of(rng, *choices):
    return choices[rng.integers(len(choices))]


def some(rng, n):
    """A subset of range(n), of at least one, as a sorted tuple."""
    return tuple(sorted(rng.permutation(n)[:rng.integers(1, n + 1)].tolist()))


def sizes(rng, low, high, least=0):
    """Low to high dimensions of 1 to 7 elements; of 0 seldom."""
    found = rng.integers(1, 8, rng.integers(low, high + 1))
    if not least and len(found) and not rng.integers(12):
        found[rng.integers(len(found))] = 0
    return tuple(np.maximum(found, least).tolist())


def whole(rng, *shape):
    return np.asarray(rng.integers(-4, 5, shape), np.float64)


def real(rng, *shape):
    return np.asarray(rng.uniform(0.3, 2.0, shape))


def distinct(rng, *shape):
    n = int(np.prod(shape))
    return (rng.permutation(n) - n // 2 + 0.5).reshape(shape) / 4


def complexes(rng, *shape):
    return whole(rng, *shape) + 1j * whole(rng, *shape)


def below(rng, n, *shape):
    return np.asarray(rng.integers(0, max(n, 1), shape))


def stretched(rng, shape):
    """A shape that broadcasts to `shape`."""
    return tuple(1 if not rng.integers(3) else n for n in shape[rng.integers(len(shape) + 1):])


def axis_of(rng, shape):
    return int(rng.integers(len(shape)))


# --------------------------------------------------------------------------------------------- families
@family
def pointwise(rng):
    """Operators of POINTWISE and their like, on operands of the kind that their first case has."""
    name = one_of(rng, *POINTWISE.split(), *"add subtract multiply divide pow maximum minimum exp log sqrt rsqrt "
                  "square abs tanh sin cos relu sigmoid silu gelu swiglu equal less_than logical_and where cast scale "
                  "add_n assign isfinite logsigmoid bce_loss sigmoid_cross_entropy_with_logits".split())
    case = one_of(rng, *[c for c in CASES[name] if all(isinstance(x, np.ndarray) and x.size for x in c.inputs)])
    shape = sizes(rng, 0, 3)
    operands = []
    for i, x in enumerate(case.inputs):
        to = shape if i == 0 or name in ALIKE else stretched(rng, shape)
        operands.append(x.reshape(-1)[below(rng, x.size, *to)].reshape(to))      # its elements are in the domain
    return name, operands, case.attrs


@family
def reductions(rng):
    name = one_of(rng, "sum", "mean", "max", "min", "any", "all", "prod", "logsumexp", "p_norm", "argmax", "argmin",
                  "reduce_as")
    shape = sizes(rng, 1, 4, least=name in ("max", "min", "argmax", "argmin", "mean"))
    x = whole(rng, *shape)
    if name == "reduce_as":
        return name, (x, whole(rng, *stretched(rng, shape))), {}
    if name in ("argmax", "argmin"):
        return name, (distinct(rng, *shape),), {"axis": axis_of(rng, shape), "keepdim": bool(rng.integers(2))}
    attrs = {"axis": some(rng, len(shape)), "keepdim": bool(rng.integers(2))}
    if name in ("any", "all"):
        x = rng.integers(0, 6, shape) == 0 if name == "any" else rng.integers(0, 6, shape) > 0
        x = np.asarray(x)
    return name, (x,), attrs | ({"porder": 3.0} if name == "p_norm" else {})


@family
def products(rng):
    batch, m, k, n = sizes(rng, 0, 2), *rng.integers(1, 7, 3).tolist()
    x, y = (stretched(rng, batch), batch)[::one_of(rng, 1, -1)]
    tx, ty = bool(rng.integers(2)), bool(rng.integers(2))
    return "matmul", (whole(rng, *x, *((k, m) if tx else (m, k))), whole(rng, *y, *((n, k) if ty else (k, n)))), {
        "transpose_x": tx, "transpose_y": ty}


@family
def moving(rng):
    name = one_of(rng, "transpose", "squeeze", "unsqueeze", "expand", "expand_as", "concat", "split", "tril", "triu",
                  "flip", "roll", "diagonal", "fill_diagonal_tensor", "pad", "full_like")
    shape = sizes(rng, 2, 4)
    n, x = len(shape), whole(rng, *shape)
    if name == "transpose":
        return name, (x,), {"perm": tuple(rng.permutation(n).tolist())}
    if name == "squeeze":
        axes = some(rng, n)
        return name, (whole(rng, *(1 if i in axes else d for i, d in enumerate(shape))),), {"axis": axes}
    if name == "unsqueeze":
        new = int(rng.integers(1, 3))
        return name, (x,), {"axis": tuple(sorted(rng.permutation(n + new)[:new].tolist()))}
    if name in ("expand", "expand_as"):
        small = stretched(rng, shape)
        return (name, (whole(rng, *small),), {"shape": shape}) if name == "expand" else (
            name, (whole(rng, *small), x), {})
    axis = axis_of(rng, shape)
    if name == "concat":
        parts = [whole(rng, *shape[:axis], int(rng.integers(0, 4)), *shape[axis + 1:]) for _ in range(3)]
        return name, (x, *parts), {"axis": axis}
    if name == "split":
        cut = int(rng.integers(0, shape[axis] + 1))
        return name, (x,), {"sections": (cut, shape[axis] - cut), "axis": axis}
    if name in ("tril", "triu"):
        return name, (x,), {"diagonal": int(rng.integers(-4, 5))}
    if name == "flip":
        return name, (x,), {"axis": some(rng, n)}
    if name == "roll":
        axes = some(rng, n)
        return name, (x,), {"axis": axes, "shifts": tuple(rng.integers(-4, 9, len(axes)).tolist())}
    if name == "pad":
        return name, (x,), {"paddings": tuple(int(rng.integers(1, 3)) * int(rng.integers(2)) for _ in range(2 * n)),
                            "pad_value": one_of(rng, 0.0, 3.0)}
    if name == "full_like":
        return name, (x,), {"value": 3.0}
    a, b = rng.permutation(n)[:2].tolist()
    offset = int(rng.integers(-min(shape[a], 2), min(shape[b], 2) + 1))
    if name == "diagonal":
        return name, (x,), {"offset": offset, "axis1": a, "axis2": b}
    part = x.diagonal(offset, a, b).shape
    return name, (x, whole(rng, *stretched(rng, part))), {"offset": offset, "dim1": a, "dim2": b}


@family
def parts(rng):
    """Slices and what is written to them."""
    name, shape = one_of(rng, "slice", "strided_slice", "set_value"), sizes(rng, 1, 4)
    axes = some(rng, len(shape))
    starts, ends, strides = [], [], []
    for a in axes:
        low, high = sorted(rng.integers(0, shape[a] + 1, 2).tolist()) if rng.integers(3) else (0, shape[a])
        back = name != "slice" and high > low and not rng.integers(3)
        starts.append(high - 1 if back else low)
        ends.append(low - 1 if back else high)
        strides.append((-1 if back else 1) * (1 if name == "slice" else int(rng.integers(1, 3))))
    attrs = {"axes": axes, "starts": tuple(starts), "ends": tuple(ends)}
    if name == "slice":
        return name, (whole(rng, *shape),), attrs
    attrs["strides"] = tuple(strides)
    if name == "strided_slice":
        return name, (whole(rng, *shape),), attrs
    taken = list(shape)
    for a, start, end, stride in zip(axes, starts, ends, strides, strict=True):
        taken[a] = len(range(start, end, stride))
    return name, (whole(rng, *shape), whole(rng, *stretched(rng, taken))), attrs


@family
def reshapes(rng):
    shape = sizes(rng, 1, 4)
    target, n = [], int(np.prod(shape))
    if not n:
        return "reshape", (whole(rng, *shape),), {"shape": (*shape, 1)}
    while n > 1 and len(target) < 4:
        divisors = [d for d in range(2, n + 1) if n % d == 0]
        target.append(one_of(rng, *divisors))
        n //= target[-1]
    target += [n] if n > 1 or not target else [1] * int(rng.integers(2))
    if rng.integers(2):                                     # what merges and splits neighbours keeps more
        at = axis_of(rng, shape)
        target = [*shape[:at], *[f for f in _factors(shape[at], rng)], *shape[at + 1:]]
    if not rng.integers(3):
        shape, target = tuple(target), shape
    return "reshape", (whole(rng, *shape),), {"shape": tuple(target)}


def _factors(n, rng):
    first = one_of(rng, *[d for d in range(1, n + 1) if n % d == 0])
    return first, n // first


@family
def reading_by_number(rng):
    name = one_of(rng, "embedding", "embedding_grad", "take_along_axis", "take_along_axis_grad", "gather", "gather_nd")
    shape = sizes(rng, 1, 3, least=1)
    axis = axis_of(rng, shape)
    x, ids = whole(rng, *shape), below(rng, shape[axis], *sizes(rng, 1, 2))
    if name.startswith("embedding"):
        table, ids = whole(rng, *rng.integers(1, 9, 2).tolist()), sizes(rng, 1, 3)
        ids = below(rng, table.shape[0], *ids)
        return (name, (ids, table), {}) if name == "embedding" else (
            name, (ids, whole(rng, *ids.shape, table.shape[1]), table), {})
    if name.startswith("take_along_axis"):
        at = tuple(int(rng.integers(1, 6)) if i == axis else n if rng.integers(3) else int(rng.integers(1, n + 1))
                   for i, n in enumerate(shape))
        at = shape[:axis] + at[axis:axis + 1] + shape[axis + 1:]
        ids = below(rng, shape[axis], *at)
        return (name, (x, ids), {"axis": axis}) if name == "take_along_axis" else (
            name, (whole(rng, *at), ids, x), {"axis": axis})
    if name == "gather":
        return name, (x, ids), {"axis": axis}
    return name, (x, tuples(rng, shape)), {}


def tuples(rng, shape):
    count = int(rng.integers(1, len(shape) + 1))
    lead = sizes(rng, 0, 2)
    return np.stack([below(rng, n, *lead) for n in shape[:count]], -1)


@family
def writing_by_number(rng):
    name = one_of(rng, "index_add", "scatter_nd_add", "scatter_nd_reduce", "index_put", "put_along_axis")
    shape = sizes(rng, 1, 3, least=1)
    x = whole(rng, *shape)
    if name == "index_add":
        axis = axis_of(rng, shape)
        ids = below(rng, shape[axis], *sizes(rng, 1, 2))
        return name, (x, ids, whole(rng, *shape[:axis], *ids.shape, *shape[axis + 1:])), {"axis": axis}
    if name == "put_along_axis":
        axis = axis_of(rng, shape)
        at = (*shape[:axis], int(rng.integers(0, 6)), *shape[axis + 1:])
        return name, (x, below(rng, shape[axis], *at), whole(rng, *at)), {"axis": axis, "reduce": one_of(
            rng, "assign", "add")}
    index = tuples(rng, shape)
    part = (*index.shape[:-1], *shape[index.shape[-1]:])
    if name == "index_put":
        return name, (x, index, whole(rng, *stretched(rng, part))), {}
    updates = whole(rng, *part)
    return name, (x, index, updates), {"reduce": one_of(rng, "mul", "amin", "amax")} if name.endswith("reduce") else {}


@family
def order(rng):
    name = one_of(rng, "argsort", "topk", "kthvalue", "mode", "searchsorted", "isin")
    shape = sizes(rng, 1, 3, least=1)
    axis, x = axis_of(rng, shape), whole(rng, *shape)
    if name == "argsort":
        return name, (x,), {"axis": axis, "descending": bool(rng.integers(2))}
    if name in ("topk", "kthvalue"):
        return name, (x,), {"k": int(rng.integers(1, shape[axis] + 1)), "axis": axis}
    if name == "mode":
        return name, (x,), {"axis": axis}
    if name == "isin":
        return name, (x, whole(rng, *sizes(rng, 1, 2))), {"invert": bool(rng.integers(2))}
    lead = shape[:-1] if rng.integers(2) else ()
    return name, (np.sort(whole(rng, *lead, int(rng.integers(0, 8))), -1), x), {"right": bool(rng.integers(2))}


@family
def scans(rng):
    name = one_of(rng, "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")
    shape = sizes(rng, 1, 3, least=1)
    attrs = {"axis": axis_of(rng, shape)}
    if not name.startswith("cumm"):
        attrs["reverse"] = bool(rng.integers(2))
    return name, (whole(rng, *shape),), attrs


@family
def matrices(rng):
    name = one_of(rng, "cholesky", "determinant", "eig", "eigh", "inverse", "lu", "matrix_exp", "pinv", "qr", "slogdet",
                  "svd", "solve", "triangular_solve", "pivots_to_permutation")
    batch, n, m = sizes(rng, 0, 2), *rng.integers(1, 5, 2).tolist()
    x = rng.uniform(-0.4, 0.4, (*batch, n, n)) + np.diag(np.linspace(1.0, 2.0, n))
    if name in ("cholesky", "eigh"):
        return name, ((x + x.swapaxes(-1, -2)) / 2,), {}
    if name in ("lu", "qr", "svd"):
        return name, (np.concatenate([x, x[..., :n // 2]], -1),), {}
    if name == "pinv":
        return name, (x, np.full(stretched(rng, batch), 1e-12)), {}
    if name.endswith("solve"):
        x = x if rng.integers(2) else x[(0,) * len(batch)] if 0 not in batch else x
        return name, (x, whole(rng, *(stretched(rng, batch) if x.ndim > 2 else batch), n, m)), {}
    if name == "pivots_to_permutation":
        return name, (1 + below(rng, n, *batch, n).astype("int32"), x), {}
    return name, (x,), {}


@family
def spectra(rng):
    name = one_of(rng, "fft_c2c", "fft_r2c", "fft_c2r", "frame", "overlap_add", "as_complex", "as_real", "view_dtype")
    shape = sizes(rng, 1, 3, least=1)
    how = {"axes": some(rng, len(shape)), "normalization": one_of(rng, "forward", "backward", "ortho"),
           "forward": bool(rng.integers(2))}
    if name == "fft_c2c":
        return name, (complexes(rng, *shape),), how
    if name == "fft_r2c":
        return name, (whole(rng, *shape),), how | {"onesided": bool(rng.integers(2))}
    if name == "fft_c2r":
        n = 2 * shape[how["axes"][-1]] - int(rng.integers(1, 3))
        return name, (complexes(rng, *shape),), how | {"last_dim_size": max(n, 1)} if n // 2 + 1 == shape[
            how["axes"][-1]] and n > 0 else how | {"last_dim_size": 2 * shape[how["axes"][-1]] - 1}
    if name == "frame":
        return name, (whole(rng, *shape),), {"frame_length": int(rng.integers(1, shape[-1] + 1)), "hop_length": 2}
    if name == "overlap_add":
        return name, (whole(rng, *shape, int(rng.integers(1, 5))),), {"hop_length": int(rng.integers(1, 4))}
    if name == "as_complex":
        return name, (whole(rng, *shape, 2),), {}
    if name == "as_real":
        return name, (complexes(rng, *shape),), {}
    if rng.integers(2):
        return name, (whole(rng, *shape),), {"dtype": np.dtype("int16")}
    return name, (below(rng, 9, *shape[:-1], 4 * shape[-1]).astype("int16"),), {"dtype": np.dtype("int64")}


@family
def losses(rng):
    name = one_of(rng, "softmax", "log_softmax", "cross_entropy_with_softmax", "cross_entropy_with_softmax_grad")
    shape = sizes(rng, 1, 3, least=1)
    axis = axis_of(rng, shape)
    if name.endswith("softmax") and "cross" not in name:
        return name, (whole(rng, *shape),), {"axis": axis}
    one = (*shape[:axis], 1, *shape[axis + 1:])
    label = below(rng, shape[axis], *one)
    if name.endswith("grad"):
        return name, (label, real(rng, *shape), whole(rng, *one)), {"axis": axis}
    return name, (whole(rng, *shape), label), {"axis": axis}


@family
def norms(rng):
    name = one_of(rng, "rms_norm", "standardize", "fused_rotary_position_embedding")
    shape = sizes(rng, 2, 4, least=1)
    if name == "rms_norm":
        return name, (whole(rng, *shape), real(rng, *shape[rng.integers(1, len(shape)):])), {}
    if name == "standardize":
        return name, (whole(rng, *shape),), {"axis": some(rng, len(shape))}
    half = (*shape[-2:-1], shape[-1])
    angles = [whole(rng, *(n if rng.integers(3) else 1 for n in half[:-1]), half[-1]) for _ in range(2)]
    return name, (whole(rng, *shape[:-1], 2 * shape[-1]), *angles), {}


@family
def windows(rng):
    name = one_of(rng, "conv2d", "conv2d_transpose", "conv2d_filter_grad", "pool2d", "max_pool2d_with_index", "unfold",
                  "interp", "fold")
    b, c, o = rng.integers(1, 6, 3).tolist()
    size = tuple(rng.integers(3, 7, 2).tolist())
    x = whole(rng, b, c, *size)
    groups = one_of(rng, 1, 1, 2, 4, 6)
    if groups > 1 and name.startswith("conv"):
        c, o = groups * int(rng.integers(1, 3)), groups * int(rng.integers(1, 3))
        x = whole(rng, b, c, *size)
    else:
        groups = 1
    how = {"strides": (1, 1), "paddings": (0, 1, 1, 0), "dilations": (1, 1), "groups": groups}
    if name == "conv2d":
        return name, (x, whole(rng, o, c // groups, 2, 2)), how
    if name == "conv2d_transpose":
        return name, (x, whole(rng, c, o // groups, 2, 2)), how | {"output_padding": (0, 0)}
    if name == "conv2d_filter_grad":
        return name, (x, whole(rng, b, o, *size), whole(rng, o, c // groups, 2, 2)), how
    if name == "pool2d":
        return name, (x,), {"kernel_size": (2, 3), "strides": (1, 2), "paddings": (0, 0, 1, 1)}
    if name == "max_pool2d_with_index":
        return name, (x,), {"kernel_size": (2, 3), "strides": (1, 2), "paddings": (0, 0, 1, 1)}
    if name == "interp":
        return name, (x,), {"axis": int(rng.integers(2, 4)), "size": int(rng.integers(1, 9)), "mode": "linear"}
    sizes_ = {"kernel_sizes": (2, 2), "strides": (1, 1), "paddings": (0, 0, 0, 0), "dilations": (1, 1)}
    if name == "unfold":
        return name, (x,), sizes_
    return name, (whole(rng, b, 4 * c, (size[0] - 1) * (size[1] - 1)),), {"output_sizes": size, **sizes_}


@family
def random_numbers(rng):
    name = one_of(rng, "multinomial", "dropout")
    shape = sizes(rng, 1, 3, least=1)
    if name == "dropout":
        return name, (whole(rng, *shape), KEY), {"p": 0.5}
    n = int(rng.integers(1, shape[-1] + 1))
    return name, (real(rng, *shape), KEY), {"num_samples": n, "replacement": bool(rng.integers(2))}


@family
def attention(rng):
    b, s, t, kv, d, e = rng.integers(1, 5, 6).tolist()
    h = kv * int(rng.integers(1, 4))
    q, k, v = real(rng, b, s, h, d), real(rng, b, t, kv, d), whole(rng, b, t, kv, e)
    if rng.integers(2):
        return "flash_attn", (q, k, v), {"scale": 0.5, "causal": bool(rng.integers(2))}
    return "fused_dot_product_attention", (q, k, v, whole(rng, *stretched(rng, (b, h, s, t)))), {"scaling_factor": 0.5}


@family
def cells(rng):
    lead, n = sizes(rng, 1, 2), int(rng.integers(1, 5))
    if rng.integers(2):
        return "lstm_unit", (whole(rng, *lead, 4 * n), whole(rng, *lead, n)), {}
    return "gru_unit", (whole(rng, *lead, 3 * n), whole(rng, *lead, 3 * n), whole(rng, *lead, n)), {}


@family
def steps(rng):
    """Optimizers' steps, of which all tensors have the parameter's shape."""
    name = one_of(rng, *"sgd momentum adamw adamax adagrad adadelta rmsprop nadam radam amsgrad rprop".split())
    case, shape = one_of(rng, *CASES[name]), sizes(rng, 1, 3)
    return name, [x if ROWS[name].inputs[i] in ("step", "learning_rate", "skip_update") else real(rng, *shape)
                  for i, x in enumerate(case.inputs)], case.attrs
