"""Static programs whose text is compared.  `paddle` is the real one or minipd; neither is imported here.

Run by a Python with the real Paddle, `programs.py FILE` writes all its texts, and the gradients that it computes.
"""

import json
import sys

import numpy as np

#: name -> a function of paddle that builds a program with static.data, and returns the loss if it can be differentiated
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def data(paddle, name="x", shape=(2, 6), dtype="float32", stop=False):
    x = paddle.static.data(name, list(shape), dtype)
    x.stop_gradient = stop
    return x


@program
def scalars(p):
    x = data(p)
    return ((x * 2 + 1 - 3) * 0.5).sum()


@program
def scalars_on_the_left(p):
    x = data(p)
    return (1 - x).mean() + (2.0 * x).sum()


@program
def negation(p):
    return (-data(p)).sum()


@program
def divided(p):
    return (data(p) / 4).sum()


@program
def pairs(p):
    x, y = data(p), data(p, "y", [1, 6])
    return ((x + y) * (x - y) / (y * y + 1)).mean()


@program
def open_batch(p):
    x = data(p, shape=[-1, 6])
    return (x * x).sum()


@program
def unary(p):
    x = data(p)
    return (p.exp(x) + p.tanh(x) + p.sin(x) + p.cos(x)).sum()


@program
def roots(p):
    x = data(p)
    y = x * x + 1
    return (p.sqrt(y) + p.rsqrt(y) + p.log(y) + p.square(x) + p.abs(x)).sum()


@program
def activations(p):
    F, x = p.nn.functional, data(p)
    return (F.relu(x) + F.sigmoid(x) + F.silu(x) + F.gelu(x)).sum()


@program
def softmaxes(p):
    F, x = p.nn.functional, data(p)
    return (F.softmax(x) * F.log_softmax(x)).sum()


@program
def softmax_first(p):
    return (p.nn.functional.softmax(data(p), axis=0) * data(p, "y")).sum()


@program
def sums(p):
    x = data(p, shape=[2, 3, 4])
    return x.sum(axis=1).mean() + x.sum(axis=[0, 2], keepdim=True).sum() + x.sum(axis=-1).sum()


@program
def means(p):
    x = data(p, shape=[2, 3, 4])
    return x.mean(axis=-1, keepdim=True).sum() + p.mean(x, axis=[0, 1]).sum() + x.mean()


@program
def extremes(p):
    x = data(p)
    return x.max(axis=-1).sum() + x.min(axis=0).sum() + x.max()


@program
def products(p):
    x = data(p)
    return p.prod(x) + p.prod(x, axis=1).sum()


@program
def log_sums(p):
    return p.logsumexp(data(p), axis=1).sum()


@program
def matmuls(p):
    x, w = data(p), data(p, "w", [6, 3])
    return (p.matmul(x, w) @ p.matmul(w, x, True, True)).sum()


@program
def linear(p):
    net = p.nn.Linear(6, 4)
    return net(data(p, shape=[-1, 6])).mean()


@program
def two_layers(p):
    net = p.nn.Sequential(p.nn.Linear(6, 4), p.nn.ReLU(), p.nn.Linear(4, 2))
    return net(data(p)).mean()


@program
def rms_norm(p):
    x, w = data(p, shape=[-1, 6]), p.create_parameter([6], "float32", name="scale")
    return (x * p.rsqrt(p.mean(x * x, axis=-1, keepdim=True) + 1e-6) * w).sum()


@program
def layer_norm(p):
    return (p.nn.LayerNorm(6)(data(p)) * data(p, "y")).sum()


@program
def cross_entropy(p):
    label = data(p, "label", [2, 1], "int64", stop=True)
    return p.nn.functional.cross_entropy(data(p), label)


@program
def cross_entropy_of_flat_labels(p):
    label = data(p, "label", [2], "int64", stop=True)
    return p.nn.functional.cross_entropy(data(p), label)


@program
def squared_error(p):
    return p.nn.functional.mse_loss(data(p), data(p, "y"))


@program
def embedding(p):
    ids = data(p, "ids", [2, 3], "int64", stop=True)
    return p.nn.Embedding(10, 4)(ids).sum()


@program
def reshaped(p):
    return (p.reshape(data(p), [3, 4]) * 2.0).sum()


@program
def reshaped_with_the_rest(p):
    return (p.reshape(data(p), [-1, 4]) * 2.0).sum()


@program
def transposed(p):
    x = data(p)
    return (p.transpose(x, [1, 0]) @ x).sum()


@program
def squeezed(p):
    x = data(p, shape=[2, 1, 3])
    return (p.squeeze(x, 1) * p.unsqueeze(data(p, "y", [3]), 0)).sum()


@program
def unsqueezed_at_the_end(p):
    return (p.unsqueeze(data(p), -1) * 2.0).sum()


@program
def joined(p):
    x = data(p)
    return (p.concat([x, x * 2], axis=1) * 3.0).sum()


@program
def joined_at_the_end(p):
    x = data(p)
    return (p.concat([x, x], axis=-1) * 3.0).sum()


@program
def stacked(p):
    x = data(p)
    return (p.stack([x, x * 2]) * 3.0).sum()


@program
def split_in_two(p):
    a, b = p.split(data(p), 2, axis=1)
    return (a * b).sum()


@program
def split_in_sections(p):
    a, b = p.split(data(p), [2, 4], axis=1)
    return a.sum() + (b * b).sum()


@program
def sliced(p):
    x = data(p)
    return (x[:, 1:4] * 2.0).sum()


@program
def one_row(p):
    return (data(p)[0] * 2.0).sum()


@program
def last_column(p):
    return (data(p)[:, -1] * 2.0).sum()


@program
def every_second(p):
    return (data(p)[:, ::2] * 2.0).sum()


@program
def new_axis(p):
    return (data(p)[:, None] * 2.0).sum()


@program
def expanded(p):
    return (p.expand(data(p, shape=[1, 6]), [3, 6]) * data(p, "y", [3, 6])).sum()


@program
def flattened(p):
    return (p.flatten(data(p, shape=[2, 3, 4]), 1) * 2.0).sum()


@program
def tiled(p):
    return (p.tile(data(p), [2, 1]) * 2.0).sum()


@program
def clipped(p):
    return p.clip(data(p), -0.5, 0.5).sum()


@program
def masked(p):
    x = data(p)
    return p.where(x > 0, x, x * 0.5).sum()


@program
def compared(p):
    x, y = data(p), data(p, "y")
    p.logical_and(x < y, p.logical_not(x >= y))


@program
def cast(p):
    return (data(p).astype("float64") * 2.0).sum()


@program
def powers(p):
    return (p.pow(data(p), 2.0) + data(p, "y") ** 3).sum()


@program
def gathered(p):
    index = data(p, "index", [3], "int64", stop=True)
    return (p.gather(data(p), index, axis=1) * 2.0).sum()


@program
def chosen(p):
    x = data(p)
    p.argmax(x, axis=-1)
    p.topk(x, 2)
    p.cumsum(x, axis=1)


@program
def triangles(p):
    x = data(p, shape=[3, 3])
    return (p.tril(x) + p.triu(x, 1) * 2.0).sum()


@program
def made(p):
    x = data(p)
    return (x + p.ones([2, 6]) + p.zeros([6]) + p.full([1], 2.5)).sum()


@program
def ranges(p):
    p.arange(0, 10, 2)
    p.linspace(0, 1, 5)


@program
def likes(p):
    x = data(p)
    return (x * p.ones_like(x) + p.full_like(x, 3.0)).sum()


@program
def convolved(p):
    x = data(p, shape=[2, 3, 8, 8])
    return p.nn.functional.avg_pool2d(p.nn.Conv2D(3, 4, 3, padding=1)(x), 2).mean()


@program
def depthwise(p):
    x, w = data(p, shape=[2, 3, 8, 8]), data(p, "w", [3, 1, 3, 3])
    return p.nn.functional.conv2d(x, w, groups=3, stride=2).sum()


@program
def max_pooled(p):
    return p.nn.functional.max_pool2d(data(p, shape=[2, 3, 8, 8]), 2).sum()


@program
def dropped(p):
    p.nn.functional.dropout(data(p), 0.3).sum()


@program
def drawn(p):
    p.uniform([2, 3], min=-1.0, max=1.0)
    p.randn([2, 3])
    p.randint(0, 5, [4])
    p.randperm(5)


@program
def branches(p):
    x = data(p)
    return p.static.nn.cond(x.mean() > 0, lambda: x * x, lambda: x - 1).sum()


@program
def loop(p):
    x = data(p, stop=True)
    i = p.full([], 0, "int64")
    i, y = p.static.nn.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, y * 2], [i, x])
    y.sum()


@program
def attention(p):
    q, k, v = (data(p, name, [2, 3, 4]) for name in "qkv")
    weights = p.nn.functional.softmax(p.matmul(q, k, transpose_y=True) * 0.5)
    return p.matmul(weights, v).sum()


@program
def variance(p):
    return p.var(data(p), axis=1).sum()


@program
def norms(p):
    return p.norm(data(p))


@program
def batch_norm(p):
    return (p.nn.BatchNorm2D(3)(data(p, shape=[2, 3, 4, 4])) * data(p, "y", [2, 3, 4, 4])).sum()


@program
def swiglu(p):
    return (p.nn.functional.silu(data(p)) * data(p, "y")).sum()


@program
def lerp_and_norms_of_rows(p):
    x, y = data(p), data(p, "y")
    return (p.maximum(x, y) + p.minimum(x, y) + p.floor(x)).sum()


def build(paddle, function):
    """(main program, startup program, loss or None)."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        loss = function(paddle)
    return main, startup, loss


def feeds_of(main):
    """The same numbers for the same inputs, in both."""
    rng = np.random.default_rng(5)
    found = {}
    for op in main.global_block().ops:
        if op.name() == "pd_op.data" and op.results()[0].persistable is False:
            shape = [3 if d < 0 else d for d in op.results()[0].shape]
            kind = str(op.results()[0].dtype)
            name = op.attrs()["name"]
            found[name] = (rng.integers(0, 2, shape).astype("int64") if "int64" in kind
                           else rng.standard_normal(shape).astype("float32"))
    return found


def with_gradients(paddle, function):
    """The text of the program with gradients of its inputs, its feeds, and the gradients' values."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    paddle.seed(3)
    with paddle.static.program_guard(main, startup):
        loss = function(paddle)
        wrt = [op.results()[0] for op in main.global_block().ops
               if op.name() in ("pd_op.data", "builtin.parameter") and not op.results()[0].stop_gradient]
        grads = paddle.static.gradients([loss], wrt)
    pairs = [(w, g) for w, g in zip(wrt, grads, strict=True) if g is not None]
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(startup)
    feeds = feeds_of(main)
    text = str(main)
    parameters = {op.attrs()["parameter_name"]: i for i, op in enumerate(main.global_block().ops)
                  if op.name() == "builtin.parameter"}
    read = [main.global_block().ops[i].results()[0] for i in parameters.values()]
    values = executor.run(main, feed=feeds, fetch_list=[loss, *(g for _, g in pairs), *read])
    ops = main.global_block().ops
    places = [[(i, j) for i, op in enumerate(ops) for j, r in enumerate(op.results()) if r.is_same(v)][0]
              for v in (loss, *(g for _, g in pairs))]
    n = len(places)
    return {"text": text, "feeds": {k: v.tolist() for k, v in feeds.items()}, "places": places,
            "values": [v.tolist() for v in values[:n]],
            "parameters": {k: v.tolist() for k, v in zip(parameters, values[n:], strict=True)}}


def main(path):
    import paddle
    paddle.enable_static()
    found = {}
    for name, function in PROGRAMS.items():
        built, startup, loss = build(paddle, function)
        found[name] = {"main": str(built), "startup": str(startup)}
        if loss is not None:
            found[name]["backward"] = with_gradients(paddle, function)
    with open(path, "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1])
