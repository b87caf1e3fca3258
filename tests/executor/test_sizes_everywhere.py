"""Random functions of open sizes (quotients, maxima, broadcast sizes) through everything that takes programs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd.decomposition import decompose
from minipd.dist.placements import Replicate, Shard
from minipd.executor import Executor
from minipd.ir.parser import parse
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.nn import functional as F
from minipd.passes import create_pass
from minipd.passes.pipelines import INFERENCE_PASSES, OF_FLOORS_ABOVE
from minipd.static import InputSpec
from tests.dist.programs import run_on

#: each gives a matrix of three columns, with another number of rows
ROWS = {
    "first": lambda x, y: x[:4], "middle": lambda x, y: x[1:3], "every second": lambda x, y: x[::2],
    "backwards": lambda x, y: x[::-3], "half": lambda x, y: x[: paddle.shape(x)[0] // 2],
    "rest": lambda x, y: x[paddle.shape(x)[0] // 3:], "both": lambda x, y: paddle.concat([x, y]),
    "padded": lambda x, y: paddle.concat([x, paddle.zeros([paddle.shape(y)[0] // 2, 3])]),
    "pooled": lambda x, y: F.max_pool2d(F.pad(x, [0, 1, 0, 0]).unsqueeze([0, 1]), (2, 1), (2, 1)).squeeze([0, 1]),
    "largest": lambda x, y: paddle.zeros([paddle.maximum(paddle.shape(x)[0], paddle.shape(y)[0]), 3]) + x[:1] * y[:1],
    "smallest": lambda x, y: paddle.ones([paddle.minimum(paddle.shape(x)[0], paddle.shape(y)[0]), 3]) * x[:1] - y[:1],
    "tiled": lambda x, y: x.tile([2, 1]), "sum": lambda x, y: x + y, "product": lambda x, y: (x * y).tanh(),
    "softmax": lambda x, y: F.softmax(x, 1), "normalised": lambda x, y: F.layer_norm(x, [3]),
    "turned": lambda x, y: x.reshape([3, -1]).transpose([1, 0]), "scaled": lambda x, y: x * 0.5 + x.shape[0],
}
#: those whose operands stretch: x and y as they are given
FIRST = ("sum", "product")


#: a loader reads steps backward over sizes that it knows only
NOT_IN_FILES = ("backwards",)


@st.composite
def functions(draw, without=()):
    first = draw(st.sampled_from(sorted(ROWS.keys() - set(without))))
    others = draw(st.lists(st.sampled_from(sorted(ROWS.keys() - {*FIRST, *without})), min_size=1, max_size=3))

    def function(x, y):
        out = ROWS[first](x, y)
        for name in others:
            out = ROWS[name](out, y)
        return out.exp() - 1
    function.__name__ = "_".join([first, *others]).replace(" ", "_")
    return function


def given_rows(*sizes):
    return [np.random.default_rng(n).uniform(-1, 1, (n, 3)).astype(np.float32) for n in sizes]


SPECS = [InputSpec([None, 3], "float32", name) for name in "xy"]
#: all fit together
SIZES = [(4, 4), (1, 5), (7, 1), (6, 6), (1, 1)]


def cases(function):
    """(two arrays, what eager mode makes of them) at the sizes at which it makes something."""
    for sizes in SIZES:
        arrays = given_rows(*sizes)
        try:
            yield arrays, function(*map(paddle.to_tensor, arrays)).numpy()
        except ValueError:                  # no rows are left for a window, or to be divided among columns
            assert min(sizes) < 4


@settings(max_examples=10)
@given(functions())
@np.errstate(all="ignore")
def test_texts_passes_and_decompositions(function):
    program = verify(trace(function, *SPECS).program)
    again = parse(program.to_string("exact"))
    assert again == program and str(again) == str(program)
    others = [again]
    for name in INFERENCE_PASSES:
        if name not in OF_FLOORS_ABOVE:
            create_pass(name).run(others[-1])
    others.append(program.clone())
    decompose(others[-1], [])
    executors = [Executor(verify(p)) for p in (program, *others)]
    for arrays, want in cases(function):
        if not all(c.holds({"S0": len(arrays[0]), "S1": len(arrays[1])}) for c in program.constraints):
            continue
        for executor in executors:
            got, = executor.run(dict(zip("xy", arrays, strict=True))).values()
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:jit.save")
@settings(max_examples=8)
@given(function=functions(NOT_IN_FILES))
@np.errstate(all="ignore")
def test_files(function, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("saved") / "f")
    paddle.jit.save(paddle.jit.to_static(function, input_spec=SPECS), path)
    loaded = paddle.jit.load(path)
    for arrays, want in cases(function):
        np.testing.assert_allclose(loaded(*map(paddle.to_tensor, arrays)).numpy(), want, rtol=2e-5, atol=1e-5)


@settings(max_examples=6)
@given(functions())
@np.errstate(all="ignore")
def test_kernels_and_gradients(function):
    specs = [InputSpec([None, 3], "float32", name, stop_gradient=False) for name in "xy"]
    compiled = paddle.jit.to_static(lambda x, y: function(x, y) * 2, input_spec=specs, backend="CINN")
    for arrays, _ in cases(function):
        found = []
        for f in (compiled, lambda x, y: function(x, y) * 2):
            handles = [paddle.to_tensor(a, stop_gradient=False) for a in arrays]
            out = f(*handles)
            out.sum().backward()
            found.append([out.numpy(), *(np.zeros(1) if x.grad is None else x.grad.numpy() for x in handles)])
        for got, want in zip(*found, strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-4)
    assert len(compiled.traces) <= 3


@pytest.mark.parametrize("name", ["sum", "first", "middle", "half", "every second", "both", "largest"])
@pytest.mark.parametrize("placed", [Shard(0), Replicate()], ids=str)
def test_parts_on_ranks(name, placed):
    program = trace(ROWS[name], *SPECS).program
    for sizes in ((4, 4), (6, 6)) if name == "sum" else ((4, 4), (2, 8), (8, 6)):
        arrays = given_rows(*sizes)
        feed = dict(zip("xy", arrays, strict=True))
        got = run_on("dp=2", program, {"x": [placed], "y": [placed]}, feed).outputs["output_0"]
        np.testing.assert_allclose(got, ROWS[name](*map(paddle.to_tensor, arrays)).numpy(), rtol=1e-6)
