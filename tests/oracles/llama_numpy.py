"""A Llama in plain numpy, with gradients derived by hand: the independent answer that ours is compared with.

Written from the formulas, float64, one array per value, no framework.  Shapes: B batch, S positions, D model width, V
vocabulary, H query heads, K key/value heads, d = D / H head width, F feed-forward width.  Linear weights are [in, out].
Names are Paddle's and Hugging Face's (`llama.layers.0.self_attn.q_proj.weight`).

    RMSNorm     y = x / sqrt(mean(x^2) + eps) * w                                   (Zhang, Sennrich 2019)
    RoPE        first and second half of a head rotated against each other by position / base^(2i/d)
                (Su et al. 2021, in Hugging Face's arrangement of the pairs)
    attention   softmax(q k^T / sqrt(d), causal) v; query head h reads key/value head h // (H / K)
    SwiGLU      (silu(x Wg) * (x Wu)) Wd                                            (Shazeer 2020)
    loss        mean over the tokens that count (label != -100) of -log softmax(logits)[label]; 0 if none counts

Labels are aligned with logits: the caller has shifted them.  `dx` is the loss's gradient for `x`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

IGNORE = -100


@dataclass(frozen=True)
class Config:
    """Sizes of a Llama."""

    vocab: int
    dim: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    rope_base: float = 10000.0
    eps: float = 1e-6
    tied: bool = False

    @property
    def head_dim(self) -> int:
        return self.dim // self.heads


def parameter_shapes(c: Config) -> dict[str, tuple[int, ...]]:
    """Every parameter's name and shape, in the order of the model."""
    kv = c.kv_heads * c.head_dim
    shapes: dict[str, tuple[int, ...]] = {"llama.embed_tokens.weight": (c.vocab, c.dim)}
    for i in range(c.layers):
        layer = f"llama.layers.{i}."
        shapes[layer + "self_attn.q_proj.weight"] = (c.dim, c.dim)
        shapes[layer + "self_attn.k_proj.weight"] = (c.dim, kv)
        shapes[layer + "self_attn.v_proj.weight"] = (c.dim, kv)
        shapes[layer + "self_attn.o_proj.weight"] = (c.dim, c.dim)
        shapes[layer + "mlp.gate_proj.weight"] = (c.dim, c.hidden)
        shapes[layer + "mlp.up_proj.weight"] = (c.dim, c.hidden)
        shapes[layer + "mlp.down_proj.weight"] = (c.hidden, c.dim)
        shapes[layer + "input_layernorm.weight"] = (c.dim,)
        shapes[layer + "post_attention_layernorm.weight"] = (c.dim,)
    shapes["llama.norm.weight"] = (c.dim,)
    if not c.tied:
        shapes["lm_head.weight"] = (c.dim, c.vocab)
    return shapes


def random_parameters(c: Config, seed: int, scale: float = 0.3) -> dict[str, np.ndarray]:
    """Parameters large enough that no term of a gradient vanishes."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(1.0 if len(shape) == 1 else 0.0, scale, shape) for name, shape in parameter_shapes(c).items()
    }


# ------------------------------------------------------------------------------------------------ the pieces
def rms_norm(x, w, eps):
    r = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    return x * r * w, (x, w, r)


def rms_norm_backward(dy, saved):
    """With n = x r: dn = dy w, and r depends on x: dx = r (dn - n mean(dn n))."""
    x, w, r = saved
    n, dn = x * r, dy * w
    dw = np.sum(dy * n, axis=tuple(range(dy.ndim - 1)))
    return r * (dn - n * np.mean(dn * n, axis=-1, keepdims=True)), dw


def rope(x, base, direction=1.0):
    """Rotates x[B, S, heads, d]; the backward pass rotates back (direction -1), since a rotation's inverse is its
    transpose."""
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[1])[:, None] * base ** (-np.arange(half) / half)[None, :]
    cos, sin = np.cos(angle)[None, :, None, :], direction * np.sin(angle)[None, :, None, :]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def attention(q, k, v):
    """q[B, S, H, d], k and v [B, S, K, d] -> [B, S, H, d]."""
    group = q.shape[2] // k.shape[2]
    kk, vv = np.repeat(k, group, axis=2), np.repeat(v, group, axis=2)
    scale = q.shape[-1] ** -0.5
    scores = np.einsum("bqhd,bkhd->bhqk", q, kk) * scale
    future = np.triu(np.ones(scores.shape[-2:], bool), 1)
    scores = np.where(future, -np.inf, scores)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return np.einsum("bhqk,bkhd->bqhd", p, vv), (q, kk, vv, p, scale, group)


def attention_backward(do, saved):
    """Softmax: ds = p (dp - sum(dp p)).  A key/value head gathers the gradients of its group of query heads."""
    q, kk, vv, p, scale, group = saved
    dp = np.einsum("bqhd,bkhd->bhqk", do, vv)
    ds = p * (dp - np.sum(dp * p, axis=-1, keepdims=True)) * scale
    dq = np.einsum("bhqk,bkhd->bqhd", ds, kk)
    dkk = np.einsum("bhqk,bqhd->bkhd", ds, q)
    dvv = np.einsum("bhqk,bqhd->bkhd", p, do)

    def gather(d):
        b, s, h, width = d.shape
        return d.reshape(b, s, h // group, group, width).sum(axis=3)

    return dq, gather(dkk), gather(dvv)


def swiglu(g, u):
    sigmoid = 1 / (1 + np.exp(-g))
    return g * sigmoid * u, (g, u, sigmoid)


def swiglu_backward(dy, saved):
    """d silu(g) / dg = s + g s (1 - s)."""
    g, u, s = saved
    return dy * u * (s + g * s * (1 - s)), dy * g * s


def linear_backward(dy, x, w):
    """y = x w over the last dimension: dx = dy w^T, dw = x^T dy summed over all tokens."""
    flat_x, flat_dy = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return dy @ w.T, flat_x.T @ flat_dy


def cross_entropy(logits, labels):
    """(mean over counted tokens, its gradient for the logits)."""
    counted = labels != IGNORE
    tokens = int(counted.sum())
    if tokens == 0:
        return 0.0, np.zeros_like(logits)
    top = logits.max(axis=-1, keepdims=True)
    log_sum = top + np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    target = np.where(counted, labels, 0)[..., None]
    losses = (log_sum - np.take_along_axis(logits, target, axis=-1))[..., 0]
    one_hot = target == np.arange(logits.shape[-1])
    dlogits = (np.exp(logits - log_sum) - one_hot) * counted[..., None] / tokens
    return float(losses[counted].sum() / tokens), dlogits


# ------------------------------------------------------------------------------------------------ the model
def _forward(params, ids, c):
    saved = []
    b, s = ids.shape
    x = params["llama.embed_tokens.weight"][ids]
    for i in range(c.layers):
        p = {name: params[f"llama.layers.{i}.{name}.weight"] for name in LAYER}
        h1, norm1 = rms_norm(x, p["input_layernorm"], c.eps)
        q = rope((h1 @ p["self_attn.q_proj"]).reshape(b, s, c.heads, c.head_dim), c.rope_base)
        k = rope((h1 @ p["self_attn.k_proj"]).reshape(b, s, c.kv_heads, c.head_dim), c.rope_base)
        v = (h1 @ p["self_attn.v_proj"]).reshape(b, s, c.kv_heads, c.head_dim)
        heads, attended = attention(q, k, v)
        heads = heads.reshape(b, s, c.dim)
        x = x + heads @ p["self_attn.o_proj"]
        h2, norm2 = rms_norm(x, p["post_attention_layernorm"], c.eps)
        a, gated = swiglu(h2 @ p["mlp.gate_proj"], h2 @ p["mlp.up_proj"])
        x = x + a @ p["mlp.down_proj"]
        saved.append((p, h1, norm1, attended, heads, h2, norm2, a, gated))
    h, norm = rms_norm(x, params["llama.norm.weight"], c.eps)
    return h @ _head(params, c), (saved, h, norm)


LAYER = (
    "input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
)  # fmt: skip


def _head(params, c):
    return params["llama.embed_tokens.weight"].T if c.tied else params["lm_head.weight"]


def forward(params: dict[str, np.ndarray], ids: np.ndarray, config: Config) -> np.ndarray:
    """Logits [B, S, V] of token ids [B, S]."""
    return _forward(params, ids, config)[0]


def loss_and_grads(
    params: dict[str, np.ndarray], ids: np.ndarray, labels: np.ndarray, config: Config
) -> tuple[float, dict[str, np.ndarray]]:
    """The loss, and its gradient for every parameter by name."""
    c = config
    b, s = ids.shape
    logits, (saved, h, norm) = _forward(params, ids, c)
    loss, dlogits = cross_entropy(logits, labels)
    grads: dict[str, np.ndarray] = {}
    dh, dhead = linear_backward(dlogits, h, _head(params, c))
    dx, grads["llama.norm.weight"] = rms_norm_backward(dh, norm)
    for i in reversed(range(c.layers)):
        p, h1, norm1, attended, heads, h2, norm2, a, gated = saved[i]
        d = {}
        da, d["mlp.down_proj"] = linear_backward(dx, a, p["mlp.down_proj"])
        dgate, dup = swiglu_backward(da, gated)
        dh_gate, d["mlp.gate_proj"] = linear_backward(dgate, h2, p["mlp.gate_proj"])
        dh_up, d["mlp.up_proj"] = linear_backward(dup, h2, p["mlp.up_proj"])
        dskip, d["post_attention_layernorm"] = rms_norm_backward(dh_gate + dh_up, norm2)
        dx = dx + dskip

        dheads, d["self_attn.o_proj"] = linear_backward(dx, heads, p["self_attn.o_proj"])
        dq, dk, dv = attention_backward(dheads.reshape(b, s, c.heads, c.head_dim), attended)
        dq, dk = rope(dq, c.rope_base, -1.0), rope(dk, c.rope_base, -1.0)
        dh_q, d["self_attn.q_proj"] = linear_backward(dq.reshape(b, s, -1), h1, p["self_attn.q_proj"])
        dh_k, d["self_attn.k_proj"] = linear_backward(dk.reshape(b, s, -1), h1, p["self_attn.k_proj"])
        dh_v, d["self_attn.v_proj"] = linear_backward(dv.reshape(b, s, -1), h1, p["self_attn.v_proj"])
        dskip, d["input_layernorm"] = rms_norm_backward(dh_q + dh_k + dh_v, norm1)
        dx = dx + dskip
        grads |= {f"llama.layers.{i}.{name}.weight": value for name, value in d.items()}
    dembed = np.zeros_like(params["llama.embed_tokens.weight"])
    np.add.at(dembed, ids, dx)
    if c.tied:
        dembed += dhead.T
    else:
        grads["lm_head.weight"] = dhead
    grads["llama.embed_tokens.weight"] = dembed
    return loss, grads


# ------------------------------------------------------------------------------------------------ the optimizer
def adamw_reference(p, g, m, v, step, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01):
    """Step number `step` (from 1) of AdamW (Loshchilov, Hutter 2019): (p', m', v').  Decay is decoupled."""
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    m_hat = m / (1 - beta1**step)
    v_hat = v / (1 - beta2**step)
    return p * (1 - lr * weight_decay) - lr * m_hat / (np.sqrt(v_hat) + eps), m, v


def clip_reference(grads: dict[str, np.ndarray], max_norm: float) -> tuple[dict[str, np.ndarray], float]:
    """All gradients times max_norm / max(norm, max_norm), norm over all of them together; and that norm."""
    norm = float(np.sqrt(sum(np.sum(g * g) for g in grads.values())))
    return {name: g * (max_norm / max(norm, max_norm)) for name, g in grads.items()}, norm
