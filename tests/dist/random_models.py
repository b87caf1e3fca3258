"""Small random models, and random ways to lay them out over a mesh: material for tests.

A model is a list of layers, drawn with a seed; each is a function of a tensor and of its parameters, written as a user
would write it, so that the same code runs on one rank and on many, eagerly and traced.  All is float64.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import minipd as paddle
from minipd.dist.api import reshard
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.placements import Partial, Placement, Replicate, Shard
from minipd.nn import functional as F

#: One axis and two, of sizes that do not divide the tensors'; with an axis of one rank; with more ranks than rows.
MESHES = ("x=2", "x=3", "x=4", "x=2,y=2", "x=2,y=3", "x=1,y=2", "x=3,y=2", "x=5", "x=2,y=2,z=2")
LAYERS: list[Callable] = []


class Layer(NamedTuple):
    """parameters: names -> values.  run(x, parameters) -> x."""

    name: str
    parameters: dict[str, np.ndarray]
    run: Callable[[Any, dict[str, Any]], Any]


class Model(NamedTuple):
    """data: what the first layer gets.  labels: what the loss is taken with, if it is one of classes."""

    data: np.ndarray
    layers: list[Layer]
    loss: Layer
    update: str                     # the optimizer

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        return {n: v for layer in (*self.layers, self.loss) for n, v in layer.parameters.items()}

    def __str__(self) -> str:
        return " -> ".join([str(list(self.data.shape)), *(layer.name for layer in self.layers), self.loss.name,
                            self.update])


class Drawing:
    """Draws a model: knows the shape so far, and names the parameters."""

    def __init__(self, rng: np.random.Generator):
        self.rng, self.count = rng, 0
        self.shape: tuple[int, ...] = ()

    def one(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def size(self, low: int = 1, high: int = 7) -> int:
        return int(self.rng.integers(low, high))

    def axis(self) -> int:
        return int(self.rng.integers(len(self.shape)))

    def values(self, *shape: int, scale: float = 0.7) -> np.ndarray:
        return self.rng.normal(size=shape) * scale

    def layer(self, name: str, run: Callable, **parameters: np.ndarray) -> Layer:
        """A layer whose `run` takes its parameters by the names given here."""
        self.count += 1
        names = {short: f"{name}{self.count}.{short}" for short in parameters}
        return Layer(name, {names[short]: v for short, v in parameters.items()},
                     lambda x, held: run(x, **{short: held[n] for short, n in names.items()}))


def layer(draw: Callable) -> Callable:
    LAYERS.append(draw)
    return draw


# ------------------------------------------------------- layers; None where they do not fit the shape
@layer
def linear(d: Drawing) -> Layer:
    n = d.size(2)
    if d.rng.random() < 0.3:
        return d.layer("matmul", paddle.matmul, y=d.values(d.shape[-1], n))
    return d.layer("linear", F.linear, weight=d.values(d.shape[-1], n), bias=d.values(n))


@layer
def mlp(d: Drawing) -> Layer:
    hidden, act = d.size(2, 9), d.one(F.relu, F.gelu, F.silu, F.tanh, F.sigmoid)
    return d.layer("mlp", lambda x, up, b, down: x + F.linear(act(F.linear(x, up, b)), down),
                   up=d.values(d.shape[-1], hidden), b=d.values(hidden), down=d.values(hidden, d.shape[-1]))


@layer
def gated(d: Drawing) -> Layer:
    hidden = d.size(2, 5)
    return d.layer("gated", lambda x, up, down: F.linear(F.swiglu(*paddle.split(F.linear(x, up), 2, axis=-1)), down),
                   up=d.values(d.shape[-1], 2 * hidden), down=d.values(hidden, d.shape[-1]))


@layer
def norm(d: Drawing) -> Layer:
    n = d.shape[-1]
    if d.rng.random() < 0.5:
        return d.layer("layer_norm", lambda x, w, b: F.layer_norm(x, [n], w, b, 1e-3), w=d.values(n), b=d.values(n))
    return d.layer("rms_norm", lambda x, w: F.rms_norm(x, [n], w, 1e-3), w=d.values(n))


@layer
def attention(d: Drawing) -> Layer | None:
    if len(d.shape) != 3:
        return None
    b, s, width = d.shape
    heads, size, causal = d.size(1, 4), d.size(1, 4), bool(d.rng.integers(2))

    def run(x: Any, qkv: Any, out: Any) -> Any:
        q, k, v = paddle.split(paddle.matmul(x, qkv), 3, axis=-1)
        q, k, v = (t.reshape([b, s, heads, size]) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return x + paddle.matmul(y.reshape([b, s, heads * size]), out)
    return d.layer("attention", run, qkv=d.values(width, 3 * heads * size), out=d.values(heads * size, width))


@layer
def attention_by_hand(d: Drawing) -> Layer | None:
    if len(d.shape) != 3:
        return None

    def run(x: Any, q: Any, k: Any) -> Any:
        scores = paddle.matmul(x @ q, x @ k, transpose_y=True) * 0.5
        mask = paddle.tril(paddle.ones_like(scores))
        return paddle.matmul(F.softmax(paddle.where(mask > 0, scores, paddle.full_like(scores, -1e9)), axis=-1), x)
    return d.layer("scores", run, q=d.values(d.shape[-1], 3), k=d.values(d.shape[-1], 3))


@layer
def convolution(d: Drawing) -> Layer | None:
    if len(d.shape) != 4 or min(d.shape[2:]) < 2:
        return None
    n, stride, padding = d.size(1, 5), d.size(1, 3), d.size(0, 2)
    return d.layer("conv", lambda x, w, b: F.conv2d(x, w, b, stride=stride, padding=padding),
                   w=d.values(n, d.shape[1], 2, 2), b=d.values(n))


@layer
def pooling(d: Drawing) -> Layer | None:
    if len(d.shape) != 4 or min(d.shape[2:]) < 2:
        return None
    pool = d.one(F.max_pool2d, F.avg_pool2d)
    return d.layer(pool.__name__, lambda x: pool(x, 2, stride=1))


@layer
def channels(d: Drawing) -> Layer | None:
    if len(d.shape) != 4 or d.shape[1] % 2:
        return None
    c = d.shape[1]
    return d.layer("group_norm", lambda x, w, b: F.group_norm(x, 2, 1e-3, w, b), w=d.values(c), b=d.values(c))


@layer
def softmax(d: Drawing) -> Layer:
    f, axis = d.one(F.softmax, F.log_softmax), d.axis()
    return d.layer(f"{f.__name__}({axis})", lambda x: f(x, axis=axis))


@layer
def elementwise(d: Drawing) -> Layer:
    name, f = d.one(("tanh", paddle.tanh), ("square", paddle.square), ("abs", paddle.abs),
                    ("affine", lambda x: 3 - 2 * x),
                    ("sqrt", lambda x: paddle.sqrt(x * x + 1.0)), ("clip", lambda x: paddle.clip(x, -0.9, 0.8)),
                    ("leaky_relu", F.leaky_relu), ("where", lambda x: paddle.where(x > 0, x, -0.3 * x)),
                    ("divide", lambda x: x / (1.0 + x * x)), ("exp", lambda x: paddle.exp(0.3 * paddle.tanh(x))))
    return d.layer(name, f)


@layer
def scaled(d: Drawing) -> Layer:
    """By a parameter that broadcasts: of the last dimensions, some of size 1."""
    own = [n if d.rng.random() < 0.6 else 1 for n in d.shape[d.axis():]]
    return d.layer("scaled", lambda x, by: x * by + by, by=d.values(*own))


@layer
def centred(d: Drawing) -> Layer:
    """Less a reduction of itself."""
    name, axis = d.one("mean", "sum", "max", "min", "logsumexp"), d.axis()
    return d.layer(f"less_{name}({axis})", lambda x: x - getattr(paddle, name)(x, axis=axis, keepdim=True))


@layer
def reduced(d: Drawing) -> Layer | None:
    if len(d.shape) < 3:
        return None
    name, axis = d.one("mean", "sum", "max", "prod"), d.axis()
    return d.layer(f"{name}({axis})", lambda x: getattr(paddle, name)(paddle.tanh(x), axis=axis))


@layer
def transposed(d: Drawing) -> Layer:
    perm = [int(i) for i in d.rng.permutation(len(d.shape))]
    return d.layer(f"transpose{perm}", lambda x: paddle.transpose(x, perm))


@layer
def reshaped(d: Drawing) -> Layer:
    shape = list(d.shape)
    at = d.axis()
    if len(shape) > 1 and (d.rng.random() < 0.5 or shape[at] < 4):
        at = min(at, len(shape) - 2)
        shape[at:at + 2] = [shape[at] * shape[at + 1]]
    else:
        factor = d.one(*[k for k in range(1, shape[at] + 1) if shape[at] % k == 0])
        shape[at:at + 1] = [factor, shape[at] // factor]
    return d.layer(f"reshape{shape}", lambda x: x.reshape(shape))


@layer
def joined(d: Drawing) -> Layer:
    axis, shape = d.axis(), list(d.shape)
    shape[axis] = d.size(1, 4)
    if d.rng.random() < 0.3:
        return d.layer(f"stack({axis})", lambda x: paddle.stack([x, paddle.tanh(x)], axis=axis).sum(axis=axis))
    return d.layer(f"concat({axis})", lambda x, other: paddle.concat([x, other, x * 0.5], axis=axis),
                   other=d.values(*shape))


@layer
def taken_apart(d: Drawing) -> Layer | None:
    axis = d.axis()
    if d.shape[axis] % 2:
        return None
    return d.layer(f"split({axis})", lambda x: functools.reduce(lambda a, b: a * paddle.sigmoid(b),
                                                                paddle.split(x, 2, axis=axis)))


@layer
def indexed(d: Drawing) -> Layer | None:
    axis = d.axis()
    n = d.shape[axis]
    if n < 3:
        return None
    some = [int(i) for i in d.rng.integers(0, n, 3)]
    where = (slice(None),) * axis
    name, f = d.one(("[1:]", lambda x: x[(*where, slice(1, None))]),
                    ("[::2]", lambda x: x[(*where, slice(None, None, 2))]),
                    ("[::-1]", lambda x: x[(*where, slice(None, None, -1))]),
                    ("index_select", lambda x: paddle.index_select(x, paddle.to_tensor(some), axis=axis)),
                    ("gather", lambda x: paddle.gather(x, paddle.to_tensor(some), axis=axis)),
                    ("roll", lambda x: paddle.roll(x, 1, axis=axis)), ("flip", lambda x: paddle.flip(x, [axis])),
                    ("cumsum", lambda x: paddle.cumsum(x, axis=axis)), ("sort", lambda x: paddle.sort(x, axis=axis)),
                    ("topk", lambda x: paddle.topk(x, 2, axis=axis)[0]),
                    *([("[0]", lambda x: x[(*where, 0)]), ("unbind", lambda x: paddle.unbind(x, axis)[1] * 2.0)]
                      if len(d.shape) > 2 else []))
    return d.layer(f"{name}({axis})", f)


@layer
def written(d: Drawing) -> Layer | None:
    axis = d.axis()
    if d.shape[axis] < 2:
        return None

    def run(x: Any, value: Any) -> Any:
        y = x * 1.0
        y[(slice(None),) * axis + (slice(0, 1),)] = value
        return y
    return d.layer(f"write({axis})", run, value=d.values(1))


@layer
def dropout(d: Drawing) -> Layer:
    return d.layer("dropout", lambda x: F.dropout(x, 0.3))


@layer
def padded(d: Drawing) -> Layer:
    pads = [int(i) for i in d.rng.integers(0, 2, 2 * len(d.shape))]
    return d.layer("pad", lambda x: F.pad(x, pads))


@layer
def tiled(d: Drawing) -> Layer:
    n = d.one("expand", "tile", "unsqueeze")
    if n == "tile":
        return d.layer("tile", lambda x: paddle.tile(x, [2, *[1] * (x.ndim - 1)]))
    if n == "expand":
        return d.layer("expand", lambda x: paddle.expand(x.unsqueeze(0), [2, *x.shape]).mean(axis=0))
    return d.layer("unsqueeze", lambda x: (x.unsqueeze(1) * 2.0).squeeze(1))


@layer
def contracted(d: Drawing) -> Layer | None:
    if len(d.shape) != 3:
        return None
    return d.layer("einsum", lambda x, w: paddle.einsum("bsd,dk->bks", x, w), w=d.values(d.shape[-1], 3))


def drawn_loss(d: Drawing) -> Layer:
    kinds: list[tuple[str, Callable]] = [
        ("mean", lambda x: (x * x).mean()), ("sum", lambda x: paddle.tanh(x).sum()), ("max", lambda x: (x * x).max()),
        ("logsumexp", paddle.logsumexp), ("mean of means", lambda x: x.mean(axis=-1).square().mean()),
        ("std", lambda x: (x.var() + 0.1).sqrt()), ("norm", lambda x: paddle.linalg.norm(x + 0.5))]
    classes = d.shape[-1]
    labels = d.rng.integers(0, classes, d.shape[:-1])
    if labels.size > 1:
        labels.flat[0] = -100
    kinds += 2 * [("cross_entropy", lambda x: F.cross_entropy(x, paddle.to_tensor(labels)))]
    name, f = d.one(*kinds)
    return d.layer(name, f)


def random_model(seed: int) -> Model:
    rng = np.random.default_rng(seed)
    d = Drawing(rng)
    layers = []
    start = d.one("tokens", "rows", "sequences", "sequences", "pictures")
    if start == "tokens":
        data = rng.integers(0, 7, (d.size(1, 5), d.size(2, 6)))
        layers.append(d.layer("embedding", F.embedding, weight=d.values(7, d.size(2, 7))))
    else:
        data = d.values(*{"rows": [d.size(1, 8), d.size(2, 8)], "sequences": [d.size(1, 5), d.size(2, 6), d.size(2, 7)],
                          "pictures": [d.size(1, 4), d.size(1, 4), d.size(3, 6), d.size(3, 6)]}[start])
    x = paddle.to_tensor(data)
    with paddle.no_grad():
        if layers:
            x = layers[0].run(x, held(layers[0]))
        while len(layers) < 2 + seed % 4:
            d.shape = tuple(x.shape)
            found = LAYERS[rng.integers(len(LAYERS))](d)
            if found is not None:
                y = found.run(x, held(found))
                if 1 < y.ndim < 6 and 1 < y.size < 3000:
                    layers.append(found)
                    x = y
    d.shape = tuple(x.shape)
    if not any(each.parameters for each in layers):
        layers.append(d.layer("bias", lambda x, b: x + b, b=d.values(d.shape[-1])))
    return Model(data, layers, drawn_loss(d), d.one("SGD", "AdamW", "Momentum", "clipped"))


def held(layer: Layer) -> dict[str, Any]:
    return {n: paddle.to_tensor(v) for n, v in layer.parameters.items()}


def optimizer(model: Model, parameters: list[Any]) -> Any:
    if model.update == "AdamW":         # its step is 1/epsilon times as uncertain as a gradient that is nearly 0
        return paddle.optimizer.AdamW(0.1, epsilon=1e-2, parameters=parameters)
    if model.update == "Momentum":
        return paddle.optimizer.Momentum(0.1, parameters=parameters)
    clip = paddle.nn.ClipGradByGlobalNorm(0.5) if model.update == "clipped" else None
    return paddle.optimizer.SGD(0.1, parameters=parameters, grad_clip=clip)


# ------------------------------------------------------------------------------------------------------- layouts
class Layout(NamedTuple):
    """mesh: as text.  stage: of each layer, the last one for the loss.  moves: layers after which the tensor is
    resharded, and to what."""

    mesh: str
    stages: list[int]
    data: tuple[Placement, ...]
    parameters: dict[str, tuple[Placement, ...]]
    moves: dict[int, tuple[Placement, ...]]

    def stage(self, n: int) -> ProcessMesh:
        """The mesh of a stage: half of the ranks each, where there are two."""
        grid = parse_mesh(self.mesh)
        return grid[n] if max(self.stages) else grid

    @property
    def axes(self) -> int:
        return parse_mesh(self.mesh).ndim - bool(max(self.stages))


def random_layout(model: Model, seed: int, stages: bool = True, partial: bool = True) -> Layout:
    """stages: some are on two meshes.  partial: the data may be given in parts."""
    rng = np.random.default_rng(seed)
    count = len(model.layers)
    cut = int(rng.integers(1, count + 1)) if stages and rng.random() < 0.2 else count + 1
    mesh = MESHES[rng.integers(len(MESHES))]
    if cut <= count:
        mesh = ("pp=2,x=2", "pp=2,x=3", "pp=2,x=2,y=2", "pp=2,x=1")[rng.integers(4)]
    ways = parse_mesh(mesh).ndim - (cut <= count)

    def placed(shape: Sequence[int], *more: Placement) -> tuple[Placement, ...]:
        choices = [Replicate(), *(Shard(i) for i in range(len(shape))), *more]
        found = [choices[rng.integers(len(choices))] for _ in range(ways)]
        if rng.random() < 0.3:              # axes that split one dimension do so in any order; one, part by part
            order = rng.permutation(ways)
            found = [Shard(p.dim, shard_order=int(order[i])) if isinstance(p, Shard) else p
                     for i, p in enumerate(found)]
        elif rng.random() < 0.3:
            found = [Shard(p.dim, split_factor=2) if isinstance(p, Shard) and shape[p.dim] % 2 == 0 and
                     found.count(p) == 1 else p for p in found]
        return tuple(found)
    parts = (Partial(), Partial("avg"))
    x, shapes = paddle.to_tensor(model.data), []
    with paddle.no_grad():
        for each in model.layers:
            x = each.run(x, held(each))
            shapes.append(x.shape)
    moves = {i: placed(shape, *parts) for i, shape in enumerate(shapes) if rng.random() < 0.3 or i == cut - 1}
    data = parts if partial and model.data.dtype.kind == "f" else ()
    return Layout(mesh, [int(i >= cut) for i in range(count + 1)], placed(model.data.shape, *data),
                  {n: placed(v.shape) for n, v in model.parameters.items()}, moves)


def forward(model: Model, x: Any, held: dict[str, Any], layout: Layout | None = None) -> Any:
    """The loss; with a layout, of distributed tensors."""
    for i, each in enumerate(model.layers):
        x = each.run(x, held)
        if layout is not None and i in layout.moves:
            x = reshard(x, layout.stage(layout.stages[i + 1]), layout.moves[i])
    return model.loss.run(x, held)
