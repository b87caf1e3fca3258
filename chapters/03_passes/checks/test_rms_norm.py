"""The rule that recognises RMSNorm in low precision."""

import ml_dtypes
import numpy as np

import minipd as paddle
from minipd.executor import Executor, Scope
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.passes import create_pass, fuse_forward
from minipd.static import InputSpec
from tools.course.checking import check

QUIET = ("data", "full", "full_int_array", "shadow_output")
DTYPES = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float32": np.float32}


def fused(f, x=(2, 4), w=(4,), dtype="bfloat16"):
    """(operators after the pass, the fused operation or None); the meaning must stay, but for a rounding."""
    program = trace(f, InputSpec(list(x), dtype, "x"), InputSpec(list(w), dtype, "w")).program
    rng = np.random.default_rng(0)
    feed = {n: rng.standard_normal(s).astype(DTYPES[dtype]) for n, s in (("x", x), ("w", w))}
    before = Executor(program).run(feed, Scope())["output_0"]
    create_pass("add_norm_fuse_pass").run(program)
    after = Executor(program).run(feed, Scope())["output_0"]
    check(before.astype(np.float64), after.astype(np.float64), "the values of the program before and after", rtol=2e-2)
    names = [op.name().split(".")[1] for op in program.walk()]
    norms = [op for op in program.walk() if op.name() == "pd_op.rms_norm"]
    return [n for n in names if n not in QUIET], norms[0] if norms else None


def by_hand(x, w, epsilon=1e-6, axis=-1):
    h = x.cast("float32")
    n = h * (h.square().mean(axis, keepdim=True) + epsilon).rsqrt()
    return n.cast(x.dtype) * w


def becomes(want, f, on, **options):
    check(want, lambda: fused(f, **options)[0], f"the operators that are left of {on}")


def test_as_the_public_function_composes_it():
    becomes(["rms_norm"], lambda x, w: F.rms_norm(x, [4], w), "F.rms_norm(x, [4], w) in bfloat16")


def test_in_float16():
    becomes(["rms_norm"], lambda x, w: F.rms_norm(x, [4], w), "F.rms_norm(x, [4], w) in float16", dtype="float16")


def test_as_it_is_written_by_hand():
    becomes(["rms_norm"], by_hand, "h = x in float32; (h * rsqrt(mean(square(h)) + 1e-6)) in bfloat16 * w")


def test_epsilon_is_what_the_program_says():
    for epsilon in (1e-6, 0.5):
        check(epsilon, lambda e=epsilon: fused(lambda x, w: by_hand(x, w, e))[1].attributes["epsilon"].value,
              f"epsilon of the norm of a program with epsilon={epsilon}")


def test_factors_in_another_order():
    def f(x, w):
        h = x.cast("float32")
        return w * ((h.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * h).cast(x.dtype)
    becomes(["rms_norm"], f, "w * (rsqrt(mean(square(h)) + 1e-6) * h) in bfloat16")


def test_over_two_dimensions():
    becomes(["rms_norm"], lambda x, w: F.rms_norm(x, [3, 4], w), "a norm over the last two of three dimensions",
            x=(2, 3, 4), w=(3, 4))


def stays(f, on, **options):
    check(False, lambda: "rms_norm" in fused(f, **options)[0], f"whether a norm is found in {on}")


def test_a_sum_is_no_mean():
    def f(x, w):
        h = x.cast("float32")
        return (h * (h.square().sum(-1, keepdim=True) + 1e-6).rsqrt()).cast(x.dtype) * w
    stays(f, "(h * rsqrt(sum(square(h)) + 1e-6)) in bfloat16 * w")


def test_another_axis():
    stays(lambda x, w: by_hand(x, w, axis=0), "a norm over axis 0, with w along the last axis", x=(4, 4))


def test_of_another_tensor():
    def f(x, w):
        h, g = x.cast("float32"), (x * x).cast("float32")
        return (h * (g.square().mean(-1, keepdim=True) + 1e-6).rsqrt()).cast(x.dtype) * w
    stays(f, "a product where the mean is not that of h itself")


def test_rounded_to_another_dtype():
    def f(x, w):
        h = x.cast("float32")
        n = h * (h.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        return n.cast("float16").cast("bfloat16") * w
    stays(f, "a norm that is rounded to float16 first")


def test_the_rule_for_float32_is_another_one():
    becomes(["rms_norm"], lambda x, w: F.rms_norm(x, [4], w), "F.rms_norm(x, [4], w) in float32", dtype="float32")


def test_before_the_gradient_is_appended():
    program = trace(lambda x, w: by_hand(paddle.tanh(x), w), InputSpec([2, 4], "bfloat16", "x"),
                    InputSpec([4], "bfloat16", "w")).program
    fuse_forward(program)
    names = [op.name().split(".")[1] for op in program.walk()]
    check(["tanh", "rms_norm"], [n for n in names if n not in QUIET], "the operators of a norm of tanh(x), fused")
