"""Attention under the names of Paddle's fused GPU kernels (`paddle.nn.functional.flash_attention`).

Here they are compositions, which keep the whole matrix of weights; what differs is what goes in: packed tensors,
sequences one behind the other without padding, masks as intervals of rows.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.nn.functional.attention import attend
from minipd.ops.cast import cast
from minipd.ops.creation import arange
from minipd.ops.division import floor_divide
from minipd.ops.elementary import exp, log
from minipd.ops.logic import greater_equal, less_than, logical_and, logical_not
from minipd.ops.math import where
from minipd.ops.reduce import max, sum

__all__ = ["flash_attention", "flash_attn_qkvpacked", "flash_attn_unpadded", "flash_attn_varlen_qkvpacked",
           "flashmask_attention", "sdp_kernel"]

BLOCK = 128             # rows and columns of a block of `block_mask`


def flash_attention(query: Tensor, key: Tensor, value: Tensor, dropout: float = 0.0, causal: bool = False,
                    return_softmax: bool = False, *, fixed_seed_offset: Any = None, rng_name: str = "",
                    training: bool = True, name: str | None = None,
                    softmax_scale: float | None = None) -> tuple[Tensor, Tensor | None]:
    """(softmax(scale * query key^T) value, the weights if `return_softmax`, else None).

    query [B, Sq, H, D], key and value [B, Sk, Hkv, D] -> [B, Sq, H, D], [B, H, Sq, Sk]
    causal: query i sees keys 0 .. i.  dropout: on the weights, while training.
    softmax_scale: 1 / sqrt(D) unless given.
    fixed_seed_offset, rng_name: without effect; a random draw is named by its layer and step.
    Raises: ValueError for shapes that do not fit.
    """
    got = attend("flash_attention", query, key, value, None, causal, dropout, training, softmax_scale)
    return got.out, got.weights if return_softmax else None


def flash_attn_qkvpacked(qkv: Tensor, dropout: float = 0.0, causal: bool = False, return_softmax: bool = False, *,
                         fixed_seed_offset: Any = None, rng_name: str = "", training: bool = True,
                         name: str | None = None) -> tuple[Tensor, Tensor | None]:
    """`flash_attention` of one tensor.   qkv [B, S, G + 2, Hkv, D] -> [B, S, G * Hkv, D], and the weights or None

    The first G entries of the third dimension are the query heads, G for each key head, then come key and value.
    """
    _packed("flash_attn_qkvpacked", qkv, 5, "[B, S, G + 2, Hkv, D]")
    query, key, value = _unpacked(qkv)
    return flash_attention(query, key, value, dropout, causal, return_softmax, training=training)


def flash_attn_unpadded(query: Tensor, key: Tensor, value: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor,
                        max_seqlen_q: int, max_seqlen_k: int, scale: float, dropout: float = 0.0, causal: bool = False,
                        return_softmax: bool = False, fixed_seed_offset: Any = None, rng_name: str = "",
                        training: bool = True, name: str | None = None) -> tuple[Tensor, Tensor | None]:
    """Attention within each of several sequences that stand one behind the other, without padding.

    query [all Sq, H, D], key and value [all Sk, Hkv, D] -> [all Sq, H, D], and the weights [H, all Sq, all Sk] or None
    cu_seqlens_q, cu_seqlens_k: int [sequences + 1], where each begins, and where the last one ends.
    causal: the last query of a sequence sees all its keys, the one before it all but the last, and so on.
    scale: of the scores.  max_seqlen_q, max_seqlen_k: without effect.
    """
    if query.ndim != 3 or key.ndim != 3 or cu_seqlens_q.ndim != 1 or cu_seqlens_k.ndim != 1:
        raise ValueError("flash_attn_unpadded: expected query [all Sq, H, D], key and value [all Sk, Hkv, D] and "
                         "cu_seqlens [sequences + 1], got " + ", ".join(
                             describe(x.payload) for x in (query, key, value, cu_seqlens_q, cu_seqlens_k)))
    at_q, at_k = _Places(cu_seqlens_q, query.shape[0]), _Places(cu_seqlens_k, key.shape[0])
    seen = at_q.sequence.unsqueeze(-1) == at_k.sequence
    if causal:
        seen = logical_and(seen, greater_equal(at_k.to_end, at_q.to_end.unsqueeze(-1)))
    got = attend("flash_attn_unpadded", query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), seen, False, dropout,
                 training, scale)
    return got.out.squeeze(0), got.weights.squeeze(0) if return_softmax else None


class _Places:
    """Where `n` positions are: the number of their sequence, and how far they are from its end, int [n]."""

    def __init__(self, starts: Tensor, n: int):
        position = arange(n)
        self.sequence = sum(cast(position.unsqueeze(-1) >= starts[1:], "int64"), -1)
        self.to_end = starts[self.sequence + 1] - position


def flash_attn_varlen_qkvpacked(qkv: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int,
                                max_seqlen_k: int, scale: float, dropout: float = 0.0, causal: bool = False,
                                return_softmax: bool = False, fixed_seed_offset: Any = None, rng_name: str = "",
                                varlen_padded: bool = True, training: bool = True,
                                name: str | None = None) -> tuple[Tensor, Tensor | None]:
    """`flash_attn_unpadded` of one tensor.   qkv [all S, G + 2, Hkv, D], as `flash_attn_qkvpacked` has it

    varlen_padded: without effect.
    """
    _packed("flash_attn_varlen_qkvpacked", qkv, 4, "[all S, G + 2, Hkv, D]")
    query, key, value = _unpacked(qkv)
    return flash_attn_unpadded(query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, scale,
                               dropout, causal, return_softmax, training=training)


def _packed(what: str, qkv: Tensor, ndim: int, form: str) -> None:
    if qkv.ndim != ndim or qkv.shape[-3] < 3:
        raise ValueError(f"{what}: expected qkv {form} with G >= 1, got {describe(qkv.payload)}")


def _unpacked(qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    query = qkv[..., :-2, :, :]
    return query.reshape([*query.shape[:-3], -1, query.shape[-1]]), qkv[..., -2, :, :], qkv[..., -1, :, :]


def flashmask_attention(query: Tensor, key: Tensor, value: Tensor, startend_row_indices: Tensor | None = None, *,
                        dropout: float = 0.0, causal: bool = False, window_size: int | tuple[int, int] | None = None,
                        return_softmax_lse: bool = False, return_seed_offset: bool = False,
                        fixed_seed_offset: Tensor | None = None, rng_name: str = "", training: bool = True,
                        name: str | None = None, softmax_scale: float | None = None,
                        block_mask: Tensor | None = None) -> Any:
    """Attention under a mask that says for each key which queries do not see it, as intervals of rows.

    query [B, Sq, H, D], key and value [B, Sk, Hkv, D] -> [B, Sq, H, D]
    startend_row_indices: int [B, Hkv or 1, Sk, n]; key j is hidden from the rows

        causal, n = 1       [a, end)                    and all before row j
        causal, n = 2       [a, b)                      and all before row j
        n = 2               [a, end) and [0, b)
        n = 4               [a, b) and [c, d)

    window_size: query i sees keys i - left .. i + right only; an int stands for both, a negative one for no limit.
    block_mask: int or bool [B, Hkv or 1, ceil(Sq / 128), ceil(Sk / 128)]; what is 0 hides a block.
    return_softmax_lse: (result, log sum exp of the scores [B, H, Sq]) instead of the result; -inf where none is seen.
    Raises: ValueError for indices of another form, for both indices and a window, and for return_seed_offset: a random
    draw is named by its layer and step, no seed is there to return.

    >>> from minipd.ops.creation import ones, to_tensor
    >>> q, v = ones([1, 4, 1, 2]), to_tensor([1.0, 2.0, 4.0, 8.0]).reshape([1, 4, 1, 1])
    >>> two_documents = to_tensor([2, 2, 4, 4], "int32").reshape([1, 1, 4, 1])
    >>> flashmask_attention(q, q, v, two_documents, causal=True).flatten().tolist()
    [1.0, 1.5, 4.0, 6.0]
    """
    what = "flashmask_attention"
    if return_seed_offset:
        raise ValueError(f"{what}: expected return_seed_offset=False, got True: draws are named by layer and step, "
                         "there is no seed to return")
    if startend_row_indices is not None and window_size is not None:
        raise ValueError(f"{what}: expected startend_row_indices or window_size, got both; put the window into the "
                         "indices")
    rows, columns = arange(query.shape[1]).unsqueeze(-1), arange(key.shape[1])
    hidden = _hidden_rows(what, startend_row_indices, key, rows, columns, causal)
    if window_size is not None:
        left, right = (window_size, window_size) if isinstance(window_size, int) else window_size
        hidden += [less_than(columns, rows - left)] if left >= 0 else []
        hidden += [less_than(rows + right, columns)] if right >= 0 and not causal else []
    if block_mask is not None:
        hidden.append(logical_not(cast(block_mask[:, :, floor_divide(rows, BLOCK), floor_divide(columns, BLOCK)],
                                       dtypes.bool)))
    seen = None
    for each in hidden:
        seen = logical_not(each) if seen is None else logical_and(seen, logical_not(each))
    if seen is not None and seen.ndim == 4 and seen.shape[1] not in (1, query.shape[2]):
        shape = [seen.shape[0], seen.shape[1], 1, *seen.shape[2:]]      # a key head's mask is that of its query heads
        group = query.shape[2] // seen.shape[1]
        seen = seen.reshape(shape).expand([*shape[:2], group, *shape[3:]]).flatten(1, 2)
    got = attend(what, query, key, value, seen, False, dropout, training, softmax_scale)
    if not return_softmax_lse:
        return got.out
    highest = max(got.scores, -1, keepdim=True)
    lse = log(sum(exp(got.scores - highest), -1)) + highest.squeeze(-1)
    return got.out, lse if seen is None else where(sum(cast(seen, "int32"), -1) > 0, lse, -math.inf)


def _hidden_rows(what: str, indices: Tensor | None, key: Tensor, rows: Tensor, columns: Tensor,
                 causal: bool) -> list[Tensor]:
    """What hides a key from a query, bool masks that broadcast to [B, H, Sq, Sk]."""
    above = [less_than(rows, columns)] if causal else []
    if indices is None:
        return above
    n = indices.shape[-1] if indices.ndim == 4 else 0
    if n not in ((1, 2) if causal else (2, 4)) or indices.shape[2] != key.shape[1] or indices.shape[1] not in (
            1, key.shape[2]):
        raise ValueError(f"{what}: expected startend_row_indices int [B, {key.shape[2]} or 1, {key.shape[1]}, "
                         f"{'1 or 2' if causal else '2 or 4'}], got {describe(indices.payload)}")
    bounds = [indices[..., i].unsqueeze(2) for i in range(n)]           # [B, Hkv or 1, 1, Sk]
    if causal:
        below = greater_equal(rows, bounds[0])
        return [*above, below if n == 1 else logical_and(below, less_than(rows, bounds[1]))]
    if n == 2:
        return [greater_equal(rows, bounds[0]), less_than(rows, bounds[1])]
    return [logical_and(greater_equal(rows, a), less_than(rows, b)) for a, b in (bounds[:2], bounds[2:])]


@contextlib.contextmanager
def sdp_kernel(enable_math: bool = False, enable_flash: bool = True,
               enable_mem_efficient: bool = True) -> Iterator[None]:
    """Which of Paddle's kernels attention may use inside; without effect here, where there is one.

    Raises: ValueError if none is enabled.
    """
    if not (enable_math or enable_flash or enable_mem_efficient):
        raise ValueError("sdp_kernel: expected at least one kernel to be enabled, got none")
    yield
