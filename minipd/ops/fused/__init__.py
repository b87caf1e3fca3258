"""Operators that several others are: what the passes of `minipd.passes.library` make of the composed form.

A fused row pays by what it does not write: its kernel goes over a block of rows, while that is near the processor, once
for all of its parts.  What it computes it says once, as a function of smaller operators (`composed_...`), which is its
decomposition and the source of its gradient (`composition`).

    composition     the gradient of what is composed
    activations     activations by name, over a buffer in place
    gemm            fused_gemm_epilogue
    conv            fused_conv2d_add_act, and with a residual
    norm            layer_norm, skip_layernorm, fused_bias_residual_layernorm, fused_rms_norm_residual
    group_norm      add_group_norm_silu
    attention       flash_attn, fused_dot_product_attention
    embedding       fused_embedding_eltwise_layernorm
    dropout         fused_dropout_add
"""

from minipd.ops.fused import attention, conv, dropout, embedding, gemm, group_norm, norm

__all__ = ["attention", "conv", "dropout", "embedding", "gemm", "group_norm", "norm"]
