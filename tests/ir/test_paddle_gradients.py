"""Backward programs that the real Paddle printed, read as calls of our gradient rules, and run."""

import numpy as np
import pytest

from minipd.executor.executor import Executor
from minipd.ir.builder import Builder
from minipd.ir.paddle import from_paddle, to_paddle
from minipd.ir.paddle.load import Loader
from minipd.ir.parser import parse
from minipd.ir.verify import verify

DATA = ('({name}) = "pd_op.data" () {{dtype:{dtype},name:"{name}",place:Place(undefined:0),shape:{shape},'
        'stop_gradient:[true]}} : () -> tensor<{type}>\n')
RNG = np.random.default_rng(3)


def operand(name, array):
    sizes, short = "x".join(map(str, array.shape)), {"float32": "f32", "int64": "i64", "bool": "b"}[str(array.dtype)]
    return DATA.format(name=f"%{name}", dtype=array.dtype, shape=str(list(array.shape)).replace(" ", ""),
                       type=f"{sizes}x{short}" if sizes else short).replace(f'name:"%{name}"', f'name:"{name}"')


def run(lines, arrays, wanted):
    """The values called `wanted` of the program of these lines, after inputs that hold `arrays`."""
    text = "{\n" + "".join(operand(n, a) for n, a in arrays.items()) + lines + "}\n"
    program = parse(text, "paddle")
    loader = Loader(program)
    with loader.program.constraints.collect():
        loader.blocks(program.global_block(), loader.program.global_block())
    last = program.global_block().back()
    build = Builder(loader.program.global_block())
    for name, i in wanted.items():
        build.output(name, loader.values[last.result(i)])
    verify(loader.program)
    assert all(op.info.registered for op in loader.program.walk())
    inputs = {op.attributes["name"].value for op in loader.program.global_block() if op.name() == "pd_op.data"}
    return Executor(loader.program).run({n: a for n, a in arrays.items() if n in inputs})


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


X, Y, G = normal(2, 3), normal(1, 3), normal(2, 3)
INTS = ('(%axis) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[-1]} : () -> '
        'tensor<1xi64>\n')


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def jacobian(f, x, eps=1e-4):
    """Of a function of float64 arrays, by central differences; contracted by the caller."""
    x = x.astype(np.float64)
    rows = []
    for i in np.ndindex(*x.shape):
        d = np.zeros_like(x)
        d[i] = eps
        rows.append((f(x + d) - f(x - d)) / (2 * eps))
    return np.stack(rows).reshape(*x.shape, *rows[0].shape)


def pulled(f, x, g):
    """The gradient of sum(f * g), by central differences."""
    j = jacobian(f, x)
    return np.tensordot(j, g.astype(np.float64), g.ndim)


def norm(x, w, b):
    m, v = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5) * w + b


CASES = {
    "multiply": ('(%a, %b) = "pd_op.multiply_grad" (%x, %y, %g) {axis:-1,stop_gradient:[true,true]} : (tensor<2x3xf32>,'
                 ' tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>, tensor<1x3xf32>\n',
                 {"x": X, "y": Y, "g": G}, [G * Y, (G * X).sum(0, keepdims=True)]),
    "a square": ('(%a, %b) = "pd_op.multiply_grad" (%x, %x, %g) {axis:-1,stop_gradient:[true,true]} : (tensor<2x3xf32>,'
                 ' tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>, tensor<2x3xf32>\n',
                 {"x": X, "g": G}, [G * X, G * X]),
    "matmul, one operand wanted": (
        '(%a, %b) = "pd_op.matmul_grad" (%x, %y, %g) {stop_gradient:[true,true],transpose_x:false,transpose_y:true} : '
        '(tensor<2x3xf32>, tensor<1x3xf32>, tensor<2x1xf32>) -> <<NULL TYPE>>, tensor<1x3xf32>\n',
        {"x": X, "y": Y, "g": normal(2, 1)}, [None, lambda a: a["g"].T @ a["x"]]),
    "relu, by its result": (
        '(%a) = "pd_op.relu_grad" (%x, %g) {stop_gradient:[true]} : (tensor<2x3xf32>, tensor<2x3xf32>) -> '
        'tensor<2x3xf32>\n', {"x": np.maximum(X, 0), "g": G}, [G * (X > 0)]),
    "softmax, by its result": (
        '(%a) = "pd_op.softmax_grad" (%x, %g) {axis:-1,stop_gradient:[true]} : (tensor<2x3xf32>, tensor<2x3xf32>) -> '
        'tensor<2x3xf32>\n', {"x": softmax(X), "g": G}, [pulled(softmax, X, G)]),
    "mean over the last axis": (
        INTS + '(%a) = "pd_op.mean_grad" (%x, %g, %axis) {keepdim:true,reduce_all:false,stop_gradient:[true]} : '
        '(tensor<2x3xf32>, tensor<2x1xf32>, tensor<1xi64>) -> tensor<2x3xf32>\n',
        {"x": X, "g": normal(2, 1)}, [lambda a: np.broadcast_to(a["g"] / 3, (2, 3))]),
    "layer_norm": (
        '(%a, %b, %c) = "pd_op.layer_norm_grad" (%x, %w, %w, %m, %m, %g) {begin_norm_axis:1,epsilon:1e-05,'
        'stop_gradient:[true,true,true]} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2xf32>'
        ', tensor<2x3xf32>) -> tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>\n',
        {"x": X, "w": Y[0], "m": normal(2), "g": G},
        [pulled(lambda x: norm(x, Y[0], Y[0]), X, G), pulled(lambda w: norm(X.astype(float), w, 0), Y[0], G),
         G.sum(0)]),
    "a transpose": ('(%a) = "pd_op.transpose_grad" (%x) {perm:[1,0],stop_gradient:[true]} : (tensor<2x3xf32>) -> '
                    'tensor<3x2xf32>\n', {"x": G}, [G.T]),
    "cross entropy": (
        '(%a) = "pd_op.cross_entropy_with_softmax_grad" (%label, %x, %g) {axis:-1,ignore_index:-100,'
        'numeric_stable_mode:true,soft_label:false,stop_gradient:[true],use_softmax:true} : (tensor<2x1xi64>, '
        'tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>\n',
        {"label": np.array([[2], [0]]), "x": softmax(X), "g": normal(2, 1)},
        [lambda a: (a["x"] - np.eye(3)[a["label"][:, 0]]) * a["g"]]),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient_operators_are_gradient_rules(name):
    line, arrays, want = CASES[name]
    wanted = {str(i): i for i, w in enumerate(want) if w is not None}
    got = run(line, arrays, wanted)
    for key, i in wanted.items():
        answer = want[i](arrays) if callable(want[i]) else want[i]
        assert got[key].shape == answer.shape
        np.testing.assert_allclose(got[key], answer, rtol=2e-4, atol=2e-5)


def test_what_a_gradient_operator_leaves_out_is_found_at_the_forward_one():
    text = ("{\n" + operand("x", X) + operand("g", G)
            + '(%p) = "pd_op.full" () {dtype:float32,place:Place(cpu),shape:[1],stop_gradient:[true],value:0.5} : () ->'
            ' '
            'tensor<1xf32>\n(%o, %m) = "pd_op.dropout" (%x, <<NULL VALUE>>, %p) {fix_seed:false,is_test:false,mode:'
            '"upscale_in_train",seed:0,stop_gradient:[true,true]} : (tensor<2x3xf32>, <<NULL TYPE>>, tensor<1xf32>) -> '
            'tensor<2x3xf32>, tensor<2x3xu8>\n(%a) = "pd_op.dropout_grad" (%m, %g, %p) {is_test:false,mode:'
            '"upscale_in_train",stop_gradient:[true]} : (tensor<2x3xu8>, tensor<2x3xf32>, tensor<1xf32>) -> '
            'tensor<2x3xf32>\n}\n')
    first, second = [op for op in from_paddle(parse(text, "paddle")).walk() if op.name() == "pd_op.dropout"]
    assert first.operand_source(1) is second.operand_source(1), "the mask is drawn again from the same key"


def test_our_backward_programs_survive_the_way():
    import minipd
    from minipd.framework.meta import Meta
    from minipd.ir.traced import trace

    def step(x):
        x.stop_gradient = False
        y = minipd.nn.functional.softmax(x) * 2.0
        return minipd.grad((y * y).sum(), x)[0]
    program = trace(step, Meta((2, 3), np.dtype(np.float32))).program
    back = from_paddle(to_paddle(program))
    want, got = (Executor(p).run({"input_0": X})["output_0"] for p in (program, back))
    np.testing.assert_allclose(got, want, rtol=1e-6)
