"""The passes, one file each.  Importing enters them in the table."""

from minipd.passes.library import (  # noqa: F401
    add_shadow_output_after_dead_parameter,
    auto_layout,
    auto_mixed_precision,
    common_subexpression_elimination,
    constant_folding,
    dead_code_elimination,
    delete_assert_op,
    horizontal_fuse,
    identity_op_clean,
    inplace,
    matmul_scale_fuse,
    matmul_transpose_fuse,
    remove_redundant_cast,
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
