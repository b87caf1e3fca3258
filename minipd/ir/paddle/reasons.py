"""Rows that Paddle has no operator for, and why that is right.

They, and those of dialects that are no part of Paddle's `pd_op`, stay what they are in Paddle's form: they are printed
and read back; only Paddle cannot run them.  Where Paddle has another operator of that name, theirs is in a dialect of
its own, `minipd`.
"""

from __future__ import annotations

from minipd.ir.dialect import info_or_unregistered
from minipd.ir.paddle.signatures import signature

__all__ = ["REASONS", "SOME_CALLS", "kept_name", "our_name", "paddles_name"]


#: the dialect of Paddle's operations that stay though a row of ours has their name
KEPT = "paddle."


def kept_name(name: str) -> str:
    """How an operation of Paddle's is called in a program of ours where it stays as it is.

    >>> kept_name("pd_op.slice"), kept_name("pd_op.unique")
    ('paddle.slice', 'pd_op.unique')
    """
    return KEPT + name.removeprefix("pd_op.") if info_or_unregistered(name).row is not None else name


def paddles_name(name: str) -> str:
    """The way back."""
    return f"pd_op.{name.removeprefix(KEPT)}" if name.startswith(KEPT) else name


def our_name(row: str) -> str:
    """What a row of REASONS is called in Paddle's form.

    >>> our_name("hypot"), our_name("gru_unit")
    ('pd_op.hypot', 'minipd.gru_unit')
    """
    return f"pd_op.{row}" if signature(row) is None else f"minipd.{row}"


_GRADIENT = "a gradient's own operator: ours are built from rows, and Paddle's X_grad are read as the rules of X"
_STEP = "Paddle's step keeps its state in another way, and reads no step number"
_PARTS = "Paddle's function of that name calls several operators"

REASONS: dict[str, str] = {
    **dict.fromkeys(("conv2d_filter_grad", "conv3d_filter_grad", "interp_grad", "warpctc_grad", "warprnnt_grad",
                     "lstm_unit_grad", "gru_unit_grad"), _GRADIENT),
    **dict.fromkeys(("amsgrad", "adamax", "nadam", "radam", "lamb", "adagrad", "rmsprop", "adadelta", "asgd", "rprop"),
                    _STEP),
    **dict.fromkeys(("gcd", "lcm", "hypot", "logaddexp", "frexp", "signbit", "isin", "matrix_exp", "pinv",
                     "pivots_to_permutation"), _PARTS),
    "scatter_nd_reduce": "Paddle reduces along one axis (put_along_axis), ours at any places",
    "interp": "ours resamples along one axis, Paddle's operators along all at once",
    "unpool": "Paddle's keeps the window, ours the size that comes out",
    "lstm_unit": "one step of a recurrence, of which Paddle's `rnn` does all",
    "gru_unit": "one step of a recurrence, of which Paddle's `rnn` does all",
    "fused_rotary_position_embedding": "ours turns one tensor, Paddle's up to three at once",
    **dict.fromkeys(("fused_conv2d_residual_add_act", "fused_rms_norm_residual"),
                    "Paddle's operator of these parts takes the residual as an optional operand"),
    "fused_gemm_epilogue": "Paddle's runs on GPUs only, and keeps what its gradient needs",
    "fused_conv2d_add_act": "Paddle's runs on GPUs only, and splits its channels",
    "skip_layernorm": "Paddle's is known to its inference engines only",
    "fused_bias_residual_layernorm": "Paddle's adds a bias and quantises, besides",
    "add_group_norm_silu": "Paddle's runs on GPUs only, and returns the statistics",
    "flash_attn": "Paddle's runs on GPUs only, always scales by 1 / sqrt(D), and keeps what its gradient needs",
    "fused_dot_product_attention": "Paddle's runs on GPUs only, and keeps what its gradient needs",
    "fused_embedding_eltwise_layernorm": "Paddle's runs on GPUs only, and takes two lists",
    "fused_dropout_add": "Paddle's draws take no key",
    "draw_key": "Paddle's draws take no key",
}

#: rows of which Paddle has an operator for some calls only, and what it does not do in the others, which stay
SOME_CALLS: dict[str, str] = dict.fromkeys(("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"),
                                           "Paddle's has equal parts, and adds up")
