"""The passes, one file each.  Importing enters them in the table."""

import minipd.ops.fused  # noqa: F401  (what several of them fuse into)
from minipd.passes.library import (  # noqa: F401
    add_shadow_output_after_dead_parameter,
    auto_layout,
    auto_mixed_precision,
    common_subexpression_elimination,
    constant_folding,
    conv2d_add_act_fuse,
    conv2d_bn_fuse,
    dead_code_elimination,
    delete_assert_op,
    embedding_eltwise_layernorm_fuse,
    fused_dot_product_attention,
    fused_dropout_add,
    fused_flash_attn,
    fused_gemm_epilogue,
    gelu_fuse,
    group_norm_silu_fuse,
    horizontal_fuse,
    identity_op_clean,
    inplace,
    layer_norm_fuse,
    matmul_scale_fuse,
    matmul_transpose_fuse,
    remove_redundant_cast,
    remove_redundant_expand,
    remove_redundant_reshape,
    remove_redundant_scale,
    remove_redundant_transpose,
    replace_fetch_with_shadow_output,
    rms_norm_fuse,
    rope_fuse,
    scale_matmul_fuse,
    swiglu_fuse,
)

__all__: list[str] = []
