"""Llama (Touvron et al. 2023), written for one device: nothing here knows of parallelism.

RMSNorm before each half of a block (Zhang, Sennrich 2019), rotary position embedding on the two halves of a head (Su et
al. 2021, in the arrangement of Hugging Face's Llama), grouped-query attention (Ainslie et al. 2023), SwiGLU (Shazeer
2020).  Shapes: B sequences, S tokens, D model width, H query heads in K groups of n = H / K, each d = D / H wide.
Which parameter is split over which mesh axis stands beside this file, in `placements.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.models.config import ModelConfig
from minipd.nn import Embedding, Layer, LayerList, Linear, RMSNorm
from minipd.nn import functional as F
from minipd.nn.initializer import Normal
from minipd.ops.creation import to_tensor
from minipd.ops.joining import concat
from minipd.ops.linalg import matmul
from minipd.ops.math import where

__all__ = ["LlamaForCausalLM", "LlamaModel"]

INIT_STD = 0.02

#: a part of the model, with the beginning of its parameters' names: the parts one after the other are the model
Piece = tuple[str, Callable[[Tensor], Tensor]]


class RotaryEmbedding(Layer):
    """cos and sin of position * base^(-2i/d) for the d/2 pairs of a head: [max_seq, d/2] each, computed once."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        width = config.dim // config.heads
        wavelength = config.rope_base ** (-np.arange(0, width, 2) / width)
        angle = np.outer(np.arange(config.max_seq), wavelength)
        dtype = dtypes.get_default_dtype()
        self.register_buffer("cos", to_tensor(np.cos(angle), dtype), persistable=False)
        self.register_buffer("sin", to_tensor(np.sin(angle), dtype), persistable=False)

    def forward(self, seq_len: int) -> tuple[Tensor, Tensor]:
        """cos and sin of the first `seq_len` positions."""
        return self.cos[:seq_len], self.sin[:seq_len]


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn pair i of each head, (x[i], x[i + d/2]), by its angle.   x [..., S, d], cos and sin [S, d/2]"""
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return concat([a * cos - b * sin, b * cos + a * sin], axis=-1)


class Attention(Layer):
    """Causal grouped-query attention: the n query heads of a group share one key and one value head."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.heads, self.groups = config.heads, config.kv_heads
        self.width = config.dim // config.heads
        self.q_proj = _linear(config.dim, config.heads * self.width)
        self.k_proj = _linear(config.dim, config.kv_heads * self.width)
        self.v_proj = _linear(config.dim, config.kv_heads * self.width)
        self.o_proj = _linear(config.heads * self.width, config.dim)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        """x [B, S, D] -> [B, S, D];  mask [S, S]: True where a token may look"""
        b, s, _ = x.shape
        per_group = self.heads // self.groups
        q = self.q_proj(x).reshape([b, s, self.groups, per_group, self.width]).transpose([0, 2, 3, 1, 4])
        k = self.k_proj(x).reshape([b, s, self.groups, 1, self.width]).transpose([0, 2, 3, 1, 4])
        v = self.v_proj(x).reshape([b, s, self.groups, 1, self.width]).transpose([0, 2, 3, 1, 4])
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)                     # [B, K, n, S, d], [B, K, 1, S, d]
        scores = matmul(q * self.width ** -0.5, k, transpose_y=True)        # [B, K, n, S, S]
        weights = F.softmax(where(mask, scores, float("-inf")))
        y = matmul(weights, v).transpose([0, 3, 1, 2, 4])                   # [B, S, K, n, d]
        return self.o_proj(y.reshape([b, s, self.heads * self.width]))


class MLP(Layer):
    """down(silu(gate(x)) * up(x))"""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.gate_proj = _linear(config.dim, config.ffn_dim)
        self.up_proj = _linear(config.dim, config.ffn_dim)
        self.down_proj = _linear(config.ffn_dim, config.dim)

    def forward(self, x: Tensor) -> Tensor:
        """x [B, S, D] -> [B, S, D]"""
        return self.down_proj(F.swiglu(self.gate_proj(x), self.up_proj(x)))


class DecoderLayer(Layer):
    """One block: attention and MLP, each on a normalised input and added to the residual stream."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.input_layernorm = RMSNorm(config.dim, epsilon=config.norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.dim, epsilon=config.norm_eps)
        self.mlp = MLP(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        """x [B, S, D] -> [B, S, D]"""
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaModel(Layer):
    """Token numbers to hidden states."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.embed_tokens = Embedding(config.vocab_size, config.dim, weight_attr=Normal(0.0, INIT_STD))
        self.layers = LayerList([DecoderLayer(config) for _ in range(config.layers)])
        self.norm = RMSNorm(config.dim, epsilon=config.norm_eps)
        self.rotary = RotaryEmbedding(config)
        visible = np.tril(np.ones((config.max_seq, config.max_seq), bool))
        self.register_buffer("causal", to_tensor(visible), persistable=False)

    def pieces(self, seq_len: int) -> list[Piece]:
        """What `forward` composes, for sequences of `seq_len` tokens."""
        cos, sin = self.rotary(seq_len)
        mask = self.causal[:seq_len, :seq_len]

        def block(layer: Layer) -> Callable[[Tensor], Tensor]:
            return lambda x: layer(x, cos, sin, mask)
        blocks = [(f"layers.{i}", block(layer)) for i, layer in enumerate(self.layers)]
        return [("embed_tokens", self.embed_tokens), *blocks, ("norm", self.norm)]

    def forward(self, ids: Tensor) -> Tensor:
        """ids: int [B, S] -> [B, S, D]"""
        x = ids
        for _, piece in self.pieces(ids.shape[1]):
            x = piece(x)
        return x


class LlamaForCausalLM(Layer):
    """Token numbers to the logits of the next token.  `config` is a resolved ModelConfig.

    With `tie_embeddings` the embedding matrix is the output layer too, and there is no `lm_head`.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.llama = LlamaModel(config)
        self.lm_head = None if config.tie_embeddings else _linear(config.dim, config.vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        """ids: int [B, S] -> logits [B, S, V]"""
        return self.head(self.llama(ids))

    def head(self, x: Tensor) -> Tensor:
        """[B, S, D] -> logits [B, S, V]"""
        if self.lm_head is None:
            return matmul(x, self.llama.embed_tokens.weight, transpose_y=True)
        return self.lm_head(x)

    def pieces(self, seq_len: int) -> list[Piece]:
        """`forward` in parts that can be called one by one, for sequences of `seq_len` tokens."""
        def inside(piece: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
            def run(x: Tensor) -> Tensor:
                with current().rng.scope("llama"):      # random draws are named as if `llama` itself were called
                    return piece(x)
            return run
        return [*((f"llama.{name}", inside(piece)) for name, piece in self.llama.pieces(seq_len)),
                ("lm_head", self.head)]

    def loss(self, ids: Tensor, labels: Tensor, n_tokens: Tensor) -> Tensor:
        """`loss_of` the model's logits.   ids, labels: int [B, S]"""
        return self.loss_of(self(ids), labels, n_tokens)

    def loss_of(self, logits: Tensor, labels: Tensor, n_tokens: Tensor) -> Tensor:
        """The cross entropy summed over the labels that are not -100, divided by `n_tokens`.

        logits: [B, S, V].  labels: int [B, S].  n_tokens: 0-D, the number of such labels in the *whole* batch, so that
        the losses and gradients of micro-batches and of data-parallel ranks add up to those of the batch, however
        uneven the masks.
        """
        return F.cross_entropy(logits, labels, ignore_index=-100, reduction="sum") / n_tokens


def _linear(n_in: int, n_out: int) -> Linear:
    return Linear(n_in, n_out, weight_attr=Normal(0.0, INIT_STD), bias_attr=False)
