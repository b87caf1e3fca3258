"""Python's own ways of saying things, around tensors (see `test_as_people_write`)."""

import enum
import functools
import random

from tests.jit.people import Batch, X, case, val


@case
def recursion(compiled):
    def fib(x, n):
        return x if n < 2 else fib(x, n - 1) + fib(x * 2, n - 2)
    f = compiled(fib)
    return [val(f(X(2), n)) for n in range(5)]


@case
def closures_in_loop(compiled):
    o = []
    for k in range(3):

        def f(x):
            return x * k            # noqa: B023
        o.append(val(compiled(f)(X(2))))
    return o


@case
def closure_changes(compiled):
    k = 1.0

    @compiled
    def f(x):
        return x * k
    o = []
    for v in (1.0, 2.0, 3.0):
        k = v
        o.append(val(f(X(2))))
    return o


@case
def dataclass_arg(compiled):
    @compiled
    def f(b):
        return b.x * b.n + (0 if b.y is None else b.y)
    b = Batch(X(2))
    o = [val(f(b))]
    b.x = X(2, seed=5)
    o.append(val(f(b)))
    b.n = 3
    o.append(val(f(b)))
    o.append(val(f(Batch(X(2, seed=7), X(2)))))
    return o


@case
def dataclass_arg_changed(compiled):
    @compiled
    def f(b):
        b.y = b.x * 2
        b.n += 1
        return b.x + b.n
    b = Batch(X(2))
    o = []
    for _ in range(3):
        o.append((val(f(b)), val(b)))
    return o


@case
def dataclass_result(compiled):
    @compiled
    def f(x):
        return Batch(x * 2, y=[x])
    return val(f(X(2))), val(f(X(2, seed=2)))


@case
def class_attr(compiled):
    class C:
        scale = 2.0

        @staticmethod
        def s(x):
            return x + 1

        @classmethod
        def c(cls, x):
            return x * cls.scale

        @property
        def p(self):
            return self.scale * 10

        def run(self, x):
            return self.s(self.c(x)) + self.p
    c = C()
    f = compiled(c.run)
    o = [val(f(X(2)))]
    C.scale = 5.0
    o.append(val(f(X(2))))
    c.scale = 7.0
    o.append(val(f(X(2))))
    return o


@case
def exception_then_again(compiled):
    flag = [True]

    @compiled
    def f(x):
        y = x * 2
        if flag[0]:
            raise RuntimeError("boom")
        return y
    o = []
    for v in (True, False, True, False):
        flag[0] = v
        try:
            o.append(val(f(X(2))))
        except RuntimeError as e:
            o.append(str(e))
    return o


@case
def generator(compiled):
    @compiled
    def f(x):
        return sum(g(x))

    def g(x):
        for i in range(3):
            yield (x * i)
    return val(f(X(2)))


@case
def generator_result(compiled):
    @compiled
    def f(x):
        for i in range(3):
            yield (x * i)
    return [val(v) for v in f(X(2))]


@case
def partial_wraps(compiled):
    def deco(h):

        @functools.wraps(h)
        def w(*a, **k):
            return h(*a, **k) * 2
        return w

    @deco
    def f(x, b):
        if x.sum() > 0:
            return x + b
        return x - b
    return val(compiled(functools.partial(f, b=1.0))(X(2))), val(compiled(f)(X(2), 2.0))


@case
def lambdas(compiled):
    fs = [compiled(lambda x, k=k: x * k if x.sum() > 0 else x - k) for k in range(3)]
    return [val(f(X(2))) for f in fs]


@case
def exec_fn(compiled):
    ns = {}
    exec("def f(x):\n    y=x*2\n    return y+1\n", ns)
    return val(compiled(ns["f"])(X(2)))


@case
def exec_branch(compiled):
    ns = {}
    exec("def f(x):\n    if x.sum()>0:\n        return x\n    return -x\n", ns)
    return val(compiled(ns["f"])(X(2)))


@case
def alias_results(compiled):
    @compiled
    def f(x):
        y = x * 2
        return (y, y, [y])
    a, b, (c,) = f(X(2))
    a[0] = 7.0
    return a is b, a is c, val(b)


@case
def return_input(compiled):
    @compiled
    def f(x, d):
        return (x, d)
    x = X(2)
    d = {"k": x}
    a, e = f(x, d)
    return a is x, e is d


@case
def try_finally(compiled):
    log = []

    @compiled
    def f(x):
        try:
            return x * 2
        finally:
            log.append("fin")
    f(X(2))
    f(X(2))
    return log


@case
def comprehension_dict(compiled):
    @compiled
    def f(xs):
        return ({k: v * 2 for k, v in xs.items()}, [v for v in xs.values() if v.shape[0] > 1])
    return val(f({"a": X(2), "b": X(1)}))


@case
def iterator_state(compiled):
    it = iter([1.0, 2.0, 3.0])

    @compiled
    def f(x):
        return x * next(it)
    return [val(f(X(2))) for _ in range(3)]


@case
def py_random(compiled):
    random.seed(0)

    @compiled
    def f(x):
        return x * random.random()
    return [val(f(X(2))) for _ in range(3)]


@case
def ctx_manager(compiled):
    class M:

        def __enter__(s):
            s.on = True
            return s

        def __exit__(s, *a):
            s.on = False
    m = M()

    @compiled
    def f(x):
        with m:
            y = x * 2
        return y
    f(X(2))
    f(X(2))
    return m.on


@case
def item_branch(compiled):
    @compiled
    def f(x):
        if x.sum().item() > 0:
            return x
        return -x
    return val(f(X(2)))


@case
def return_closure(compiled):
    @compiled
    def f(x):
        y = x * 2
        return lambda z: y + z
    return val(f(X(2))(X(2)))


@case
def list_arg_mutated_and_returned(compiled):
    @compiled
    def f(xs):
        xs.append(xs[0] * 2)
        xs[0] = xs[0] + 1
        return xs
    a = [X(2)]
    b = f(a)
    return b is a, val(a)


@case
def star_args(compiled):
    @compiled
    def f(*xs, **k):
        return sum(xs) + k.get("b", 0)
    return val(f(X(2), X(2))), val(f(X(2))), val(f(X(2), b=3.0))


@case
def match_stmt(compiled):
    @compiled
    def f(x, mode):
        match mode:
            case "a":
                return x
            case ["b", k]:
                return x * k
            case _:
                return -x
    return val(f(X(2), "a")), val(f(X(2), ("b", 3.0))), val(f(X(2), "z"))


@case
def nested_fn_state(compiled):
    def make():
        n = 0

        def inc():
            nonlocal n
            n += 1
            return n
        return inc
    inc = make()

    @compiled
    def f(x):
        return x * inc()
    return [val(f(X(2))) for _ in range(3)]


@case
def enum_arg(compiled):
    class M(enum.Enum):
        A = 1
        B = 2

    @compiled
    def f(x, m):
        return x if m is M.A else -x
    return val(f(X(2), M.A)), val(f(X(2), M.B))


@case
def property_setter(compiled):
    class C:

        def __init__(s):
            s._v = 1.0

        @property
        def v(s):
            return s._v

        @v.setter
        def v(s, x):
            s._v = x * 2
    c = C()

    @compiled
    def f(x):
        c.v = c.v + 1
        return x * c.v
    return [val(f(X(2))) for _ in range(3)], c._v


@case
def user_setitem(compiled):
    class D:

        def __init__(s):
            s.d = {}

        def __setitem__(s, k, v):
            s.d[k] = v

        def __getitem__(s, k):
            return s.d[k]
    d = D()

    @compiled
    def f(x):
        d["a"] = x * 2
        return d["a"] + 1
    return val(f(X(2))), val(f(X(2, seed=1))), val(d.d)


@case
def user_setitem_branch(compiled):
    class D:

        def __init__(s):
            s.d = {"a": X(2)}

        def __setitem__(s, k, v):
            s.d[k] = v

        def __getitem__(s, k):
            return s.d[k]
    d = D()

    @compiled
    def f(x):
        if x.sum() > 0:
            d["a"] = x * 2
        return d["a"] + 1
    return val(f(X(2))), val(f(-X(2))), val(d.d)


@case
def user_iadd(compiled):
    class Acc:

        def __init__(s):
            s.t = 0.0
            s.n = 0

        def __iadd__(s, v):
            s.t = s.t + v
            s.n += 1
            return s
    a = Acc()

    @compiled
    def f(x):
        nonlocal a
        a += x.sum()
        return x
    for i in range(3):
        f(X(2, seed=i))
    return val(a.t), a.n


@case
def init_registers(compiled):
    reg = []

    class P:
        def __init__(s, x):
            s.x = x
            reg.append(s)

    @compiled
    def f(x):
        p = P(x * 2)
        return p.x
    f(X(2))
    f(X(2, seed=1))
    return len(reg), [val(p.x) for p in reg]
