"""Rules for operators that need none of their own, by three tables: those that work element by element, those whose
operands must be whole, and those that are several others.

A row in `WHOLE` is right on any mesh and parallel on none: its operands are gathered, and every rank computes all of
it, as Paddle does where an operator has no rule.  A row moves out of this table when somebody writes its rule.
A row in `PARTS` is one that passes have made of others: on a mesh it is these again, each placed by its own rule.
"""

from __future__ import annotations

import inspect
from typing import Any

from minipd.dist.placements import Replicate
from minipd.dist.spmd.notation import Notation, pointwise
from minipd.dist.spmd.table import DECOMPOSE, Call, Inferred, spmd, spmd_placed
from minipd.framework.row import ROWS

__all__: list[str] = []

POINTWISE = """
angle complex conj imag real
expm1 log10 log1p log2 reciprocal
acos acosh asin asinh atan atanh cosh sinh tan
ceil clip floor round sign trunc
atan2 copysign floor_divide fmax fmin gcd hypot lcm logaddexp nextafter remainder
digamma erf erfinv gammainc gammaincc i0 i0e i1 i1e lgamma polygamma
bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
isinf isnan logical_xor signbit
"""

WHOLE = """
as_complex as_real fft_c2c fft_c2r fft_r2c frame numel overlap_add shape64
gather gather_nd index_add index_put scatter_nd_add scatter_nd_reduce
cholesky determinant eig eigh inverse lu matrix_exp pinv pivots_to_permutation qr slogdet solve svd
triangular_solve
binomial multinomial poisson randint randperm standard_gamma
argsort kthvalue mode searchsorted topk
all any logsumexp prod
cummax cummin cumprod cumsum logcumsumexp
frexp isin
as_strided diagonal fill_diagonal_tensor flip roll view_dtype
eye linspace
assert draw_key print
"""

PARTS = """
fused_gemm_epilogue fused_conv2d_add_act fused_conv2d_residual_add_act
layer_norm skip_layernorm fused_bias_residual_layernorm fused_rms_norm_residual add_group_norm_silu
flash_attn fused_dot_product_attention fused_embedding_eltwise_layernorm fused_dropout_add
"""


def _pointwise(name: str) -> None:
    def rule(*operands: Any, **attrs: Any) -> Notation:
        return pointwise(*operands)
    rule.__signature__ = inspect.signature(ROWS[name].infer_meta)  # type: ignore[attr-defined]
    spmd(name)(rule)


def _whole(name: str) -> None:
    row = ROWS[name]

    def rule(call: Call) -> Inferred:
        everywhere = (Replicate(),) * call.mesh.ndim
        results = row.infer_meta(*call.metas, **call.attrs) if row.multi else (None,)
        return Inferred(tuple(everywhere for _ in call.metas), tuple(everywhere for _ in results))
    spmd_placed(name)(rule)


for _name in POINTWISE.split():
    _pointwise(_name)
for _name in WHOLE.split():
    _whole(_name)
for _name in PARTS.split():
    spmd_placed(_name)(lambda call: DECOMPOSE)
