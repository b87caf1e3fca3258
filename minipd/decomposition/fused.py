"""Decomposition of operators that fuse several: what they are made of, again."""

from __future__ import annotations

from collections.abc import Callable

from minipd.decomposition.table import decompose_rule
from minipd.framework.tensor import Tensor
from minipd.ops.elementary import rsqrt
from minipd.ops.fused import attention, conv, dropout, embedding, gemm, group_norm, norm
from minipd.ops.joining import concat
from minipd.ops.math import square
from minipd.ops.reduce import Mean
from minipd.ops.rope import halves, is_full, quarter_turned

__all__: list[str] = []


@decompose_rule("rms_norm")
def rms_norm(x: Tensor, scale: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    """x (mean(x^2) + epsilon)^(-1/2) scale."""
    axis = tuple(range(x.ndim - scale.ndim, x.ndim))
    return x * rsqrt(Mean(square(x), axis=axis, keepdim=True) + epsilon) * scale


@decompose_rule("standardize")
def standardize(x: Tensor, *, axis: tuple, epsilon: float = 1e-5) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) (variance + epsilon)^(-1/2), mean, variance."""
    mean = Mean(x, axis=axis, keepdim=True)
    deviation = x - mean
    variance = Mean(square(deviation), axis=axis, keepdim=True)
    return deviation * rsqrt(variance + epsilon), mean, variance


@decompose_rule("fused_rotary_position_embedding")
def fused_rotary_position_embedding(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(a cos - b sin, b cos + a sin) for the halves a, b of x; with numbers for each place, x cos + (-b, a) sin."""
    if is_full(x.payload, cos.payload):
        return x * cos + quarter_turned(x) * sin
    a, b = halves(x)
    return concat([a * cos - b * sin, b * cos + a * sin], x.ndim - 1)


#: rows that say themselves what they are made of (`minipd.ops.fused`)
PARTS: dict[str, Callable] = {
    "fused_gemm_epilogue": gemm.composed_gemm_epilogue, "fused_conv2d_add_act": conv.composed_conv,
    "fused_conv2d_residual_add_act": conv.composed_conv_residual, "layer_norm": norm.composed_layer_norm,
    "skip_layernorm": norm.composed_skip_layernorm, "fused_bias_residual_layernorm": norm.composed_residual_layernorm,
    "fused_rms_norm_residual": norm.composed_residual_rms_norm, "add_group_norm_silu": group_norm.composed_group_norm,
    "flash_attn": attention.composed_flash_attn, "fused_dot_product_attention": attention.composed_masked_attention,
    "fused_embedding_eltwise_layernorm": embedding.composed_embedding_layernorm,
    "fused_dropout_add": dropout.composed_dropout_add,
}
for _name, _composed in PARTS.items():
    decompose_rule(_name)(_composed)
