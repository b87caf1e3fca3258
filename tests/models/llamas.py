"""Small Llamas for tests: a configuration, the same model for the numpy oracle, and parameters filled from it."""

from __future__ import annotations

import numpy as np

import minipd as paddle
from minipd.framework.tensor import Tensor
from minipd.models.config import ModelConfig
from minipd.models.llama import LlamaForCausalLM
from tests.oracles import llama_numpy as oracle

SMALL = ModelConfig(vocab_size=29, dim=16, layers=2, heads=4, kv_heads=2, ffn_dim=24, max_seq=8, norm_eps=1e-6,
                    tie_embeddings=False)
TIED = ModelConfig(vocab_size=29, dim=16, layers=2, heads=4, kv_heads=4, ffn_dim=24, max_seq=8, norm_eps=1e-6,
                   tie_embeddings=True)


def oracle_config(c: ModelConfig) -> oracle.Config:
    return oracle.Config(vocab=c.vocab_size, dim=c.dim, layers=c.layers, heads=c.heads, kv_heads=c.kv_heads,
                         hidden=c.ffn_dim, rope_base=c.rope_base, eps=c.norm_eps, tied=c.tie_embeddings)


def filled(c: ModelConfig, params: dict[str, np.ndarray]) -> LlamaForCausalLM:
    """A model of the default dtype with the given parameters."""
    model = LlamaForCausalLM(c)
    named = dict(model.named_parameters())
    assert named.keys() == params.keys()
    for name, p in named.items():
        p.set_value(paddle.to_tensor(params[name], dtype=p.dtype))
    return model


def batch(c: ModelConfig, b: int = 4, s: int = 8, seed: int = 1, uneven: bool = False):
    """(ids, labels); `uneven`: a different number of labels is ignored in each sequence, all of them in the last."""
    r = np.random.default_rng(seed)
    ids, labels = r.integers(0, c.vocab_size, (b, s)), r.integers(0, c.vocab_size, (b, s))
    if uneven:
        for i in range(b):
            labels[i, :i * s // (b - 1)] = -100
    return ids, labels


def number(x: np.ndarray) -> Tensor:
    return paddle.to_tensor(x)
