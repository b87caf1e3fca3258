"""Perceptrons and mixtures of them, transformers that see, recommenders: as their authors write them."""

from __future__ import annotations

import importlib
import os

paddle = importlib.import_module(os.environ.get("FRAMEWORK", "minipd"))
nn, F = paddle.nn, paddle.nn.functional


class MLP(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(784, 512), nn.Linear(512, 512), nn.Linear(512, 10)

    def forward(self, x):
        x = paddle.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return F.softmax(self.fc3(x), axis=-1)


class DeepMLP(nn.Layer):
    """With normalisation over the batch and an activation that is written out, as in papers on self-gating."""

    def __init__(self, width=256):
        super().__init__()
        self.layers = nn.LayerList([nn.Sequential(nn.Linear(width, width), nn.BatchNorm1D(width)) for _ in range(6)])
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for layer in self.layers:
            h = layer(x)
            x = x + h * F.sigmoid(h)
        return self.head(x)


class Attention(nn.Layer):
    """Of ViT: one linear layer for query, key and value."""

    def __init__(self, dim, heads):
        super().__init__()
        self.num_heads, self.head_dim = heads, dim // heads
        self.scale = self.head_dim ** -0.5
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape([B, N, 3, self.num_heads, self.head_dim]).transpose([2, 0, 3, 1, 4])
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q @ k.transpose([0, 1, 3, 2])) * self.scale
        attn = F.softmax(attn, axis=-1)
        x = (attn @ v).transpose([0, 2, 1, 3]).reshape([B, N, C])
        return self.proj(x)


class Mlp(nn.Layer):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)
        self.drop = nn.Dropout()

    def forward(self, x):
        return self.drop(self.fc2(self.drop(self.act(self.fc1(x)))))


class Block(nn.Layer):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(dim, epsilon=1e-6), Attention(dim, heads)
        self.norm2, self.mlp = nn.LayerNorm(dim, epsilon=1e-6), Mlp(dim, dim * 4)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Layer):
    def __init__(self, dim=192, depth=3, heads=3, patches=196):
        super().__init__()
        self.patch_embed = nn.Conv2D(3, dim, 16, stride=16)
        self.cls_token = self.create_parameter([1, 1, dim])
        self.pos_embed = self.create_parameter([1, patches + 1, dim])
        self.blocks = nn.Sequential(*(Block(dim, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(dim, epsilon=1e-6), nn.Linear(dim, 100)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose([0, 2, 1])
        cls = self.cls_token.expand([x.shape[0], -1, -1])
        x = paddle.concat([cls, x], axis=1) + self.pos_embed
        x = self.norm(self.blocks(x))
        return self.head(x[:, 0])


def window_partition(x, size):
    B, H, W, C = x.shape
    x = x.reshape([B, H // size, size, W // size, size, C])
    return x.transpose([0, 1, 3, 2, 4, 5]).reshape([-1, size * size, C])


def window_reverse(windows, size, H, W):
    C = windows.shape[-1]
    x = windows.reshape([-1, H // size, W // size, size, size, C])
    return x.transpose([0, 1, 3, 2, 4, 5]).reshape([-1, H, W, C])


class SwinBlock(nn.Layer):
    """Attention in windows that are shifted, with a bias for the distance in a window."""

    def __init__(self, dim, heads, size, shift):
        super().__init__()
        self.heads, self.size, self.shift, self.scale = heads, size, shift, (dim // heads) ** -0.5
        self.norm1, self.norm2, self.mlp = nn.LayerNorm(dim), nn.LayerNorm(dim), Mlp(dim, 4 * dim)
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)
        self.relative_position_bias_table = self.create_parameter([(2 * size - 1) ** 2, heads])
        h, w = paddle.meshgrid(paddle.arange(size), paddle.arange(size))
        coords = paddle.stack([h.flatten(), w.flatten()])
        relative = (coords.unsqueeze(2) - coords.unsqueeze(1)).transpose([1, 2, 0]) + (size - 1)
        self.register_buffer("index", (relative[:, :, 0] * (2 * size - 1) + relative[:, :, 1]).flatten())

    def window_attention(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape([B, N, 3, self.heads, C // self.heads]).transpose([2, 0, 3, 1, 4])
        q, k, v = qkv[0], qkv[1], qkv[2]
        q = q * self.scale
        attn = paddle.matmul(q, k.transpose([0, 1, 3, 2]))
        bias = paddle.index_select(self.relative_position_bias_table, self.index).reshape([N, N, -1])
        attn = attn + bias.transpose([2, 0, 1]).unsqueeze(0)
        attn = F.softmax(attn, axis=-1)
        return self.proj(paddle.matmul(attn, v).transpose([0, 2, 1, 3]).reshape([B, N, C]))

    def forward(self, x):
        B, H, W, C = x.shape
        shortcut = x
        x = self.norm1(x)
        if self.shift:
            x = paddle.roll(x, shifts=(-self.shift, -self.shift), axis=(1, 2))
        x = window_reverse(self.window_attention(window_partition(x, self.size)), self.size, H, W)
        if self.shift:
            x = paddle.roll(x, shifts=(self.shift, self.shift), axis=(1, 2))
        x = shortcut + x
        return x + self.mlp(self.norm2(x))


class Swin(nn.Layer):
    def __init__(self, dim=96):
        super().__init__()
        self.patch_embed = nn.Conv2D(3, dim, 4, stride=4)
        self.norm0 = nn.LayerNorm(dim)
        self.blocks = nn.Sequential(SwinBlock(dim, 3, 4, 0), SwinBlock(dim, 3, 4, 2))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 100)

    def forward(self, x):
        x = self.norm0(self.patch_embed(x).transpose([0, 2, 3, 1]))
        x = self.norm(self.blocks(x))
        return self.head(x.mean([1, 2]))


class MixerBlock(nn.Layer):
    def __init__(self, dim, tokens):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.token_mixing, self.channel_mixing = Mlp(tokens, 2 * tokens), Mlp(dim, 4 * dim)

    def forward(self, x):
        y = self.norm1(x).transpose([0, 2, 1])
        x = x + self.token_mixing(y).transpose([0, 2, 1])
        return x + self.channel_mixing(self.norm2(x))


class Mixer(nn.Layer):
    def __init__(self, dim=128, tokens=196):
        super().__init__()
        self.stem = nn.Conv2D(3, dim, 16, stride=16)
        self.blocks = nn.Sequential(*(MixerBlock(dim, tokens) for _ in range(3)))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 100)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose([0, 2, 1])
        return self.head(self.norm(self.blocks(x)).mean(1))


class MoE(nn.Layer):
    """Every token to its two best experts; each expert computes all tokens, weighted by the gate."""

    def __init__(self, dim=128, experts=4):
        super().__init__()
        self.gate, self.norm = nn.Linear(dim, experts, bias_attr=False), nn.LayerNorm(dim)
        self.experts = nn.LayerList([nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
                                     for _ in range(experts)])

    def forward(self, x):
        h = self.norm(x)
        weights, chosen = paddle.topk(F.softmax(self.gate(h), axis=-1), 2)
        weights = weights / weights.sum(-1, keepdim=True)
        out = paddle.zeros_like(x)
        for i, expert in enumerate(self.experts):
            share = (weights * (chosen == i).astype("float32")).sum(-1, keepdim=True)
            out = out + share * expert(h)
        return x + out


class WideAndDeep(nn.Layer):
    def __init__(self, fields=8, numbers=13, size=16):
        super().__init__()
        self.wide = nn.Linear(numbers, 1)
        self.embeddings = nn.LayerList([nn.Embedding(1000, size) for _ in range(fields)])
        layers, width = [], fields * size + numbers
        for out in (512, 256, 128):
            layers += [nn.Linear(width, out), nn.ReLU(), nn.BatchNorm1D(out)]
            width = out
        self.deep, self.out = nn.Sequential(*layers), nn.Linear(width, 1)

    def forward(self, sparse, dense):
        columns = [table(sparse[:, i]) for i, table in enumerate(self.embeddings)]
        deep = self.out(self.deep(paddle.concat([*columns, dense], axis=1)))
        return F.sigmoid(self.wide(dense) + deep)


class DeepFM(nn.Layer):
    def __init__(self, fields=16, size=16):
        super().__init__()
        self.first, self.second = nn.Embedding(2000, 1), nn.Embedding(2000, size)
        self.dnn = nn.Sequential(nn.Linear(fields * size, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                                 nn.Linear(256, 1))

    def forward(self, sparse):
        first = self.first(sparse).sum(axis=1)
        e = self.second(sparse)
        second = 0.5 * (paddle.square(e.sum(axis=1)) - paddle.square(e).sum(axis=1)).sum(axis=1, keepdim=True)
        return F.sigmoid(first + second + self.dnn(e.reshape([e.shape[0], -1])))


class AutoEncoder(nn.Layer):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 16))
        self.decoder = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 784),
                                     nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))


class WaveNetBlock(nn.Layer):
    """A gated convolution with growing dilation, residual and skip connections."""

    def __init__(self, channels, dilation):
        super().__init__()
        self.filter = nn.Conv1D(channels, channels, 3, padding=dilation, dilation=dilation)
        self.gate = nn.Conv1D(channels, channels, 3, padding=dilation, dilation=dilation)
        self.residual, self.skip = nn.Conv1D(channels, channels, 1), nn.Conv1D(channels, channels, 1)

    def forward(self, x):
        h = F.tanh(self.filter(x)) * F.sigmoid(self.gate(x))
        return x + self.residual(h), self.skip(h)


class WaveNet(nn.Layer):
    def __init__(self, channels=32):
        super().__init__()
        self.start = nn.Conv1D(1, channels, 1)
        self.blocks = nn.LayerList([WaveNetBlock(channels, 2 ** i) for i in range(4)])
        self.end1, self.end2 = nn.Conv1D(channels, channels, 1), nn.Conv1D(channels, 64, 1)

    def forward(self, x):
        x, total = self.start(x), 0.0
        for block in self.blocks:
            x, skip = block(x)
            total = total + skip
        return self.end2(F.relu(self.end1(F.relu(total))))


def normal(*shape):
    return shape, "float32", None


#: name -> (what makes the layer, its inputs: shape, dtype, for integers the number that they are below)
MODELS = {
    "MLP": (MLP, [normal(512, 1, 28, 28)]),
    "MLP, self-gated, 6 layers": (DeepMLP, [normal(512, 256)]),
    "autoencoder": (AutoEncoder, [normal(512, 784)]),
    "ViT-Tiny, 3 blocks": (ViT, [normal(1, 3, 224, 224)]),
    "Swin, 2 blocks": (Swin, [normal(1, 3, 96, 96)]),
    "MLP-Mixer, 3 blocks": (Mixer, [normal(1, 3, 224, 224)]),
    "mixture of 4 experts": (MoE, [normal(2, 128, 128)]),
    "Wide & Deep": (WideAndDeep, [((1024, 8), "int64", 1000), normal(1024, 13)]),
    "DeepFM": (DeepFM, [((2048, 16), "int64", 2000)]),
    "WaveNet, 4 blocks": (WaveNet, [normal(1, 1, 4096)]),
}
