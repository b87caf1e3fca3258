"""Layer norm, and norms of a sum: rows are read once, and finished while they are near."""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.elementary import rsqrt
from minipd.ops.fused.activations import blocks
from minipd.ops.fused.composition import pullback
from minipd.ops.math import square
from minipd.ops.norm import Standardize
from minipd.ops.reduce import Mean
from minipd.ops.shapes import require_alike, require_floating, shapes_agree

__all__: list[str] = []


def _check(what: str, x: Any, *parameters: Any) -> None:
    """That the parameters have x's dtype and the sizes of its last dimensions."""
    require_floating(what, x)
    n = len(parameters[0].shape)
    for p in parameters:
        if n == 0 or p.dtype != x.dtype or not shapes_agree(tuple(x.shape[-n:]), tuple(p.shape), what):
            raise ValueError(f"{what}: expected parameters of x's dtype with the sizes of x's last dimensions, got "
                             f"{' and '.join(map(describe, parameters))} for x {describe(x)}")


# ------------------------------------------------------------------------------------------------- layer norm
def composed_layer_norm(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    """(x - mean) (variance + epsilon)^(-1/2) scale + bias, over the dimensions of `scale`."""
    out, _, _ = Standardize(x, axis=tuple(range(x.ndim - scale.ndim, x.ndim)), epsilon=epsilon)
    return out * scale + bias


@op("layer_norm")
class LayerNorm:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the last dimensions, those of `scale`.

    x [..., *n], scale and bias [*n] -> [..., *n].   (Ba, Kiros, Hinton 2016)
    Paddle's operator returns mean and variance too, and takes the number of the first of these dimensions.
    """

    def infer_meta(x, scale, bias, *, epsilon=1e-5):
        _check("layer_norm", x, scale, bias)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, scale, bias, *, epsilon=1e-5):
        out = xp.empty(x.shape, x.dtype)
        _layer_norm(xp, out, x, None, scale, bias, epsilon)
        return out

    def kernel_out(xp, out, x, scale, bias, *, epsilon=1e-5):
        _layer_norm(xp, out, x, None, scale, bias, epsilon)

    def vjp(g, x, scale, bias, epsilon):
        return pullback(composed_layer_norm, g, x, scale, bias, epsilon=epsilon)


def composed_skip_layernorm(x: Tensor, y: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    """The layer norm of x + y."""
    return composed_layer_norm(x + y, scale, bias, epsilon=epsilon)


@op("skip_layernorm")
class SkipLayernorm:
    """The layer norm of x + y, which is not kept: what stands behind each part of a post-norm Transformer."""

    def infer_meta(x, y, scale, bias, *, epsilon=1e-5):
        _check("skip_layernorm", x, scale, bias)
        require_alike("skip_layernorm", x, y)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, y, scale, bias, *, epsilon=1e-5):
        out = xp.empty(x.shape, x.dtype)
        _layer_norm(xp, out, x, y, scale, bias, epsilon)
        return out

    def kernel_out(xp, out, x, y, scale, bias, *, epsilon=1e-5):
        _layer_norm(xp, out, x, y, scale, bias, epsilon)

    def vjp(g, x, y, scale, bias, epsilon):
        return pullback(composed_skip_layernorm, g, x, y, scale, bias, epsilon=epsilon)


def composed_residual_layernorm(x: Tensor, residual: Tensor, norm_weight: Tensor, norm_bias: Tensor, *,
                                epsilon: float = 1e-5) -> tuple[Tensor, Tensor]:
    """The layer norm of x + residual, and that sum."""
    total = x + residual
    return composed_layer_norm(total, norm_weight, norm_bias, epsilon=epsilon), total


@op("fused_bias_residual_layernorm", Trait.MULTI)
class FusedBiasResidualLayernorm:
    """(the layer norm of x + residual, x + residual): what stands between two parts of a pre-norm Transformer.

    Paddle's operator of this name adds a bias of x too, and quantises; here the product before it has the bias.
    """

    outputs = ("out", "residual_out")

    def infer_meta(x, residual, norm_weight, norm_bias, *, epsilon=1e-5):
        _check("fused_bias_residual_layernorm", x, norm_weight, norm_bias)
        require_alike("fused_bias_residual_layernorm", x, residual)
        return Meta(x.shape, x.dtype), Meta(x.shape, x.dtype)

    def kernel(xp, x, residual, norm_weight, norm_bias, *, epsilon=1e-5):
        out, total = xp.empty(x.shape, x.dtype), xp.empty(x.shape, x.dtype)
        _layer_norm(xp, out, x, residual, norm_weight, norm_bias, epsilon, total)
        return out, total

    def kernel_out(xp, out, x, residual, norm_weight, norm_bias, *, epsilon=1e-5):
        _layer_norm(xp, out[0], x, residual, norm_weight, norm_bias, epsilon, out[1])

    def vjp(gs, x, residual, norm_weight, norm_bias, epsilon):
        return pullback(composed_residual_layernorm, gs, x, residual, norm_weight, norm_bias, epsilon=epsilon)


# --------------------------------------------------------------------------------------------------- rms norm
def composed_residual_rms_norm(x: Tensor, residual: Tensor, norm_weight: Tensor, *,
                               epsilon: float = 1e-5) -> tuple[Tensor, Tensor]:
    """The rms norm of x + residual, and that sum."""
    total = x + residual
    axis = tuple(range(x.ndim - norm_weight.ndim, x.ndim))
    return total * rsqrt(Mean(square(total), axis=axis, keepdim=True) + epsilon) * norm_weight, total


@op("fused_rms_norm_residual", Trait.MULTI)
class FusedRmsNormResidual:
    """(the rms norm of x + residual, x + residual): what stands between two parts of a Llama.

    (In Paddle it is a call of `fused_rms_norm_quant` that does not quantise.)
    """

    outputs = ("out", "residual_out")

    def infer_meta(x, residual, norm_weight, *, epsilon=1e-5):
        _check("fused_rms_norm_residual", x, norm_weight)
        require_alike("fused_rms_norm_residual", x, residual)
        return Meta(x.shape, x.dtype), Meta(x.shape, x.dtype)

    def kernel(xp, x, residual, norm_weight, *, epsilon=1e-5):
        out, total = xp.empty(x.shape, x.dtype), xp.empty(x.shape, x.dtype)
        _rms_norm(xp, out, total, x, residual, norm_weight, epsilon)
        return out, total

    def kernel_out(xp, out, x, residual, norm_weight, *, epsilon=1e-5):
        _rms_norm(xp, *out, x, residual, norm_weight, epsilon)

    def vjp(gs, x, residual, norm_weight, epsilon):
        return pullback(composed_residual_rms_norm, gs, x, residual, norm_weight, epsilon=epsilon)


# ---------------------------------------------------------------------------------------------------- kernels
def _layer_norm(xp: Any, out: Any, x: Any, y: Any, scale: Any, bias: Any, epsilon: float, total: Any = None) -> None:
    """out = the layer norm of x, or of x + y; total, if there is one, = x + y."""
    if not out.size:
        return
    n = scale.size
    scale, bias = scale.reshape(n), bias.reshape(n)
    inputs: list[Any] = [None if a is None else _rows(a, n) for a in (x, y)]
    for results, which in _blocks_of(xp, n, out, total):
        rows, sums = results
        a: Any
        a, b = (i if i is None else i[which] for i in inputs)
        if b is not None:
            a = xp.add(a, b, out=rows if sums is None else sums)
        mean = xp.add.reduce(a, axis=-1, keepdims=True)
        mean /= a.dtype.type(n)
        xp.subtract(a, mean, out=rows)
        rows *= _inverse_root(xp, rows, epsilon)
        rows *= scale
        rows += bias


def _rms_norm(xp: Any, out: Any, total: Any, x: Any, y: Any, scale: Any, epsilon: float) -> None:
    if not out.size:
        return
    n = scale.size
    scale, x, y = scale.reshape(n), _rows(x, n), _rows(y, n)
    for (rows, sums), which in _blocks_of(xp, n, out, total):
        xp.add(x[which], y[which], out=sums)
        xp.multiply(sums, _inverse_root(xp, sums, epsilon), out=rows)
        rows *= scale


def _inverse_root(xp: Any, rows: Any, epsilon: float) -> Any:
    """(mean of squares + epsilon)^(-1/2) of each row, without storing the squares.   [rows, n] -> [rows, 1]"""
    r = xp.einsum("ri,ri->r", rows, rows)
    r /= rows.dtype.type(rows.shape[1])
    r += rows.dtype.type(epsilon)
    xp.sqrt(r, out=r)
    xp.reciprocal(r, out=r)
    return r[:, None]


def _rows(x: Any, n: int) -> Any:
    return x.reshape(-1, n)


def _blocks_of(xp: Any, n: int, *outs: Any) -> Any:
    """((rows of each result, or None for a result that is None), which rows) of buffers [..., *n], block by block.

    Buffers that do not lie as rows get the rows of one that does, in the end.
    """
    whole = [o if o is None or o.flags.c_contiguous else xp.empty(o.shape, o.dtype) for o in outs]
    flat: list[Any] = [None if o is None else _rows(o, n) for o in whole]
    first = flat[0]
    for which, _ in blocks(first):
        yield tuple(None if f is None else f[which] for f in flat), which
    for o, f in zip(outs, flat, strict=True):
        if o is not None and not o.flags.c_contiguous:
            o[...] = f.reshape(o.shape)
