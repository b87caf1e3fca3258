"""One training step of a Llama, in minipd or in torch: what `train.py` measures.

MODELS are settings of minipd's run configuration; torch's model takes the same ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

#: minipd's own default, and model A of 7.2 million parameters, whose step others have been measured with
MODELS: dict[str, dict[str, Any]] = {
    "default": {},
    "A": {"model.dim": 288, "model.layers": 6, "model.heads": 6, "model.ffn_dim": 768, "model.vocab_size": 4096,
          "train.batch": 8, "data.seq_len": 256}}
#: how minipd runs a step
WAYS: dict[str, dict[str, Any]] = {
    "eager": {"dist.eager": True}, "static": {"dist.cinn": False}, "compiled": {}}


def config_of(model: str, mesh: str = "dp=1,tp=1", way: str = "compiled") -> Any:
    """The run configuration of a model, on a mesh, run in one of `WAYS`."""
    from minipd.models.config import RunConfig, resolve, with_values
    return resolve(with_values(RunConfig(), {"dist.mesh": mesh, **MODELS[model], **WAYS[way]}, "the benchmark"))


def batch_of(config: Any) -> tuple[np.ndarray, np.ndarray]:
    """Token numbers and labels for a step."""
    r, shape = np.random.default_rng(0), (config.train.batch, config.data.seq_len)
    ids, labels = (r.integers(0, config.model.vocab_size, shape) for _ in range(2))
    return ids, labels


def minipd_step(model: str, way: str) -> Callable[[], object]:
    from minipd.framework.context import RankContext
    from minipd.framework.rank import enter
    from minipd.models.build import build
    enter(RankContext())
    config = config_of(model, way=way)
    step, batch = build(config).step, batch_of(config)
    return lambda: step(*batch)


# ------------------------------------------------------------------------------------------------------- torch
def torch_step(values: dict[str, Any], compiled: bool) -> Callable[[], object]:
    """values: of MODELS; every one that torch's model needs is there."""
    import torch
    from torch import nn
    from torch.nn import functional as F
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)
    dim, heads, ffn, vocab = (values[f"model.{n}"] for n in ("dim", "heads", "ffn_dim", "vocab_size"))
    batch, seq, width = values["train.batch"], values["data.seq_len"], dim // heads
    angle = torch.outer(torch.arange(seq), 10000.0 ** (-torch.arange(0, width, 2) / width))
    cos, sin = angle.cos(), angle.sin()

    def rotate(x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    class Block(nn.Module):
        """Projections of one input are one product, which is faster."""

        def __init__(self):
            super().__init__()
            self.attention_norm, self.ffn_norm = nn.RMSNorm(dim, 1e-5), nn.RMSNorm(dim, 1e-5)
            self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
            self.gate_up, self.down = nn.Linear(dim, 2 * ffn, bias=False), nn.Linear(ffn, dim, bias=False)

        def forward(self, x):
            q, k, v = self.qkv(self.attention_norm(x)).view(batch, seq, 3, heads, width).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, seq, dim))
            gate, up = self.gate_up(self.ffn_norm(x)).chunk(2, -1)
            return x + self.down(F.silu(gate) * up)

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(vocab, dim)
            self.blocks = nn.ModuleList(Block() for _ in range(values["model.layers"]))
            self.norm = nn.RMSNorm(dim, 1e-5)
            for p in self.parameters():
                if p.ndim == 2:
                    nn.init.normal_(p, std=0.02)

        def forward(self, ids):
            x = self.embedding(ids)
            for block in self.blocks:
                x = block(x)
            return F.linear(self.norm(x), self.embedding.weight)

    model = Llama()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    ids, labels = torch.randint(vocab, (batch, seq)), torch.randint(vocab, (batch * seq,))

    def loss():
        return F.cross_entropy(model(ids).flatten(0, 1), labels)
    of_batch = torch.compile(loss, dynamic=False) if compiled else loss

    def step():
        value = of_batch()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return value.item()
    return step


def cases(argument: str) -> dict[str, Callable[[], object]]:
    """argument: "MODEL WAY", where WAY may also be "torch" or "torch.compile"."""
    model, way = argument.split()
    if way in WAYS:
        return {"step": minipd_step(model, way)}
    return {"step": torch_step(MODELS[model], way == "torch.compile")}
