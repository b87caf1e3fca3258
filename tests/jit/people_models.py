"""Models, caches, loops and optimizers, as people write them (see `test_as_people_write`)."""

import copy
import threading

import numpy as np

import minipd as paddle
from tests.jit.people import F, T, X, case, mlp, nn, val


@case
def training_loop(compiled):
    net = mlp()
    net = compiled(net)
    opt = paddle.optimizer.Adam(0.1, parameters=net.parameters())
    out = []
    for i in range(4):
        loss = ((net(X(5, 3, seed=i)) - 1) ** 2).mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        out.append(float(loss))
    return out


@case
def kv_cache(compiled):
    class Dec(nn.Layer):

        def __init__(s):
            super().__init__()
            paddle.seed(0)
            s.q = nn.Linear(3, 3)
            s.k = nn.Linear(3, 3)

        def forward(s, x, cache):
            k = s.k(x)
            cache.append(k)
            ks = paddle.stack(cache, 0)
            a = F.softmax((ks * s.q(x)).sum(-1), 0)
            return (a.unsqueeze(-1) * ks).sum(0)
    d = Dec()
    f = compiled(d)
    cache = []
    x = X(3)
    out = []
    for _ in range(4):
        x = f(x, cache)
        out.append(val(x))
    return out, [val(c) for c in cache]


@case
def kv_cache_layer_attr(compiled):
    class Dec(nn.Layer):

        def __init__(s):
            super().__init__()
            s.cache = None

        def forward(s, x):
            s.cache = x if s.cache is None else paddle.concat([s.cache, x], 0)
            return s.cache.sum(0)
    d = Dec()
    f = compiled(d)
    return [val(f(X(1, 2, seed=i))) for i in range(4)], val(d.cache)


@case
def mask_early_exit(compiled):
    @compiled
    def f(x):
        for i in range(5):
            x = x * 1.5
            if x.abs().max() > 3:
                return (x, i)
        return (x, -1)
    return [val(f(T([v]))) for v in (0.1, 1.0, 2.5, 9.0)]


@case
def beam_step(compiled):
    @compiled
    def f(logp, scores, k=2):
        t = (scores.unsqueeze(-1) + logp).flatten()
        v, i = paddle.topk(t, k)
        return {"scores": v, "parent": i // logp.shape[-1], "tok": i % logp.shape[-1], "k": k}
    return val(f(X(2, 5), X(2, seed=1))), val(f(X(2, 5, seed=3), X(2, seed=1), k=3))


@case
def grad_accum(compiled):
    net = compiled(mlp())
    opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    for i in range(6):
        (net(X(2, 3, seed=i)).sum() / 3).backward()
        if i % 3 == 2:
            opt.step()
            opt.clear_grad()
    return [val(p) for p in net.parameters()]


@case
def gan(compiled):
    G = compiled(mlp(1))
    D = compiled(nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)))
    go = paddle.optimizer.Adam(0.01, parameters=G.parameters())
    do = paddle.optimizer.Adam(0.01, parameters=D.parameters())
    o = []
    for i in range(3):
        z = X(4, 3, seed=i)
        fake = G(z)
        dl = F.softplus(D(fake.detach())).mean() + F.softplus(-D(X(4, 2, seed=9))).mean()
        dl.backward()
        do.step()
        do.clear_grad()
        gl = F.softplus(-D(G(z))).mean()
        gl.backward()
        go.step()
        go.clear_grad()
        D.clear_gradients()
        o.append((float(dl), float(gl)))
    return o


@case
def ema(compiled):
    class N(nn.Layer):

        def __init__(s):
            super().__init__()
            paddle.seed(0)
            s.l = nn.Linear(2, 2)
            s.register_buffer("m", paddle.zeros([2]))

        def forward(s, x):
            y = s.l(x)
            with paddle.no_grad():
                s.m = 0.9 * s.m + 0.1 * y.mean(0)
            return y - s.m
    n = N()
    f = compiled(n)
    return [val(f(X(3, 2, seed=i))) for i in range(3)], val(n.m)


@case
def weight_tying(compiled):
    class N(nn.Layer):

        def __init__(s):
            super().__init__()
            paddle.seed(0)
            s.e = nn.Embedding(5, 3)
            s.o = nn.Linear(3, 5)
            s.w = s.e.weight

        def forward(s, i):
            return F.linear(s.e(i), s.w.T)
    n = N()
    f = compiled(n)
    y = f(T([1, 2]))
    y.sum().backward()
    return val(y), val(n.e.weight.grad)


@case
def kw_defaults(compiled):
    @compiled
    def f(x, *, scale=2.0, bias=None, **kw):
        y = x * scale
        if bias is not None:
            y = y + bias
        for k in sorted(kw):
            y = y + kw[k]
        return y
    return val(f(X(2))), val(f(X(2), scale=3.0)), val(f(X(2), bias=X(2, seed=1))), val(f(X(2), z=1.0, a=X(2)))


@case
def numpy_in(compiled):
    @compiled
    def f(x, w):
        return x * w.sum() if isinstance(w, np.ndarray) else x * w.sum()
    return val(f(X(2), np.ones(3, "float32"))), val(f(X(2), 2 * np.ones(3, "float32")))


@case
def view_inputs(compiled):
    @compiled
    def f(a, b):
        return a * 2 + b
    x = X(4, 2)
    x.stop_gradient = False
    y = f(x[0], x[1:3])
    y.sum().backward()
    return val(y), val(x.grad)


@case
def inplace_on_input(compiled):
    @compiled
    def f(x):
        x.add_(T(1.0))
        x[0] = 5.0
        return x * 2
    x = X(3)
    y = f(x)
    return val(x), val(y)


@case
def inplace_on_view(compiled):
    @compiled
    def f(x):
        x[0] = 5.0
        return x.sum()
    x = X(3, 2)
    y = f(x[1])
    return val(x), val(y)


@case
def modified_before_backward(compiled):
    @compiled
    def f(x, w):
        return (x * w).sum()
    x = X(3)
    w = X(3, seed=1)
    w.stop_gradient = False
    y = f(x, w)
    try:
        x[0] = 100.0
        y.backward()
        return val(w.grad)
    except Exception as e:
        return type(e).__name__


@case
def nograd_then_grad(compiled):
    f = compiled(lambda x: x * x)
    x = X(2)
    x.stop_gradient = False
    with paddle.no_grad():
        a = f(x)
    b = f(x)
    b.sum().backward()
    return val(a), val(b), val(x.grad)


@case
def double_backward(compiled):
    f = compiled(lambda x: (x ** 3).sum())
    x = X(2)
    x.stop_gradient = False
    g, = paddle.grad(f(x), x, create_graph=True)
    g.sum().backward()
    return val(g), val(x.grad)


@case
def shape_error_then_again(compiled):
    net = compiled(mlp())
    o = []
    for s in (3, 4, 3):
        try:
            o.append(val(net(X(2, s))))
        except Exception as e:
            o.append(type(e).__name__)
    return o


@case
def threads(compiled):
    f = compiled(lambda x: (x * 2 + 1).sum())
    out = {}

    def run(i):
        out[i] = [float(f(X(3, seed=i))) for _ in range(5)]
    ts = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return [[round(v, 3) for v in out.get(i, [])] for i in range(4)]


@case
def deepcopied(compiled):
    n = compiled(mlp())
    a = n(X(2, 3))
    m = copy.deepcopy(n)
    m[0].weight.set_value(np.zeros([3, 4], "float32"))
    return val(a), val(m(X(2, 3))), val(n(X(2, 3)))


@case
def hooks(compiled):
    n = mlp()
    n[0].register_forward_post_hook(lambda l, i, o: o * 2)
    f = compiled(n)
    a = val(f(X(2, 3)))
    n[2].register_forward_pre_hook(lambda l, i: (i[0] + 1,))
    return a, val(f(X(2, 3)))


@case
def dtype_switch(compiled):
    f = compiled(lambda x: x + paddle.ones([2]))
    o = [val(f(X(2)))]
    paddle.set_default_dtype("float64")
    try:
        o.append(val(f(X(2))))
    finally:
        paddle.set_default_dtype("float32")
    return o


@case
def amp_switch(compiled):
    n = mlp()
    f = compiled(n)
    a = val(f(X(2, 3)).astype("float32"))
    with paddle.amp.auto_cast(level="O1", dtype="bfloat16"):
        b = f(X(2, 3)).dtype.name
    return a, b


@case
def train_eval(compiled):
    n = nn.Sequential(nn.BatchNorm1D(3), nn.Dropout(0.5))
    f = compiled(n)
    paddle.seed(3)
    a = val(f(X(4, 3)))
    n.eval()
    b = val(f(X(4, 3)))
    n.train()
    c = val(f(X(4, 3)))
    return a, b, c, val(n[0]._mean)


@case
def optimizer_inside(compiled):
    net = mlp()
    opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())

    @compiled
    def step(x):
        l = net(x).sum()
        l.backward()
        opt.step()
        opt.clear_grad()
        return l
    return [val(step(X(2, 3))) for _ in range(3)], [val(p) for p in net.parameters()]


@case
def generation_loop(compiled):
    paddle.seed(0)
    emb = nn.Embedding(7, 4)
    out = nn.Linear(4, 7)

    @compiled
    def gen(tok, n):
        toks = [tok]
        for _ in range(n):
            logits = out(emb(toks[-1]))
            toks.append(logits.argmax(-1))
        return paddle.stack(toks, -1)
    return val(gen(T([1, 2]), 4))


@case
def generation_while_eos(compiled):
    paddle.seed(0)
    emb = nn.Embedding(7, 4)
    out = nn.Linear(4, 7)

    @compiled
    def gen(tok):
        n = paddle.zeros([], "int64")
        while (tok != 0) & (n < 10):
            tok = out(emb(tok)).argmax(-1)
            n = n + 1
        return (tok, n)
    return val(gen(T(3)))


@case
def meta_lr(compiled):
    w = T([1.0, 2.0])
    w.stop_gradient = False

    @compiled
    def f(x):
        return ((w * x) ** 2).sum()
    for i in range(3):
        l = f(X(2, seed=i))
        l.backward()
        with paddle.no_grad():
            w.set_value(w - 0.1 * w.grad)
        w.clear_gradient()
    return val(w)


@case
def rebind_param(compiled):
    class N(nn.Layer):

        def __init__(s):
            super().__init__()
            paddle.seed(0)
            s.l = nn.Linear(2, 2)

        def forward(s, x):
            return s.l(x)
    n = N()
    f = compiled(n)
    a = val(f(X(1, 2)))
    paddle.seed(5)
    n.l = nn.Linear(2, 2)
    b = val(f(X(1, 2)))
    n.l.weight.set_value(np.zeros((2, 2), "float32"))
    return a, b, val(f(X(1, 2)))


@case
def freeze_layer(compiled):
    n = mlp()
    f = compiled(n)
    f(X(2, 3)).sum().backward()
    n.clear_gradients()
    for p in n[0].parameters():
        p.stop_gradient = True
    f(X(2, 3)).sum().backward()
    return [p.grad is None for p in n.parameters()]


@case
def grad_inside(compiled):
    @compiled
    def f(x):
        y = (x ** 3).sum()
        g, = paddle.grad(y, x, create_graph=True)
        return (g ** 2).sum()
    x = X(3)
    x.stop_gradient = False
    f(x).backward()
    return val(x.grad)


@case
def tuple_state_swap(compiled):
    class L(nn.Layer):

        def __init__(s):
            super().__init__()
            s.st = None

        def forward(s, x):
            h, c = s.st if s.st is not None else (x * 0, x * 0)
            s.st = (h + x, c + h)
            return s.st[1]
    l = L()
    f = compiled(l)
    return [val(f(X(2, seed=i))) for i in range(4)], val(l.st)


@case
def reset_state(compiled):
    class L(nn.Layer):

        def __init__(s):
            super().__init__()
            s.h = None

        def forward(s, x):
            s.h = x if s.h is None else s.h + x
            return s.h * 2
    l = L()
    f = compiled(l)
    o = [val(f(X(2))), val(f(X(2)))]
    l.h = None
    o += [val(f(X(2))), val(f(X(2)))]
    return o


@case
def tbptt(compiled):
    paddle.seed(0)
    w = nn.Linear(2, 2)

    class S:
        h = None
    s = S()

    @compiled
    def f(x):
        h = paddle.zeros([1, 2]) if s.h is None else s.h.detach()
        s.h = paddle.tanh(w(h) + x)
        return s.h.sum()
    for i in range(3):
        f(X(1, 2, seed=i)).backward()
    return val(w.weight.grad)


@case
def through_time_grad(compiled):
    paddle.seed(0)
    w = nn.Linear(2, 2)

    class S:
        pass
    s = S()
    s.h = paddle.zeros([1, 2])

    @compiled
    def f(x):
        s.h = paddle.tanh(w(s.h) + x)
        return s.h.sum()
    l = f(X(1, 2)) + f(X(1, 2, seed=1))
    l.backward()
    return val(w.weight.grad)


@case
def deco_in_class(compiled):
    class N(nn.Layer):

        def __init__(s):
            super().__init__()
            paddle.seed(0)
            s.l = nn.Linear(2, 2)

        def forward(s, x):
            return s.step(x) + s.step(x)

        def step(s, x):
            return s.l(x)
    N.step = compiled(N.step)
    a, b = (N(), N())
    b.l.weight.set_value(np.ones((2, 2), "float32"))
    return val(a(X(1, 2))), val(b(X(1, 2)))


@case
def inherit(compiled):
    class A(nn.Layer):

        def __init__(s):
            super().__init__()
            s.k = 2.0

        def forward(s, x):
            if x.sum() > 0:
                return x * s.k
            return x

    class B(A):
        def forward(s, x):
            return super().forward(x) + 1
    f = compiled(B())
    return val(f(X(2))), val(f(-X(2)))


@case
def inplace_after(compiled):
    @compiled
    def f(x):
        return (x * 2, x)
    x = X(2)
    a, b = f(x)
    x[0] = 9.0
    return val(a), val(b), b is x
