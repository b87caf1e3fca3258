"""Attention in which each query sees a few keys, given in compressed rows."""

from __future__ import annotations

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.nn.functional.attention import attend
from minipd.ops.cast import cast
from minipd.ops.creation import arange
from minipd.ops.linalg import matmul
from minipd.ops.logic import logical_and

__all__ = ["sparse_attention"]


def sparse_attention(query: Tensor, key: Tensor, value: Tensor, sparse_csr_offset: Tensor, sparse_csr_columns: Tensor,
                     key_padding_mask: Tensor | None = None, attn_mask: Tensor | None = None,
                     name: str | None = None) -> Tensor:
    """softmax(query key^T / sqrt(D)) value over the keys that each query sees.   [B, H, S, D] all

    sparse_csr_offset: int [B, H, S + 1]; query i sees the keys sparse_csr_columns[offset[i] : offset[i + 1]].
    sparse_csr_columns: int [B, H, seen].
    key_padding_mask [B, S], attn_mask [S, S]: 0 hides a key as well.
    Raises: ValueError for shapes that do not fit.

    >>> from minipd.ops.creation import ones, to_tensor
    >>> q, v = ones([1, 1, 2, 1]), to_tensor([[[[1.0], [3.0]]]])
    >>> sparse_attention(q, q, v, to_tensor([[[0, 2, 3]]]), to_tensor([[[0, 1, 1]]])).flatten().tolist()
    [2.0, 3.0]
    """
    b, h, s = query.shape[:3] if query.ndim == 4 else (-1, -1, -1)
    if list(sparse_csr_offset.shape) != [b, h, s + 1] or list(sparse_csr_columns.shape[:-1]) != [b, h]:
        raise ValueError("sparse_attention: expected query [B, H, S, D], sparse_csr_offset [B, H, S + 1] and "
                         "sparse_csr_columns [B, H, seen], got " + ", ".join(
                             describe(x.payload) for x in (query, sparse_csr_offset, sparse_csr_columns)))
    # which entries of the columns are those of row i, and which name key j: their product counts the entries of (i, j)
    entry, places = arange(sparse_csr_columns.shape[-1]), sparse_csr_offset.unsqueeze(-1)
    of_row = logical_and(places[:, :, :-1] <= entry, entry < places[:, :, 1:])              # [B, H, S, seen]
    of_key = sparse_csr_columns.unsqueeze(-1) == arange(key.shape[2])                       # [B, H, seen, S]
    seen = matmul(cast(of_row, "float32"), cast(of_key, "float32")) > 0
    if key_padding_mask is not None:
        seen = logical_and(seen, key_padding_mask.unsqueeze([1, 2]) != 0)
    if attn_mask is not None:
        seen = logical_and(seen, attn_mask != 0)
    q, k, v = (x.transpose([0, 2, 1, 3]) for x in (query, key, value))
    return attend("sparse_attention", q, k, v, seen).out.transpose([0, 2, 1, 3])
