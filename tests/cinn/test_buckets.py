"""Sizes that only the run knows: one program serves all, by a kernel for short rows and one for long ones."""

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.compile import apply_cinn_pass
from minipd.cinn.kernels import kernels_of
from minipd.cinn.runtime.buckets import BucketedKernel
from minipd.cinn.runtime.compiler import process_compiler
from minipd.executor import Executor
from minipd.ir.traced import trace
from minipd.static import InputSpec


def softmax(x):
    e = paddle.exp(x - x.max(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def test_long_rows_have_a_kernel_of_their_own():
    program = trace(softmax, InputSpec([-1, -1], "float32", "x")).program
    assert apply_cinn_pass(program) == 1
    kernel, = kernels_of(program)
    assert isinstance(kernel, BucketedKernel)
    made = process_compiler().statistics
    counts = []
    for rows, row in ((3, 7), (1, 1), (2, 4096), (5, 300), (2, 4097), (1, 9001), (4, 12)):
        x = np.random.default_rng(row).standard_normal((rows, row)).astype(np.float32)
        y = Executor(program).run({"x": x})["output_0"]
        e = np.exp(x - x.max(-1, keepdims=True))
        np.testing.assert_allclose(y, e / e.sum(-1, keepdims=True), rtol=1e-5)
        counts.append(made.compiled + made.loaded)
    assert counts[0] == counts[3] and counts[4] == counts[3] + 1 and counts[-1] == counts[4]


@pytest.mark.parametrize("fn, shape, dtype", [
    (softmax, [-1, 5], "float32"), (lambda x: (x * x).sum(), [-1, -1], "float32"),
    (lambda x: (x * x).sum(0), [-1, 5], "float32"),
    (softmax, [-1, -1], "float64"),                     # without blocks, and kept in the result: no two kernels
])
def test_what_needs_no_second_kernel_has_none(fn, shape, dtype):
    program = trace(fn, InputSpec(shape, dtype, "x")).program
    apply_cinn_pass(program)
    assert not any(isinstance(kernel, BucketedKernel) for kernel in kernels_of(program))
