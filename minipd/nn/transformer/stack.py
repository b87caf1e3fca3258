"""Stacks of Transformer layers, and the whole: an encoder and a decoder."""

from __future__ import annotations

import math
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn.container import LayerList
from minipd.nn.layer import Layer
from minipd.nn.norm import LayerNorm
from minipd.nn.transformer.block import TransformerDecoderLayer, TransformerEncoderLayer
from minipd.ops.creation import full
from minipd.ops.triangle import triu

__all__ = ["Transformer", "TransformerDecoder", "TransformerEncoder"]


def _stack(layer: Layer, num_layers: int) -> LayerList:
    """The layer, and others made with the same arguments: each has first values of its own."""
    if num_layers > 10_000:
        raise ValueError(f"{type(layer).__name__}: expected num_layers of at most 10000, got {num_layers}")
    if num_layers > 1 and not hasattr(layer, "_config"):
        raise ValueError(f"expected a layer that keeps its arguments in _config, so that {num_layers - 1} more can be "
                         f"made, got {type(layer).__name__}")
    return LayerList([layer, *(type(layer)(**layer._config) for _ in range(num_layers - 1))])


class TransformerEncoder(Layer):
    """`num_layers` encoder layers, `encoder_layer` and others like it, and a norm after the last, if one is given.

    Called with (src [B, S, d_model], src_mask=None, cache=None), it returns [B, S, d_model], or with a cache, which
    `gen_cache` makes, (that, the new cache).
    """

    def __init__(self, encoder_layer: Layer, num_layers: int, norm: Layer | None = None):
        super().__init__()
        self.layers = _stack(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Any = None) -> Any:
        new = []
        for i, layer in enumerate(self.layers):
            if cache is None:
                src = layer(src, src_mask)
            else:
                src, one = layer(src, src_mask, cache[i])
                new.append(one)
        out = src if self.norm is None else self.norm(src)
        return out if cache is None else (out, new)

    def gen_cache(self, src: Tensor) -> list:
        """An empty cache for each layer."""
        return [layer.gen_cache(src) for layer in self.layers]


class TransformerDecoder(Layer):
    """`num_layers` decoder layers, `decoder_layer` and others like it, and a norm after the last, if one is given.

    Called with (tgt [B, S, d_model], memory [B, M, d_model], tgt_mask=None, memory_mask=None, cache=None), it returns
    [B, S, d_model], or with a cache, which `gen_cache` makes, (that, the new cache).
    """

    def __init__(self, decoder_layer: Layer, num_layers: int, norm: Layer | None = None):
        super().__init__()
        self.layers = _stack(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                cache: Any = None) -> Any:
        new = []
        for i, layer in enumerate(self.layers):
            if cache is None:
                tgt = layer(tgt, memory, tgt_mask, memory_mask)
            else:
                tgt, one = layer(tgt, memory, tgt_mask, memory_mask, cache[i])
                new.append(one)
        out = tgt if self.norm is None else self.norm(tgt)
        return out if cache is None else (out, new)

    def gen_cache(self, memory: Tensor, do_zip: bool = False) -> list:
        """For each layer (an empty cache, the keys and values of `memory`); do_zip: all the ones, then all the
        others."""
        caches = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*caches, strict=True)) if do_zip else caches


class Transformer(Layer):
    """An encoder of one sequence and a decoder of another that looks at it.   (Vaswani et al. 2017)

    nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before: see `block.Block`.
    weight_attr, bias_attr: of all parts, or a list: of attention and small network; or of
    attention, the decoder's attention to the encoder, and small network.
    custom_encoder, custom_decoder: instead of the ones that would be made.

    Called with (src [B, S, d_model], tgt [B, T, d_model], src_mask=None, tgt_mask=None, memory_mask=None), it returns
    [B, T, d_model].

    >>> from minipd.ops.creation import ones
    >>> Transformer(128, 2, 1, 1, 512)(ones([2, 4, 128]), ones([2, 6, 128])).shape
    paddle.Size([2, 6, 128])
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1, activation: str = "relu",
                 attn_dropout: float | None = None, act_dropout: float | None = None, normalize_before: bool = False,
                 weight_attr: Any = None, bias_attr: Any = None, custom_encoder: Layer | None = None,
                 custom_decoder: Layer | None = None):
        super().__init__()
        self.d_model, self.nhead = d_model, nhead
        options = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before)
        if custom_encoder is None:
            layer: Layer = TransformerEncoderLayer(*options, _of_parts(weight_attr, 2), _of_parts(bias_attr, 2))
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, LayerNorm(d_model))
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*options, _of_parts(weight_attr, 3), _of_parts(bias_attr, 3))
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, LayerNorm(d_model))
        self.decoder = custom_decoder

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None) -> Tensor:
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)

    def generate_square_subsequent_mask(self, length: int | Tensor) -> Tensor:
        """A mask to add, by which place i sees places 0 .. i: 0 there, -inf elsewhere.   [length, length]"""
        n = int(length)
        return triu(full([n, n], -math.inf), 1)


def _of_parts(attr: Any, parts: int) -> Any:
    """A list of one to three attributes for a layer of two parts, or of three."""
    if not isinstance(attr, (list, tuple)):
        return attr
    if len(attr) not in (1, 2, 3):
        raise ValueError(f"Transformer: expected weight_attr and bias_attr to be one attribute or a list of 1 to 3, "
                         f"got {len(attr)}")
    middle = attr[1] if len(attr) == 3 else attr[0]
    return [attr[0], attr[-1]] if parts == 2 else [attr[0], middle, attr[-1]]
