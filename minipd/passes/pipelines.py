"""Which passes run where: the one place that says so.

    FORWARD_FUSIONS     rules for a forward program, before its gradient is appended (`fusion`)
    GRAPH_PASSES        what is done with every program that `jit` compiles (`stages`)
    INFERENCE_PASSES    what `paddle.inference` does with a saved model, whose parameters are constants by then
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minipd.passes.manager import PassManager
from minipd.passes.table import pass_names

__all__ = ["FORWARD_FUSIONS", "GRAPH_PASSES", "INFERENCE_PASSES", "add_passes", "inference_passes"]

#: pass -> those of its rules whose operator keeps less for its gradient than its parts do
FORWARD_FUSIONS = {
    "add_norm_fuse_pass": ("RmsNorm", "RmsNormOfLowPrecision"), "silu_fuse_pass": ("Silu",),
    "swiglu_fuse_pass": ("Swiglu",), "fused_rotary_position_embedding_pass": ("RotaryPositionEmbedding",)}

GRAPH_PASSES = ("constant_folding_pass", "common_subexpression_elimination_pass", "dead_code_elimination_pass")

#: in this order: what comes first clears the way for the patterns behind it
INFERENCE_PASSES = (
    # what changes nothing, is done twice, or undoes itself
    "identity_op_clean_pass",
    "remove_redundant_expand_pass",
    "remove_redundant_cast_pass",
    "remove_redundant_reshape_pass",
    "common_subexpression_elimination_pass",
    # networks' own operators; weights first, and the larger before the smaller
    "conv2d_bn_fuse_pass",
    "silu_fuse_pass",
    "gelu_fuse_pass",
    "group_norm_silu_fuse_pass",
    "fused_flash_attn_pass",
    "fused_dot_product_attention_pass",
    "add_norm_fuse_pass",
    "swiglu_fuse_pass",
    "fused_rotary_position_embedding_pass",
    "conv2d_add_act_fuse_pass",
    "remove_redundant_transpose_pass",      # (patterns of attention know each transposition by itself)
    # products
    "constant_folding_pass",        # transposed weights, which products read faster in order than with a flag
    "scale_matmul_fuse_pass",
    "matmul_scale_fuse_pass",
    "matmul_transpose_fuse_pass",
    "horizontal_fuse_pass",
    "remove_redundant_scale_pass",
    "fused_gemm_epilogue_pass",
    # what depends on parameters alone, by now, and what nobody reads
    "constant_folding_pass",
    "common_subexpression_elimination_pass",
    "dead_code_elimination_pass",
    # kernels
    "compile_fused_rows_pass",
)
#: those of them that floors above register: where these are closed, the others run
OF_FLOORS_ABOVE = ("compile_fused_rows_pass",)


def inference_passes() -> list[str]:
    """The names of `INFERENCE_PASSES` that the open floors have.

    >>> inference_passes()[0]
    'identity_op_clean_pass'
    """
    there = set(pass_names())
    return [name for name in INFERENCE_PASSES if name in there or name not in OF_FLOORS_ABOVE]


def add_passes(manager: PassManager, names: Iterable[str], param_scope: Any = None) -> None:
    """Add passes by name.  param_scope: the values of the parameters, for those that compute with them.

    Raises: KeyError for a name that is not in the table.

    >>> manager = PassManager()
    >>> add_passes(manager, ["identity_op_clean_pass", "constant_folding_pass"])
    >>> manager.passes()
    ['identity_op_clean_pass', 'constant_folding_pass']
    """
    for name in names:
        manager.add_pass(name, {"__param_scope__": param_scope})
