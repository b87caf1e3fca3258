"""The sum of several embeddings, and its layer norm: how a BERT begins."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe
from minipd.framework.row import op
from minipd.framework.tensor import Tensor
from minipd.ops.embedding import Embedding
from minipd.ops.fused.composition import pullback
from minipd.ops.fused.norm import LayerNorm, composed_layer_norm
from minipd.ops.shapes import broadcast_shapes, require_floating, shapes_agree

__all__: list[str] = []

NAME = "fused_embedding_eltwise_layernorm"


def composed_embedding_layernorm(bias: Tensor, scale: Tensor, *looked_up: Tensor, epsilon: float = 1e-5) -> Tensor:
    """The layer norm of the sum of the rows that are looked up."""
    ids, tables = looked_up[::2], looked_up[1::2]
    total = Embedding(ids[0], tables[0])
    for i, table in zip(ids[1:], tables[1:], strict=True):
        total = total + Embedding(i, table)
    return composed_layer_norm(total, scale, bias, epsilon=epsilon)


@op(NAME)
class FusedEmbeddingEltwiseLayernorm:
    """The layer norm of weight_1[ids_1] + weight_2[ids_2] + ...   (Devlin et al. 2018, section 3.2)

    looked_up: ids_1 int [...], weight_1 [rows, n], ids_2, weight_2, ...; ids broadcast.  bias, scale [n] -> [..., n]
    """

    def infer_meta(bias, scale, *looked_up, epsilon=1e-5):
        ids, tables = looked_up[::2], looked_up[1::2]
        require_floating(NAME, scale)
        if not tables or len(ids) != len(tables) or any(i.dtype not in dtypes.INTS for i in ids) or any(
                t.dtype != scale.dtype or bias.dtype != scale.dtype or len(t.shape) != 2
                or not shapes_agree(tuple(t.shape[1:]), tuple(p.shape), NAME)
                for t in tables for p in (scale, bias)):
            raise ValueError(f"{NAME}: expected a bias and a scale [n], then int ids and a table [rows, n] of their "
                             "dtype, in turn, got " + ", ".join(map(describe, (bias, scale, *looked_up))))
        return Meta((*broadcast_shapes(NAME, *(i.shape for i in ids)), *scale.shape), scale.dtype)

    def kernel(xp, bias, scale, *looked_up, epsilon=1e-5):
        total = _looked_up(xp, looked_up)
        return LayerNorm.kernel(total, scale, bias, epsilon=epsilon)

    def kernel_out(xp, out, bias, scale, *looked_up, epsilon=1e-5):
        LayerNorm.kernel_out(out, _looked_up(xp, looked_up), scale, bias, epsilon=epsilon)

    def vjp(g, looked_up, epsilon):
        bias, scale, *looked_up = looked_up
        return pullback(composed_embedding_layernorm, g, bias, scale, *looked_up, epsilon=epsilon)


def _looked_up(xp: Any, looked_up: tuple) -> Any:
    total: Any = None
    look_up: Any = Embedding.kernel
    for ids, table in sorted(zip(looked_up[::2], looked_up[1::2], strict=True), key=lambda pair: -pair[0].size):
        rows = look_up(ids, table)
        if total is None or total.shape != (shape := xp.broadcast_shapes(total.shape, rows.shape)):
            total = rows if total is None else xp.broadcast_to(total, shape) + rows
        else:
            total += rows
    return total
