"""A number that is no row of the table is an error: eagerly, into given buffers, in a program, and on a shard."""

import numpy as np
import pytest

import minipd as paddle
from minipd.executor import Executor
from minipd.framework.row import ROWS
from minipd.ir.traced import trace
from minipd.static import InputSpec

TABLE, G = np.arange(12.0).reshape(4, 3), np.ones((1, 3))

#: row -> (operands for a number, attributes)
CALLS = {
    "embedding": (lambda i: (i, TABLE), {}),
    "embedding_grad": (lambda i: (i, G, TABLE), {}),
    "take_along_axis": (lambda i: (TABLE.T, np.repeat(i[None], 3, 0)), {"axis": 1}),
    "take_along_axis_grad": (lambda i: (G.T, np.repeat(i[None], 3, 0), TABLE.T), {"axis": 1}),
    "cross_entropy_with_softmax_grad": (lambda i: (i[None], TABLE.T[:1], np.ones((1, 1))), {"axis": 1}),
}
each_kernel = pytest.mark.parametrize(("name", "kind"), [(n, k) for n in CALLS for k in ("kernel", "kernel_out")
                                                         if getattr(ROWS[n], k) is not None])


def call(name, kind, i, window=None):
    operands, attrs = CALLS[name]
    row, operands = ROWS[name], operands(i)
    attrs = attrs if window is None else {**attrs, "window": window}
    if kind == "kernel":
        return row.kernel(*operands, **attrs)
    meta = row.infer_meta(*operands, **attrs)
    out = np.full(meta.shape, 7.0)
    row.kernel_out(out, *operands, **attrs)
    return out


@each_kernel
def test_the_whole(name, kind):
    call(name, kind, np.array([3]))
    for bad in (4, -1):
        with pytest.raises(ValueError, match=rf"^{name.removesuffix('_grad')}.*in 0 \.\. 3, .* of f64\[.*, got {bad}$"):
            call(name, kind, np.array([bad]))


@each_kernel
def test_a_shard(name, kind):
    """Rows 6 to 9 of 11: those of other shards contribute nothing, those of no shard are an error."""
    for other in (0, 5, 10):
        out = call(name, kind, np.array([other]), (11, 6))
        expected = TABLE.T[:1] if name.startswith("cross") else np.zeros(out.shape)
        np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(call(name, kind, np.array([8]), (11, 6)), call(name, kind, np.array([2])))
    for bad in (11, -1):
        with pytest.raises(ValueError, match=rf"in 0 \.\. 10, .*the whole of which this rank has f64\[.*, got {bad}$"):
            call(name, kind, np.array([bad]), (11, 6))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
def test_small_ints(dtype):
    """120 - 200 is no uint8: differences are taken in int64."""
    out = call("embedding", "kernel", np.array([0, 120, 3], dtype), (300, 200))
    np.testing.assert_array_equal(out, np.zeros((3, 3)))
    out = call("embedding", "kernel", np.array([0, 120, 119], dtype), (130, 118))
    np.testing.assert_array_equal(out, [[0, 0, 0], TABLE[2], TABLE[1]])


def test_a_program():
    traced = trace(lambda x, w: paddle.embedding(x, w), InputSpec([2], "int64", "x"), InputSpec([4, 3], "float64", "w"))
    run = Executor(traced.program).run
    assert run({"x": np.array([3, 0]), "w": TABLE})["output_0"].tolist() == [[9, 10, 11], [0, 1, 2]]
    with pytest.raises(ValueError, match=r"expected numbers in 0 \.\. 3, the rows of f64\[4, 3\], got 5") as error:
        run({"x": np.array([3, 5]), "w": TABLE})
    assert "pd_op.embedding" in error.value.__notes__[-1]
