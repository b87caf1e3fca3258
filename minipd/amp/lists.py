"""Which operators compute in low precision, and which keep away from it (Paddle's lists).

Matrix products and convolutions gain much and lose little: they accumulate in float32 all the same (`WHITE`).  Where
values grow, shrink or cancel, float32 stays (`BLACK`).  Everything else takes what it is given.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["black_list", "white_list"]

WHITE = frozenset("""
conv2d conv2d_transpose conv3d conv3d_transpose flash_attn fused_conv2d_add_act fused_conv2d_residual_add_act
fused_dot_product_attention fused_gemm_epilogue fused_rotary_position_embedding gru_unit lstm_unit matmul
max_pool2d_with_index
""".split())

BLACK = frozenset("""
acos add_group_norm_silu asin atanh bce_loss cosh cross_entropy_with_softmax cumprod cumsum erfinv exp expm1
fused_bias_residual_layernorm fused_rms_norm_residual layer_norm log log10 log1p log2 log_softmax logcumsumexp logsumexp
mean p_norm pow prod reciprocal rms_norm rsqrt sigmoid_cross_entropy_with_logits sinh skip_layernorm softmax square
standardize sum tan warpctc warprnnt
""".split())

#: beside them in level O1, and alone in level O2: lookups gain nothing
LOOKUPS = frozenset("embedding fused_embedding_eltwise_layernorm gather_nd interp scatter_nd_add".split())

#: names that Paddle's lists and documentation use -> ours; those that passes fuse into mean both
OTHER_NAMES = {
    "elementwise_add": "add", "elementwise_sub": "subtract", "elementwise_mul": "multiply", "elementwise_div": "divide",
    "elementwise_pow": "pow", "elementwise_max": "maximum", "elementwise_min": "minimum", "mul": "matmul",
    "matmul_v2": "matmul", "linear_v2": "matmul", "linear": "matmul", "bmm": "matmul", "einsum": "matmul",
    "flash_attn": "matmul", "reduce_sum": "sum", "reduce_mean": "mean", "reduce_max": "max", "reduce_min": "min",
    "reduce_prod": "prod", "softmax_with_cross_entropy": "cross_entropy_with_softmax", "pnorm": "p_norm",
    "cross_entropy": "cross_entropy_with_softmax", "layer_norm": "standardize", "group_norm": "standardize",
    "lookup_table": "embedding", "lookup_table_v2": "embedding", "reshape2": "reshape", "transpose2": "transpose",
    "squeeze2": "squeeze", "unsqueeze2": "unsqueeze", "expand_v2": "expand", "swish": "silu",
}


def names(given: Iterable[str] | None, what: str) -> frozenset[str]:
    """A custom list as names of rows.

    Raises: TypeError for what is no list of names.
    """
    if isinstance(given, str) or given is not None and any(not isinstance(name, str) for name in given):
        raise TypeError(f"auto_cast: expected {what} to be a set of names of operators, got {given!r}")
    given = frozenset(given or ())
    return frozenset(OTHER_NAMES.get(name, name) for name in given) | given & (WHITE | BLACK | LOOKUPS)


def white_list() -> dict[str, dict[str, set[str]]]:
    """dtype -> level -> the operators that are computed in it."""
    return {dtype: {level: set(WHITE) for level in ("OD", "O1", "O2")} for dtype in ("float16", "bfloat16")}


def black_list() -> dict[str, dict[str, set[str]]]:
    """dtype -> level -> the operators that stay in float32."""
    levels = {"OD": frozenset[str](), "O1": BLACK | LOOKUPS, "O2": LOOKUPS}
    return {dtype: {level: set(found) for level, found in levels.items()} for dtype in ("float16", "bfloat16")}
