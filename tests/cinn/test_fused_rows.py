"""Operators that stand for several, as kernels of their own."""

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.fused_rows import compile_fused_rows
from minipd.executor import Executor, Scope
from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.nn import functional as F
from minipd.passes.manager import PassManager

F32 = dtypes.float32.np


def drawn(*shape, seed=3):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(F32) * 2


def compiled(function, *arrays, specs=None):
    """What the function gives before and after, the names of the operators that are left, and the number of changes."""
    program = trace(function, *(specs or [Meta(x.shape, x.dtype) for x in arrays])).program
    changed = program.clone()
    changes = compile_fused_rows(changed)
    verify(changed)
    assert compile_fused_rows(changed) == 0                 # a second run finds nothing
    feed = {f"input_{i}": x for i, x in enumerate(arrays)}
    before, after = (Executor(p).run(feed, Scope()) for p in (program, changed))
    names = [op.name().partition(".")[2] for op in changed.walk()
             if op.name().partition(".")[2] not in ("data", "full", "full_int_array", "shadow_output")]
    return list(before.values()), list(after.values()), names, changes


CASES = {
    "softmax": lambda x: F.softmax(x),
    "log_softmax": lambda x: F.log_softmax(x),
    "sigmoid": lambda x: F.sigmoid(x),
    "silu": lambda x: F.silu(x),
    "gelu": lambda x: F.gelu(x),
    "gelu by tanh": lambda x: F.gelu(x, approximate=True),
    "mean": lambda x: x.mean(-1),
}


@pytest.mark.parametrize("shape", [(3, 7), (2, 5, 33)])
@pytest.mark.parametrize("name", CASES)
def test_one_operator_becomes_one_kernel(name, shape):
    before, after, names, changes = compiled(CASES[name], drawn(*shape))
    assert names == ["jit_kernel"] and changes == 1
    np.testing.assert_allclose(after[0], before[0], rtol=2e-6, atol=1e-6)


def test_gelu_keeps_its_digits_far_left_of_zero():
    x = np.linspace(-9, -3, 501, dtype=F32)
    before, after, names, _ = compiled(lambda x: F.gelu(x), x)
    assert names == ["jit_kernel"]
    np.testing.assert_allclose(after[0], before[0], rtol=1e-5)


def test_a_product_stays_with_the_library_and_what_follows_is_one_kernel():
    def linear(x, w, b):
        return ROWS["fused_gemm_epilogue"](x, w, b, activation="gelu")
    x, w, b = drawn(5, 7), drawn(7, 9), drawn(9)
    before, after, names, changes = compiled(linear, x, w, b)
    assert names == ["matmul", "jit_kernel"] and changes == 1
    np.testing.assert_allclose(after[0], before[0], rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("error")         # of groups that could not be kernels
def test_one_value_in_two_places_and_constants_that_others_have_too():
    """A layer norm whose scale is its bias, and its epsilon as another operator's number."""
    x, w = drawn(5, 7), drawn(7)
    before, after, names, _ = compiled(lambda x, w: ROWS["layer_norm"](x, w, w, epsilon=0.001) / (x.square() + 0.001),
                                       x, w)
    assert sorted(names) == ["add", "divide", "jit_kernel", "square"]
    np.testing.assert_allclose(after[0], before[0], rtol=1e-5, atol=1e-5)


def test_neighbours_are_not_drawn_in():
    before, after, names, changes = compiled(lambda x: F.softmax(x * 2.0) + 1.0, drawn(3, 8))
    assert names == ["multiply", "jit_kernel", "add"]
    np.testing.assert_allclose(after[0], before[0], rtol=1e-6)


def test_equal_calls_share_a_kernel_and_others_do_not():
    def several(x, y):
        return F.gelu(F.gelu(x)), F.gelu(y), F.gelu(x, approximate=True)
    program = trace(several, Meta((4, 6), F32), Meta((4, 8), F32)).program
    assert compile_fused_rows(program) == 4
    kernels = [op.attributes["kernel"].value for op in program.walk() if op.name() == "cinn_runtime.jit_kernel"]
    assert len(kernels) == 4 and len(set(kernels)) == 2     # (the size of rows is none of the kernel's)


def test_open_sizes():
    x = drawn(6, 7)
    program = trace(lambda x: F.softmax(x) * 2.0, paddle.static.InputSpec([None, 7], "float32")).program
    changed = program.clone()
    assert compile_fused_rows(changed) == 1
    for n in (6, 1, 4):
        got, want = (Executor(p).run({"input_0": x[:n]}, Scope()) for p in (changed, program))
        np.testing.assert_allclose(got["output_0"], want["output_0"], rtol=1e-6)


def test_open_images():
    """What a convolution assumes of open sizes, its parts assume again."""
    def conv(x, w, b):
        return ROWS["fused_conv2d_add_act"](x, w, b, strides=(1, 1), paddings=(0, 0, 0, 0), dilations=(1, 1), groups=1,
                                            activation="gelu")
    w, b = drawn(4, 3, 2, 2), drawn(4)
    specs = [paddle.static.InputSpec(["B", 3, "H", "W"], "float32"), Meta(w.shape, F32), Meta(b.shape, F32)]
    for x in drawn(2, 3, 5, 7), drawn(1, 3, 2, 2):
        before, after, names, changes = compiled(conv, x, w, b, specs=specs)
        assert changes == 1 and names.count("jit_kernel") == 1
        np.testing.assert_allclose(after[0], before[0], rtol=1e-5, atol=1e-5)


def test_low_precision_is_rounded_once():
    x = drawn(4, 9).astype(dtypes.bfloat16.np)
    before, after, names, _ = compiled(lambda x: F.softmax(x), x)
    assert names == ["jit_kernel"] and after[0].dtype == x.dtype
    np.testing.assert_allclose(after[0].astype(F32), before[0].astype(F32), rtol=2 ** -7)


def test_inside_of_a_branch():
    def f(x):
        return paddle.static.nn.cond(x.sum() > 0, lambda: F.softmax(x), lambda: F.sigmoid(x))
    for x in (np.abs(drawn(3, 5)), -np.abs(drawn(3, 5))):
        before, after, names, changes = compiled(f, x)
        assert changes == 2 and names.count("jit_kernel") == 2
        np.testing.assert_allclose(after[0], before[0], rtol=1e-6)


def test_a_rotation_becomes_a_kernel():
    before, after, names, changes = compiled(
        lambda x, cos, sin: ROWS["fused_rotary_position_embedding"](x, cos, sin), drawn(3, 8), drawn(4), drawn(4))
    assert names == ["jit_kernel"] and changes == 1
    np.testing.assert_allclose(after[0], before[0], rtol=1e-6)


def test_what_would_leave_a_part_beside_the_kernel_stays():
    """A maximum of long columns and what needs it are two nests."""
    before, after, names, changes = compiled(lambda x: F.softmax(x, axis=1), drawn(3, 600, 7))
    assert names == ["softmax"] and changes == 0


def test_single_operators_and_draws_stay():
    build = Builder((program := Program()).global_block())
    x = build.data("x", (3, 4), "float32")
    y, = build.call(ROWS["tanh"], (x,), {})
    y, = build.call(ROWS["add"], (y, x), {})
    y, = build.call(ROWS["dropout"], (y, build.data("key", (2,), "int64")), {"p": 0.5, "mode": "upscale_in_train"})
    build.output("y", y)
    assert compile_fused_rows(program) == 0


def test_by_name():
    program = trace(lambda x: F.silu(x), Meta((3, 4), F32)).program
    manager = PassManager()
    manager.add_pass("compile_fused_rows_pass")
    assert manager.run(program) == 1


def test_what_the_user_wrote_is_still_known():
    program = trace(lambda x: F.softmax(x), Meta((3, 4), F32)).program
    line = next(op for op in program.walk() if op.name() == "pd_op.softmax").attributes.get("op_callstack")
    compile_fused_rows(program)
    kernel = next(op for op in program.walk() if op.name() == "cinn_runtime.jit_kernel")
    assert kernel.attributes.get("op_callstack") == line
