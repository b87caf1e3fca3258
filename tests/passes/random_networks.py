"""Random networks, for tests of passes: blocks as their authors write them, one after another.

Random programs (tests/ir/random_programs.py) have every shape, dtype and nesting, but formulas that a fusion looks for
come up in them hardly ever; these have little else.  Every block takes and gives [2, 4, 8] in float32.
"""

import math

from hypothesis import strategies as st

import minipd as paddle
from minipd.nn import BatchNorm2D, Conv2D, Embedding, GroupNorm, Layer, LayerNorm, Linear
from minipd.passes.show import program_of
from minipd.static.effects import Assert
from minipd.static.nn import cond

F = paddle.nn.functional
B, S, D, HEADS = 2, 4, 8, 2


class Network(Layer):
    """Blocks one after the other; parameters and layers are made by `of` when a block first asks for them."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks, self.made = blocks, paddle.nn.LayerDict()
        for i, block in enumerate(blocks):
            for name, layer in LAYERS.get(block.__name__, dict)().items():
                self.made[f"{block.__name__}{i}_{name}"] = layer
        self.extra = self.create_parameter([D])

    def forward(self, x):
        for i, block in enumerate(self.blocks):
            start = f"{block.__name__}{i}_"
            x = block(x, {name.removeprefix(start): layer for name, layer in self.made.items()
                          if name.startswith(start)} | {"w": self.extra})
        return x


@st.composite
def networks(draw, max_blocks=4):
    """The program of a random network."""
    blocks = draw(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=max_blocks))
    paddle.seed(0)
    return program_of(Network(blocks), (B, S, D))


# ------------------------------------------------------------------------------------------------------ blocks
def linear(x, own):
    return own["fc"](x)


def linear_relu(x, own):
    return F.relu(own["fc"](x))


def mlp_gelu(x, own):
    return own["down"](F.gelu(own["up"](x)))


def residual_mlp(x, own):
    return own["norm"](x + own["down"](F.gelu(own["up"](x), approximate=True)))


def llama_mlp(x, own):
    return own["down"](F.silu(own["gate"](x)) * own["up"](x))


def composed_silu(x, own):
    return x * F.sigmoid(x) + F.sigmoid(x.tanh()) * x.tanh()


def composed_gelu(x, own):
    return 0.5 * x * (1.0 + paddle.erf(x / math.sqrt(2.0)))


def composed_tanh_gelu(x, own):
    return 0.5 * x * (1.0 + paddle.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x ** 3)))


def rms_norm(x, own):
    return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * own["w"]


def residual_rms_norm(x, own):
    h = x + own["fc"](x)
    return h * paddle.rsqrt(h.square().mean(-1, keepdim=True) + 1e-6) * own["w"] + h


def layer_norm(x, own):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / paddle.sqrt(variance + 1e-5) * own["w"] + own["w"]


def attention(x, own, causal=False):
    q, k, v = (own[name](x).reshape([B, S, HEADS, D // HEADS]).transpose([0, 2, 1, 3]) for name in "qkv")
    scores = q @ k.transpose([0, 1, 3, 2]) / math.sqrt(D // HEADS)
    if causal:
        scores = scores + paddle.triu(paddle.full([S, S], -1e9), 1)
    mixed = F.softmax(scores, -1) @ v
    return own["out"](mixed.transpose([0, 2, 1, 3]).reshape([B, S, D]))


def causal_attention(x, own):
    return attention(x, own, causal=True)


def flash_attention(x, own):
    q, k, v = (own[name](x).reshape([B, S, HEADS, D // HEADS]) for name in "qkv")
    return own["out"](F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape([B, S, D]))


def rotary(x, own):
    a, b = x[:, :, :D // 2], x[:, :, D // 2:]
    angles = paddle.arange(S, dtype="float32").reshape([1, S, 1]) * 0.3
    cos, sin = paddle.cos(angles), paddle.sin(angles)
    return paddle.concat([a * cos - b * sin, b * cos + a * sin], -1)


def dropout_add(x, own):
    return F.dropout(x.tanh(), 0.25, training=True) + x


def convolution(x, own):
    image = x.reshape([B, S, 2, D // 2])
    return F.relu(own["bn"](own["conv"](image))).reshape([B, S, D])


def residual_convolution(x, own):
    image = x.reshape([B, S, 2, D // 2])
    return F.relu(own["conv"](image) + image).reshape([B, S, D])


def group_norm_silu(x, own):
    return F.silu(own["norm"](x.reshape([B, S, 2, D // 2]))).reshape([B, S, D])


def embeddings(x, own):
    ids = x.argmax(-1)
    return own["norm"](own["words"](ids) + own["places"](paddle.arange(S).reshape([1, S])))


def turned(x, own):
    return x.transpose([0, 2, 1]).transpose([0, 2, 1]).reshape([B * S, D]).reshape([B, S, D])


def turned_product(x, own):
    square = (x.transpose([0, 2, 1]) @ x * 0.125).transpose([0, 2, 1])
    return square.sum(1, keepdim=True) + x.scale(2.0) @ own["fc"].weight


def casts(x, own):
    return x.cast("float64").cast("float64").cast("float32").scale(1.0) + x.cast("float16").cast("float32")


def constants(x, own):
    half = paddle.full([D], 2.0) * 0.25
    return x * half + paddle.ones([1]) - (paddle.zeros([S, D]) + 1.0)


def twice_and_never(x, own):
    x.exp().sum()
    return x.tanh() * x.tanh() + paddle.concat([x], 0)


def scales(x, own):
    return (x * 2.0 + 1.0).scale(0.5, 3.0).scale(4.0) - 2.0 * (3.0 - x)


def expanded(x, own):
    return x * own["w"].expand([B, S, D]) + x.mean(1, keepdim=True).expand([B, S, D])


def checked(x, own):
    Assert((x == x).all(), message="not a number")
    return x.tanh()


def branch(x, own):
    return cond(x.mean() > 0.0, lambda: own["fc"](x) * 2.0, lambda: x * F.sigmoid(x))


BLOCKS = (linear, linear_relu, mlp_gelu, residual_mlp, llama_mlp, composed_silu, composed_gelu, composed_tanh_gelu,
          rms_norm, residual_rms_norm, layer_norm, attention, causal_attention, flash_attention, rotary, dropout_add,
          convolution, residual_convolution, group_norm_silu, embeddings, turned, turned_product, casts, constants,
          twice_and_never, scales, expanded, checked, branch)


def _linear(*names, bias=None):
    return lambda: {name: Linear(*SIZES.get(name, (D, D)), bias_attr=bias) for name in names}


SIZES = {"up": (D, 2 * D), "gate": (D, 2 * D), "down": (2 * D, D)}
#: block -> its layers
LAYERS = {
    **{name: _linear("fc") for name in ("linear", "linear_relu", "residual_rms_norm", "turned_product", "branch")},
    "mlp_gelu": _linear("up", "down"), "llama_mlp": _linear("gate", "up", "down", bias=False),
    "residual_mlp": lambda: {**_linear("up", "down")(), "norm": LayerNorm(D)},
    **{name: _linear(*"qkv", "out") for name in ("attention", "causal_attention")},
    "flash_attention": _linear(*"qkv", "out", bias=False),
    "convolution": lambda: {"conv": Conv2D(S, S, 3, padding=1, bias_attr=False), "bn": _evaluated(BatchNorm2D(S))},
    "residual_convolution": lambda: {"conv": Conv2D(S, S, 1)},
    "group_norm_silu": lambda: {"norm": GroupNorm(2, S)},
    "embeddings": lambda: {"words": Embedding(D, D), "places": Embedding(S, D), "norm": LayerNorm(D)},
}


def _evaluated(layer):
    layer.eval()
    return layer
