"""One layer of a Transformer: attention and a small network, each with a residual around and a norm before or after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.common import Linear
from minipd.nn.dropout import Dropout
from minipd.nn.layer import Layer
from minipd.nn.norm import LayerNorm
from minipd.nn.transformer.attention import MultiHeadAttention, StaticCache

__all__ = ["TransformerDecoderLayer", "TransformerEncoderLayer"]


class Block(Layer):
    """What the layers of encoder and decoder share.  `attentions` names the attentions, in order.

    Args:
        d_model: the width.  nhead: the heads of each attention.  dim_feedforward: the width inside the small network.
        dropout: before each residual.  attn_dropout, act_dropout: on the attention's weights and inside the small
            network; `dropout` unless given.
        activation: a function of nn.functional, by name.
        normalize_before: x + f(norm(x)) instead of norm(x + f(x)).
        weight_attr, bias_attr: of all parts, or a list: of each attention, and of the small network.
    """

    attentions: tuple[str, ...] = ()

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int, dropout: float = 0.1, activation: str = "relu",
                 attn_dropout: float | None = None, act_dropout: float | None = None, normalize_before: bool = False,
                 weight_attr: Any = None, bias_attr: Any = None, layer_norm_eps: float = 1e-5):
        #: what makes another such layer
        self._config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        super().__init__()
        if min(d_model, nhead, dim_feedforward) <= 0:
            raise ValueError(f"{type(self).__name__}: expected d_model, nhead and dim_feedforward greater than 0, got "
                             f"{d_model}, {nhead} and {dim_feedforward}")
        if not callable(getattr(F, activation, None)):
            raise ValueError(f"{type(self).__name__}: expected the name of a function of nn.functional as activation, "
                             f"got {activation!r}")
        parts = len(self.attentions) + 1
        weights, biases = self._each("weight_attr", weight_attr, parts), self._each("bias_attr", bias_attr, parts)
        self.normalize_before, self.activation = normalize_before, getattr(F, activation)
        for name, weight, bias in zip(self.attentions, weights, biases, strict=False):
            setattr(self, name, MultiHeadAttention(d_model, nhead, dropout if attn_dropout is None else attn_dropout,
                                                   weight_attr=weight, bias_attr=bias))
        self.linear1 = Linear(d_model, dim_feedforward, weights[-1], biases[-1])
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[-1], biases[-1])
        for i in range(1, parts + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps))
        for i in range(1, parts + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))

    def _each(self, name: str, attr: Any, parts: int) -> list:
        """The attribute of each part."""
        if not isinstance(attr, (list, tuple)):
            return [attr] * parts
        if len(attr) != parts:
            raise ValueError(f"{type(self).__name__}: expected {name} to be one attribute or a list of {parts}, got "
                             f"{len(attr)}")
        return list(attr)

    def _residual(self, i: int, x: Tensor, part: Callable[[Tensor], Any]) -> tuple[Tensor, Any]:
        """x with what part `i` makes of it added, and what else the part returns (a cache)."""
        norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        made = part(norm(x) if self.normalize_before else x)
        made, cache = made if isinstance(made, tuple) else (made, None)
        x = x + dropout(made)
        return x if self.normalize_before else norm(x), cache

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _given(cache: Any) -> tuple:
    """The cache as a further argument, if there is one."""
    return () if cache is None else (cache,)


class TransformerEncoderLayer(Block):
    """Attention of a sequence to itself, then a small network at each place.   Arguments: those of Block.

    Called with (src [B, S, d_model], src_mask=None, cache=None), it returns [B, S, d_model], or with a cache, which
    `gen_cache` makes, (that, the new cache).

    >>> from minipd.ops.creation import ones
    >>> TransformerEncoderLayer(128, 2, 512)(ones([2, 4, 128])).shape
    paddle.Size([2, 4, 128])
    """

    attentions = ("self_attn",)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Any = None) -> Any:
        out, new = self._residual(1, src, lambda x: self.self_attn(x, x, x, src_mask, *_given(cache)))
        out, _ = self._residual(2, out, self._feed_forward)
        return out if cache is None else (out, new)

    def gen_cache(self, src: Tensor) -> Any:
        """An empty cache for as many sequences as `src` has."""
        return self.self_attn.gen_cache(src)


class TransformerDecoderLayer(Block):
    """Attention of a sequence to itself, then to another one, `memory`, then a small network at each place.

    Arguments: those of Block.
    Called with (tgt [B, S, d_model], memory [B, M, d_model], tgt_mask=None, memory_mask=None, cache=None), it returns
    [B, S, d_model], or with a cache, which `gen_cache` makes, (that, the new cache).

    >>> from minipd.ops.creation import ones
    >>> TransformerDecoderLayer(128, 2, 512)(ones([2, 4, 128]), ones([2, 6, 128])).shape
    paddle.Size([2, 4, 128])
    """

    attentions = ("self_attn", "cross_attn")

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                cache: Any = None) -> Any:
        own, other = (None, None) if cache is None else cache
        out, new = self._residual(1, tgt, lambda x: self.self_attn(x, x, x, tgt_mask, *_given(own)))
        out, _ = self._residual(2, out, lambda x: self.cross_attn(x, memory, memory, memory_mask, *_given(other)))
        out, _ = self._residual(3, out, self._feed_forward)
        return out if cache is None else (out, (new, other))

    def gen_cache(self, memory: Tensor) -> tuple:
        """An empty cache for the sequence's own steps, and the keys and values of `memory`, computed once."""
        return self.self_attn.gen_cache(memory), self.cross_attn.gen_cache(memory, memory, StaticCache)
