"""What functions keep between calls: attributes, lists, dicts, globals (see `test_as_people_write`)."""

import collections

import numpy as np

import minipd as paddle
from tests.jit.people import T, X, case, nn, val


@case
def log_list(compiled):
    log = []

    @compiled
    def f(x):
        y = x * 2
        log.append(y.sum())
        return y
    for i in range(3):
        f(X(2, seed=i))
    return val(log)


@case
def counter(compiled):
    class N(nn.Layer):

        def __init__(s):
            super().__init__()
            s.n = 0
            s.hist = []

        def forward(s, x):
            s.n += 1
            s.hist.append(s.n)
            return x * s.n
    n = N()
    f = compiled(n)
    return [val(f(X(2))) for _ in range(3)], n.n, n.hist


@case
def state_obj(compiled):
    class S:
        pass
    s = S()
    s.h = paddle.zeros([2])

    @compiled
    def f(x):
        s.h = paddle.tanh(s.h + x)
        return s.h * 2
    hs = []
    for i in range(4):
        f(X(2, seed=i))
        hs.append(s.h)
    return val(hs)


@case
def state_list_objs(compiled):
    class S:
        pass
    ss = [S(), S()]
    ss[0].w = X(2)
    ss[1].w = X(2, seed=1)

    @compiled
    def f(x):
        for s in ss:
            x = x * s.w
        return x
    o = [val(f(X(2)))]
    ss[0].w = X(2, seed=3)
    o.append(val(f(X(2))))
    ss.append(ss[0])
    o.append(val(f(X(2))))
    return o


@case
def state_dict_objs(compiled):
    class S:
        pass
    cfg = {"a": S()}
    cfg["a"].k = 2.0

    @compiled
    def f(x):
        return x * cfg["a"].k
    o = [val(f(X(2)))]
    cfg["a"].k = 3.0
    o.append(val(f(X(2))))
    return o


@case
def set_and_global(compiled):
    global GG
    GG = {"n": 0}
    seen = set()

    @compiled
    def f(x, k):
        GG["n"] += 1
        seen.add(k)
        GG["last"] = x * 2
        return x
    for k in ("a", "b", "a"):
        f(X(2), k)
    return val(GG), sorted(seen)


@case
def pop_list(compiled):
    todo = [1.0, 2.0, 3.0, 4.0]

    @compiled
    def f(x):
        return x * todo.pop()
    return [val(f(X(2))) for _ in range(3)], todo


@case
def helper_in_branch(compiled):
    class N(nn.Layer):

        def __init__(s):
            super().__init__()
            s.hits = 0
            s.last = None

        def hit(s, x):
            s.hits += 1
            s.last = x
            return x * 2

        def forward(s, x):
            if x.sum() > 0:
                return s.hit(x)
            return x
    n = N()
    f = compiled(n)
    o = []
    for v in (1.0, -1.0, 2.0):
        o.append((val(f(T([v]))), float(n.hits)))
    return o


@case
def helper_in_loop(compiled):
    class C:
        pass
    c = C()
    c.n = 0

    def inc():
        c.n += 1

    @compiled
    def f(x):
        while x.sum() < 10:
            x = x * 2
            inc()
        return x
    return [(val(f(T([v]))), int(c.n)) for v in (1.0, 3.0, 20.0)]


@case
def np_state(compiled):
    c = np.zeros(2)

    @compiled
    def f(x, i):
        c[i] += 1
        return x * float(c[i])
    return [val(f(X(2), i)) for i in (0, 0, 1)], c.tolist()


@case
def setattr_getattr(compiled):
    class Thing:
        pass
    o = Thing()
    o.v = 1.0

    @compiled
    def f(x):
        setattr(o, "v", getattr(o, "v") + 1.0)     # noqa: B009, B010
        return x * o.v
    return [val(f(X(2))) for _ in range(3)], o.v


@case
def dict_counter(compiled):
    c = collections.Counter()
    d = collections.defaultdict(list)

    @compiled
    def f(x, k):
        c[k] += 1
        d[k].append(x.sum())
        return x * c[k]
    return [val(f(X(2), k)) for k in "aba"], dict(c), val(dict(d))


@case
def swap_attrs(compiled):
    class Thing:
        pass
    o = Thing()
    o.a = X(2)
    o.b = X(2, seed=1)

    @compiled
    def f(x):
        o.a, o.b = (o.b, o.a)
        return x + o.a
    return [val(f(X(2))) for _ in range(3)], val([o.a, o.b])


@case
def grads_of_state(compiled):
    class Thing:
        pass
    o = Thing()
    o.h = None
    w = X(2)
    w.stop_gradient = False

    @compiled
    def f(x):
        o.h = x * w
        return (o.h * 2).sum()
    f(X(2))
    o.h.sum().backward()
    return val(w.grad)


@case
def slots_obj(compiled):
    class S:
        __slots__ = ("h",)
    s = S()
    s.h = paddle.zeros([2])

    @compiled
    def f(x):
        s.h = s.h + x
        return s.h * 1
    return [val(f(X(2))) for _ in range(3)], val(s.h)


@case
def namedtuple_state(compiled):
    P = collections.namedtuple("P", "h c")

    class Thing:
        pass
    o = Thing()
    o.s = P(paddle.zeros([2]), paddle.ones([2]))

    @compiled
    def f(x):
        o.s = P(o.s.h + x, o.s.c * 2)
        return o.s.h * o.s.c
    return [val(f(X(2))) for _ in range(3)], val(o.s)


@case
def sort_in_place(compiled):
    names = ["b", "a"]

    @compiled
    def f(x):
        names.sort()
        return x
    f(X(2))
    r = list(names)
    names.append("0")
    f(X(2))
    return r, names


@case
def fn_result_attr(compiled):
    class C:
        pass
    c = C()
    c.k = 2.0

    def get():
        return c

    @compiled
    def f(x):
        return x * get().k
    o = [val(f(X(2)))]
    c.k = 5.0
    o.append(val(f(X(2))))
    return o


@case
def local_alias_attr(compiled):
    class C:
        pass
    a, b = (C(), C())
    a.k = 2.0
    b.k = 3.0

    @compiled
    def f(x, w):
        s = a if w else b
        return x * s.k
    o = [val(f(X(2), True)), val(f(X(2), False))]
    a.k = 5.0
    b.k = 7.0
    o += [val(f(X(2), True)), val(f(X(2), False))]
    return o


@case
def arg_alias_attr(compiled):
    class C:
        pass
    a = C()
    a.k = 2.0

    def h(x, o):
        return x * o.k

    @compiled
    def f(x):
        return h(x, a)
    o = [val(f(X(2)))]
    a.k = 5.0
    o.append(val(f(X(2))))
    return o


@case
def nested_method(compiled):
    class Inner:

        def __init__(s):
            s.k = 2.0

        def run(s, x):
            return x * s.k

    class Outer:
        def __init__(s):
            s.i = Inner()
            s.many = [Inner(), Inner()]

        def run(s, x):
            for m in s.many:
                x = m.run(x)
            return s.i.run(x)
    o = Outer()
    f = compiled(o.run)
    r = [val(f(X(2)))]
    o.i.k = 3.0
    r.append(val(f(X(2))))
    o.many[1].k = 10.0
    r.append(val(f(X(2))))
    return r


@case
def dict_of_tensors(compiled):
    p = {"w": X(2), "b": X(2, seed=1)}

    @compiled
    def f(x):
        return x * p["w"] + p["b"]
    o = [val(f(X(2)))]
    p["w"] = X(2, seed=4)
    o.append(val(f(X(2))))
    p["b"][0] = 100.0
    o.append(val(f(X(2))))
    return o


@case
def gen_with_cache_obj(compiled):
    class Cache:

        def __init__(s):
            s.ks = []
            s.n = 0

        def add(s, k):
            s.ks.append(k)
            s.n += 1
            return paddle.stack(s.ks)

    @compiled
    def step(x, cache):
        return cache.add(x * 2).sum(0)
    c = Cache()
    o = [val(step(X(2, seed=i), c)) for i in range(3)]
    return o, val(c.ks), c.n


@case
def fresh_cache_each(compiled):
    class Cache:

        def __init__(s):
            s.ks = []

    @compiled
    def run(x, n):
        c = Cache()
        for i in range(n):
            c.ks.append(x * i)
        return c.ks
    return val(run(X(2), 3)), val(run(X(2), 2))


@case
def append_in_tensor_branch(compiled):
    log = []

    @compiled
    def f(x):
        if x.sum() > 0:
            log.append(1)
        return x
    f(T([1.0]))
    f(T([-1.0]))
    f(T([2.0]))
    return log


@case
def clear_list_each(compiled):
    buf = []

    @compiled
    def f(x):
        buf.clear()
        buf.append(x * 2)
        return buf[0]
    return [val(f(X(2, seed=i))) for i in range(3)], val(buf)


@case
def list_of_lists(compiled):
    g = [[], []]

    @compiled
    def f(x, i):
        g[i].append(x * 2)
        return len(g[i])
    return [f(X(2, seed=i), i % 2) for i in range(4)], val(g)


@case
def hits_of_a_layer(compiled):
    class N(nn.Layer):
        def __init__(self):
            super().__init__()
            self.hits = 0

        def hit(self, x):
            self.hits += 1
            return x * 2

        def forward(self, x):
            return self.hit(x) if x.sum() > 0 else x
    n = N()
    f = compiled(n)
    return [(val(f(T([v]))), float(n.hits)) for v in (1.0, -1.0, 2.0)]
