"""The rule of matmul: [..., M, K] x [..., K, N] -> [..., M, N].

On a conflict Paddle's order holds: batch dimensions, then n, then m, and k last, because splitting k leaves a Partial
that somebody has to reduce.  The order does not look at sizes, so a program is placed alike at every size.
"""

from __future__ import annotations

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
