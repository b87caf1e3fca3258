"""The rules of matmul: [..., M, K] x [..., K, N] -> [..., M, N].

On a conflict Paddle's order holds: batch dimensions, then n, then m, and k last, because splitting k leaves a Partial
that somebody has to reduce.  The order does not look at sizes, so a program is placed alike at every size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from minipd.dist.spmd.notation import Notation, broadcast
from minipd.dist.spmd.table import spmd

__all__: list[str] = []


@spmd("matmul")
def matmul(x: Any, y: Any, *, transpose_x: bool = False, transpose_y: bool = False) -> Notation:
    """x is [..., M, K], or [..., K, M] with transpose_x; y is [..., K, N], or [..., N, K] with transpose_y.

    A 1-D operand is a row (x) or a column (y) whose own dimension vanishes, and is not transposed.
    """
    (batch_x, batch_y), batch = broadcast(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    row = "k" if len(x.shape) == 1 else "km" if transpose_x else "mk"
    column = "k" if len(y.shape) == 1 else "nk" if transpose_y else "kn"
    out = batch + ("m" if "m" in row else "") + ("n" if "n" in column else "")
    return Notation((batch_x + row, batch_y + column), (out,), reduce={"k": "sum"}, prefer=(batch, "n", "m", "k"))


@spmd("fused_gemm_epilogue")
def fused_gemm_epilogue(x: Any, y: Any, bias: Any, *, trans_x: bool = False, trans_y: bool = False,
                        activation: str = "none") -> Notation:
    """A bias is one more term of a sum over a split k; an activation needs the whole sum, so there it decomposes."""
    n = matmul(x, y, transpose_x=trans_x, transpose_y=trans_y)
    how = {"decompose": "k", "reduce": {}} if activation != "none" else {}
    return replace(n, ins=(*n.ins, n.outs[0][-1:]), joins=(2,), mute=(2,), **how)     # type: ignore[arg-type]
