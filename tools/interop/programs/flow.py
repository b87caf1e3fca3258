"""Control flow, random draws, startup programs, and what is done to whole programs."""

from tools.interop.programs.registry import data, program


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
def branches_of_two(p):
    x, y = data(p), data(p, "y")
    a, b = p.static.nn.cond(x.sum() > y.sum(), lambda: (x, y), lambda: (x + y, x * 2.0))
    return (a * b).sum()


@program
def branches_inside(p):
    x = data(p)

    def inner():
        return p.static.nn.cond(x.max() > 1, lambda: x * 3.0, lambda: x)
    return p.static.nn.cond(x.mean() > 0, inner, lambda: x - 1).sum()


@program
def cases(p):
    x = data(p)
    return p.static.nn.case([(x.sum() > 1, lambda: x + 1.0), (x.sum() > 0, lambda: x * 2.0)], lambda: x).sum()


@program
def switch(p):
    x, which = data(p), data(p, "which", [1], "int64", stop=True)
    return p.static.nn.switch_case(which, {0: lambda: x + 1.0, 2: lambda: x * 2.0}, lambda: x).sum()


@program
def loop_with_a_branch(p):
    x = data(p, stop=True)
    i = p.full([], 0, "int64")

    def body(i, y):
        return [i + 1, p.static.nn.cond(y.mean() > 0, lambda: y * 2.0, lambda: y + 1.0)]
    i, y = p.static.nn.while_loop(lambda i, y: i < 3, body, [i, x])
    y.sum()


@program
def loop_in_a_loop(p):
    x = data(p, stop=True)
    zero = p.full([], 0, "int64")

    def outer(i, y):
        j, y = p.static.nn.while_loop(lambda j, y: j < 2, lambda j, y: [j + 1, y + 1.0], [p.full([], 0, "int64"), y])
        return [i + 1, y]
    i, y = p.static.nn.while_loop(lambda i, y: i < 3, outer, [zero, x])
    y.sum()


@program
def drawn_normally(p):
    p.normal(0.0, 2.0, [2, 3])
    p.rand([2, 3])
    p.bernoulli(data(p) * 0.1)
    p.multinomial(p.abs(data(p, "w")), 2)


@program
def dropped_downwards(p):
    p.nn.functional.dropout(data(p), 0.3, mode="downscale_in_infer").sum()


@program
def dropped_in_evaluation(p):
    net = p.nn.Sequential(p.nn.Linear(6, 4), p.nn.Dropout(0.2))
    net.eval()
    return net(data(p)).sum()


@program
def mixed_precision(p):
    net = p.nn.Sequential(p.nn.Linear(6, 4), p.nn.ReLU())
    with p.amp.auto_cast(level="O1", dtype="bfloat16"):
        y = p.nn.functional.softmax(net(data(p)))
    return y.astype("float32").sum()


@program
def initializers(p):
    I = p.nn.initializer
    for init in (I.Constant(0.5), I.Normal(0.0, 2.0), I.Uniform(-1.0, 1.0), I.TruncatedNormal(0.0, 1.0),
                 I.XavierNormal(), I.XavierUniform(), I.KaimingNormal(), I.KaimingUniform()):
        p.create_parameter([4, 5], "float32", default_initializer=init)


@program
def initializer_of_numbers(p):
    I = p.nn.initializer
    p.create_parameter([2, 2], "float32", default_initializer=I.Assign([[1.0, 2.0], [3.0, 4.0]]))


@program
def initializers_of_structure(p):
    I = p.nn.initializer
    p.create_parameter([4, 4], "float32", default_initializer=I.Orthogonal())
    p.create_parameter([3, 3, 2, 2], "float32", default_initializer=I.Dirac())
    p.create_parameter([2, 2, 4, 4], "float32", default_initializer=I.Bilinear())


@program
def gradient_of_a_loop(p):
    x, w = data(p), data(p, "w", [6, 6])
    i = p.full([], 0, "int64")
    i, y = p.static.nn.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, p.tanh(p.matmul(y, w))], [i, x])
    return (y * y).sum()


@program
def loop_in_a_branch(p):
    x = data(p)

    def loop():
        i = p.full([], 0, "int64")
        return p.static.nn.while_loop(lambda i, y: i < 2, lambda i, y: [i + 1, y * x], [i, x])[1]
    p.static.nn.cond(x.sum() < 100, loop, lambda: x * 2.0)          # whose gradient Paddle does not run
