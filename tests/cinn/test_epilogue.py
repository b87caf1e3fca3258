"""Kernels that finish a matrix product work over the product's array."""

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.compile import apply_cinn_pass
from minipd.executor.executor import Executor
from minipd.executor.memory import Memory
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.static import InputSpec
from tests.cinn.programs import traced
from tests.decomposition.programs import run

R = np.random.default_rng(5)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("open_rows", [False, True])
def test_what_finishes_a_matrix_product_works_over_its_array(residual, open_rows):
    """Bias, activation and a residual: one kernel beside the library's call, and no array but the result's."""
    def f(x, w, b):
        y = F.gelu(paddle.matmul(x, w) + b)
        return y + x if residual else y
    x, w, b = (R.normal(size=s).astype("float32") for s in ((67, 96), (96, 96), (96,)))
    specs = [InputSpec([-1 if open_rows else 67, 96], "float32", "x"), InputSpec([96, 96], "float32", "w"),
             InputSpec([96], "float32", "b")]
    program = trace(f, *specs).program
    feed = {"x": x, "w": w, "b": b}
    want = run(program, feed)["output_0"]
    apply_cinn_pass(program)
    calls = [op.name() for op in program.global_block() if op.row is None or op.row.name != "full"]
    assert [name for name in calls if name not in ("pd_op.data", "builtin.shadow_output")] == [
        "pd_op.matmul", "cinn_runtime.jit_kernel"]
    kept = {name: a.copy() for name, a in feed.items()}
    executor, results = Executor(program), []
    for _ in range(3):
        memory = Memory()
        results.append(executor.run(feed, memory=memory)["output_0"])
        assert memory.peak - want.nbytes < 1024
        np.testing.assert_allclose(results[-1], want, rtol=1e-5, atol=1e-5)
    assert not any(np.may_share_memory(a, b) for n, a in enumerate(results) for b in (*feed.values(), *results[:n]))
    for name, a in feed.items():
        np.testing.assert_array_equal(a, kept[name])


def test_a_product_that_is_read_again_is_not_written_over():
    def f(x, w):
        h = paddle.matmul(x, w)
        return h.tanh() + 1.0, h
    x, w = (R.normal(size=s).astype("float32") for s in ((32, 48), (48, 64)))
    program, feed = traced(f, x, w)
    want = run(program, feed)
    apply_cinn_pass(program)
    for name, array in Executor(program).run(feed).items():
        np.testing.assert_allclose(array, want[name], rtol=1e-5, atol=1e-5)
