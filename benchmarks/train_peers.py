"""The model of `train_cases.py` in torch, jax and Paddle: one training step with AdamW and clipped gradients.

values: a model's settings, as in `train_cases.MODELS`; every one that the model needs is there.  Projections of one
input are one product, which is faster.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

RATE, BETA1, BETA2, DECAY = 3e-3, 0.9, 0.95, 0.1


def sizes(values: dict[str, Any]) -> tuple[int, ...]:
    """dim, layers, heads, units of the feed-forward, vocabulary, batch, length."""
    names = ("model.dim", "model.layers", "model.heads", "model.ffn_dim", "model.vocab_size", "train.batch",
             "data.seq_len")
    return tuple(values[name] for name in names)


def batch_of(values: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    *_, vocab, batch, length = sizes(values)
    r = np.random.default_rng(0)
    return r.integers(0, vocab, (batch, length)), r.integers(0, vocab, batch * length)


# ------------------------------------------------------------------------------------------------------- torch
def torch_step(values: dict[str, Any], compiled: bool) -> Callable[[], object]:
    import torch
    from torch import nn
    from torch.nn import functional as F
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)
    dim, layers, heads, ffn, vocab, batch, seq = sizes(values)
    width = dim // heads
    angle = torch.outer(torch.arange(seq), 10000.0 ** (-torch.arange(0, width, 2) / width))
    cos, sin = angle.cos(), angle.sin()

    def rotate(x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    class Block(nn.Module):
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
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
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
    optimizer = torch.optim.AdamW(model.parameters(), RATE, betas=(BETA1, BETA2), weight_decay=DECAY, fused=True)
    ids, labels = map(torch.tensor, batch_of(values))

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


# --------------------------------------------------------------------------------------------------------- jax
def jax_step(values: dict[str, Any]) -> Callable[[], object]:
    """The whole step is one program, which may overwrite parameters and moments."""
    import jax
    import jax.numpy as jnp
    dim, layers, heads, ffn, vocab, batch, seq = sizes(values)
    width = dim // heads
    angle = jnp.outer(jnp.arange(seq), 10000.0 ** (-jnp.arange(0, width, 2) / width))
    cos, sin = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]
    random = np.random.default_rng(0)

    def weight(*shape):
        return jnp.asarray(random.standard_normal(shape, np.float32) * 0.02)

    def norm(x, scale):
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale

    def rotate(x):
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def loss(params, ids, labels):
        x = params["embedding"][ids]
        for p in params["blocks"]:
            q, k, v = jnp.split((norm(x, p["attention_norm"]) @ p["qkv"]).reshape(batch, seq, 3 * heads, width), 3, 2)
            y = jax.nn.dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
            x = x + y.reshape(batch, seq, dim) @ p["out"]
            gate, up = jnp.split(norm(x, p["ffn_norm"]) @ p["gate_up"], 2, -1)
            x = x + (jax.nn.silu(gate) * up) @ p["down"]
        logits = (norm(x, params["norm"]) @ params["embedding"].T).reshape(batch * seq, vocab)
        picked = jnp.take_along_axis(logits, labels[:, None], 1)[:, 0]
        return (jax.nn.logsumexp(logits, -1) - picked).mean()

    def step(params, m, v, count, ids, labels):
        each, count = jax.tree.map, count + 1
        value, grads = jax.value_and_grad(loss)(params, ids, labels)
        length = jnp.sqrt(sum((g * g).sum() for g in jax.tree.leaves(grads)))
        grads = each(lambda g: g * jnp.minimum(1.0, 1.0 / (length + 1e-6)), grads)
        m = each(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, grads)
        v = each(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, grads)
        factor, root = RATE / (1 - BETA1**count), 1 - BETA2**count
        params = each(lambda p, m, v: p * (1 - RATE * DECAY) - factor * m / (jnp.sqrt(v / root) + 1e-8), params, m, v)
        return value, params, m, v, count

    block = lambda: {"attention_norm": jnp.ones(dim), "ffn_norm": jnp.ones(dim), "qkv": weight(dim, 3 * dim),  # noqa: E731
                     "out": weight(dim, dim), "gate_up": weight(dim, 2 * ffn), "down": weight(ffn, dim)}
    params = {"embedding": weight(vocab, dim), "norm": jnp.ones(dim), "blocks": [block() for _ in range(layers)]}
    run = jax.jit(step, donate_argnums=(0, 1, 2))
    state = [params, jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params), jnp.float32(0)]
    ids, labels = map(jnp.asarray, batch_of(values))

    def once():
        value, *state[:] = run(*state, ids, labels)
        return float(value)
    return once


# ------------------------------------------------------------------------------------------------------ Paddle
def paddle_step(values: dict[str, Any], static: bool) -> Callable[[], object]:
    """Norm and attention are composed: Paddle's own have no kernels for the CPU, or slower ones."""
    import paddle
    from paddle import nn
    from paddle.nn import functional as F
    dim, layers, heads, ffn, vocab, batch, seq = sizes(values)
    width = dim // heads
    angle = np.outer(np.arange(seq), 10000.0 ** (-np.arange(0, width, 2) / width)).astype(np.float32)
    normal = paddle.ParamAttr(initializer=nn.initializer.Normal(0, 0.02))

    def linear(fan_in, fan_out):
        return nn.Linear(fan_in, fan_out, weight_attr=normal, bias_attr=False)

    def rotate(x, cos, sin):
        a, b = x.chunk(2, -1)
        return paddle.concat([a * cos - b * sin, b * cos + a * sin], -1)

    class Norm(nn.Layer):
        def __init__(self):
            super().__init__()
            self.weight = self.create_parameter([dim], default_initializer=nn.initializer.Constant(1.0))

        def forward(self, x):
            return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight

    class Block(nn.Layer):
        def __init__(self):
            super().__init__()
            self.attention_norm, self.ffn_norm = Norm(), Norm()
            self.qkv, self.out = linear(dim, 3 * dim), linear(dim, dim)
            self.gate_up, self.down = linear(dim, 2 * ffn), linear(ffn, dim)

        def forward(self, x, cos, sin, mask):
            qkv = self.qkv(self.attention_norm(x)).reshape([batch, seq, 3, heads, width]).transpose([2, 0, 3, 1, 4])
            q, k = rotate(qkv[0], cos, sin), rotate(qkv[1], cos, sin)
            scores = paddle.matmul(q, k, transpose_y=True) * width**-0.5 + mask
            y = paddle.matmul(F.softmax(scores, -1), qkv[2])
            x = x + self.out(y.transpose([0, 2, 1, 3]).reshape([batch, seq, dim]))
            gate, up = self.gate_up(self.ffn_norm(x)).chunk(2, -1)
            return x + self.down(F.silu(gate) * up)

    class Loss(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(vocab, dim, weight_attr=normal)
            self.blocks = nn.LayerList([Block() for _ in range(layers)])
            self.norm = Norm()
            self.cos, self.sin = paddle.to_tensor(np.cos(angle)), paddle.to_tensor(np.sin(angle))
            self.mask = paddle.triu(paddle.full([seq, seq], -1e30), 1)

        def forward(self, ids, labels):
            x = self.embedding(ids)
            for block in self.blocks:
                x = block(x, self.cos, self.sin, self.mask)
            logits = paddle.matmul(self.norm(x), self.embedding.weight, transpose_y=True)
            return F.cross_entropy(logits.flatten(0, 1), labels)

    model = Loss()
    loss = paddle.jit.to_static(model, full_graph=True) if static else model
    optimizer = paddle.optimizer.AdamW(RATE, BETA1, BETA2, parameters=model.parameters(), weight_decay=DECAY,
                                       grad_clip=nn.ClipGradByGlobalNorm(1.0))
    ids, labels = map(paddle.to_tensor, batch_of(values))

    def step():
        value = loss(ids, labels)
        value.backward()
        optimizer.step()
        optimizer.clear_grad()
        return float(value)
    return step


PEERS: dict[str, Callable[[dict[str, Any]], Callable[[], object]]] = {
    "torch": lambda values: torch_step(values, False), "torch.compile": lambda values: torch_step(values, True),
    "jax": jax_step,
    "paddle": lambda values: paddle_step(values, False), "paddle.to_static": lambda values: paddle_step(values, True)}
