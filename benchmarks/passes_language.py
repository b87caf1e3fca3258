"""Transformers and recurrent models, as their authors write them: attention out of matmul, softmax and a mask; each
norm and activation as the paper's code spells it.  The architectures are the published ones, with few narrow layers."""

from __future__ import annotations

import importlib
import math
import os

paddle = importlib.import_module(os.environ.get("FRAMEWORK", "minipd"))
nn, F = paddle.nn, paddle.nn.functional


class BertSelfAttention(nn.Layer):
    def __init__(self, hidden, heads):
        super().__init__()
        self.num_heads, self.head_size = heads, hidden // heads
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.dropout = nn.Dropout(0.1)

    def transpose_for_scores(self, x):
        x = x.reshape([x.shape[0], x.shape[1], self.num_heads, self.head_size])
        return x.transpose([0, 2, 1, 3])

    def forward(self, hidden_states, attention_mask):
        query = self.transpose_for_scores(self.query(hidden_states))
        key = self.transpose_for_scores(self.key(hidden_states))
        value = self.transpose_for_scores(self.value(hidden_states))
        scores = paddle.matmul(query, key.transpose([0, 1, 3, 2]))
        scores = scores / math.sqrt(self.head_size)
        scores = scores + attention_mask
        probs = self.dropout(F.softmax(scores, axis=-1))
        context = paddle.matmul(probs, value).transpose([0, 2, 1, 3])
        return context.reshape([context.shape[0], context.shape[1], self.num_heads * self.head_size])


class BertLayer(nn.Layer):
    def __init__(self, hidden, heads):
        super().__init__()
        self.attention = BertSelfAttention(hidden, heads)
        self.dense, self.norm1, self.dropout = nn.Linear(hidden, hidden), nn.LayerNorm(hidden, 1e-12), nn.Dropout(0.1)
        self.intermediate, self.output = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.norm2 = nn.LayerNorm(hidden, 1e-12)

    def forward(self, x, mask):
        x = self.norm1(self.dropout(self.dense(self.attention(x, mask))) + x)
        h = F.gelu(self.intermediate(x))
        return self.norm2(self.dropout(self.output(h)) + x)


class Bert(nn.Layer):
    def __init__(self, hidden=256, layers=2, heads=4, vocabulary=1000):
        super().__init__()
        self.word, self.position = nn.Embedding(vocabulary, hidden), nn.Embedding(128, hidden)
        self.token_type = nn.Embedding(2, hidden)
        self.norm, self.dropout = nn.LayerNorm(hidden, 1e-12), nn.Dropout(0.1)
        self.layers = nn.LayerList([BertLayer(hidden, heads) for _ in range(layers)])
        self.pooler, self.classifier = nn.Linear(hidden, hidden), nn.Linear(hidden, 2)

    def forward(self, input_ids, token_type_ids, attention_mask):
        mask = (1.0 - attention_mask.unsqueeze(1).unsqueeze(2)) * -10000.0
        position_ids = paddle.arange(input_ids.shape[1], dtype="int64").unsqueeze(0)
        x = self.word(input_ids) + self.token_type(token_type_ids)
        x = x + self.position(position_ids)
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x, mask)
        return self.classifier(F.tanh(self.pooler(x[:, 0])))


def gelu_new(x):
    return 0.5 * x * (1.0 + paddle.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * paddle.pow(x, 3.0))))


class GPTBlock(nn.Layer):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads, self.head_size = heads, hidden // heads
        self.ln_1, self.ln_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.c_attn, self.c_proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.c_fc, self.mlp_proj = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.attn_drop = nn.Dropout(0.1)
        self.register_buffer("bias", paddle.tril(paddle.ones([1, 1, 128, 128], "float32")))

    def split_heads(self, x):
        return x.reshape([x.shape[0], x.shape[1], self.heads, self.head_size]).transpose([0, 2, 1, 3])

    def attend(self, x):
        q, k, v = map(self.split_heads, paddle.split(self.c_attn(x), 3, axis=-1))
        w = paddle.matmul(q, k, transpose_y=True) / math.sqrt(self.head_size)
        n = x.shape[1]
        b = self.bias[:, :, :n, :n]
        w = w * b - 1e4 * (1 - b)
        a = paddle.matmul(self.attn_drop(F.softmax(w, axis=-1)), v)
        a = a.transpose([0, 2, 1, 3]).reshape([x.shape[0], n, self.heads * self.head_size])
        return self.c_proj(a)

    def forward(self, x):
        x = x + self.attend(self.ln_1(x))
        return x + self.mlp_proj(gelu_new(self.c_fc(self.ln_2(x))))


class GPT(nn.Layer):
    def __init__(self, hidden=192, layers=2, heads=4, vocabulary=1000):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, hidden), nn.Embedding(128, hidden)
        self.h = nn.LayerList([GPTBlock(hidden, heads) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(hidden)

    def forward(self, input_ids):
        x = self.wte(input_ids) + self.wpe(paddle.arange(input_ids.shape[1], dtype="int64"))
        for block in self.h:
            x = block(x)
        return paddle.matmul(self.ln_f(x), self.wte.weight, transpose_y=True)


class LlamaRMSNorm(nn.Layer):
    def __init__(self, hidden, epsilon=1e-6):
        super().__init__()
        self.weight = self.create_parameter([hidden], default_initializer=nn.initializer.Uniform(0.5, 1.5))
        self.epsilon = epsilon

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = paddle.rsqrt(variance + self.epsilon) * hidden_states
        return hidden_states * self.weight


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2:]
    return paddle.concat([-x2, x1], axis=-1)


class LlamaLayer(nn.Layer):
    def __init__(self, hidden, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, hidden // heads
        self.q_proj = nn.Linear(hidden, hidden, bias_attr=False)
        self.k_proj = nn.Linear(hidden, kv_heads * self.head_dim, bias_attr=False)
        self.v_proj = nn.Linear(hidden, kv_heads * self.head_dim, bias_attr=False)
        self.o_proj = nn.Linear(hidden, hidden, bias_attr=False)
        self.input_layernorm, self.post_attention_layernorm = LlamaRMSNorm(hidden), LlamaRMSNorm(hidden)
        inner = hidden * 8 // 3
        self.gate_proj = nn.Linear(hidden, inner, bias_attr=False)
        self.up_proj = nn.Linear(hidden, inner, bias_attr=False)
        self.down_proj = nn.Linear(inner, hidden, bias_attr=False)

    def attention(self, x, cos, sin, mask):
        b, s, _ = x.shape
        q = self.q_proj(x).reshape([b, s, self.heads, self.head_dim]).transpose([0, 2, 1, 3])
        k = self.k_proj(x).reshape([b, s, self.kv_heads, self.head_dim]).transpose([0, 2, 1, 3])
        v = self.v_proj(x).reshape([b, s, self.kv_heads, self.head_dim]).transpose([0, 2, 1, 3])
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        repeats = self.heads // self.kv_heads
        shape = [b, self.kv_heads, repeats, s, self.head_dim]
        k = k.unsqueeze(2).expand(shape).reshape([b, self.heads, s, self.head_dim])
        v = v.unsqueeze(2).expand(shape).reshape([b, self.heads, s, self.head_dim])
        weights = paddle.matmul(q, k.transpose([0, 1, 3, 2])) / math.sqrt(self.head_dim)
        weights = F.softmax(weights + mask, axis=-1)
        out = paddle.matmul(weights, v).transpose([0, 2, 1, 3]).reshape([b, s, self.heads * self.head_dim])
        return self.o_proj(out)

    def forward(self, x, cos, sin, mask):
        residual = x
        x = self.attention(self.input_layernorm(x), cos, sin, mask)
        x = residual + x
        residual = x
        x = self.post_attention_layernorm(x)
        x = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return residual + x


class Llama(nn.Layer):
    def __init__(self, hidden=288, layers=2, heads=6, kv_heads=2, vocabulary=1000):
        super().__init__()
        self.head_dim = hidden // heads
        self.embed_tokens = nn.Embedding(vocabulary, hidden)
        self.layers = nn.LayerList([LlamaLayer(hidden, heads, kv_heads) for _ in range(layers)])
        self.norm, self.lm_head = LlamaRMSNorm(hidden), nn.Linear(hidden, vocabulary, bias_attr=False)

    def forward(self, input_ids):
        n = input_ids.shape[1]
        inverse = 1.0 / (10000.0 ** (paddle.arange(0, self.head_dim, 2, dtype="float32") / self.head_dim))
        angles = paddle.arange(n, dtype="float32").unsqueeze(-1) * inverse
        emb = paddle.concat([angles, angles], axis=-1)
        mask = paddle.triu(paddle.full([n, n], -1e9), 1)
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, paddle.cos(emb), paddle.sin(emb), mask)
        return self.lm_head(self.norm(x))


class T5LayerNorm(nn.Layer):
    def __init__(self, hidden, epsilon=1e-6):
        super().__init__()
        self.weight = self.create_parameter([hidden], default_initializer=nn.initializer.Uniform(0.5, 1.5))
        self.epsilon = epsilon

    def forward(self, x):
        variance = paddle.square(x).mean(axis=-1, keepdim=True)
        return self.weight * (x * paddle.rsqrt(variance + self.epsilon))


class T5Block(nn.Layer):
    """Attention without scaling, with a bias for the distance; then the gated unit of T5 1.1."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.q, self.k, self.v, self.o = (nn.Linear(hidden, hidden, bias_attr=False) for _ in range(4))
        self.norm1, self.norm2 = T5LayerNorm(hidden), T5LayerNorm(hidden)
        self.wi_0, self.wi_1 = (nn.Linear(hidden, 4 * hidden, bias_attr=False) for _ in range(2))
        self.wo, self.dropout = nn.Linear(4 * hidden, hidden, bias_attr=False), nn.Dropout(0.1)

    def shape(self, x):
        return x.reshape([x.shape[0], -1, self.heads, self.size]).transpose([0, 2, 1, 3])

    def forward(self, x, bias):
        n = self.norm1(x)
        q, k, v = self.shape(self.q(n)), self.shape(self.k(n)), self.shape(self.v(n))
        scores = paddle.matmul(q, k, transpose_y=True)
        scores += bias
        weights = self.dropout(F.softmax(scores, axis=-1))
        out = paddle.matmul(weights, v).transpose([0, 2, 1, 3]).reshape([x.shape[0], -1, self.heads * self.size])
        x = x + self.dropout(self.o(out))
        n = self.norm2(x)
        return x + self.dropout(self.wo(self.dropout(gelu_new(self.wi_0(n)) * self.wi_1(n))))


class T5(nn.Layer):
    def __init__(self, hidden=128, heads=4, vocabulary=1000, length=64):
        super().__init__()
        self.embed, self.relative = nn.Embedding(vocabulary, hidden), nn.Embedding(32, heads)
        self.blocks = nn.LayerList([T5Block(hidden, heads) for _ in range(2)])
        self.norm = T5LayerNorm(hidden)

    def forward(self, input_ids):
        n = input_ids.shape[1]
        positions = paddle.arange(n, dtype="int64")
        distance = paddle.abs(positions.unsqueeze(0) - positions.unsqueeze(1))
        bucket = paddle.minimum(distance, paddle.full_like(distance, 31))
        bias = self.relative(bucket).transpose([2, 0, 1]).unsqueeze(0)
        x = self.embed(input_ids)
        for block in self.blocks:
            x = block(x, bias)
        return self.norm(x)


class Translator(nn.Layer):
    """Encoder and decoder out of the framework's own layers."""

    def __init__(self, hidden=128, heads=4, vocabulary=500):
        super().__init__()
        self.source, self.target = nn.Embedding(vocabulary, hidden), nn.Embedding(vocabulary, hidden)
        self.transformer = nn.Transformer(hidden, heads, 2, 2, 4 * hidden)
        self.generator = nn.Linear(hidden, vocabulary)
        self.scale = math.sqrt(hidden)

    def forward(self, source, target):
        n = target.shape[1]
        mask = paddle.triu(paddle.full([n, n], -1e9), 1)
        out = self.transformer(self.source(source) * self.scale, self.target(target) * self.scale, None, mask, None)
        return self.generator(out)


class Recurrent(nn.Layer):
    """A classifier of sentences."""

    def __init__(self, kind, hidden=128, vocabulary=1000):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.rnn = kind(hidden, hidden, num_layers=1)
        self.fc1, self.fc2 = nn.Linear(hidden, 64), nn.Linear(64, 2)

    def forward(self, text):
        output, _ = self.rnn(self.embedding(text))
        return self.fc2(F.tanh(self.fc1(output[:, -1])))


class TextCNN(nn.Layer):
    def __init__(self, hidden=64, vocabulary=1000):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, hidden)
        self.convs = nn.LayerList([nn.Conv2D(1, 64, (k, hidden)) for k in (3, 4, 5)])
        self.dropout, self.fc = nn.Dropout(0.5), nn.Linear(192, 2)

    def forward(self, x):
        x = self.embed(x).unsqueeze(1)
        x = [F.relu(conv(x)).squeeze(3) for conv in self.convs]
        x = [F.max_pool1d(i, i.shape[2]).squeeze(2) for i in x]
        return self.fc(self.dropout(paddle.concat(x, 1)))


class QuickGELU(nn.Layer):
    def forward(self, x):
        return x * F.sigmoid(1.702 * x)


class ClipTextBlock(nn.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.attn, self.ln_1, self.ln_2 = nn.MultiHeadAttention(width, heads), nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), QuickGELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask):
        n = self.ln_1(x)
        x = x + self.attn(n, n, n, mask)
        return x + self.mlp(self.ln_2(x))


class ClipText(nn.Layer):
    def __init__(self, width=256, heads=4, vocabulary=1000, length=77):
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.positional_embedding = self.create_parameter([length, width])
        self.blocks = nn.LayerList([ClipTextBlock(width, heads) for _ in range(2)])
        self.ln_final, self.text_projection = nn.LayerNorm(width), self.create_parameter([width, width])

    def forward(self, text):
        n = text.shape[1]
        mask = paddle.triu(paddle.full([n, n], -1e9), 1)
        x = self.token_embedding(text) + self.positional_embedding
        for block in self.blocks:
            x = block(x, mask)
        x = self.ln_final(x)[:, -1] @ self.text_projection
        return x / paddle.sqrt((x * x).sum(-1, keepdim=True))


def ids(*shape, below=1000):
    return shape, "int64", below


def normal(*shape):
    return shape, "float32", None


#: name -> (what makes the layer, its inputs: shape, dtype, for integers the number that they are below)
MODELS = {
    "BERT, 2 layers": (Bert, [ids(1, 128), ids(1, 128, below=2), normal(1, 128)]),
    "GPT-2, 2 layers": (GPT, [ids(2, 64)]),
    "Llama, 2 layers": (Llama, [ids(1, 128)]),
    "T5 encoder, 2 blocks": (T5, [ids(2, 64)]),
    "Transformer, 2 and 2 layers": (Translator, [ids(2, 64, below=500), ids(2, 64, below=500)]),
    "CLIP text encoder, 2 blocks": (ClipText, [ids(2, 77)]),
    "LSTM classifier": (lambda: Recurrent(nn.LSTM), [ids(32, 32)]),
    "GRU classifier": (lambda: Recurrent(nn.GRU), [ids(32, 32)]),
    "TextCNN": (TextCNN, [ids(32, 48)]),
}
