"""auto_cast: which operators compute in what, and that gradients do not mind."""

import numpy as np
import pytest

import minipd as paddle
from minipd import amp, nn
from minipd.amp.lists import BLACK, LOOKUPS, WHITE
from minipd.framework.rank import current
from minipd.framework.row import ROWS

F32, F16, BF16 = (np.dtype(n) if n != "bfloat16" else paddle.bfloat16.np for n in ("float32", "float16", "bfloat16"))


def dtypes(low="float32"):
    """What a few operators give, of float32 x and low-precision y."""
    x = paddle.ones([2, 2])
    y = paddle.cast(x, low)
    return {
        "matmul": paddle.matmul(x, y).dtype.name, "exp": paddle.exp(y).dtype.name, "tanh": paddle.tanh(y).dtype.name,
        "add": (x + y).dtype.name, "low add": (y + y).dtype.name, "linear": nn.Linear(2, 2)(x).dtype.name,
        "softmax": nn.functional.softmax(y).dtype.name}


@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_levels(low):
    wide = dict.fromkeys(dtypes(), "float32")
    with amp.auto_cast(dtype=low):
        assert dtypes(low) == {**wide, "matmul": low, "tanh": low, "low add": low, "linear": low}
    with amp.auto_cast(dtype=low, level="O2"):
        assert dtypes(low) == {**wide, "matmul": low, "tanh": low, "low add": low, "linear": low, "exp": low,
                               "softmax": low}
    with amp.auto_cast(dtype=low, level="O2", use_promote=False):
        assert set(dtypes(low).values()) == {low}
    with amp.auto_cast(dtype=low, level="OD"):
        assert dtypes(low) == {**wide, "matmul": low}
    for off in ({"enable": False}, {"level": "O0"}):
        with amp.auto_cast(dtype=low, **off):
            assert dtypes() == wide and current().amp is None


def test_lists_of_ones_own():
    x = paddle.ones([2, 2])
    with amp.auto_cast(custom_white_list={"elementwise_add"}, custom_black_list=["matmul_v2"]):
        assert (x + x).dtype == "float16" and paddle.matmul(x, x).dtype == "float32"
    with amp.auto_cast(custom_white_list={"exp"}):
        assert paddle.exp(x).dtype == "float16", "a white one is black no more"
    both = {"custom_white_list": {"add"}, "custom_black_list": {"elementwise_add"}}
    for options, said in [(both, r"\['add'\] on both"),
                          ({"level": "O3"}, "level to be one of O0, OD, O1, O2"),
                          ({"dtype": "float32"}, "dtype to be float16 or bfloat16, got 'float32'")]:
        with pytest.raises(ValueError, match=said):
            amp.auto_cast(**options)
    with pytest.raises(TypeError, match="custom_white_list to be a set of names of operators, got 'add'"):
        amp.auto_cast(custom_white_list="add")


def test_the_lists_name_operators():
    assert WHITE | BLACK | LOOKUPS <= set(ROWS) and not WHITE & (BLACK | LOOKUPS)
    assert amp.white_list()["float16"]["O1"] == WHITE and "exp" in amp.black_list()["bfloat16"]["O1"]


def test_what_it_leaves_alone():
    x = paddle.ones([2, 2], "float64")
    with amp.auto_cast(level="O2"):
        assert paddle.matmul(x, x).dtype == "float64" and paddle.arange(3).dtype == "int64"
        y = paddle.ones([3])
        y[0] = paddle.full([], 2.0, "float16")
        assert y.dtype == "float32" and y.tolist() == [2, 1, 1]
        assert paddle.cast(y, "float32").dtype == "float32"


def test_nesting_and_leaving():
    """The inner one counts; after an error the outer one does again, and off costs nothing: the handler is the old."""
    before = current().handler
    with amp.auto_cast():
        outer = current().amp
        with amp.auto_cast(enable=False):
            assert not amp.is_autocast_enabled()
        with pytest.raises(KeyError), amp.auto_cast(dtype="bfloat16"):
            assert amp.get_autocast_dtype() == "bfloat16"
            raise KeyError
        assert current().amp is outer and amp.get_autocast_dtype() == "float16"
    assert current().amp is None and current().handler.__code__ is before.__code__

    @amp.auto_cast(dtype="bfloat16")
    def f(x):
        """Decorated."""
        return x @ x
    assert f(paddle.ones([1, 1])).dtype == "bfloat16" and f.__doc__ == "Decorated."
    with paddle.autocast("cpu", enabled=False):
        assert not amp.is_autocast_enabled()


def model():
    paddle.seed(5)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3))


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_gradients_have_the_dtype_of_their_parameters(inside, low):
    """Whether backward is called inside or after; and they are those of float32, roughly."""
    x, y = paddle.rand([16, 4]), paddle.randint(0, 3, [16])
    grads = []
    for enable in (False, True):
        net = model()
        with amp.auto_cast(enable=enable, dtype=low):
            loss = nn.functional.cross_entropy(net(x), y)
            assert loss.dtype == "float32"
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        assert {p.grad.dtype.name for p in net.parameters()} == {"float32"}
        grads.append(np.concatenate([p.grad.numpy().ravel() for p in net.parameters()]))
    error = np.abs(grads[0] - grads[1]).max() / np.abs(grads[0]).max()
    assert 0 < error < (0.03 if low == "bfloat16" else 0.004)


def test_second_derivatives():
    x = paddle.to_tensor([[2.0]], stop_gradient=False)
    with amp.auto_cast(dtype="bfloat16"):
        y = (x @ x) @ x
        g, = paddle.grad(y, x, create_graph=True)
        assert g.dtype == "float32" and g.item() == 12.0
        assert paddle.grad(g, x)[0].item() == 12.0


@pytest.mark.parametrize("backend", [None, "CINN"])
def test_compiled_functions(backend):
    """The casts become part of the program; auto_cast and what is without it are two programs; equal ones are one."""
    net = model()
    static = paddle.jit.to_static(net.forward, backend=backend)
    x = paddle.rand([5, 4])
    for _ in range(2):
        for options in ({"enable": False}, {"dtype": "bfloat16"}, {"dtype": "float16", "level": "O2"}):
            with amp.auto_cast(**options):
                want, got = net(x), static(x)
                assert got.dtype == want.dtype
                np.testing.assert_allclose(got.astype("float32").numpy(), want.astype("float32").numpy(), rtol=2e-2,
                                           atol=2e-2)
                got.sum().backward()
            compiled = [p.grad.numpy() for p in net.parameters()]
            net.clear_gradients(set_to_zero=False)
            with amp.auto_cast(**options):
                net(x).sum().backward()
            for g, p in zip(compiled, net.parameters(), strict=True):
                assert g.dtype == F32
                np.testing.assert_allclose(g, p.grad.numpy(), rtol=3e-2, atol=3e-2)
            net.clear_gradients(set_to_zero=False)
    assert len(static.cache) == 3


def test_optimizers_inside():
    """A step inside of auto_cast is a step outside of it."""
    values = []
    for enable in (True, False):
        p = paddle.create_parameter([2], default_initializer=nn.initializer.Constant(1.0))
        adamw = paddle.optimizer.AdamW(0.1, parameters=[p])
        p.grad = paddle.to_tensor([0.3, -7.0])
        with amp.auto_cast(enable=enable, level="O2", use_promote=False):
            adamw.step()
        assert {t.dtype.name for t in adamw.state_of(p).values()} == {"float32"}
        values.append(p.tolist())
    assert values[0] == values[1]
