"""The models that are exchanged.  `paddle` is the real one or minipd; neither is imported here."""

import functools
from collections import namedtuple

import numpy as np

#: layer: what is saved.  specs: (shape, dtype, name) of its inputs.  calls: arrays for each input, for some calls.
Model = namedtuple("Model", "layer specs calls")

#: models that come with Paddle, and not with minipd: name -> (function, size of the picture, arguments)
PADDLES = {
    "ResNet-18": ("resnet18", 32, {}),
    "MobileNet V2, a quarter": ("mobilenet_v2", 32, {"scale": 0.25}),
    "MobileNet V3, small": ("mobilenet_v3_small", 32, {"scale": 0.5}),
    "SqueezeNet 1.1": ("squeezenet1_1", 64, {}),
    "ShuffleNet V2, a quarter": ("shufflenet_v2_x0_25", 32, {}),
    "DenseNet-121": ("densenet121", 32, {}),
}


def models(paddle):
    """name -> a function that makes the model."""
    nn, F = paddle.nn, paddle.nn.functional
    rng = np.random.default_rng(7)

    def normal(*shape, dtype="float32"):
        return rng.standard_normal(shape).astype(dtype)

    def mlp(dtype):
        net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3), nn.Softmax())
        net.to(dtype=dtype)
        return Model(net, [([None, 6], dtype, "x")], [[normal(n, 6, dtype=dtype)] for n in (1, 5)])

    def cnn():
        net = nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.MaxPool2D(2, 2),
                            nn.Conv2D(8, 4, 3, stride=2, bias_attr=False), nn.AvgPool2D(2), nn.Flatten(),
                            nn.Linear(4, 5))
        net.train()
        net(paddle.to_tensor(normal(4, 3, 12, 12)))         # running statistics that are not the first ones
        return Model(net, [([None, 3, 12, 12], "float32", "image")], [[normal(n, 3, 12, 12)] for n in (1, 3)])

    class Tagger(nn.Layer):
        """Embedded words through an LSTM, a score for each word, and the last states."""

        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(23, 6)
            self.rnn = nn.LSTM(6, 5, num_layers=2, direction="bidirect")
            self.score = nn.Linear(10, 4)

        def forward(self, words):
            out, (h, c) = self.rnn(self.embed(words))
            return self.score(out), h, c

    class Reader(nn.Layer):
        """A GRU over sequences of different lengths."""

        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(4, 3)

        def forward(self, x, lengths):
            out, last = self.rnn(x, sequence_length=lengths)
            return out, last

    class Attention(nn.Layer):
        """Attention over any number of positions."""

        def __init__(self):
            super().__init__()
            self.project, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

        def forward(self, x):
            q, k, v = paddle.split(self.project(x).reshape([0, 0, 6, 4]), 3, axis=2)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(mixed.reshape([0, 0, 8])) + x.mean(1, keepdim=True)

    class Bert(nn.Layer):
        """Word and position embeddings, one encoder layer with a padding mask, a pooled vector."""

        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(31, 16), nn.Embedding(8, 16)
            self.norm, self.drop = nn.LayerNorm(16), nn.Dropout(0.1)
            self.layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, activation="gelu")
            self.pool = nn.Linear(16, 16)

        def forward(self, words, places):
            mask = paddle.cast(words == 0, "float32").unsqueeze([1, 2]) * -1e4
            x = self.drop(self.norm(self.words(words) + self.places(places)))
            x = self.layer(x, mask)
            return x, F.tanh(self.pool(x[:, 0]))

    class RMSNorm(nn.Layer):
        def __init__(self, width):
            super().__init__()
            self.weight = self.create_parameter([width], default_initializer=nn.initializer.Uniform(0.5, 1.5))

        def forward(self, x):
            return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * self.weight

    class Llama(nn.Layer):
        """RMS norm, grouped attention with rotary positions and a causal mask, SwiGLU."""

        def __init__(self, width=16, heads=4, groups=2, inner=24, length=6):
            super().__init__()
            self.heads, self.groups, self.head, self.length = heads, groups, width // heads, length
            self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
            self.q = nn.Linear(width, width, bias_attr=False)
            self.k = nn.Linear(width, groups * self.head, bias_attr=False)
            self.v = nn.Linear(width, groups * self.head, bias_attr=False)
            self.o = nn.Linear(width, width, bias_attr=False)
            self.gate = nn.Linear(width, inner, bias_attr=False)
            self.up = nn.Linear(width, inner, bias_attr=False)
            self.down = nn.Linear(inner, width, bias_attr=False)

        def rotated(self, x):
            speed = 10000.0 ** (paddle.arange(0, self.head, 2, dtype="float32") / -self.head)
            angle = paddle.arange(self.length, dtype="float32").unsqueeze(1) * speed
            angle = paddle.concat([angle, angle], axis=-1).unsqueeze([0, 2])
            left, right = paddle.split(x, 2, axis=-1)
            return x * paddle.cos(angle) + paddle.concat([-right, left], axis=-1) * paddle.sin(angle)

        def attention(self, x):
            q = self.rotated(self.q(x).reshape([-1, self.length, self.heads, self.head]))
            k = self.rotated(self.k(x).reshape([-1, self.length, self.groups, self.head]))
            v = self.v(x).reshape([-1, self.length, self.groups, self.head])
            k, v = (paddle.repeat_interleave(t, self.heads // self.groups, axis=2) for t in (k, v))
            q, k, v = (paddle.transpose(t, [0, 2, 1, 3]) for t in (q, k, v))
            scores = paddle.matmul(q, k, transpose_y=True) * self.head ** -0.5
            scores = scores + paddle.triu(paddle.full([self.length, self.length], -1e9), 1)
            mixed = paddle.matmul(F.softmax(scores), v)
            return self.o(paddle.transpose(mixed, [0, 2, 1, 3]).reshape([-1, self.length, self.heads * self.head]))

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            y = self.norm2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    class Branching(nn.Layer):
        """An `if` and a `while` that depend on tensors."""

        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x, steps):
            y = self.fc(x)
            if y.mean() > 0:
                y = y * 2
            else:
                y = y - 1
            i = paddle.zeros([], "int64")
            while i < steps:
                y = F.tanh(y) + x
                i = i + 1
            return y, i

    class Functions(nn.Layer):
        """Functions that Paddle has one operator for."""

        def forward(self, x, image):
            y = F.elu(x) + F.selu(x) + F.celu(x, 0.7) + F.leaky_relu(x, 0.2) + F.hardswish(x) + F.hardsigmoid(x)
            y = y + F.hardtanh(x) + F.hardshrink(x) + F.softshrink(x) + F.tanhshrink(x) + F.softplus(x, 2.0, 1.0)
            y = y + F.softsign(x) + F.mish(x) + F.swish(x) + F.thresholded_relu(x) + F.relu6(x * 4)
            losses = [F.l1_loss(x, y), F.smooth_l1_loss(x, y, delta=0.5), F.kl_div(F.log_softmax(x), F.softmax(y)),
                      F.binary_cross_entropy(F.sigmoid(x), F.sigmoid(y)),
                      F.binary_cross_entropy_with_logits(x, F.sigmoid(y)),
                      F.nll_loss(F.log_softmax(x), paddle.argmax(y, axis=1)),
                      F.cross_entropy(x, F.softmax(y), soft_label=True)]
            part = paddle.bmm(image[:, 0], image[:, 1]) + paddle.einsum("bij,bjk->bik", image[:, 2], image[:, 3])
            rows = paddle.tile(F.normalize(y), [1, 2]) + paddle.repeat_interleave(y, 2, axis=1)
            picked = paddle.take_along_axis(y, paddle.argsort(x, axis=1), 1)
            layers = F.maxout(image, 2).sum([2, 3]) + paddle.diagonal(image, axis1=2, axis2=3).sum(2)[:, :2]
            big = F.interpolate(image, scale_factor=2, mode="nearest")
            big = big + F.interpolate(image, size=[8, 8], mode="bilinear") * F.pad(image, [2, 2, 1, 3])
            return [y, paddle.stack(losses), part, rows, picked, layers, big, F.pixel_shuffle(image, 2)]

    class Whole(nn.Layer):
        """An encoder and a decoder."""

        def __init__(self):
            super().__init__()
            self.net = nn.Transformer(16, 4, 1, 1, 32, dropout=0.1)

        def forward(self, source, target):
            return self.net(source, target)

    def pictures(name, size, how):
        net = getattr(paddle.vision.models, name)(num_classes=7, **how)
        batches = (1, 3)
        return Model(net, [([None, 3, size, size], "float32", "image")],
                     [[normal(n, 3, size, size)] for n in batches])

    def words(n, length, top):
        return rng.integers(0, top, (n, length))

    def branching():
        return Model(Branching(), [([None, 4], "float32", "x"), ([], "int64", "steps")],
                     [[normal(3, 4) + shift, np.int64(n)] for shift, n in ((3, 0), (-3, 4))])

    def bert():
        places = np.arange(7)[None]
        return Model(Bert(), [([None, 7], "int64", "words"), ([None, 7], "int64", "places")],
                     [[words(n, 7, 31) * (np.arange(7) < 5), places.repeat(n, 0)] for n in (1, 4)])

    return {
        "MLP, float32": lambda: mlp("float32"),
        "MLP, float64": lambda: mlp("float64"),
        "CNN (conv, batch norm, pools)": cnn,
        "LSTM (2 layers, both ways)": lambda: Model(Tagger(), [([None, 7], "int64", "words")],
                                                   [[words(n, 7, 23)] for n in (1, 4)]),
        "GRU, lengths that differ": lambda: Model(
            Reader(), [([None, 5, 4], "float32", "x"), ([None], "int64", "lengths")],
            [[normal(3, 5, 4), np.array([5, 1, 3])], [normal(1, 5, 4), np.array([2])]]),
        "attention, any length": lambda: Model(Attention(), [([None, None, 8], "float32", "x")],
                                               [[normal(2, 5, 8)], [normal(1, 9, 8)]]),
        "BERT layer": bert,
        "Llama block": lambda: Model(Llama(), [([None, 6, 16], "float32", "x")], [[normal(n, 6, 16)] for n in (1, 3)]),
        "tensor if and while": branching,
        "Transformer": lambda: Model(
            Whole(), [([None, 5, 16], "float32", "source"), ([None, 7, 16], "float32", "target")],
            [[normal(n, 5, 16), normal(n, 7, 16)] for n in (1, 3)]),
        "functions that are one operator": lambda: Model(
            Functions(), [([None, 6], "float32", "x"), ([None, 4, 4, 4], "float32", "image")],
            [[normal(n, 6), normal(n, 4, 4, 4)] for n in (2, 3)]),
        **{name: functools.partial(pictures, *how) for name, how in PADDLES.items()},
    }


#: what stands in the table for a model that is not there
NOT_HERE = "-"


def specs_of(paddle, model):
    return [paddle.static.InputSpec(shape, dtype, name) for shape, dtype, name in model.specs]


def arrays(outputs):
    """The results of a call, as a flat list of arrays."""
    if isinstance(outputs, (list, tuple)):
        return [a for x in outputs for a in arrays(x)]
    return [np.asarray(outputs.numpy())]


def save_all(paddle, folder):
    """Save every model, and beside it what it computes: `<number>.npz`.

    Returns name -> error, None where it went well, NOT_HERE for a model that this `paddle` does not come with.

    The answers are those of the layer itself in evaluation mode, not of the program.
    """
    found = {}
    for i, (name, make) in enumerate(models(paddle).items()):
        if name in PADDLES and not hasattr(paddle.vision.models, PADDLES[name][0]):
            found[name] = NOT_HERE
            continue
        try:
            paddle.seed(i)
            model = make()
            model.layer.eval()
            kept = {f"call{c}_out{j}": a for c, call in enumerate(model.calls)
                    for j, a in enumerate(arrays(model.layer(*map(paddle.to_tensor, call))))}
            kept |= {f"call{c}_in{j}": a for c, call in enumerate(model.calls) for j, a in enumerate(call)}
            np.savez(f"{folder}/{i}.npz", **kept)
            paddle.jit.save(model.layer, f"{folder}/{i}", specs_of(paddle, model))
            found[name] = None
        except Exception as error:          # one model that fails is one row of the table
            found[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[-1][:300]}"
    return found


def calls_of(folder, i):
    """(inputs, expected outputs) of each call that was saved beside model number `i`."""
    with np.load(f"{folder}/{i}.npz") as kept:
        for c in range(len({key.split("_")[0] for key in kept})):
            yield [[kept[f"call{c}_{role}{j}"] for j in range(sum(k.startswith(f"call{c}_{role}") for k in kept))]
                   for role in ("in", "out")]


def difference(got, expected):
    """The largest relative difference; shapes and dtypes must be the same."""
    worst = 0.0
    for a, b in zip(got, expected, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ValueError(f"expected {b.dtype}{list(b.shape)}, got {a.dtype}{list(a.shape)}")
        if a.size:
            wide = np.abs(a.astype("float64") - b.astype("float64")).max()
            worst = max(worst, float(wide / max(1e-12, np.abs(b.astype("float64")).max())))
    return worst
