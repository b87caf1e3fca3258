"""Operators of Paddle's that passes make of several, for its inference engines: read, never written."""

from __future__ import annotations

from typing import Any

from minipd.ir.operation import Operation
from minipd.ir.paddle.form import loads
from minipd.ir.paddle.load import Loader
from minipd.ir.value import Value

__all__: list[str] = []


@loads("fused_embedding_eltwise_layernorm")
def load_fused_embedding_eltwise_layernorm(at: Loader, op: Operation) -> Any:
    """Ours takes ids and tables in turn."""
    ids, tables, bias, scale = at.inputs(op)
    looked_up = [v for pair in zip(ids, tables, strict=True) for v in pair]
    return at.row("fused_embedding_eltwise_layernorm", bias, scale, *looked_up, epsilon=at.attrs(op)["epsilon"])


@loads("multihead_matmul")
def load_multihead_matmul(at: Loader, op: Operation) -> Any:
    """input [B, S, H], w [H, 3, H'], bias [3, H'] -> [B, S, H']: q, k and v are one product, cut in three."""
    a, (x, w, bias, bias_qk) = at.attrs(op), at.inputs(op)
    if a["transpose_q"] or a["transpose_v"]:
        raise at.refuse()
    batch, length, _ = x.shape
    size, heads = w.shape[2], a["head_number"]
    qkv = at.row("matmul", x, at.row("reshape", w, shape=(w.shape[0], 3 * size)))
    qkv = at.row("add", qkv, at.row("reshape", bias, shape=(3 * size,)))
    qkv = at.row("reshape", qkv, shape=(batch, length, 3, heads, size // heads))

    def part(i: int) -> Value:
        one = at.row("slice", qkv, axes=(2,), starts=(i,), ends=(i + 1,))
        return at.row("squeeze", one, axis=(2,))
    q, k, v = map(part, range(3))
    if bias_qk is None:
        out = at.row("flash_attn", q, k, v, scale=a["alpha"])
    else:
        out = at.row("fused_dot_product_attention", q, k, v, bias_qk, scaling_factor=a["alpha"])
    return at.row("reshape", out, shape=(batch, length, size))


@loads("fused_rotary_position_embedding")
def load_fused_rotary_position_embedding(at: Loader, op: Operation) -> Any:
    """q, k, v [B, S, H, D] turned by the angles of cos and sin [1, S, 1, D], of the positions [B, S] if they are given.
    Paddle's other style, which turns neighbours, has other numbers."""
    a, (*tensors, sin, cos, positions) = at.attrs(op), at.inputs(op)
    if a["use_neox_rotary_style"] or a["time_major"] or sin is None or cos is None:
        raise at.refuse()
    if positions is not None:
        sin, cos = (at.row("unsqueeze", at.row("embedding", positions, at.row("squeeze", t, axis=(0, 2))), axis=(2,))
                    for t in (sin, cos))
    results: list[Value | None] = []
    for x in tensors:
        if x is None:
            results.append(None)
            continue
        axes, size = (x.ndim - 1,), x.shape[-1]
        first = at.row("slice", x, axes=axes, starts=(0,), ends=(size // 2,))
        second = at.row("slice", x, axes=axes, starts=(size // 2,), ends=(size,))
        turned = at.row("concat", at.row("scale", second, scale=-1.0), first, axis=axes[0])
        results.append(at.row("add", at.row("multiply", x, cos), at.row("multiply", turned, sin)))
    return results
