"""A matrix product with what follows it."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import prod
from minipd.framework.meta import Meta, describe
from minipd.framework.row import op
from minipd.framework.tensor import Tensor
from minipd.ops.fused.activations import NEAR, activate, activate_over, blocks, require_activation
from minipd.ops.fused.composition import pullback
from minipd.ops.linalg import Matmul
from minipd.ops.shapes import require_floating, shapes_agree

__all__: list[str] = []

#: bytes of a result that is finished at once
SMALL = 4 * NEAR


def composed_gemm_epilogue(x: Tensor, y: Tensor, bias: Tensor, *, trans_x: bool = False, trans_y: bool = False,
                           activation: str = "none") -> Tensor:
    """activation(x y + bias)."""
    return activate(activation, Matmul(x, y, transpose_x=trans_x, transpose_y=trans_y) + bias)


@op("fused_gemm_epilogue")
class FusedGemmEpilogue:
    """out = activation(x y + bias).   x [..., M, K], y [..., K, N], bias [N] -> [..., M, N]

    trans_x, trans_y: the operand has its last two dimensions the other way round.  activation: a name in
    `activations`.
    """

    def infer_meta(x, y, bias, *, trans_x=False, trans_y=False, activation="none"):
        require_activation("fused_gemm_epilogue", activation)
        require_floating("fused_gemm_epilogue", x)
        out = Matmul.infer_meta(x, y, transpose_x=trans_x, transpose_y=trans_y)
        if bias.dtype != out.dtype or not shapes_agree(tuple(bias.shape), out.shape[-1:], "fused_gemm_epilogue"):
            raise ValueError(f"fused_gemm_epilogue: expected a bias of one number for each column of the product "
                             f"{describe(out)}, got {describe(bias)}")
        return Meta(out.shape, out.dtype)

    def kernel(xp, x, y, bias, *, trans_x=False, trans_y=False, activation="none"):
        out = Matmul.kernel(x, y, transpose_x=trans_x, transpose_y=trans_y)
        _finish(xp, out, bias, activation)
        return out

    def kernel_out(xp, out, x, y, bias, *, trans_x=False, trans_y=False, activation="none"):
        if trans_x or trans_y or y.ndim != 2 or not out.flags.c_contiguous:
            Matmul.kernel_out(out, x, y, transpose_x=trans_x, transpose_y=trans_y)
        elif out.ndim == 2:
            xp.matmul(x, y, out=out)
        else:                           # one product instead of one per leading index
            xp.matmul(x.reshape(prod(x.shape[:-1]), x.shape[-1]), y, out=out.reshape(prod(x.shape[:-1]), y.shape[1]))
        _finish(xp, out, bias, activation)

    def vjp(g, x, y, bias, trans_x, trans_y, activation):
        return pullback(composed_gemm_epilogue, g, x, y, bias, trans_x=trans_x, trans_y=trans_y, activation=activation)


def _finish(xp: Any, out: Any, bias: Any, activation: str) -> None:
    """Bias and activation; of much, a few rows at a time.  (The product is made whole: libraries are slow at strips of
    it.)"""
    if out.nbytes <= SMALL:
        xp.add(out, bias, out=out)
        activate_over(xp, out, activation)
        return
    for _, rows in blocks(out):
        rows += bias
        activate_over(xp, rows, activation)
