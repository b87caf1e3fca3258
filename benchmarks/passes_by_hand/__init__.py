"""Passes of the library, written again without formulas: a `RewritePattern` that walks through the operations itself.

`passes.py` counts how long each is in both forms; tests/passes/test_by_hand.py checks that both do the same.  Each is
written as somebody would who has the IR's own functions and the few in `helpers`, which are not counted.  What both
forms need, such as the condition on shapes of an rms norm, is imported and counted on both sides.
"""

import importlib
import pkgutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

#: pass -> (module of the library, names of its rules, module of the pass by hand, its class)
PASSES = {
    "silu_fuse_pass": ("silu_fuse", ("Silu",), "silu_fuse", "SiluFuse"),
    "swiglu_fuse_pass": ("swiglu_fuse", ("Swiglu",), "swiglu_fuse", "SwigluFuse"),
    "fused_rotary_position_embedding_pass": (
        "rope_fuse", ("RotaryPositionEmbedding",), "rope_fuse", "RopeFuse"),
    "add_norm_fuse_pass, rms norm": ("rms_norm_fuse", ("RmsNorm",), "rms_norm_fuse", "RmsNormFuse"),
    "add_norm_fuse_pass, norm of a sum": (
        "layer_norm_fuse", ("LayerNormOfSum",), "layer_norm_of_sum_fuse", "LayerNormOfSumFuse"),
    "remove_redundant_transpose_pass": (
        "remove_redundant_transpose", ("TransposeOfTranspose", "TransposeBack"), "remove_redundant_transpose",
        "RemoveRedundantTranspose"),
    "matmul_transpose_fuse_pass": (
        "matmul_transpose_fuse", ("TransposedLeft", "TransposedRight", "TransposedProduct"), "matmul_transpose_fuse",
        "MatmulTransposeFuse"),
    "matmul_scale_fuse_pass": (
        "matmul_scale_fuse", ("ProductTimesNumber", "ProductOverNumber", "ScaledProduct"), "matmul_scale_fuse",
        "MatmulScaleFuse"),
    "fused_dropout_add_pass": ("fused_dropout_add", ("DropoutAdd",), "fused_dropout_add", "FusedDropoutAdd"),
    "fused_gemm_epilogue_pass, bias": (
        "fused_gemm_epilogue", ("ProductWithBias",), "fused_gemm_epilogue", "FusedGemmEpilogue"),
}
for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
